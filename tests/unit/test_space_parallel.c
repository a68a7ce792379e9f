/* SPDX-License-Identifier: MIT
 *
 * Everything at the same time: threads that allocate, give back, commit and free, readers, and checkpoints. Each
 * block carries the number of the allocation that owns it, so that a block handed out twice, or reused under a
 * reader, is seen. What a checkpoint has written is compared with what was in the tree at its freeze, bit for bit: others
 * go on in the same groups while it is at their maps, and have maps evicted and loaded. Meant for ThreadSanitizer too.
 */
#include "space_util.h"

#define MIB (UINT64_C(1) << 20)
enum { WORKERS = 3, READERS = 2, LIVES = 2000 };

struct world {
	struct rig rig;
	pthread_rwlock_t tree; /* plays the tree lock */
	atomic_uint *owner[2]; /* 0: nobody */
	atomic_uint next_owner;
	atomic_bool stop;
	unsigned nr_rounds;    /* of each worker */
	uint64_t most;         /* blocks of an allocation */
	bool spread;           /* over all groups */
	unsigned max_lives;
	struct pf_run lives[LIVES]; /* named by the "tree"; under the lock */
	unsigned nr_lives;
	struct pf_run frozen[LIVES]; /* as it was at the freeze */
	unsigned nr_frozen, nr_compared;
	atomic_uint nr_reads, nr_full, nr_allocs;
};

static void own(struct world *w, struct pf_run run, unsigned from, unsigned to)
{
	atomic_uint *owner = w->owner[pf_addr_member(run.addr)] + pf_addr_block(run.addr);
	for (uint64_t i = 0; i < run.nr; i++) {
		unsigned before = atomic_exchange(&owner[i], to);
		if (from == 0 && before != 0)
			ck_abort_msg("block %llx handed out twice", (unsigned long long)(run.addr + i));
	}
}

/* Takes a random run out of the tree; its blocks belong to nobody from then on, but must not come back before a
 * checkpoint. */
static void free_one(struct world *w, unsigned *seed)
{
	pthread_rwlock_wrlock(&w->tree);
	if (w->nr_lives) {
		unsigned at = (unsigned)rand_r(seed) % w->nr_lives;
		struct pf_run run = w->lives[at];
		w->lives[at] = w->lives[--w->nr_lives];
		own(w, run, 1, 0);
		pf_space_free(w->rig.space, run, PF_USE_DATA);
	}
	pthread_rwlock_unlock(&w->tree);
}

static bool put_into_tree(struct world *w, struct pf_run run)
{
	bool room;
	pthread_rwlock_wrlock(&w->tree);
	room = w->nr_lives < w->max_lives;
	if (room) {
		w->lives[w->nr_lives++] = run;
		pf_space_commit(w->rig.space, run, PF_USE_DATA);
	}
	pthread_rwlock_unlock(&w->tree);
	return room;
}

static void *work(void *arg)
{
	struct world *w = arg;
	unsigned seed = atomic_fetch_add(&w->next_owner, 1);
	for (unsigned i = 0; i < w->nr_rounds || atomic_load(&w->nr_reads) < 100; i++) {
		struct pf_alloc_req req = { .use = PF_USE_DATA, .nr = 1 + (unsigned)rand_r(&seed) % w->most, .min_nr = 1 };
		struct pf_run run;
		req.member = rand_r(&seed) % 3 - 1;
		if (w->spread) {
			unsigned member = (unsigned)rand_r(&seed) % w->rig.nr;
			const struct pf_geometry *geo = &w->rig.set.members[member].geo;
			uint64_t block = geo->data_start + (uint64_t)rand_r(&seed) % (geo->data_end - geo->data_start);
			req.member = (int)member;
			req.goal = pf_addr_make(member, block);
		}
		req.reserved = rand_r(&seed) % 2;
		if (req.reserved && pf_space_reserve(w->rig.space, req.use, req.nr))
			req.reserved = false;
		int err = pf_space_alloc(w->rig.space, &req, &run);
		if (req.reserved) {
			ck_assert_int_eq(err, 0);
			pf_space_unreserve(w->rig.space, req.nr - run.nr);
		}
		if (err) {
			ck_assert_int_eq(err, -ENOSPC);
			atomic_fetch_add(&w->nr_full, 1);
			free_one(w, &seed);
			continue;
		}
		atomic_fetch_add(&w->nr_allocs, 1);
		own(w, run, 0, atomic_fetch_add(&w->next_owner, 1));
		if (rand_r(&seed) % 4 == 0 || !put_into_tree(w, run)) {
			own(w, run, 1, 0);
			pf_space_unalloc(w->rig.space, run);
		}
		if (rand_r(&seed) % 2)
			free_one(w, &seed);
	}
	return NULL;
}

static void *read_blocks(void *arg)
{
	struct world *w = arg;
	unsigned seed = 77;
	while (!atomic_load(&w->stop)) {
		pthread_rwlock_rdlock(&w->tree);
		if (!w->nr_lives) {
			pthread_rwlock_unlock(&w->tree);
			continue;
		}
		struct pf_run run = w->lives[(unsigned)rand_r(&seed) % w->nr_lives];
		unsigned member = pf_addr_member(run.addr), now;
		atomic_uint *owner = w->owner[member] + pf_addr_block(run.addr);
		unsigned ticket = pf_space_reader_enter(w->rig.space, member), before = atomic_load(owner);
		pthread_rwlock_unlock(&w->tree);
		for (int i = 0; i < 50; i++) { /* it may be freed meanwhile, but not given to another one */
			now = atomic_load(owner);
			if (now != before && now != 0)
				ck_abort_msg("block %llx reused under a reader", (unsigned long long)run.addr);
			sched_yield();
		}
		pf_space_reader_exit(w->rig.space, member, ticket);
		atomic_fetch_add(&w->nr_reads, 1);
	}
	return NULL;
}

