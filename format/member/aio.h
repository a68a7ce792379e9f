/* SPDX-License-Identifier: MIT
 *
 * Purpose: many requests to many members in flight at once, over io_uring where the member has a descriptor and the
 * kernel offers it; one by one through the ops otherwise (so that tests in memory are deterministic).
 *
 * Invariants
 *   I1  When pf_aio_run() returns, every request has completed and its result is set: 0 or a negative code (io.h I2).
 *   I2  Rings are kept in a pool and reused; a call that finds none makes one. A single request to one member uses
 *       pread/pwrite, which costs fewer system calls.
 *   I3  Any number of threads may call.
 *
 * Uses: member/io, liburing.
 */
#ifndef PF_MEMBER_AIO_H
#define PF_MEMBER_AIO_H

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
};

/* @out owned by the caller. Errors: -ENOMEM. Works without io_uring too (it is then not used). */
int pf_aio_create(struct pf_aio **out);
void pf_aio_destroy(struct pf_aio *aio);

/* Runs all, waits for all. Returns 0 or the first negative result. */
int pf_aio_run(struct pf_aio *aio, struct pf_aio_req *reqs, unsigned nr);

/* Flushes all, in parallel, waits for all. results[i] may be NULL. Returns 0 or the first error. */
int pf_aio_flush(struct pf_aio *aio, struct pf_io **ios, unsigned nr, int *results);

#endif
