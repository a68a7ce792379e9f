/* SPDX-License-Identifier: MIT
 *
 * Random operations on the free space and on plain arrays, compared: no block is handed out twice, counts are exact,
 * those of quads too, what is kept for nodes is kept, and after a crash at any moment, with any part of the unflushed
 * writes lost, torn or kept, the maps are those of the last durable checkpoint.
 */
#include "space_util.h"

enum state { FREE = 0, DATA, NODE, LEAKED /* freed data without reclaim: the map keeps it */ };

struct live {
	struct pf_run run;
	enum state state;
};

struct model {
	struct rig rig;
	uint64_t seed;
	bool reclaim;
	uint8_t *now[PF_MAX_MEMBERS];     /* enum state, in the tree of the open txg */
	uint8_t *frozen[PF_MAX_MEMBERS];  /* in that of the checkpoint under way */
	uint8_t *durable[PF_MAX_MEMBERS]; /* in that of the last durable one */
	uint8_t *used[PF_MAX_MEMBERS];    /* must not be handed out */
	uint16_t *freed[PF_MAX_MEMBERS];  /* the txg in which it was freed, while that matters */
	struct live *lives;
	size_t nr_lives, cap_lives;
	struct live loose[64]; /* allocated, not yet in a tree */
	unsigned nr_loose;
	uint64_t reserved;
	struct {
		unsigned member, ticket;
		uint64_t txg;
	} readers[4];
	unsigned nr_readers;
	uint64_t txg; /* the open one */
	bool checkpoint, written;
	uint64_t nr_allocs, nr_full, nr_crashes, nr_checkpoints, nr_failed_writes;
	uint64_t nr_short; /* data that had to make do with broken quads */
};

static uint64_t rnd(struct model *m)
{
	m->seed = m->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	uint64_t x = m->seed;
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	return x ^ x >> 29;
}

static uint64_t below(struct model *m, uint64_t n)
{
	return rnd(m) % n;
}

static uint64_t nr_blocks(const struct model *m, unsigned member)
{
	return m->rig.set.members[member].geo.nr_groups * PF_GROUP_BLOCKS;
}

static void mark(uint8_t **map, struct pf_run run, int from, int to)
{
	uint8_t *bytes = map[pf_addr_member(run.addr)] + pf_addr_block(run.addr);
	for (uint64_t i = 0; i < run.nr; i++) {
		if (bytes[i] != from) /* (ck_assert writes to a file each time) */
			ck_abort_msg("block %llx: state %d, not %d", (unsigned long long)(run.addr + i), bytes[i],
				     from);
		bytes[i] = (uint8_t)to;
	}
}

static void add_live(struct model *m, struct pf_run run, enum state state)
{
	if (m->nr_lives == m->cap_lives) {
		m->cap_lives = m->cap_lives ? 2 * m->cap_lives : 256;
		m->lives = realloc(m->lives, m->cap_lives * sizeof(*m->lives));
		ck_assert_ptr_nonnull(m->lives);
	}
	m->lives[m->nr_lives++] = (struct live){ run, state };
}

/* -- what may be reused ------------------------------------------------------------------------------------------ */

static bool reader_of(const struct model *m, unsigned member, uint64_t txg)
{
	for (unsigned r = 0; r < m->nr_readers; r++) {
		if (m->readers[r].member == member && m->readers[r].txg <= txg)
			return true;
	}
	return false;
}

static bool may_hand_out(const struct model *m, unsigned member, uint64_t block)
{
	uint16_t txg = m->freed[member][block];
	if (!m->used[member][block])
		return true;
	return txg && txg <= m->rig.generation && !reader_of(m, member, txg);
}

/* Members without readers: everything freed in a durable txg is free now. (With readers the implementation may wait
 * longer than it must; may_hand_out() is then the bound that it has to keep.) */
static void release(struct model *m)
{
	for (unsigned i = 0; i < m->rig.nr; i++) {
		if (reader_of(m, i, UINT64_MAX))
			continue;
		for (uint64_t b = 0; b < nr_blocks(m, i); b++) {
			if (m->freed[i][b] && m->freed[i][b] <= m->rig.generation) {
				m->freed[i][b] = 0;
				m->used[i][b] = 0;
			}
		}
	}
}

