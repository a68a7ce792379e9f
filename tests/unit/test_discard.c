/* SPDX-License-Identifier: MIT
 *
 * The rules of space/discard.h: what is discarded, when, and when it can be had again.
 */
#include "space_fill.h"

#include <pthread.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define W   PF_DISCARD_BLOCKS

static struct rig rig;
static char logged[4096];
static unsigned nr_logged;

static void remember(void *arg, enum pf_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	snprintf(logged, sizeof(logged), "%s", message);
	nr_logged++;
}

/* One metadata member and one of data only; with discards on both. */
static void setup_version(unsigned version)
{
	rig_new(&rig, version, 2, (const uint64_t[]){ 64 * MIB, 200 * MIB }, 1);
	rig.env.log = remember;
	nr_logged = 0;
	pf_space_set_discard(rig.space, 3);
}

static void setup(void)
{
	setup_version(4);
}

static void teardown(void)
{
	rig_free(&rig);
}

static uint64_t nr_discards(unsigned member)
{
	return simdisk_count(simworld_disk(rig.world, member), SIM_DISCARD);
}

static struct pf_run take_on(unsigned member, uint64_t nr, uint64_t goal)
{
	struct pf_run run;
	struct pf_alloc_req req = { .use = PF_USE_DATA, .nr = nr, .min_nr = nr, .member = (int)member, .only_member = true,
				    .goal = goal ? pf_addr_make(member, goal) : 0 };
	ck_assert_int_eq(pf_space_alloc(rig.space, &req, &run), 0);
	ck_assert_uint_eq(run.nr, nr);
	pf_space_commit(rig.space, run, PF_USE_DATA);
	return run;
}

static void drop(struct pf_run run)
{
	pf_space_free(rig.space, run, PF_USE_DATA);
}

static struct pf_run part(struct pf_run run, uint64_t from, uint64_t nr)
{
	return (struct pf_run){ run.addr + from, nr };
}

static void work(void)
{
	while (pf_space_discard_step(rig.space))
		;
}

/* A byte of the block, which must be the same all over it: 0 after a discard. */
static int content(struct pf_run run, uint64_t i)
{
	static uint8_t buf[PF_BLOCK_SIZE];
	simdisk_peek(simworld_disk(rig.world, pf_addr_member(run.addr)), (pf_addr_block(run.addr) + i) * PF_BLOCK_SIZE, buf,
		     sizeof(buf));
	for (unsigned k = 1; k < sizeof(buf); k++)
		ck_assert_uint_eq(buf[k], buf[0]);
	return buf[0];
}

static void fill(struct pf_run run, uint8_t byte)
{
	uint8_t *buf = malloc(run.nr * PF_BLOCK_SIZE);
	memset(buf, byte, run.nr * PF_BLOCK_SIZE);
	simdisk_poke(simworld_disk(rig.world, pf_addr_member(run.addr)), pf_addr_block(run.addr) * PF_BLOCK_SIZE, buf,
		     run.nr * PF_BLOCK_SIZE);
	free(buf);
}

/* -- online -------------------------------------------------------------------------------------------------------- */

/* Pending until the checkpoint, then waiting, then free: allocatable only after the discard. */
START_TEST(discarded_before_it_is_free)
{
	struct pf_run run = take_on(1, 64 * W, 100 * W);
	fill(run, 7);
	rig_checkpoint(&rig);
	uint64_t free_blocks = rig_stats(&rig).free_blocks;
	drop(run);
	work();
	ck_assert_uint_eq(nr_discards(1), 0);
	ck_assert_uint_eq(rig_stats(&rig).pending_blocks, run.nr);
	unsigned ticket = pf_space_reader_enter(rig.space, 1);
	rig_checkpoint(&rig);
	work();
	ck_assert_uint_eq(nr_discards(1), 0); /* a reader is there */
	pf_space_reader_exit(rig.space, 1, ticket);
	ck_assert_uint_eq(nr_discards(1), 0); /* and it does not do our work */
	ck_assert_uint_eq(rig_stats(&rig).free_blocks, free_blocks);
	ck_assert_uint_eq(rig_stats(&rig).pending_blocks, run.nr);
	ck_assert_int_eq(content(run, 0), 7);
	/* nobody gets it meanwhile */
	struct pf_run other = take_on(1, 64 * W, pf_addr_block(run.addr));
	ck_assert_uint_ne(other.addr, run.addr);
	work();
	ck_assert_uint_eq(nr_discards(1), 1);
	ck_assert_uint_eq(rig_stats(&rig).free_blocks, free_blocks + run.nr - other.nr);
	ck_assert_uint_eq(rig_stats(&rig).pending_blocks, 0);
	for (uint64_t i = 0; i < run.nr; i++)
		ck_assert_int_eq(content(run, i), 0);
	ck_assert_uint_eq(take_on(1, 64 * W, pf_addr_block(run.addr)).addr, run.addr);
}
END_TEST

