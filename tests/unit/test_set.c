/* SPDX-License-Identifier: MIT
 * Pool assembly: any order, every refusal with its words, what a crash leaves, damaged copies, clones. A refused pool has
 * not been written to. */
#include "base/csum.h"
#include "member/scan.h"
#include "member/set.h"
#include "sample_super.h"
#include "sim/simdisk.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NR 3
#define BLOCK PF_BLOCK_SIZE

static const uint64_t sizes[PF_MAX_MEMBERS] = { 4096, 5000, 20001 }; /* blocks; the last has two groups */
static struct simworld *world;
static struct pf_super cur; /* what the newest superblock says */
static struct pf_diag diag;
static struct pf_env env;
static char logged[1024];
static uint8_t *block;

static void remember(void *arg, enum pf_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	snprintf(logged, sizeof(logged), "%s", message);
}

/* -- a pool as commit/ and space/ would leave it -------------------------------------------------------------------- */
static struct pf_geometry geometry(unsigned id)
{
	struct pf_geometry geo;
	ck_assert_int_eq(pf_geometry_init(&geo, cur.members[id].size_blocks, cur.members[id].log_blocks), 0);
	return geo;
}

/* A new table root of the present generation, in the slot that is not the committed one. */
static void write_root(struct simdisk *disk, unsigned id)
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

static void write_super(struct simdisk *disk, unsigned id)
{
	struct pf_geometry geo = geometry(id);
	pf_super_pack(&cur, id, block);
	for (unsigned ring = 0; ring < 2; ring++)
		simdisk_poke(disk, pf_geometry_super_block(&geo, ring, cur.generation % 8) * BLOCK, block, BLOCK);
}

static void new_epoch(uint64_t id)
{
	memmove(cur.epochs + 1, cur.epochs, (PF_MAX_EPOCHS - 1) * sizeof(cur.epochs[0]));
	cur.epochs[0] = (struct pf_epoch){ .id = id, .time_ns = (int64_t)id, .last_generation = cur.generation };
}

/* Next generation: table roots of the members in @tables, superblocks on those in @supers. */
static void checkpoint(struct simworld *w, unsigned tables, unsigned supers)
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

static struct simworld *make_pool(uint8_t uuid)
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

static void setup(void)
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

static void teardown(void)
{
	simworld_free(world);
	free(block);
}

/* Opens the disks of @w whose indices @order lists ("201"); upper-case 'R' before one opens it read-only. */
static int open_pool(struct simworld *w, const char *order, unsigned flags, struct pf_set **set)
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

static void must_open(struct simworld *w, const char *order, unsigned flags, struct pf_set **set)
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

static void check_opens(const char *order)
{
	struct pf_set *set;
	must_open(world, order, PF_SET_WRITE, &set);
	for (unsigned id = 0; id < NR; id++)
		ck_assert(!set->members[id].stale);
	pf_set_close(set);
}

/* Refused with that code, with all of these words (up to a NULL), and not one byte changed. */
static void refused(struct simworld *w, const char *order, unsigned flags, int expected, const char *const words[])
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

/* -- good pools ----------------------------------------------------------------------------------------------------- */
START_TEST(any_order)
{
	static const char *const orders[] = { "012", "021", "102", "120", "201", "210" };
	for (unsigned i = 0; i < 6; i++)
		check_opens(orders[i]);
	struct pf_set *set;
	must_open(world, "201", 0, &set);
	ck_assert(set->read_only);
	ck_assert_uint_eq(set->members[2].super_generation, cur.generation);
	ck_assert_uint_lt(set->members[0].super_generation, cur.generation);
	pf_set_close(set);
	must_open(world, "R2R0R1", PF_SET_UNLOCKED, &set);
	pf_set_close(set);
}
END_TEST

START_TEST(after_a_crash_between_superblocks)
{
	/* new epoch on one metadata member only */
	new_epoch(102);
	checkpoint(world, 0, 4);
	check_opens("012");
	check_opens("210");
	/* a checkpoint that changed all tables, of whose superblocks one came through */
	checkpoint(world, 7, 2);
	check_opens("012");
	check_opens("210");
	struct pf_set *set;
	must_open(world, "012", 0, &set);
	ck_assert_uint_eq(set->members[1].super_generation, cur.generation);
	ck_assert_uint_eq(set->members[2].super_generation, cur.generation - 1);
	pf_set_close(set);
	/* roots of the next checkpoint written, no superblock: the roots named are in the other slots */
	struct pf_super committed = cur;
	cur.generation++;
	for (unsigned id = 0; id < NR; id++)
		write_root(simworld_disk(world, id), id);
	cur = committed;
	check_opens("102");
}
END_TEST

START_TEST(data_members_lag_behind)
{
	for (unsigned i = 0; i < 40; i++) {
		if (i % 2 == 0)
			new_epoch(200 + i); /* more mounts than the list of epochs is long */
		checkpoint(world, 6, 6);
	}
	check_opens("012");
}
END_TEST

