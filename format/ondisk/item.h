/* SPDX-License-Identifier: MIT
 *
 * Purpose: the items of the tree in memory, and the codecs between them and their bytes (FORMAT 6).
 *
 * Invariants
 *   I1  An unpack function is the one gate for its item type: it checks length and every field, so other code need not.
 *       All of them return 0 or -PF_EITEM_INVALID.
 *   I2  Pointers in an unpacked item lead into the bytes it was unpacked from.
 *
 * Uses: base, ondisk.
 */
#ifndef PF_ONDISK_ITEM_H
#define PF_ONDISK_ITEM_H

#include "base/error.h"
#include "ondisk/ondisk.h"

#include <stdbool.h>
#include <time.h>

struct pf_inode_item {
	uint32_t mode, uid, gid, nlink;
	uint64_t size, blocks, data_id, parent, next_cookie;
	uint32_t rdev_major, rdev_minor, flags;
	struct timespec atime, mtime, ctime, btime;
};
bool pf_mode_valid(uint32_t mode); /* one of the seven types of inode(7), and no bits beside the permissions */
void pf_inode_item_pack(const struct pf_inode_item *item, struct pf_disk_inode *disk);
int pf_inode_item_unpack(const void *data, unsigned len, struct pf_inode_item *item);

struct pf_name_item {
	uint64_t ino, hash_offset;
	unsigned dtype;
	const char *name;
	unsigned name_len;
};
/* @buf of at least sizeof(struct pf_disk_name) + name_len bytes; returns the length. */
unsigned pf_name_item_pack(const struct pf_name_item *item, void *buf);
int pf_name_item_unpack(const void *data, unsigned len, struct pf_name_item *item);

struct pf_hash_item {
	uint64_t ino, cookie;
	unsigned dtype;
};
void pf_hash_item_pack(const struct pf_hash_item *item, struct pf_disk_hash *disk);
int pf_hash_item_unpack(const void *data, unsigned len, struct pf_hash_item *item);

/* First chunk of an extended attribute. */
struct pf_xattr_item {
	uint32_t value_len; /* of the whole value, in all chunks */
	const char *name;
	unsigned name_len;
	const uint8_t *part; /* the first bytes of the value */
	unsigned part_len;
};
unsigned pf_xattr_item_pack(const struct pf_xattr_item *item, void *buf);
int pf_xattr_item_unpack(const void *data, unsigned len, struct pf_xattr_item *item);

struct pf_extent {
	uint64_t data_id;
	uint64_t start; /* first block of the file range */
	unsigned nr;    /* blocks */
	unsigned flags; /* enum pf_extent_flags */
	unsigned nr_copies;
	uint64_t birth;
	pf_addr addr[PF_MAX_COPIES];
	const struct le64 *crc; /* nr of them; NULL when it has none */
};
#define PF_EXTENT_ITEM_MAX (sizeof(struct pf_disk_extent) + (PF_MAX_COPIES + PF_MAX_EXTENT_BLOCKS) * sizeof(struct le64))
unsigned pf_extent_pack(const struct pf_extent *extent, void *buf); /* data_id and start are in the key */
int pf_extent_unpack(struct pf_key key, const void *data, unsigned len, struct pf_extent *extent);

struct pf_orphan_range {
	uint64_t data_id, ino, from_block, to_block;
};
void pf_orphan_range_pack(const struct pf_orphan_range *range, struct pf_disk_orphan_range *disk);
int pf_orphan_range_unpack(const void *data, unsigned len, struct pf_orphan_range *range);

static inline struct pf_key pf_key_inode(uint64_t ino)
{
	return pf_key_make(PF_CLASS_INODE, ino, PF_TYPE_INODE, 0);
}
static inline struct pf_key pf_key_extent(uint64_t data_id, uint64_t block)
{
	return pf_key_make(PF_CLASS_EXTENT, data_id, PF_TYPE_EXTENT, block);
}
/* File blocks are numbered below this, so every number has room in a key. */
#define PF_MAX_FILE_BLOCKS ((uint64_t)PF_MAX_FILE_BYTES / PF_BLOCK_SIZE)

#endif