/* While the member is at it nobody gets the blocks, and nothing is locked. */
static void *one_step(void *arg)
{
	pf_space_discard_step(arg);
	return NULL;
}

static void *end_hang(void *arg)
{
	usleep(1500000);
	simdisk_set_hang(arg, 0);
	return NULL;
}

START_TEST(nothing_is_locked_meanwhile)
{
	struct pf_run run = take_on(1, 64 * W, 100 * W), other;
	struct simdisk *disk = simworld_disk(rig.world, 1);
	pthread_t thread, waker;
	rig_checkpoint(&rig);
	drop(run);
	rig_checkpoint(&rig);
	simdisk_set_hang(disk, SIM_DISCARD);
	pthread_create(&thread, NULL, one_step, rig.space);
	while (!simdisk_nr_hung(disk))
		usleep(1000);
	ck_assert_uint_eq(rig_stats(&rig).pending_blocks, run.nr);
	other = take_on(1, 64 * W, pf_addr_block(run.addr));
	ck_assert_uint_ne(other.addr, run.addr);
	rig_checkpoint(&rig);
	/* who finds no room waits for it, longer than for a reader, but not for ever */
	uint64_t released = pf_space_released(rig.space);
	ck_assert(!pf_space_await_release(rig.space, released));
	pthread_create(&waker, NULL, end_hang, disk);
	ck_assert(pf_space_await_release(rig.space, released));
	pthread_join(thread, NULL);
	pthread_join(waker, NULL);
	ck_assert_uint_eq(take_on(1, 64 * W, pf_addr_block(run.addr)).addr, run.addr);
}
END_TEST

/* Runs are put together; free neighbours complete a window; what completes none is free at once, without a discard. */
START_TEST(whole_windows)
{
	struct pf_run run = take_on(1, 8 * W, 100 * W);
	ck_assert_uint_eq(pf_addr_block(run.addr) % W, 0);
	fill(run, 9);
	rig_checkpoint(&rig);
	/* window 0 to the half; 1 and 2 block by block, backwards */
	drop(part(run, 0, W / 2));
	for (uint64_t i = 2 * W; i--;)
		drop(part(run, W + i, 1));
	rig_checkpoint(&rig);
	work();
	ck_assert_uint_eq(nr_discards(1), 1);
	ck_assert_uint_eq(rig_stats(&rig).pending_blocks, 0);
	ck_assert_int_eq(content(run, 0), 9);
	ck_assert_int_eq(content(run, W - 1), 9);
	ck_assert_int_eq(content(run, W), 0);
	ck_assert_int_eq(content(run, 3 * W - 1), 0);
	ck_assert_int_eq(content(run, 3 * W), 9);
	/* the other half: now the window is complete */
	drop(part(run, W / 2, W / 2));
	rig_checkpoint(&rig);
	work();
	ck_assert_uint_eq(nr_discards(1), 2);
	ck_assert_int_eq(content(run, 0), 0);
	/* from the middle of a window to the middle of another one, where the rest is in use */
	drop(part(run, 4 * W - 3, W + 6));
	rig_checkpoint(&rig);
	work();
	ck_assert_uint_eq(nr_discards(1), 3);
	ck_assert_int_eq(content(run, 4 * W - 1), 9);
	ck_assert_int_eq(content(run, 4 * W), 0);
	ck_assert_int_eq(content(run, 5 * W - 1), 0);
	ck_assert_int_eq(content(run, 5 * W), 9);
	/* and both rests at once */
	drop(part(run, 3 * W, W - 3));
	drop(part(run, 5 * W + 3, 3 * W - 3));
	rig_checkpoint(&rig);
	work();
	for (uint64_t i = 0; i < run.nr; i++)
		ck_assert_int_eq(content(run, i), 0);
	ck_assert_uint_eq(rig_stats(&rig).pending_blocks, 0);
	struct pf_space_stats stats = rig_stats(&rig);
	ck_assert_uint_eq(stats.free_blocks, stats.data_area_blocks);
}
END_TEST

