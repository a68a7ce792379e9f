/* SPDX-License-Identifier: MIT
 * fsync by the intent log: what it costs, at every step of a checkpoint, with a full ring, with failing disks; and what a mount finds. */
#include "unit/intent_util.h"

#include <pthread.h>

/* -- what it costs -------------------------------------------------------------------------------------------------- */
START_TEST(nothing_changed_nothing_written)
{
	begin(_i);
	uint64_t f = make_file(PF_ROOT_INO, "f"), g = make_file(PF_ROOT_INO, "g");
	put(f, 0, "bytes", 5);
	sync_by_log(f);
	size_t len = simworld_log_len(sp->world);
	sync_by_log(f);
	sync_by_log(g);
	sync_by_log(PF_ROOT_INO);
	ck_assert_uint_eq(simworld_log_len(sp->world), len);
	crash_and_compare(_i);
	f = look(PF_ROOT_INO, "f");
	len = simworld_log_len(sp->world);
	sync_by_log(f);
	ck_assert_uint_eq(simworld_log_len(sp->world), len);
	end();
}
END_TEST

static void begin_placed(unsigned nr_members, unsigned placement)
{
	struct simpool_config config = { .version = PF_VERSION_NEWEST,
					 .nr_members = nr_members,
					 .placement = placement,
					 .size_bytes = 32 * MIB,
					 .cache_bytes = 64 * MIB,
					 .seed = 1 };
	begin_config(&config);
}

/* What loop tests over 1 to 3 members and both placements are run with. */
#define NR_PLACED 6
static unsigned placed_members(int i)
{
	return (unsigned)i % 3 + 1;
}
static unsigned placed_how(int i)
{
	return i < 3 ? PF_PLACE_FILE : PF_PLACE_STRIPE;
}

static void make_files(uint64_t *files, unsigned nr)
{
	for (unsigned k = 0; k < nr; k++) {
		char name[16];
		sprintf(name, "%u", k);
		files[k] = make_file(PF_ROOT_INO, name);
	}
	ck_ok(pf_pool_sync(POOL));
}

/* Each member is flushed once when something was written to it since its last flush; log members always are written to. */
START_TEST(one_flush_per_member_written)
{
	enum { NR_FILES = 6, NR_SYNCS = 120, NR_WRITES = 80 };
	unsigned nr_members = placed_members(_i), third = 0;
	begin_placed(nr_members, placed_how(_i));
	uint8_t *p = pattern(1, 4096);
	uint64_t files[NR_FILES];
	make_files(files, NR_FILES);
	uint64_t gen = generation();
	for (unsigned k = 0; k < NR_SYNCS; k++) {
		uint64_t flushes[3], writes[3];
		for (unsigned d = 0; d < nr_members; d++) {
			flushes[d] = count(d, SIM_FLUSH);
			writes[d] = count(d, SIM_WRITE);
		}
		struct pf_attr in = { .mode = 0600 + k };
		if (k % 3)
			put(files[k % NR_FILES], MIB * (k / 10), p, 4096);
		else
			ck_ok(pf_setattr(POOL, files[k % NR_FILES], PF_ATTR_MODE, &in, NULL));
		ck_ok(pf_fsync(POOL, files[k % NR_FILES]));
		for (unsigned d = 0; d < nr_members; d++) {
			uint64_t written = count(d, SIM_WRITE) - writes[d];
			ck_assert_msg(d > 1 || written, "fsync %u wrote nothing to member %u", k, d);
			ck_assert_msg(written <= 2, "fsync %u took %ju writes on member %u", k, (uintmax_t)written, d);
			ck_assert_msg(count(d, SIM_FLUSH) - flushes[d] == (written > 0), "fsync %u: %ju flushes of member %u, %ju writes",
				      k, (uintmax_t)(count(d, SIM_FLUSH) - flushes[d]), d, (uintmax_t)written);
			third += d == 2 && written;
		}
	}
	ck_assert_uint_eq(generation(), gen);
	/* a member without log only has data of files: all of it, or every third piece of them */
	if (nr_members < 3)
		ck_assert_uint_eq(third, 0);
	else if (placed_how(_i) == PF_PLACE_FILE)
		ck_assert_uint_eq(third, NR_WRITES);
	else
		ck_assert_msg(third > 0 && third < NR_WRITES, "%u of %d writes were to the member without log", third, NR_WRITES);
	free(p);
	crash_and_compare(0);
	end();
}
END_TEST

