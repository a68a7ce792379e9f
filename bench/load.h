/* SPDX-License-Identifier: MIT
 *
 * Purpose: the same work by several threads at once.
 *
 * Uses: nothing.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

enum { LOAD_MAX_THREADS = 16 };

/* @body in @nr threads, which begin together when all are there. The first error, after all have ended; a body that fails has
 * to make the others stop if they would not. */
int load_run(unsigned nr, int (*body)(unsigned thread, void *arg), void *arg);

#endif