/* -- quads ------------------------------------------------------------------------------------------------------- */

/* Of a member: free blocks, whole quads, and how many of these are kept from data of a use. */
struct quads {
	uint64_t blocks, whole, kept;
};

static struct quads count_quads(const struct model *m, unsigned i, enum pf_space_use use)
{
	const struct pf_geometry *geo = &m->rig.set.members[i].geo;
	struct quads q = { 0 };
	uint64_t len = 0, nodes = 0, share = m->rig.super.members[i].share_blocks;
	for (uint64_t b = geo->data_start; b < geo->data_end; b++) {
		len = b % PF_NODE_BLOCKS ? len : 0;
		len = m->used[i][b] ? 0 : len + 1;
		q.blocks += !m->used[i][b];
		q.whole += len == PF_NODE_BLOCKS;
		nodes += m->now[i][b] == NODE;
	}
	uint64_t least = share / 2 / 4 * 5;
	q.kept = share > nodes + least ? share - nodes : least;
	if (use == PF_USE_DATA_PRIVILEGED)
		q.kept /= 2;
	q.kept /= PF_NODE_BLOCKS;
	return q;
}

static uint64_t room_of(struct quads q)
{
	return q.blocks - PF_NODE_BLOCKS * (q.kept < q.whole ? q.kept : q.whole);
}

/* Has any of these blocks made a whole quad a broken one? */
static uint64_t nr_broken(const struct model *m, unsigned i, uint64_t block, uint64_t nr)
{
	uint64_t broken = 0;
	for (uint64_t q = block / PF_NODE_BLOCKS; q <= (block + nr - 1) / PF_NODE_BLOCKS; q++) {
		const uint8_t *used = m->used[i] + q * PF_NODE_BLOCKS;
		const struct pf_geometry *geo = &m->rig.set.members[i].geo;
		bool inside = q * PF_NODE_BLOCKS >= geo->data_start && (q + 1) * PF_NODE_BLOCKS <= geo->data_end;
		broken += inside && !used[0] && !used[1] && !used[2] && !used[3];
	}
	return broken;
}

/* -- what the numbers must be ------------------------------------------------------------------------------------ */

static void check_stats(struct model *m)
{
	struct pf_space_stats s = rig_stats(&m->rig);
	uint64_t free_blocks = 0, nodes = 0, pending = 0, avail = 0, meta_free = 0;
	release(m);
	if (m->nr_readers)
		return;
	for (unsigned i = 0; i < m->rig.nr; i++) {
		const struct pf_geometry *geo = &m->rig.set.members[i].geo;
		uint64_t n = 0, p = 0, member_free, member_pending;
		struct quads q = count_quads(m, i, PF_USE_DATA);
		for (uint64_t b = geo->data_start; b < geo->data_end; b++) {
			n += m->now[i][b] == NODE;
			p += m->freed[i][b] != 0;
		}
		free_blocks += q.blocks;
		nodes += n;
		pending += p;
		pf_space_member_stats(m->rig.space, i, &member_free, &member_pending);
		ck_assert_uint_eq(member_free, q.blocks);
		ck_assert_uint_eq(m->rig.space->members[i].free_quads, q.whole);
		ck_assert_uint_eq(member_pending, p);
		avail += room_of(q);
		if (i == 0) /* the only metadata member */
			meta_free += q.whole * PF_NODE_BLOCKS;
	}
	avail = avail > m->reserved ? avail - m->reserved : 0;
	ck_assert_uint_eq(s.free_blocks, free_blocks);
	ck_assert_uint_eq(s.node_blocks, nodes);
	ck_assert_uint_eq(s.pending_blocks, pending);
	ck_assert_uint_eq(s.avail_blocks, avail);
	ck_assert_uint_eq(s.reserved_blocks, m->reserved);
	ck_assert_uint_eq(s.meta_free_blocks, meta_free);
	ck_assert_uint_le(pf_space_node_room(m->rig.space), meta_free);
	ck_assert_uint_eq(s.bad_groups, 0);
	ck_assert_uint_eq(s.dropped_blocks, 0);
}

