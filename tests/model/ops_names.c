/* SPDX-License-Identifier: MIT */
#include "model/ops_internal.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

static uint64_t pick_parent(struct ops *o)
{
	return pick_inode(o, rng_one_in(&o->rng, 60) ? is_any : is_named_dir);
}

static struct pf_cred pick_cred(struct ops *o)
{
	struct pf_cred cred;
	cred.uid = (uint32_t)rng_below(&o->rng, 3) * 1000;
	cred.gid = (uint32_t)rng_below(&o->rng, 3) * 1000;
	return cred;
}

static uint32_t pick_mode(struct ops *o)
{
	return (uint32_t)(rng_one_in(&o->rng, 8) ? rng_below(&o->rng, 010000) : rng_below(&o->rng, 01000));
}

/* After a creating operation: the pool's answer @got, @attr against the model's @expected. */
static int made(struct ops *o, int expected, int got, const struct pf_attr *attr, uint64_t parent)
{
	if (expect(o, expected, got))
		return -1;
	if (got)
		return check_inode(o, parent);
	o->ino = attr->ino;
	return check_attr(o, attr, attr->ino) || check_inode(o, parent) ? -1 : 0;
}

static bool reused(struct ops *o, int got, const struct pf_attr *attr)
{
	if (got || !model_get(o->model, attr->ino))
		return false;
	fail(o, "gives inode number %ju, which is in use", (uintmax_t)attr->ino);
	return true;
}

static int make_node(struct ops *o, uint32_t mode, uint32_t major, uint32_t minor)
{
	char name[512];
	struct pf_attr attr;
	uint64_t parent = pick_parent(o);
	if (!parent)
		return o->failure[0] ? -1 : 0;
	pick_name(o, parent, rng_one_in(&o->rng, 12), name);
	struct pf_cred cred = pick_cred(o);
	describe(o, "(%ju, '%s', %o, %u:%u)", (uintmax_t)parent, name, mode, cred.uid, cred.gid);
	int got = pf_create(o->pool, parent, name, strlen(name), mode, cred, major, minor, &attr);
	if (excused(o, got, true))
		return check_inode(o, parent);
	if (reused(o, got, &attr))
		return -1;
	int expected = model_create(o->model, parent, name, mode, cred, major, minor, got ? 0 : attr.ino);
	return made(o, expected, got, &attr, parent);
}

int op_create(struct ops *o)
{
	return make_node(o, S_IFREG | pick_mode(o), 0, 0);
}
int op_mkdir(struct ops *o)
{
	return make_node(o, S_IFDIR | pick_mode(o), 0, 0);
}
int op_mknod(struct ops *o)
{
	static const uint32_t types[] = { S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK };
	uint32_t type = types[rng_below(&o->rng, 4)];
	bool device = type == S_IFCHR || type == S_IFBLK;
	uint32_t major = device ? (uint32_t)rng_below(&o->rng, 4096) : 0;
	uint32_t minor = device ? (uint32_t)rng_below(&o->rng, 1 << 20) : 0;
	return make_node(o, type | pick_mode(o), major, minor);
}

int op_symlink(struct ops *o)
{
	char name[512], target[4200];
	struct pf_attr attr;
	uint64_t parent = pick_parent(o);
	if (!parent)
		return o->failure[0] ? -1 : 0;
	pick_name(o, parent, rng_one_in(&o->rng, 12), name);
	size_t len = 1 + (size_t)(rng_one_in(&o->rng, 10) ? 4090 + rng_below(&o->rng, 7) : rng_skewed(&o->rng, 4094));
	for (size_t k = 0; k < len; k++)
		target[k] = (char)('a' + rng_below(&o->rng, 26));
	target[len] = 0;
	struct pf_cred cred = pick_cred(o);
	describe(o, "(%ju, '%s', %zu bytes)", (uintmax_t)parent, name, len);
	int got = pf_symlink(o->pool, parent, name, strlen(name), target, cred, &attr);
	if (excused(o, got, true))
		return check_inode(o, parent);
	if (reused(o, got, &attr))
		return -1;
	return made(o, model_symlink(o->model, parent, name, target, cred, got ? 0 : attr.ino), got, &attr, parent);
}

