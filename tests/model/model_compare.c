/* SPDX-License-Identifier: MIT */
#include "model/model.h"
#include "model/testenv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t v[2] = { a, b };
	return XXH3_64bits(v, sizeof(v));
}

static uint64_t hash_time(struct timespec t)
{
	return mix((uint64_t)t.tv_sec, (uint64_t)t.tv_nsec);
}

uint64_t model_hash_inode(struct model_inode *i)
{
	if (i->hash_names)
		return i->hash_names;
	uint64_t h = mix(i->ino, (uint64_t)i->mode << 32 | i->nlink);
	h = mix(h, (uint64_t)i->uid << 32 | i->gid);
	h = mix(h, (uint64_t)i->rdev_major << 32 | i->rdev_minor);
	h = mix(h, hash_time(i->btime));
	h = mix(h, i->parent);
	if (i->target)
		h = mix(h, XXH3_64bits(i->target, strlen(i->target)));
	/* sums: the order of entries and attributes means nothing */
	uint64_t sum = 0;
	for (size_t e = 0; e < i->nr_entries; e++)
		sum += mix(XXH3_64bits(i->entries[e].name, strlen(i->entries[e].name)), i->entries[e].ino);
	h = mix(h, sum);
	sum = 0;
	for (size_t x = 0; x < i->nr_xattrs; x++) {
		const struct model_value *v = i->xattrs[x].value;
		sum += mix(XXH3_64bits(i->xattrs[x].name, strlen(i->xattrs[x].name)), XXH3_64bits(v->bytes, v->len));
	}
	h = mix(h, sum);
	/* times of a file belong to its content */
	if (!model_is_file(i))
		h = mix(h, hash_time(i->mtime) ^ mix(1, hash_time(i->ctime)));
	return i->hash_names = h | 1;
}

uint64_t model_hash_names(struct model *m)
{
	uint64_t sum = 0;
	for (size_t k = 0; k < m->nr; k++) {
		if (m->slots[k].inode->nlink)
			sum += mix(m->slots[k].ino, model_hash_inode(m->slots[k].inode));
	}
	return sum | 1;
}

static const uint8_t zeros[MODEL_BLOCK];

/* 0 for a page of zeros: it is the same as none. */
static uint64_t page_hash(struct model_page *p)
{
	if (!p->hash)
		p->hash = memcmp(p->bytes, zeros, MODEL_BLOCK) ? XXH3_64bits(p->bytes, MODEL_BLOCK) | 2 : 1;
	return p->hash == 1 ? 0 : p->hash;
}

uint64_t model_hash_content(struct model_inode *i)
{
	if (i->hash_content)
		return i->hash_content;
	uint64_t h = mix(i->size_bytes, 0);
	for (size_t b = 0; b < i->nr_pages; b++) {
		uint64_t p = i->pages[b] ? page_hash(i->pages[b]) : 0;
		if (p)
			h = mix(h, mix(b, p));
	}
	return i->hash_content = h | 1;
}

/* Of an inode as text, for messages. */
static void path_of(const struct model *m, uint64_t ino, char *buf, size_t cap)
{
	size_t at = cap - 1;
	buf[at] = 0;
	while (ino != PF_ROOT_INO) {
		const char *name = NULL;
		uint64_t up = 0;
		for (size_t k = 0; k < m->nr && !name; k++) {
			const struct model_inode *d = m->slots[k].inode;
			for (size_t e = 0; e < d->nr_entries && !name; e++) {
				if (d->entries[e].ino == ino) {
					name = d->entries[e].name;
					up = d->ino;
				}
			}
		}
		size_t len = name ? strlen(name) : 0;
		if (!name || len + 1 > at)
			break;
		at -= len;
		memcpy(buf + at, name, len);
		buf[--at] = '/';
		ino = up;
	}
	if (!buf[at])
		buf[--at] = ino == PF_ROOT_INO ? '/' : '?';
	memmove(buf, buf + at, cap - at);
}