/* Everything is filled and freed, some of it in single blocks: nothing outside of the data area, nothing of the share. */
START_TEST(never_outside_of_the_data_area)
{
	struct pf_run runs[4000];
	unsigned nr = 0;
	srand(1);
	while (nr < 4000 && !rig_alloc(&rig, PF_USE_DATA, 1 + (uint64_t)rand() % 300, 1, &runs[nr])) {
		pf_space_commit(rig.space, runs[nr], PF_USE_DATA);
		nr++;
	}
	ck_assert_uint_lt(nr, 4000);
	rig_checkpoint(&rig);
	simworld_record(rig.world);
	for (unsigned i = 0; i < nr; i++) {
		for (uint64_t k = 0; k < runs[i].nr && i % 2; k++)
			drop(part(runs[i], k, 1));
		if (i % 2 == 0)
			drop(runs[i]);
		if (i % 100 == 99 || i + 1 == nr) {
			struct pf_super super = rig.super;
			uint32_t changed;
			pf_space_freeze(rig.space);
			ck_assert_int_eq(pf_space_write(rig.space, rig.generation + 1, &super, &changed), 0);
			rig.super = super;
			rig.generation++;
			pf_space_durable(rig.space);
			work();
		}
	}
	uint64_t discarded[2] = { 0 };
	for (size_t k = 0; k < simworld_log_len(rig.world); k++) {
		const struct sim_event *event = simworld_event(rig.world, k);
		if (event->op != SIM_DISCARD)
			continue;
		const struct pf_geometry *geo = &rig.set.members[event->disk].geo;
		uint64_t from = event->off_bytes / PF_BLOCK_SIZE, end = from + event->len_bytes / PF_BLOCK_SIZE;
		uint64_t share = rig.super.members[event->disk].share_blocks;
		ck_assert_uint_ge(from, geo->data_start + share);
		ck_assert_uint_le(end, geo->data_end);
		discarded[event->disk] += end - from;
	}
	ck_assert_uint_gt(discarded[0], 0);
	ck_assert_uint_gt(discarded[1], 190 * MIB / PF_BLOCK_SIZE);
}
END_TEST

/* On a large metadata member nodes come and go in groups of their own, where nothing is discarded. */
START_TEST(not_where_nodes_are)
{
	rig_free(&rig);
	rig_new(&rig, 4, 1, (const uint64_t[]){ 2048 * MIB }, 1);
	pf_space_set_discard(rig.space, 1);
	struct pf_run node, data = take_on(0, 64 * W, 0);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_NODE, 64 * W, 64 * W, &node), 0);
	ck_assert_uint_lt(pf_addr_block(node.addr), PF_GROUP_BLOCKS);
	ck_assert_uint_ge(pf_addr_block(data.addr), PF_GROUP_BLOCKS);
	pf_space_commit(rig.space, node, PF_USE_NODE);
	rig_checkpoint(&rig);
	pf_space_free(rig.space, node, PF_USE_NODE);
	rig_checkpoint(&rig);
	work();
	ck_assert_uint_eq(nr_discards(0), 0);
	ck_assert_uint_eq(rig_stats(&rig).pending_blocks, 0);
	drop(data);
	rig_checkpoint(&rig);
	work();
	ck_assert_uint_eq(nr_discards(0), 1);
}
END_TEST