int op_unnamed(struct ops *o)
{
	struct pf_attr attr;
	uint64_t parent = pick_parent(o);
	if (!parent || !model_get(o->model, parent)->nlink)
		return o->failure[0] ? -1 : 0;
	struct pf_cred cred = pick_cred(o);
	uint32_t mode = S_IFREG | pick_mode(o);
	describe(o, "(%ju, %o)", (uintmax_t)parent, mode);
	int got = pf_create_unnamed(o->pool, parent, mode, cred, &attr);
	if (excused(o, got, true))
		return 0;
	if (reused(o, got, &attr))
		return -1;
	return made(o, model_create_unnamed(o->model, parent, mode, cred, got ? 0 : attr.ino), got, &attr, parent);
}

static bool is_linkable(const struct model_inode *i)
{
	return i->nlink || i->unnamed;
}

int op_link(struct ops *o)
{
	char name[512];
	struct pf_attr attr;
	uint64_t parent = pick_parent(o), ino = parent ? pick_inode(o, is_linkable) : 0;
	if (!ino)
		return o->failure[0] ? -1 : 0;
	pick_name(o, parent, rng_one_in(&o->rng, 12), name);
	describe(o, "(%ju, %ju, '%s')", (uintmax_t)ino, (uintmax_t)parent, name);
	int got = pf_link(o->pool, ino, parent, name, strlen(name), &attr);
	if (excused(o, got, true))
		return check_inode(o, parent) || check_inode(o, ino) ? -1 : 0;
	int expected = model_link(o->model, ino, parent, name);
	if (!got && !expected) {
		model_slot(o->model, ino)->refs++;
		o->moved[0] = ino;
	}
	if (got)
		attr.ino = 0;
	return made(o, expected, got, &attr, parent) || check_inode(o, ino) ? -1 : 0;
}

static int remove_node(struct ops *o, bool directory)
{
	char name[512];
	uint64_t parent = pick_parent(o), ino = 0;
	if (!parent)
		return o->failure[0] ? -1 : 0;
	/* a directory that has something to remove is found by a second look */
	if (!model_get(o->model, parent)->nr_entries)
		parent = pick_parent(o);
	if (!parent)
		return o->failure[0] ? -1 : 0;
	pick_name(o, parent, !rng_one_in(&o->rng, 20), name);
	model_lookup(o->model, parent, name, &ino);
	describe(o, "(%ju, '%s')", (uintmax_t)parent, name);
	int got = directory ? pf_rmdir(o->pool, parent, name, strlen(name))
			    : pf_unlink(o->pool, parent, name, strlen(name));
	if (excused(o, got, false))
		return check_inode(o, parent);
	int expected = directory ? model_rmdir(o->model, parent, name) : model_unlink(o->model, parent, name);
	if (expect(o, expected, got) || check_inode(o, parent))
		return -1;
	return ino && model_get(o->model, ino) && model_slot(o->model, ino)->refs ? check_inode(o, ino) : 0;
}

int op_unlink(struct ops *o)
{
	return remove_node(o, false);
}
int op_rmdir(struct ops *o)
{
	return remove_node(o, true);
}

static int check_held(struct ops *o, uint64_t ino)
{
	const struct model_slot *slot = ino ? model_slot(o->model, ino) : NULL;
	return slot && slot->refs ? check_inode(o, ino) : 0;
}

int op_rename(struct ops *o)
{
	char from[512], to[512];
	uint64_t a = pick_parent(o), b = a ? (rng_one_in(&o->rng, 3) ? a : pick_parent(o)) : 0, x = 0, y = 0;
	if (!b)
		return o->failure[0] ? -1 : 0;
	if (!model_get(o->model, a)->nr_entries)
		a = b;
	pick_name(o, a, !rng_one_in(&o->rng, 20), from);
	pick_name(o, b, rng_one_in(&o->rng, 2), to);
	unsigned flags = (unsigned)(rng_one_in(&o->rng, 100) ? rng_below(&o->rng, 16) : rng_below(&o->rng, 3));
	if (rng_one_in(&o->rng, 40)) /* more of them, each a gap in the log, would leave too little of it to be tested */
		flags = RENAME_WHITEOUT + (unsigned)rng_below(&o->rng, 2);
	struct pf_cred cred = pick_cred(o);
	struct pf_attr whiteout = { 0 };
	model_lookup(o->model, a, from, &x);
	model_lookup(o->model, b, to, &y);
	describe(o, "(%ju, '%s', %ju, '%s', %u)", (uintmax_t)a, from, (uintmax_t)b, to, flags);
	int got = pf_rename(o->pool, a, from, strlen(from), b, to, strlen(to), flags, cred);
	if (excused(o, got, true))
		return check_inode(o, a) || check_inode(o, b) ? -1 : 0;
	bool whites = !got && flags & RENAME_WHITEOUT && x != y;
	if (whites && pf_lookup(o->pool, a, from, strlen(from), &whiteout))
		return fail(o, "leaves no whiteout");
	if (whites && reused(o, 0, &whiteout))
		return -1;
	if (expect(o, model_rename(o->model, a, from, b, to, flags, cred, whiteout.ino), got))
		return -1;
	if (whites && check_attr(o, &whiteout, whiteout.ino))
		return -1;
	/* between two names of one file nothing is done */
	if (!got && x != y) {
		o->moved[0] = x;
		o->moved[1] = flags & RENAME_EXCHANGE ? y : 0;
	}
	return check_inode(o, a) || check_inode(o, b) || check_held(o, x) || check_held(o, y) ? -1 : 0;
}

