/* SPDX-License-Identifier: MIT
 * posix.h on a pool that gets full, and files that wait for their removal. */
#include "unit/posix_util.h"

static void setup_small(void)
{
	setup_with(5, 1, 24 * MIB);
}
static void setup_large(void)
{
	setup_with(5, 2, 64 * MIB);
}
/* With room in memory for as much as a third of the pool. */
static void setup_three(void)
{
	struct simpool_config config = {
		.version = 5, .nr_members = 3, .size_bytes = 48 * MIB, .seed = 1, .cache_bytes = 256 * MIB
	};
	setup_config(&config);
}
/* Two copies of each node; in the uneven one the smaller member says how many there can be. */
static void setup_small_v6(void)
{
	setup_with(6, 2, 24 * MIB);
}
static void setup_uneven_v6(void)
{
	struct simpool_config config = {
		.version = 6, .nr_members = 2, .size_bytes = 64 * MIB, .last_bytes = 16 * MIB, .seed = 1
	};
	setup_config(&config);
}
static void setup_three_meta_v6(void)
{
	struct simpool_config config = {
		.version = 6, .nr_members = 3, .size_bytes = 24 * MIB, .last_bytes = 16 * MIB, .meta_mask = 7, .seed = 1
	};
	setup_config(&config);
}
/* With much in memory beside a member that has little room for nodes. */
static void setup_staged_v6(void)
{
	struct simpool_config config = {
		.version = 6, .nr_members = 2, .size_bytes = 96 * MIB, .last_bytes = 16 * MIB, .cache_bytes = 256 * MIB, .seed = 1
	};
	setup_config(&config);
}
static void setup_small_v3(void)
{
	setup_with(3, 1, 24 * MIB);
}

/* Appends until there is no space; returns the bytes written. */
static uint64_t fill(uint64_t f, size_t piece)
{
	uint64_t at = attr_of(f).size_bytes;
	uint8_t *p = pattern(f, piece);
	for (;;) {
		int64_t n = pf_write(POOL, f, at, p, piece, 0);
		if (n != (int64_t)piece) {
			ck_err(n, -ENOSPC);
			break;
		}
		at += piece;
	}
	ck_assert_uint_eq(attr_of(f).size_bytes, at);
	free(p);
	return at;
}

static void ck_filled(uint64_t f, size_t piece, uint64_t len)
{
	uint8_t *p = pattern(f, piece);
	for (uint64_t at = 0; at < len; at += piece)
		ck_bytes(f, at, p, piece);
	free(p);
}

START_TEST(df_is_what_can_be_written)
{
	struct pf_statfs s;
	pf_pool_statfs(POOL, &s);
	ck_assert_uint_le(s.avail_blocks, s.free_blocks);
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint64_t len = fill(f, 256 * KIB), avail = s.avail_blocks * 4096;
	ck_assert_msg(len + 256 * KIB > avail - avail / 100, "%ju of %ju available bytes could be written",
		      (uintmax_t)len, (uintmax_t)avail);
	ck_assert_msg(len <= avail, "%ju bytes written, %ju were available", (uintmax_t)len, (uintmax_t)avail);
	ck_ok(pf_fsync(POOL, f));
	remount();
	ck_filled(look(PF_ROOT_INO, "f"), 256 * KIB, len);
}
END_TEST

/* What is staged must not keep others from the room that df shows. */
START_TEST(small_files_fill_a_pool)
{
	enum { LEN = 20000 };
	struct pf_statfs before, after;
	uint8_t *p = pattern(1, LEN);
	pf_pool_statfs(POOL, &before);
	uint64_t nr = 0, d = make_dir(PF_ROOT_INO, "d");
	for (;; nr++) {
		struct pf_attr a;
		char name[32];
		sprintf(name, "%ju", (uintmax_t)nr);
		int64_t n = pf_create(POOL, d, name, strlen(name), S_IFREG | 0644, user, 0, 0, &a);
		if (!n) {
			n = pf_write(POOL, a.ino, 0, p, LEN, 0);
			pf_forget(POOL, a.ino, 1);
		}
		if (n != LEN) {
			ck_err(n, -ENOSPC);
			break;
		}
	}
	pf_pool_statfs(POOL, &after);
	ck_assert_msg(after.avail_blocks < before.avail_blocks / 50, "no room after %ju files, but %ju of %ju blocks are available",
		      (uintmax_t)nr, (uintmax_t)after.avail_blocks, (uintmax_t)before.avail_blocks);
	ck_ok(pf_pool_sync(POOL));
	remount();
	d = look(PF_ROOT_INO, "d");
	for (uint64_t k = 0; k < nr; k++) {
		char name[32];
		sprintf(name, "%ju", (uintmax_t)k);
		ck_bytes(look(d, name), 0, p, LEN);
	}
	free(p);
}
END_TEST

