/* SPDX-License-Identifier: MIT
 *
 * Purpose: a FUSE filesystem with nothing behind it: names and sizes in memory, no data, every sync at once. What a call takes in it is
 * what the kernel and two processes take to talk, the least that any FUSE daemon can have (docs/BENCHMARKS.md, "The limit").
 *
 * It asks the kernel for what poolfs asks for (write-back cache, no open requests, set-id bits by the daemon, attributes without a
 * time limit), so that calls become the same requests. On the kernel's protocol itself: libfuse has more to do for a request.
 *
 * Invariants
 *   I1  Reads give zeros.
 *   I2  The daemon is a child of the caller and ends with its mount.
 *
 * Uses: nothing.
 */
#ifndef BENCH_EMPTYFS_H
#define BENCH_EMPTYFS_H

#include <sys/types.h>

/* Mounts on @dir. Returns 0 or -errno; *daemon: to be waited for after the unmount. */
int emptyfs_mount(const char *dir, pid_t *daemon);

#endif
