/* SPDX-License-Identifier: MIT
 *
 * Choice of member, group and run.
 *
 * Member: the goal's or the preferred one, then the others, those with the most room in proportion first (nodes: the
 * metadata members first). Group and run: behind the goal; else by a cursor that goes round the member, so that what
 * is written one after the other lies one behind the other. Few blocks of data whose goal is taken go exactly there, and
 * the cursor stops for them only at runs that have room for many such requests. Free counts and run bounds tell which
 * groups are worth a look without reading maps.
 *
 * Nodes see whole quads only. Data sees all that is free, until the whole quads of a metadata member get fewer than its
 * share has: then it takes the clear blocks of broken quads first, and breaks more only down to what is kept (I7).
 *
 * Both see the home of the nodes last (home.c), and nodes on a full host first.
 *
 * Loading a map drops the lock. Nothing is carried over that: a run is looked for, measured against what the caller may
 * take, and taken in one go.
 */
#include "space/private.h"

#include <limits.h>
#include <string.h>

enum { EFFORT = 8, LOAD_EFFORT = 4, MAX_VISITS = 4096 };
enum { SEGMENT_BLOCKS = 64 }; /* a run in which few blocks at a time are allocated one behind the other */

enum view { /* what of the free blocks a search sees */
	VIEW_ALL,
	VIEW_WHOLE, /* those of whole quads */
	VIEW_BROKEN,
};
enum where { /* which groups */
	ANYWHERE,
	OUTSIDE, /* of the home; nodes take only what the host has allocated */
	AT_HOME,
};
enum { BROKEN_RUN_MAX = 2 * (PF_NODE_BLOCKS - 1) };

struct search {
	struct pf_space *space;
	struct pf_space_member *m;
	const struct pf_alloc_req *req;
	struct pf_run *run; /* the result */
	bool into_share;    /* a promise has to be kept that other members cannot keep */
	enum view view;
	enum where where;
	uint32_t want; /* longest run worth looking for */
	int load_err;
};

/* -- how much
 * ----------------------------------------------------------------------------------------------------------- */

/* Blocks that the request may take from the member now, at most @nr; 0 when less than min_nr. */
static uint64_t allowance(const struct search *s, uint64_t nr)
{
	const struct pf_alloc_req *req = s->req;
	uint64_t room = s->into_share ? s->m->free_blocks : pf_space_member_room(s->m, req->use);
	nr = nr < room ? nr : room;
	if (req->use == PF_USE_NODE) {
		nr -= nr % req->min_nr;
	} else if (!req->reserved) {
		uint64_t avail = pf_space_avail(s->space, req->use);
		nr = nr < avail ? nr : avail;
	}
	return nr < req->min_nr ? 0 : nr;
}

/* Whole quads that data may break; only with a share is there anything to keep. */
static uint64_t breakable(const struct search *s)
{
	uint64_t kept = s->into_share ? 0 : pf_space_kept_quads(s->m, s->req->use);
	return s->m->free_quads > kept ? s->m->free_quads - kept : 0;
}

static bool take(struct search *s, uint32_t group, uint32_t start, uint32_t len)
{
	uint64_t nr = allowance(s, len < s->req->nr ? len : s->req->nr);
	if (nr && s->view == VIEW_ALL && s->m->share_blocks) {
		uint64_t quads = breakable(s);
		if (nr > quads) /* else it cannot break too many: no need to count */
			nr = pf_bits_fit_quads(s->m->groups[group].maps->used, start, (uint32_t)nr, quads);
	}
	if (nr < s->req->min_nr)
		return false;
	pf_group_take(s->m, group, start, (uint32_t)nr);
	if (s->req->reserved)
		s->space->reserved -= nr;
	*s->run = (struct pf_run){ pf_addr_make(s->m->id, ((uint64_t)group << PF_GROUP_SHIFT) + start), nr };
	return true;
}

/* -- one group
 * ---------------------------------------------------------------------------------------------------------- */

