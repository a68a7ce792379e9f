/* SPDX-License-Identifier: MIT
 *
 * Purpose: what the files of space/ share: groups, tables, txg lists, members. Not for other folders.
 *
 *   space.c  open, close, numbers, fsck's view     txg.c      lists of allocated and freed runs
 *   group.c  groups, loading and eviction of maps  epoch.c    readers, release of freed runs
 *   table.c  bytes on disk                         write.c    the checkpoint's part
 *   alloc.c  choice of member, group and run       reserve.c  share and promises
 *   claim.c  runs that the log names               discard.c  what members are told of free space
 *   home.c   where nodes go on a full host
 *
 * Invariants: those of space.h.
 *
 * Locks
 *   space->lock guards everything but the readers' counters. It is never held across I/O: functions marked "drops the
 *   lock" release it for a read, and whatever was looked at before has to be looked at again.
 *   Only the checkpoint (one at a time) touches 'disk' bitmaps, plan, new_* and frozen.freed; it still takes the
 *   lock, because loading and eviction read them, or has the maps 'held'.
 *   Every operation waits for the lock, so nobody keeps it for longer than some ten microseconds: what takes longer is done in
 *   pieces, with pf_space_give_way() between them, or without the lock on what nobody else can see.
 *   readers[] and epoch are atomics: see epoch.c. Order: tree lock -> space->lock; nothing is taken under space->lock.
 *
 * Uses: base, ondisk, member.
 */
#ifndef PF_SPACE_PRIVATE_H
#define PF_SPACE_PRIVATE_H

#include "space/bits.h"
#include "space/discard_int.h"
#include "space/home_int.h"
#include "space/table_int.h"

#include <pthread.h>

/* Beside enum pf_group_flags, in memory only. BAD: full until fsck replaces the map. RETRY: bad by an I/O error, not by
 * its content: a checkpoint that needs it tries again. BACKED: the host has allocated all of it since the pool was opened. */
enum { PF_GROUP_BAD = 0x80, PF_GROUP_RETRY = 0x40, PF_GROUP_BACKED = 0x20 };
enum { PF_SPACE_BATCH = 256, PF_SPACE_MAX_LOADED = 4096 };
struct pf_maps { /* of a loaded group */
	uint64_t used[PF_MAP_WORDS];
	uint64_t disk[PF_MAP_WORDS];
	struct pf_maps *newer, *older;
	struct pf_space_member *member;
	uint32_t group;
	bool unsaved;  /* 'disk' is ahead of the committed map */
	bool replaced; /* by pf_space_replace_map(): to be written even if no run touches it */
	bool held;     /* the checkpoint is at its 'disk', without the lock: not evicted, and nobody else looks at it */
};

struct pf_group {
	uint64_t generation, crc; /* of the committed map */
	struct pf_maps *maps;
	uint16_t free_blocks, free_quads;           /* of 'used'; 0 when bad */
	uint16_t disk_free_blocks, disk_free_quads; /* as the committed table says */
	uint16_t run_bound, quads_bound; /* no free run is longer than this, no run of whole quads than that (blocks) */
	uint8_t slot, flags;
};
static_assert(sizeof(struct pf_group) <= 40, "20 TiB are 327,680 groups");

struct pf_table {
	uint64_t generation, crc; /* of the committed table block */
	uint64_t new_crc;
	uint32_t free_blocks, free_quads; /* of its groups */
	uint8_t slot;
	bool dirty;   /* has never been written: goes out with the next checkpoint */
	bool written; /* by the checkpoint under way */
};

struct pf_txg_lists {
	struct pf_run_list alloc, freed;
};

struct pf_new_map { /* written by the checkpoint under way */
	uint64_t crc;
	uint32_t group;
	uint16_t free_blocks, free_quads;
	uint8_t slot;
};

struct pf_space_member {
	unsigned id;
	bool meta;
	bool failed; /* I10 */
	struct pf_io *io;
	struct pf_geometry geo;
	struct pf_group *groups;
	struct pf_table *tables;
	uint64_t root_generation, root_crc;
	uint8_t root_slot;
	bool root_readable;

	uint64_t area_blocks, free_blocks, free_quads;
	uint64_t share_blocks, node_blocks;
	struct pf_home home;

	uint64_t cursor[2];    /* of data and of nodes: where the last run without a goal ended */
	uint32_t run_bound[2], quads_bound[2]; /* of the groups without / with PF_GROUP_META */
	uint64_t raised;                       /* counts the times that a bound went up */

	struct pf_txg_lists open, frozen;

	uint64_t frozen_epoch;
	struct pf_run_list waiting[2]; /* freed and durable, until the readers of that parity are gone */
	uint64_t releasing_blocks;     /* of a list that is just being released */
	_Atomic uint64_t epoch;
	atomic_uint readers[2];
	atomic_bool has_waiting;
	struct pf_discard discard;

	struct pf_new_map *new_maps;
	size_t nr_new_maps;
	unsigned nr_replaced; /* maps */
	uint64_t new_root_crc, new_generation;
	uint8_t new_root_slot;
	bool new_root;
};

