/* SPDX-License-Identifier: MIT
 * Repairs of directory entries. The name item is what is believed; its hash item is made to fit. Counts follow in the same
 * transaction, so that a repair does not look like another problem afterwards. */
#include "base/csum.h"
#include "block/engine.h"
#include "check/repair.h"
#include "object/posix.h"
#include "ondisk/item.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LOST_FOUND "lost+found"

struct entry { /* a name item, copied out of the tree */
	struct pf_key key;
	struct pf_name_item item;
	uint64_t base; /* hash of the name */
	uint8_t bytes[PF_MAX_ITEM_BYTES];
};

static struct pf_key hash_key(uint64_t dir, uint64_t offset)
{
	return pf_key_make(PF_CLASS_DIR, dir, PF_TYPE_HASH, offset & PF_KEY_FIELD_MAX);
}

static int read_entry(struct pf_pool *pool, uint64_t dir, uint64_t cookie, struct entry *e)
{
	e->key = pf_key_make(PF_CLASS_DIR, dir, PF_TYPE_NAME, cookie);
	int len = pf_tree_get(pool->tree, e->key, e->bytes, sizeof(e->bytes));
	int err = len < 0 ? len : pf_name_item_unpack(e->bytes, (unsigned)len, &e->item);
	if (!err)
		e->base = pf_hash64(pool->hash_seed, e->item.name, e->item.name_len) >> 8;
	return err;
}

static bool has_cookie(struct pf_txn *txn, struct pf_key key, uint64_t cookie)
{
	struct pf_item found;
	struct pf_hash_item hash;
	return pf_txn_get(txn, key, &found) && !pf_hash_item_unpack(found.data, found.len, &hash) &&
	       hash.cookie == cookie;
}

static void put_entry(struct pf_txn *txn, const struct entry *e, uint64_t dir)
{
	uint8_t name[sizeof(struct pf_disk_name) + PF_MAX_NAME_BYTES];
	struct pf_hash_item hash = { .ino = e->item.ino, .cookie = pf_key_offset(e->key), .dtype = e->item.dtype };
	struct pf_disk_hash disk;
	pf_hash_item_pack(&hash, &disk);
	pf_txn_put(txn, hash_key(dir, e->item.hash_offset), &disk, sizeof(disk));
	unsigned len = pf_name_item_pack(&e->item, name);
	pf_txn_put(txn, e->key, name, len);
}

static void want_entry(struct pf_txn *txn, const struct entry *e, uint64_t dir)
{
	unsigned name_bytes = PF_TXN_ITEM(sizeof(struct pf_disk_name) + e->item.name_len);
	pf_txn_want(txn, e->key, e->key, name_bytes);
	pf_txn_want(txn, hash_key(dir, e->item.hash_offset), hash_key(dir, e->item.hash_offset),
		    PF_TXN_ITEM(sizeof(struct pf_disk_hash)));
}

static void want_probes(struct pf_txn *txn, uint64_t dir, uint64_t base)
{
	for (unsigned i = 0; i < PF_HASH_PROBES; i++)
		pf_txn_want(txn, hash_key(dir, base + i), hash_key(dir, base + i),
			    PF_TXN_ITEM(sizeof(struct pf_disk_hash)));
}

/* The first free place for a hash item of the name. False: there is none. */
static bool find_place(struct pf_txn *txn, struct entry *e, uint64_t dir)
{
	for (unsigned i = 0; i < PF_HASH_PROBES; i++) {
		struct pf_item taken;
		if (pf_txn_get(txn, hash_key(dir, e->base + i), &taken))
			continue;
		e->item.hash_offset = (e->base + i) & PF_KEY_FIELD_MAX;
		return true;
	}
	return false;
}

static void want_inode(struct pf_txn *txn, uint64_t ino)
{
	pf_txn_want(txn, pf_key_inode(ino), pf_key_inode(ino), PF_TXN_ITEM(sizeof(struct pf_disk_inode)));
}

/* The directory has gained or lost an entry. */
static void count_entry(struct pf_txn *txn, uint64_t dir, int change, bool is_dir)
{
	struct pf_item found;
	struct pf_inode_item inode;
	struct pf_disk_inode disk;
	if (!pf_txn_get(txn, pf_key_inode(dir), &found) || pf_inode_item_unpack(found.data, found.len, &inode))
		return;
	if (change > 0 || inode.size)
		inode.size += (uint64_t)(int64_t)change;
	if (is_dir && (change > 0 || inode.nlink > 2))
		inode.nlink += (uint32_t)change;
	pf_inode_item_pack(&inode, &disk);
	pf_txn_put(txn, pf_key_inode(dir), &disk, sizeof(disk));
}

int pf_repair_add_hash(struct pf_pool *pool, uint64_t dir, uint64_t cookie)
{
	struct entry e;
	int err = read_entry(pool, dir, cookie, &e);
	if (err)
		return err;
	struct pf_txn txn;
	pf_txn_init(&txn, pool->tree);
	want_entry(&txn, &e, dir);
	want_probes(&txn, dir, e.base);
	err = pf_txn_lock(&txn);
	if (!err) {
		/* its own entry may lie in the wrong place, or be wrong where it is */
		if (has_cookie(&txn, hash_key(dir, e.item.hash_offset), cookie))
			pf_txn_del(&txn, hash_key(dir, e.item.hash_offset));
		if (find_place(&txn, &e, dir))
			put_entry(&txn, &e, dir);
		else
			err = -EEXIST;
	}
	pf_txn_end(&txn);
	return err;
}

