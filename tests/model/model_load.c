/* SPDX-License-Identifier: MIT */
#include "model/model.h"
#include "model/testenv.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CHUNK_BYTES (256u * 1024)

struct loader {
	struct pf_pool *pool;
	struct model *m;
	char *why;
	size_t cap;
	uint8_t *buf;   /* CHUNK_BYTES and a block, aligned */
	uint64_t *todo; /* directories */
	size_t nr_todo, cap_todo;
	bool damaged; /* data may be lost */
};

static int bad(struct loader *l, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static int bad(struct loader *l, int err, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(l->why, l->cap, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < l->cap)
		say(l->why + n, l->cap - (size_t)n, ": %s (%d)", pf_strerror(err), err);
	return err;
}

static int load_content(struct loader *l, struct model_inode *i)
{
	if (i->size_bytes > 4 * MODEL_MAX_FILE_BYTES)
		return bad(l, -EFBIG, "inode %ju has the impossible size %ju", (uintmax_t)i->ino,
			   (uintmax_t)i->size_bytes);
	i->nr_pages = (size_t)((i->size_bytes + MODEL_BLOCK - 1) / MODEL_BLOCK);
	i->pages = calloc(i->nr_pages + 1, sizeof(*i->pages));
	i->blocks = malloc(i->nr_pages + 1);
	memset(i->blocks, MODEL_MAYBE, i->nr_pages + 1);
	for (uint64_t off = 0; off < i->size_bytes; off += CHUNK_BYTES) {
		uint64_t want = i->size_bytes - off < CHUNK_BYTES ? i->size_bytes - off : CHUNK_BYTES;
		int64_t n = pf_read(l->pool, i->ino, off, l->buf, want);
		if (l->damaged && n < 0 && pf_errno((int)n) == EIO) {
			i->unreadable = true;
			continue;
		}
		if (n != (int64_t)want)
			return bad(l, n < 0 ? (int)n : -EIO, "reading %ju bytes at %ju of inode %ju gives %jd",
				   (uintmax_t)want, (uintmax_t)off, (uintmax_t)i->ino, (intmax_t)n);
		memset(l->buf + want, 0, MODEL_BLOCK);
		for (uint64_t at = 0; at < want; at += MODEL_BLOCK) {
			const uint8_t *p = l->buf + at;
			if (!p[0] && !memcmp(p, p + 1, MODEL_BLOCK - 1))
				continue;
			struct model_page *page = calloc(1, sizeof(*page));
			page->refs = 1;
			memcpy(page->bytes, p, MODEL_BLOCK);
			i->pages[(off + at) / MODEL_BLOCK] = page;
			i->blocks[(off + at) / MODEL_BLOCK] = MODEL_DATA;
		}
	}
	return 0;
}

static int load_xattrs(struct loader *l, struct model_inode *i, bool has_xattr)
{
	int64_t len = pf_listxattr(l->pool, i->ino, NULL, 0);
	if (len < 0)
		return bad(l, (int)len, "listxattr of inode %ju", (uintmax_t)i->ino);
	if (len > 0 && !has_xattr)
		return bad(l, -EIO, "inode %ju: has_xattr is %d with %jd bytes of names", (uintmax_t)i->ino, has_xattr,
			   (intmax_t)len);
	char *names = calloc(1, (size_t)len + 1);
	int err = 0;
	if (len && pf_listxattr(l->pool, i->ino, names, (size_t)len) != len)
		err = bad(l, -EIO, "second listxattr of inode %ju", (uintmax_t)i->ino);
	for (char *name = names; !err && name < names + len; name += strlen(name) + 1) {
		int64_t n = pf_getxattr(l->pool, i->ino, name, NULL, 0);
		struct model_value *v = calloc(1, sizeof(*v) + (n > 0 ? (size_t)n : 0));
		v->refs = 1;
		v->len = n > 0 ? (size_t)n : 0;
		i->xattrs = realloc(i->xattrs, (i->nr_xattrs + 1) * sizeof(*i->xattrs));
		i->xattrs[i->nr_xattrs++] = (struct model_xattr){ strdup(name), v };
		if (n > 0)
			n = pf_getxattr(l->pool, i->ino, name, v->bytes, (size_t)n);
		if (n != (int64_t)v->len)
			err = bad(l, n < 0 ? (int)n : -EIO, "xattr '%s' of inode %ju", name, (uintmax_t)i->ino);
	}
	free(names);
	return err;
}

static int load_inode(struct loader *l, const struct pf_attr *attr, uint64_t parent)
{
	struct model_inode *i = model_add(l->m, attr->ino, attr->mode);
	i->nlink = attr->nlink;
	i->uid = attr->uid;
	i->gid = attr->gid;
	i->rdev_major = attr->rdev_major;
	i->rdev_minor = attr->rdev_minor;
	i->atime = attr->atime;
	i->mtime = attr->mtime;
	i->ctime = attr->ctime;
	i->btime = attr->btime;
	int err = load_xattrs(l, i, attr->has_xattr);
	if (err)
		return err;
	if (model_is_dir(i)) {
		i->parent = parent;
		if (l->nr_todo == l->cap_todo) {
			l->cap_todo = l->cap_todo ? 2 * l->cap_todo : 64;
			l->todo = realloc(l->todo, l->cap_todo * sizeof(*l->todo));
		}
		l->todo[l->nr_todo++] = i->ino;
	} else if (model_is_symlink(i)) {
		char target[4096];
		int n = pf_readlink(l->pool, i->ino, target, sizeof(target));
		if (n < 0)
			return bad(l, n, "readlink of inode %ju", (uintmax_t)i->ino);
		if ((uint64_t)n != attr->size_bytes)
			return bad(l, -EIO, "symlink %ju has %d bytes, its size is %ju", (uintmax_t)i->ino, n,
				   (uintmax_t)attr->size_bytes);
		i->target = strdup(target);
		i->size_bytes = (uint64_t)n;
	} else if (model_is_file(i)) {
		i->size_bytes = attr->size_bytes;
		return load_content(l, i);
	}
	return 0;
}

struct listing {
	struct model_entry *entries;
	unsigned *types;
	size_t nr, cap;
	uint64_t cookie, dots[2];
	unsigned nr_dots;
	bool disorder;
};

static bool collect(void *arg, const struct pf_dirent *d)
{
	struct listing *l = arg;
	if (d->cookie <= l->cookie)
		l->disorder = true;
	l->cookie = d->cookie;
	if ((d->len == 1 && d->name[0] == '.') || (d->len == 2 && !memcmp(d->name, "..", 2))) {
		if (l->nr_dots < 2)
			l->dots[d->len - 1] = d->ino;
		l->nr_dots++;
		return true;
	}
	if (l->nr == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 32;
		l->entries = realloc(l->entries, l->cap * sizeof(*l->entries));
		l->types = realloc(l->types, l->cap * sizeof(*l->types));
	}
	l->types[l->nr] = d->dtype;
	l->entries[l->nr++] = (struct model_entry){ strndup(d->name, d->len), d->ino };
	return true;
}

static int load_entry(struct loader *l, uint64_t dir, const struct model_entry *e, unsigned dtype)
{
	struct pf_attr attr;
	int err = pf_lookup(l->pool, dir, e->name, strlen(e->name), &attr);
	if (err)
		return bad(l, err, "lookup of '%s', listed in directory %ju", e->name, (uintmax_t)dir);
	if (attr.ino != e->ino || IFTODT(attr.mode) != dtype)
		err = bad(l, -EIO, "'%s' in directory %ju: readdir says inode %ju type %u, lookup says %ju mode %o",
			  e->name, (uintmax_t)dir, (uintmax_t)e->ino, dtype, (uintmax_t)attr.ino, attr.mode);
	else if (!model_get(l->m, attr.ino))
		err = load_inode(l, &attr, dir);
	else if (S_ISDIR(attr.mode))
		err = bad(l, -EIO, "directory %ju has two names, one of them '%s' in directory %ju",
			  (uintmax_t)attr.ino, e->name, (uintmax_t)dir);
	pf_forget(l->pool, attr.ino, 1);
	return err;
}

static int load_dir(struct loader *l, uint64_t ino)
{
	struct listing list = { 0 };
	struct model_inode *dir = model_edit(l->m, ino);
	int err = pf_readdir(l->pool, ino, 0, collect, &list);
	if (err < 0)
		bad(l, err, "readdir of directory %ju", (uintmax_t)ino);
	else if (list.disorder)
		err = bad(l, -EIO, "readdir of directory %ju: cookies do not grow", (uintmax_t)ino);
	else if (list.nr_dots != 2 || list.dots[0] != ino || list.dots[1] != dir->parent)
		err = bad(l, -EIO, "directory %ju: %u dot entries, lead to %ju and %ju, parent is %ju", (uintmax_t)ino,
			  list.nr_dots, (uintmax_t)list.dots[0], (uintmax_t)list.dots[1], (uintmax_t)dir->parent);
	dir->entries = list.entries;
	dir->nr_entries = list.nr;
	dir->cap_entries = list.cap;
	for (size_t e = 0; !err && e < list.nr; e++)
		err = load_entry(l, ino, &list.entries[e], list.types[e]);
	free(list.types);
	return err;
}

static int load(struct pf_pool *pool, uint64_t top, struct model *out, bool damaged, char *why, size_t cap)
{
	struct loader l = { .pool = pool, .m = out, .why = why, .cap = cap, .damaged = damaged };
	struct pf_attr attr;
	int err = pf_getattr(pool, top, &attr);
	if (err)
		return bad(&l, err, "getattr of the first directory");
	l.buf = aligned_alloc(MODEL_BLOCK, CHUNK_BYTES + 2 * MODEL_BLOCK);
	err = load_inode(&l, &attr, PF_ROOT_INO);
	while (!err && l.nr_todo)
		err = load_dir(&l, l.todo[--l.nr_todo]);
	free(l.buf);
	free(l.todo);
	return err;
}

int model_load(struct pf_pool *pool, struct model *out, char *why, size_t cap)
{
	return load(pool, PF_ROOT_INO, out, false, why, cap);
}

int model_load_below(struct pf_pool *pool, uint64_t top, struct model *out, char *why, size_t cap)
{
	return load(pool, top, out, false, why, cap);
}

int model_load_damaged(struct pf_pool *pool, struct model *out, char *why, size_t cap)
{
	return load(pool, PF_ROOT_INO, out, true, why, cap);
}
