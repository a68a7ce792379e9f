/* SPDX-License-Identifier: MIT
 *
 * Purpose: what the engine takes from outside: time, randomness, a place for messages. A test passes a virtual
 * clock and a seeded generator, and every run is the same run.
 *
 * Invariants
 *   I1  The engine never calls clock_gettime(), getrandom() or printf() itself.
 *   I2  break_rules is 0 outside tests: each bit leaves one ordering rule of docs/DESIGN.md out, so that the crash
 *       explorer can show that it would notice.
 *
 * Uses: nothing.
 */
#ifndef PF_BASE_ENV_H
#define PF_BASE_ENV_H

#include <stdbool.h>
#include <stdint.h>

enum pf_log_level { PF_LOG_ERROR, PF_LOG_WARNING, PF_LOG_INFO, PF_LOG_DEBUG };

/* One bit for each arrow of the checkpoint, for each rule of freed space (docs/DESIGN.md, "The checkpoint") and of the log. */
enum pf_break {
	PF_BREAK_FLUSH_BEFORE_SUPER = 1 << 0,  /* superblocks are written without flushing nodes, maps and data */
	PF_BREAK_FLUSH_ONE_MEMBER = 1 << 1,    /* the flush before the superblocks forgets the last member */
	PF_BREAK_FLUSH_AFTER_SUPER = 1 << 2,   /* durable is announced without flushing the superblocks */
	PF_BREAK_FLUSH_BEFORE_NODES = 1 << 3,  /* the first flush comes before the nodes are written */
	PF_BREAK_FLUSH_BEFORE_MAPS = 1 << 4,   /* the first flush comes before maps and tables are written */
	PF_BREAK_REUSE_BEFORE_DURABLE = 1 << 5, /* freed blocks are allocatable at once */
	PF_BREAK_MAP_BEFORE_DATA = 1 << 6,     /* a mapping enters the tree before its data is written */
	PF_BREAK_MAP_IN_PLACE = 1 << 7,        /* a map is written over the slot that the committed table names */
	PF_BREAK_MAP_OF_NEXT_TXG = 1 << 8,     /* the map of G contains allocations of G+1 */
	PF_BREAK_HALF_OPERATION = 1 << 9,      /* a checkpoint falls between two tree changes of one operation */
	PF_BREAK_FLUSH_BEFORE_COMPLETION = 1 << 10, /* the last flush is issued before the superblock write completed */
	PF_BREAK_LOG_NO_FLUSH = 1 << 11,       /* a commit is acknowledged without a flush */
	PF_BREAK_LOG_FLUSH_EARLY = 1 << 12,    /* a commit flushes before the log blocks are written */
	PF_BREAK_LOG_SKIP_DATA_MEMBERS = 1 << 13, /* a commit flushes the log members only */
	PF_BREAK_LOG_OLD_EPOCH = 1 << 14,      /* the scan takes blocks of other epochs too */
	PF_BREAK_LOG_REWRITE = 1 << 15,        /* a commit writes its last block again when more is in it */
	PF_BREAK_LOG_START_EARLY = 1 << 16,    /* what is before the freeze is given up before the superblock is durable */
	PF_BREAK_LOG_OVERRUN = 1 << 17,        /* the ring is written over what a replay still needs */
	PF_BREAK_LOG_IGNORES_GAP = 1 << 18,    /* commits go on after a record was lost */
	PF_BREAK_LOG_START_LATE = 1 << 19,     /* the superblock lets the log begin a block after the freeze */
	PF_BREAK_LOG_ONE_COPY = 1 << 20,       /* the second log member gets no blocks */
	PF_BREAK_LOG_PROVES_EARLY = 1 << 21,   /* a block says of those that are written with it that they are durable */
	PF_BREAK_REPLAY_CHECKPOINT = 1 << 22,  /* checkpoints between the records that are redone (pitfalls 1.9) */
	PF_BREAK_REPLAY_OLD_EPOCH = 1 << 23,   /* a mount goes on under the epoch of the one before (pitfalls 1.7) */
	PF_BREAK_REPLAY_UNVERIFIED = 1 << 24,  /* file records that were not promised are redone without looking at their data */
	PF_BREAK_RENAME_BEFORE_DATA = 1 << 25, /* rename without the record of a file's undurable data (rule 6) */
	PF_BREAK_FSYNC_FORGETS_FROZEN = 1 << 26, /* an fsync leaves out what the checkpoint under way has (pitfalls 1.10) */
	PF_BREAK_LOG_FORGETS_DATA_ID = 1 << 27, /* a file record of another data id is redone on the data that is there */
	PF_BREAK_REPLAY_UNCLAIMED = 1 << 28,   /* blocks that records name stay free in replay */
	PF_BREAK_DISCARD_EARLY = 1 << 29,      /* blocks are discarded when they are freed, not when that is durable */
	PF_BREAK_FAILURE_UNRECORDED = 1 << 30, /* promises go on although no superblock says that a member has failed */
	PF_BREAK_FAILURE_FORGOTTEN = 1u << 31, /* an fsync does not look whether a failed member took data with it */
	PF_BREAK_DRAIN_IN_PARTS = 1ull << 32,  /* a checkpoint falls between two parts of the mapping of a drain */
};

struct pf_env {
	int64_t (*now_ns)(void *arg);      /* real time, ns since 1970 */
	uint64_t (*random64)(void *arg);   /* unpredictable outside tests */
	void (*log)(void *arg, enum pf_log_level level, const char *message); /* one line, no newline */
	/* The calling thread begins to wait for disks as part of an fsync, or has done so. Calls may be nested. NULL: nobody wants to know. */
	void (*waits)(void *arg, bool begins);
	void *arg;
	uint64_t break_rules;              /* enum pf_break */
};

/* System clock, getrandom(2), messages dropped. Static storage. */
const struct pf_env *pf_env_system(void);

void pf_log(const struct pf_env *env, enum pf_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static inline int64_t pf_now_ns(const struct pf_env *env)
{
	return env->now_ns(env->arg);
}
static inline void pf_env_waits(const struct pf_env *env, bool begins)
{
	if (env->waits)
		env->waits(env->arg, begins);
}
static inline int pf_breaks(const struct pf_env *env, uint64_t rule)
{
	return __builtin_expect((env->break_rules & rule) != 0, 0);
}

#endif