static bool differs(char *why, size_t cap, const struct model *m, uint64_t ino, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
static bool differs(char *why, size_t cap, const struct model *m, uint64_t ino, const char *fmt, ...)
{
	char path[600], what[600];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	path_of(m, ino, path, sizeof(path));
	say(why, cap, "%s (inode %ju): %s", path, (uintmax_t)ino, what);
	return true;
}

static bool diff_entries(struct model *m, struct model_inode *a, struct model_inode *b, char *why, size_t cap)
{
	for (size_t e = 0; e < a->nr_entries; e++) {
		const struct model_entry *other = model_find(b, a->entries[e].name);
		if (!other)
			return differs(why, cap, m, a->ino, "entry '%s' is missing", a->entries[e].name);
		if (other->ino != a->entries[e].ino)
			return differs(why, cap, m, a->ino, "entry '%s' leads to inode %ju, not %ju",
				       a->entries[e].name, (uintmax_t)other->ino, (uintmax_t)a->entries[e].ino);
	}
	for (size_t e = 0; e < b->nr_entries; e++) {
		if (!model_find(a, b->entries[e].name))
			return differs(why, cap, m, a->ino, "entry '%s' should not be there", b->entries[e].name);
	}
	return false;
}

static bool diff_xattrs(struct model *m, struct model_inode *a, struct model_inode *b, char *why, size_t cap)
{
	for (size_t x = 0; x < a->nr_xattrs; x++) {
		const struct model_value *v = a->xattrs[x].value, *w = model_getxattr(b, a->xattrs[x].name);
		if (!w)
			return differs(why, cap, m, a->ino, "xattr '%s' is missing", a->xattrs[x].name);
		if (v->len != w->len || memcmp(v->bytes, w->bytes, v->len))
			return differs(why, cap, m, a->ino, "xattr '%s' has another value (%zu bytes, not %zu)",
				       a->xattrs[x].name, w->len, v->len);
	}
	if (a->nr_xattrs != b->nr_xattrs)
		return differs(why, cap, m, a->ino, "%zu xattrs, not %zu", b->nr_xattrs, a->nr_xattrs);
	return false;
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool diff_inode(struct model *m, struct model_inode *a, struct model_inode *b, char *why, size_t cap)
{
	if (a->mode != b->mode)
		return differs(why, cap, m, a->ino, "mode %o, not %o", b->mode, a->mode);
	if (a->nlink != b->nlink)
		return differs(why, cap, m, a->ino, "nlink %u, not %u", b->nlink, a->nlink);
	if (a->uid != b->uid || a->gid != b->gid)
		return differs(why, cap, m, a->ino, "owner %u:%u, not %u:%u", b->uid, b->gid, a->uid, a->gid);
	if (a->rdev_major != b->rdev_major || a->rdev_minor != b->rdev_minor)
		return differs(why, cap, m, a->ino, "device number differs");
	if (!same_time(a->btime, b->btime))
		return differs(why, cap, m, a->ino, "btime differs");
	if (a->parent != b->parent)
		return differs(why, cap, m, a->ino, "parent %ju, not %ju", (uintmax_t)b->parent, (uintmax_t)a->parent);
	if (!a->target != !b->target || (a->target && strcmp(a->target, b->target)))
		return differs(why, cap, m, a->ino, "symlink target differs");
	if (!model_is_file(a) && (!same_time(a->mtime, b->mtime) || !same_time(a->ctime, b->ctime)))
		return differs(why, cap, m, a->ino, "mtime or ctime differs");
	return diff_entries(m, a, b, why, cap) || diff_xattrs(m, a, b, why, cap);
}

bool model_diff_names(struct model *expected, struct model *got, char *why, size_t cap)
{
	for (size_t k = 0; k < expected->nr; k++) {
		struct model_inode *a = expected->slots[k].inode;
		if (!a->nlink)
			continue;
		struct model_slot *other = model_slot(got, a->ino);
		if (other && model_hash_inode(a) == model_hash_inode(other->inode))
			continue;
		if (!other)
			return differs(why, cap, expected, a->ino, "is missing");
		if (diff_inode(expected, a, other->inode, why, cap))
			return true;
	}
	for (size_t k = 0; k < got->nr; k++) {
		const struct model_inode *a = model_get(expected, got->slots[k].ino);
		if (got->slots[k].inode->nlink && (!a || !a->nlink))
			return differs(why, cap, got, got->slots[k].ino, "should not be there");
	}
	return false;
}

bool model_diff_content(struct model_inode *a, struct model_inode *b, char *why, size_t cap)
{
	if (model_hash_content(a) == model_hash_content(b))
		return false;
	if (a->size_bytes != b->size_bytes) {
		say(why, cap, "inode %ju: size %ju, not %ju", (uintmax_t)a->ino, (uintmax_t)b->size_bytes,
		    (uintmax_t)a->size_bytes);
		return true;
	}
	size_t most = a->nr_pages > b->nr_pages ? a->nr_pages : b->nr_pages;
	for (size_t p = 0; p < most; p++) {
		uint8_t x[MODEL_BLOCK], y[MODEL_BLOCK];
		model_read_at(a, (uint64_t)p * MODEL_BLOCK, x, MODEL_BLOCK);
		model_read_at(b, (uint64_t)p * MODEL_BLOCK, y, MODEL_BLOCK);
		for (size_t k = 0; k < MODEL_BLOCK; k++) {
			if (x[k] == y[k])
				continue;
			say(why, cap, "inode %ju (%ju bytes): byte %ju is %02x, not %02x", (uintmax_t)a->ino,
			    (uintmax_t)a->size_bytes, (uintmax_t)(p * MODEL_BLOCK + k), y[k], x[k]);
			return true;
		}
	}
	return false;
}
