/* SPDX-License-Identifier: MIT
 *
 * Purpose: inodes in memory: found by number, loaded from the tree, kept while somebody uses them. Private to format/.
 *
 * Invariants
 *   I1  There is at most one struct pf_inode per number. It enters the cache before its item can be seen in the tree.
 *   I2  References (what the kernel holds) are counted in a table of numbers, so a million of them cost 16 bytes each;
 *       structs are kept only while pinned, while they have staged blocks (the staging list pins them), while they are
 *       orphans, and a bounded number more for speed.
 *   I3  'item' is what a user sees. The tree has the same, except that size, times and blocks of writes that are still staged
 *       reach it with their data, in one transaction: the tree shows each file at one point of its own history. 'tree_size'
 *       is the size that belongs to the data in the tree.
 *   I4  An orphan (nlink 0) is deleted when its last pin and its last reference are gone; 'dead' is then set under the cache
 *       lock, and nobody can get it any more.
 *   I5  Nobody but its creator can get an inode that is not in the tree yet ('unborn'), even by a number that was guessed (a file
 *       handle from before a crash): its creation may still fail.
 *   I6  What an fsync must know of an inode that leaves the cache and comes back is remembered (object/evicted.h).
 *   I7  While records are being redone, orphans are kept: a later record may give them a name.
 *
 *   I8  A 'busy' inode has staged blocks on their way to the members, outside of its lock: it is read as ever, and nobody locks it
 *       exclusively but who ends that (pf_inode_lock_busy()) and, while it is only being drained, who stages more; that one never
 *       waits for a checkpoint, which may have to wait for the drain.
 *
 * Locks: inode->lock guards item and everything staged. Cache lock inside. See block/engine.h I1 for the order. A read of data is in a
 * hold of it only until it has looked up everything (block/read.h): who has the lock exclusively may meet reads of an earlier state.
 * Uses: block, ondisk/item.
 */
#ifndef PF_OBJECT_INODE_H
#define PF_OBJECT_INODE_H

#include "block/engine.h"
#include "block/write.h"
#include "object/dirty.h"
#include "object/failed.h"
#include "object/posix.h"
#include "ondisk/item.h"

#include <semaphore.h>

struct pf_stage;

/* Why an inode may not leave the cache, and a way to find such ones. */
enum pf_mark {
	PF_MARK_OWES,   /* something is unfinished (orphan.h I5) */
	PF_MARK_FAILED, /* ranges could not be written (failed.h) */
	PF_MARK_UNTOLD, /* and the kernel does not know yet */
	PF_MARKS
};

enum pf_known { PF_UNKNOWN, PF_ABSENT, PF_PRESENT };

enum pf_busy {
	PF_IDLE,
	PF_COMMITTING, /* with the log, for an fsync: stage.h, pf_stage_commit_begin() */
	PF_DRAINING,   /* drain.h */
};

struct pf_inode {
	uint64_t ino;
	uint32_t type; /* S_IFMT bits, never changing: may be read without the lock */
	pthread_rwlock_t lock; /* exclusively: pf_inode_lock() */
	enum pf_busy busy;     /* under the exclusive lock */
	sem_t idle;            /* 0 while it is not, for those who wait */
	struct pf_inode_item item; /* but for the size (failed.h I2) what a user sees */
	uint64_t tree_size;
	struct pf_place place;
	struct pf_stage *stage;  /* NULL: nothing staged, but for */
	struct pf_stage *sealed; /* what is being drained, or could not be: older, and not changed any more */
	struct pf_dirty dirty;  /* what is in the tree and not durable; with a log only */
	struct pf_inode *staged_prev, *staged_next;
	atomic_uint nr_syncing;    /* fsyncs of this inode under way */
	uint8_t nr_written;        /* writes since the last fsync, and */
	uint8_t nr_in_step;        /* how many fsyncs in a row had exactly one before them; both stop at 255 */
	int write_error;           /* of staged blocks that could not be written: fsync tells (and clears on rewrite) */
	struct pf_failed failed;   /* what a program believes written (failed.h) */
	enum pf_known capability;  /* whether security.capability is set */
	struct { /* it goes before the file changes again (orphan.h I5) */
		uint64_t seq, from, to;                /* seq 0: no blocks to be taken out */
		uint64_t fill_from, fill_to, promised; /* promised 0: none to be put in */
	} unfinished;
	/* under the cache lock */
	struct pf_inode *hash_next, *lru_prev, *lru_next;
	unsigned pins;
	unsigned marks; /* 1 << enum pf_mark; also under the inode lock */
	bool orphan, dead, in_lru;
	atomic_bool unborn; /* cleared under the exclusive tree lock */
};