START_TEST(a_grown_file)
{
	simdisk_resize(simworld_disk(world, 1), (sizes[1] + 1000) * BLOCK);
	check_opens("012");
	/* ring A torn: ring B is where the end was, which another slot of ring A still says */
	struct pf_geometry geo = geometry(1);
	simdisk_flip_bit(simworld_disk(world, 1), pf_geometry_super_block(&geo, 0, cur.generation % 8) * BLOCK + 200, 1);
	struct pf_set *set;
	must_open(world, "012", 0, &set);
	ck_assert_uint_eq(set->members[1].super_generation, cur.generation);
	pf_set_close(set);
}
END_TEST

/* -- damaged copies ------------------------------------------------------------------------------------------------- */
static void damage(unsigned id, unsigned ring, unsigned slot)
{
	struct pf_geometry geo = geometry(id);
	memset(block, 0x5a, 512); /* a torn sector */
	simdisk_poke(simworld_disk(world, id), pf_geometry_super_block(&geo, ring, slot) * BLOCK + 1024, block, 512);
}

START_TEST(torn_superblocks)
{
	unsigned slot = cur.generation % 8;
	struct pf_set *set;
	damage(2, 0, slot); /* the copy in ring B counts */
	must_open(world, "012", 0, &set);
	ck_assert_uint_eq(set->members[2].super_generation, cur.generation);
	ck_assert_ptr_nonnull(strstr(logged, "c.img: 1 damaged superblock"));
	pf_set_close(set);
	damage(2, 1, slot); /* the other metadata member has the newest */
	must_open(world, "012", 0, &set);
	ck_assert_uint_eq(set->members[2].super_generation, cur.generation - 1);
	pf_set_close(set);
	check_opens("210");
}
END_TEST

START_TEST(torn_on_all_members)
{
	/* power failed while the superblocks of a generation were written: the one before counts, and its roots are there */
	struct pf_super before = cur;
	checkpoint(world, 7, 7);
	for (unsigned id = 0; id < NR; id++) {
		damage(id, 0, cur.generation % 8);
		damage(id, 1, cur.generation % 8);
	}
	cur = before;
	check_opens("120");
}
END_TEST

START_TEST(whole_ring_damaged)
{
	for (unsigned slot = 0; slot < 8; slot++)
		damage(1, 0, slot);
	check_opens("012");
	memset(block, 0, 64 * BLOCK);
	for (unsigned i = 0; i < 3; i++) /* the first MiB overwritten, all of ring A and the table root too */
		simdisk_poke(simworld_disk(world, 1), i * 64 * BLOCK, block, 64 * BLOCK);
	check_opens("012");
	for (unsigned slot = 0; slot < 8; slot++)
		damage(2, 1, slot);
	check_opens("012");
}
END_TEST

START_TEST(unreadable_superblocks)
{
	struct pf_set *set;
	struct pf_geometry geo = geometry(2);
	uint64_t at = pf_geometry_super_block(&geo, 0, cur.generation % 8) * BLOCK;
	struct sim_fault slot = { .disk = simworld_disk(world, 2), .ops = SIM_READ, .from_bytes = at, .to_bytes = at + BLOCK };
	simworld_add_fault(world, &slot);
	must_open(world, "012", 0, &set);
	ck_assert_uint_eq(set->members[2].super_generation, cur.generation);
	pf_set_close(set);
	struct sim_fault all = { .disk = simworld_disk(world, 2), .ops = SIM_READ };
	simworld_add_fault(world, &all);
	REFUSED(world, "012", 0, -EIO, "c.img: its superblocks cannot be read", "cable");
	struct pf_super super;
	struct pf_io *io = simdisk_open(simworld_disk(world, 2), true);
	ck_assert_int_eq(pf_set_read_super(io, &super, NULL), -EIO);
	pf_io_close(io);
}
END_TEST

START_TEST(no_good_superblock_at_all)
{
	for (unsigned slot = 0; slot < 8; slot++) {
		damage(0, 0, slot);
		damage(0, 1, slot);
	}
	REFUSED(world, "012", PF_SET_WRITE, -PF_ESB_CSUM, "a.img: a poolfs member", "all copies of its superblock are damaged",
		"fsck.poolfs");
	struct pf_super super;
	unsigned nr_bad;
	struct pf_io *io = simdisk_open(simworld_disk(world, 0), true);
	ck_assert_int_eq(pf_set_read_super(io, &super, &nr_bad), -PF_ESB_CSUM);
	pf_io_close(io);

	/* fsck knows it by its group table */
	struct pf_set *set;
	must_open(world, "012", PF_SET_WRITE | PF_SET_REPAIR, &set);
	ck_assert_uint_eq(set->members[0].super_generation, 0);
	ck_assert(!set->members[0].stale);
	ck_assert_ptr_nonnull(strstr(logged, "a.img: has no good superblock"));
	/* and restores it */
	ck_assert_int_eq(pf_set_write_super(set, &set->super, 1, NULL), 0);
	pf_set_close(set);
	check_opens("012");

	/* but takes no stranger for it */
	simdisk_new(world, "d.img", sizes[0] * BLOCK);
	struct simworld *copy = simworld_copy(world);
	REFUSED(copy, "312", PF_SET_REPAIR, -PF_EMEMBER_NONE, "d.img: not a poolfs member");
	simworld_free(copy);
}
END_TEST

