/* SPDX-License-Identifier: MIT
 *
 * Purpose: failures in programs with several threads: each is printed, and all can see that there was one.
 * Uses: nothing.
 */
#ifndef PF_TEST_COMPLAIN_H
#define PF_TEST_COMPLAIN_H

#include <stdatomic.h>
#include <stdbool.h>

extern atomic_bool failed;

void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
