/* SPDX-License-Identifier: MIT
 *
 * Purpose: superblock, group tables and maps as they lie on a member (FORMAT 2 to 4). Part of ondisk.h.
 * Invariants, Uses: see ondisk.h.
 */
#ifndef PF_ONDISK_SUPER_H
#define PF_ONDISK_SUPER_H

#include "ondisk/ondisk.h"

/* -- tree pointer (FORMAT 5): enough to catch a lost or misdirected write ---------------------------------------- */
struct pf_disk_ptr {
	struct le64 addr[2]; /* copies; the second is 0 before version 6 */
	struct le64 generation;
	struct le64 crc; /* of the whole node, as in its header */
};

/* -- superblock (FORMAT 2) ---------------------------------------------------------------------------------------- */
enum pf_member_state { PF_MEMBER_UNUSED = 0, PF_MEMBER_ACTIVE = 1, PF_MEMBER_FAILED = 2 };
enum pf_member_class { PF_CLASS_ANY = 0, PF_CLASS_FAST = 1, PF_CLASS_SLOW = 2 };
enum pf_member_flags { PF_MEMBER_META = 1, PF_MEMBER_RAW = 2 };

struct pf_disk_member { /* one row of the member table: what each member should have */
	uint8_t uuid[16];
	struct le64 size_blocks;
	struct le64 root_generation; /* generation and CRC of the table root that is committed */
	struct le64 root_crc;
	uint8_t root_slot; /* 0 or 1 */
	uint8_t state;     /* enum pf_member_state */
	uint8_t class;     /* enum pf_member_class */
	uint8_t flags;     /* enum pf_member_flags */
	struct le32 log_blocks; /* size of the reserved log ring */
	struct le64 share_blocks; /* on a metadata member: kept for nodes (allowance and reserve) */
	struct le64 reserved;
};

struct pf_disk_epoch {
	struct le64 id; /* random; 0 = unused entry */
	struct le64 time_ns;
	struct le64 last_generation; /* of the epoch before: where this one began */
};

enum pf_placement { PF_PLACE_FILE = 0, PF_PLACE_STRIPE = 1 };
enum pf_super_flags { PF_SUPER_CLEAN = 1 /* unmounted, nothing to recover */ };

struct pf_disk_super {
	struct le64 magic;
	struct le64 crc;
	struct le32 version;
	uint8_t member_id; /* of the member on which this copy lies */
	uint8_t nr_members;
	uint8_t placement; /* enum pf_placement */
	uint8_t nr_meta;
	struct le64 compat, ro_compat, incompat;
	uint8_t pool_uuid[16];
	uint8_t member_uuid[16];
	char label[PF_LABEL_BYTES]; /* NUL-padded, not necessarily terminated */
	struct le64 generation;     /* of the checkpoint: the higher one wins */
	struct le64 flags;          /* enum pf_super_flags */
	struct le64 created_ns, written_ns;
	struct le64 hash_seed; /* of the name hashes */
	struct pf_disk_ptr roots[2]; /* the tree; the second is reserved */
	uint8_t root_level[2];
	uint8_t meta_members[PF_MAX_META_MEMBERS]; /* ids, in the order in which nodes go to them */
	uint8_t log_members[PF_MAX_META_MEMBERS];  /* ids; the first nr_log of them have the log */
	struct le64 log_start; /* LSN of the first block that is needed; from version 6 */
	/* counters */
	struct le64 next_id;         /* next inode number and data id */
	struct le64 next_orphan;     /* running number of range orphans */
	struct le64 nr_inodes;
	struct le64 data_blocks;     /* blocks that extents name, orphans included */
	struct le64 orphan_blocks;   /* of these, the ones that wait for the reaper */
	struct le64 node_blocks;     /* blocks that nodes take */
	struct le64 no_csum_blocks;  /* written data blocks without a CRC */
	struct le64 log_epoch;       /* of the blocks from log_start on; from version 6 */
	struct le64 nr_log;          /* members that have the log; 0 before version 6 */
	struct le64 reserved1[29];
	struct pf_disk_epoch epochs[PF_MAX_EPOCHS]; /* newest first */
	struct pf_disk_member members[PF_MAX_MEMBERS];
	uint8_t reserved2[768];
};
static_assert(sizeof(struct pf_disk_ptr) == 32, "tree pointer");
static_assert(sizeof(struct pf_disk_member) == 64, "member row");
static_assert(sizeof(struct pf_disk_epoch) == 24, "epoch");
static_assert(offsetof(struct pf_disk_super, compat) == 24, "super.compat");
static_assert(offsetof(struct pf_disk_super, pool_uuid) == 48, "super.pool_uuid");
static_assert(offsetof(struct pf_disk_super, label) == 80, "super.label");
static_assert(offsetof(struct pf_disk_super, generation) == 144, "super.generation");
static_assert(offsetof(struct pf_disk_super, roots) == 184, "super.roots");
static_assert(offsetof(struct pf_disk_super, next_id) == 264, "super.next_id");
static_assert(offsetof(struct pf_disk_super, epochs) == 568, "super.epochs");
static_assert(offsetof(struct pf_disk_super, members) == 952, "super.members");
static_assert(sizeof(struct pf_disk_super) <= PF_BLOCK_SIZE, "superblock fits a block");
static_assert(sizeof(struct pf_disk_super) == 3768, "superblock size");

