/* SPDX-License-Identifier: MIT */
#include "check/twice.h"

#include "check/items.h"
#include "check/scrubber.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_USERS   256u /* that are noted: who has more of them knows enough */
#define MAX_PAIRS   1024u
#define SHOWN_BYTES 72u /* of a path */

struct who { /* as a message names him */
	char text[128];
};

struct pair {
	const struct pf_check_user *second;
	struct pf_check_user first; /* nr_blocks 0: was not found */
	struct who who[2];
};

struct search {
	struct pf_checker *c;
	size_t nr_passed; /* of the users noted: the walk has come to them again */
	struct pair *pairs;
	size_t nr, cap;
};

struct pf_check_user pf_check_user_node(const struct pf_walk_node *node, unsigned copy)
{
	return (struct pf_check_user){
		.addr = node->ptr.addr[copy],
		.nr_blocks = PF_NODE_BLOCKS,
		.lower = node->lower,
	};
}

struct pf_check_user pf_check_user_extent(const struct pf_extent *extent, unsigned copy)
{
	return (struct pf_check_user){
		.addr = extent->addr[copy],
		.nr_blocks = extent->nr,
		.data_id = extent->data_id,
		.file_block = extent->start,
	};
}

int pf_check_twice_note(struct pf_checker *c, const struct pf_check_user *user)
{
	struct pf_check_twice *t = &c->twice;
	if (t->nr == MAX_USERS)
		return 0;
	if (pf_grow(&t->users, t->nr, &t->cap, sizeof(t->users[0])))
		return -ENOMEM;
	t->users[t->nr++] = *user;
	return 0;
}

/* -- who had them before ------------------------------------------------------------------------------------------- */
static int add_pair(struct search *s, const struct pf_check_user *second, const struct pf_check_user *first)
{
	if (s->nr == MAX_PAIRS)
		return 0;
	if (pf_grow(&s->pairs, s->nr, &s->cap, sizeof(s->pairs[0])))
		return -ENOMEM;
	s->pairs[s->nr++] = (struct pair){ .second = second, .first = *first };
	return 0;
}

static bool overlap(const struct pf_check_user *a, const struct pf_check_user *b)
{
	return a->addr < b->addr + b->nr_blocks && b->addr < a->addr + a->nr_blocks;
}

static bool is_same(const struct pf_check_user *a, const struct pf_check_user *b)
{
	return a->addr == b->addr && a->data_id == b->data_id && a->file_block == b->file_block;
}

/* Only those behind it in the walk come second: each pair is met once. */
static int see_user(struct search *s, const struct pf_check_user *user)
{
	const struct pf_check_twice *t = &s->c->twice;
	if (s->nr_passed < t->nr && is_same(&t->users[s->nr_passed], user))
		s->nr_passed++;
	for (size_t i = s->nr_passed; i < t->nr; i++) {
		if (overlap(&t->users[i], user) && add_pair(s, &t->users[i], user))
			return -ENOMEM;
	}
	return 0;
}

static int see_node(void *arg, const struct pf_walk_node *node)
{
	int err = 0;
	for (unsigned copy = 0; !err && copy < pf_walk_nr_copies(node); copy++) {
		struct pf_check_user user = pf_check_user_node(node, copy);
		err = see_user(arg, &user);
	}
	return err;
}

static int see_bad(void *arg, const struct pf_walk_node *node, int err)
{
	(void)err;
	return see_node(arg, node);
}

static int see_item(void *arg, const struct pf_walk_item *item)
{
	struct pf_extent extent;
	int err = 0;
	if (pf_key_class(item->key) != PF_CLASS_EXTENT || pf_key_type(item->key) != PF_TYPE_EXTENT ||
	    pf_extent_unpack(item->key, item->data, item->len, &extent))
		return 0;
	for (unsigned i = 0; i < extent.nr_copies && !err; i++) {
		struct pf_check_user user = pf_check_user_extent(&extent, i);
		err = see_user(arg, &user);
	}
	return err;
}

/* -- their names --------------------------------------------------------------------------------------------------- */
/* The end of a path says more than its beginning. */
static const char *end_of(const char *path, const char **dots)
{
	size_t len = strlen(path);
	*dots = len > SHOWN_BYTES ? "..." : "";
	if (len <= SHOWN_BYTES)
		return path;
	path += len - SHOWN_BYTES;
	while (((unsigned char)*path & 0xc0) == 0x80)
		path++; /* not into the middle of a character */
	return path;
}