/* Nodes go where the host has allocated, or may yet. */
static bool is_there(const struct search *s, uint32_t group)
{
	if (s->where != OUTSIDE)
		return s->where == ANYWHERE || pf_home_has(s->m, group);
	return !pf_home_has(s->m, group) && (s->req->use != PF_USE_NODE || pf_home_backs(s->m, group));
}

/* Makes sure that the maps are there. False: bad, or no memory; or nodes cannot have the group. */
static bool load(struct search *s, uint32_t group)
{
	struct pf_group *g = &s->m->groups[group];
	if (s->where == OUTSIDE && s->req->use == PF_USE_NODE && !pf_home_back(s->space, s->m, group))
		return false;
	int err = pf_group_load(s->space, s->m, &group, 1);
	if (!err && !g->maps)
		err = -EIO;
	if (err)
		s->load_err = err;
	return !err;
}

/* 'used' of a loaded group as the search sees it; made in @scratch where that differs. */
static const uint64_t *seen(const struct search *s, uint32_t group, uint64_t *scratch)
{
	const uint64_t *used = s->m->groups[group].maps->used;
	if (s->view == VIEW_ALL)
		return used;
	(s->view == VIEW_WHOLE ? pf_bits_keep_whole : pf_bits_keep_broken)(used, scratch);
	return scratch;
}

/* Of blocks that are free, those that the search sees. */
static uint64_t nr_seen(const struct search *s, uint64_t free_blocks, uint64_t free_quads)
{
	uint64_t whole = free_quads * PF_NODE_BLOCKS;
	return s->view == VIEW_ALL ? free_blocks : s->view == VIEW_WHOLE ? whole : free_blocks - whole;
}

/* No run that the search sees in the group is longer. */
static uint32_t bound_of(const struct search *s, const struct pf_group *g)
{
	return s->view == VIEW_ALL ? g->run_bound : s->view == VIEW_WHOLE ? g->quads_bound : BROKEN_RUN_MAX;
}

/* The first run of @enough blocks behind @from, else in the whole group, else the longest. Returns its length. */
static uint32_t examine(struct search *s, uint32_t group, uint32_t from, uint32_t enough, uint32_t *start)
{
	struct pf_group *g = &s->m->groups[group];
	uint64_t scratch[PF_MAP_WORDS];
	const uint64_t *used = seen(s, group, scratch);
	if (enough > bound_of(s, g))
		enough = bound_of(s, g); /* more there is not: look no further */
	uint32_t len = pf_bits_find(used, from, PF_GROUP_BLOCKS, enough, start);
	if (len >= enough)
		return len;
	len = pf_bits_find(used, 0, PF_GROUP_BLOCKS, enough, start);
	if (len < enough && s->view != VIEW_BROKEN)
		*(s->view == VIEW_ALL ? &g->run_bound : &g->quads_bound) = (uint16_t)len; /* exactly */
	return len;
}

/* Where a search may begin: nodes at a quad. */
static uint32_t begin_at(const struct search *s, uint32_t from)
{
	return s->view == VIEW_WHOLE ? (from + PF_NODE_BLOCKS - 1) & ~(uint32_t)(PF_NODE_BLOCKS - 1) : from;
}

static bool at_goal(struct search *s)
{
	uint64_t block = pf_addr_block(s->req->goal);
	if (block < s->m->geo.data_start || block >= s->m->geo.data_end)
		return false;
	uint32_t group = (uint32_t)(block >> PF_GROUP_SHIFT), from = begin_at(s, block % PF_GROUP_BLOCKS);
	struct pf_group *g = &s->m->groups[group];
	uint64_t scratch[PF_MAP_WORDS];
	if (pf_group_kind(g) != (s->req->use == PF_USE_NODE) && s->m->meta)
		return false; /* what once spilled over should not go on to */
	if (!is_there(s, group))
		return false;
	if (nr_seen(s, g->free_blocks, g->free_quads) < s->req->min_nr || !load(s, group))
		return false;
	uint32_t end = pf_bits_next_set(seen(s, group, scratch), from, PF_GROUP_BLOCKS), least = s->want / 4;
	if (s->req->use != PF_USE_NODE && s->want < SEGMENT_BLOCKS)
		return end > from && end - from >= least && take(s, group, from, end - from); /* elsewhere it is better at the cursor */
	/* a short piece is worth it only where the next request can go on behind it */
	if (end - from >= least || end == PF_GROUP_BLOCKS) {
		if (take(s, group, from, end - from))
			return true;
	}
	uint32_t start, len = examine(s, group, from, s->want, &start);
	return len >= least && len && take(s, group, start, len);
}

