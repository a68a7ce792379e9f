/* SPDX-License-Identifier: MIT
 *
 * Purpose: running another program and waiting for it.
 *
 * Uses: child.
 */
#ifndef FS_SPAWN_H
#define FS_SPAWN_H

#include <stdbool.h>

/* Runs argv[0], found by PATH, with no signals blocked; @quiet: with its output thrown away. Returns its exit code or -errno. */
int spawn_wait(char *const argv[], bool quiet);

#endif