int op_lookup(struct ops *o)
{
	char name[512];
	struct pf_attr attr;
	uint64_t parent = pick_parent(o), ino = 0;
	if (!parent || !model_get(o->model, parent)->nlink)
		return o->failure[0] ? -1 : 0;
	if (rng_one_in(&o->rng, 10))
		strcpy(name, rng_one_in(&o->rng, 2) || !model_is_dir(model_get(o->model, parent)) ? "." : "..");
	else
		pick_name(o, parent, !rng_one_in(&o->rng, 3), name);
	describe(o, "(%ju, '%s')", (uintmax_t)parent, name);
	int got = pf_lookup(o->pool, parent, name, strlen(name), &attr);
	if (excused(o, got, false) || !name[0])
		return 0;
	if (expect(o, model_lookup(o->model, parent, name, &ino), got))
		return -1;
	if (got)
		return 0;
	if (!model_get(o->model, ino)) { /* what is above the root is not the driver's */
		pf_forget(o->pool, attr.ino, 1);
		return attr.ino == ino ? 0 : fail(o, "gives inode %ju, not %ju", (uintmax_t)attr.ino, (uintmax_t)ino);
	}
	model_slot(o->model, ino)->refs++;
	return check_attr(o, &attr, ino);
}

int op_readlink(struct ops *o)
{
	char target[4097];
	uint64_t ino = pick_inode(o, model_is_symlink);
	if (!ino)
		return o->failure[0] ? -1 : 0;
	describe(o, "(%ju)", (uintmax_t)ino);
	int got = pf_readlink(o->pool, ino, target, sizeof(target));
	if (excused(o, got, false))
		return 0;
	const char *expected = model_get(o->model, ino)->target;
	if (got != (int)strlen(expected) || strcmp(target, expected))
		return fail(o, "gives %d, or another target than expected (%zu bytes)", got, strlen(expected));
	return 0;
}

/* -- reading directories -------------------------------------------------------------------------------------------- */
struct reader {
	struct ops *o;
	const struct model_inode *dir;
	uint64_t cookie;
	size_t room, nr, nr_dots;
	struct ops_cursor *cursor; /* NULL: the directory stands still */
	char wrong[400];
};

static void see(struct ops_cursor *c, const char *name, char *wrong, size_t cap)
{
	for (size_t k = 0; k < c->nr_expect; k++) {
		if (strcmp(c->expect[k], name))
			continue;
		if (c->seen[k])
			say(wrong, cap, "entry '%s' comes twice", name);
		c->seen[k] = true;
		return;
	}
}

static bool read_entry(void *arg, const struct pf_dirent *d)
{
	struct reader *r = arg;
	char name[300];
	if (!r->room)
		return false;
	r->room--;
	memcpy(name, d->name, d->len);
	name[d->len] = 0;
	if (d->cookie <= r->cookie)
		say(r->wrong, sizeof(r->wrong), "cookie %ju follows %ju", (uintmax_t)d->cookie, (uintmax_t)r->cookie);
	r->cookie = d->cookie;
	if (!strcmp(name, ".") || !strcmp(name, "..")) {
		r->nr_dots++;
		if (d->cookie != strlen(name) || d->ino != (name[1] ? r->dir->parent : r->dir->ino))
			say(r->wrong, sizeof(r->wrong), "'%s' has cookie %ju, inode %ju", name, (uintmax_t)d->cookie,
			    (uintmax_t)d->ino);
		return true;
	}
	r->nr++;
	const struct model_entry *e = model_find(r->dir, name);
	if (!e || e->ino != d->ino || IFTODT(model_get(r->o->model, e->ino)->mode) != d->dtype)
		say(r->wrong, sizeof(r->wrong), "entry '%s' (inode %ju, type %u) is not there", name, (uintmax_t)d->ino,
		    d->dtype);
	if (r->cursor)
		see(r->cursor, name, r->wrong, sizeof(r->wrong));
	return true;
}

