/* SPDX-License-Identifier: MIT
 *
 * Purpose: a set of disks in memory with a free space on it, without pool and without superblocks: what a superblock
 * would name stands in rig->super.
 *
 * Invariants
 *   I1  rig->super is what the last durable checkpoint would have put into the superblocks.
 *   I2  The simworld records from that moment on: all that it calls pending was written by a later checkpoint.
 *
 * Uses: space, sim/simdisk.
 */
#ifndef SPACE_UTIL_H
#define SPACE_UTIL_H

#include "sim/simdisk.h"
#include "space/private.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rig {
	unsigned nr;
	uint64_t break_rules;
	struct simworld *world;
	struct pf_env env;
	struct pf_set set;
	struct pf_super super;
	struct pf_space *space;
	uint64_t generation; /* of the last durable checkpoint */
};

static inline void rig_no_log(void *arg, enum pf_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	(void)message;
}

/* Fresh handles and a fresh set over rig->world, as after an open. */
static inline void rig_attach(struct rig *rig)
{
	struct pf_io *ios[PF_MAX_MEMBERS];
	rig->env = *pf_env_system();
	rig->env.log = rig_no_log;
	rig->env.break_rules = rig->break_rules;
	memset(&rig->set, 0, sizeof(rig->set));
	rig->set.env = &rig->env;
	rig->set.nr = rig->nr;
	rig->set.super = rig->super;
	ck_assert_int_eq(pf_aio_create(&rig->set.aio), 0);
	simworld_open(rig->world, false, ios);
	for (unsigned i = 0; i < rig->nr; i++) {
		struct pf_member *m = &rig->set.members[i];
		m->id = i;
		m->io = ios[i];
		ck_assert_int_eq(
			pf_geometry_init(&m->geo, rig->super.members[i].size_blocks, rig->super.members[i].log_blocks),
			0);
	}
}

static inline void rig_detach(struct rig *rig)
{
	pf_space_close(rig->space);
	rig->space = NULL;
	for (unsigned i = 0; i < rig->nr; i++)
		pf_io_close(rig->set.members[i].io);
	pf_aio_destroy(rig->set.aio);
}

static inline int rig_open(struct rig *rig, bool rebuild)
{
	struct pf_diag diag = { 0 };
	rig_attach(rig);
	rig->space = NULL;
	int err = pf_space_open(&rig->set, rebuild, &rig->space, &diag);
	if (!err)
		pf_space_set_node_blocks(rig->space, rig->super.counters.node_blocks);
	ck_assert(!err || diag.text[0]);
	return err;
}

static inline void rig_flush(struct rig *rig)
{
	for (unsigned i = 0; i < rig->nr; i++)
		ck_assert_int_eq(pf_io_flush(rig->set.members[i].io), 0);
}

/* The parts of a checkpoint after the freeze. */
static inline void rig_durable(struct rig *rig, const struct pf_super *super)
{
	struct pf_space_stats stats;
	rig_flush(rig);
	rig->super = *super;
	rig->super.generation = ++rig->generation;
	pf_space_stats(rig->space, &stats);
	rig->super.counters.node_blocks = stats.node_blocks;
	simworld_record(rig->world);
	pf_space_durable(rig->space);
}

static inline uint32_t rig_checkpoint(struct rig *rig)
{
	struct pf_super super = rig->super;
	uint32_t changed;
	pf_space_freeze(rig->space);
	ck_assert_int_eq(pf_space_write(rig->space, rig->generation + 1, &super, &changed), 0);
	rig_durable(rig, &super);
	return changed;
}

static inline void rig_new(struct rig *rig, unsigned version, unsigned nr, const uint64_t *sizes, unsigned nr_meta)
{
	uint64_t pool_blocks = 0;
	memset(rig, 0, sizeof(*rig));
	rig->nr = nr;
	rig->world = simworld_new();
	rig->super.version = version;
	rig->super.features = pf_version_features(version);
	memset(rig->super.pool_uuid, 0xa5, sizeof(rig->super.pool_uuid));
	rig->super.nr_members = nr;
	rig->super.nr_meta = nr_meta;
	for (unsigned i = 0; i < nr; i++) {
		char name[16];
		snprintf(name, sizeof(name), "disk%u", i);
		simdisk_new(rig->world, name, sizes[i]);
		pool_blocks += sizes[i] / PF_BLOCK_SIZE;
	}
	for (unsigned i = 0; i < nr; i++) {
		struct pf_member_row *row = &rig->super.members[i];
		struct pf_geometry geo;
		row->size_blocks = sizes[i] / PF_BLOCK_SIZE;
		row->log_blocks = pf_geometry_log_blocks(row->size_blocks);
		row->state = PF_MEMBER_ACTIVE;
		ck_assert_int_eq(pf_geometry_init(&geo, row->size_blocks, row->log_blocks), 0);
		if (i < nr_meta) {
			row->flags = PF_MEMBER_META;
			row->share_blocks = pf_geometry_share_blocks(pool_blocks, &geo);
			rig->super.meta_members[i] = (uint8_t)i;
		}
	}
	ck_assert_int_eq(rig_open(rig, true), 0);
	rig_checkpoint(rig);
}

/* As after a clean close. */
static inline void rig_reopen(struct rig *rig)
{
	rig_detach(rig);
	ck_assert_int_eq(rig_open(rig, false), 0);
}

/* A power cut after @cut events of the record, with those fates for what was not flushed. */
static inline void rig_crash(struct rig *rig, size_t cut, const struct sim_fate *fates)
{
	struct simworld *world = simworld_crash(rig->world, cut, fates);
	rig_detach(rig);
	simworld_free(rig->world);
	rig->world = world;
	simworld_record(world);
	ck_assert_int_eq(rig_open(rig, false), 0);
}

static inline void rig_free(struct rig *rig)
{
	rig_detach(rig);
	simworld_free(rig->world);
}

static inline int rig_alloc(struct rig *rig, enum pf_space_use use, uint64_t nr, uint64_t min_nr, struct pf_run *run)
{
	struct pf_alloc_req req = { .use = use, .nr = nr, .min_nr = min_nr, .member = -1 };
	return pf_space_alloc(rig->space, &req, run);
}

static inline struct pf_space_stats rig_stats(struct rig *rig)
{
	struct pf_space_stats stats;
	pf_space_stats(rig->space, &stats);
	return stats;
}

static inline bool rig_bit(const uint8_t *map, uint64_t block)
{
	uint64_t bit = block % PF_GROUP_BLOCKS;
	return map[bit / 8] >> bit % 8 & 1;
}

static inline int rig_main(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	bool failed = srunner_ntests_failed(runner) > 0;
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
