/* SPDX-License-Identifier: MIT
 * Truncating, punching and zeroing long ranges while the n-th read fails, once or from then on: the call reports the error and has
 * changed nothing, or it has happened, for every reader; blocks that it could not change then are changed by the next fsync, change,
 * sync or unmount, and by the mount after a crash (object/orphan.h I5, I6). */
#include "unit/posix_util.h"

#define PIECES 1200u /* of one block, each followed by a hole */
#define STEP (2 * 4096u)
#define SIZE ((uint64_t)PIECES * STEP)
#define FROM 4000u
#define TO (SIZE - 9000)

enum end { BY_FSYNC, BY_WRITE, BY_SYNC, BY_UNMOUNT, BY_CRASH, ENDS };
enum what { PUNCH, ZERO, SHORTEN, KINDS };

static uint8_t *old; /* SIZE bytes */
static uint64_t f;

static int change(enum what what)
{
	if (what == SHORTEN)
		return truncate_to(f, FROM);
	int mode = what == PUNCH ? FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE : FALLOC_FL_ZERO_RANGE;
	return pf_fallocate(POOL, f, mode, FROM, TO - FROM, 0);
}

static void begin(unsigned version)
{
	struct simpool_config config = {
		.version = version, .nr_members = 2, .size_bytes = 32 * MIB, .seed = 1, .cache_bytes = 16 * KIB
	};
	setup_config(&config);
	uint8_t *p = pattern(7, SIZE);
	old = calloc(1, SIZE);
	f = make_file(PF_ROOT_INO, "f");
	for (unsigned k = 0; k < PIECES; k++) {
		memcpy(old + (uint64_t)k * STEP, p + (uint64_t)k * STEP, 4096);
		put(f, (uint64_t)k * STEP, old + (uint64_t)k * STEP, 4096);
	}
	ck_ok(truncate_to(f, SIZE));
	free(p);
	remount();
	ck_assert_uint_eq(look(PF_ROOT_INO, "f"), f);
}

/* What the file is after the change; and SEEK_DATA does not stop in what was punched out. */
static void ck_changed(enum what what)
{
	uint64_t size = what == SHORTEN ? FROM : SIZE;
	uint8_t *now = malloc(SIZE);
	memcpy(now, old, SIZE);
	memset(now + FROM, 0, TO - FROM);
	ck_assert_uint_eq(attr_of(f).size_bytes, size);
	for (uint64_t at = 0; at < size; at += MIB)
		ck_bytes(f, at, now + at, size - at < MIB ? size - at : MIB);
	if (what != SHORTEN) {
		ck_assert_int_eq(pf_lseek(POOL, f, 4096, SEEK_DATA), (int64_t)(SIZE - STEP));
		ck_assert_int_eq(pf_lseek(POOL, f, 0, SEEK_HOLE), 4096);
		ck_assert_int_eq(pf_lseek(POOL, f, 100 * STEP, SEEK_HOLE), 100 * STEP);
	}
	free(now);
}

static uint64_t wanted_blocks(enum what what)
{
	/* an edge before the range, the last piece behind it; a hole that the range cuts at its end is filled as well */
	return what == SHORTEN ? 1 : what == PUNCH ? 2 : 2 + (TO + 4095) / 4096 - 1;
}

static void crash_now(bool synced, enum what what)
{
	char why[1200] = "";
	simpool_abandon(sp);
	ck_assert_msg(simpool_open(sp, false, why, sizeof(why)) == 0, "%s", why);
	ck_assert_uint_eq(look(PF_ROOT_INO, "f"), f);
	if (synced)
		ck_changed(what);
}

/* Returns whether the fault was met. */
static bool try(unsigned version, enum what what, enum end how, unsigned skip, bool once, unsigned *nr_owed)
{
	begin(version);
	/* a block that cannot be read is read once more, and from the other copy */
	struct sim_fault fault = { .ops = SIM_READ, .kind = SIM_FAIL, .skip = skip, .count = once ? 6 : 0 };
	unsigned id = simworld_add_fault(sp->world, &fault);
	tick();
	int err = change(what);
	bool met = simworld_fault_hits(sp->world, id);
	ck_assert_msg(!err || (met && pf_errno(err) == EIO), "gives %s", pf_strerror(err));
	bool synced = !err && how == BY_CRASH && pf_fsync(POOL, f) == 0;
	simworld_clear_faults(sp->world);
	bool owed = !err && attr_of(f).blocks != wanted_blocks(what);
	*nr_owed += owed;
	if (err) {
		ck_assert_uint_eq(attr_of(f).size_bytes, SIZE);
		for (uint64_t at = 0; at < SIZE; at += MIB)
			ck_bytes(f, at, old + at, SIZE - at < MIB ? SIZE - at : MIB);
		ck_ok(change(what));
	}
	ck_changed(what);
	if (how == BY_CRASH) {
		crash_now(synced, what);
	} else {
		if (how == BY_FSYNC)
			ck_ok(pf_fsync(POOL, f));
		if (how == BY_WRITE)
			put(f, 0, old, FROM);
		if (how == BY_WRITE) /* what is staged counts as well as what it will replace */
			ck_ok(pf_fsync(POOL, f));
		if (how == BY_SYNC)
			ck_ok(pf_pool_sync(POOL));
		if (how == BY_UNMOUNT)
			remount();
		ck_assert_uint_eq(attr_of(f).blocks, wanted_blocks(what));
		ck_changed(what);
	}
	if (owed)
		ck_assert_uint_eq(sp->env.nr_messages[PF_LOG_WARNING] > 0, 1);
	teardown();
	free(old);
	return met;
}

START_TEST(each_read)
{
	enum what what = (enum what)(_i % KINDS);
	unsigned version = _i / KINDS ? 6 : 5, nr_owed = 0;
	/* version 6 gives up a member that cannot be read for long */
	for (unsigned once = version == 6; once < 2; once++) {
		bool met = true;
		for (unsigned skip = 0; met; skip++)
			met = try(version, what, (enum end)((skip + once) % ENDS), skip, once, &nr_owed);
	}
	ck_assert_msg(nr_owed >= 3, "only %u times something was owed", nr_owed);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("posix_owed");
	TCase *tc = tcase_create("reads");
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, each_read, 0, 2 * KINDS);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
