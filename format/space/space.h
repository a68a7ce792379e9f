/* SPDX-License-Identifier: MIT
 *
 * Purpose: which blocks are free. Allocation groups with bitmaps, group tables in shadow pairs, freed space that waits
 * until nobody can need it (design rules 13 to 18; pitfalls 2.1 to 2.8, 3.4).
 *
 * Two bitmaps per loaded group: 'used' is what the allocator sees, 'disk' is the map of the last checkpoint plus the
 * changes of the txg that is being written. Per txg two lists of runs: allocated (named by the tree of that txg) and
 * freed.
 *
 * Invariants
 *   I1  used = base + every allocation + freed-but-not-released. A block is handed out only when its bit was clear.
 *   I2  Map of G on disk = map of the checkpoint before + alloc(G) - freed(G), nothing of G+1 (rule 14): allocs first,
 *       then frees. A block enters alloc() by pf_space_commit() in the same txg as its mapping.
 *   I3  A map, table block or table root is written to the slot that the committed parent does not name. Fixed
 *       places: no allocation, no fix-point.
 *   I4  A block freed in G is released when G is durable and no reader that entered in G or earlier is on its member.
 *   I5  A map that fails its check makes its group full ('bad'); frees into it are dropped, and counted for fsck.
 *       (After an I/O error the next checkpoint, or a node that finds no room, first tries again.)
 *   I6  Untouched groups (not PF_GROUP_INIT) are never read and never written: all but the fixed places is free.
 *   I7  Nodes take quads only, aligned runs of PF_NODE_BLOCKS blocks, wholly free ones (bits.h), so they break none. Of a
 *       metadata member, share_blocks - (nodes on it), and five eighths of the share however many nodes there are, are kept for
 *       the next checkpoints: data breaks no whole quad when fewer than kept / 4 would be left. Free blocks of broken
 *       quads are data's always, so its room is free - 4 * min(kept / 4, whole quads) exactly. Privileged data
 *       (overwrites) is kept off half of that only.
 *       Long before that, when a metadata member has no more than the nodes to come will want, data goes to other members
 *       while these have room: nodes have no other place, and without one a half empty pool would be full.
 *   I8  Without the feature RECLAIM freed data blocks are not released and not entered in freed(); nodes always are.
 *   I9  With the feature NODE_COPIES and two metadata members or more a node takes a quad on each of two of them: room for
 *       it is where both have room. Of three the first two are used while both have some, then what is left of one of
 *       them beside the third; the rest of the third counts for nothing.
 *   I10 Of a member that failed (member/set.h I5) nothing is handed out, its free space counts for nothing, and its maps stay as they
 *       are on disk: the superblock says that they are out of date. What is freed on it is forgotten.
 *
 *   I11 On an image file with a large share the first groups (pf_geometry_home_blocks()) are the home: allocated by mkfs, and used
 *       by nothing while there is another place. Outside of it nodes go where the host has allocated the whole group. While the host
 *       refuses that, what is free in the home is all the room that nodes have.
 *
 * Locks: one mutex inside, never held across I/O to load a map... a load drops it and looks again. The checkpoint's part gives it
 * up after a few maps or runs: nothing here keeps the others waiting for longer than that takes.
 * commit/free/freeze are called under the exclusive tree lock; alloc/unalloc from anywhere.
 *
 * Uses: base, ondisk, member.
 */
#ifndef PF_SPACE_H
#define PF_SPACE_H

#include "member/set.h"

struct pf_space;

struct pf_run { /* nr blocks from addr on, all on one member and in one group or more */
	pf_addr addr;
	uint64_t nr;
};

enum pf_space_use {
	PF_USE_DATA,            /* leaves the share of the metadata members alone */
	PF_USE_DATA_PRIVILEGED, /* overwrite of existing data: may take half of the share */
	PF_USE_NODE, /* whole quads */
};

struct pf_alloc_req {
	enum pf_space_use use;
	uint64_t nr;      /* blocks wanted */
	uint64_t min_nr;  /* least acceptable contiguous run (nodes: times PF_NODE_BLOCKS; data: 1) */
	pf_addr goal;     /* preferred start (0: none): contiguous continuation of a file */
	int member;       /* preferred member, or -1: the one with the most free space in proportion */
	bool only_member; /* do not go to another member */
	bool reserved; /* data: paid from a promise of at least nr blocks; run->nr of them are turned into allocated ones */
};