struct caller {
	pthread_t thread;
	uint64_t ino;
	int result;
};

static void *write_and_sync(void *arg)
{
	struct caller *c = arg;
	c->result = (int)pf_write(POOL, c->ino, 0, "0123456789abcdef", 16, 0);
	if (c->result == 16)
		c->result = pf_fsync(POOL, c->ino);
	return NULL;
}

/* Eight at once, while the flush of the first is under way: all others share the second. */
START_TEST(callers_share_flushes)
{
	begin(_i);
	struct caller callers[8];
	struct pf_log_stats stats;
	for (unsigned k = 0; k < 8; k++) {
		char name[8];
		sprintf(name, "%u", k);
		callers[k].ino = make_file(PF_ROOT_INO, name);
	}
	sync_by_log(PF_ROOT_INO);
	pf_log_stats(POOL->log, &stats);
	uint64_t before = stats.nr_records, flushes = count(0, SIM_FLUSH);
	simdisk_set_hang(simworld_disk(sp->world, 0), SIM_FLUSH);
	for (unsigned k = 0; k < 8; k++) {
		ck_assert_int_eq(pthread_create(&callers[k].thread, NULL, write_and_sync, &callers[k]), 0);
		while (k == 0 && !simdisk_nr_hung(simworld_disk(sp->world, 0)))
			usleep(100);
	}
	do {
		usleep(100);
		pf_log_stats(POOL->log, &stats);
	} while (stats.nr_records < before + 8);
	simdisk_set_hang(simworld_disk(sp->world, 0), 0);
	for (unsigned k = 0; k < 8; k++) {
		pthread_join(callers[k].thread, NULL);
		ck_ok(callers[k].result);
	}
	ck_assert_uint_eq(count(0, SIM_FLUSH) - flushes, 2);
	crash_and_compare(_i);
	end();
}
END_TEST

/* Flushes as long as those of a disk, or there would be nothing to share. */
static const struct pf_io_ops *quick_ops;

static int slow_flush(struct pf_io *io)
{
	usleep(500);
	return quick_ops->flush(io);
}

struct looper {
	pthread_t thread;
	uint64_t ino;
	unsigned nr;
	uint8_t *p;
	int result;
};

static void *write_and_sync_often(void *arg)
{
	struct looper *l = arg;
	for (unsigned k = 0; k < l->nr && !l->result; k++) {
		int64_t n = pf_write(POOL, l->ino, 4096 * (uint64_t)k, l->p, 4096, 0);
		l->result = n == 4096 ? pf_fsync(POOL, l->ino) : n < 0 ? (int)n : -EIO;
	}
	return NULL;
}

