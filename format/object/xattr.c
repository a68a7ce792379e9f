/* SPDX-License-Identifier: MIT
 * Extended attributes: one item with name and head of the value, further items for the rest of a long one (FORMAT 6). */
#include "object/xattr.h"

#include "base/csum.h"
#include "object/data.h"
#include "object/intent.h"

#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define HASH_MASK ((UINT64_C(1) << 48) - 1)
#define CAPABILITY "security.capability"

static struct pf_key xattr_key(uint64_t ino, uint64_t hash, unsigned chunk)
{
	return pf_key_make(PF_CLASS_INODE, ino, PF_TYPE_XATTR, (hash & HASH_MASK) << 8 | chunk);
}

static unsigned nr_chunks(uint32_t value_len)
{
	return value_len ? (value_len + PF_XATTR_CHUNK_BYTES - 1) / PF_XATTR_CHUNK_BYTES : 1;
}

struct found {
	bool found, full; /* full: not found, and no hash is free */
	uint64_t hash;    /* not found: a free one */
	uint32_t value_len;
};

static int probe(struct pf_view *v, uint64_t ino, uint64_t hash, const char *name, size_t len, struct found *f)
{
	bool have_free = false;
	*f = (struct found){ 0 };
	for (unsigned i = 0; i < PF_HASH_PROBES; i++) {
		uint64_t at = (hash + i) & HASH_MASK;
		struct pf_item item;
		struct pf_xattr_item x;
		int err = pf_view_get(v, xattr_key(ino, at, 0), &item);
		if (err == -ENOENT) {
			if (!have_free)
				f->hash = at;
			have_free = true;
			continue;
		}
		if (!err)
			err = pf_xattr_item_unpack(item.data, item.len, &x);
		if (err)
			return err;
		if (x.name_len == len && !memcmp(x.name, name, len)) {
			*f = (struct found){ true, false, at, x.value_len };
			return 0;
		}
	}
	f->full = !have_free;
	return 0;
}

static int find(struct pf_pool *pool, uint64_t ino, const char *name, struct found *f)
{
	size_t len = strlen(name);
	uint64_t hash = pf_hash64(pool->hash_seed, name, len) >> 16;
	struct pf_view v;
	int err;
	if (!len || len > PF_MAX_NAME_BYTES)
		return -ERANGE;
	PF_VIEW(v, pool->tree, err)
		err = probe(&v, ino, hash, name, len, f);
	return err;
}

/* The value in one consistent view. */
static int read_value(struct pf_pool *pool, uint64_t ino, const struct found *f, uint8_t *buf)
{
	struct pf_view v;
	int err;
	PF_VIEW(v, pool->tree, err) {
		uint32_t pos = 0;
		for (unsigned chunk = 0; !err && chunk < nr_chunks(f->value_len); chunk++) {
			struct pf_item item;
			struct pf_xattr_item x;
			err = pf_view_get(&v, xattr_key(ino, f->hash, chunk), &item);
			if (err == -ENOENT)
				err = -PF_EITEM_MISSING;
			if (err)
				break;
			const uint8_t *part = item.data;
			unsigned len = item.len;
			if (!chunk) {
				err = pf_xattr_item_unpack(item.data, item.len, &x);
				part = x.part;
				len = err ? 0 : x.part_len;
			}
			if (!err && len > f->value_len - pos)
				err = -PF_EITEM_INVALID;
			if (!err)
				memcpy(buf + pos, part, len);
			pos += len;
		}
		if (!err && pos != f->value_len)
			err = -PF_EITEM_INVALID;
	}
	return err;
}

static void want_value(struct pf_txn *txn, uint64_t ino, const struct found *f, size_t name_len, uint32_t new_len)
{
	unsigned last = nr_chunks(f->value_len > new_len ? f->value_len : new_len) - 1;
	unsigned bytes = PF_TXN_ITEM(sizeof(struct pf_disk_xattr) + name_len) + nr_chunks(new_len) * PF_TXN_ITEM(0) + new_len;
	pf_txn_want(txn, xattr_key(ino, f->hash, 0), xattr_key(ino, f->hash, last), bytes);
	pf_inode_want(txn, ino);
}