START_TEST(misplaced_superblocks_do_not_count)
{
	/* a superblock of a higher generation that was written into the wrong slot */
	struct pf_geometry geo = geometry(2);
	cur.generation += 5;
	pf_super_pack(&cur, 2, block);
	cur.generation -= 5;
	simdisk_poke(simworld_disk(world, 2), pf_geometry_super_block(&geo, 0, cur.generation % 8) * BLOCK, block, BLOCK);
	struct pf_super super;
	unsigned nr_bad;
	struct pf_io *io = simdisk_open(simworld_disk(world, 2), true);
	ck_assert_int_eq(pf_set_read_super(io, &super, &nr_bad), 0);
	ck_assert_uint_eq(super.generation, cur.generation);
	ck_assert_uint_eq(nr_bad, 1);
	pf_io_close(io);

	/* a whole disk whose last partition is a member: its end ring is at the end of the disk too */
	struct simworld *w = simworld_new();
	struct simdisk *disk = simdisk_new(w, "disk", (sizes[2] + 512) * BLOCK);
	for (uint64_t b = 0; b < sizes[2]; b += 3) {
		simdisk_peek(simworld_disk(world, 2), b * BLOCK, block, 3 * BLOCK);
		simdisk_poke(disk, (512 + b) * BLOCK, block, 3 * BLOCK);
	}
	io = simdisk_open(disk, true);
	ck_assert_int_eq(pf_set_read_super(io, &super, NULL), -PF_EMEMBER_NONE);
	pf_io_close(io);
	simworld_free(w);
}
END_TEST

/* -- refusals ------------------------------------------------------------------------------------------------------- */
START_TEST(missing)
{
	REFUSED(world, "02", PF_SET_WRITE, -PF_EMEMBER_MISSING, "pool \"sample\" (a5a5a5a5-a5a5-", "1 of its 3 members is missing",
		"member 2 (image file, 19.5 MiB, uuid a5111111-1111-1111-1111-111111111111)", "name it too");
	REFUSED(world, "1", 0, -PF_EMEMBER_MISSING, "2 of its 3 members are missing", "member 1", "member 3", "name them too");
	REFUSED(world, "0", 0, -PF_EMEMBER_MISSING, "member 2", "member 3");
	REFUSED(world, "", 0, -EINVAL, "no members are named");
	REFUSED(world, "000000000000000000000000000000000", 0, -EINVAL, "33 members are named", "at most 32");
}
END_TEST

START_TEST(not_a_member)
{
	simdisk_new(world, "d.img", 64 << 20);
	simdisk_new(world, "tiny", 4096);
	simdisk_new(world, "empty", 0);
	REFUSED(world, "0132", 0, -PF_EMEMBER_NONE, "d.img: not a poolfs member (64.0 MiB", "check the path", "mkfs.poolfs");
	REFUSED(world, "4", PF_SET_WRITE, -PF_EMEMBER_NONE, "tiny: not a poolfs member");
	REFUSED(world, "5", 0, -PF_EMEMBER_NONE, "empty: not a poolfs member");
	REFUSED(world, "5", PF_SET_REPAIR, -PF_EMEMBER_NONE, "empty: not a poolfs member");
}
END_TEST

START_TEST(two_pools)
{
	struct pf_super saved = cur;
	struct simworld *other = make_pool(0xb6);
	struct simdisk *stranger = simdisk_new(world, "stranger.img", 0);
	simdisk_copy_from(stranger, simworld_disk(other, 1));
	REFUSED(world, "0132", PF_SET_WRITE, -PF_EMEMBER_FOREIGN, "members of two pools", "b.img belongs to pool", "a5a5a5a5",
		"stranger.img to pool", "b6b6b6b6", "one pool only");
	REFUSED(world, "30", 0, -PF_EMEMBER_FOREIGN, "stranger.img", "a.img");
	simworld_free(other);

	/* of this pool, but not in its table (any more) */
	cur = saved;
	memset(cur.members[0].uuid, 0x77, 16);
	simdisk_resize(stranger, 0);
	simdisk_resize(stranger, sizes[0] * BLOCK);
	write_super(stranger, 0);
	cur = saved;
	REFUSED(world, "0132", 0, -PF_EMEMBER_FOREIGN, "stranger.img", "77777777-7777", "not one of the 3 members", "leave it out");
}
END_TEST

