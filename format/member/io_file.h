/* SPDX-License-Identifier: MIT
 *
 * Purpose: what member/aio.c needs to know about an io with a descriptor: its transfers through io_uring must report,
 * allocate and flush exactly as the ops of io_file.c do. Private to member/.
 *
 * Invariants
 *   I1  Every io whose fd is not -1 was made by pf_io_open().
 *   I2  One flush at a time per member: the kernel reports a writeback error to one caller of fdatasync() only, so a flush
 *       that overlaps a failing one would be told of success (io.h I4). A flush that is lost keeps its place for ever.
 *
 * Uses: member/io.
 */
#ifndef PF_MEMBER_IO_FILE_H
#define PF_MEMBER_IO_FILE_H

#include "member/io.h"

/* Before a write: refuses what lies past the end, makes the host allocate what the page cache could not be sure of.
 * 0, -ENOSPC, -EIO. */
int pf_io_file_prepare_write(struct pf_io *io, uint64_t off_bytes, size_t len_bytes);

/* Is prepared already: pf_io_file_prepare_write() would ask nobody. */
bool pf_io_file_prepared(struct pf_io *io, uint64_t off_bytes, size_t len_bytes);

/* Logs what the system said (@sys_err: -errno) and maps it (io.h I2). @what: "read", "write" ... */
int pf_io_file_error(struct pf_io *io, const char *what, uint64_t off_bytes, uint64_t len_bytes, int sys_err);

/* Waits for the flush under way, and begins one: 0, or the error of a flush that failed earlier, or -EIO for an io that failed
 * meanwhile, and then none has begun. */
int pf_io_file_flush_lock(struct pf_io *io);
/* Judges the result of the flush (@sys_err: 0 or -errno) once and for all, and ends it. */
int pf_io_file_flush_unlock(struct pf_io *io, int sys_err);
/* The one begun has not been done at all. */
void pf_io_file_flush_cancel(struct pf_io *io);
/* Who waits for a flush of an io that has failed goes on. */
void pf_io_file_wake(struct pf_io *io);

#endif