/* Who finds no room gets what waits, at once. */
START_TEST(pressure)
{
	struct pf_run run = take_on(1, 64 * W, 100 * W), got;
	rig_take_all(&rig, PF_USE_DATA, 10000);
	rig_checkpoint(&rig);
	drop(run);
	rig_checkpoint(&rig);
	ck_assert_uint_eq(rig_stats(&rig).avail_blocks, 0);
	ck_assert_int_eq(pf_space_reserve(rig.space, PF_USE_DATA, 64 * W + 1), -ENOSPC);
	ck_assert_uint_eq(rig_stats(&rig).avail_blocks, 64 * W);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 64 * W, 64 * W, &got), 0);
	ck_assert_uint_eq(got.addr, run.addr);
	pf_space_commit(rig.space, got, PF_USE_DATA);
	drop(got);
	rig_checkpoint(&rig);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 1, 1, &got), 0);
	work();
	ck_assert_uint_eq(nr_discards(0) + nr_discards(1), 0);
	/* what is left of a batch as well */
	pf_space_unalloc(rig.space, got);
	uint64_t released = pf_space_released(rig.space);
	got = take_on(1, 64 * W, 0);
	drop(part(got, 0, 2 * W));
	drop(part(got, 4 * W, 2 * W));
	drop(part(got, 8 * W, 2 * W));
	rig_checkpoint(&rig);
	ck_assert_int_eq(pf_space_discard_step(rig.space), 1);
	ck_assert_uint_eq(nr_discards(1), 1);
	ck_assert_uint_eq(rig_stats(&rig).pending_blocks, 4 * W);
	ck_assert(pf_space_await_release(rig.space, released));
	released = pf_space_released(rig.space);
	ck_assert_int_eq(pf_space_reserve(rig.space, PF_USE_DATA, 6 * W), 0);
	ck_assert_uint_eq(rig_stats(&rig).pending_blocks, 0);
	ck_assert_int_eq(pf_space_discard_step(rig.space), 0);
	ck_assert_uint_eq(nr_discards(1), 1);
	pf_space_unreserve(rig.space, 6 * W);
}
END_TEST

/* What was promised is not taken to complete a window. */
START_TEST(promises_are_kept)
{
	struct pf_run run = take_on(1, W, 100 * W), got;
	rig_take_all(&rig, PF_USE_DATA, 10000);
	rig_checkpoint(&rig);
	drop(part(run, 0, W - 1));
	rig_checkpoint(&rig);
	work();
	ck_assert_uint_eq(rig_stats(&rig).free_blocks - rig_stats(&rig).avail_blocks, rig.super.members[0].share_blocks);
	ck_assert_int_eq(pf_space_reserve(rig.space, PF_USE_DATA, W - 1), 0);
	drop(part(run, W - 1, 1));
	rig_checkpoint(&rig);
	work();
	ck_assert_uint_eq(nr_discards(1), 0);
	struct pf_alloc_req req = { .use = PF_USE_DATA, .nr = W - 1, .min_nr = W - 1, .member = -1, .reserved = true };
	ck_assert_int_eq(pf_space_alloc(rig.space, &req, &got), 0);
}
END_TEST

/* -- errors -------------------------------------------------------------------------------------------------------- */

START_TEST(unsupported)
{
	struct sim_fault fault = { .disk = simworld_disk(rig.world, 1), .ops = SIM_DISCARD, .err = -EOPNOTSUPP };
	simworld_add_fault(rig.world, &fault);
	struct pf_run run = take_on(1, 8 * W, 100 * W);
	rig_checkpoint(&rig);
	drop(part(run, 0, 2 * W));
	drop(part(run, 4 * W, 2 * W));
	rig_checkpoint(&rig);
	work();
	ck_assert_uint_eq(nr_discards(1), 1); /* asked once */
	ck_assert_uint_eq(nr_logged, 1);
	ck_assert_ptr_nonnull(strstr(logged, "disk1"));
	ck_assert_ptr_nonnull(strstr(logged, "not supported"));
	ck_assert_uint_eq(pf_space_discards(rig.space), 1);
	ck_assert_uint_eq(rig_stats(&rig).pending_blocks, 0);
	drop(part(run, 2 * W, W));
	rig_checkpoint(&rig);
	ck_assert_uint_eq(rig_stats(&rig).pending_blocks, 0);
	struct pf_trim trim = { .member = 1 };
	while (pf_space_trim_step(rig.space, &trim) > 0)
		;
	ck_assert_uint_eq(trim.unable, 2);
	ck_assert_uint_eq(trim.trimmed_blocks, 0);
	ck_assert_uint_eq(nr_discards(1), 1);
	ck_assert_uint_eq(nr_logged, 1);
}
END_TEST