/* -- group tables (FORMAT 3): root -> table blocks -> maps, each in shadow pairs ----------------------------------- */
#define PF_TABLE_ROOT_MAGIC UINT64_C(0x544f4f5254464c50) /* "PLFTROOT" */
#define PF_TABLE_MAGIC UINT64_C(0x454c424154464c50)      /* "PLFTABLE" */
#define PF_MAP_MAGIC UINT64_C(0x50414d5f53464c50)        /* "PLFS_MAP" */

struct pf_disk_table_head { /* begins a table root, a table block and a map */
	struct le64 magic;
	struct le64 crc;
	uint8_t pool_uuid[16];
	struct le64 generation;
	struct le32 index; /* table block number or group number; 0 for the root */
	uint8_t member_id;
	uint8_t slot;
	uint8_t reserved[18];
};
struct pf_disk_table_ref { /* in the root: one table block */
	struct le64 generation;
	struct le64 crc;
	uint8_t slot;
	uint8_t reserved[7];
};
enum pf_group_flags {
	PF_GROUP_INIT = 1, /* its map has been written; otherwise all but the fixed places is free */
	PF_GROUP_META = 2, /* preferred by nodes */
};
struct pf_disk_group { /* in a table block: one group */
	struct le64 generation;
	struct le64 crc;
	struct le16 free_blocks;
	uint8_t slot;
	uint8_t flags; /* enum pf_group_flags */
	struct le16 free_quads; /* aligned runs of PF_NODE_BLOCKS blocks that are wholly free */
	uint8_t reserved[10];
};
struct pf_disk_map {
	struct pf_disk_table_head head;
	uint8_t used[PF_GROUP_BLOCKS / 8]; /* bit b (LSB first) = block b of the group is in use */
	uint8_t reserved[PF_BLOCK_SIZE - sizeof(struct pf_disk_table_head) - PF_GROUP_BLOCKS / 8];
};
#define PF_TABLE_REFS_PER_BLOCK ((PF_BLOCK_SIZE - sizeof(struct pf_disk_table_head)) / sizeof(struct pf_disk_table_ref))
#define PF_GROUPS_PER_TABLE ((PF_BLOCK_SIZE - sizeof(struct pf_disk_table_head)) / sizeof(struct pf_disk_group))
static_assert(sizeof(struct pf_disk_table_head) == 64, "table head");
static_assert(sizeof(struct pf_disk_table_ref) == 24, "table ref");
static_assert(sizeof(struct pf_disk_group) == 32, "group");
static_assert(sizeof(struct pf_disk_map) == PF_BLOCK_SIZE, "map");

#endif
