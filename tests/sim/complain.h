/* SPDX-License-Identifier: MIT
 *
 * Purpose: failures in programs with several threads: each is printed, and all can see that there was one.
 * Uses: nothing.
 */
#ifndef PF_TEST_COMPLAIN_H
#define PF_TEST_COMPLAIN_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_bool failed;

__attribute__((format(printf, 1, 2))) static inline void complain(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fprintf(stderr, "FAIL: ");
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	atomic_store(&failed, true);
}

#endif
