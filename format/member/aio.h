/* SPDX-License-Identifier: MIT
 *
 * Purpose: many requests to many members in flight at once, over io_uring where the member has a descriptor and the
 * kernel offers it; one by one through the ops otherwise (so that tests in memory are deterministic).
 *
 * Invariants
 *   I1  When pf_aio_run() returns, every request has completed (or is lost, I4) and its result is set: 0 or a negative code (io.h I2).
 *   I2  Rings are kept in a pool and reused; a call that finds none makes one. A single request to one member uses
 *       pread/pwrite, which costs fewer system calls, but for one under a guard.
 *   I3  Any number of threads may call.
 *   I4  Under a guard no call takes longer than a member may be silent, and some seconds: what does not come back is -EIO. A
 *       member is silent when it has something to do and has ended nothing for so long, or one thing ten times as long. Its io has failed
 *       then, for good.
 *   I5  Such a request is lost, not ended: it may write to its buffer at any time. So under a guard I/O goes through buffers of its own.
 *       Where that costs too much a request is 'straight': it uses the caller's, who may then neither reuse nor free one that
 *       pf_aio_holds(), but for giving it to pf_aio_free(). (Written data may change: nothing on a silent member counts.)
 *   I6  Lost requests hold nobody up: not others of the same thread, nor destroying, which leaves to them what they need.
 *
 * Uses: base, member/io, liburing.
 */
#ifndef PF_MEMBER_AIO_H
#define PF_MEMBER_AIO_H

#include "base/meanwhile.h"
#include "member/io.h"

struct pf_aio;

enum pf_aio_op { PF_AIO_READ, PF_AIO_WRITE };

struct pf_aio_req {
	struct pf_io *io;
	enum pf_aio_op op;
	uint64_t off_bytes;
	void *buf;
	size_t len_bytes;
	int result;
	bool straight; /* I5 */
};

/* @out owned by the caller. Errors: -ENOMEM. Works without io_uring too (it is then not used). */
int pf_aio_create(struct pf_aio **out);
void pf_aio_destroy(struct pf_aio *aio);

/* Runs all, waits for all. Returns 0 or the first negative result. */
int pf_aio_run(struct pf_aio *aio, struct pf_aio_req *reqs, unsigned nr);

/* The same, with something to do meanwhile. */
int pf_aio_run_and(struct pf_aio *aio, struct pf_aio_req *reqs, unsigned nr, struct pf_meanwhile *meanwhile);

/* pf_aio_run() for what nobody waits for, so that what others ask of the disk meanwhile waits behind little: in requests of 128 KiB at most, of
 * which 8 and 256 KiB are under way. */
int pf_aio_run_behind(struct pf_aio *aio, struct pf_aio_req *reqs, unsigned nr);

/* Flushes all, in parallel, waits for all. results[i] may be NULL. Returns 0 or the first error. */
int pf_aio_flush(struct pf_aio *aio, struct pf_io **ios, unsigned nr, int *results);

/* -- the guard ---------------------------------------------------------------------------------------------------------------- */
/* From now on no call waits for a member of @ios that is silent for @ticks of @tick_ms or longer (I4). @silent is told of each such member, once, by
 * any thread, and may set its io->failed; it must not wait for I/O. Before threads use @aio. */
void pf_aio_guard(struct pf_aio *aio, struct pf_io **ios, unsigned nr, unsigned ticks, unsigned tick_ms,
		  void (*silent)(void *arg, struct pf_io *io), void *arg);
/* Time goes on, by a tick. By one thread. */
void pf_aio_tick(struct pf_aio *aio, struct pf_io **ios, unsigned nr);

/* Is a straight request lost that uses some of [buf, buf + len_bytes)? Costs nothing while none is lost. */
bool pf_aio_holds(struct pf_aio *aio, const void *buf, size_t len_bytes);
/* free(3), when no lost request uses it any more. */
void pf_aio_free(struct pf_aio *aio, void *buf, size_t len_bytes);
/* Closes @io, when the last lost request on it has come back. NULL is ignored. */
void pf_aio_close_io(struct pf_aio *aio, struct pf_io *io);

#endif