struct pf_space {
	pthread_mutex_t lock;
	pthread_cond_t release; /* released++ */
	struct pf_set *set;
	const struct pf_env *env;
	uint8_t pool_uuid[16];
	bool reclaim; /* PF_FEAT_RECLAIM when it was opened */
	unsigned nr_copies, nr_meta; /* of a node that is written; metadata members */
	uint8_t meta_members[PF_MAX_META_MEMBERS];
	uint64_t reserved, released; /* promised blocks; times that freed ones have become free */
	uint64_t missed_blocks;      /* what a promise was last refused for: who asks again shall find it, a trim leaves so much */
	uint32_t blamed; /* the checkpoint's */
	uint32_t unreadable;
	unsigned bad_groups, retry_groups; /* those that are tried again are bad ones too */
	uint64_t dropped_blocks, dropping_blocks;
	struct pf_maps *newest, *oldest;
	unsigned nr_loaded, max_loaded, nr_spare;
	struct pf_run_chunk *spare; /* so that commit and free need no memory */
	bool lost_run; /* an allocation could not be noted: no further checkpoint may succeed */
	unsigned nr;
	struct pf_space_member members[PF_MAX_MEMBERS];
};

/* In the middle of something long: others have the lock for a while. Whatever was looked at before has to be looked at again. */
static inline void pf_space_give_way(struct pf_space *space)
{
	pthread_mutex_unlock(&space->lock);
	pthread_mutex_lock(&space->lock);
}

/* -- group.c -- */
uint32_t pf_group_capacity(const struct pf_geometry *geo, uint64_t group);
uint32_t pf_group_quads(const struct pf_geometry *geo, uint64_t group); /* that lie wholly in the data area */
void pf_group_fill_fixed(const struct pf_geometry *geo, uint64_t group, uint64_t *words);
static inline unsigned pf_group_kind(const struct pf_group *g)
{
	return g->flags & PF_GROUP_META ? 1 : 0;
}
void pf_group_add_free(struct pf_space_member *m, uint32_t group, int32_t blocks, int32_t quads);
/* Counts and bounds of a group whose 'used' is new; takes clear blocks of a loaded one. */
void pf_group_set_free(struct pf_space_member *m, uint32_t group, uint32_t blocks, uint32_t quads);
void pf_group_take(struct pf_space_member *m, uint32_t group, uint32_t start, uint32_t nr);
/* Loads what is not loaded of @nr (at most PF_SPACE_BATCH) groups; drops the lock if there is something to read. Bad
 * groups are left without maps. The groups are the newest afterwards, nothing has been evicted. Errors: -ENOMEM. */
int pf_group_load(struct pf_space *space, struct pf_space_member *m, const uint32_t *groups, unsigned nr);
/* Makes groups with PF_GROUP_RETRY loadable again. Returns how many, or whether any. */
unsigned pf_group_retry(struct pf_space *space, struct pf_space_member *m, const uint32_t *groups, unsigned nr);
bool pf_group_retry_all(struct pf_space *space);
int pf_group_new_maps(struct pf_space *space, struct pf_space_member *m, uint32_t group);
void pf_group_touch(struct pf_space *space, struct pf_maps *maps); /* makes it the newest */
/* Down to max_loaded, clean ones only, oldest first; looks at @tries groups at most, so that the cost is even. */
void pf_group_evict(struct pf_space *space, unsigned tries);
void pf_group_evict_batch(struct pf_space *space); /* what a batch of the checkpoint has loaded; drops the lock */
/* Clears bits of 'used' where the groups are loaded. */
void pf_group_release(struct pf_space_member *m, struct pf_run run);

/* -- reserve.c: all with the lock held -- */
uint64_t pf_space_kept_quads(const struct pf_space_member *m, enum pf_space_use use); /* I7 */
/* Metadata members, as a mask, of which nodes will want what is left: data goes elsewhere while there is an elsewhere (I7 says what
 * it may take). */
uint32_t pf_space_tight(const struct pf_space *space);
uint64_t pf_space_member_room(const struct pf_space_member *m, enum pf_space_use use);
uint64_t pf_space_room(const struct pf_space *space, enum pf_space_use use);
uint64_t pf_space_avail(const struct pf_space *space, enum pf_space_use use);
void pf_space_add_nodes(struct pf_space *space, unsigned member, uint64_t nr);
void pf_space_sub_nodes(struct pf_space *space, unsigned member, uint64_t nr);

/* -- epoch.c: with the lock held; all but the first drop it after a few runs, as others want to allocate. A list to be freed
 * is the caller's alone. -- */
void pf_epoch_freeze(struct pf_space_member *m);
void pf_epoch_durable(struct pf_space *space, struct pf_space_member *m);
void pf_epoch_release(struct pf_space *space, struct pf_space_member *m);
void pf_epoch_free_list(struct pf_space *space, struct pf_space_member *m, struct pf_run_list *list);

#endif
