/* SPDX-License-Identifier: MIT
 * A pool of three disks in memory, as mkfs and checkpoints would leave it, and the ways to open it: for the tests of assembly. */
#ifndef SET_UTIL_H
#define SET_UTIL_H

#include "base/csum.h"
#include "member/set.h"
#include "sample_super.h"
#include "sim/simdisk.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define NR    3
#define BLOCK PF_BLOCK_SIZE

static const uint64_t sizes[PF_MAX_MEMBERS] = { 4096, 5000, 20001 }; /* blocks; the last has two groups */
static struct simworld *world;
static struct pf_super cur; /* what the newest superblock says */
static struct pf_diag diag;
static struct pf_env env;
static char logged[1024];
static uint8_t *block;

static inline void remember(void *arg, enum pf_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	snprintf(logged, sizeof(logged), "%s", message);
}

/* -- a pool as commit/ and space/ would leave it -------------------------------------------------------------------- */
static inline struct pf_geometry geometry(unsigned id)
{
	struct pf_geometry geo;
	ck_assert_int_eq(pf_geometry_init(&geo, cur.members[id].size_blocks, cur.members[id].log_blocks), 0);
	return geo;
}

/* A new table root of the present generation, in the slot that is not the committed one. */
static inline void write_root(struct simdisk *disk, unsigned id)
{
	struct pf_member_row *row = &cur.members[id];
	struct pf_geometry geo = geometry(id);
	size_t len = geo.root_blocks * BLOCK;
	struct pf_disk_table_head *root = calloc(1, len);
	row->root_slot = !row->root_slot;
	row->root_generation = cur.generation;
	root->magic = pf_le64(PF_TABLE_ROOT_MAGIC);
	memcpy(root->pool_uuid, cur.pool_uuid, 16);
	root->generation = pf_le64(cur.generation);
	root->member_id = (uint8_t)id;
	root->slot = row->root_slot;
	row->root_crc = pf_crc64(root, len);
	root->crc = pf_le64(row->root_crc);
	simdisk_poke(disk, (geo.root_block + row->root_slot * geo.root_blocks) * BLOCK, root, len);
	free(root);
}

static inline void write_super(struct simdisk *disk, unsigned id)
{
	struct pf_geometry geo = geometry(id);
	pf_super_pack(&cur, id, block);
	for (unsigned ring = 0; ring < 2; ring++)
		simdisk_poke(disk, pf_geometry_super_block(&geo, ring, cur.generation % 8) * BLOCK, block, BLOCK);
}

static inline void new_epoch(uint64_t id)
{
	memmove(cur.epochs + 1, cur.epochs, (PF_MAX_EPOCHS - 1) * sizeof(cur.epochs[0]));
	cur.epochs[0] = (struct pf_epoch){ .id = id, .time_ns = (int64_t)id, .last_generation = cur.generation };
}

/* Next generation: table roots of the members in @tables, superblocks on those in @supers. */
static inline void checkpoint(struct simworld *w, unsigned tables, unsigned supers)
{
	cur.generation++;
	cur.written_ns += 1000000000;
	for (unsigned id = 0; id < NR; id++) {
		if (tables >> id & 1)
			write_root(simworld_disk(w, id), id);
	}
	for (unsigned id = 0; id < NR; id++) {
		if (supers >> id & 1)
			write_super(simworld_disk(w, id), id);
	}
}

static inline struct simworld *make_pool(uint8_t uuid)
{
	struct simworld *w = simworld_new();
	char name[16];
	sample_super(&cur, NR, sizes);
	memset(cur.pool_uuid, uuid, 16);
	cur.generation = 0;
	memset(cur.epochs, 0, sizeof(cur.epochs));
	memset(&cur.root, 0, sizeof(cur.root));
	cur.root_level = 0;
	for (unsigned id = 0; id < NR; id++) {
		cur.members[id].uuid[0] = uuid;
		snprintf(name, sizeof(name), "%c.img", 'a' + (int)id);
		simdisk_new(w, name, sizes[id] * BLOCK + 100 * id); /* partitions may have a fraction of a block more */
	}
	checkpoint(w, 7, 7);
	return w;
}