START_TEST(twice)
{
	REFUSED(world, "0121", 0, -PF_EMEMBER_TWICE, "b.img and b.img are both member 2 of 3", "name it once");
	simdisk_copy_from(simdisk_new(world, "copy.img", 0), simworld_disk(world, 0));
	REFUSED(world, "0123", PF_SET_WRITE, -PF_EMEMBER_TWICE, "a.img and copy.img are both member 1", "leave the copy out");
}
END_TEST

START_TEST(truncated)
{
	struct simdisk *disk = simworld_disk(world, 2);
	simdisk_resize(disk, sizes[2] * BLOCK - 1);
	REFUSED(world, "012", PF_SET_WRITE, -PF_EMEMBER_TRUNCATED, "c.img: truncated", "had 78.1 MiB (81924096 bytes)",
		"made the file smaller");
	simdisk_set_kind(disk, PF_IO_BLOCK_DEVICE);
	REFUSED(world, "012", 0, -PF_EMEMBER_TRUNCATED, "made the partition smaller");
	simdisk_resize(disk, 2 << 20); /* only ring A is left */
	REFUSED(world, "012", 0, -PF_EMEMBER_TRUNCATED, "now it has 2.0 MiB");
	simdisk_resize(disk, 300 << 10); /* not even all of that */
	REFUSED(world, "012", PF_SET_REPAIR, -PF_EMEMBER_TRUNCATED, "c.img");
}
END_TEST

START_TEST(stale)
{
	struct simworld *backup = simworld_copy(world);
	for (unsigned i = 0; i < 4; i++)
		checkpoint(world, 6, 6);
	simdisk_copy_from(simworld_disk(world, 1), simworld_disk(backup, 1));
	REFUSED(world, "012", PF_SET_WRITE, -PF_EMEMBER_STALE, "b.img: member 2 of pool \"sample\"", "is older than the pool",
		"last written on 2023-11-14 22:13", "c.img on 2023-11-14 22:13", "restored from a backup", "fsck.poolfs -y");
	struct pf_set *set;
	must_open(world, "012", PF_SET_WRITE | PF_SET_REPAIR, &set);
	ck_assert(!set->members[0].stale && set->members[1].stale && !set->members[2].stale);
	pf_set_close(set);
	/* over mounts too */
	new_epoch(102);
	checkpoint(world, 4, 4);
	checkpoint(world, 4, 4);
	REFUSED(world, "012", 0, -PF_EMEMBER_STALE, "b.img");
	/* a data member that has not changed since is as good as the original */
	simdisk_copy_from(simworld_disk(world, 0), simworld_disk(backup, 0));
	REFUSED(world, "012", 0, -PF_EMEMBER_STALE, "b.img");
	simworld_free(backup);
}
END_TEST

START_TEST(stale_from_before_the_first_mount)
{
	struct simworld *w = make_pool(0xc7);
	struct simworld *backup = simworld_copy(w);
	new_epoch(301);
	for (unsigned i = 0; i < 4; i++)
		checkpoint(w, 7, 7);
	simdisk_copy_from(simworld_disk(w, 0), simworld_disk(backup, 0));
	REFUSED(w, "012", 0, -PF_EMEMBER_STALE, "a.img");
	simworld_free(backup);
	simworld_free(w);
}
END_TEST

START_TEST(diverged)
{
	/* a clone of the whole pool was mounted and used, then the original; members of both are given */
	struct simworld *clone = simworld_copy(world);
	struct pf_super before = cur;
	new_epoch(500);
	checkpoint(clone, 0, 6);
	checkpoint(clone, 7, 7);
	checkpoint(clone, 7, 7);
	cur = before;
	new_epoch(600);
	for (unsigned i = 0; i < 8; i++)
		checkpoint(world, 7, 7);
	struct simworld *mixed = simworld_copy(world);
	simdisk_copy_from(simworld_disk(mixed, 1), simworld_disk(clone, 1));
	REFUSED(mixed, "012", PF_SET_WRITE, -PF_EMEMBER_DIVERGED, "b.img: member 2", "used apart from the others", "a.img",
		"last used together");
	struct pf_set *set;
	must_open(mixed, "012", PF_SET_WRITE | PF_SET_REPAIR, &set);
	ck_assert(set->members[1].stale);
	pf_set_close(set);
	simworld_free(mixed);

	/* the other way round: the clone has the higher generation now */
	for (unsigned i = 0; i < 20; i++) {
		cur.epochs[0].id = 500;
		checkpoint(clone, 7, 7);
	}
	mixed = simworld_copy(clone);
	simdisk_copy_from(simworld_disk(mixed, 1), simworld_disk(world, 1));
	REFUSED(mixed, "012", 0, -PF_EMEMBER_DIVERGED, "b.img: member 2", "a.img on");
	simworld_free(mixed);
	simworld_free(clone);
}
END_TEST