/* The maps of the checkpoint that has just become durable name what the tree of its freeze named, nothing else. */
static void compare_maps(struct world *w)
{
	for (unsigned i = 0; i < w->rig.nr; i++) {
		const struct pf_geometry *geo = &w->rig.set.members[i].geo;
		size_t words = geo->nr_groups * PF_MAP_WORDS;
		uint64_t *expect = calloc(words, sizeof(*expect)), *got = calloc(words, sizeof(*got));
		for (uint64_t g = 0; g < geo->nr_groups; g++) {
			uint8_t map[PF_GROUP_BLOCKS / 8];
			pf_group_fill_fixed(geo, g, expect + g * PF_MAP_WORDS);
			ck_assert_int_eq(pf_space_read_map(w->rig.space, i, g, map), 0);
			pf_bits_unpack(map, got + g * PF_MAP_WORDS);
		}
		for (unsigned k = 0; k < w->nr_frozen; k++) {
			uint64_t block = pf_addr_block(w->frozen[k].addr), end = block + w->frozen[k].nr;
			for (; block < end && pf_addr_member(w->frozen[k].addr) == i; block++)
				expect[block / 64] |= UINT64_C(1) << block % 64;
		}
		ck_assert_msg(!memcmp(expect, got, words * sizeof(*expect)), "a map of member %u is not that of the freeze", i);
		free(expect);
		free(got);
	}
	w->nr_compared++;
}

static void *checkpoints(void *arg)
{
	struct world *w = arg;
	while (!atomic_load(&w->stop)) {
		struct pf_super super = w->rig.super;
		struct pf_space_stats stats;
		uint32_t changed;
		pthread_rwlock_wrlock(&w->tree);
		pf_space_freeze(w->rig.space);
		w->nr_frozen = w->nr_lives;
		memcpy(w->frozen, w->lives, w->nr_lives * sizeof(w->lives[0]));
		pthread_rwlock_unlock(&w->tree);
		ck_assert_int_eq(pf_space_write(w->rig.space, w->rig.generation + 1, &super, &changed), 0);
		rig_durable(&w->rig, &super);
		compare_maps(w);
		pf_space_stats(w->rig.space, &stats);
		ck_assert_uint_le(stats.free_blocks + stats.pending_blocks, stats.data_area_blocks);
	}
	return NULL;
}

static const struct scene {
	uint64_t sizes[2];
	unsigned nr_rounds, max_loaded, max_lives;
	uint64_t most;
	bool spread;
} scenes[] = {
	/* often full, many runs in each of a few groups */
	{ { 150 * MIB, 70 * MIB }, 20000, 2, 256, 300, false },
	/* more groups in a checkpoint than are written at once and than may stay loaded, a few runs in each */
	{ { 32000 * MIB, 3000 * MIB }, 8000, 8, LIVES, 8, true },
};

START_TEST(parallel)
{
	static struct world w;
	const struct scene *scene = &scenes[_i];
	const uint64_t *sizes = scene->sizes;
	pthread_t workers[WORKERS], readers[READERS], writer;
	rig_new(&w.rig, 5, 2, sizes, 1);
	w.rig.space->max_loaded = scene->max_loaded;
	w.nr_rounds = scene->nr_rounds;
	w.max_lives = scene->max_lives;
	w.most = scene->most;
	w.spread = scene->spread;
	pthread_rwlock_init(&w.tree, NULL);
	atomic_store(&w.next_owner, 1);
	for (unsigned i = 0; i < 2; i++)
		w.owner[i] = calloc(sizes[i] / PF_BLOCK_SIZE, sizeof(*w.owner[i]));
	for (int i = 0; i < WORKERS; i++)
		ck_assert_int_eq(pthread_create(&workers[i], NULL, work, &w), 0);
	for (int i = 0; i < READERS; i++)
		ck_assert_int_eq(pthread_create(&readers[i], NULL, read_blocks, &w), 0);
	ck_assert_int_eq(pthread_create(&writer, NULL, checkpoints, &w), 0);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	atomic_store(&w.stop, true);
	for (int i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);
	pthread_join(writer, NULL);
	rig_checkpoint(&w.rig);
	rig_checkpoint(&w.rig);
	struct pf_space_stats s = rig_stats(&w.rig);
	uint64_t used = 0;
	for (unsigned i = 0; i < w.nr_lives; i++)
		used += w.lives[i].nr;
	ck_assert_uint_eq(s.data_area_blocks - s.free_blocks, used);
	ck_assert_uint_eq(s.pending_blocks + s.reserved_blocks + s.bad_groups, 0);
	ck_assert_uint_gt(atomic_load(&w.nr_reads), 10);
	ck_assert(scene->spread || atomic_load(&w.nr_full) > 10);
	ck_assert_uint_gt(w.nr_compared, 1);
	ck_assert_uint_gt(atomic_load(&w.nr_allocs), 1000);
	rig_reopen(&w.rig);
	s = rig_stats(&w.rig);
	ck_assert_uint_eq(s.data_area_blocks - s.free_blocks, used);
	rig_free(&w.rig);
	for (unsigned i = 0; i < 2; i++)
		free(w.owner[i]);
	pthread_rwlock_destroy(&w.tree);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("space_parallel");
	TCase *tc = tcase_create("threads");
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, parallel, 0, sizeof(scenes) / sizeof(scenes[0]));
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
