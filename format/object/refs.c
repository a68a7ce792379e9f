/* SPDX-License-Identifier: MIT */
#include "object/refs.h"

#include <errno.h>
#include <stdlib.h>

#define MIN_CAP 1024

static size_t slot_of(const struct pf_refs *refs, uint64_t ino)
{
	/* Fibonacci hashing (Knuth, TAOCP 3, 6.4): neighbouring numbers spread over the table */
	return (size_t)((ino * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & (refs->cap - 1);
}

static size_t find(const struct pf_refs *refs, uint64_t ino)
{
	size_t i = slot_of(refs, ino);
	while (refs->table[i].ino && refs->table[i].ino != ino)
		i = (i + 1) & (refs->cap - 1);
	return i;
}

static int resize(struct pf_refs *refs, size_t cap)
{
	struct pf_refs next = { calloc(cap, sizeof(*next.table)), cap, refs->nr_used };
	if (!next.table)
		return -ENOMEM;
	for (size_t i = 0; i < refs->cap; i++) {
		if (refs->table[i].ino)
			next.table[find(&next, refs->table[i].ino)] = refs->table[i];
	}
	free(refs->table);
	*refs = next;
	return 0;
}

uint64_t pf_refs_get(const struct pf_refs *refs, uint64_t ino)
{
	return refs->cap ? refs->table[find(refs, ino)].nr : 0;
}

int pf_refs_add(struct pf_refs *refs, uint64_t ino, uint64_t nr)
{
	if (refs->nr_used * 10 >= refs->cap * 7) {
		int err = resize(refs, refs->cap ? 2 * refs->cap : MIN_CAP);
		if (err)
			return err;
	}
	struct pf_refs_entry *e = &refs->table[find(refs, ino)];
	if (!e->ino) {
		e->ino = ino;
		refs->nr_used++;
	}
	e->nr += nr;
	return 0;
}

/* Linear probing without tombstones: what follows the gap moves up where its home allows it (Knuth, 6.4, algorithm R). */
static void remove_at(struct pf_refs *refs, size_t gap)
{
	size_t mask = refs->cap - 1;
	for (size_t i = (gap + 1) & mask; refs->table[i].ino; i = (i + 1) & mask) {
		size_t home = slot_of(refs, refs->table[i].ino);
		if (((i - home) & mask) >= ((i - gap) & mask)) {
			refs->table[gap] = refs->table[i];
			gap = i;
		}
	}
	refs->table[gap] = (struct pf_refs_entry){ 0 };
	refs->nr_used--;
}

uint64_t pf_refs_drop(struct pf_refs *refs, uint64_t ino, uint64_t nr)
{
	if (!refs->cap)
		return 0;
	size_t i = find(refs, ino);
	struct pf_refs_entry *e = &refs->table[i];
	if (!e->ino)
		return 0;
	e->nr -= nr < e->nr ? nr : e->nr;
	uint64_t left = e->nr;
	if (!left)
		remove_at(refs, i);
	if (refs->cap > MIN_CAP && refs->nr_used * 8 < refs->cap)
		resize(refs, refs->cap / 2); /* no memory: it stays large */
	return left;
}

void pf_refs_free(struct pf_refs *refs)
{
	free(refs->table);
	*refs = (struct pf_refs){ 0 };
}