static void check_maps(struct model *m)
{
	uint8_t map[PF_GROUP_BLOCKS / 8];
	for (unsigned i = 0; i < m->rig.nr; i++) {
		const struct pf_geometry *geo = &m->rig.set.members[i].geo;
		for (uint64_t g = 0; g < geo->nr_groups; g++) {
			ck_assert_int_eq(pf_space_read_map(m->rig.space, i, g, map), 0);
			for (uint64_t b = g << PF_GROUP_SHIFT; b < (g + 1) << PF_GROUP_SHIFT; b++) {
				bool fixed = b < geo->data_start || b >= geo->data_end;
				if (rig_bit(map, b) != (fixed || m->durable[i][b]))
					ck_abort_msg("member %u block %llu: map says %d, tree %d", i,
						     (unsigned long long)b, rig_bit(map, b), m->durable[i][b]);
			}
		}
	}
}

/* -- operations -------------------------------------------------------------------------------------------------- */

static void take_run(struct model *m, const struct pf_alloc_req *req, struct pf_run run)
{
	unsigned member = pf_addr_member(run.addr);
	const struct pf_geometry *geo = &m->rig.set.members[member].geo;
	uint64_t block = pf_addr_block(run.addr);
	ck_assert(run.nr >= req->min_nr && run.nr <= req->nr);
	ck_assert(!req->only_member || member == (unsigned)req->member);
	ck_assert(block >= geo->data_start && block + run.nr <= geo->data_end);
	if (req->use == PF_USE_NODE)
		ck_assert(block % PF_NODE_BLOCKS == 0 && run.nr % PF_NODE_BLOCKS == 0);
	if (!m->nr_readers) {
		release(m);
		struct quads q = count_quads(m, member, req->use);
		uint64_t broken = nr_broken(m, member, block, run.nr);
		if (req->use == PF_USE_NODE)
			ck_assert_uint_eq(broken, run.nr / PF_NODE_BLOCKS);
		else if (!req->reserved) /* I7 */
			ck_assert(!broken || q.whole - broken >= q.kept);
		bool shared = m->rig.super.members[member].share_blocks > 0;
		m->nr_short += shared && req->use != PF_USE_NODE && q.whole <= q.kept;
	}
	for (uint64_t b = block; b < block + run.nr; b++) {
		if (!may_hand_out(m, member, b))
			ck_abort_msg("member %u block %llu handed out twice", member, (unsigned long long)b);
		m->used[member][b] = 1;
		m->freed[member][b] = 0;
	}
	m->loose[m->nr_loose++] = (struct live){ run, req->use == PF_USE_NODE ? NODE : DATA };
	m->nr_allocs++;
}

static void op_alloc(struct model *m, uint64_t most)
{
	struct pf_run run;
	struct pf_alloc_req req = { .use = PF_USE_DATA, .nr = 1 + below(m, most), .min_nr = 1, .member = -1 };
	if (m->nr_loose == 64)
		return;
	if (below(m, 4) == 0) {
		req.use =
			PF_USE_NODE; /* all on one metadata member, so that their number per member survives a reopen */
		req.min_nr = PF_NODE_BLOCKS;
		req.nr = PF_NODE_BLOCKS * (1 + below(m, 8));
		req.member = 0;
		req.only_member = true;
	} else if (below(m, 8) == 0) {
		req.use = PF_USE_DATA_PRIVILEGED;
	} else if (below(m, 8) == 0) {
		req.member = (int)below(m, m->rig.nr);
		req.only_member = below(m, 2);
	}
	if (below(m, 2) && m->nr_lives) {
		const struct live *l = &m->lives[below(m, m->nr_lives)];
		req.goal = l->run.addr + l->run.nr;
	}
	uint64_t avail = rig_stats(&m->rig).avail_blocks;
	int err = pf_space_alloc(m->rig.space, &req, &run);
	if (!err) {
		if (req.use == PF_USE_DATA)
			ck_assert(run.nr <= avail);
		take_run(m, &req, run);
		return;
	}
	ck_assert_int_eq(err, -ENOSPC);
	m->nr_full++;
	release(m);
	if (req.use == PF_USE_DATA && !req.only_member)
		ck_assert_uint_eq(avail, 0);
	if (req.use == PF_USE_NODE && !m->nr_readers)
		ck_assert_uint_eq(count_quads(m, 0, PF_USE_NODE).whole, 0);
}