/* Eight threads, each in a loop of 4 KiB write and fsync: fewer flushes than fsyncs, on each member. */
START_TEST(eight_threads_take_fewer_flushes)
{
	enum { NR_THREADS = 8, NR_SYNCS = 24 }; /* a block of the ring for each fsync would fit */
	unsigned nr_members = placed_members(_i);
	begin_placed(nr_members, placed_how(_i));
	struct looper loopers[NR_THREADS];
	uint64_t files[NR_THREADS], flushes[3];
	make_files(files, NR_THREADS);
	struct pf_io_ops slow = *POOL->set->members[0].io->ops;
	quick_ops = POOL->set->members[0].io->ops;
	slow.flush = slow_flush;
	for (unsigned d = 0; d < nr_members; d++) {
		POOL->set->members[d].io->ops = &slow;
		flushes[d] = count(d, SIM_FLUSH);
	}
	uint64_t gen = generation();
	for (unsigned k = 0; k < NR_THREADS; k++) {
		loopers[k] = (struct looper){ .ino = files[k], .nr = NR_SYNCS, .p = pattern(k, 4096) };
		ck_assert_int_eq(pthread_create(&loopers[k].thread, NULL, write_and_sync_often, &loopers[k]), 0);
	}
	for (unsigned k = 0; k < NR_THREADS; k++) {
		pthread_join(loopers[k].thread, NULL);
		ck_ok(loopers[k].result);
		free(loopers[k].p);
	}
	ck_assert_uint_eq(generation(), gen);
	for (unsigned d = 0; d < nr_members; d++) {
		uint64_t nr = count(d, SIM_FLUSH) - flushes[d];
		POOL->set->members[d].io->ops = quick_ops;
		ck_assert_msg(nr < NR_THREADS * NR_SYNCS, "%ju flushes of member %u for %d fsyncs by %d threads", (uintmax_t)nr, d,
			      NR_THREADS * NR_SYNCS, NR_THREADS);
		ck_assert_msg(nr > 0, "no flush of member %u", d);
	}
	crash_and_compare(0);
	end();
}
END_TEST

/* -- checkpoints ---------------------------------------------------------------------------------------------------- */
#define NR_STEPS 8 /* of a checkpoint, and one more */

/* fsync after each number of steps: of a file that the checkpoint under way has a part of, and of one that it has not. */
START_TEST(at_each_step_of_a_checkpoint)
{
	int scene = _i % NR_SCENES, nr_steps = _i / NR_SCENES;
	uint8_t *p = pattern(1, 100000);
	begin(scene);
	uint64_t a = make_file(PF_ROOT_INO, "a"), b = make_file(PF_ROOT_INO, "b");
	put(a, 0, p, 100000);
	put(b, 0, p, 100000);
	ck_ok(pf_pool_sync(POOL));
	/* in the tree, without being synced */
	put(a, 20000, p, 30000);
	ck_ok(truncate_to(a, 90000));
	put(a, 300000, p, 5000);
	ck_ok(pf_fallocate(POOL, a, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 9000, 0));
	make_file(PF_ROOT_INO, "frozen");
	for (int k = 0; k < nr_steps; k++)
		ck_assert_int_ge(pf_pool_step(POOL, k == 0), 0);
	put(a, 70000, p, 12345);
	put(b, 4096, p + 1, 8192);
	uint64_t c = make_file(PF_ROOT_INO, "c");
	put(c, 0, p, 7000);
	ck_ok(pf_fsync(POOL, a));
	ck_ok(rename_name(PF_ROOT_INO, "frozen", PF_ROOT_INO, "thawed", 0));
	ck_ok(pf_fsync(POOL, c));
	struct model *was = load();
	crash(scene);
	struct model *is = load();
	char why[1500];
	ck_assert_msg(!model_diff_names(was, is, why, sizeof(why)), "after %d steps: %s", nr_steps, why);
	uint64_t synced[] = { a, c };
	for (unsigned k = 0; k < 2; k++) {
		struct model_inode *x = model_slot(was, synced[k])->inode, *y = model_slot(is, synced[k])->inode;
		ck_assert_msg(!model_diff_content(x, y, why, sizeof(why)), "after %d steps: %s", nr_steps, why);
		ck_time(synced[k], "mtime", y->mtime, x->mtime);
	}
	model_free(was);
	model_free(is);
	free(p);
	/* the rest of it works with what is there now */
	ck_ok(pf_pool_sync(POOL));
	crash_and_compare(scene);
	end();
}
END_TEST