/* Loads tables (not maps) of all members as set->super names them. @rebuild: take no notice of the tables on disk,
 * all groups start untouched (mkfs; fsck then fills them by pf_space_replace_map()); the next checkpoint writes
 * every table block. Slots that the old tables name are not written until that is durable. Features and shares are
 * taken from set->super here, once. Errors: -EIO, -PF_ETABLE_INVALID, -ENOMEM. */
int pf_space_open(struct pf_set *set, bool rebuild, struct pf_space **out, struct pf_diag *diag);
void pf_space_close(struct pf_space *space);

/* Up to req->nr contiguous blocks, at least req->min_nr; *run says how many (nodes: a multiple of min_nr). Their
 * bits are set in 'used' only. Errors: -ENOSPC; -EIO when no map could be read; -ENOMEM. May do I/O (load a map). */
int pf_space_alloc(struct pf_space *space, const struct pf_alloc_req *req, struct pf_run *run);
/* Gives back blocks of pf_space_alloc() that no tree ever named. */
void pf_space_unalloc(struct pf_space *space, struct pf_run run);
/* The same, and in the same step they are promised again: nobody else can get them. */
void pf_space_unalloc_promised(struct pf_space *space, struct pf_run run);
/* Takes exactly these blocks, as pf_space_alloc() would have: a replay of the log says whose they are. Nobody allocates meanwhile.
 * The run lies in the data area. -EEXIST: a block of it is in use, nothing is taken; -EIO, -ENOMEM. */
int pf_space_claim(struct pf_space *space, struct pf_run run);

/* The host of this member has no room: the nodes of this checkpoint go where mkfs had the host allocate (I11, discard.h I3). */
void pf_space_nodes_at_home(struct pf_space *space, unsigned member);
/* Before the nodes of a checkpoint are written: have hosts that were full room again? */
void pf_space_ask_hosts(struct pf_space *space);

/* Promises @nr data blocks to a write that is still in memory (-ENOSPC if there are not so many). The writer
 * allocates with req->reserved, which consumes run->nr of the promise in the same step and does not fail for lack of
 * room (only for want of a run of min_nr, or with only_member): nobody can take the promised blocks in between.
 * unreserve() gives back what is left. */
int pf_space_reserve(struct pf_space *space, enum pf_space_use use, uint64_t nr);
void pf_space_unreserve(struct pf_space *space, uint64_t nr);

/* Under the exclusive tree lock: the run is named by the tree of the current txg / no longer named. */
void pf_space_commit(struct pf_space *space, struct pf_run run, enum pf_space_use use);
void pf_space_free(struct pf_space *space, struct pf_run run, enum pf_space_use use);

/* -- checkpoint, in this order; one at a time ---------------------------------------------------------------------- */
/* Under the exclusive tree lock: the lists become those of G, the next txg begins with empty ones. */
void pf_space_freeze(struct pf_space *space);
/* Node blocks that the checkpoint writer allocated for G, and those it frees for G+1 later by pf_space_free(). */
void pf_space_commit_frozen(struct pf_space *space, struct pf_run run);
/* Applies the lists of G to the maps and writes maps, tables and roots of @generation (not flushed); fills root_slot,
 * root_generation, root_crc of super->members[]; *changed gets the mask of members whose table changed.
 * Errors: -EIO, -ENOSPC (host of an image), -ENOMEM; may be called again after a failure. */
int pf_space_write(struct pf_space *space, uint64_t generation, struct pf_super *super, uint32_t *changed);
/* The member on which the last pf_space_write() ended with -EIO, as a mask. */
uint32_t pf_space_blamed(const struct pf_space *space);
/* Members of which the last map that was wanted could not be read, as a mask. */
uint32_t pf_space_unreadable(struct pf_space *space);
/* These have failed: I10. */
void pf_space_fail_members(struct pf_space *space, uint32_t mask);
/* G is durable: its slots are the committed ones, freed(G) is released as soon as I4 allows. Needs no tree lock:
 * releasing many runs takes milliseconds, in pieces between which others allocate. */
void pf_space_durable(struct pf_space *space);