START_TEST(a_full_pool_can_be_emptied)
{
	uint64_t fresh = free_blocks();
	for (unsigned round = 0; round < 3; round++) {
		uint64_t nr = 0, d = make_dir(PF_ROOT_INO, "d"), f = make_file(d, "big");
		fill(f, 64 * KIB);
		fill(f, 4 * KIB);
		/* small files until not even a name fits */
		for (;; nr++) {
			struct pf_attr a;
			char name[32];
			sprintf(name, "%ju", (uintmax_t)nr);
			int err = pf_create(POOL, d, name, strlen(name), S_IFREG | 0644, user, 0, 0, &a);
			if (err) {
				ck_err(err, -ENOSPC);
				break;
			}
			pf_forget(POOL, a.ino, 1);
			if (nr == 50000)
				break; /* names live in the share of the metadata, which may be roomy */
		}
		if (round == 1)
			remount();
		d = look(PF_ROOT_INO, "d");
		for (uint64_t k = 0; k < nr; k++) {
			char name[32];
			sprintf(name, "%ju", (uintmax_t)k);
			ck_ok(unlink_name(d, name));
		}
		ck_ok(unlink_name(d, "big"));
		ck_ok(rmdir_name(PF_ROOT_INO, "d"));
		pf_forget(POOL, f, 1);
		pf_forget(POOL, d, 2);
		ck_assert_uint_eq(free_blocks(), fresh);
		settle();
		ck_assert_uint_eq(free_blocks(), fresh);
	}
}
END_TEST

/* Names alone: the tree takes all that the members give it. Refused in time, so that all is durable and can be removed. */
START_TEST(names_fill_a_pool)
{
	enum { LEN = 240 };
	char name[LEN + 1];
	uint64_t fresh = free_blocks(), d = make_dir(PF_ROOT_INO, "d");
	unsigned nr = 0;
	memset(name, 'n', LEN);
	name[LEN] = 0;
	for (;; nr++) {
		struct pf_attr a;
		snprintf(name + LEN - 10, 11, "%010u", nr);
		int err = pf_create(POOL, d, name, LEN, S_IFREG | 0644, user, 0, 0, &a);
		if (err) {
			ck_err(err, -ENOSPC);
			break;
		}
		pf_forget(POOL, a.ino, 1);
		ck_assert_uint_lt(nr, 500000);
	}
	ck_assert_uint_gt(nr, 5000);
	settle();
	remount();
	d = look(PF_ROOT_INO, "d");
	ck_assert_uint_eq(attr_of(d).size_bytes, nr);
	for (unsigned k = 0; k < nr; k++) {
		snprintf(name + LEN - 10, 11, "%010u", k);
		ck_ok(pf_unlink(POOL, d, name, LEN));
	}
	pf_forget(POOL, d, 1);
	ck_ok(rmdir_name(PF_ROOT_INO, "d"));
	settle();
	ck_assert_uint_eq(free_blocks(), fresh);
}
END_TEST

START_TEST(overwriting_works_on_a_full_pool)
{
	uint64_t f = make_file(PF_ROOT_INO, "f"), len = fill(f, 128 * KIB);
	uint8_t *p = pattern(77, 128 * KIB);
	for (uint64_t at = 0; at < len; at += 128 * KIB)
		put(f, at, p, 128 * KIB);
	put(f, 5, "five", 4);
	ck_ok(pf_fsync(POOL, f));
	memcpy(p + 5, "five", 4);
	ck_bytes(f, 0, p, 128 * KIB);
	ck_bytes(f, len - 128 * KIB + 9, p + 9, 128 * KIB - 9);
	free(p);
}
END_TEST

