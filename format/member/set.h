/* SPDX-License-Identifier: MIT
 *
 * Purpose: the members of one pool: opened, identified by their superblocks in any order, locked, and refused with a
 * reason when one is missing, foreign, twice, stale, diverged, truncated or in use.
 *
 * Invariants
 *   I1  The winner is the valid superblock of the highest generation among the members of one lineage; its member table
 *       says what each member should have (design rules 19 and 20).
 *   I2  A member has diverged when its newest superblock is not of the winner's past: its epoch is not in the winner's list, or
 *       it is newer than where that epoch ended there. (Only what is older than the whole list is given the benefit of the
 *       doubt.) Otherwise it is current when its superblock names the table root that the winner names for it, or when
 *       that root is on it with the generation and CRC named (power failed between two superblocks), and stale if not.
 *   I3  Nothing is written before pf_set_write_super(); a refused pool is unchanged on disk.
 *   I4  members[id] is the member with that id; all nr_members are present after a successful open.
 *   I5  A member that fails (design rule 9) is given up for as long as the set is open: all its I/O returns -EIO at once. So what was
 *       written to it since its last good flush never counts as durable, whatever the disk says later (pitfalls 1.13). Metadata members
 *       are never all given up.
 *   I6  Changes of data are numbered (pf_set_note_data()) after their writes completed. A flush that succeeds covers the changes up
 *       to the number that it saw before it began.
 *   I7  With a guard no call takes much longer than a member may be silent (member/aio.h I4). One that is silent fails; where the pool
 *       cannot do without it, it is not given up, but all its I/O returns -EIO at once all the same. What it does later, counts nowhere.
 *
 * Uses: base, ondisk, member/io, member/aio.
 */
#ifndef PF_MEMBER_SET_H
#define PF_MEMBER_SET_H

#include "member/aio.h"
#include "ondisk/geometry.h"
#include "ondisk/super.h"

#include <pthread.h>

struct pf_member {
	unsigned id;
	struct pf_io *io;
	struct pf_geometry geo;
	uint64_t super_generation; /* of the newest superblock that lies on it; 0: none could be read (PF_SET_REPAIR) */
	bool stale;                /* let pass by PF_SET_REPAIR: what its tables say is not to be believed */
	atomic_int error;          /* why it was given up; 0: it was not */
	atomic_uint_fast64_t changed, flushed; /* numbers of the latest change on it, and of the latest that is durable (I6) */
};

struct pf_set {
	const struct pf_env *env;
	struct pf_aio *aio;
	unsigned nr;
	struct pf_member members[PF_MAX_MEMBERS];
	struct pf_super super; /* the winner, as read */
	bool read_only;
	bool may_lose; /* pf_set_allow_loss() */
	pthread_mutex_t fail_lock;
	atomic_uint failed, suspects; /* masks */
	atomic_uint_fast64_t nr_changes;
	/* silent.c */
	unsigned tick_ms;         /* what is taken for a second; 0: one. For tests */
	unsigned silence_seconds; /* 0: members are waited for as long as they take */
	bool watching, watch_stop;
	pthread_t watcher;
	pthread_mutex_t watch_lock;
	pthread_cond_t watch_stopped;
};

enum pf_set_flags {
	PF_SET_WRITE = 1,      /* lock for writing; an unknown ro-compat bit then refuses */
	PF_SET_UNLOCKED = 2,   /* read-only without a lock (status of a mounted pool) */
	PF_SET_REPAIR = 4,     /* fsck: a stale, diverged or failed member is accepted (and so marked), the caller rebuilds its maps;
	                        * one without a single good superblock is recognised by its table root */
};

/* Opens the members at @paths, in any order. Errors: those of pf_io_open(), -PF_EMEMBER_* , -PF_EFEATURE, -PF_ESB_*;
 * @diag names the member and says what to do. @out owned by the caller. */
int pf_set_open(const char *const *paths, unsigned nr_paths, unsigned flags, unsigned wait_ms,
		const struct pf_env *env, struct pf_set **out, struct pf_diag *diag);

/* The same from open backends (tests). Takes the ios, also on failure. */
int pf_set_open_ios(struct pf_io **ios, unsigned nr, unsigned flags, const struct pf_env *env, struct pf_set **out,
		    struct pf_diag *diag);