/* The root that the winner names may still be in its slot on a member that has gone on elsewhere: its blocks may have been
 * reused there all the same. */
START_TEST(diverged_though_its_root_verifies)
{
	struct simworld *clone = simworld_copy(world);
	struct pf_super before = cur;
	new_epoch(500);
	checkpoint(clone, 1, 7);
	cur = before;
	new_epoch(600);
	for (unsigned i = 0; i < 3; i++)
		checkpoint(world, 6, 6);
	simdisk_copy_from(simworld_disk(world, 0), simworld_disk(clone, 0));
	REFUSED(world, "012", 0, -PF_EMEMBER_DIVERGED, "a.img");
	simworld_free(clone);
}
END_TEST

/* It has seen a checkpoint of an epoch of which the others know an earlier end. */
START_TEST(diverged_ahead_in_a_common_epoch)
{
	struct simworld *ahead = simworld_copy(world);
	struct pf_super before = cur;
	checkpoint(ahead, 2, 2);
	cur = before;
	new_epoch(600);
	for (unsigned i = 0; i < 3; i++)
		checkpoint(world, 4, 4);
	simdisk_copy_from(simworld_disk(world, 1), simworld_disk(ahead, 1));
	REFUSED(world, "012", 0, -PF_EMEMBER_DIVERGED, "b.img");
	simworld_free(ahead);
}
END_TEST

START_TEST(equal_generations_of_two_histories)
{
	struct simworld *clone = simworld_copy(world);
	struct pf_super before = cur;
	new_epoch(500);
	checkpoint(clone, 6, 6);
	cur = before;
	new_epoch(600);
	checkpoint(world, 6, 6);
	simdisk_copy_from(simworld_disk(world, 1), simworld_disk(clone, 1));
	REFUSED(world, "012", 0, -PF_EMEMBER_DIVERGED, ".img");
	REFUSED(world, "210", 0, -PF_EMEMBER_DIVERGED, ".img");
	simworld_free(clone);
}
END_TEST

START_TEST(a_damaged_root_is_not_staleness)
{
	/* its superblock names the same root as the winner's: space/ will say that the table is damaged */
	struct pf_geometry geo = geometry(2);
	simdisk_flip_bit(simworld_disk(world, 2), (geo.root_block + cur.members[2].root_slot) * BLOCK + 9, 0);
	check_opens("012");
}
END_TEST

START_TEST(table_root_unreadable)
{
	checkpoint(world, 7, 4); /* so the roots of the others have to be looked at */
	struct pf_geometry geo = geometry(1);
	struct sim_fault fault = { .disk = simworld_disk(world, 1), .ops = SIM_READ, .from_bytes = geo.root_block * BLOCK,
				   .to_bytes = geo.tables_block * BLOCK };
	simworld_add_fault(world, &fault);
	REFUSED(world, "012", 0, -EIO, "b.img: its group table cannot be read");
	struct pf_set *set;
	must_open(world, "012", PF_SET_REPAIR, &set);
	ck_assert(set->members[1].stale);
	pf_set_close(set);
}
END_TEST

START_TEST(unknown_features)
{
	struct pf_set *set;
	cur.features.compat |= UINT64_C(1) << 44;
	checkpoint(world, 0, 6);
	check_opens("012");
	cur.features.ro_compat |= UINT64_C(1) << 33;
	checkpoint(world, 0, 6);
	REFUSED(world, "012", PF_SET_WRITE, -PF_EFEATURE, "b.img: pool \"sample\"", "can only read", "ro-compat bit 33",
		"mount it with -o ro");
	must_open(world, "012", 0, &set);
	pf_set_close(set);
	cur.features.incompat |= UINT64_C(5) << 40;
	cur.version = 8;
	checkpoint(world, 0, 4);
	REFUSED(world, "012", 0, -PF_EFEATURE, "c.img", "format version 8", "incompat bits 40, 42", "use a newer poolfs");
	REFUSED(world, "012", PF_SET_REPAIR, -PF_EFEATURE, "incompat bits 40, 42");
}
END_TEST

START_TEST(read_only_member)
{
	struct pf_set *set;
	REFUSED(world, "0R12", PF_SET_WRITE, -EROFS, "b.img: opened read-only", "mount with -o ro");
	must_open(world, "0R12", 0, &set);
	pf_set_close(set);
}
END_TEST

START_TEST(labels_do_not_reach_the_terminal)
{
	strcpy(cur.label, "a\x1b[2Jb\nc");
	checkpoint(world, 0, 6);
	REFUSED(world, "12", 0, -PF_EMEMBER_MISSING, "pool \"a?[2Jb?c\"");
	cur.label[0] = 0;
	memset(cur.label, 0, sizeof(cur.label));
	checkpoint(world, 0, 6);
	REFUSED(world, "12", 0, -PF_EMEMBER_MISSING, "pool a5a5a5a5-a5a5-a5a5-a5a5-a5a5a5a5a5a5:");
}
END_TEST

