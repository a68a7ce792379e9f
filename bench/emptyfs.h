/* SPDX-License-Identifier: MIT
 *
 * Purpose: a FUSE filesystem with nothing behind it: names and sizes in memory, no data, every sync at once. What a call takes in it is
 * what the kernel and two processes take to talk, the least that any FUSE daemon can have (docs/BENCHMARKS.md, "The limit").
 *
 * It asks the kernel for what poolfs asks for (write-back cache, no open requests, set-id bits by the daemon, attributes without a
 * time limit), so that calls become the same requests. On the kernel's protocol itself: libfuse has more to do for a request.
 *
 * With a disk behind it what is synced is there before the sync is answered: written to some place of it, and flushed, without anything that
 * would let it be found again. That is the least that a FUSE filesystem can do which promises something, in one piece: adding what the
 * transport and the disk take each for itself leaves out what they cost each other (processors that have to be woken, or are shared).
 *
 * Invariants
 *   I1  Reads give zeros. Writes of more than 64 KiB do not reach the disk.
 *   I2  The daemon is a child of the caller and ends with its mount.
 *
 * Uses: liburing.
 */
#ifndef BENCH_EMPTYFS_H
#define BENCH_EMPTYFS_H

#include <sys/types.h>

/* Mounts on @dir. @disk: image file or device behind it, whose content is lost; NULL: nothing. Returns 0 or -errno; *daemon: to be waited for
 * after the unmount. */
int emptyfs_mount(const char *dir, const char *disk, pid_t *daemon);

#endif
