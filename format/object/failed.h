/* SPDX-License-Identifier: MIT
 *
 * Purpose: what a program believes written and the pool has not: ranges of files that were written with PF_WRITE_BACK (from the
 * kernel's cache, after write(2) had succeeded) in vain.
 *
 * Invariants
 *   I1  Reading such a range is an error, and so is every fsync of the file, until all of it has been written, truncated away, punched
 *       or zeroed, or the pool is opened anew: no reader takes what the file had before, or zeros, for what was written last.
 *       SEEK_DATA finds it. All else in the file is read as ever.
 *   I2  The file is shown as long as its writer believes (pf_failed_size()). What is stored is what the pool has, and is shown when it
 *       is opened anew.
 *   I3  Memory is bounded: RANGES_MAX ranges in a file, POOL_RANGES_MAX in all (with more, neighbours become one, and what is between
 *       them cannot be read either; nor what is written again in the middle of one), and FILES_MAX files. What fails in further files,
 *       or of an inode that cannot be loaded, is not listed: it reads as what the pool has, and until the pool is opened anew every
 *       fsync reports it, of whatever file.
 *   I4  An inode with such ranges is in the cache (PF_MARK_FAILED).
 *
 * Locks: the inode lock, exclusively where the inode is not const. Uses: object/inode.
 */
#ifndef PF_OBJECT_FAILED_H
#define PF_OBJECT_FAILED_H

#include <stdbool.h>
#include <stdint.h>

struct pf_inode;
struct pf_pool;

struct pf_failed_range {
	uint64_t from, to; /* bytes, half open */
};

struct pf_failed {
	unsigned nr, cap;
	struct pf_failed_range *ranges; /* ascending, not touching; NULL: 'first' is the only one */
	struct pf_failed_range first;
	struct pf_failed_range untold; /* hull of what the kernel does not know */
	int err;                       /* of the last one */
};

void pf_failed_init(struct pf_failed *failed);
void pf_failed_free(struct pf_failed *failed);

/* [from, to) of the file could not be written: @err. No inode lock held. Never fails (I3). */
void pf_failed_note(struct pf_pool *pool, uint64_t ino, uint64_t from, uint64_t to, int err);
/* [from, to) is what it should be, or not part of the file any more. */
void pf_failed_clear(struct pf_pool *pool, struct pf_inode *inode, uint64_t from, uint64_t to);

/* The size that a user sees. */
uint64_t pf_failed_size(const struct pf_inode *inode);
/* -EIO when there is any of it in [from, to). */
int pf_failed_read(const struct pf_inode *inode, uint64_t from, uint64_t to);
/* The first block >= @block with any of it. False: none. */
bool pf_failed_next(const struct pf_inode *inode, uint64_t block, uint64_t *found);
/* What an fsync has to report: 0, or the error. */
int pf_failed_sync(struct pf_pool *pool, const struct pf_inode *inode);

#endif