/* The first goes out of the cache of inodes with changes that are not durable. */
START_TEST(more_files_than_the_cache_keeps)
{
	enum { NR_FILES = 4400 };
	begin_with(1, 64 * MIB, 256 * MIB);
	uint64_t d = make_dir(PF_ROOT_INO, "d"), first = make_file(d, "first"), second = make_file(d, "second");
	uint8_t *p = pattern(1, 20000);
	ck_ok(pf_pool_sync(POOL));
	put(first, 0, p, 20000);
	put(second, 0, p, 20000);
	ck_ok(truncate_to(first, 15000)); /* drains it */
	ck_ok(truncate_to(second, 15000));
	pf_forget(POOL, first, 1);
	pf_forget(POOL, second, 1);
	for (unsigned k = 0; k < NR_FILES; k++) {
		char name[16];
		sprintf(name, "%u", k);
		uint64_t f = make_file(d, name);
		put(f, 0, "x", 1);
		ck_ok(truncate_to(f, 100));
		pf_forget(POOL, f, 1);
	}
	first = look(d, "first");
	sync_by_checkpoint(first);
	crash(0);
	d = look(PF_ROOT_INO, "d");
	ck_assert_uint_eq(look(d, "first"), first);
	ck_assert_uint_eq(attr_of(first).size_bytes, 15000);
	ck_bytes(first, 0, p, 15000);
	ck_bytes(look(d, "second"), 0, p, 15000); /* which that checkpoint held as well */
	ck_assert_uint_ne(look(d, "4399"), 0);
	free(p);
	end();
}
END_TEST

/* A record would take more than an eighth of the ring: 129,024 bytes; a piece takes 40. */
#define NR_PIECES 3300u
START_TEST(a_file_in_many_pieces)
{
	begin_with(_i & TWO_MEMBERS ? 2 : 1, 64 * MIB, 256 * MIB);
	uint64_t o = make_file(PF_ROOT_INO, "o"), f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(1, 4096);
	for (unsigned k = 0; k < NR_PIECES; k++)
		put(f, (uint64_t)k * 8192, p, 4096);
	sync_by_checkpoint(f);
	put(f, 4096, p, 4096);
	sync_by_log(f);
	crash_and_compare(_i);
	f = look(PF_ROOT_INO, "f");
	o = look(PF_ROOT_INO, "o");
	for (unsigned k = 0; k < NR_PIECES; k++)
		put(f, (uint64_t)k * 8192, p, 4096);
	ck_ok(rename_name(PF_ROOT_INO, "f", PF_ROOT_INO, "g", 0));
	/* what comes after the name is promised by a checkpoint only (pitfalls 1.14b) */
	sync_by_checkpoint(o);
	sync_by_log(o);
	crash_and_compare(_i);
	free(p);
	end();
}
END_TEST

/* -- the ring ------------------------------------------------------------------------------------------------------- */
START_TEST(a_full_ring)
{
	struct pf_log_stats stats;
	begin(_i);
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(1, 65536);
	for (unsigned round = 0; round < 3; round++) {
		uint64_t gen = generation();
		unsigned k;
		for (k = 0; k < 40 && generation() == gen; k++) {
			p[0] = (uint8_t)(k + round);
			ck_ok(pf_setxattr(POOL, f, "user.x", p, 65536, 0));
			ck_ok(pf_fsync(POOL, f));
		}
		pf_log_stats(POOL->log, &stats);
		ck_assert_uint_gt(stats.nr_lost, 0);
		ck_assert_uint_ge(k, 14);
		if (round == 1) {
			crash_and_compare(_i);
			f = look(PF_ROOT_INO, "f");
		}
		ck_ok(pf_setxattr(POOL, f, "user.y", p, 100 + round, 0));
		sync_by_log(f);
		crash_and_compare(_i);
		f = look(PF_ROOT_INO, "f");
	}
	free(p);
	end();
}
END_TEST

/* Names are in the order in which they came: what is after the last sync is not there before what is in front of it. */
START_TEST(a_prefix)
{
	begin(_i);
	uint64_t o = make_file(PF_ROOT_INO, "o");
	make_file(PF_ROOT_INO, "before");
	sync_by_log(o);
	make_file(PF_ROOT_INO, "after");
	crash(_i);
	ck_assert_uint_ne(look(PF_ROOT_INO, "before"), 0);
	ck_assert_uint_eq(look(PF_ROOT_INO, "after"), 0);
	end();
}
END_TEST

