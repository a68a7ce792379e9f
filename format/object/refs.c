/* SPDX-License-Identifier: MIT */
#include "object/refs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MIN_CAP 1024

/* -- a table of either width (words of an entry) ------------------------------------------------------------------------- */
enum { FEW = 1, MANY = 2 };

static uint64_t *entry(const struct pf_refs_table *t, unsigned width, size_t i)
{
	return &t->words[i * width];
}

static uint64_t number(const uint64_t *e)
{
	return *e >> 8;
}

static size_t slot_of(const struct pf_refs_table *t, uint64_t ino)
{
	/* Fibonacci hashing (Knuth, TAOCP 3, 6.4): neighbouring numbers spread over the table */
	return (size_t)((ino * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & (t->cap - 1);
}

/* Where @ino is, or belongs. */
static size_t find(const struct pf_refs_table *t, unsigned width, uint64_t ino)
{
	size_t i = slot_of(t, ino);
	while (*entry(t, width, i) && number(entry(t, width, i)) != ino)
		i = (i + 1) & (t->cap - 1);
	return i;
}

static int resize(struct pf_refs_table *t, unsigned width, size_t cap)
{
	struct pf_refs_table next = { calloc(cap * width, sizeof(*next.words)), cap, t->nr_used };
	if (!next.words)
		return -ENOMEM;
	for (size_t i = 0; i < t->cap; i++) {
		const uint64_t *e = entry(t, width, i);
		if (*e)
			memcpy(entry(&next, width, find(&next, width, number(e))), e, width * sizeof(*e));
	}
	free(t->words);
	*t = next;
	return 0;
}

/* Room for one more. */
static int grow(struct pf_refs_table *t, unsigned width)
{
	return t->nr_used * 10 < t->cap * 7 ? 0 : resize(t, width, t->cap ? 2 * t->cap : MIN_CAP);
}

/* Linear probing without tombstones: what follows the gap moves up where its home allows it (Knuth, 6.4, algorithm R). */
static void remove_at(struct pf_refs_table *t, unsigned width, size_t gap)
{
	size_t mask = t->cap - 1;
	for (size_t i = (gap + 1) & mask; *entry(t, width, i); i = (i + 1) & mask) {
		size_t home = slot_of(t, number(entry(t, width, i)));
		if (((i - home) & mask) >= ((i - gap) & mask)) {
			memcpy(entry(t, width, gap), entry(t, width, i), width * sizeof(uint64_t));
			gap = i;
		}
	}
	*entry(t, width, gap) = 0;
	t->nr_used--;
	if (t->cap > MIN_CAP && t->nr_used * 8 < t->cap)
		resize(t, width, t->cap / 2); /* no memory: it stays large */
}

/* -- both ---------------------------------------------------------------------------------------------------------------- */

static uint64_t *of_few(const struct pf_refs *refs, uint64_t ino)
{
	return refs->few.cap ? entry(&refs->few, FEW, find(&refs->few, FEW, ino)) : NULL;
}

/* The count, when it is among the many. */
static uint64_t *count_of_many(const struct pf_refs *refs, uint64_t ino)
{
	return entry(&refs->many, MANY, find(&refs->many, MANY, ino)) + 1;
}

static uint64_t count(const struct pf_refs *refs, const uint64_t *few)
{
	uint64_t nr = few ? *few & 0xff : 0;
	return nr < PF_REFS_MANY ? nr : *count_of_many(refs, number(few));
}

uint64_t pf_refs_get(const struct pf_refs *refs, uint64_t ino)
{
	return count(refs, of_few(refs, ino));
}

int pf_refs_add(struct pf_refs *refs, uint64_t ino, uint64_t nr)
{
	int err = grow(&refs->few, FEW);
	if (err)
		return err;
	uint64_t *few = of_few(refs, ino), before = *few & 0xff;
	if (before < PF_REFS_MANY && before + nr >= PF_REFS_MANY) {
		err = grow(&refs->many, MANY);
		if (err)
			return err;
		uint64_t *many = entry(&refs->many, MANY, find(&refs->many, MANY, ino));
		many[0] = ino << 8;
		many[1] = before + nr;
		refs->many.nr_used++;
	} else if (before == PF_REFS_MANY) {
		*count_of_many(refs, ino) += nr;
	}
	refs->few.nr_used += !*few;
	*few = ino << 8 | (before < PF_REFS_MANY && before + nr < PF_REFS_MANY ? before + nr : PF_REFS_MANY);
	return 0;
}

uint64_t pf_refs_drop(struct pf_refs *refs, uint64_t ino, uint64_t nr)
{
	uint64_t *few = of_few(refs, ino), before = count(refs, few);
	if (!before)
		return 0;
	uint64_t left = before - (nr < before ? nr : before);
	bool many = (*few & 0xff) == PF_REFS_MANY;
	if (many && left)
		*count_of_many(refs, ino) = left;
	else if (many)
		remove_at(&refs->many, MANY, find(&refs->many, MANY, ino));
	else
		*few = ino << 8 | left;
	if (!left)
		remove_at(&refs->few, FEW, find(&refs->few, FEW, ino));
	return left;
}

uint64_t pf_refs_next(const struct pf_refs *refs, size_t *at)
{
	while (*at < refs->few.cap) {
		uint64_t ino = number(entry(&refs->few, FEW, (*at)++));
		if (ino)
			return ino;
	}
	return 0;
}

void pf_refs_free(struct pf_refs *refs)
{
	free(refs->few.words);
	free(refs->many.words);
	*refs = (struct pf_refs){ 0 };
}
