/* SPDX-License-Identifier: MIT
 *
 * Purpose: what the files of the asynchronous I/O share: rings, requests that may never come back, threads that call in place of
 * others. Private to member/.
 *
 * Invariants
 *   I1  A ring is in one place: idle, in the hands of one thread, or lost, when requests are on it that nobody waits for any more.
 *   I2  A flight is in the hands of the one thread that waits for it until that one gives it up; then it and its buffer are the
 *       I/O's, and it is in one list of lost ones, until it comes back.
 *   I3  'lock' guards everything here that is neither atomic nor in the hands of one thread; innermost, never held across I/O.
 *
 * Uses: member/aio, liburing.
 */
#ifndef PF_MEMBER_AIO_INT_H
#define PF_MEMBER_AIO_INT_H

#include "member/aio.h"

#include <liburing.h>
#include <limits.h>
#include <pthread.h>
#include <sys/queue.h>

/* valgrind does not see what the kernel fills through io_uring; costs a few instructions outside it */
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define PF_FILLED_BY_KERNEL(buf, len) VALGRIND_MAKE_MEM_DEFINED(buf, len)
#else
#define PF_FILLED_BY_KERNEL(buf, len) ((void)0)
#endif

/* A batch of any size goes through in a sliding window of this many; more in flight gains nothing on any disk. */
#define PF_RING_ENTRIES 128u
/* req->result until the request is settled. Otherwise, while a batch runs: >= 0 bytes moved, or -errno of the system. */
#define PF_AIO_PENDING  INT_MIN

/* One call to a member under a guard. */
struct pf_flight {
	TAILQ_ENTRY(pf_flight) link;
	struct pf_io *io;
	enum pf_io_call call;
	uint64_t off_bytes, len_bytes;
	uint64_t done_bytes; /* of a transfer that came short, and is continued */
	uint8_t *buf;        /* what the I/O uses */
	void *user;          /* not NULL: buf is a copy of this, which is the caller's */
	void *small, *large; /* memory for copies, the flight's own */
	unsigned index;      /* which request of its batch it is */
	unsigned since;      /* tick */
	uint64_t nr_writes;  /* of a flush: that it covers */
	/* in the hands of a proxy */
	bool taken, done, lost;
	int result;
};
TAILQ_HEAD(pf_flights, pf_flight);

struct pf_ring {
	struct io_uring uring;
	struct pf_ring *next;
	struct pf_flights lost;
};

struct pf_kept { /* a buffer to be freed when no lost I/O is on it any more */
	struct pf_kept *next;
	void *buf;
	size_t len_bytes;
};

struct pf_aio {
	pthread_mutex_t lock;
	struct pf_ring *idle;
	bool no_uring; /* the kernel or a sandbox does not let us: do not ask again */
	/* -- guard.c; the first four are set before threads use it -- */
	unsigned silence; /* ticks; 0: no guard */
	unsigned tick_ms;
	void (*silent)(void *arg, struct pf_io *io);
	void *silent_arg;
	atomic_uint ticks;
	struct pf_ring *lost_rings;
	struct pf_flights lost_calls; /* of proxies */
	atomic_uint nr_lost;          /* in both */
	struct pf_kept *kept;
	struct pf_flights spare;
	unsigned nr_spare;
	/* -- proxy.c -- */
	pthread_cond_t wanted, changed;
	struct pf_flights queue;
	unsigned nr_queued, nr_proxies, nr_idle_proxies;
	bool closing, orphaned;
};

/* -- rings (ring.c) -------------------------------------------------------------------------------------------------------- */
/* NULL: go without, this time or for ever. */
struct pf_ring *pf_ring_get(struct pf_aio *aio);
/* @err: of the last submission; a ring that failed may hold requests that were never submitted. */
void pf_ring_put(struct pf_aio *aio, struct pf_ring *ring, int err);
void pf_ring_free(struct pf_ring *ring);
/* Prepares one request (PF_IO_READ, _WRITE or _FLUSH) for the next submission; the ring has room. Of a long transfer only a part: the rest
 * is continued. */
void pf_ring_prepare(struct pf_ring *ring, enum pf_io_call call, const struct pf_io *io, uint64_t off_bytes, void *buf,
		     uint64_t len_bytes, uint64_t data);