START_TEST(preallocated_space_can_be_written)
{
	uint64_t f = make_file(PF_ROOT_INO, "f"), g = make_file(PF_ROOT_INO, "g");
	ck_ok(pf_fallocate(POOL, f, 0, 0, 6 * MIB, 0));
	fill(g, 64 * KIB);
	fill(g, 4 * KIB);
	uint8_t *p = pattern(8, MIB);
	for (unsigned k = 0; k < 6; k++)
		put(f, k * MIB, p, MIB);
	ck_ok(pf_fsync(POOL, f));
	for (unsigned k = 0; k < 6; k++)
		ck_bytes(f, k * MIB, p, MIB);
	free(p);
	ck_err(pf_fallocate(POOL, g, 0, 0, 100 * MIB, 0), -ENOSPC);
}
END_TEST

START_TEST(a_failed_operation_changes_nothing)
{
	uint64_t f = make_file(PF_ROOT_INO, "f"), g = make_file(PF_ROOT_INO, "g");
	fill(f, 64 * KIB);
	fill(f, 4 * KIB);
	struct pf_attr before = attr_of(g);
	uint8_t *p = pattern(8, MIB);
	tick();
	ck_err(pf_write(POOL, g, 0, p, MIB, 0), -ENOSPC);
	ck_err(pf_fallocate(POOL, g, 0, 0, MIB, 0), -ENOSPC);
	ck_err(pf_fallocate(POOL, g, FALLOC_FL_ZERO_RANGE, 0, MIB, 0), -ENOSPC);
	struct pf_attr after = attr_of(g);
	ck_assert_uint_eq(before.size_bytes, after.size_bytes);
	ck_assert_uint_eq(before.blocks, after.blocks);
	ck_assert_int_eq(before.mtime.tv_sec, after.mtime.tv_sec);
	ck_assert_int_eq(before.ctime.tv_sec, after.ctime.tv_sec);
	/* and there is no promise left over */
	uint64_t fresh = free_blocks();
	settle();
	ck_assert_uint_eq(free_blocks(), fresh);
	ck_ok(truncate_to(f, 0));
	put(g, 0, p, MIB);
	free(p);
}
END_TEST

START_TEST(data_is_not_reclaimed_before_version_4)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	fill(f, 64 * KIB);
	ck_ok(unlink_name(PF_ROOT_INO, "f"));
	pf_forget(POOL, f, 1);
	settle();
	uint64_t g = make_file(PF_ROOT_INO, "g");
	uint8_t *p = pattern(8, MIB);
	ck_err(pf_write(POOL, g, 0, p, MIB, 0), -ENOSPC);
	free(p);
	/* nodes are: names can be made and removed for ever */
	for (unsigned k = 0; k < 3000; k++) {
		uint64_t ino = make_file(PF_ROOT_INO, "n");
		ck_ok(unlink_name(PF_ROOT_INO, "n"));
		pf_forget(POOL, ino, 1);
		if (k % 10 == 0)
			ck_ok(pf_pool_sync(POOL));
	}
}
END_TEST

START_TEST(open_files_without_a_name_keep_their_bytes)
{
	uint64_t fresh = free_blocks(), f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(5, 3 * MIB);
	put(f, 0, p, MIB);
	settle();
	ck_ok(unlink_name(PF_ROOT_INO, "f"));
	put(f, MIB, p + MIB, 2 * MIB);
	settle();
	ck_bytes(f, 0, p, 3 * MIB);
	ck_ok(truncate_to(f, 2 * MIB));
	ck_bytes(f, 0, p, 2 * MIB);
	pf_forget(POOL, f, 1);
	settle();
	ck_assert_uint_eq(free_blocks(), fresh);
	free(p);
}
END_TEST