static void op_promise(struct model *m)
{
	struct pf_run run;
	uint64_t nr = 1 + below(m, 40);
	if (m->reserved && below(m, 2)) {
		struct pf_alloc_req req = { .use = PF_USE_DATA, .min_nr = 1, .member = -1, .reserved = true };
		req.nr = 1 + below(m, m->reserved);
		if (m->nr_loose == 64)
			return;
		bool any = rig_stats(&m->rig).free_blocks > 0; /* only nodes may eat up what was promised */
		ck_assert_int_eq(pf_space_alloc(m->rig.space, &req, &run), any ? 0 : -ENOSPC);
		if (!any)
			return;
		take_run(m, &req, run);
		m->reserved -= run.nr;
	} else if (m->reserved && below(m, 2)) {
		nr = 1 + below(m, m->reserved);
		pf_space_unreserve(m->rig.space, nr);
		m->reserved -= nr;
	} else {
		uint64_t avail = rig_stats(&m->rig).avail_blocks;
		int err = pf_space_reserve(m->rig.space, PF_USE_DATA, nr);
		ck_assert_int_eq(err, avail >= nr ? 0 : -ENOSPC);
		m->reserved += err ? 0 : nr;
	}
}

static void op_settle(struct model *m)
{
	if (!m->nr_loose)
		return;
	unsigned at = (unsigned)below(m, m->nr_loose);
	struct live l = m->loose[at];
	m->loose[at] = m->loose[--m->nr_loose];
	if (below(m, 8) == 0) {
		pf_space_unalloc(m->rig.space, l.run);
		mark(m->used, l.run, 1, 0);
		return;
	}
	if (l.state == NODE && m->checkpoint && !m->written) {
		pf_space_commit_frozen(m->rig.space, l.run);
		mark(m->frozen, l.run, FREE, NODE);
	} else {
		pf_space_commit(m->rig.space, l.run, l.state == NODE ? PF_USE_NODE : PF_USE_DATA);
	}
	mark(m->now, l.run, FREE, l.state);
	add_live(m, l.run, l.state);
}

static void op_free(struct model *m)
{
	if (!m->nr_lives)
		return;
	size_t at = below(m, m->nr_lives);
	struct live l = m->lives[at];
	m->lives[at] = m->lives[--m->nr_lives];
	uint64_t from = 0, to = l.run.nr;
	if (l.state == DATA && below(m, 2)) {
		from = below(m, l.run.nr);
		to = from + 1 + below(m, l.run.nr - from);
	}
	if (from > 0)
		add_live(m, (struct pf_run){ l.run.addr, from }, l.state);
	if (to < l.run.nr)
		add_live(m, (struct pf_run){ l.run.addr + to, l.run.nr - to }, l.state);
	struct pf_run run = { l.run.addr + from, to - from };
	pf_space_free(m->rig.space, run, l.state == NODE ? PF_USE_NODE : PF_USE_DATA);
	bool gone = l.state == NODE || m->reclaim;
	mark(m->now, run, l.state, gone ? FREE : LEAKED);
	for (uint64_t i = 0; i < run.nr && gone; i++)
		m->freed[pf_addr_member(run.addr)][pf_addr_block(run.addr) + i] = (uint16_t)m->txg;
}

