/* SPDX-License-Identifier: MIT
 * What a read finds: the file at one point of its history, whatever happens to it while the disk is slow (block/read.h I4), and
 * each block from where it is: staged, being taken out, on the disk, nowhere. The linker leads malloc() here (tests/local.mk). */
#include "unit/posix_util.h"

#include "block/extent.h"
#include "object/inode.h"
#include "object/stage.h"
#include "sim/hang.h"

#include <pthread.h>

#define BLOCK 4096u

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

static atomic_bool no_memory;

void *__wrap_malloc(size_t size)
{
	return atomic_load(&no_memory) ? NULL : __real_malloc(size);
}

/* A file of all kinds of blocks, in four maps: written, unwritten, a hole, written; here and there one is staged. */
#define BLOCKS 1000u
#define UNWRITTEN 200u
#define HOLE 300u
#define WRITTEN 350u
#define SIZE (BLOCKS * BLOCK - 1000)

static uint64_t f;
static uint8_t *old; /* what it has; whole blocks */

static void put_both(uint64_t off, const uint8_t *p, size_t len)
{
	put(f, off, p, len);
	memcpy(old + off, p, len);
}

static void put_random(uint64_t seed, uint64_t from, uint64_t to)
{
	uint8_t *p = pattern(seed, (to - from) * BLOCK);
	put_both(from * BLOCK, p, (to - from) * BLOCK);
	free(p);
}

/* Staged blocks of their own, beside each other, and at the ends of extents. */
static void stage_some(uint64_t seed)
{
	static const unsigned at[] = { 1, 3, 4, 63, 64, 65, 66, 120, 122, 124, 199, 200, 203, 255, 256, 299, 300, 310, 311, 312, 349,
				       350, 400, 448, 500, 511, 512, 513, 767, 768, 997, 998 };
	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		put_random(seed + i, at[i], at[i] + 1);
	ck_assert_uint_eq(atomic_load(&POOL->staged_blocks), sizeof(at) / sizeof(at[0]));
}

static void make_old(void)
{
	f = make_file(PF_ROOT_INO, "f");
	old = calloc(1, BLOCKS * BLOCK);
	put_random(1, 0, UNWRITTEN);
	put_random(2, WRITTEN, BLOCKS);
	ck_ok(pf_fallocate(POOL, f, 0, UNWRITTEN * BLOCK, (HOLE - UNWRITTEN) * BLOCK, 0));
	settle();
	stage_some(100);
	ck_ok(truncate_to(f, SIZE)); /* writes out what is staged */
	memset(old + SIZE, 0, BLOCKS * BLOCK - SIZE);
	settle();
	stage_some(200);
}

/* -- where each block is ------------------------------------------------------------------------------------------------ */
static void ck_alignments(unsigned step)
{
	static const unsigned at[] = { 0, 1, 2, 5, 62, 64, 119, 122, 198, 200, 254, 256, 257, 298, 305, 340, 352, 447, 510, 700, 998, 999 };
	static const unsigned lens[] = { 1, 2, 3, 6, 63, 64, 65, 128, 255, 256, 257, 513, 1000 };
	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i += step) {
		for (unsigned k = 0; k < sizeof(lens) / sizeof(lens[0]); k++) {
			if (lens[k] > 300 && i % 5)
				continue; /* for the sake of time */
			for (unsigned within = 0; within < BLOCK; within += 2048 - 300) {
				uint64_t off = (uint64_t)at[i] * BLOCK + within, len = (uint64_t)lens[k] * BLOCK - within / 2;
				if (off < SIZE)
					ck_bytes(f, off, old + off, len < SIZE - off ? len : SIZE - off);
			}
		}
	}
}

static void setup_version(int version)
{
	setup_with((unsigned)version, 1, 24 * MIB);
	make_old();
}

static const int versions[] = { 4, 5, 6 };
#define VERSIONS 3

START_TEST(staged_blocks)
{
	setup_version(versions[_i]);
	ck_alignments(1);
	int64_t n;
	uint8_t *p = get(f, SIZE - 10, 5000, &n);
	ck_assert_int_eq(n, 10);
	free(p);
	p = get(f, SIZE, 5000, &n);
	ck_assert_int_eq(n, 0);
	free(p);
	free(old);
	teardown();
}
END_TEST

static struct pf_inode *inode_of_f(void)
{
	struct pf_inode *inode;
	ck_ok(pf_inode_get(POOL, f, &inode));
	return inode;
}