/* -- mounts --------------------------------------------------------------------------------------------------------- */
START_TEST(read_only)
{
	begin(_i);
	uint8_t *p = pattern(1, 100000);
	uint64_t f = make_file(PF_ROOT_INO, "f"), d = make_dir(PF_ROOT_INO, "d");
	put(f, 0, p, 100000);
	ck_ok(pf_pool_sync(POOL));
	put(f, 50000, p, 10000);
	ck_ok(truncate_to(f, 0));
	put(f, 4096, p, 20000);
	make_file(d, "x");
	ck_ok(rename_name(PF_ROOT_INO, "f", d, "g", 0));
	ck_ok(pf_setxattr(POOL, d, "user.x", p, 30000, 0));
	sync_by_log(d);
	struct model *was = load();
	power_cut(_i & ALL_KEPT);
	uint64_t digest = simdisk_digest(simworld_disk(sp->world, 0));
	open_again(true);
	ck_still(was);
	ck_err(unlink_name(d, "x"), -EROFS);
	ck_ok(pf_fsync(POOL, d));
	char why[1200];
	ck_assert_int_eq(simpool_close(sp, why, sizeof(why)), 0);
	ck_assert_uint_eq(simworld_log_len(sp->world), 0);
	ck_assert_uint_eq(simdisk_digest(simworld_disk(sp->world, 0)), digest);
	open_again(false);
	ck_still(was);
	model_free(was);
	free(p);
	end();
}
END_TEST

/* After a clean unmount the log is not looked at, and nothing is missing. */
START_TEST(a_clean_mount)
{
	begin(_i);
	uint64_t f = make_file(PF_ROOT_INO, "f");
	for (unsigned k = 0; k < 5; k++) {
		put(f, 1000 * k, "bytes", 5);
		sync_by_log(f);
		struct model *was = load();
		remount();
		ck_still(was);
		model_free(was);
		f = look(PF_ROOT_INO, "f");
		put(f, 0, "other", 5);
		sync_by_log(f);
		crash_and_compare(_i);
		f = look(PF_ROOT_INO, "f");
	}
	end();
}
END_TEST

/* -- failing disks -------------------------------------------------------------------------------------------------- */
static struct sim_fault in_log(unsigned disk, int err, uint64_t nr)
{
	struct simdisk *d = simworld_disk(sp->world, disk);
	struct pf_geometry geo = simpool_geometry(d);
	return (struct sim_fault){ .disk = d,
				   .ops = SIM_WRITE,
				   .kind = SIM_FAIL,
				   .count = nr,
				   .err = err,
				   .from_bytes = geo.log_block * PF_BLOCK_SIZE,
				   .to_bytes = (geo.log_block + geo.log_blocks) * PF_BLOCK_SIZE };
}

/* Of the log only: then each fsync is a checkpoint, for as long as that is so. */
START_TEST(log_blocks_that_cannot_be_written)
{
	static const int errors[] = { -EIO, -ENOSPC };
	for (unsigned e = 0; e < 2; e++) {
		begin(_i);
		uint64_t f = make_file(PF_ROOT_INO, "f");
		put(f, 0, "one", 3);
		sync_by_log(f);
		struct sim_fault fault = in_log(_i & TWO_MEMBERS, errors[e], e);
		simworld_add_fault(sp->world, &fault);
		for (unsigned k = 0; k < 3; k++) {
			put(f, 10000 * k, "two", 3);
			make_file(PF_ROOT_INO, k ? k == 1 ? "g" : "h" : "i");
			if (!k || !fault.count)
				sync_by_checkpoint(f);
			else
				sync_by_log(f);
		}
		simworld_clear_faults(sp->world);
		crash_and_compare(_i);
		f = look(PF_ROOT_INO, "f");
		put(f, 5, "three", 5);
		sync_by_log(f);
		crash_and_compare(_i);
		end();
	}
}
END_TEST

