/* SPDX-License-Identifier: MIT
 *
 * Purpose: the only door to a disk. Everything that the engine reads or writes passes one struct pf_io; backends are
 * an image file or block device (io_file.c) and, in tests, a disk in memory that records, fails, tears and loses.
 *
 * Invariants
 *   I1  Offsets and lengths are multiples of PF_BLOCK_SIZE; buffers are aligned to it. So O_DIRECT always fits.
 *   I2  A call transfers everything or fails: -ENOSPC when the host filesystem of an image is full, -EIO for every
 *       other failure whatever errno the system gave (the backend logs the original).
 *   I3  flush() covers the writes that were *completed* before it was called, and no others.
 *   I4  After flush() failed once it fails for ever: the kernel may have dropped the pages that it could not write,
 *       so a later success would prove nothing (design-pitfalls 1.13).
 *   I5  Any number of threads may call any of these at the same time.
 *   I6  nr_writes counts a write after it completed and before its caller learns of it; a flush that succeeded moves
 *       nr_writes_durable up to the count that it saw before it began. So a member that is not pf_io_dirty() has nothing
 *       that a flush could make durable, also while another thread flushes it, and one whose flush failed stays dirty.
 *   I7  The wrappers below and member/aio.c are the only callers of the ops; they keep the counters.
 *   I8  An io that was given up ('failed') gets no call any more: everything returns -EIO at once, and counts nowhere.
 *   I9  Under a guard (member/aio.h) a call may return -EIO although the backend is still at it; then it has no claim on the buffer
 *       that the caller gave, and what it does later counts nowhere.
 *
 * Uses: base.
 */
#ifndef PF_MEMBER_IO_H
#define PF_MEMBER_IO_H

#include "base/env.h"
#include "base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pf_io;
struct pf_aio;

struct pf_io_ops {
	int (*read)(struct pf_io *io, uint64_t off_bytes, void *buf, size_t len_bytes);
	int (*write)(struct pf_io *io, uint64_t off_bytes, const void *buf, size_t len_bytes);
	int (*flush)(struct pf_io *io);
	/* Tells that the content is not needed; it is undefined afterwards. -EOPNOTSUPP: the backend cannot do it. */
	int (*discard)(struct pf_io *io, uint64_t off_bytes, uint64_t len_bytes);
	/* Makes the host allocate the range, so that later writes cannot meet ENOSPC. Keeps the content. 0 also
	 * where the backend cannot do it. */
	int (*allocate)(struct pf_io *io, uint64_t off_bytes, uint64_t len_bytes);
	void (*close)(struct pf_io *io);
};

enum pf_io_kind { PF_IO_FILE, PF_IO_BLOCK_DEVICE, PF_IO_MEMORY };
enum pf_io_call { PF_IO_READ, PF_IO_WRITE, PF_IO_FLUSH, PF_IO_DISCARD, PF_IO_ALLOCATE };

struct pf_io {
	const struct pf_io_ops *ops;
	char *name;           /* path as the user gave it; owned */
	uint64_t size_bytes;
	enum pf_io_kind kind;
	bool read_only;
	bool direct;          /* O_DIRECT is in use */
	bool sparse;          /* an image file: its host had allocated less than its size when it was opened */
	int fd;               /* of io_file.c, usable by io_uring; -1: call the ops */
	uint64_t host_dev;    /* st_dev of an image file's filesystem, else 0 */
	atomic_uint_fast64_t nr_reads, nr_writes, nr_writes_durable, nr_flushes, bytes_read, bytes_written;
	atomic_uint_fast64_t nr_errors; /* failed transfers and flushes, and blocks that did not match their checksum */
	atomic_bool failed;             /* for good (member/set.h I5) */
	struct pf_aio *guard;           /* who sees to it that no call is waited for for ever; NULL: nobody */
	atomic_bool silent;             /* it did not answer in time: who waits for it goes on */
	/* of the guard; the last three under its lock or its tick only */
	atomic_uint nr_in_flight, nr_flushing, nr_ended;
	unsigned nr_ended_seen, nr_quiet, nr_lost;
	bool close_late;
};

/* One call under the guard. */
int pf_io_guarded(struct pf_io *io, enum pf_io_call call, uint64_t off_bytes, void *buf, uint64_t len_bytes);

