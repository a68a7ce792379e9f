/* SPDX-License-Identifier: MIT */
#include "sim/complain.h"

#include <stdarg.h>
#include <stdio.h>

atomic_bool failed;

void complain(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	flockfile(stderr);
	fprintf(stderr, "FAIL: ");
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	funlockfile(stderr);
	va_end(ap);
	atomic_store(&failed, true);
}
