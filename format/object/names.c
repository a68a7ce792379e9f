/* SPDX-License-Identifier: MIT */
#include "object/names.h"

#include "base/csum.h"

#include <string.h>

int pf_name_check(const char *name, size_t len)
{
	if (len > PF_MAX_NAME_BYTES)
		return -ENAMETOOLONG;
	if (!len || memchr(name, 0, len) || memchr(name, '/', len) || (len == 1 && name[0] == '.') ||
	    (len == 2 && name[0] == '.' && name[1] == '.'))
		return -EINVAL;
	return 0;
}

static struct pf_key hash_key(uint64_t dir, uint64_t offset)
{
	return pf_key_make(PF_CLASS_DIR, dir, PF_TYPE_HASH, offset);
}

static struct pf_key name_key(uint64_t dir, uint64_t cookie)
{
	return pf_key_make(PF_CLASS_DIR, dir, PF_TYPE_NAME, cookie);
}

/* Does the hash item's entry bear the name? */
static int matches(struct pf_view *v, uint64_t dir, const struct pf_hash_item *hash, const char *name, size_t len, bool *yes)
{
	struct pf_item item;
	struct pf_name_item entry;
	int err = pf_view_get(v, name_key(dir, hash->cookie), &item);
	if (err)
		return err == -ENOENT ? -PF_EITEM_MISSING : err;
	err = pf_name_item_unpack(item.data, item.len, &entry);
	*yes = !err && entry.name_len == len && !memcmp(entry.name, name, len);
	return err;
}

static int probe(struct pf_view *v, uint64_t dir, uint64_t hash, const char *name, size_t len, struct pf_slot *slot)
{
	bool have_free = false;
	*slot = (struct pf_slot){ 0 };
	for (unsigned i = 0; i < PF_HASH_PROBES; i++) {
		uint64_t offset = (hash + i) & PF_KEY_FIELD_MAX;
		struct pf_item item;
		struct pf_hash_item found;
		bool yes = false;
		int err = pf_view_get(v, hash_key(dir, offset), &item);
		if (err == -ENOENT) {
			if (!have_free)
				slot->hash_offset = offset;
			have_free = true;
			/* mostly nothing at all lies in the range: one look tells */
			err = pf_view_next(v, hash_key(dir, offset), &item);
			bool none = err == -ENOENT || (!err && (item.key.hi != hash_key(dir, 0).hi ||
								pf_key_type(item.key) != PF_TYPE_HASH ||
								pf_key_offset(item.key) - offset >= PF_HASH_PROBES - i));
			if (none && hash + PF_HASH_PROBES <= PF_KEY_FIELD_MAX)
				return 0;
			if (err && err != -ENOENT)
				return err;
			continue;
		}
		if (!err)
			err = pf_hash_item_unpack(item.data, item.len, &found);
		if (!err)
			err = matches(v, dir, &found, name, len, &yes);
		if (err)
			return err;
		if (yes) {
			*slot = (struct pf_slot){ true, false, offset, found.cookie, found.ino, found.dtype };
			return 0;
		}
	}
	slot->full = !have_free;
	return 0;
}

int pf_slot_find(struct pf_pool *pool, uint64_t dir, const char *name, size_t len, struct pf_slot *slot)
{
	uint64_t hash = pf_hash64(pool->hash_seed, name, len) >> 8;
	struct pf_view v;
	int err;
	PF_VIEW(v, pool->tree, err)
		err = probe(&v, dir, hash, name, len, slot);
	return err;
}

void pf_slot_want(struct pf_txn *txn, uint64_t dir, const struct pf_slot *slot)
{
	pf_txn_want(txn, hash_key(dir, slot->hash_offset), hash_key(dir, slot->hash_offset),
		    PF_TXN_ITEM(sizeof(struct pf_disk_hash)));
	pf_txn_want(txn, name_key(dir, slot->cookie), name_key(dir, slot->cookie),
		    PF_TXN_ITEM(sizeof(struct pf_disk_name) + PF_MAX_NAME_BYTES));
}

void pf_slot_put(struct pf_txn *txn, uint64_t dir, const struct pf_slot *slot, uint64_t ino, unsigned dtype,
		 const char *name, size_t len)
{
	uint8_t buf[sizeof(struct pf_disk_name) + PF_MAX_NAME_BYTES];
	struct pf_hash_item hash = { ino, slot->cookie, dtype };
	struct pf_name_item entry = { ino, slot->hash_offset, dtype, name, (unsigned)len };
	struct pf_disk_hash disk;
	pf_hash_item_pack(&hash, &disk);
	pf_txn_put(txn, hash_key(dir, slot->hash_offset), &disk, sizeof(disk));
	pf_txn_put(txn, name_key(dir, slot->cookie), buf, pf_name_item_pack(&entry, buf));
}

void pf_slot_del(struct pf_txn *txn, uint64_t dir, const struct pf_slot *slot)
{
	pf_txn_del(txn, hash_key(dir, slot->hash_offset));
	pf_txn_del(txn, name_key(dir, slot->cookie));
}
