/* SPDX-License-Identifier: MIT
 *
 * Purpose: loop devices with direct I/O over image files.
 *
 * Invariants
 *   I1  A device that the kernel could not give direct I/O is not used: its figures would be those of a cache.
 *
 * Uses: nothing.
 */
#ifndef BENCH_LOOP_H
#define BENCH_LOOP_H

enum { LOOP_NAME_LEN = 32 };

/* Attaches @file to a free device, its name in @name. -errno: -ENXIO when there are no loop devices, -EOPNOTSUPP without
 * direct I/O. */
int loop_attach(const char *file, char name[LOOP_NAME_LEN]);
/* -EBUSY: somebody else still has it, who may still write to the file. */
int loop_detach(const char *name);

#endif
