/* SPDX-License-Identifier: MIT
 *
 * Purpose: the worker threads between /dev/fuse and libfuse's decoder. A loop of our own because libfuse's gives neither
 * page-aligned write payloads nor the raw request, and answers INIT without flags that we need.
 *
 * Invariants
 *   I1  The payload of a WRITE request lies at a page boundary.
 *   I2  Nothing on the path of a request maps memory: each worker has its buffers before the first request comes.
 *   I3  A request is answered by the worker that read it, before that worker reads another; or by another thread, on the
 *       descriptor that the request came from (ops_seek.c).
 *   I4  At most 'threads' workers at a time hold a token, which is needed to read a request. A worker that will wait for a
 *       disk as all others with a token do lets its token go, so that a spare worker reads on: few threads for speed, as
 *       many as needed for requests that wait.
 *   I5  Only flags that the kernel offered are added to the answer to INIT.
 *   I6  A worker's buffers are its own again when a request is done, or it gets others (pf_pool_holds()).
 *
 * Uses: libfuse, base/thread.
 */
#ifndef FS_TRANSPORT_H
#define FS_TRANSPORT_H

#include "fuse_api.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct transport;

#define TRANSPORT_MAX_PAYLOAD ((size_t)1 << 20) /* of one READ or WRITE; what INIT may agree on */

/* Requests that libfuse cannot decode. Returns true when it has answered @in. */
typedef bool transport_raw_fn(void *arg, const struct fuse_in_header *in);

/* Somebody else still uses some of this memory, which a handler was given. */
typedef bool transport_holds_fn(void *arg, const void *buf, size_t len);

/* Starts the workers on a mounted session. @arg is what @raw and @holds get. */
int transport_start(struct fuse_session *se, unsigned nr_threads, transport_raw_fn *raw, transport_holds_fn *holds, void *arg,
		    struct transport **out);

/* Readable when something happened: INIT was answered, or the workers have ended. */
int transport_event_fd(const struct transport *t);
bool transport_ready(struct transport *t); /* INIT was answered */
bool transport_ended(struct transport *t); /* the kernel has let go of the connection, or it failed */

uint64_t transport_nr_done(struct transport *t); /* requests so far */

/* Called now and then: gives a spare worker a token when all that hold one seem stuck. */
void transport_tick(struct transport *t);

/* Ends the workers and waits for them. */
void transport_stop(struct transport *t);
void transport_free(struct transport *t);

/* -- for handlers, in a worker --------------------------------------------------------------------------------------- */
const struct fuse_in_header *transport_request(void);
/* Preallocated and page-aligned; the handler's own until it returns. */
void *transport_scratch(size_t *cap);
/* fuse_setxattr_in.setxattr_flags of the current SETXATTR. */
uint32_t transport_setxattr_flags(void);
/* The handler begins to wait for a disk, or has done so (I4). May be nested; in threads that are no workers nothing happens. */
void transport_waits(bool begins);
/* The request has been answered: what the handler does from here on is not its cost. */
void transport_answered(void);
/* To answer a request in another thread: what the first returns in the worker, the second is given there. */
int transport_reply_fd(void);
void transport_set_reply_fd(int fd);
/* The answer to a raw request. */
int transport_reply(uint64_t unique, int err, const void *data, size_t len);

#endif
