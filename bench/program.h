/* SPDX-License-Identifier: MIT
 *
 * Purpose: runs the other programs as a user would: found beside this one first, then in PATH and the sbin directories.
 *
 * Invariants
 *   I1  Nothing goes through a shell.
 *   I2  What a program says is shown when it fails, and only then.
 *
 * Uses: cli.h.
 */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

bool program_find(const char *name, char path[PATH_MAX]);
/* @argv[0] is a name for program_find(). 0; -ENOENT or -EIO after a message. */
int program_run(const char *const argv[]);

#endif