/* Nothing is read to be overlaid, and so nothing bad is met there; beside it, it is. */
START_TEST(staged_blocks_are_not_read)
{
	setup_version(versions[_i]);
	for (unsigned block = 0; block < 130; block++) {
		struct pf_inode *inode = inode_of_f();
		bool staged = pf_stage_find(inode, block);
		struct pf_extent e;
		ck_ok(pf_extent_find(POOL, inode->item.data_id, block, &e));
		pf_inode_put(POOL, inode);
		uint64_t at = (pf_addr_block(e.addr[0]) + (block - e.start)) * BLOCK;
		struct sim_fault fault = { .ops = SIM_READ, .kind = SIM_FAIL, .from_bytes = at, .to_bytes = at + BLOCK };
		unsigned id = simworld_add_fault(sp->world, &fault);
		int64_t n;
		uint8_t *p = get(f, 0, 300 * BLOCK, &n);
		if (staged) {
			ck_assert_int_eq(n, 300 * BLOCK);
			ck_assert_int_eq(memcmp(p, old, 300 * BLOCK), 0);
			ck_assert_uint_eq(simworld_fault_hits(sp->world, id), 0);
		} else {
			ck_err(n, -EIO);
		}
		free(p);
		simworld_clear_faults(sp->world);
	}
	free(old);
	teardown();
}
END_TEST

/* A range that is being taken out, of staged and written blocks, at all ends: in memory and, read-only, from the tree. */
START_TEST(pending_ranges)
{
	static const unsigned from[] = { 0, 4, 100, 180, 250, 255, 256, 480 }, to[] = { 1, 66, 123, 210, 260, 256, 420, 1000 };
	setup_version(5);
	struct pf_inode *inode = inode_of_f();
	uint8_t *whole = malloc(BLOCKS * BLOCK);
	memcpy(whole, old, BLOCKS * BLOCK);
	for (unsigned i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		memset(old + (size_t)from[i] * BLOCK, 0, (size_t)(to[i] - from[i]) * BLOCK);
		struct pf_orphan_range range = { inode->item.data_id, f, from[i], to[i] };
		if (i % 2) {
			POOL->pending = &range;
			POOL->nr_pending = 1;
		} else {
			inode->unfinished.seq = 1;
			inode->unfinished.from = from[i];
			inode->unfinished.to = to[i];
		}
		ck_alignments(4);
		POOL->pending = NULL;
		POOL->nr_pending = 0;
		inode->unfinished.seq = 0;
		memcpy(old, whole, BLOCKS * BLOCK);
	}
	pf_inode_put(POOL, inode);
	free(whole);
	free(old);
	teardown();
}
END_TEST

/* -- what happens meanwhile ------------------------------------------------------------------------------------------------ */
struct reader {
	pthread_t thread;
	uint64_t off;
	size_t len;
	uint8_t *buf;
	int64_t n;
};

static void *read_slowly(void *arg)
{
	struct reader *r = arg;
	r->n = pf_read(POOL, f, r->off, r->buf, r->len);
	return NULL;
}

/* A read of which the first I/O on the blocks of the file hangs. */
static void begin_read(struct reader *r, uint64_t off, size_t len)
{
	struct pf_inode *inode = inode_of_f();
	struct pf_extent e;
	ck_ok(pf_extent_find(POOL, pf_inode_look(inode).data_id, off / BLOCK, &e));
	pf_inode_put(POOL, inode);
	struct sim_fault fault = {
		.disk = simworld_disk(sp->world, pf_addr_member(e.addr[0])),
		.ops = SIM_READ,
		.kind = SIM_HANG,
		.count = 1,
		.from_bytes = pf_addr_block(e.addr[0]) * BLOCK,
		.to_bytes = (pf_addr_block(e.addr[0]) + e.nr) * BLOCK,
	};
	simworld_add_fault(sp->world, &fault);
	*r = (struct reader){ .off = off, .len = len, .buf = aligned_alloc(BLOCK, pf_read_buf_bytes(off, len)) };
	ck_assert_int_eq(pthread_create(&r->thread, NULL, read_slowly, r), 0);
	alarm(60); /* who waits for the read, waits for ever */
	while (!simworld_nr_hung(sp->world))
		usleep(100);
}