/* -- one member
 * --------------------------------------------------------------------------------------------------------- */

struct pass {
	unsigned kind;   /* without, with PF_GROUP_META */
	uint32_t least;  /* groups that cannot have such a run are passed over */
	uint32_t enough; /* the first run of this length is taken, else the longest that was met */
	int effort;      /* maps looked at; INT_MAX: all */
};

static bool take_at_cursor(struct search *s, uint32_t group, uint32_t start, uint32_t len)
{
	if (!take(s, group, start, len))
		return false;
	s->m->cursor[s->req->use == PF_USE_NODE] = pf_addr_block(s->run->addr) + s->run->nr;
	return true;
}

static bool worth_a_look(const struct search *s, const struct pf_group *g, const struct pass *p, uint32_t best_len)
{
	uint32_t bound = bound_of(s, g);
	return nr_seen(s, g->free_blocks, g->free_quads) >= p->least && bound >= p->least && bound > best_len &&
	       pf_group_kind(g) == p->kind;
}

/* Where to begin in a group: at the cursor if that is in it. */
static uint32_t offset_in(const struct search *s, uint64_t cursor, uint32_t group)
{
	return cursor >> PF_GROUP_SHIFT == group ? begin_at(s, (uint32_t)(cursor % PF_GROUP_BLOCKS)) : 0;
}

/* The bound of all groups of a kind, or NULL. */
static uint32_t *bound_of_member(const struct search *s, unsigned kind)
{
	struct pf_space_member *m = s->m;
	return s->view == VIEW_ALL ? &m->run_bound[kind] : s->view == VIEW_WHOLE ? &m->quads_bound[kind] : NULL;
}

static bool search_groups(struct search *s, const struct pass *p)
{
	struct pf_space_member *m = s->m;
	uint64_t cursor = m->cursor[s->req->use == PF_USE_NODE], raised = m->raised;
	uint64_t nr_groups = s->where == AT_HOME ? m->home.nr_groups : m->geo.nr_groups, nr_visits = 0;
	uint32_t best = 0, best_len = 0, start, len;
	uint32_t *bound = bound_of_member(s, p->kind);
	int effort = p->effort;
	if (nr_seen(s, m->free_blocks, m->free_quads) < p->least || (bound && *bound < p->least))
		return false;
	for (uint64_t i = 0; i < nr_groups;) {
		uint32_t group = (uint32_t)(((cursor >> PF_GROUP_SHIFT) + i) % nr_groups);
		uint32_t in_table = group % PF_GROUPS_PER_TABLE;
		const struct pf_table *t = &m->tables[group / PF_GROUPS_PER_TABLE];
		if (nr_seen(s, t->free_blocks, t->free_quads) < p->least) {
			uint64_t rest = PF_GROUPS_PER_TABLE - in_table;
			i += rest < nr_groups - group ? rest : nr_groups - group;
			continue;
		}
		struct pf_group *g = &m->groups[group];
		if (effort <= 0 || (p->effort != INT_MAX && nr_visits++ >= MAX_VISITS))
			goto best;
		i++;
		if (!is_there(s, group) || !worth_a_look(s, g, p, best_len))
			continue;
		effort -= p->effort == INT_MAX ? 0 : g->maps ? 1 : LOAD_EFFORT;
		if (!load(s, group))
			continue;
		len = examine(s, group, offset_in(s, cursor, group), p->enough, &start);
		if (len >= p->enough)
			return take_at_cursor(s, group, start, len);
		if (len > best_len) {
			best_len = len;
			best = group;
		}
	}
	/* a group that could not be looked at may have more */
	if (best_len < p->least && m->raised == raised && bound && !s->load_err && s->where == ANYWHERE)
		*bound = p->least - 1;
best:
	if (best_len < p->least || !load(s, best))
		return false;
	len = examine(s, best, offset_in(s, cursor, best), p->enough, &start);
	return len >= p->least && take_at_cursor(s, best, start, len);
}

