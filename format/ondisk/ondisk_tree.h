/* SPDX-License-Identifier: MIT
 *
 * Purpose: tree nodes and items as they lie on a member (FORMAT 5 and 6). Part of ondisk.h.
 * Invariants, Uses: see ondisk.h.
 */
#ifndef PF_ONDISK_TREE_H
#define PF_ONDISK_TREE_H

#include "ondisk/ondisk.h"

/* -- node (FORMAT 5): header, then item headers growing up, item bytes growing down from the end ------------------- */
#define PF_NODE_MAGIC UINT64_C(0x45444f4e53464c50) /* "PLFSNODE" */

struct pf_disk_node_head {
	struct le64 magic;
	struct le64 crc;
	uint8_t pool_uuid[16];
	struct le64 addr[2]; /* of both copies, the same in both: this one was meant to lie at one of them */
	struct le64 generation;
	struct pf_disk_key lower; /* first key that may be here */
	struct pf_disk_key upper; /* first key that may not, all ones: no limit */
	uint8_t level;            /* 0 = leaf */
	uint8_t tree;             /* index of the root in the superblock */
	struct le16 nr_items;
	struct le16 data_start; /* leaf: offset in the node of the lowest item byte; interior: 0 */
	uint8_t reserved[34];
};
struct pf_disk_leaf_item {
	struct pf_disk_key key;
	struct le16 offset; /* of its bytes in the node */
	struct le16 len;
};
struct pf_disk_child {
	struct pf_disk_key key; /* lower bound of the child */
	struct pf_disk_ptr ptr;
};
#define PF_NODE_FANOUT ((PF_NODE_SIZE - sizeof(struct pf_disk_node_head)) / sizeof(struct pf_disk_child))
static_assert(sizeof(struct pf_disk_node_head) == 128, "node head");
static_assert(sizeof(struct pf_disk_leaf_item) == 20, "leaf item");
static_assert(sizeof(struct pf_disk_child) == 48, "child");

/* -- items (FORMAT 6) --------------------------------------------------------------------------------------------- */
struct pf_disk_time {
	struct le64 sec; /* two's complement, before 1970 negative */
	struct le32 nsec;
};
enum pf_inode_flags { PF_INODE_HAS_XATTR = 1 };
struct pf_disk_inode {
	struct le32 mode; /* type and permission bits of inode(7) */
	struct le32 uid, gid;
	struct le32 nlink;
	struct le64 size; /* bytes; directory: number of entries */
	struct le64 blocks; /* data blocks that its extents name */
	struct le64 data_id; /* object of its extents */
	struct le64 parent;  /* directory: its parent; otherwise the directory it was last named in (a hint for messages) */
	struct le64 next_cookie; /* directory: of the next name */
	struct le32 rdev_major, rdev_minor;
	struct le32 flags; /* enum pf_inode_flags */
	struct le32 reserved;
	struct pf_disk_time atime, mtime, ctime, btime;
	struct le64 reserved2[2];
};
static_assert(sizeof(struct pf_disk_inode) == 136, "inode item");

struct pf_disk_name { /* PF_TYPE_NAME */
	struct le64 ino;
	struct le64 hash_offset; /* offset of its hash item */
	uint8_t dtype;           /* DT_* of readdir(3) */
	uint8_t name_len;
	uint8_t name[];
} __attribute__((packed));
struct pf_disk_hash { /* PF_TYPE_HASH */
	struct le64 ino;
	struct le64 cookie;
	uint8_t dtype;
	uint8_t reserved[7];
};
static_assert(sizeof(struct pf_disk_name) == 18, "name item");
static_assert(sizeof(struct pf_disk_hash) == 24, "hash item");
#define PF_HASH_PROBES 16u

#define PF_SYMLINK_CHUNK_BYTES 3500u
#define PF_XATTR_CHUNK_BYTES 3500u
struct pf_disk_xattr { /* PF_TYPE_XATTR, chunk 0; chunks 1.. hold bytes of the value only */
	struct le32 value_len; /* of the whole value */
	uint8_t name_len;
	uint8_t reserved[3];
	uint8_t bytes[]; /* name, then the first PF_XATTR_CHUNK_BYTES of the value */
};
static_assert(sizeof(struct pf_disk_xattr) == 8, "xattr item");

enum pf_extent_flags { PF_EXTENT_UNWRITTEN = 1, PF_EXTENT_NO_CSUM = 2 };
struct pf_disk_extent { /* followed by nr_copies addresses, then a CRC-64 per block unless NO_CSUM or UNWRITTEN */
	struct le16 nr_blocks; /* 1 to PF_MAX_EXTENT_BLOCKS */
	uint8_t flags;
	uint8_t nr_copies;
	struct le32 reserved;
	struct le64 birth; /* generation in which the range was written */
	struct le64 addr_crc[];
};
static_assert(sizeof(struct pf_disk_extent) == 16, "extent item");

struct pf_disk_orphan_range { /* PF_TYPE_ORPHAN_RANGE: extents of data_id in [from_block, to_block) are to go */
	struct le64 data_id;
	struct le64 ino; /* 0: no inode refers to the data id any more */
	struct le64 from_block, to_block;
};
static_assert(sizeof(struct pf_disk_orphan_range) == 32, "orphan range");

#endif