START_TEST(failing)
{
	struct sim_fault fault = { .disk = simworld_disk(rig.world, 1), .ops = SIM_DISCARD, .count = 2 };
	simworld_add_fault(rig.world, &fault);
	struct pf_run run = take_on(1, 8 * W, 100 * W);
	fill(run, 3);
	rig_checkpoint(&rig);
	drop(part(run, 0, W));
	drop(part(run, 2 * W, W));
	drop(part(run, 4 * W, W));
	rig_checkpoint(&rig);
	work();
	ck_assert_uint_eq(nr_discards(1), 3);
	ck_assert_uint_eq(nr_logged, 1); /* told once */
	ck_assert_ptr_nonnull(strstr(logged, "disk1"));
	ck_assert_uint_eq(rig_stats(&rig).pending_blocks, 0);
	ck_assert_int_eq(content(run, 0), 3);
	ck_assert_int_eq(content(run, 2 * W), 3);
	ck_assert_int_eq(content(run, 4 * W), 0);
	ck_assert_uint_eq(take_on(1, W, pf_addr_block(run.addr)).addr, run.addr);
}
END_TEST

/* Versions without reclaim keep data; nodes alone come and go. */
START_TEST(no_reclaim)
{
	rig_free(&rig);
	setup_version(3);
	struct pf_run run = take_on(1, 64 * W, 100 * W);
	rig_checkpoint(&rig);
	drop(run);
	rig_checkpoint(&rig);
	work();
	ck_assert_uint_eq(nr_discards(0) + nr_discards(1), 0);
}
END_TEST

/* -- batch --------------------------------------------------------------------------------------------------------- */

static uint64_t trim_all(struct pf_trim *trim)
{
	int more;
	uint64_t pending = rig_stats(&rig).pending_blocks;
	while ((more = pf_space_trim_step(rig.space, trim)) > 0)
		ck_assert_uint_eq(rig_stats(&rig).pending_blocks, pending);
	ck_assert_int_eq(more, 0);
	return trim->trimmed_blocks;
}

START_TEST(trims_what_is_free)
{
	pf_space_set_discard(rig.space, 0);
	struct pf_run run = take_on(1, 8 * W, 100 * W), high = take_on(1, W, 40000);
	fill((struct pf_run){ run.addr - 5 * W, 20 * W }, 4);
	rig_checkpoint(&rig);
	drop(part(run, 3, 3));
	drop(part(run, 3 * W, 2 * W));
	struct pf_space_stats before = rig_stats(&rig);
	/* not before it is durable: the runs are still in use */
	struct pf_trim trim = { .min_blocks = 4 };
	trim_all(&trim);
	ck_assert_int_eq(content(run, 3 * W), 4);
	rig_checkpoint(&rig);
	trim = (struct pf_trim){ .min_blocks = 4 };
	uint64_t trimmed = trim_all(&trim);
	ck_assert_int_eq(content(run, 0), 4);
	ck_assert_int_eq(content(run, 4), 4); /* too short */
	ck_assert_int_eq(content(run, 3 * W - 1), 4);
	ck_assert_int_eq(content(run, 3 * W), 0);
	ck_assert_int_eq(content(run, 5 * W - 1), 0);
	ck_assert_int_eq(content(run, 5 * W), 4);
	ck_assert_int_eq(content(part(run, 0, 1), 8 * W), 0);
	trim = (struct pf_trim){ .min_blocks = 0 };
	ck_assert_uint_eq(trim_all(&trim), trimmed + 3);
	ck_assert_int_eq(content(run, 4), 0);
	ck_assert_int_eq(content(high, 0), 0);
	/* groups that were never used are left alone, unless they are asked for: not one block of the first member was */
	ck_assert_uint_eq(nr_discards(0), 0);
	struct pf_space_stats after = rig_stats(&rig);
	ck_assert_uint_eq(after.free_blocks, before.free_blocks + 2 * W + 3);
	ck_assert_uint_eq(after.pending_blocks, 0);
	trim = (struct pf_trim){ .unused = true };
	trimmed = trim_all(&trim);
	ck_assert_uint_gt(nr_discards(0), 0);
	uint64_t share = rig.super.members[0].share_blocks;
	ck_assert_uint_le(trimmed, after.free_blocks - share);
	ck_assert_uint_ge(trimmed, (after.free_blocks - share) / 100 * 95);
	/* a part only */
	simworld_record(rig.world);
	trim = (struct pf_trim){ .member = 1, .block = 1000, .end_member = 1, .end_block = 1100, .unused = true };
	ck_assert_uint_eq(trim_all(&trim), 100);
	ck_assert_uint_eq(simworld_log_len(rig.world), 1);
	ck_assert_uint_eq(simworld_event(rig.world, 0)->off_bytes, 1000 * PF_BLOCK_SIZE);
	ck_assert_uint_eq(simworld_event(rig.world, 0)->len_bytes, 100 * PF_BLOCK_SIZE);
}
END_TEST