static void end_read(struct reader *r)
{
	ck_assert_uint_eq(simworld_nr_hung(sp->world), 1);
	simworld_end_hangs(sp->world);
	pthread_join(r->thread, NULL);
	simworld_clear_faults(sp->world);
	alarm(0);
}

static void ck_read(const struct reader *r, uint64_t from, const uint8_t *expected, size_t len)
{
	const uint8_t *got = r->buf + r->off % BLOCK + from;
	size_t k = 0;
	while (k < len && got[k] == expected[k])
		k++;
	ck_assert_msg(k == len, "byte %ju of the read is %02x, expected %02x", (uintmax_t)(from + k), got[k], k < len ? expected[k] : 0);
}

enum what { OVERWRITE, STAGE, PUNCH, ZERO, SHORTEN, EMPTY, UNLINK, ALL, KINDS };

/* Blocks that wait for the reader, at least: an inode waits for it as well, with all that it has. */
static const unsigned nr_given_up[KINDS] = { [OVERWRITE] = 850, [STAGE] = 50, [PUNCH] = 850, [ZERO] = 850, [SHORTEN] = 650, [EMPTY] = 850,
					     [ALL] = 850 };

static void overwrite(uint64_t seed)
{
	uint8_t *p = pattern(seed, MIB);
	for (uint64_t at = 0; at < SIZE; at += MIB)
		put(f, at, p, at + MIB < SIZE ? MIB : SIZE - at);
	free(p);
}

static void stage(uint64_t seed)
{
	uint8_t *p = pattern(seed, 5000);
	for (uint64_t at = 0; at + 5000 < SIZE; at += 30000)
		put(f, at, p, 5000);
	free(p);
}

static void change(enum what what)
{
	if (what == OVERWRITE || what == ALL)
		overwrite(1000);
	if (what == STAGE || what == ALL)
		stage(1001);
	if (what == ALL)
		ck_ok(pf_fsync(POOL, f));
	if (what == PUNCH || what == ALL)
		ck_ok(pf_fallocate(POOL, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 3000, SIZE - 5000, 0));
	if (what == ZERO || what == ALL) {
		ck_ok(pf_fallocate(POOL, f, FALLOC_FL_ZERO_RANGE, 3000, SIZE - 5000, 0));
		overwrite(1002);
	}
	if (what == SHORTEN || what == ALL)
		ck_ok(truncate_to(f, 300 * BLOCK + 5));
	if (what == EMPTY || what == ALL) {
		ck_ok(truncate_to(f, 0));
		overwrite(1003);
	}
	if (what == UNLINK || what == ALL) {
		ck_ok(unlink_name(PF_ROOT_INO, "f"));
		pf_forget(POOL, f, 1);
	}
}

/* Every block that data may have now gets other bytes. */
static void reuse_all(void)
{
	uint64_t g = make_file(PF_ROOT_INO, "filler");
	uint8_t *p = pattern(2000, 256 * KIB);
	struct pf_space_stats st;
	for (uint64_t at = 0; pf_space_stats(POOL->space, &st), st.avail_blocks; at += attr_of(g).size_bytes - at)
		put(g, at, p, st.avail_blocks < 64 ? st.avail_blocks * BLOCK : 256 * KIB);
	free(p);
	settle();
}

START_TEST(old_bytes_come)
{
	enum what what = (enum what)(_i % KINDS);
	unsigned version = (unsigned)versions[_i / KINDS];
	struct reader r;
	struct pf_space_stats st;
	setup_version((int)version);
	begin_read(&r, 100, SIZE - 300);
	change(what);
	settle();
	reuse_all();
	pf_space_stats(POOL->space, &st);
	ck_assert_uint_ge(st.pending_blocks, nr_given_up[what]);
	end_read(&r);
	settle();
	pf_space_stats(POOL->space, &st);
	ck_assert_uint_lt(st.pending_blocks, 20); /* nodes at most */
	ck_assert_int_eq(r.n, SIZE - 300);
	ck_read(&r, 0, old + 100, SIZE - 300);
	ck_assert_uint_eq(sp->env.nr_messages[PF_LOG_ERROR], 0);
	free(r.buf);
	free(old);
	teardown();
}
END_TEST

