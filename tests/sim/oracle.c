/* SPDX-License-Identifier: MIT */
#include "sim/oracle.h"

#include "model/testenv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct point {
	struct oracle_step step;
	struct model *after;
	uint64_t hash_names;
	char text[160];
};

struct oracle {
	struct point *points;
	size_t nr, cap;
	struct oracle_stats stats;
};

struct oracle *oracle_new(struct model *fresh)
{
	struct oracle *o = calloc(1, sizeof(*o));
	oracle_add(o, &(struct oracle_step){ .synced_all = true }, fresh, "mkfs");
	return o;
}

void oracle_free(struct oracle *o)
{
	if (!o)
		return;
	for (size_t k = 0; k < o->nr; k++)
		model_free(o->points[k].after);
	free(o->points);
	free(o);
}

void oracle_add(struct oracle *o, const struct oracle_step *step, struct model *after, const char *text)
{
	if (o->nr == o->cap) {
		o->cap = o->cap ? 2 * o->cap : 256;
		o->points = realloc(o->points, o->cap * sizeof(*o->points));
	}
	struct point *p = &o->points[o->nr++];
	*p = (struct point){ .step = *step };
	say(p->text, sizeof(p->text), "%.*s", (int)sizeof(p->text) - 1, text);
	/* hashes are kept in the inodes: computed once, before they are shared */
	p->hash_names = model_hash_names(after);
	for (size_t k = 0; k < after->nr; k++) {
		if (model_is_file(after->slots[k].inode))
			model_hash_content(after->slots[k].inode);
	}
	p->after = model_snapshot(after);
}

void oracle_add_op(struct oracle *o, size_t log_begin, size_t log_end, const struct ops *ops)
{
	char text[1200];
	bool done = ops->result >= 0;
	struct oracle_step step = {
		.log_begin = log_begin,
		.log_end = log_end,
		.synced_all = done && (ops->kind == OP_SYNC || ops->kind == OP_REMOUNT),
		.synced_ino = done && ops->kind == OP_FSYNC ? ops->ino : 0,
		.moved = { ops->moved[0], ops->moved[1] },
	};
	say(text, sizeof(text), "%s%s", ops_name(ops->kind), ops->text);
	oracle_add(o, &step, ops->model, text);
}

void oracle_stats(const struct oracle *o, struct oracle_stats *out)
{
	*out = o->stats;
}

/* Last state that can have left a trace (I2). */
static size_t last_point(const struct oracle *o, size_t cut)
{
	size_t last = 0;
	for (size_t k = 1; k < o->nr && o->points[k].step.log_begin < cut; k++)
		last = k;
	return last;
}

/* State of the last acknowledgement before the cut, of everything (@ino 0: the namespace) or of one file. */
static size_t acknowledged(const struct oracle *o, size_t cut, uint64_t ino)
{
	for (size_t k = o->nr; k-- > 1;) {
		const struct oracle_step *s = &o->points[k].step;
		if (s->log_end <= cut && (s->synced_all || (s->synced_ino && (!ino || s->synced_ino == ino))))
			return k;
	}
	return 0;
}

/* Last state up to @names in which this file got a name; 0: none. */
static size_t named(const struct oracle *o, size_t names, uint64_t ino)
{
	for (size_t k = names; k > 0; k--) {
		const struct oracle_step *s = &o->points[k].step;
		if (s->moved[0] == ino || s->moved[1] == ino)
			return k;
	}
	return 0;
}