static void put_value(struct pf_txn *txn, uint64_t ino, const struct found *f, const char *name, const uint8_t *value,
		      uint32_t len)
{
	uint8_t buf[PF_MAX_ITEM_BYTES];
	uint32_t head = len < PF_XATTR_CHUNK_BYTES ? len : PF_XATTR_CHUNK_BYTES;
	struct pf_xattr_item x = { len, name, (unsigned)strlen(name), value, head };
	pf_txn_put(txn, xattr_key(ino, f->hash, 0), buf, pf_xattr_item_pack(&x, buf));
	for (unsigned chunk = 1; chunk < nr_chunks(len); chunk++) {
		uint32_t pos = chunk * PF_XATTR_CHUNK_BYTES, left = len - pos;
		pf_txn_put(txn, xattr_key(ino, f->hash, chunk), value + pos,
			   left < PF_XATTR_CHUNK_BYTES ? left : PF_XATTR_CHUNK_BYTES);
	}
	for (unsigned chunk = nr_chunks(len); f->found && chunk < nr_chunks(f->value_len); chunk++)
		pf_txn_del(txn, xattr_key(ino, f->hash, chunk));
}

static void know_capability(struct pf_inode *inode, const char *name, enum pf_known known)
{
	if (!strcmp(name, CAPABILITY))
		inode->capability = known;
}

static int set_locked(struct pf_pool *pool, struct pf_inode *inode, const char *name, const void *value, uint32_t len,
		      int flags)
{
	struct found f;
	int err = find(pool, inode->ino, name, &f);
	if (!err && f.found && flags & XATTR_CREATE)
		err = -EEXIST;
	if (!err && !f.found && flags & XATTR_REPLACE)
		err = -ENODATA;
	if (!err && f.full)
		err = -ENOSPC;
	if (err)
		return err;
	struct pf_txn txn;
	pf_txn_init(&txn, pool->tree);
	want_value(&txn, inode->ino, &f, strlen(name), len);
	err = pf_txn_lock(&txn);
	if (!err) {
		put_value(&txn, inode->ino, &f, name, value, len);
		inode->item.flags |= PF_INODE_HAS_XATTR;
		inode->item.ctime = pf_inode_now(pool);
		pf_inode_store(&txn, inode);
		pf_intent_xattr(pool, inode->ino, name, value ? value : "", len, inode->item.ctime);
		know_capability(inode, name, PF_PRESENT);
	}
	pf_txn_end(&txn);
	return err;
}

static int remove_locked(struct pf_pool *pool, struct pf_inode *inode, const char *name, struct timespec ctime)
{
	struct found f;
	int err = find(pool, inode->ino, name, &f);
	if (!err && !f.found)
		err = -ENODATA;
	if (err)
		return err;
	struct pf_txn txn;
	pf_txn_init(&txn, pool->tree);
	want_value(&txn, inode->ino, &f, strlen(name), 0);
	err = pf_txn_lock(&txn);
	if (!err) {
		for (unsigned chunk = 0; chunk < nr_chunks(f.value_len); chunk++)
			pf_txn_del(&txn, xattr_key(inode->ino, f.hash, chunk));
		inode->item.ctime = ctime;
		pf_inode_store(&txn, inode);
		pf_intent_xattr(pool, inode->ino, name, NULL, 0, ctime);
		know_capability(inode, name, PF_ABSENT);
	}
	pf_txn_end(&txn);
	return err;
}

int pf_xattr_drop_capability(struct pf_pool *pool, struct pf_inode *inode)
{
	struct found f;
	if (inode->capability == PF_ABSENT)
		return 0;
	int err = find(pool, inode->ino, CAPABILITY, &f);
	if (!err && f.found)
		err = remove_locked(pool, inode, CAPABILITY, inode->item.ctime);
	if (!err)
		inode->capability = PF_ABSENT;
	return err;
}