/* Few blocks of data go on where the last ones ended, so that what is synced together leaves in one request. */
static bool at_cursor(struct search *s)
{
	uint64_t cursor = s->m->cursor[0];
	if (cursor < s->m->geo.data_start || cursor >= s->m->geo.data_end)
		return false;
	uint32_t group = (uint32_t)(cursor >> PF_GROUP_SHIFT), from = (uint32_t)(cursor % PF_GROUP_BLOCKS);
	struct pf_group *g = &s->m->groups[group];
	if ((pf_group_kind(g) && s->m->meta) || !is_there(s, group) || g->free_blocks < s->req->min_nr || !load(s, group))
		return false;
	uint32_t end = pf_bits_next_set(g->maps->used, from, PF_GROUP_BLOCKS);
	return end > from && take_at_cursor(s, group, from, end - from);
}

static int alloc_in_view(struct search *s, enum view view)
{
	const struct pf_alloc_req *req = s->req;
	uint32_t min = req->min_nr < PF_GROUP_BLOCKS ? (uint32_t)req->min_nr : PF_GROUP_BLOCKS;
	uint64_t want = allowance(s, req->nr);
	if (!want || req->min_nr > PF_GROUP_BLOCKS)
		return -ENOSPC;
	if (view == VIEW_BROKEN)
		want = min; /* runs are so short here that the next one is as good as any */
	s->view = view;
	s->want = want < PF_GROUP_BLOCKS ? (uint32_t)want : PF_GROUP_BLOCKS;
	if (req->goal && pf_addr_member(req->goal) == s->m->id && at_goal(s))
		return 0;
	bool few = req->use != PF_USE_NODE && s->want < SEGMENT_BLOCKS && view == VIEW_ALL;
	if (few && at_cursor(s))
		return 0;
	uint32_t enough = few ? SEGMENT_BLOCKS : s->want;
	for (unsigned other = 0; other < 2; other++) {
		unsigned kind = (req->use == PF_USE_NODE) != other;
		const struct pass passes[] = { { kind, enough, enough, EFFORT },
					       { kind, min, enough, EFFORT },
					       { kind, min, min, INT_MAX } };
		for (unsigned i = view == VIEW_BROKEN ? 2 : 0; i < 3; i++) {
			if (search_groups(s, &passes[i]))
				return 0;
		}
	}
	return -ENOSPC;
}

static int alloc_in_views(struct search *s)
{
	if (s->req->use == PF_USE_NODE)
		return alloc_in_view(s, VIEW_WHOLE);
	if (!s->m->share_blocks)
		return alloc_in_view(s, VIEW_ALL);
	bool broken = s->m->free_quads * PF_NODE_BLOCKS <= s->m->share_blocks;
	int err = -ENOSPC;
	/* the first once more: others may have broken quads while a map was read */
	for (unsigned i = 0; i < 3 && err; i++, broken = !broken) {
		if (broken || breakable(s))
			err = alloc_in_view(s, broken ? VIEW_BROKEN : VIEW_ALL);
	}
	return err;
}

static int alloc_on(struct search *s)
{
	static const enum where order[] = { OUTSIDE, AT_HOME, ANYWHERE };
	bool go_home = s->req->use == PF_USE_NODE && s->m->home.host == PF_HOST_REFUSES;
	int err = -ENOSPC;
	for (unsigned i = !s->m->home.nr_groups ? 2 : go_home ? 1 : 0; i < 3 && err; i++) {
		s->where = order[i];
		err = alloc_in_views(s);
	}
	return err;
}

/* -- which member
 * ------------------------------------------------------------------------------------------------------- */