static void op_reader(struct model *m)
{
	if (m->nr_readers == 4 || (m->nr_readers && below(m, 2))) {
		unsigned at = (unsigned)below(m, m->nr_readers);
		pf_space_reader_exit(m->rig.space, m->readers[at].member, m->readers[at].ticket);
		m->readers[at] = m->readers[--m->nr_readers];
	} else {
		unsigned member = (unsigned)below(m, m->rig.nr), at = m->nr_readers++;
		m->readers[at].member = member;
		m->readers[at].txg = m->txg;
		m->readers[at].ticket = pf_space_reader_enter(m->rig.space, member);
	}
}

static void copy_maps(struct model *m, uint8_t **to, uint8_t **from)
{
	for (unsigned i = 0; i < m->rig.nr; i++)
		memcpy(to[i], from[i], nr_blocks(m, i));
}

/* One step of a checkpoint; other operations fall between. */
static void op_checkpoint(struct model *m, struct pf_super *super)
{
	uint32_t changed;
	if (!m->checkpoint) {
		pf_space_freeze(m->rig.space);
		copy_maps(m, m->frozen, m->now);
		m->txg++;
		m->checkpoint = true;
		m->written = false;
		return;
	}
	if (!m->written) {
		bool fail = below(m, 3) == 0;
		unsigned fault = 0;
		if (fail) {
			struct sim_fault f = { .ops = SIM_WRITE, .kind = SIM_FAIL, .skip = below(m, 8), .count = 1 };
			fault = simworld_add_fault(m->rig.world, &f);
		}
		int err = pf_space_write(m->rig.space, m->rig.generation + 1, super, &changed);
		fail = fail && simworld_fault_hits(m->rig.world, fault);
		simworld_clear_faults(m->rig.world);
		ck_assert_int_eq(err, fail ? -EIO : 0);
		m->nr_failed_writes += fail;
		m->written = !fail;
		return;
	}
	rig_durable(&m->rig, super);
	copy_maps(m, m->durable, m->frozen);
	m->checkpoint = false;
	m->nr_checkpoints++;
}

static void find_lives(struct model *m, unsigned i)
{
	for (uint64_t b = 0; b < nr_blocks(m, i);) {
		enum state state = m->durable[i][b];
		uint64_t end = b + 1;
		while (end < nr_blocks(m, i) && m->durable[i][end] == state)
			end++;
		if (state == DATA || state == NODE)
			add_live(m, (struct pf_run){ pf_addr_make(i, b), end - b }, state);
		b = end;
	}
}

static void op_crash(struct model *m)
{
	size_t cut = below(m, simworld_log_len(m->rig.world) + 1);
	size_t nr = simworld_pending(m->rig.world, cut, NULL, 0);
	struct sim_fate *fates = calloc(nr + 1, sizeof(*fates));
	switch (below(m, 3)) {
	case 0:
		break; /* all lost */
	case 1:
		for (size_t i = 0; i < nr; i++)
			fates[i].kind = SIM_KEPT;
		break;
	default:
		sim_fates_seeded(rnd(m), fates, nr);
	}
	rig_crash(&m->rig, cut, fates);
	free(fates);
	m->nr_crashes++;
	check_maps(m);
	uint64_t nodes = 0;
	m->nr_lives = m->nr_loose = m->nr_readers = 0;
	m->reserved = 0;
	m->checkpoint = false;
	m->txg = m->rig.generation + 1;
	copy_maps(m, m->now, m->durable);
	for (unsigned i = 0; i < m->rig.nr; i++) {
		memset(m->freed[i], 0, nr_blocks(m, i) * sizeof(*m->freed[i]));
		for (uint64_t b = 0; b < nr_blocks(m, i); b++) {
			m->used[i][b] = m->durable[i][b] != FREE;
			nodes += m->durable[i][b] == NODE;
		}
		find_lives(m, i);
	}
	pf_space_set_node_blocks(m->rig.space, nodes);
	check_stats(m);
}

/* -- the runs ---------------------------------------------------------------------------------------------------- */