int pf_repair_name_type(struct pf_pool *pool, uint64_t dir, uint64_t cookie, unsigned dtype)
{
	struct entry e;
	int err = read_entry(pool, dir, cookie, &e);
	if (err)
		return err;
	struct pf_txn txn;
	pf_txn_init(&txn, pool->tree);
	want_entry(&txn, &e, dir);
	err = pf_txn_lock(&txn);
	e.item.dtype = dtype;
	if (!err && has_cookie(&txn, hash_key(dir, e.item.hash_offset), cookie))
		put_entry(&txn, &e, dir);
	pf_txn_end(&txn);
	return err;
}

int pf_repair_delete_name(struct pf_pool *pool, uint64_t dir, uint64_t cookie)
{
	struct entry e;
	int err = read_entry(pool, dir, cookie, &e);
	if (err)
		return err;
	struct pf_txn txn;
	pf_txn_init(&txn, pool->tree);
	want_entry(&txn, &e, dir);
	want_inode(&txn, dir);
	err = pf_txn_lock(&txn);
	if (!err) {
		if (has_cookie(&txn, hash_key(dir, e.item.hash_offset), cookie))
			pf_txn_del(&txn, hash_key(dir, e.item.hash_offset));
		pf_txn_del(&txn, e.key);
		count_entry(&txn, dir, -1, e.item.dtype == S_IFDIR >> 12);
	}
	pf_txn_end(&txn);
	return err;
}

int pf_repair_delete_bad_name(struct pf_pool *pool, struct pf_key key)
{
	struct pf_txn txn;
	pf_txn_init(&txn, pool->tree);
	pf_txn_want(&txn, key, key, 0);
	want_inode(&txn, pf_key_object(key));
	int err = pf_txn_lock(&txn);
	if (!err) {
		pf_txn_del(&txn, key);
		count_entry(&txn, pf_key_object(key), -1, false);
	}
	pf_txn_end(&txn);
	return err;
}

/* -- lost+found ---------------------------------------------------------------------------------------------------- */
static int read_inode(struct pf_pool *pool, uint64_t ino, struct pf_inode_item *item)
{
	struct pf_disk_inode disk;
	int len = pf_tree_get(pool->tree, pf_key_inode(ino), &disk, sizeof(disk));
	return len < 0 ? len : pf_inode_item_unpack(&disk, (unsigned)len, item);
}

static int lost_found(struct pf_pool *pool, uint64_t *ino)
{
	struct pf_attr attr;
	struct pf_cred root = { 0, 0 };
	int err = pf_lookup(pool, PF_ROOT_INO, LOST_FOUND, strlen(LOST_FOUND), &attr);
	if (err == -ENOENT)
		err = pf_create(pool, PF_ROOT_INO, LOST_FOUND, strlen(LOST_FOUND), S_IFDIR | 0700, root, 0, 0, &attr);
	if (err)
		return err;
	pf_forget(pool, attr.ino, 1);
	*ino = attr.ino;
	return S_ISDIR(attr.mode) ? 0 : -ENOTDIR;
}

/* Puts the name @e into @dir, and the inode under it. */
static int add_name(struct pf_pool *pool, uint64_t dir, struct entry *e, struct pf_inode_item *inode)
{
	struct pf_inode_item parent;
	struct pf_disk_inode disk;
	int err = read_inode(pool, dir, &parent);
	if (err)
		return err;
	uint64_t cookie = parent.next_cookie++;
	bool is_dir = S_ISDIR(inode->mode);
	e->key = pf_key_make(PF_CLASS_DIR, dir, PF_TYPE_NAME, cookie);
	struct pf_txn txn;
	pf_txn_init(&txn, pool->tree);
	pf_txn_want(&txn, e->key, e->key, PF_TXN_ITEM(sizeof(struct pf_disk_name) + e->item.name_len));
	want_probes(&txn, dir, e->base);
	want_inode(&txn, dir);
	want_inode(&txn, e->item.ino);
	err = pf_txn_lock(&txn);
	if (!err && !find_place(&txn, e, dir))
		err = -EEXIST;
	if (!err) {
		put_entry(&txn, e, dir);
		pf_inode_item_pack(&parent, &disk);
		pf_txn_put(&txn, pf_key_inode(dir), &disk, sizeof(disk));
		count_entry(&txn, dir, 1, is_dir);
		inode->parent = dir;
		if (!is_dir)
			inode->nlink = 1;
		pf_inode_item_pack(inode, &disk);
		pf_txn_put(&txn, pf_key_inode(e->item.ino), &disk, sizeof(disk));
	}
	pf_txn_end(&txn);
	return err;
}

int pf_repair_reconnect(struct pf_pool *pool, uint64_t ino)
{
	struct pf_inode_item inode;
	struct pf_attr attr;
	struct entry e;
	uint64_t dir;
	int err = lost_found(pool, &dir);
	if (!err)
		err = read_inode(pool, ino, &inode);
	if (err)
		return err;
	char *name = (char *)e.bytes;
	int len = snprintf(name, sizeof(e.bytes), "#%llu", (unsigned long long)ino);
	/* somebody may have called something so */
	while (!(err = pf_lookup(pool, dir, name, (size_t)len, &attr)) && len < (int)PF_MAX_NAME_BYTES) {
		pf_forget(pool, attr.ino, 1);
		name[len++] = '~';
	}
	if (err != -ENOENT)
		return err ? err : -EEXIST;
	e.item = (struct pf_name_item){
		.ino = ino,
		.dtype = inode.mode >> 12 & 15,
		.name = name,
		.name_len = (unsigned)len,
	};
	e.base = pf_hash64(pool->hash_seed, name, (size_t)len) >> 8;
	return add_name(pool, dir, &e, &inode);
}