static inline bool pf_io_failed(struct pf_io *io)
{
	return atomic_load_explicit(&io->failed, memory_order_acquire);
}
static inline bool pf_io_silent(struct pf_io *io)
{
	return atomic_load_explicit(&io->silent, memory_order_acquire);
}
static inline void pf_io_account_error(struct pf_io *io)
{
	atomic_fetch_add_explicit(&io->nr_errors, 1, memory_order_relaxed);
}
/* Bookkeeping of one completed transfer, for the wrappers and aio.c. A failed write counts too: part of it may be there. */
static inline void pf_io_account_read(struct pf_io *io, size_t len_bytes, int err)
{
	if (err)
		pf_io_account_error(io);
	atomic_fetch_add_explicit(&io->nr_reads, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&io->bytes_read, len_bytes, memory_order_relaxed);
}
static inline void pf_io_account_write(struct pf_io *io, size_t len_bytes, int err)
{
	if (err)
		pf_io_account_error(io);
	atomic_fetch_add(&io->nr_writes, 1);
	atomic_fetch_add_explicit(&io->bytes_written, len_bytes, memory_order_relaxed);
}
static inline bool pf_io_dirty(struct pf_io *io)
{
	return atomic_load(&io->nr_writes) != atomic_load(&io->nr_writes_durable);
}
/* Around a flush (I6): what begin returned goes to end, with the result of the flush. */
static inline uint64_t pf_io_account_flush_begin(struct pf_io *io)
{
	atomic_fetch_add_explicit(&io->nr_flushes, 1, memory_order_relaxed);
	return atomic_load(&io->nr_writes);
}
static inline void pf_io_account_flush_end(struct pf_io *io, uint64_t nr_writes, int err)
{
	uint_fast64_t durable = atomic_load(&io->nr_writes_durable);
	if (err)
		pf_io_account_error(io);
	while (!err && durable < nr_writes &&
	       !atomic_compare_exchange_weak(&io->nr_writes_durable, &durable, nr_writes))
		;
}

static inline int pf_io_read(struct pf_io *io, uint64_t off_bytes, void *buf, size_t len_bytes)
{
	if (pf_io_failed(io))
		return -EIO;
	if (io->guard)
		return pf_io_guarded(io, PF_IO_READ, off_bytes, buf, len_bytes);
	int err = io->ops->read(io, off_bytes, buf, len_bytes);
	pf_io_account_read(io, len_bytes, err);
	return err;
}
static inline int pf_io_write(struct pf_io *io, uint64_t off_bytes, const void *buf, size_t len_bytes)
{
	if (pf_io_failed(io))
		return -EIO;
	if (io->guard)
		return pf_io_guarded(io, PF_IO_WRITE, off_bytes, (void *)(uintptr_t)buf, len_bytes);
	int err = io->ops->write(io, off_bytes, buf, len_bytes);
	pf_io_account_write(io, len_bytes, err);
	return err;
}
static inline int pf_io_flush(struct pf_io *io)
{
	if (pf_io_failed(io))
		return -EIO;
	if (io->guard)
		return pf_io_guarded(io, PF_IO_FLUSH, 0, NULL, 0);
	uint64_t nr_writes = pf_io_account_flush_begin(io);
	int err = io->ops->flush(io);
	pf_io_account_flush_end(io, nr_writes, err);
	return err;
}
static inline int pf_io_discard(struct pf_io *io, uint64_t off_bytes, uint64_t len_bytes)
{
	if (pf_io_failed(io))
		return -EIO;
	return io->guard ? pf_io_guarded(io, PF_IO_DISCARD, off_bytes, NULL, len_bytes) : io->ops->discard(io, off_bytes, len_bytes);
}
static inline int pf_io_allocate(struct pf_io *io, uint64_t off_bytes, uint64_t len_bytes)
{
	if (pf_io_failed(io))
		return -EIO;
	return io->guard ? pf_io_guarded(io, PF_IO_ALLOCATE, off_bytes, NULL, len_bytes) : io->ops->allocate(io, off_bytes, len_bytes);
}
static inline void pf_io_close(struct pf_io *io)
{
	if (io)
		io->ops->close(io);
}

/* Opens an image file or block device. PF_IO_OPEN_WRITE takes the member for ourselves: O_EXCL on a block device, an
 * exclusive advisory lock (flock) on a file; a read-only open takes a shared lock, unless PF_IO_OPEN_UNLOCKED.
 * @wait_ms: how long to wait for a lock that another process holds (a daemon that is just finishing).
 * O_DIRECT is used where the member takes it, unless PF_IO_OPEN_BUFFERED. @env must live as long as the io.
 * Errors: -ENOENT, -EACCES, -EROFS ..., -PF_EMEMBER_BUSY, -PF_EMEMBER_SECTOR, -EINVAL (neither file nor block device),
 * each with @diag saying what, where and what to do. */
enum pf_io_open_flags { PF_IO_OPEN_WRITE = 1, PF_IO_OPEN_UNLOCKED = 2, PF_IO_OPEN_BUFFERED = 4 };
int pf_io_open(const char *path, int flags, unsigned wait_ms, const struct pf_env *env, struct pf_io **out,
	       struct pf_diag *diag);

#endif
