/* SPDX-License-Identifier: MIT */
#include "unit/nomem.h"

#include <stdlib.h>

static bool armed, only_once, met;
static unsigned nr_left; /* allocations that succeed while armed */

/* Weak: a program need not wrap all of them. */
void *__real_malloc(size_t size) __attribute__((weak));
void *__real_aligned_alloc(size_t alignment, size_t size) __attribute__((weak));
void *__real_calloc(size_t nr, size_t size) __attribute__((weak));
void *__real_realloc(void *old, size_t size) __attribute__((weak));
void *__wrap_malloc(size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__wrap_realloc(void *old, size_t size);

static bool refused(void)
{
	if (!armed || (met && only_once))
		return false;
	if (nr_left) {
		nr_left--;
		return false;
	}
	return met = true;
}

void *__wrap_malloc(size_t size)
{
	return refused() ? NULL : __real_malloc(size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return refused() ? NULL : __real_aligned_alloc(alignment, size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	return refused() ? NULL : __real_calloc(nr, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return refused() ? NULL : __real_realloc(old, size);
}

void nomem_begin(unsigned after, bool once)
{
	nr_left = after;
	only_once = once;
	met = false;
	armed = true;
}

bool nomem_end(void)
{
	armed = false;
	return met;
}

bool nomem_pause(void)
{
	bool was = armed;
	armed = false;
	return was;
}

void nomem_resume(bool was_armed)
{
	armed = was_armed;
}
