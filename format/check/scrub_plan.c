/* SPDX-License-Identifier: MIT
 *
 * What there is to read. A first walk verifies all nodes and counts the extents of each group; from that, windows of
 * groups are made that hold at most PF_SCRUB_ENTRIES extents. For each window a walk over the extents collects them,
 * and they are sorted by address. One window is the rule. */
#include "check/scrub_plan.h"

#include "check/inodes.h"

#include <stdlib.h>
#include <string.h>

struct pf_scrub_plan {
	struct pf_scrubber *s;
	uint32_t *groups; /* number of extents that begin in each group of each member, one member behind the other */
	uint64_t first_group[PF_MAX_MEMBERS + 1];
	struct pf_scrub_window window;
	size_t cap_entries, cap_leaves;
	bool leaf_noted; /* the leaf of the walk is in window.leaves */
	pf_addr *bad;    /* nodes that were told as damaged, ascending */
	size_t nr_bad, cap_bad;
};

static uint64_t group_of(const struct pf_scrub_plan *plan, pf_addr addr)
{
	return plan->first_group[pf_addr_member(addr)] + (pf_addr_block(addr) >> PF_GROUP_SHIFT);
}

/* -- what is to be read of an item ------------------------------------------------------------------------------- */
/* An extent whose data is to be read now. Invalid ones are fsck's to report; nothing of theirs can be verified. */
static bool is_wanted(const struct pf_scrubber *s, const struct pf_walk_item *item, struct pf_extent *extent)
{
	if (pf_key_type(item->key) != PF_TYPE_EXTENT || pf_extent_unpack(item->key, item->data, item->len, extent))
		return false;
	if (extent->flags & PF_EXTENT_UNWRITTEN || (s->fill && !extent->crc))
		return false;
	for (unsigned i = 0; i < extent->nr_copies; i++) {
		if (!pf_set_addr_valid(s->set, extent->addr[i], extent->nr))
			return false;
	}
	return true;
}

/* -- first walk: nodes, and numbers of extents ------------------------------------------------------------------- */
static int count_node(void *arg, const struct pf_walk_node *node)
{
	struct pf_scrub_plan *plan = arg;
	struct pf_scrubber *s = plan->s;
	s->result->metadata_bytes += PF_NODE_SIZE * pf_walk_nr_copies(node);
	atomic_fetch_add(&s->done_bytes, PF_NODE_SIZE * pf_walk_nr_copies(node));
	return node->level == 1 ? pf_scrub_progress(s) : 0;
}

static int count_bad_copy(void *arg, const struct pf_walk_node *node, unsigned copy, int err)
{
	struct pf_scrub_plan *plan = arg;
	pf_scrub_metadata_error(plan->s, node->ptr.addr[copy], err, true);
	return 0;
}

static int count_bad(void *arg, const struct pf_walk_node *node, int err)
{
	struct pf_scrub_plan *plan = arg;
	for (unsigned copy = 0; copy < pf_walk_nr_copies(node); copy++)
		pf_scrub_metadata_error(plan->s, node->ptr.addr[copy], err, false);
	if (pf_grow(&plan->bad, plan->nr_bad, &plan->cap_bad, sizeof(plan->bad[0])))
		return -ENOMEM;
	plan->bad[plan->nr_bad++] = node->ptr.addr[0];
	return 0;
}

static int addr_cmp(const void *a, const void *b)
{
	pf_addr x = *(const pf_addr *)a, y = *(const pf_addr *)b;
	return x < y ? -1 : x > y;
}

static int count_item(void *arg, const struct pf_walk_item *item)
{
	struct pf_scrub_plan *plan = arg;
	struct pf_scrubber *s = plan->s;
	struct pf_extent extent;
	if (pf_key_class(item->key) != PF_CLASS_EXTENT)
		return 0;
	if (!is_wanted(s, item, &extent)) {
		if (s->fill && !pf_extent_unpack(item->key, item->data, item->len, &extent) &&
		    extent.flags == PF_EXTENT_NO_CSUM)
			s->total_bytes += (uint64_t)extent.nr << PF_BLOCK_SHIFT;
		return 0;
	}
	for (unsigned i = 0; i < extent.nr_copies; i++) {
		plan->groups[group_of(plan, extent.addr[i])]++;
		s->total_bytes += (uint64_t)extent.nr << PF_BLOCK_SHIFT;
	}
	return 0;
}