/* Data that cannot be written goes elsewhere. */
START_TEST(data_that_cannot_be_written)
{
	begin(_i);
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(1, 20000);
	for (uint64_t skip = 0; skip < 4; skip++) {
		struct sim_fault fault = { .ops = SIM_WRITE, .kind = SIM_FAIL, .skip = skip, .count = 1 };
		p[0] = (uint8_t)skip;
		put(f, 4096 * skip, p, 20000);
		simworld_add_fault(sp->world, &fault);
		ck_ok(pf_fsync(POOL, f));
		simworld_clear_faults(sp->world);
		crash_and_compare(_i);
		f = look(PF_ROOT_INO, "f");
	}
	free(p);
	end();
}
END_TEST

/* A flush that fails is final (pitfalls 1.13): on a pool of one member nothing is promised any more, and what was, holds. */
START_TEST(a_failed_flush)
{
	begin(_i);
	uint64_t f = make_file(PF_ROOT_INO, "f"), g = make_file(PF_ROOT_INO, "g");
	uint8_t *p = pattern(1, 20000);
	put(f, 0, p, 20000);
	sync_by_log(f);
	struct model *was = load();
	struct sim_fault fault = { .ops = SIM_FLUSH, .kind = SIM_FAIL, .count = 1 };
	simworld_add_fault(sp->world, &fault);
	put(g, 0, p, 10000);
	make_file(PF_ROOT_INO, "h");
	ck_err(pf_fsync(POOL, g), -EIO);
	simworld_clear_faults(sp->world);
	ck_err(pf_fsync(POOL, g), -EIO);
	ck_err(pf_fsync(POOL, f), -EIO);
	ck_err(pf_pool_sync(POOL), -EIO);
	ck_err(pf_write(POOL, g, 0, "x", 1, 0), -EROFS);
	ck_err(unlink_name(PF_ROOT_INO, "f"), -EROFS);
	ck_bytes(f, 0, p, 20000);
	crash(_i);
	f = look(PF_ROOT_INO, "f");
	ck_bytes(f, 0, p, 20000);
	ck_assert_uint_ne(look(PF_ROOT_INO, "g"), 0);
	if (_i == ONE_MEMBER)
		ck_still(was);
	model_free(was);
	free(p);
	end();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("intent_sync");
	TCase *tc = tcase_create("sync");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, nothing_changed_nothing_written, 0, NR_SCENES);
	tcase_add_loop_test(tc, one_flush_per_member_written, 0, NR_PLACED);
	tcase_add_loop_test(tc, callers_share_flushes, 0, NR_SCENES);
	tcase_add_loop_test(tc, eight_threads_take_fewer_flushes, 0, NR_PLACED);
	tcase_add_loop_test(tc, at_each_step_of_a_checkpoint, 0, NR_SCENES * (NR_STEPS + 1));
	tcase_add_test(tc, more_files_than_the_cache_keeps);
	tcase_add_loop_test(tc, a_file_in_many_pieces, 0, NR_SCENES);
	tcase_add_loop_test(tc, a_full_ring, 0, NR_SCENES);
	tcase_add_loop_test(tc, a_prefix, 0, NR_SCENES);
	tcase_add_loop_test(tc, read_only, 0, NR_SCENES);
	tcase_add_loop_test(tc, a_clean_mount, 0, NR_SCENES);
	tcase_add_loop_test(tc, log_blocks_that_cannot_be_written, 0, NR_SCENES);
	tcase_add_loop_test(tc, data_that_cannot_be_written, 0, NR_SCENES);
	tcase_add_loop_test(tc, a_failed_flush, ONE_MEMBER, ONE_MEMBER + 1);
	tcase_add_loop_test(tc, a_failed_flush, ALL_KEPT, ALL_KEPT + 1);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
