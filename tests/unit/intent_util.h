/* SPDX-License-Identifier: MIT
 *
 * Purpose: pools with a log for the tests of it: syncs that must (or must not) go without a checkpoint, power cuts, and comparing
 * everything that was there before with everything after.
 * Invariants
 *   I1  After begin() everything that the pool writes is recorded; a power cut keeps all of it, or only what was flushed.
 *   I2  Each mount has randomness of its own.
 * Uses: posix_util.h, model.
 */
#ifndef PF_TEST_INTENT_UTIL_H
#define PF_TEST_INTENT_UTIL_H

#include "block/engine.h"
#include "model/model.h"
#include "unit/posix_util.h"

/* What loop tests are run with: _i. */
enum scene { ONE_MEMBER = 0, TWO_MEMBERS = 1, ALL_KEPT = 2, NR_SCENES = 4 };

static inline void begin_config(const struct simpool_config *config)
{
	char why[1200] = "";
	sp = simpool_bare(config);
	ck_assert_msg(simpool_mkfs(sp, why, sizeof(why)) == 0, "%s", why);
	simworld_record(sp->world);
	ck_assert_msg(simpool_open(sp, false, why, sizeof(why)) == 0, "%s", why);
}

static inline void begin_with(unsigned nr_members, uint64_t size_bytes, uint64_t cache_bytes)
{
	struct simpool_config config = { .version = PF_VERSION_NEWEST,
					 .nr_members = nr_members,
					 .size_bytes = size_bytes,
					 .cache_bytes = cache_bytes,
					 .seed = 1 };
	begin_config(&config);
}

static inline void begin(int scene)
{
	begin_with(scene & TWO_MEMBERS ? 2 : 1, 32 * MIB, 64 * MIB);
}

/* The power goes; what was not flushed is lost, or all there. The pool is closed. */
static inline void power_cut(bool kept)
{
	size_t len = simworld_log_len(sp->world), nr = simworld_pending(sp->world, len, NULL, 0);
	struct sim_fate *fates = calloc(nr + 1, sizeof(*fates));
	for (size_t k = 0; k < nr; k++)
		fates[k].kind = kept ? SIM_KEPT : SIM_LOST;
	struct simpool_config config = sp->config;
	config.seed++;
	struct simpool *next = simpool_adopt(&config, simworld_crash(sp->world, len, fates));
	next->env.now_ns = sp->env.now_ns;
	free(fates);
	simpool_free(sp);
	sp = next;
	simworld_record(sp->world);
}

static inline void open_again(bool read_only)
{
	char why[1200] = "";
	ck_assert_msg(simpool_open(sp, read_only, why, sizeof(why)) == 0, "after the power cut: %s", why);
}

static inline void crash(int scene)
{
	power_cut(scene & ALL_KEPT);
	open_again(false);
}

static inline struct model *load(void)
{
	char why[1200] = "";
	struct model *m = model_new();
	int err = model_load(POOL, m, why, sizeof(why));
	ck_assert_msg(err == 0, "%s", why);
	return m;
}

static inline void ck_time(uint64_t ino, const char *which, struct timespec is, struct timespec was)
{
	ck_assert_msg(is.tv_sec == was.tv_sec && is.tv_nsec == was.tv_nsec, "%s of inode %ju is %jd.%09ld, was %jd.%09ld", which,
		      (uintmax_t)ino, (intmax_t)is.tv_sec, is.tv_nsec, (intmax_t)was.tv_sec, was.tv_nsec);
}

/* Everything: names, attributes, extended attributes, bytes. */
static inline void ck_same(struct model *was, struct model *is)
{
	char why[1500] = "";
	ck_assert_msg(!model_diff_names(was, is, why, sizeof(why)), "%s", why);
	for (size_t k = 0; k < was->nr; k++) {
		struct model_inode *a = was->slots[k].inode, *b = model_slot(is, a->ino)->inode;
		ck_time(a->ino, "atime", b->atime, a->atime);
		ck_time(a->ino, "mtime", b->mtime, a->mtime);
		ck_time(a->ino, "ctime", b->ctime, a->ctime);
		if (model_is_file(a))
			ck_assert_msg(!model_diff_content(a, b, why, sizeof(why)), "%s", why);
	}
}

/* The open pool has all that @was has. */
static inline void ck_still(struct model *was)
{
	struct model *is = load();
	ck_same(was, is);
	model_free(is);
}

static inline void crash_and_compare(int scene)
{
	struct model *was = load();
	crash(scene);
	ck_still(was);
	model_free(was);
}

static inline uint64_t generation(void)
{
	return pf_pool_super(POOL)->generation;
}

/* By the log: without a checkpoint. */
static inline void sync_by_log(uint64_t ino)
{
	uint64_t before = generation();
	ck_ok(pf_fsync(POOL, ino));
	ck_assert_msg(generation() == before, "the fsync of inode %ju made a checkpoint", (uintmax_t)ino);
}

static inline void sync_by_checkpoint(uint64_t ino)
{
	uint64_t before = generation();
	ck_ok(pf_fsync(POOL, ino));
	ck_assert_msg(generation() > before, "the fsync of inode %ju made no checkpoint", (uintmax_t)ino);
}

static inline uint64_t count(unsigned disk, unsigned ops)
{
	return simdisk_count(simworld_disk(sp->world, disk), ops);
}

/* Closed, and nothing is wrong with it. */
static inline void end(void)
{
	teardown();
}

#endif
