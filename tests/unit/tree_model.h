/* SPDX-License-Identifier: MIT
 *
 * Purpose: a sorted array of keys, lengths and seeds that says what must be in a tree.
 *
 * Invariants
 *   I1  The bytes of an item follow from its seed and its length, so the array holds no data.
 *
 * Uses: ondisk.
 */
#ifndef TREE_MODEL_H
#define TREE_MODEL_H

#include "ondisk/ondisk.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* ck_assert() makes a system call each time, which is too much for the loops here. */
#define MUST(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			ck_abort_msg("%s", #condition);                                                                \
	} while (0)

struct model_item {
	struct pf_key key;
	unsigned len;
	uint64_t seed;
};
struct model {
	struct model_item *items;
	size_t nr, cap;
};

/* -- the model ------------------------------------------------------------------------------------------------------ */
static inline size_t model_find(const struct model *m, struct pf_key key, bool *found)
{
	size_t lo = 0, hi = m->nr;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (pf_key_cmp(m->items[mid].key, key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	*found = lo < m->nr && pf_key_cmp(m->items[lo].key, key) == 0;
	return lo;
}

static inline void model_put(struct model *m, struct model_item item)
{
	bool found;
	size_t i = model_find(m, item.key, &found);
	if (!found) {
		if (m->nr == m->cap) {
			m->cap = m->cap ? 2 * m->cap : 1024;
			m->items = realloc(m->items, m->cap * sizeof(item));
		}
		memmove(&m->items[i + 1], &m->items[i], (m->nr - i) * sizeof(item));
		m->nr++;
	}
	m->items[i] = item;
}

static inline void model_del(struct model *m, struct pf_key key)
{
	bool found;
	size_t i = model_find(m, key, &found);
	if (!found)
		return;
	memmove(&m->items[i], &m->items[i + 1], (m->nr - i - 1) * sizeof(*m->items));
	m->nr--;
}

static inline void model_copy(struct model *to, const struct model *from)
{
	free(to->items);
	*to = (struct model){ .items = malloc((from->nr + 1) * sizeof(*to->items)), .nr = from->nr, .cap = from->nr };
	if (from->nr)
		memcpy(to->items, from->items, from->nr * sizeof(*to->items));
}

static inline void item_fill(const struct model_item *item, uint8_t *buf)
{
	for (unsigned i = 0; i < item->len; i++)
		buf[i] = (uint8_t)(item->seed + i * 7 + (i >> 8));
}

static inline bool item_is(const struct model_item *item, struct pf_key key, const void *data, unsigned len)
{
	uint8_t want[PF_MAX_ITEM_BYTES];
	item_fill(item, want);
	return pf_key_cmp(item->key, key) == 0 && item->len == len && (!len || memcmp(want, data, len) == 0);
}

#endif