/* For how many of @nr in flight to wait. Few sleeps: for all at the end of a batch, for a quarter of the window while there is @more to
 * submit. */
static inline unsigned pf_ring_nr_wait(unsigned nr, bool more)
{
	return more && nr > PF_RING_ENTRIES / 4 ? PF_RING_ENTRIES / 4 : nr;
}
/* The result of a transfer is an error of the disk. Any other error says that io_uring could not do it: then it is done by the ops, as
 * what is left of a short one is. */
static inline bool pf_ring_is_error(int res)
{
	return res < 0 && res != -EINTR && res != -EAGAIN && res != -EOPNOTSUPP && res != -EINVAL;
}
/* Sleeps until @nr completions are there. */
void pf_ring_wait(struct pf_ring *ring, unsigned nr);
/* The same for @ms at most; with what was prepared submitted first. -errno: the kernel takes no more. */
int pf_ring_submit_and_wait(struct pf_ring *ring, unsigned nr, unsigned ms);
/* Takes one completion: its user data and result. */
uint64_t pf_ring_take(struct pf_ring *ring, int *res);
/* The same if one is there. */
bool pf_ring_take_any(struct pf_ring *ring, uint64_t *data, int *res);
/* Submits what was prepared, and in the same system call waits for @nr_wait completions (0: does not; the kernel does not wait either
 * when it has not taken everything). The number that the kernel took, in the order of preparation, is added to *nr_submitted. -errno:
 * the kernel takes no more (it may have taken some). */
int pf_ring_submit(struct pf_ring *ring, unsigned nr_prepared, unsigned nr_wait, unsigned *nr_submitted);

/* -- flights (flight.c) ---------------------------------------------------------------------------------------------------- */
/* @copy: the I/O gets a buffer of its own. NULL: no memory. */
struct pf_flight *pf_flight_new(struct pf_aio *aio, struct pf_io *io, enum pf_io_call call, uint64_t off_bytes, void *buf,
				uint64_t len_bytes, bool copy);
void pf_flight_put(struct pf_aio *aio, struct pf_flight *f);
/* Counts what has ended with @err in the figures of its member. */
void pf_flight_account(const struct pf_flight *f, int err);
/* It has come back, with @err: counted, and what was read is the caller's. */
void pf_flight_settle(struct pf_flight *f, int err);
/* It is given up; goes to @list. Lock held. */
void pf_flight_lose(struct pf_aio *aio, struct pf_flight *f, struct pf_flights *list);
/* It has come back after all: a member to be closed, if that was waiting for it. Lock held. */
struct pf_io *pf_flight_found(struct pf_aio *aio, struct pf_flight *f, struct pf_flights *list);
void pf_flight_free_spare(struct pf_aio *aio);
/* Those of rings that have come back. */
void pf_flight_reap(struct pf_aio *aio);

/* -- proxies (proxy.c) ------------------------------------------------------------------------------------------------------ */
/* The call itself, in this thread. */
int pf_proxy_call(const struct pf_flight *f);
/* Hands @f to another thread. -EAGAIN: there is none. */
int pf_proxy_start(struct pf_aio *aio, struct pf_flight *f);
/* Waits for it. False: it is lost. */
bool pf_proxy_wait(struct pf_aio *aio, struct pf_flight *f);
/* Lets idle ones end and waits for that. False: one is still in a call; the last one frees @aio. */
bool pf_proxy_stop(struct pf_aio *aio);

/* -- guarded calls (guard.c) ------------------------------------------------------------------------------------------------- */
struct pf_flush {
	struct pf_io *io;
	int result;
	uint64_t nr_writes; /* that it covers */
	bool locked, on_thread;
	pthread_t thread;
};

void pf_guard_run(struct pf_aio *aio, struct pf_aio_req *reqs, unsigned nr, struct pf_meanwhile *meanwhile);
/* @flushes in the order of the addresses of their ios, each once. */
void pf_guard_flush(struct pf_aio *aio, struct pf_flush *flushes, unsigned nr);
/* @f has been waited for long enough, whatever else its member does. */
bool pf_guard_too_late(struct pf_aio *aio, const struct pf_flight *f);
/* No lock held. */
void pf_guard_declare(struct pf_aio *aio, struct pf_io *io);

#endif