int op_readdir(struct ops *o)
{
	uint64_t dir = pick_inode(o, is_named_dir);
	if (!dir)
		return o->failure[0] ? -1 : 0;
	size_t piece = 1 + (size_t)rng_skewed(&o->rng, 100);
	describe(o, "(%ju, %zu at a time)", (uintmax_t)dir, piece);
	struct reader r = { .o = o, .dir = model_get(o->model, dir) };
	size_t before;
	do {
		before = r.nr + r.nr_dots;
		r.room = piece;
		int got = pf_readdir(o->pool, dir, r.cookie, read_entry, &r);
		if (excused(o, got, false))
			return 0;
		if (got < 0 || r.wrong[0])
			return fail(o, "%s", got < 0 ? pf_strerror(got) : r.wrong);
	} while (r.nr + r.nr_dots > before);
	if (r.nr != r.dir->nr_entries || r.nr_dots != 2)
		return fail(o, "%zu entries and %zu dots, expected %zu", r.nr, r.nr_dots, r.dir->nr_entries);
	return 0;
}

void cursor_drop(struct ops *o)
{
	struct ops_cursor *c = &o->cursor;
	for (size_t k = 0; k < c->nr_expect; k++)
		free(c->expect[k]);
	free(c->expect);
	free(c->seen);
	model_free(c->start);
	memset(c, 0, sizeof(*c));
}

static void cursor_begin(struct ops *o, uint64_t dir)
{
	struct ops_cursor *c = &o->cursor;
	const struct model_inode *d = model_get(o->model, dir);
	c->dir = dir;
	c->nr_expect = d->nr_entries;
	c->expect = calloc(d->nr_entries + 1, sizeof(*c->expect));
	c->seen = calloc(d->nr_entries + 1, sizeof(*c->seen));
	for (size_t k = 0; k < d->nr_entries; k++)
		c->expect[k] = strdup(d->entries[k].name);
	c->start = model_snapshot(o->model);
}

/* At its end each name that was there, under the same number, at the start and at the end must have come, unless it was
 * renamed away and back meanwhile: such a one has a new cookie, so it may come twice or not at all. */
static int cursor_end(struct ops *o)
{
	struct ops_cursor *c = &o->cursor;
	const struct model_inode *was = model_get(c->start, c->dir), *is = model_get(o->model, c->dir);
	int err = 0;
	for (size_t k = 0; is && !err && k < c->nr_expect; k++) {
		const struct model_entry *a = model_find(was, c->expect[k]), *b = model_find(is, c->expect[k]);
		bool still = b && a->ino == b->ino;
		struct timespec x = model_get(c->start, a->ino)->ctime;
		const struct model_inode *now = model_get(o->model, a->ino);
		if (still && !c->seen[k] && now->ctime.tv_sec == x.tv_sec && now->ctime.tv_nsec == x.tv_nsec)
			err = fail(o, "directory %ju, read while it changed: entry '%s' never came", (uintmax_t)c->dir,
				   c->expect[k]);
	}
	cursor_drop(o);
	return err;
}

/* A few entries of a directory that changes between the calls. */
int op_cursor(struct ops *o)
{
	struct ops_cursor *c = &o->cursor;
	if (c->dir && (!model_get(o->model, c->dir) || !model_get(o->model, c->dir)->nlink))
		cursor_drop(o);
	if (!c->dir) {
		uint64_t dir = pick_inode(o, is_named_dir);
		if (!dir)
			return o->failure[0] ? -1 : 0;
		cursor_begin(o, dir);
	}
	describe(o, "(%ju, after %ju)", (uintmax_t)c->dir, (uintmax_t)c->cookie);
	struct reader r = { .o = o, .dir = model_get(o->model, c->dir), .cookie = c->cookie, .cursor = c };
	r.room = 1 + (size_t)rng_below(&o->rng, 12);
	int got = pf_readdir(o->pool, c->dir, c->cookie, read_entry, &r);
	if (excused(o, got, false))
		return 0;
	/* a name that was renamed away and back comes under a new cookie */
	if (got < 0 || (r.wrong[0] && !strstr(r.wrong, "twice")))
		return fail(o, "%s", got < 0 ? pf_strerror(got) : r.wrong);
	c->cookie = r.cookie;
	return r.nr + r.nr_dots ? 0 : cursor_end(o);
}