struct order {
	unsigned nr;
	uint8_t ids[PF_MAX_MEMBERS];
	uint32_t taken;
};

static void add(struct order *order, const struct pf_space *space, unsigned id)
{
	if (id >= space->nr || order->taken >> id & 1)
		return;
	order->taken |= UINT32_C(1) << id;
	if (space->members[id].failed)
		return;
	order->ids[order->nr++] = (uint8_t)id;
}

static void add_by_room(struct order *order, const struct pf_space *space, enum pf_space_use use)
{
	for (;;) {
		unsigned best = 0;
		double most = -1;
		for (unsigned i = 0; i < space->nr; i++) {
			const struct pf_space_member *m = &space->members[i];
			if (order->taken >> i & 1)
				continue;
			double share = (double)pf_space_member_room(m, use) / (double)m->area_blocks;
			if (share > most) {
				most = share;
				best = i;
			}
		}
		if (most < 0)
			return;
		add(order, space, best);
	}
}

static void choose_order(const struct pf_space *space, const struct pf_alloc_req *req, struct order *order)
{
	memset(order, 0, sizeof(*order));
	unsigned first = req->member >= 0 ? (unsigned)req->member : req->goal ? pf_addr_member(req->goal) : space->nr;
	uint32_t tight = req->use == PF_USE_NODE || req->only_member ? 0 : pf_space_tight(space);
	order->taken = tight; /* their turn comes behind the others */
	add(order, space, first);
	if (req->only_member)
		return;
	for (unsigned i = 0; i < space->nr_meta && req->use == PF_USE_NODE; i++)
		add(order, space, space->meta_members[i]);
	add_by_room(order, space, req->use);
	if (tight) {
		order->taken &= ~tight;
		add(order, space, first);
		add_by_room(order, space, req->use);
	}
}

static int alloc_anywhere(struct search *s)
{
	const struct pf_alloc_req *req = s->req;
	struct order order;
	int err = -ENOSPC;
	choose_order(s->space, req, &order);
	for (unsigned share = 0; share < 2 && err; share++) {
		s->into_share = share;
		if (share && (!req->reserved || req->only_member))
			break;
		for (unsigned i = 0; i < order.nr && err; i++) {
			s->m = &s->space->members[order.ids[i]];
			err = alloc_on(s);
		}
	}
	return err;
}

int pf_space_alloc(struct pf_space *space, const struct pf_alloc_req *req, struct pf_run *run)
{
	struct search s = { .space = space, .req = req, .run = run };
	assert(req->nr >= req->min_nr && req->min_nr > 0);
	assert(!req->only_member || req->member >= 0);
	assert(req->use != PF_USE_NODE || req->min_nr % PF_NODE_BLOCKS == 0);

	pthread_mutex_lock(&space->lock);
	assert(!req->reserved || (req->use != PF_USE_NODE && space->reserved >= req->nr));
	int err = alloc_anywhere(&s);
	if (err == -ENOSPC && pf_discard_drop(space))
		err = alloc_anywhere(&s);
	if (err && s.load_err)
		err = s.load_err == -ENOMEM ? -ENOMEM : -EIO;
	else if (err && req->use == PF_USE_NODE && pf_group_retry_all(space))
		err = alloc_anywhere(&s); /* a checkpoint that found no room begins here again, not with a freeze */
	pf_group_evict(space, EFFORT);
	pthread_mutex_unlock(&space->lock);
	return err;
}

static void unalloc(struct pf_space *space, struct pf_run run, uint64_t promised)
{
	assert(pf_addr_member(run.addr) < space->nr);
	pthread_mutex_lock(&space->lock);
	pf_group_release(&space->members[pf_addr_member(run.addr)], run);
	space->reserved += promised;
	pthread_mutex_unlock(&space->lock);
}

void pf_space_unalloc(struct pf_space *space, struct pf_run run)
{
	unalloc(space, run, 0);
}

void pf_space_unalloc_promised(struct pf_space *space, struct pf_run run)
{
	unalloc(space, run, run.nr);
}