/* Blocks under a trim belong to nobody else, and what nodes or promises need is not taken. */
START_TEST(trim_leaves_room)
{
	struct pf_run run = take_on(1, 64 * W, 100 * W);
	rig_take_all(&rig, PF_USE_DATA, 10000);
	rig_checkpoint(&rig);
	struct pf_trim trim = { 0 };
	ck_assert_uint_eq(trim_all(&trim), 0); /* the rest is kept for nodes */
	pf_space_set_discard(rig.space, 0);
	drop(run);
	rig_checkpoint(&rig);
	ck_assert_int_eq(pf_space_reserve(rig.space, PF_USE_DATA, 64 * W), 0);
	trim = (struct pf_trim){ 0 };
	ck_assert_uint_eq(trim_all(&trim), 0);
	pf_space_unreserve(rig.space, 64 * W);
	/* half of it at a time */
	simworld_record(rig.world);
	trim = (struct pf_trim){ 0 };
	ck_assert_uint_eq(trim_all(&trim), 64 * W);
	ck_assert_uint_eq(simworld_log_len(rig.world), 2);
	ck_assert_uint_eq(simworld_event(rig.world, 0)->len_bytes, 32 * W * PF_BLOCK_SIZE);
}
END_TEST

START_TEST(trim_and_damage)
{
	take_on(1, 64 * W, 100 * W);
	rig_checkpoint(&rig);
	rig_reopen(&rig);
	simdisk_flip_bit(simworld_disk(rig.world, 1), (rig.set.members[1].geo.maps_block) * PF_BLOCK_SIZE + 300, 3);
	simdisk_flip_bit(simworld_disk(rig.world, 1), (rig.set.members[1].geo.maps_block + 1) * PF_BLOCK_SIZE + 300, 3);
	struct pf_trim trim = { .member = 1 };
	ck_assert_uint_eq(trim_all(&trim), 0); /* a group that counts as full */
	ck_assert_uint_eq(rig_stats(&rig).bad_groups, 1);
	struct sim_fault fault = { .disk = simworld_disk(rig.world, 1), .ops = SIM_DISCARD };
	simworld_add_fault(rig.world, &fault);
	trim = (struct pf_trim){ .member = 1, .unused = true };
	ck_assert_uint_eq(trim_all(&trim), 0);
	ck_assert_uint_eq(trim.failed, 2);
	ck_assert_uint_eq(trim.unable, 0);
}
END_TEST

/* A crash at any time leaves the blocks free. */
START_TEST(crash)
{
	struct pf_run run = take_on(1, 64 * W, 100 * W);
	rig_checkpoint(&rig);
	uint64_t free_blocks = rig_stats(&rig).free_blocks;
	drop(run);
	rig_checkpoint(&rig);
	for (unsigned i = 0; i < 2; i++) {
		rig_crash(&rig, simworld_log_len(rig.world), NULL);
		ck_assert_uint_eq(rig_stats(&rig).free_blocks, free_blocks + run.nr);
		pf_space_set_discard(rig.space, 3);
		work();
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("discard");
	TCase *tc = tcase_create("discard");
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, discarded_before_it_is_free);
	tcase_add_test(tc, nothing_is_locked_meanwhile);
	tcase_add_test(tc, whole_windows);
	tcase_add_test(tc, never_outside_of_the_data_area);
	tcase_add_test(tc, not_where_nodes_are);
	tcase_add_test(tc, pressure);
	tcase_add_test(tc, promises_are_kept);
	tcase_add_test(tc, unsupported);
	tcase_add_test(tc, failing);
	tcase_add_test(tc, no_reclaim);
	tcase_add_test(tc, trims_what_is_free);
	tcase_add_test(tc, trim_leaves_room);
	tcase_add_test(tc, trim_and_damage);
	tcase_add_test(tc, crash);
	suite_add_tcase(s, tc);
	return rig_main(s);
}