/* A new set for mkfs: ios[i] becomes member i, its geometry with a log ring of the usual size; set->super is the caller's to
 * fill. Takes the ios, also on failure. Errors: -ENOMEM, -EINVAL (number of members), -PF_EMEMBER_SMALL. */
int pf_set_new(struct pf_io **ios, unsigned nr, const struct pf_env *env, struct pf_set **out);

void pf_set_close(struct pf_set *set); /* releases the locks */

/* Newest valid superblock of one member, from both rings. @io open for reading. nr_bad: slots with our magic that do not
 * verify or do not belong where they are (may be NULL). Errors: -PF_EMEMBER_NONE (not one slot has our magic), -PF_ESB_CSUM or
 * -PF_ESB_INVALID (those that have it are damaged), -EIO, -ENOMEM. */
int pf_set_read_super(struct pf_io *io, struct pf_super *out, unsigned *nr_bad);

/* Writes @super with generation g into slot g % 8 of both rings of each member in @mask (bit = id), all in parallel. Not
 * flushed. A member fails only when both rings failed. Returns 0 or the first error; *failed (may be NULL) gets the mask
 * of failed members. */
int pf_set_write_super(struct pf_set *set, const struct pf_super *super, uint32_t mask, uint32_t *failed);

/* Flushes those members of @mask that have been written since their last flush, in parallel. One that has been given up before its
 * last writes were flushed fails. A failed flush gives its member up, where the pool can lose it (pf_set_fail()). */
int pf_set_flush(struct pf_set *set, uint32_t mask, uint32_t *failed);

/* -- members that fail (fail.c) ------------------------------------------------------------------------------------------- */
/* The pool goes on without any of its members, as long as a metadata member is left. Before threads use the set. */
void pf_set_allow_loss(struct pf_set *set);
/* Gives up members of @mask for good, and says so: @what went wrong there, and @err. Returns those of @mask that the pool cannot do
 * without (after pf_set_allow_loss() the metadata members, if all that are left are among them): they stay as they are. */
uint32_t pf_set_fail(struct pf_set *set, uint32_t mask, const char *what, int err);
/* Those given up so far. */
static inline uint32_t pf_set_failed(const struct pf_set *set)
{
	return atomic_load(&set->failed);
}
/* Copies of a node that is written now: pf_super_node_copies() of what is left. */
unsigned pf_set_node_copies(const struct pf_set *set);

/* -- members that do not answer (silent.c) -------------------------------------------------------------------------------------- */
/* From now on a member may be silent for @seconds (0: no limit). Before threads use the set. */
void pf_set_guard(struct pf_set *set, unsigned seconds);
/* A second has passed. */
void pf_set_tick(struct pf_set *set);
/* A thread that says so each second, until the set is closed. -errno. */
int pf_set_start_watch(struct pf_set *set);
void pf_set_stop_watch(struct pf_set *set);

/* A read or write there failed: the next checkpoint writes to it, and finds out whether it is there at all. */
static inline void pf_set_suspect(struct pf_set *set, unsigned id)
{
	if (set->may_lose && id < set->nr)
		atomic_fetch_or(&set->suspects, UINT32_C(1) << id);
}
uint32_t pf_set_take_suspects(struct pf_set *set);

/* Data was written to the members of @mask, and now becomes visible: the number of this change (I6). */
uint64_t pf_set_note_data(struct pf_set *set, uint32_t mask);
/* Members of @mask on which change @nr need not be durable yet; together with pf_set_failed(): never will be. */
uint32_t pf_set_unflushed(const struct pf_set *set, uint32_t mask, uint64_t nr);
/* Members that were given up before all data on them was durable. */
uint32_t pf_set_lost(const struct pf_set *set);

/* Block I/O by address. @buf aligned. Errors: -EIO (also: address out of the member), -ENOSPC. */
int pf_set_read(struct pf_set *set, pf_addr addr, void *buf, uint64_t nr_blocks);
int pf_set_write(struct pf_set *set, pf_addr addr, const void *buf, uint64_t nr_blocks);

/* Fills one request for pf_aio_run(set->aio, ...). */
void pf_set_req(struct pf_set *set, struct pf_aio_req *req, enum pf_aio_op op, pf_addr addr, void *buf,
		uint64_t nr_blocks);

/* True when [addr, addr + nr_blocks) lies in the data area of a member. */
bool pf_set_addr_valid(const struct pf_set *set, pf_addr addr, uint64_t nr_blocks);

#endif