/* -- using a set ---------------------------------------------------------------------------------------------------- */
START_TEST(writing_superblocks)
{
	struct pf_set *set;
	uint32_t failed = 99;
	must_open(world, "012", PF_SET_WRITE, &set);
	struct pf_super super = set->super;
	super.generation++;
	ck_assert_int_eq(pf_set_write_super(set, &super, 7, &failed), 0);
	ck_assert_uint_eq(failed, 0);
	ck_assert_uint_eq(set->members[0].super_generation, super.generation);
	ck_assert_uint_eq(simdisk_count(simworld_disk(world, 0), SIM_WRITE), 2);

	/* flushed are those that were written, once */
	super.generation++;
	ck_assert_int_eq(pf_set_write_super(set, &super, 2, &failed), 0);
	ck_assert_int_eq(pf_set_flush(set, 7, &failed), 0);
	ck_assert_int_eq(pf_set_flush(set, 7, &failed), 0);
	for (unsigned id = 0; id < NR; id++)
		ck_assert_uint_eq(simdisk_count(simworld_disk(world, id), SIM_FLUSH), 1);
	ck_assert_int_eq(pf_set_write_super(set, &super, 4, &failed), 0);
	ck_assert_int_eq(pf_set_flush(set, 3, NULL), 0);
	ck_assert_uint_eq(simdisk_count(simworld_disk(world, 2), SIM_FLUSH), 1);

	/* one ring fails: good enough; both fail: the member does */
	struct sim_fault one = { .disk = simworld_disk(world, 1), .ops = SIM_WRITE, .count = 1 };
	simworld_add_fault(world, &one);
	super.generation++;
	ck_assert_int_eq(pf_set_write_super(set, &super, 7, &failed), 0);
	ck_assert_uint_eq(failed, 0);
	ck_assert_ptr_nonnull(strstr(logged, "b.img: the first copy of the superblock could not be written"));
	struct sim_fault all = { .disk = simworld_disk(world, 1), .ops = SIM_WRITE, .err = -ENOSPC };
	simworld_add_fault(world, &all);
	super.generation++;
	ck_assert_int_eq(pf_set_write_super(set, &super, 7, &failed), -ENOSPC);
	ck_assert_uint_eq(failed, 2);
	ck_assert_uint_eq(set->members[1].super_generation, super.generation - 1);
	simworld_clear_faults(world);

	struct sim_fault no_flush = { .disk = simworld_disk(world, 2), .ops = SIM_FLUSH, .count = 1 };
	simworld_add_fault(world, &no_flush);
	ck_assert_int_eq(pf_set_flush(set, 7, &failed), -EIO);
	ck_assert_uint_eq(failed, 4);
	/* what a failed flush left is never taken for durable, though nothing was written since */
	ck_assert_int_eq(pf_set_flush(set, 7, &failed), -EIO);
	ck_assert_uint_eq(failed, 4);
	pf_set_close(set);
	cur.generation = super.generation;
	must_open(world, "012", 0, &set);
	pf_set_close(set);
}
END_TEST

START_TEST(blocks_by_address)
{
	struct pf_set *set;
	must_open(world, "012", PF_SET_WRITE, &set);
	const struct pf_geometry *geo = &set->members[2].geo;
	pf_addr a = pf_addr_make(2, geo->data_start);
	memset(block, 0x42, 2 * BLOCK);
	ck_assert_int_eq(pf_set_write(set, a, block, 2), 0);
	memset(block, 0, 2 * BLOCK);
	ck_assert_int_eq(pf_set_read(set, a, block, 2), 0);
	ck_assert_int_eq(block[2 * BLOCK - 1], 0x42);
	uint8_t byte;
	simdisk_peek(simworld_disk(world, 2), geo->data_start * BLOCK, &byte, 1);
	ck_assert_int_eq(byte, 0x42);

	struct pf_aio_req req;
	pf_set_req(set, &req, PF_AIO_READ, a, block, 2);
	ck_assert_uint_eq(req.off_bytes, geo->data_start * BLOCK);
	ck_assert_uint_eq(req.len_bytes, 2 * BLOCK);
	ck_assert_int_eq(pf_aio_run(set->aio, &req, 1), 0);

	ck_assert(pf_set_addr_valid(set, a, 1));
	ck_assert(pf_set_addr_valid(set, a, geo->data_end - geo->data_start));
	ck_assert(!pf_set_addr_valid(set, a, geo->data_end - geo->data_start + 1));
	ck_assert(!pf_set_addr_valid(set, a, UINT64_MAX));
	ck_assert(!pf_set_addr_valid(set, a - 1, 1));
	ck_assert(!pf_set_addr_valid(set, pf_addr_make(3, geo->data_start), 1));
	ck_assert(!pf_set_addr_valid(set, a | UINT64_C(1) << 52, 1));
	ck_assert(!pf_set_addr_valid(set, 0, 1));
	ck_assert_int_eq(pf_set_read(set, pf_addr_make(3, geo->data_start), block, 1), -EIO);
	ck_assert_int_eq(pf_set_read(set, pf_addr_make(2, sizes[2]), block, 1), -EIO);
	ck_assert_int_eq(pf_set_write(set, pf_addr_make(2, sizes[2] - 1), block, 2), -EIO);
	ck_assert_int_eq(pf_set_read(set, UINT64_MAX, block, 1), -EIO);
	pf_set_close(set);
}
END_TEST

