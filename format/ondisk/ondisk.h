/* SPDX-License-Identifier: MIT
 *
 * Purpose: every structure that lies on a member, its magics and its limits. docs/FORMAT.md describes the same bytes.
 *
 * Invariants
 *   I1  All integers are little-endian types (base/endian.h); no padding; sizes and offsets are asserted below.
 *   I2  Each checksum is CRC-64/XZ over the whole structure with its crc field taken as zero.
 *   I3  Reserved bytes are written as zero and ignored when read (their use is announced by a feature bit).
 *   I4  No I/O and no allocation under ondisk/.
 *
 * Uses: base/endian.
 */
#ifndef PF_ONDISK_H
#define PF_ONDISK_H

#include "base/endian.h"

#include <assert.h>
#include <stddef.h>

/* -- sizes ------------------------------------------------------------------------------------------------------ */
#define PF_BLOCK_SIZE 4096u
#define PF_BLOCK_SHIFT 12
#define PF_GROUP_BLOCKS 16384u            /* 64 MiB */
#define PF_GROUP_SHIFT 14
#define PF_NODE_SIZE 16384u
#define PF_NODE_BLOCKS (PF_NODE_SIZE / PF_BLOCK_SIZE)
#define PF_MAX_MEMBERS 32u
#define PF_MAX_EPOCHS 16u
#define PF_MAX_COPIES 3u
#define PF_NODE_COPIES 2u                 /* addresses in a pointer to a node */
#define PF_MAX_META_MEMBERS 3u
#define PF_MAX_EXTENT_BLOCKS 256u         /* 1 MiB */
#define PF_MAX_ITEM_BYTES 4000u           /* a quarter node: a split always works */
#define PF_MAX_NAME_BYTES 255u
#define PF_MAX_SYMLINK_BYTES 4095u
#define PF_MAX_XATTR_BYTES 65536u
#define PF_LABEL_BYTES 64u
#define PF_MAX_FILE_BYTES (INT64_MAX - (int64_t)PF_BLOCK_SIZE + 1)
#define PF_MIN_MEMBER_BYTES (UINT64_C(16) << 20)
#define PF_MAX_MEMBER_BLOCKS (UINT64_C(1) << 45) /* 128 PiB: group numbers fit le32 */

/* -- superblock rings (FORMAT 2): 8 slots, 64 KiB apart; the first at 64 KiB, the backup ring ends the member ------ */
#define PF_SUPER_SLOTS 8u
#define PF_SUPER_SPACING_BLOCKS 16u
#define PF_SUPER_RING_BLOCKS (PF_SUPER_SLOTS * PF_SUPER_SPACING_BLOCKS)
#define PF_SUPER_FIRST_BLOCK 16u
#define PF_SUPER_MAGIC UINT64_C(0x42555353464c4f50) /* "POLFSSUB" */

/* -- addresses (FORMAT 1): member in the top 8 bits, 48-bit block number below; 0 is "none" ------------------------ */
#define PF_ADDR_BLOCK_BITS 48
typedef uint64_t pf_addr; /* in memory; le64 on disk */

static inline pf_addr pf_addr_make(unsigned member, uint64_t block)
{
	return (uint64_t)member << 56 | block;
}
static inline unsigned pf_addr_member(pf_addr a)
{
	return (unsigned)(a >> 56);
}
static inline uint64_t pf_addr_block(pf_addr a)
{
	return a & ((UINT64_C(1) << PF_ADDR_BLOCK_BITS) - 1);
}

/* -- keys (FORMAT 5): class and object, then type and offset; compared as two integers ---------------------------- */
struct pf_key {
	uint64_t hi; /* class << 56 | object (56 bits) */
	uint64_t lo; /* type << 56 | offset (56 bits) */
};
struct pf_disk_key {
	struct le64 hi, lo;
};
#define PF_KEY_FIELD_MAX ((UINT64_C(1) << 56) - 1)

enum pf_key_class { PF_CLASS_INODE = 0, PF_CLASS_DIR = 1, PF_CLASS_EXTENT = 2 };
enum pf_key_type {
	/* PF_CLASS_INODE, object = inode number; object 0 = the pool itself */
	PF_TYPE_ORPHAN_INODE = 1, /* object 0, offset = inode number: no name left, may still be open */
	PF_TYPE_ORPHAN_RANGE = 2, /* object 0, offset = running number: a range of a data id waits for removal */
	PF_TYPE_INODE = 16,       /* offset 0 */
	PF_TYPE_SYMLINK = 17,     /* offset = chunk number */
	PF_TYPE_XATTR = 18,       /* offset = 48-bit name hash << 8 | chunk number */
	/* PF_CLASS_DIR, object = inode number of the directory */
	PF_TYPE_HASH = 32,        /* offset = 56-bit seeded hash of the name (next free value on a collision) */
	PF_TYPE_NAME = 33,        /* offset = cookie, in order of creation */
	/* PF_CLASS_EXTENT, object = data id */
	PF_TYPE_EXTENT = 48,      /* offset = first block of the file range */
};

static inline struct pf_key pf_key_make(enum pf_key_class c, uint64_t object, enum pf_key_type t, uint64_t offset)
{
	return (struct pf_key){ (uint64_t)c << 56 | object, (uint64_t)t << 56 | offset };
}
static inline int pf_key_cmp(struct pf_key a, struct pf_key b)
{
	if (a.hi != b.hi)
		return a.hi < b.hi ? -1 : 1;
	if (a.lo != b.lo)
		return a.lo < b.lo ? -1 : 1;
	return 0;
}
static inline unsigned pf_key_class(struct pf_key k)
{
	return (unsigned)(k.hi >> 56);
}
static inline uint64_t pf_key_object(struct pf_key k)
{
	return k.hi & PF_KEY_FIELD_MAX;
}
static inline unsigned pf_key_type(struct pf_key k)
{
	return (unsigned)(k.lo >> 56);
}
static inline uint64_t pf_key_offset(struct pf_key k)
{
	return k.lo & PF_KEY_FIELD_MAX;
}
static inline struct pf_key pf_key_get(struct pf_disk_key k)
{
	return (struct pf_key){ pf_get64(k.hi), pf_get64(k.lo) };
}
static inline struct pf_disk_key pf_key_le(struct pf_key k)
{
	return (struct pf_disk_key){ pf_le64(k.hi), pf_le64(k.lo) };
}
#define PF_KEY_MIN ((struct pf_key){ 0, 0 })
#define PF_KEY_MAX ((struct pf_key){ UINT64_MAX, UINT64_MAX })

#include "ondisk/ondisk_super.h"
#include "ondisk/ondisk_tree.h"

#endif