START_TEST(nameless_files_go_after_a_crash)
{
	char why[1200];
	uint64_t fresh = free_blocks(), f = make_file(PF_ROOT_INO, "f");
	struct pf_attr a;
	uint8_t *p = pattern(5, 3 * MIB);
	put(f, 0, p, 3 * MIB);
	ck_ok(pf_create_unnamed(POOL, PF_ROOT_INO, S_IFREG | 0600, user, &a));
	put(a.ino, 0, p, MIB);
	ck_ok(unlink_name(PF_ROOT_INO, "f"));
	ck_ok(pf_pool_sync(POOL));
	simpool_abandon(sp);
	ck_ok(simpool_open(sp, false, why, sizeof(why)));
	settle();
	ck_assert_uint_eq(free_blocks(), fresh);
	ck_err(pf_ref(POOL, f, &a), -ESTALE);
	free(p);
}
END_TEST

START_TEST(truncation_is_finished_after_a_crash)
{
	char why[1200];
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(5, MIB);
	for (unsigned k = 0; k < 8; k++)
		put(f, k * 2 * MIB, p, MIB);
	settle();
	/* a step at a time, cut after each number of them */
	for (unsigned cut = 0; cut < 12; cut++) {
		ck_ok(truncate_to(f, (14 - cut) * MIB + 100));
		ck_ok(pf_fallocate(POOL, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, (3 - cut / 4) * MIB, 0));
		ck_ok(pf_pool_sync(POOL));
		for (unsigned k = 0; k < cut; k++)
			ck_assert_int_ge(pf_pool_step(POOL, k % 3 == 0), 0);
		simpool_abandon(sp);
		ck_ok(simpool_open(sp, false, why, sizeof(why)));
		f = look(PF_ROOT_INO, "f");
		ck_assert_uint_eq(attr_of(f).size_bytes, (14 - cut) * MIB + 100);
		ck_bytes(f, 0, p, 4096);
		ck_zeros(f, 4096, MIB);
		ck_ok(truncate_to(f, 16 * MIB));
		ck_zeros(f, (14 - cut) * MIB + 100, (2 + cut) * MIB - 100);
	}
	free(p);
}
END_TEST

/* Blocks 1, 3, 5 ... of the file, so that it is in @nr pieces. */
static uint64_t make_scattered(unsigned nr, uint8_t *p)
{
	uint64_t f = make_file(PF_ROOT_INO, "scattered");
	for (unsigned k = 0; k < nr; k++) {
		memcpy(p, &k, sizeof(k));
		put(f, (2 * k + 1) * UINT64_C(4096), p, 4096);
	}
	settle();
	return f;
}

/* Old or new, never between; @from: the first piece that is gone in the new. */
static void ck_old_or_new(unsigned nr, unsigned from, uint8_t *p, bool punched)
{
	uint64_t f = look(PF_ROOT_INO, "scattered");
	uint64_t full = 2 * nr * UINT64_C(4096), size = attr_of(f).size_bytes;
	int64_t first_data = pf_lseek(POOL, f, (2 * from + 1) * UINT64_C(4096), SEEK_DATA);
	bool old = punched ? first_data == (int64_t)((2 * from + 1) * UINT64_C(4096)) : size == full;
	if (punched && !old)
		ck_assert_int_eq(first_data, -ENXIO);
	ck_assert_uint_eq(size, punched || old ? full : (2 * from + 1) * UINT64_C(4096));
	for (unsigned k = 0; k < nr; k += 1 + k / 50) {
		memcpy(p, &k, sizeof(k));
		uint64_t at = (2 * k + 1) * UINT64_C(4096);
		if (k < from || old)
			ck_bytes(f, at, p, 4096);
		else if (punched)
			ck_zeros(f, at, 4096);
	}
	pf_forget(POOL, f, 1);
}