static void model_new(struct model *m, unsigned version, const uint64_t *sizes, unsigned nr, uint64_t seed)
{
	memset(m, 0, sizeof(*m));
	m->seed = seed;
	m->reclaim = version >= 4;
	rig_new(&m->rig, version, nr, sizes, 1);
	for (unsigned i = 0; i < nr; i++) {
		uint64_t blocks = nr_blocks(m, i);
		m->now[i] = calloc(blocks, 1);
		m->frozen[i] = calloc(blocks, 1);
		m->durable[i] = calloc(blocks, 1);
		m->used[i] = calloc(blocks, 1);
		m->freed[i] = calloc(blocks, sizeof(*m->freed[i]));
		ck_assert(m->now[i] && m->frozen[i] && m->durable[i] && m->used[i] && m->freed[i]);
	}
	m->txg = m->rig.generation + 1;
}

static void model_free(struct model *m)
{
	for (unsigned i = 0; i < m->rig.nr; i++) {
		free(m->now[i]);
		free(m->frozen[i]);
		free(m->durable[i]);
		free(m->used[i]);
		free(m->freed[i]);
	}
	free(m->lives);
	rig_free(&m->rig);
}

static void run_model(struct model *m, unsigned steps, uint64_t most)
{
	struct pf_super super = m->rig.super;
	for (unsigned step = 0; step < steps; step++) {
		/* in turn more is allocated than freed, and the other way round */
		bool fill = step / 400 % 2 == 0;
		uint64_t dice = below(m, 100);
		if (dice < (fill ? 45 : 10))
			op_alloc(m, most);
		else if (dice < 60)
			op_settle(m);
		else if (dice < (fill ? 66 : 82))
			op_free(m);
		else if (dice < 86)
			op_promise(m);
		else if (dice < 90)
			op_reader(m);
		else if (dice < 98)
			op_checkpoint(m, &super);
		else if (dice < 99)
			check_stats(m);
		else if (below(m, 3) == 0)
			op_crash(m);
		m->rig.space->max_loaded = (unsigned)(step / 300 % 3 ? 4096 : 1);
	}
	check_stats(m);
	/* a run that met neither a full pool nor a crash proves little */
	ck_assert_uint_gt(m->nr_crashes, 3);
	ck_assert_uint_gt(m->nr_checkpoints, 10);
	ck_assert_uint_gt(m->nr_failed_writes, 3);
	ck_assert_uint_gt(m->nr_allocs, steps / 20);
}

#define MIB (UINT64_C(1) << 20)

START_TEST(small)
{
	struct model m;
	const uint64_t sizes[] = { 16 * MIB };
	model_new(&m, (unsigned)_i, sizes, 1, (uint64_t)_i);
	run_model(&m, 8000, 200);
	ck_assert_uint_gt(m.nr_full, 3);
	ck_assert_uint_gt(m.nr_short, 0);
	model_free(&m);
}
END_TEST

START_TEST(two_groups)
{
	struct model m;
	const uint64_t sizes[] = { 70 * MIB };
	model_new(&m, (unsigned)_i, sizes, 1, 100 + (uint64_t)_i);
	run_model(&m, 6000, 1000);
	ck_assert_uint_gt(m.nr_full, 3);
	ck_assert_uint_gt(m.nr_short, 0);
	model_free(&m);
}
END_TEST

START_TEST(mixed)
{
	struct model m;
	const uint64_t sizes[] = { 300 * MIB + 12345 * 4096, 16 * MIB, 70 * MIB };
	model_new(&m, (unsigned)_i, sizes, 3, 200 + (uint64_t)_i);
	run_model(&m, 3000, 4000);
	model_free(&m);
}
END_TEST

START_TEST(large)
{
	struct model m;
	const uint64_t sizes[] = { 1024 * MIB };
	model_new(&m, 5, sizes, 1, 300);
	run_model(&m, 3000, 20000);
	model_free(&m);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("space_model");
	TCase *tc = tcase_create("random");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, small, PF_VERSION_FIRST, PF_VERSION_NEWEST + 1);
	tcase_add_loop_test(tc, two_groups, PF_VERSION_FIRST, PF_VERSION_NEWEST + 1);
	tcase_add_loop_test(tc, mixed, 3, PF_VERSION_NEWEST + 1);
	tcase_add_test(tc, large);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