/* A read whose blocks cannot be read after all: the file is still told, by what it is called now. */
START_TEST(a_late_error_is_told)
{
	struct reader r;
	setup_version(5);
	begin_read(&r, 0, 20 * BLOCK);
	ck_ok(rename_name(PF_ROOT_INO, "f", PF_ROOT_INO, "g", 0));
	struct sim_fault fault = { .ops = SIM_READ, .kind = SIM_CORRUPT };
	simworld_add_fault(sp->world, &fault);
	/* the call that hangs is past its faults: the next one, of another extent, is not */
	end_read(&r);
	ck_err(r.n, -PF_EDATA_CSUM);
	ck_assert_msg(strstr(sp->env.last_error, "/g: block") != NULL, "%s", sp->env.last_error);
	put(f, 0, old, 10); /* no lock is left behind */
	free(r.buf);
	free(old);
	teardown();
}
END_TEST

/* -- long reads ------------------------------------------------------------------------------------------------------------ */
#define LONG (9 * MIB + 12345)

/* Each 4 MiB are one point of the file's history, the next piece may be a later one, and the end is where it is then. */
START_TEST(pieces)
{
	uint64_t off = _i % 2 ? 777 : 0, first = 4 * MIB - off;
	struct reader r;
	setup_with(5, 1, 40 * MIB);
	f = make_file(PF_ROOT_INO, "f");
	old = pattern(1, LONG);
	uint8_t *new = pattern(2, LONG);
	put(f, 0, old, LONG);
	ck_bytes(f, off, old + off, LONG - off);
	begin_read(&r, off, LONG);
	put(f, 0, new, LONG);
	if (_i / 2)
		ck_ok(truncate_to(f, 6 * MIB + 99));
	settle();
	end_read(&r);
	uint64_t end = _i / 2 ? 6 * MIB + 99 : LONG;
	ck_assert_int_eq(r.n, (int64_t)(end - off));
	ck_read(&r, 0, old + off, first);
	ck_read(&r, first, new + 4 * MIB, end - 4 * MIB);
	free(r.buf);
	free(new);
	free(old);
	teardown();
}
END_TEST

/* The longest that is read at one point. */
START_TEST(one_piece)
{
	struct reader r;
	setup_with(6, 2, 40 * MIB);
	f = make_file(PF_ROOT_INO, "f");
	old = pattern(1, LONG);
	put(f, 0, old, LONG);
	begin_read(&r, 777, 4 * MIB);
	ck_ok(truncate_to(f, 0));
	settle();
	end_read(&r);
	ck_assert_int_eq(r.n, 4 * MIB);
	ck_read(&r, 0, old + 777, 4 * MIB);
	free(r.buf);
	free(old);
	teardown();
}
END_TEST

/* What is read in one map needs no memory. */
START_TEST(without_memory)
{
	setup_version(6);
	int64_t n[2];
	uint8_t *buf = aligned_alloc(BLOCK, 257 * BLOCK);
	atomic_store(&no_memory, true);
	n[0] = pf_read(POOL, f, 100, buf, 256 * BLOCK);
	n[1] = pf_read(POOL, f, 100, buf, 256 * BLOCK - 100);
	atomic_store(&no_memory, false);
	ck_err(n[0], -ENOMEM);
	ck_assert_int_eq(n[1], 256 * BLOCK - 100);
	ck_assert_int_eq(memcmp(buf + 100, old + 100, 256 * BLOCK - 100), 0);
	free(buf);
	overwrite(1); /* no lock is left behind */
	uint8_t *p = pattern(1, MIB);
	ck_bytes(f, 0, p, MIB);
	free(p);
	free(old);
	teardown();
}
END_TEST

int main(void)
{
	catch_hangs();
	Suite *s = suite_create("posix_read");
	TCase *t = tcase_create("where blocks are");
	tcase_set_timeout(t, 20);
	tcase_add_loop_test(t, staged_blocks, 0, VERSIONS);
	tcase_add_loop_test(t, staged_blocks_are_not_read, 0, VERSIONS);
	tcase_add_test(t, pending_ranges);
	suite_add_tcase(s, t);
	t = tcase_create("meanwhile");
	tcase_set_timeout(t, 20);
	tcase_add_loop_test(t, old_bytes_come, 0, VERSIONS * KINDS);
	tcase_add_test(t, a_late_error_is_told);
	suite_add_tcase(s, t);
	t = tcase_create("long");
	tcase_set_timeout(t, 20);
	tcase_add_loop_test(t, pieces, 0, 4);
	tcase_add_test(t, one_piece);
	tcase_add_test(t, without_memory);
	suite_add_tcase(s, t);
	return run_suite(s);
}
