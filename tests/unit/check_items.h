/* SPDX-License-Identifier: MIT
 *
 * Purpose: items of a pool on disk, as a test of check/ likes to change them.
 * Invariants: I1 What is not there fails the test.
 * Uses: unit/check_util.h, images/poke.h.
 */
#ifndef CHECK_ITEMS_H
#define CHECK_ITEMS_H

#include "images/poke.h"
#include "ondisk/item.h"
#include "unit/check_util.h"

static inline struct pf_inode_item inode_get(struct poke *p, uint64_t ino)
{
	struct pf_disk_inode disk;
	struct pf_inode_item item;
	ck_assert_int_eq(poke_get(p, pf_key_inode(ino), &disk, sizeof(disk)), sizeof(disk));
	ck_ok(pf_inode_item_unpack(&disk, sizeof(disk), &item));
	return item;
}

static inline void inode_put(struct poke *p, uint64_t ino, const struct pf_inode_item *item)
{
	struct pf_disk_inode disk;
	pf_inode_item_pack(item, &disk);
	poke_put(p, pf_key_inode(ino), &disk, sizeof(disk));
}

/* The name item of @ino in @dir: its key, item and bytes. */
struct name_found {
	struct pf_key key, hash_key;
	struct pf_name_item item;
	uint8_t bytes[512];
};
static inline struct name_found *name_get(struct poke *p, uint64_t dir, uint64_t ino)
{
	static struct name_found found[4];
	static unsigned next;
	struct name_found *f = &found[next++ % 4];
	f->key = pf_key_make(PF_CLASS_DIR, dir, PF_TYPE_NAME, 0);
	while (poke_next(p, PF_CLASS_DIR, &f->key) && pf_key_object(f->key) == dir) {
		int len = poke_get(p, f->key, f->bytes, sizeof(f->bytes));
		ck_ok(pf_name_item_unpack(f->bytes, (unsigned)len, &f->item));
		if (f->item.ino == ino) {
			f->hash_key = pf_key_make(PF_CLASS_DIR, dir, PF_TYPE_HASH, f->item.hash_offset);
			return f;
		}
		f->key.lo++;
	}
	ck_abort_msg("inode %ju has no name in %ju", (uintmax_t)ino, (uintmax_t)dir);
}

static inline void name_put(struct poke *p, struct pf_key key, const struct pf_name_item *item)
{
	uint8_t buf[512];
	poke_put(p, key, buf, pf_name_item_pack(item, buf));
}

static inline void hash_put(struct poke *p, struct pf_key key, uint64_t ino, uint64_t cookie, unsigned dtype)
{
	struct pf_hash_item item = { ino, cookie, dtype };
	struct pf_disk_hash disk;
	pf_hash_item_pack(&item, &disk);
	poke_put(p, key, &disk, sizeof(disk));
}

/* The extent of @data_id that begins at @block. */
static inline unsigned extent_get(struct poke *p, uint64_t data_id, uint64_t block, uint8_t *bytes,
				  struct pf_extent *extent)
{
	int len = poke_get(p, pf_key_extent(data_id, block), bytes, PF_MAX_ITEM_BYTES);
	ck_assert_int_gt(len, 0);
	ck_ok(pf_extent_unpack(pf_key_extent(data_id, block), bytes, (unsigned)len, extent));
	return (unsigned)len;
}

static inline void extent_put(struct poke *p, uint64_t data_id, uint64_t block, const struct pf_extent *extent)
{
	uint8_t buf[PF_EXTENT_ITEM_MAX];
	poke_put(p, pf_key_extent(data_id, block), buf, pf_extent_pack(extent, buf));
}

#endif