int pf_setxattr(struct pf_pool *pool, uint64_t ino, const char *name, const void *value, size_t len, int flags)
{
	struct pf_inode *inode;
	if (len > PF_MAX_XATTR_BYTES)
		return -E2BIG;
	if (flags & ~(XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	int err = pf_op_begin(pool, PF_GROWS);
	if (!err)
		err = pf_inode_get(pool, ino, &inode);
	if (err)
		return err;
	pf_inode_lock(pool, inode);
	err = set_locked(pool, inode, name, value, (uint32_t)len, flags);
	pthread_rwlock_unlock(&inode->lock);
	pf_inode_put(pool, inode);
	return err;
}

int pf_removexattr(struct pf_pool *pool, uint64_t ino, const char *name)
{
	struct pf_inode *inode;
	int err = pf_op_begin(pool, PF_SHRINKS);
	if (!err)
		err = pf_inode_get(pool, ino, &inode);
	if (err)
		return err;
	pf_inode_lock(pool, inode);
	err = remove_locked(pool, inode, name, pf_inode_now(pool));
	pthread_rwlock_unlock(&inode->lock);
	pf_inode_put(pool, inode);
	return err;
}

static int64_t get_locked(struct pf_pool *pool, struct pf_inode *inode, const char *name, void *buf, size_t cap)
{
	struct found f = { 0 };
	int err = inode->item.flags & PF_INODE_HAS_XATTR ? find(pool, inode->ino, name, &f) : 0;
	if (!err && !f.found)
		err = -ENODATA;
	if (err || !cap)
		return err ? err : (int64_t)f.value_len;
	if (f.value_len > cap)
		return -ERANGE;
	err = read_value(pool, inode->ino, &f, buf);
	return err ? err : (int64_t)f.value_len;
}

int64_t pf_getxattr(struct pf_pool *pool, uint64_t ino, const char *name, void *buf, size_t cap)
{
	struct pf_inode *inode;
	int err = pf_inode_get(pool, ino, &inode);
	if (err)
		return err;
	pthread_rwlock_rdlock(&inode->lock);
	int64_t len = get_locked(pool, inode, name, buf, cap);
	pthread_rwlock_unlock(&inode->lock);
	pf_inode_put(pool, inode);
	return len;
}

static int64_t list_locked(struct pf_pool *pool, struct pf_inode *inode, char *buf, size_t cap)
{
	struct pf_view v;
	int err;
	size_t len = 0;
	PF_VIEW(v, pool->tree, err) {
		struct pf_key key = xattr_key(inode->ino, 0, 0);
		struct pf_item item;
		len = 0;
		while (!(err = pf_view_next(&v, key, &item)) && item.key.hi == key.hi &&
		       pf_key_type(item.key) == PF_TYPE_XATTR) {
			struct pf_xattr_item x;
			err = pf_xattr_item_unpack(item.data, item.len, &x);
			if (err)
				break;
			if (len + x.name_len + 1 <= cap) {
				memcpy(buf + len, x.name, x.name_len);
				buf[len + x.name_len] = 0;
			}
			len += x.name_len + 1;
			key.lo = (item.key.lo | 0xff) + 1; /* past its further chunks */
		}
		if (err == -ENOENT)
			err = 0;
	}
	if (err)
		return err;
	return cap && len > cap ? -ERANGE : (int64_t)len;
}

int64_t pf_listxattr(struct pf_pool *pool, uint64_t ino, char *buf, size_t cap)
{
	struct pf_inode *inode;
	int err = pf_inode_get(pool, ino, &inode);
	if (err)
		return err;
	pthread_rwlock_rdlock(&inode->lock);
	int64_t len = inode->item.flags & PF_INODE_HAS_XATTR ? list_locked(pool, inode, buf, cap) : 0;
	pthread_rwlock_unlock(&inode->lock);
	pf_inode_put(pool, inode);
	return len;
}
