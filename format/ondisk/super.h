/* SPDX-License-Identifier: MIT
 *
 * Purpose: the superblock in memory, and the codec between it and its 4 KiB on disk (FORMAT 2).
 *
 * Invariants
 *   I1  pf_super_unpack() is the one gate: it checks every field that any code will use, and what it accepts needs no
 *       second check (ids in range, sizes within limits, one row per member, metadata members exist, feature masks kept
 *       as they are: judging them is the caller's). With an unknown incompat bit only the identity (version, pool,
 *       member, their numbers) is checked, and the caller must refuse. Counts of inodes and blocks are fsck's to judge.
 *   I2  pack(unpack(x)) has the same meaning as x.
 *
 * Uses: base, ondisk.
 */
#ifndef PF_ONDISK_SUPER_CODEC_H
#define PF_ONDISK_SUPER_CODEC_H

#include "base/error.h"
#include "ondisk/ondisk.h"
#include "ondisk/version.h"

struct pf_ptr { /* a tree pointer in memory */
	pf_addr addr[2];
	uint64_t generation;
	uint64_t crc;
};

struct pf_member_row {
	uint8_t uuid[16];
	uint64_t size_blocks;
	uint64_t root_generation;
	uint64_t root_crc;
	uint64_t share_blocks;
	uint32_t log_blocks;
	uint8_t root_slot, state, class, flags;
};

struct pf_epoch {
	uint64_t id;
	int64_t time_ns;
	uint64_t last_generation;
};

struct pf_counters {
	uint64_t next_id, next_orphan, nr_inodes, data_blocks, orphan_blocks, node_blocks, no_csum_blocks;
};

struct pf_super {
	unsigned version;
	struct pf_features features;
	uint8_t pool_uuid[16];
	char label[PF_LABEL_BYTES + 1];
	uint64_t generation;
	uint64_t flags;
	int64_t created_ns, written_ns;
	uint64_t hash_seed;
	struct pf_ptr root; /* addr[0] == 0: the empty tree */
	unsigned root_level;
	unsigned placement;
	unsigned nr_members, nr_meta;
	uint8_t meta_members[PF_MAX_META_MEMBERS];
	uint8_t log_members[PF_MAX_META_MEMBERS];
	unsigned nr_log;
	uint64_t log_start, log_epoch;
	struct pf_counters counters;
	struct pf_epoch epochs[PF_MAX_EPOCHS];
	struct pf_member_row members[PF_MAX_MEMBERS];
	/* of the copy that was read */
	uint8_t member_id;
	uint8_t member_uuid[16];
};

/* Members that failed while the pool was in use and have not been taken back, as a mask; and the metadata members. */
uint32_t pf_super_failed(const struct pf_super *super);
uint32_t pf_super_meta(const struct pf_super *super);

/* Of a tree node that is written now, each on a metadata member of its own. */
static inline unsigned pf_super_node_copies(const struct pf_super *super)
{
	unsigned nr_failed = (unsigned)__builtin_popcount(pf_super_meta(super) & pf_super_failed(super));
	return pf_has(&super->features, PF_FEAT_NODE_COPIES) && super->nr_meta - nr_failed > 1 ? PF_NODE_COPIES : 1;
}

/* Writes one block for member @member_id, checksum included. @block: PF_BLOCK_SIZE bytes. */
void pf_super_pack(const struct pf_super *super, unsigned member_id, void *block);

/* Errors: -PF_ESB_MAGIC (no superblock here), -PF_ESB_CSUM, -PF_ESB_INVALID. */
int pf_super_unpack(const void *block, struct pf_super *super);

static inline struct pf_ptr pf_ptr_get(struct pf_disk_ptr p)
{
	return (struct pf_ptr){ { pf_get64(p.addr[0]), pf_get64(p.addr[1]) }, pf_get64(p.generation), pf_get64(p.crc) };
}
static inline struct pf_disk_ptr pf_ptr_le(struct pf_ptr p)
{
	return (struct pf_disk_ptr){ { pf_le64(p.addr[0]), pf_le64(p.addr[1]) }, pf_le64(p.generation), pf_le64(p.crc) };
}

#endif