START_TEST(new_sets)
{
	struct pf_set *set;
	struct pf_io *ios[NR];
	simworld_open(world, false, ios);
	ck_assert_int_eq(pf_set_new(ios, NR, &env, &set), 0);
	ck_assert_uint_eq(set->nr, NR);
	ck_assert_uint_eq(set->members[2].geo.size_blocks, sizes[2]);
	ck_assert_uint_eq(set->members[2].geo.log_blocks, pf_geometry_log_blocks(sizes[2]));
	ck_assert(!set->read_only);
	pf_set_close(set);
	simdisk_resize(simworld_disk(world, 1), 4095 * BLOCK);
	simworld_open(world, false, ios);
	ck_assert_int_eq(pf_set_new(ios, NR, &env, &set), -PF_EMEMBER_SMALL);
	ck_assert_ptr_null(set);
	pf_set_close(NULL);
}
END_TEST

/* -- by paths ------------------------------------------------------------------------------------------------------- */
static char dir[] = "/tmp/test_set.XXXXXX";
static char paths[NR][64];

static void save_pool(void)
{
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	for (unsigned i = 0; i < NR; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%u.img", dir, i);
		ck_assert_int_eq(simdisk_save(simworld_disk(world, i), paths[i]), 0);
	}
}

static void remove_pool(void)
{
	char command[64];
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static int open_paths(const char *a, const char *b, const char *c, unsigned flags, struct pf_set **set)
{
	memset(&diag, 0, sizeof(diag));
	return pf_set_open((const char *const[]){ a, b, c }, NR, flags, 0, &env, set, &diag);
}

START_TEST(by_paths)
{
	struct pf_set *set, *second;
	save_pool();
	ck_assert_msg(open_paths(paths[2], paths[0], paths[1], PF_SET_WRITE, &set) == 0, "%s", diag.text);
	ck_assert_str_eq(set->members[1].io->name, paths[1]);
	ck_assert_int_eq(open_paths(paths[2], paths[0], paths[1], PF_SET_WRITE, &second), -PF_EMEMBER_BUSY);
	ck_assert_int_eq(open_paths(paths[2], paths[0], paths[1], 0, &second), -PF_EMEMBER_BUSY);
	ck_assert_ptr_nonnull(strstr(diag.text, "in use"));
	ck_assert_int_eq(open_paths(paths[2], paths[0], paths[1], PF_SET_UNLOCKED, &second), 0);
	pf_set_close(second);
	pf_set_close(set);
	ck_assert_int_eq(open_paths(paths[0], paths[1], paths[2], PF_SET_WRITE, &set), 0);
	pf_set_close(set);

	/* one file under two names */
	char other[80];
	snprintf(other, sizeof(other), "%s/link", dir);
	ck_assert_int_eq(symlink(paths[0], other), 0);
	ck_assert_int_eq(open_paths(paths[0], paths[1], other, PF_SET_WRITE, &set), -PF_EMEMBER_TWICE);
	ck_assert_ptr_nonnull(strstr(diag.text, "are the same file; name each member once"));
	snprintf(other, sizeof(other), "%s/none", dir);
	ck_assert_int_eq(open_paths(paths[0], paths[1], other, 0, &set), -ENOENT);
	ck_assert_ptr_nonnull(strstr(diag.text, "no such member"));
	ck_assert_ptr_null(set);
	ck_assert_int_eq(pf_set_open(NULL, 0, 0, 0, &env, &set, NULL), -EINVAL);
	/* the locks of the members that were opened before the refusal are gone */
	ck_assert_int_eq(open_paths(paths[0], paths[1], paths[2], PF_SET_WRITE, &set), 0);
	pf_set_close(set);
	remove_pool();
}
END_TEST

START_TEST(scanning)
{
	struct pf_scan_entry entry;
	struct pf_scan_list list = { 0 };
	char other[80];
	save_pool();
	ck_assert_int_eq(pf_scan_path(paths[1], &env, &entry, &diag), 0);
	ck_assert_mem_eq(entry.pool_uuid, cur.pool_uuid, 16);
	ck_assert_mem_eq(entry.member_uuid, cur.members[1].uuid, 16);
	ck_assert_str_eq(entry.label, "sample");
	ck_assert_uint_eq(entry.member_id, 1);
	ck_assert_uint_eq(entry.nr_members, NR);
	ck_assert_uint_eq(entry.generation, cur.generation);
	ck_assert_uint_eq(entry.version, 5);
	ck_assert_uint_eq(entry.size_bytes, sizes[1] * BLOCK + 100);
	ck_assert(entry.usable);

	/* a locked member can be looked at */
	struct pf_set *set;
	ck_assert_int_eq(open_paths(paths[0], paths[1], paths[2], PF_SET_WRITE, &set), 0);
	ck_assert_int_eq(pf_scan_path(paths[1], &env, &entry, &diag), 0);
	pf_set_close(set);

	/* among other things, and another pool */
	snprintf(other, sizeof(other), "%s/x.bin", dir);
	int fd = open(other, O_CREAT | O_RDWR, 0600);
	ck_assert_int_eq(ftruncate(fd, 32 << 20), 0);
	close(fd);
	ck_assert_int_eq(pf_scan_path(other, &env, &entry, &diag), -PF_EMEMBER_NONE);
	ck_assert_ptr_nonnull(strstr(diag.text, other));
	snprintf(other, sizeof(other), "%s/folder", dir);
	ck_assert_int_eq(symlink(dir, other), 0);
	snprintf(other, sizeof(other), "%s/z.img", dir);
	struct pf_super mine = cur;
	struct simworld *foreign = make_pool(0xb6);
	ck_assert_int_eq(simdisk_save(simworld_disk(foreign, 0), other), 0);
	simworld_free(foreign);
	ck_assert_int_eq(pf_scan_dir(dir, mine.pool_uuid, &env, &list, &diag), 0);
	ck_assert_uint_eq(list.nr, NR);
	for (unsigned i = 0; i < NR; i++) {
		ck_assert_str_eq(list.entries[i].path, paths[i]);
		ck_assert_uint_eq(list.entries[i].member_id, i);
	}
	pf_scan_free(&list);
	ck_assert_uint_eq(list.nr, 0);
	ck_assert_int_eq(pf_scan_dir(dir, NULL, &env, &list, NULL), 0);
	ck_assert_uint_eq(list.nr, NR + 1);
	ck_assert_str_eq(list.entries[NR].path, other);
	pf_scan_free(&list);

	memset(&diag, 0, sizeof(diag));
	snprintf(other, sizeof(other), "%s/none", dir);
	ck_assert_int_eq(pf_scan_dir(other, NULL, &env, &list, &diag), -ENOENT);
	ck_assert_ptr_nonnull(strstr(diag.text, "cannot be searched"));
	/* no device has this pool; none may be harmed, hang, or make it fail */
	ck_assert_int_eq(pf_scan_devices(mine.pool_uuid, &env, &list, &diag), 0);
	ck_assert_uint_eq(list.nr, 0);
	pf_scan_free(&list);
	remove_pool();
}
END_TEST

static TCase *add_case(Suite *s, const char *name)
{
	TCase *tc = tcase_create(name);
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	suite_add_tcase(s, tc);
	return tc;
}

int main(void)
{
	Suite *s = suite_create("set");
	TCase *tc = add_case(s, "good");
	tcase_add_test(tc, any_order);
	tcase_add_test(tc, after_a_crash_between_superblocks);
	tcase_add_test(tc, data_members_lag_behind);
	tcase_add_test(tc, a_grown_file);
	tc = add_case(s, "damaged");
	tcase_add_test(tc, torn_superblocks);
	tcase_add_test(tc, torn_on_all_members);
	tcase_add_test(tc, whole_ring_damaged);
	tcase_add_test(tc, unreadable_superblocks);
	tcase_add_test(tc, no_good_superblock_at_all);
	tcase_add_test(tc, misplaced_superblocks_do_not_count);
	tcase_add_test(tc, a_damaged_root_is_not_staleness);
	tcase_add_test(tc, table_root_unreadable);
	tc = add_case(s, "refused");
	tcase_add_test(tc, missing);
	tcase_add_test(tc, not_a_member);
	tcase_add_test(tc, two_pools);
	tcase_add_test(tc, twice);
	tcase_add_test(tc, truncated);
	tcase_add_test(tc, stale);
	tcase_add_test(tc, stale_from_before_the_first_mount);
	tcase_add_test(tc, diverged);
	tcase_add_test(tc, diverged_though_its_root_verifies);
	tcase_add_test(tc, diverged_ahead_in_a_common_epoch);
	tcase_add_test(tc, equal_generations_of_two_histories);
	tcase_add_test(tc, unknown_features);
	tcase_add_test(tc, read_only_member);
	tcase_add_test(tc, labels_do_not_reach_the_terminal);
	tc = add_case(s, "used");
	tcase_add_test(tc, writing_superblocks);
	tcase_add_test(tc, blocks_by_address);
	tcase_add_test(tc, new_sets);
	tcase_add_test(tc, by_paths);
	tcase_add_test(tc, scanning);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