int pf_icache_create(struct pf_icache **out);
void pf_icache_destroy(struct pf_icache *cache); /* drops everything, staged blocks too */

/* The checkpoint of @generation is durable: numbers that were remembered for it (I6) are forgotten. */
void pf_icache_durable(struct pf_pool *pool, uint64_t generation);

/* Finds or loads; pinned until pf_inode_put(). -ESTALE: no such inode. -EIO, damage codes, -ENOMEM. */
int pf_inode_get(struct pf_pool *pool, uint64_t ino, struct pf_inode **out);
/* A struct for an inode about to be created, pinned. Then pf_inode_born() when all of it has entered the tree, before that lock is
 * released; or pf_inode_abort() when its creation failed. */
int pf_inode_new(struct pf_pool *pool, uint64_t ino, const struct pf_inode_item *item, struct pf_inode **out);
void pf_inode_born(struct pf_inode *inode);
void pf_inode_abort(struct pf_pool *pool, struct pf_inode *inode);
void pf_inode_pin(struct pf_pool *pool, struct pf_inode *inode);
/* NULL is ignored. May delete an orphan: no inode lock held, names_lock may be. */
void pf_inode_put(struct pf_pool *pool, struct pf_inode *inode);

/* Gives back a pin without looking whether it was the last (the caller has another, or the pool is being freed): the inode lock
 * may be held. */
void pf_inode_unpin(struct pf_pool *pool, struct pf_inode *inode);

/* One reference more (posix.h I4). The inode is pinned. */
int pf_inode_ref(struct pf_pool *pool, struct pf_inode *inode);
/* It is not handed out after all. */
void pf_inode_unref(struct pf_pool *pool, struct pf_inode *inode);
/* The inode has lost its last name, or gained one again (an unnamed file). */
void pf_inode_set_orphan(struct pf_pool *pool, struct pf_inode *inode, bool orphan);

/* A mark holds a pin. Exclusive inode lock; the caller has another pin. */
void pf_inode_mark(struct pf_pool *pool, struct pf_inode *inode, enum pf_mark mark, bool on);
/* The inode lock is held, or the cache lock. */
static inline bool pf_inode_is_marked(const struct pf_inode *inode, enum pf_mark mark)
{
	return inode->marks >> mark & 1;
}
/* Up to @max inodes with that mark, pinned. Returns how many. */
unsigned pf_icache_marked(struct pf_pool *pool, enum pf_mark mark, struct pf_inode **inodes, unsigned max);
unsigned pf_icache_nr_marked(struct pf_pool *pool, enum pf_mark mark);

/* Nobody has a name or a reference any more: what is staged need not be written. */
bool pf_inode_is_abandoned(struct pf_pool *pool, const struct pf_inode *inode);

/* Exclusively, when it is idle. Waiting for a drain that nobody has begun means to do it. */
void pf_inode_lock(struct pf_pool *pool, struct pf_inode *inode);
/* Exclusively, when it is not in the state @but. */
void pf_inode_lock_unless(struct pf_pool *pool, struct pf_inode *inode, enum pf_busy but);
/* I8. Exclusive lock held, which the second has got, in whatever thread, by pf_inode_lock_busy(). */
void pf_inode_begin(struct pf_inode *inode, enum pf_busy busy);
void pf_inode_end(struct pf_inode *inode);
void pf_inode_lock_busy(struct pf_inode *inode);

/* Locks several exclusively in the order of their numbers; NULLs and doubles are skipped. */
void pf_inode_lock_all(struct pf_pool *pool, struct pf_inode **inodes, unsigned nr);
void pf_inode_unlock_all(struct pf_inode **inodes, unsigned nr);

/* Inside a transaction that wanted pf_key_inode(ino): the item of the tree becomes that of memory, with tree_size, and with @times
 * unless NULL. */
struct pf_times {
	struct timespec mtime, ctime;
};
void pf_inode_store_with(struct pf_txn *txn, const struct pf_inode *inode, const struct pf_times *times);
void pf_inode_store(struct pf_txn *txn, const struct pf_inode *inode);
void pf_inode_want(struct pf_txn *txn, uint64_t ino);

/* Caller holds the lock (shared is enough). */
void pf_inode_attr(const struct pf_inode *inode, struct pf_attr *attr);

/* A copy of the item, taken under the lock. */
struct pf_inode_item pf_inode_look(struct pf_inode *inode);

struct timespec pf_inode_now(struct pf_pool *pool);

static inline bool pf_inode_is_dir(const struct pf_inode *inode)
{
	return inode->type == 0040000;
}
static inline bool pf_inode_is_symlink(const struct pf_inode *inode)
{
	return inode->type == 0120000;
}
static inline bool pf_inode_is_file(const struct pf_inode *inode)
{
	return inode->type == 0100000;
}

#endif
