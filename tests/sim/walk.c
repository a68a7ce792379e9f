/* SPDX-License-Identifier: MIT */
#include "sim/walk.h"

#include "model/testenv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CHUNK_BYTES (64u * 1024)

struct walk {
	struct pf_pool *pool;
	struct model *m;
	struct walk_result *r;
	uint8_t *buf, *expected;
	char *why;
	size_t cap;
};

static int wrong(struct walk *w, uint64_t ino, const char *what, int64_t got)
{
	say(w->why, w->cap, "inode %ju: %s (%jd)", (uintmax_t)ino, what, (intmax_t)got);
	return -1;
}

/* 1: an error that damage may give, noted; 0: no error; -1: an error of another kind, which is a wrong answer. */
static int failed(struct walk *w, uint64_t ino, const char *what, int64_t got)
{
	w->r->nr_checked++;
	if (got >= 0)
		return 0;
	if (pf_errno((int)got) != EIO)
		return wrong(w, ino, what, got);
	w->r->nr_errors++;
	return 1;
}

static int walk_blocks(struct walk *w, const struct model_inode *i, uint64_t off, size_t len)
{
	for (size_t at = 0; at < len; at += MODEL_BLOCK) {
		size_t n = len - at < MODEL_BLOCK ? len - at : MODEL_BLOCK;
		int64_t got = pf_read(w->pool, i->ino, off + at, w->buf, n);
		int bad = failed(w, i->ino, "reading a block", got);
		if (bad < 0)
			return -1;
		w->r->nr_bad_blocks += bad > 0;
		if (bad)
			continue;
		model_read_at(i, off + at, w->expected, n);
		if (got != (int64_t)n || memcmp(w->buf, w->expected, n))
			return wrong(w, i->ino, "a block reads wrong", (int64_t)(off + at));
	}
	return 0;
}

static int walk_content(struct walk *w, const struct model_inode *i)
{
	for (uint64_t off = 0; off < i->size_bytes; off += CHUNK_BYTES) {
		size_t len = i->size_bytes - off < CHUNK_BYTES ? (size_t)(i->size_bytes - off) : CHUNK_BYTES;
		int64_t got = pf_read(w->pool, i->ino, off, w->buf, len);
		int bad = failed(w, i->ino, "reading", got);
		if (bad < 0 || (bad && walk_blocks(w, i, off, len)))
			return -1;
		if (bad)
			continue;
		model_read_at(i, off, w->expected, len);
		if (got != (int64_t)len || memcmp(w->buf, w->expected, len))
			return wrong(w, i->ino, "reads wrong in the 64 KiB at", (int64_t)off);
	}
	return 0;
}

static int walk_xattrs(struct walk *w, const struct model_inode *i)
{
	static uint8_t value[65536 + 1];
	for (size_t x = 0; x < i->nr_xattrs; x++) {
		const struct model_value *v = i->xattrs[x].value;
		int64_t got = pf_getxattr(w->pool, i->ino, i->xattrs[x].name, value, sizeof(value));
		int bad = failed(w, i->ino, "getxattr", got);
		if (bad < 0)
			return -1;
		if (!bad && (got != (int64_t)v->len || memcmp(value, v->bytes, v->len)))
			return wrong(w, i->ino, "an xattr has a wrong value", got);
	}
	char list[65536];
	size_t want = 0;
	for (size_t x = 0; x < i->nr_xattrs; x++)
		want += strlen(i->xattrs[x].name) + 1;
	int64_t got = pf_listxattr(w->pool, i->ino, list, sizeof(list));
	int bad = failed(w, i->ino, "listxattr", got);
	return bad < 0 || (!bad && got != (int64_t)want) ? wrong(w, i->ino, "the list of xattrs is wrong", got) : 0;
}

static int walk_inode(struct walk *w, const struct model_inode *i, const struct pf_attr *a)
{
	if (a->mode != i->mode || a->nlink != i->nlink || a->uid != i->uid || a->gid != i->gid ||
	    a->mtime.tv_sec != i->mtime.tv_sec || (model_is_file(i) && a->size_bytes != i->size_bytes))
		return wrong(w, i->ino, "attributes are wrong", a->mode);
	if (walk_xattrs(w, i))
		return -1;
	if (model_is_symlink(i)) {
		char target[4096];
		int got = pf_readlink(w->pool, i->ino, target, sizeof(target));
		int bad = failed(w, i->ino, "readlink", got);
		return bad < 0 || (!bad && strcmp(target, i->target)) ? wrong(w, i->ino, "target is wrong", got) : 0;
	}
	return model_is_file(i) ? walk_content(w, i) : 0;
}

struct names {
	const struct model_inode *dir;
	size_t nr;
	bool foreign;
};

static bool count_name(void *arg, const struct pf_dirent *d)
{
	struct names *n = arg;
	char name[256];
	memcpy(name, d->name, d->len);
	name[d->len] = 0;
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return true;
	const struct model_entry *e = model_find(n->dir, name);
	if (!e || e->ino != d->ino)
		n->foreign = true;
	n->nr++;
	return true;
}

static int walk_dir(struct walk *w, const struct model_inode *dir)
{
	struct names names = { .dir = dir };
	int got = pf_readdir(w->pool, dir->ino, 0, count_name, &names);
	int bad = failed(w, dir->ino, "readdir", got);
	if (bad < 0)
		return -1;
	if (names.foreign || (!bad && names.nr != dir->nr_entries))
		return wrong(w, dir->ino, "the list of names is wrong", (int64_t)names.nr);
	for (size_t e = 0; e < dir->nr_entries; e++) {
		struct pf_attr a;
		const char *name = dir->entries[e].name;
		got = pf_lookup(w->pool, dir->ino, name, strlen(name), &a);
		bad = failed(w, dir->ino, "lookup", got);
		if (bad < 0)
			return -1;
		if (bad)
			continue;
		if (a.ino != dir->entries[e].ino)
			return wrong(w, dir->ino, "a name leads elsewhere", (int64_t)a.ino);
		const struct model_inode *i = model_get(w->m, a.ino);
		int err = walk_inode(w, i, &a);
		if (!err && model_is_dir(i))
			err = walk_dir(w, i);
		pf_forget(w->pool, a.ino, 1);
		if (err)
			return err;
	}
	return 0;
}

int walk_damaged(struct pf_pool *pool, struct model *expected, struct walk_result *result, char *why, size_t cap)
{
	struct walk w = { .pool = pool, .m = expected, .r = result, .why = why, .cap = cap };
	memset(result, 0, sizeof(*result));
	w.buf = aligned_alloc(MODEL_BLOCK, CHUNK_BYTES + 2 * MODEL_BLOCK);
	w.expected = malloc(CHUNK_BYTES);
	int err = walk_dir(&w, model_get(expected, PF_ROOT_INO));
	free(w.buf);
	free(w.expected);
	return err;
}