static inline void setup(void)
{
	block = aligned_alloc(BLOCK, 64 * BLOCK);
	env = *pf_env_system();
	env.log = remember;
	logged[0] = 0;
	memset(&diag, 0, sizeof(diag));
	world = make_pool(0xa5);
	new_epoch(101);
	checkpoint(world, 0, 6); /* members 1 and 2 are the metadata members */
	for (unsigned i = 0; i < 5; i++)
		checkpoint(world, 2, 6);
	checkpoint(world, 5, 7);
	checkpoint(world, 4, 6);
}

static inline void teardown(void)
{
	simworld_free(world);
	free(block);
}

/* Opens the disks of @w whose indices @order lists ("201"); upper-case 'R' before one opens it read-only. */
static inline int open_pool(struct simworld *w, const char *order, unsigned flags, struct pf_set **set)
{
	struct pf_io *ios[40];
	unsigned nr = 0;
	memset(&diag, 0, sizeof(diag));
	for (; *order; order++) {
		bool ro = *order == 'R';
		order += ro;
		ios[nr++] = simdisk_open(simworld_disk(w, (unsigned)(*order - '0')), ro);
	}
	return pf_set_open_ios(ios, nr, flags, &env, set, &diag);
}

static inline void must_open(struct simworld *w, const char *order, unsigned flags, struct pf_set **set)
{
	int err = open_pool(w, order, flags, set);
	ck_assert_msg(err == 0, "%s: %s: %s", order, pf_strerror(err), diag.text);
	ck_assert_uint_eq((*set)->nr, NR);
	ck_assert_uint_eq((*set)->super.generation, cur.generation);
	for (unsigned id = 0; id < NR; id++) {
		const struct pf_member *m = &(*set)->members[id];
		ck_assert_uint_eq(m->id, id);
		ck_assert_int_eq(m->io->name[0], 'a' + (int)id);
		ck_assert_uint_eq(m->geo.size_blocks, sizes[id]);
	}
}

static inline void check_opens(const char *order)
{
	struct pf_set *set;
	must_open(world, order, PF_SET_WRITE, &set);
	for (unsigned id = 0; id < NR; id++)
		ck_assert(!set->members[id].stale);
	pf_set_close(set);
}

/* Refused with that code, with all of these words (up to a NULL), and not one byte changed. */
static inline void refused(struct simworld *w, const char *order, unsigned flags, int expected,
			   const char *const words[])
{
	struct pf_set *set = (void *)1;
	uint64_t digests[8], nr_writes = 0;
	for (unsigned i = 0; i < simworld_nr_disks(w); i++)
		digests[i] = simdisk_digest(simworld_disk(w, i));
	int err = open_pool(w, order, flags, &set);
	ck_assert_msg(err == expected, "%s instead of %s: %s", pf_strerror(err), pf_strerror(expected), diag.text);
	ck_assert_ptr_null(set);
	for (; *words; words++)
		ck_assert_msg(strstr(diag.text, *words) != NULL, "'%s' is not in: %s", *words, diag.text);
	for (unsigned i = 0; i < simworld_nr_disks(w); i++) {
		ck_assert_uint_eq(digests[i], simdisk_digest(simworld_disk(w, i)));
		nr_writes += simdisk_count(simworld_disk(w, i), SIM_WRITE | SIM_DISCARD | SIM_ALLOCATE);
	}
	ck_assert_uint_eq(nr_writes, 0);
}
#define REFUSED(w, order, flags, err, ...) refused(w, order, flags, err, (const char *const[]){ __VA_ARGS__, NULL })

static inline TCase *add_case(Suite *s, const char *name)
{
	TCase *tc = tcase_create(name);
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	suite_add_tcase(s, tc);
	return tc;
}

#endif