static void name_file(void *arg, const char *path, uint64_t ino, const struct pf_scrub_hit *hit)
{
	struct pair *pairs = arg;
	struct who *who = &pairs[hit->err / 2].who[hit->err % 2];
	const char *dots, *end = end_of(path, &dots);
	if (!ino)
		snprintf(who->text, sizeof(who->text), "data %llu, which no file has",
			 (unsigned long long)hit->data_id);
	else if (!strcmp(path, "?"))
		snprintf(who->text, sizeof(who->text), "inode %llu", (unsigned long long)ino);
	else
		snprintf(who->text, sizeof(who->text), "%s%s from block %llu", dots, end,
			 (unsigned long long)hit->file_block);
}

/* Names a node, or adds a file to @hits. */
static void name_or_ask(const struct pf_check_user *user, struct who *who, int number, struct pf_scrub_hit *hits,
			size_t *nr)
{
	if (!user->nr_blocks)
		snprintf(who->text, sizeof(who->text), "something that cannot be read");
	else if (user->data_id)
		hits[(*nr)++] = (struct pf_scrub_hit){
			.data_id = user->data_id,
			.file_block = user->file_block,
			.addr = user->addr,
			.nr_blocks = user->nr_blocks,
			.err = number,
		};
	else
		snprintf(who->text, sizeof(who->text), "the tree node from %s", pf_check_key_text(user->lower).text);
}

static int name_all(struct search *s)
{
	struct pf_scrub_hit *hits = calloc(2 * s->nr, sizeof(*hits));
	size_t nr = 0;
	int err = hits ? 0 : -ENOMEM;
	for (size_t i = 0; i < s->nr && !err; i++) {
		name_or_ask(&s->pairs[i].first, &s->pairs[i].who[0], (int)(2 * i), hits, &nr);
		name_or_ask(s->pairs[i].second, &s->pairs[i].who[1], (int)(2 * i + 1), hits, &nr);
	}
	if (!err && nr)
		err = pf_scrub_names(s->c->set, s->c->super, hits, nr, name_file, s->pairs);
	free(hits);
	return err;
}

/* -- the report ---------------------------------------------------------------------------------------------------- */
static void report(struct pf_checker *c, const struct pair *pair)
{
	const struct pf_check_user *a = &pair->first, *b = pair->second;
	pf_addr from = b->addr, to = b->addr + b->nr_blocks;
	if (a->nr_blocks) {
		from = from > a->addr ? from : a->addr;
		to = to < a->addr + a->nr_blocks ? to : a->addr + a->nr_blocks;
	}
	pf_check_report(c, PF_PROBLEM_BLOCK_TWICE,
			"%s, %u in a row: by %s and by %s; mount the pool read-only, copy your files elsewhere "
			"and make it anew",
			pf_check_place(c->set, from).text, (unsigned)(to - from), pair->who[0].text, pair->who[1].text);
}

/* Of those noted, those whose partner was not met: what could not be read the second time. */
static int add_unmatched(struct search *s)
{
	const struct pf_check_twice *t = &s->c->twice;
	const struct pf_check_user unknown = { 0 };
	size_t nr_met = s->nr;
	int err = 0;
	for (size_t i = 0; i < t->nr && !err; i++) {
		bool met = false;
		for (size_t k = 0; k < nr_met && !met; k++)
			met = s->pairs[k].second == &t->users[i];
		if (!met)
			err = add_pair(s, &t->users[i], &unknown);
	}
	return err;
}

int pf_check_twice_report(struct pf_checker *c)
{
	static const struct pf_walk_ops ops = { .node = see_node, .item = see_item, .bad = see_bad };
	struct search s = { .c = c };
	if (!c->twice.nr)
		return 0;
	int err = pf_walk_tree(c->set, c->super, PF_KEY_MIN, PF_KEY_MAX, &ops, &s);
	if (!err)
		err = add_unmatched(&s);
	if (!err)
		err = name_all(&s);
	for (size_t i = 0; i < s.nr && !err; i++)
		report(c, &s.pairs[i]);
	free(s.pairs);
	return err;
}