/* *names becomes the first state with these names: later ones have what it demands of files, and perhaps more. */
static int judge_names(struct oracle *o, size_t cut, size_t first, size_t last, struct model *got, size_t *names,
		       char *why, size_t cap)
{
	uint64_t hash = model_hash_names(got);
	for (*names = first; *names <= last; ++*names) {
		if (o->points[*names].hash_names == hash)
			return 0;
	}
	char diff[700] = "no difference found";
	for (size_t k = 0; k < o->nr; k++) {
		if (o->points[k].hash_names != hash)
			continue;
		model_diff_names(o->points[first].after, got, diff, sizeof(diff));
		say(why, cap,
		    "cut %zu: names are those of state %zu (after %s), but states %zu (%s) to %zu are allowed: %s", cut,
		    k, o->points[k].text, first, o->points[first].text, last, diff);
		return -1;
	}
	char diff_last[700] = "no difference found";
	model_diff_names(o->points[first].after, got, diff, sizeof(diff));
	model_diff_names(o->points[last].after, got, diff_last, sizeof(diff_last));
	say(why, cap,
	    "cut %zu: names are of no state; against the acknowledged state %zu (%s): %s; against the last state %zu "
	    "(%s): %s",
	    cut, first, o->points[first].text, diff, last, o->points[last].text, diff_last);
	return -1;
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Content, and times (each may be of another state of the allowed ones: an inode's times may be written without its data). */
static int judge_file(struct oracle *o, size_t cut, size_t last, size_t names, struct model_inode *f, char *why,
		      size_t cap)
{
	size_t first = acknowledged(o, cut, f->ino), near = SIZE_MAX, since = named(o, names, f->ino);
	uint64_t hash = model_hash_content(f);
	bool content = false, times = false;
	if (since > first) {
		first = since;
		o->stats.nr_moved++;
	}
	for (size_t k = last + 1; k-- > first && !(content && times);) {
		struct model_slot *slot = model_slot(o->points[k].after, f->ino);
		if (!slot)
			continue;
		near = near == SIZE_MAX ? k : near;
		content = content || model_hash_content(slot->inode) == hash;
		times = times || same_time(slot->inode->mtime, f->mtime);
	}
	if (content && times)
		return 0;
	if (content) {
		say(why, cap, "cut %zu: inode %ju has an mtime that it had in no state from %zu to %zu", cut,
		    (uintmax_t)f->ino, first, last);
		return -1;
	}
	char diff[500] = "it exists in none";
	if (near != SIZE_MAX)
		model_diff_content(model_slot(o->points[near].after, f->ino)->inode, f, diff, sizeof(diff));
	int n = snprintf(why, cap,
			 "cut %zu: inode %ju has a content of no state from %zu (%s) to %zu; against the last: %s", cut,
			 (uintmax_t)f->ino, first, o->points[first].text, last, diff);
	for (size_t k = 0; k < o->nr && n >= 0 && (size_t)n < cap; k++) {
		struct model_slot *slot = model_slot(o->points[k].after, f->ino);
		if (!slot || model_hash_content(slot->inode) != hash)
			continue;
		say(why + n, cap - (size_t)n, " (it is that of state %zu, %s)", k, o->points[k].text);
		break;
	}
	return -1;
}

static void count_point(struct oracle *o, size_t first, size_t last, struct model *got)
{
	uint64_t hash = model_hash_names(got);
	o->stats.nr_judged++;
	for (size_t k = last + 1; k-- > first;) {
		bool same = o->points[k].hash_names == hash;
		for (size_t i = 0; same && i < got->nr; i++) {
			struct model_inode *f = got->slots[i].inode;
			struct model_slot *slot = model_is_file(f) ? model_slot(o->points[k].after, f->ino) : NULL;
			same = !slot || model_hash_content(slot->inode) == model_hash_content(f);
		}
		if (same) {
			o->stats.nr_single_point++;
			o->stats.nr_ahead += k > first;
			return;
		}
	}
}

/* A file that lost data with its member may be unreadable, if it has changed since it was acknowledged (or got its name, which asks for
 * no more than that its data had been written by then). */
static int judge_lost(struct oracle *o, size_t cut, size_t last, const struct model_inode *f, char *why, size_t cap)
{
	size_t first = acknowledged(o, cut, f->ino);
	struct model_slot *acked = model_slot(o->points[first].after, f->ino);
	uint64_t hash = acked ? model_hash_content(acked->inode) : 0;
	for (size_t k = first + 1; acked && k <= last; k++) {
		struct model_slot *slot = model_slot(o->points[k].after, f->ino);
		/* also what left it as it was, like zeros behind its end, may have written blocks of it anew */
		if (slot && (model_hash_content(slot->inode) != hash || !same_time(slot->inode->mtime, acked->inode->mtime)))
			return 0;
	}
	if (!acked)
		return 0;
	say(why, cap, "cut %zu: inode %ju cannot be read, and has not changed since it was acknowledged in state %zu (%s)", cut,
	    (uintmax_t)f->ino, first, o->points[first].text);
	return -1;
}

int oracle_judge(struct oracle *o, size_t cut, struct model *got, char *why, size_t cap)
{
	size_t first = acknowledged(o, cut, 0), last = last_point(o, cut);
	if (last < first)
		last = first;
	size_t names;
	int err = judge_names(o, cut, first, last, got, &names, why, cap);
	for (size_t k = 0; !err && k < got->nr; k++) {
		struct model_inode *f = got->slots[k].inode;
		if (model_is_file(f))
			err = f->unreadable ? judge_lost(o, cut, last, f, why, cap) : judge_file(o, cut, last, names, f, why, cap);
	}
	if (!err)
		count_point(o, first, last, got);
	return err;
}