/* -- readers (I4): around the I/O on blocks found through the tree; enter while the tree lock is still held ------- */
unsigned pf_space_reader_enter(struct pf_space *space, unsigned member); /* returns a ticket */
void pf_space_reader_exit(struct pf_space *space, unsigned member, unsigned ticket);
/* Counts the times that freed blocks have become free, to be asked before something that may want them. */
uint64_t pf_space_released(struct pf_space *space);
/* After -ENOSPC: waits for the next time, if blocks are there that only readers hold, and not longer than a second (5 s where they
 * are under a discard): they hold them for the length of an I/O. What waits for a discard is freed. True when it has come since
 * @released was asked. The caller is no reader. */
bool pf_space_await_release(struct pf_space *space, uint64_t released);

/* -- numbers ------------------------------------------------------------------------------------------------------- */
struct pf_space_stats {
	uint64_t data_area_blocks; /* of all members: data_end - data_start */
	uint64_t share_blocks;     /* of all metadata members */
	uint64_t free_blocks;      /* allocatable now */
	uint64_t pending_blocks;   /* freed, waiting for a checkpoint or a reader */
	uint64_t reserved_blocks;  /* promised by pf_space_reserve() */
	uint64_t node_blocks;      /* named by the tree, all copies */
	uint64_t avail_blocks;     /* that PF_USE_DATA could take now */
	uint64_t meta_free_blocks; /* of whole quads on the metadata members: what nodes could take */
	uint64_t dropped_blocks;   /* frees into bad groups: leaked until fsck (I5) */
	unsigned bad_groups;
};
void pf_space_stats(struct pf_space *space, struct pf_space_stats *out);
void pf_space_member_stats(struct pf_space *space, unsigned member, uint64_t *free_blocks, uint64_t *pending_blocks);
/* How many blocks of nodes could be written, all their copies with them, whatever comes of the promises to data: a node and its
 * copies count once (I9). */
uint64_t pf_space_node_room(struct pf_space *space);
/* So many of them only checkpoints and deletions may use. */
uint64_t pf_space_node_reserve(struct pf_space *space);
/* Blocks of nodes that are sure to find room whatever a host says (I11); without such hosts UINT64_MAX. */
uint64_t pf_space_home_room(struct pf_space *space);
/* For as many nodes as there are metadata members with @room[i] blocks, in the superblock's order. */
uint64_t pf_space_room_for_copies(const uint64_t *room, unsigned nr_meta, unsigned nr_copies);
/* More than a quarter of what is free waits for a checkpoint (design rule 16). */
bool pf_space_wants_commit(struct pf_space *space);
/* The part of the share that only checkpoints and deletions may use. */
static inline uint64_t pf_space_reserve_of(uint64_t share_blocks)
{
	return share_blocks / 2;
}
/* Maps that could not be read (I5; not those that failed their check) are tried again by the next search. True: there are such.
 * Called before ENOSPC is said. */
bool pf_space_retry_maps(struct pf_space *space);
/* An upgrade gives the pool the feature RECLAIM (I8). */
void pf_space_begin_reclaim(struct pf_space *space);
/* The same for NODE_COPIES, when set->super has it. */
void pf_space_begin_copies(struct pf_space *space);
/* Blocks that nodes could take on one member now. */
uint64_t pf_space_member_node_room(struct pf_space *space, unsigned member);
/* Told once after open from the superblock; commit/free of nodes keep it up to date. */
void pf_space_set_node_blocks(struct pf_space *space, uint64_t node_blocks);

/* -- check and repair ---------------------------------------------------------------------------------------------- */
/* The committed map of a group, 1 bit per block, PF_GROUP_BLOCKS / 8 bytes; fixed places and blocks past the end are
 * set. Errors: -EIO, -PF_EMAP_INVALID. */
int pf_space_read_map(struct pf_space *space, unsigned member, uint64_t group, uint8_t *used);
/* Replaces the map of a group (used and disk) by the given one; written by the next checkpoint. Not during a
 * checkpoint, and only while nothing of the group is allocated or freed but not yet durable. Errors: -ENOMEM. */
int pf_space_replace_map(struct pf_space *space, unsigned member, uint64_t group, const uint8_t *used);

#endif