int pf_scrub_plan(struct pf_scrubber *s, struct pf_scrub_plan **out)
{
	static const struct pf_walk_ops ops = { .node = count_node, .item = count_item, .bad = count_bad, .bad_copy = count_bad_copy };
	struct pf_scrub_plan *plan = calloc(1, sizeof(*plan));
	if (!plan)
		return -ENOMEM;
	plan->s = s;
	for (unsigned m = 0; m < s->set->nr; m++)
		plan->first_group[m + 1] = plan->first_group[m] + s->set->members[m].geo.nr_groups;
	plan->groups = calloc(plan->first_group[s->set->nr], sizeof(plan->groups[0]));
	s->total_bytes = atomic_load(&s->done_bytes) + (s->super.counters.node_blocks << PF_BLOCK_SHIFT);
	int err = -ENOMEM;
	if (plan->groups)
		err = pf_walk_tree(s->set, &s->super, PF_KEY_MIN, PF_KEY_MAX, &ops, plan);
	if (plan->nr_bad)
		qsort(plan->bad, plan->nr_bad, sizeof(plan->bad[0]), addr_cmp);
	if (err)
		pf_scrub_plan_free(plan);
	else
		*out = plan;
	return err;
}

void pf_scrub_plan_free(struct pf_scrub_plan *plan)
{
	if (!plan)
		return;
	free(plan->groups);
	free(plan->bad);
	free(plan->window.entries);
	free(plan->window.leaves);
	free(plan);
}

/* -- further walks: the extents of a window ---------------------------------------------------------------------- */
static int next_leaf(void *arg, const struct pf_walk_node *node)
{
	struct pf_scrub_plan *plan = arg;
	if (!node->level)
		plan->leaf_noted = false;
	return 0;
}

/* A node that was good in the first walk and is not now. */
static int newly_bad(void *arg, const struct pf_walk_node *node, int err)
{
	struct pf_scrub_plan *plan = arg;
	pf_addr addr = node->ptr.addr[0];
	if (!plan->nr_bad || !bsearch(&addr, plan->bad, plan->nr_bad, sizeof(addr), addr_cmp))
		pf_scrub_metadata_error(plan->s, addr, err, false);
	return 0;
}

static int note_leaf(struct pf_scrub_plan *plan, const struct pf_walk_node *leaf)
{
	struct pf_scrub_window *w = &plan->window;
	if (plan->leaf_noted)
		return 0;
	if (pf_grow(&w->leaves, w->nr_leaves, &plan->cap_leaves, sizeof(w->leaves[0])))
		return -ENOMEM;
	w->leaves[w->nr_leaves] = *leaf;
	w->leaves[w->nr_leaves++].bytes = NULL;
	plan->leaf_noted = true;
	return 0;
}

static int collect_item(void *arg, const struct pf_walk_item *item)
{
	struct pf_scrub_plan *plan = arg;
	struct pf_scrub_window *w = &plan->window;
	struct pf_extent extent;
	if (!is_wanted(plan->s, item, &extent))
		return 0;
	for (unsigned i = 0; i < extent.nr_copies; i++) {
		uint64_t group = group_of(plan, extent.addr[i]);
		if (group < w->from_group || group >= w->to_group)
			continue;
		int err = note_leaf(plan, item->leaf);
		if (!err)
			err = pf_grow(&w->entries, w->nr_entries, &plan->cap_entries, sizeof(w->entries[0]));
		if (err)
			return err;
		w->entries[w->nr_entries++] = (struct pf_scrub_entry){
			.addr = extent.addr[i],
			.leaf = (uint32_t)(w->nr_leaves - 1),
			.item = (uint16_t)item->index,
			.nr_blocks = (uint16_t)extent.nr,
		};
	}
	return 0;
}

static int entry_cmp(const void *a, const void *b)
{
	const struct pf_scrub_entry *x = a, *y = b;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

int pf_scrub_next_window(struct pf_scrub_plan *plan, const struct pf_scrub_window **out)
{
	static const struct pf_walk_ops ops = { .node = next_leaf, .item = collect_item, .bad = newly_bad };
	struct pf_scrubber *s = plan->s;
	struct pf_scrub_window *w = &plan->window;
	uint64_t nr_groups = plan->first_group[s->set->nr], nr = 0;
	w->from_group = w->to_group;
	while (w->to_group < nr_groups && (!nr || nr + plan->groups[w->to_group] <= PF_SCRUB_ENTRIES))
		nr += plan->groups[w->to_group++];
	w->nr_entries = w->nr_leaves = 0;
	*out = nr ? w : NULL;
	if (!nr)
		return 0;
	int err = pf_walk_tree(s->set, &s->super, pf_key_make(PF_CLASS_EXTENT, 0, 0, 0), PF_KEY_MAX, &ops, plan);
	if (!err && w->nr_entries)
		qsort(w->entries, w->nr_entries, sizeof(w->entries[0]), entry_cmp);
	return err;
}