/* With the workers of a mounted pool, a checkpoint falls into the middle of a long removal. */
static void cut_long_removal(bool punched)
{
	enum { NR = 12000, FROM = 100 };
	char why[1200];
	uint8_t *p = pattern(5, 4096);
	uint64_t f = make_scattered(NR, p);
	ck_ok(truncate_to(f, 2 * NR * UINT64_C(4096)));
	settle();
	simworld_record(sp->world);
	ck_ok(simpool_close(sp, why, sizeof(why)));
	sp->config.commit_interval_ms = 1;
	ck_ok(simpool_open(sp, false, why, sizeof(why)));
	ck_ok(pf_pool_start_workers(POOL));
	f = look(PF_ROOT_INO, "scattered");
	if (punched)
		ck_ok(pf_fallocate(POOL, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (2 * FROM + 1) * UINT64_C(4096),
				   100 * MIB, 0));
	else
		ck_ok(truncate_to(f, (2 * FROM + 1) * UINT64_C(4096)));
	ck_ok(simpool_close(sp, why, sizeof(why)));
	struct simworld *recorded = sp->world;
	size_t len = simworld_log_len(recorded);
	for (size_t cut = 0; cut <= len; cut += 1 + len / 24) {
		for (unsigned read_only = 0; read_only < 2; read_only++) {
			sp->world = simworld_crash(recorded, cut, NULL);
			ck_assert_msg(simpool_open(sp, read_only, why, sizeof(why)) == 0, "%s", why);
			ck_old_or_new(NR, FROM, p, punched);
			ck_ok(simpool_close(sp, why, sizeof(why)));
			simworld_free(sp->world);
		}
	}
	sp->world = recorded;
	free(p);
}

START_TEST(a_long_truncation_is_old_or_new)
{
	cut_long_removal(false);
}
END_TEST

START_TEST(a_long_punch_is_old_or_new)
{
	cut_long_removal(true);
}
END_TEST

START_TEST(many_nameless_files)
{
	uint64_t fresh = free_blocks();
	enum { NR = 3000 };
	static uint64_t inos[NR];
	for (unsigned k = 0; k < NR; k++) {
		inos[k] = make_file(PF_ROOT_INO, "f");
		put(inos[k], 0, &k, sizeof(k));
		ck_ok(unlink_name(PF_ROOT_INO, "f"));
	}
	for (unsigned k = 0; k < NR; k += 7)
		ck_bytes(inos[k], 0, &k, sizeof(k));
	for (unsigned k = 0; k < NR; k++)
		pf_forget(POOL, inos[k], 1);
	settle();
	ck_assert_uint_eq(free_blocks(), fresh);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("posix space");
	static const struct {
		const char *name;
		void (*setup)(void);
	} shapes[] = { { "full pools", setup_small },
		       { "two copies of nodes", setup_small_v6 },
		       { "two copies of nodes, uneven members", setup_uneven_v6 },
		       { "two copies of nodes, three metadata members", setup_three_meta_v6 } };
	TCase *t;
	for (unsigned k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++) {
		t = tcase_create(shapes[k].name);
		tcase_add_checked_fixture(t, shapes[k].setup, teardown);
		tcase_set_timeout(t, 60);
		tcase_add_test(t, df_is_what_can_be_written);
		tcase_add_test(t, a_full_pool_can_be_emptied);
		tcase_add_test(t, overwriting_works_on_a_full_pool);
		tcase_add_test(t, preallocated_space_can_be_written);
		tcase_add_test(t, a_failed_operation_changes_nothing);
		if (shapes[k].setup == setup_uneven_v6)
			tcase_add_test(t, names_fill_a_pool);
		suite_add_tcase(s, t);
	}
	t = tcase_create("three members");
	tcase_add_checked_fixture(t, setup_three, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, small_files_fill_a_pool);
	suite_add_tcase(s, t);
	t = tcase_create("two copies of nodes, much in memory");
	tcase_add_checked_fixture(t, setup_staged_v6, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, df_is_what_can_be_written);
	tcase_add_test(t, small_files_fill_a_pool);
	suite_add_tcase(s, t);
	t = tcase_create("before version 4");
	tcase_add_checked_fixture(t, setup_small_v3, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, data_is_not_reclaimed_before_version_4);
	suite_add_tcase(s, t);
	t = tcase_create("orphans");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, open_files_without_a_name_keep_their_bytes);
	tcase_add_test(t, nameless_files_go_after_a_crash);
	tcase_add_test(t, truncation_is_finished_after_a_crash);
	tcase_add_test(t, many_nameless_files);
	suite_add_tcase(s, t);
	t = tcase_create("long removals");
	tcase_add_checked_fixture(t, setup_large, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, a_long_truncation_is_old_or_new);
	tcase_add_test(t, a_long_punch_is_old_or_new);
	suite_add_tcase(s, t);
	return run_suite(s);
}
