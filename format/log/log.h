/* SPDX-License-Identifier: MIT
 *
 * Purpose: the intent log as a ring of blocks on the log members: records go in in order, a commit makes them durable together
 * with the data that they name, by one round of writes and one of flushes (design rules 1, 3, 7, 8). It does not know what
 * records mean. Who reads it after a crash: log/log_scan.h.
 *
 * LSNs number blocks. 'open' is the block that is being filled; 'start' where the log begins that the committed superblock
 * names. The ring has room for start + ring.
 *
 *	start        durable      written       sealed       open
 *	  |--promised---|--on disk---|--in memory--|--filling--|
 *
 * Invariants
 *   I1  Records go to disk in the order of pf_log_append(), in blocks that are never written twice: each commit closes the open
 *       block first (rule 1). All log members get the same bytes at the same LSN.
 *   I2  pf_log_append() never fails and never waits for I/O, for it runs where nothing may fail. What cannot be taken (no room in
 *       the ring, no memory, a record longer than pf_log_max_record()) is lost and opens a gap.
 *   I3  After a gap, and after a write that failed, nothing is promised (-EAGAIN) until a checkpoint that was frozen later is
 *       durable. The LSN after the gap is left out, so that a replay from before it ends there.
 *   I4  pf_log_commit() returns 0 when every record appended before its call is on all log members, every block that those
 *       records name was written (by the caller before append, or by the commit: struct pf_log_writes), and then each of these
 *       members was flushed. A flush is issued after completion of every write that it covers (pitfalls 1.12). Data that could
 *       not be written opens a gap, as a log block that could not.
 *   I5  A commit serves all who wait; those who come while one is under way share the next one. Who waits without a thread (struct
 *       pf_log_wait) is served by the thread that makes the commit: while anybody waits, somebody is at it.
 *   I6  The space before 'start' is written again only after pf_log_release() (pitfalls 1.16).
 *   I7  A failed flush is final (pitfalls 1.13). If its member could be given up (member/set.h I5) it opens a gap: the checkpoint that
 *       says so makes the promises. Else pf_log_commit() returns -EIO, now and ever after, and the caller fails the pool. A failed
 *       write opens a gap.
 *   I8  The members of the log change behind a gap only, with the freeze that closes it: what was written to the others before is not
 *       needed after it.
 *
 * Locks: one mutex inside, never held across I/O; append may be called under the tree lock or an inode lock.
 * Uses: base, ondisk, member.
 */
#ifndef PF_LOG_H
#define PF_LOG_H

#include "member/set.h"

struct pf_log;

/* A log that begins at @first_lsn, on the members that @super names as log members, in blocks of epoch @epoch. Writes nothing.
 * All of these are there. Errors: -ENOMEM, -EINVAL (it names none). @set outlives it. */
int pf_log_open(struct pf_set *set, const struct pf_super *super, uint64_t epoch, uint64_t first_lsn,
		struct pf_log **out);
void pf_log_close(struct pf_log *log); /* what is not written is dropped; NULL is ignored */

/* The ring of the log members, in blocks; 0: @super names none. The same for writing and for reading. */
uint32_t pf_log_ring_blocks(const struct pf_set *set, const struct pf_super *super);
/* Members on which the log lies, as a mask. */
uint32_t pf_log_mask(const struct pf_super *super);

/* Puts the log of @super on its first two metadata members that have not failed, or the only one. */
void pf_log_place(struct pf_super *super);

/* Longest record, in bytes: an eighth of the ring (rule 5). */
uint64_t pf_log_max_record(const struct pf_log *log);

struct pf_log_part {
	const void *data;
	size_t len;
};
/* Appends one record, given in parts of together a multiple of 8 bytes, its head included. @data_members: mask of the members
 * on which data lies that it names and that may not be durable yet. False: lost (I2). */
bool pf_log_append(struct pf_log *log, const struct pf_log_part *parts, unsigned nr, uint32_t data_members);
/* Writes of data that a commit makes together with the block of the record that names them: one round for both. */
struct pf_log_writes {
	struct pf_aio_req *reqs; /* the caller's, until pf_log_commit() has returned or pf_log_take_back() */
	unsigned nr;
	bool done; /* they have been run; results are in the requests */
	struct pf_log_writes *next;
};
/* Appends, and leaves the writes of the data that the record names to the commit. */
bool pf_log_append_with(struct pf_log *log, const struct pf_log_part *parts, unsigned nr, uint32_t data_members,
			struct pf_log_writes *writes);
/* After a commit that promised nothing, or an append that lost the record: nobody but the caller knows of them any more. They have
 * been run (done), or never will be. */
void pf_log_take_back(struct pf_log *log, struct pf_log_writes *writes);

/* The caller has something that it cannot put into the log: a gap (I3). */
void pf_log_lose(struct pf_log *log);

/* Makes everything appended so far durable. 0; -EAGAIN: by a checkpoint only (I3); -EIO (I7). No locks held but inode locks. */
int pf_log_commit(struct pf_log *log);

/* The same for a caller who goes on meanwhile. */
struct pf_log_wait {
	/* Called when 'result' is what pf_log_commit() would have returned, in the thread of whoever made the commit, which may be the
	 * caller's before pf_log_commit_start() returns. No locks held. While it returns true it is called again, each time after
	 * all others that wait for the same commit: so a reply need not wait for the work that others have with theirs, nor
	 * work that waits for a checkpoint stand in the way of what the checkpoint waits for. Then it is the caller's again. */
	bool (*done)(struct pf_log_wait *wait);
	int result;
	uint64_t target; /* this and the next are the log's */
	struct pf_log_wait *next;
};
/* No locks held. @meanwhile is done when the writes of the commit are under way, at the latest before it returns, and before any 'done' is
 * called. NULL: nothing. */
void pf_log_commit_start(struct pf_log *log, struct pf_log_wait *wait, struct pf_meanwhile *meanwhile);

/* Writes closed blocks out when many have gathered, without flushing, so that memory stays bounded and a commit short. Failures
 * show in the next commit. No locks held. */
void pf_log_write_behind(struct pf_log *log);

/* The ring is half full: a checkpoint should begin (rule 16). */
bool pf_log_wants_checkpoint(struct pf_log *log);

/* -- checkpoint -------------------------------------------------------------------------------------------------------- */
/* Under the exclusive tree lock: closes the open block. Returns T: what is appended from now on has LSNs >= T. */
uint64_t pf_log_freeze(struct pf_log *log);
/* From here on the log lies on the log members of @super. If these are others than before, a gap has been opened since a member
 * failed, and a freeze that closes it follows (I8). */
void pf_log_move(struct pf_log *log, const struct pf_super *super);
uint64_t pf_log_epoch(const struct pf_log *log); /* in which blocks are written */
/* The checkpoint whose freeze returned @start is durable on all metadata members: blocks before it are free (I6), what they
 * promised is durable by it, and gaps before it are closed. */
void pf_log_release(struct pf_log *log, uint64_t start);

struct pf_log_stats {
	uint64_t start, durable, written, open; /* LSNs */
	uint32_t ring_blocks;
	uint64_t nr_commits, nr_waiters; /* commits done, and callers that they served */
	uint64_t nr_records, nr_lost;
	uint64_t blocks_written; /* on one copy */
};
void pf_log_stats(struct pf_log *log, struct pf_log_stats *out);

#endif
