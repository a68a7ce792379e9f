/* SPDX-License-Identifier: MIT
 *
 * Pools with two copies of each tree node: whatever happens to the copies on one member, everything can be read, it is told, and fsck
 * -p mends it; with both copies damaged an error is the answer, never a wrong byte. And the upgrade that makes the second copies.
 */
#include "images/poke.h"
#include "unit/check_util.h"

#include "pool/pool_int.h"

#define MAX_NODES 512u

static struct pf_ptr nodes[MAX_NODES]; /* of the committed tree, root first */
static unsigned nr_nodes;

static struct simdisk *disk_of(pf_addr addr)
{
	return simworld_disk(sp->world, pf_addr_member(addr));
}

static void flip(pf_addr addr, unsigned byte)
{
	simdisk_flip_bit(disk_of(addr), pf_addr_block(addr) * PF_BLOCK_SIZE + byte, byte % 8);
}

static void find_nodes_below(struct pf_ptr ptr, unsigned level)
{
	uint8_t *node = malloc(PF_NODE_SIZE);
	const struct pf_disk_node_head *head = (const void *)node;
	const struct pf_disk_child *children = (const void *)(head + 1);
	simdisk_peek(disk_of(ptr.addr[0]), pf_addr_block(ptr.addr[0]) * PF_BLOCK_SIZE, node, PF_NODE_SIZE);
	ck_assert_uint_lt(nr_nodes, MAX_NODES);
	nodes[nr_nodes++] = ptr;
	for (unsigned i = 0; level && i < pf_get16(head->nr_items); i++)
		find_nodes_below(pf_ptr_get(children[i].ptr), level - 1);
	free(node);
}

/* The pool is closed. */
static void find_nodes(void)
{
	struct pf_super super, newest = { .generation = 0 };
	for (unsigned d = 0; d < simworld_nr_disks(sp->world); d++) {
		struct pf_io *io = simdisk_open(simworld_disk(sp->world, d), true);
		if (!pf_set_read_super(io, &super, NULL) && super.generation > newest.generation)
			newest = super;
		pf_io_close(io);
	}
	nr_nodes = 0;
	find_nodes_below(newest.root, newest.root_level);
}

static unsigned nr_single(void)
{
	unsigned nr = 0;
	find_nodes();
	for (unsigned i = 0; i < nr_nodes; i++)
		nr += !nodes[i].addr[1];
	return nr;
}

/* Something of everything: @nr_members in three metadata members if @all_meta. */
static void setup_six(unsigned version, unsigned nr_members, uint32_t meta_mask)
{
	struct simpool_config config = { .version = version,
					 .nr_members = nr_members,
					 .size_bytes = 32 * MIB,
					 .meta_mask = meta_mask,
					 .cache_bytes = 256 * KIB,
					 .seed = 1 };
	setup_config(&config);
	populate();
	find_nodes();
	ck_assert_uint_gt(nr_nodes, 5);
}

static void setup_copies(void)
{
	setup_six(6, 2, 0);
}

static void open_pool(bool read_only)
{
	char why[1200] = "";
	ck_assert_msg(!simpool_open(sp, read_only, why, sizeof(why)), "open: %s", why);
}

static void close_pool(void)
{
	char why[1200] = "";
	ck_assert_msg(!simpool_close(sp, why, sizeof(why)), "close: %s", why);
}

/* -- reading everything ------------------------------------------------------------------------------------------- */
static unsigned nr_failed; /* calls that answered that something is damaged */

static bool good(int64_t ret)
{
	ck_assert_msg(ret >= 0 || ret == -EIO || pf_is_damage((int)ret), "the answer is %s", pf_strerror((int)ret));
	nr_failed += ret < 0;
	return ret >= 0;
}

static void see_file(uint64_t ino, uint64_t off, size_t len, uint64_t seed)
{
	int64_t n;
	uint8_t *buf = get(ino, off, len, &n), *expected = pattern(seed, len);
	if (good(n)) {
		ck_assert_int_eq(n, (int64_t)len);
		ck_assert(!memcmp(buf, expected, len));
	}
	free(buf);
	free(expected);
}

static void see_name(uint64_t dir, const char *name, uint64_t ino)
{
	struct pf_attr a;
	if (!good(pf_lookup(POOL, dir, name, strlen(name), &a)))
		return;
	ck_assert_uint_eq(a.ino, ino);
	pf_forget(POOL, a.ino, 1);
}

/* Each answer is right or an error. */
static void see_everything(void)
{
	char value[9000], target[4097];
	nr_failed = 0;
	see_name(PF_ROOT_INO, "file", in.file);
	see_name(PF_ROOT_INO, "big", in.big);
	see_name(PF_ROOT_INO, "sparse", in.sparse);
	see_name(PF_ROOT_INO, "dir", in.dir);
	see_name(PF_ROOT_INO, "hard", in.deep);
	see_name(in.dir, "sub", in.sub);
	see_name(in.dir, "short", in.link);
	see_name(in.dir, "long", in.longlink);
	see_name(in.sub, "deep", in.deep);
	for (unsigned i = 0; i < 100; i++) {
		char name[16];
		struct pf_attr a;
		snprintf(name, sizeof(name), "n%u", i);
		if (!good(pf_lookup(POOL, in.sub, name, strlen(name), &a)))
			continue;
		ck_assert_uint_eq(a.size_bytes, i % 4 ? 0 : 1000);
		if (i % 4 == 0)
			see_file(a.ino, 0, 1000, a.ino);
		pf_forget(POOL, a.ino, 1);
	}
	see_file(in.file, 0, 3 * MIB + 100, in.file);
	for (unsigned i = 0; i < 8; i++)
		see_file(in.big, i * MIB, MIB, in.big);
	see_file(in.sparse, 64 * KIB, 4096, in.sparse);
	see_file(in.deep, 0, 8192, in.deep);
	if (good(pf_getxattr(POOL, in.file, "user.small", value, sizeof(value))))
		ck_assert(value[0] == '1');
	if (good(pf_getxattr(POOL, in.file, "user.large", value, sizeof(value))))
		ck_assert(value[8999] == 'v');
	if (good(pf_readlink(POOL, in.longlink, target, sizeof(target))))
		ck_assert(target[3999] == 'x');
}

/* From a fresh start, with nothing in memory. */
static void see_all_afresh(bool read_only)
{
	open_pool(read_only);
	see_everything();
	close_pool();
}

/* fsck -n names so many copies; fsck -p repairs them and leaves two good copies of all. */
static void ck_mended(unsigned nr)
{
	const struct found *f = fsck(false);
	ck_ids(f, "PF0213");
	ck_assert_uint_eq(f->nr, nr);
	only_safe = true;
	f = fsck(true);
	only_safe = false;
	ck_assert_msg(!f->err && !f->result.nr_left && f->result.nr_repaired == nr, "%s: %ju left, %ju repaired", f->diag.text,
		      (uintmax_t)f->result.nr_left, (uintmax_t)f->result.nr_repaired);
	ck_ids(fsck(false), "");
	ck_assert_uint_eq(last.result.nr_single_nodes, 0);
	ck_assert_uint_eq(nr_single(), 0);
	see_all_afresh(false);
	ck_assert_uint_eq(nr_failed, 0);
	ck_ids(fsck(false), "");
}

/* -- scrub ---------------------------------------------------------------------------------------------------------- */
static unsigned nr_with_copy, nr_without;

static void scrub_error(void *arg, const struct pf_scrub_error *e)
{
	(void)arg;
	ck_assert(!e->path);
	*(e->good_copy ? &nr_with_copy : &nr_without) += 1;
}

static void scrub(void)
{
	struct pf_scrub_options options = { 0 };
	struct pf_scrub_sink sink = { .error = scrub_error };
	struct pf_scrub_result result;
	nr_with_copy = nr_without = 0;
	open_pool(true);
	ck_ok(pf_scrub(POOL, &options, &sink, &result));
	close_pool();
	ck_assert_uint_eq(result.nr_errors, nr_with_copy + nr_without);
	ck_assert(nr_without || result.data_bytes > 11 * MIB); /* from both copies of a leaf: nothing is missed */
}

/* -- one member's copies ------------------------------------------------------------------------------------------- */
static const struct {
	unsigned nr_members;
	uint32_t meta_mask;
} shapes[] = { { 2, 0 }, { 3, 0 }, { 3, 7 } };

START_TEST(all_copies_of_one_member_are_damaged)
{
	unsigned copy = (unsigned)_i % 2, shape = (unsigned)_i / 2;
	setup_six(6, shapes[shape].nr_members, shapes[shape].meta_mask);
	unsigned nr = nr_nodes;
	ck_ids(fsck(false), "");
	scrub();
	ck_assert_uint_eq(nr_with_copy + nr_without, 0);
	for (unsigned i = 0; i < nr; i++)
		flip(nodes[i].addr[copy], (i * 997 + 13) % PF_NODE_SIZE);
	unsigned nr_warnings = sp->env.nr_messages[PF_LOG_WARNING];
	open_pool(true);
	see_everything();
	ck_assert_uint_eq(nr_failed, 0);
	/* the first copies are read, so damage of the second ones is met by fsck and scrub only */
	const struct pf_member *m = &pf_pool_set(POOL)->members[pf_addr_member(nodes[0].addr[copy])];
	uint64_t nr_errors = atomic_load(&m->io->nr_errors);
	unsigned nr_told = sp->env.nr_messages[PF_LOG_WARNING] - nr_warnings;
	ck_assert_uint_eq(nr_errors, nr_told);
	ck_assert(copy ? nr_told == 0 : nr_told > nr / 2 && nr_told <= nr);
	ck_assert_uint_eq(sp->env.nr_messages[PF_LOG_ERROR], 0);
	close_pool();
	scrub();
	ck_assert_uint_eq(nr_with_copy, nr);
	ck_assert_uint_eq(nr_without, 0);
	ck_mended(nr);
	teardown_world();
}
END_TEST

/* Each by itself, byte by byte through the node. */
START_TEST(each_copy_by_itself)
{
	for (unsigned i = 0; i < 2 * nr_nodes; i++) {
		pf_addr addr = nodes[i / 2].addr[i % 2];
		unsigned byte = (unsigned)_i * 3001 + i;
		flip(addr, byte);
		const struct found *f = fsck(false);
		ck_ids(f, "PF0213");
		ck_assert_uint_eq(f->nr, 1);
		ck_assert_msg(strstr(f->messages[0], pf_addr_member(addr) ? "member1" : "member0") == strstr(f->messages[0], "member"),
			      "%s", f->messages[0]);
		flip(addr, byte);
	}
	flip(nodes[nr_nodes - 1].addr[1], 77);
	ck_mended(1);
}
END_TEST

/* A lost write: what was there before verifies, but is another node. */
START_TEST(a_copy_is_another_node)
{
	uint8_t bytes[PF_NODE_SIZE];
	for (unsigned i = 1; i < nr_nodes; i++) {
		pf_addr from = nodes[i - 1].addr[_i], to = nodes[i].addr[_i];
		simdisk_peek(disk_of(from), pf_addr_block(from) * PF_BLOCK_SIZE, bytes, sizeof(bytes));
		simdisk_poke(disk_of(to), pf_addr_block(to) * PF_BLOCK_SIZE, bytes, sizeof(bytes));
	}
	see_all_afresh(true);
	ck_assert_uint_eq(nr_failed, 0);
	ck_mended(nr_nodes - 1);
}
END_TEST

static void fail_reads(pf_addr addr)
{
	struct sim_fault fault = { .disk = disk_of(addr),
				   .ops = SIM_READ,
				   .from_bytes = pf_addr_block(addr) * PF_BLOCK_SIZE,
				   .to_bytes = (pf_addr_block(addr) + 1) * PF_BLOCK_SIZE };
	simworld_add_fault(sp->world, &fault);
}

START_TEST(reads_of_one_member_fail)
{
	unsigned copy = (unsigned)_i;
	for (unsigned i = 0; i < nr_nodes; i += 16) {
		unsigned nr = nr_nodes - i < 16 ? nr_nodes - i : 16;
		for (unsigned k = 0; k < nr; k++)
			fail_reads(nodes[i + k].addr[copy]);
		see_all_afresh(true);
		ck_assert_uint_eq(nr_failed, 0);
		scrub();
		ck_assert_uint_eq(nr_with_copy, nr);
		ck_assert_uint_eq(nr_without, 0);
		ck_ids(fsck(false), "PF0213");
		ck_assert_uint_eq(last.nr, nr);
		simworld_clear_faults(sp->world);
	}
	/* sectors that cannot be read any more: the copy goes elsewhere, and nobody has to read them again */
	fail_reads(nodes[1].addr[copy]);
	fail_reads(nodes[0].addr[copy]);
	ck_mended(2);
	simworld_clear_faults(sp->world);
}
END_TEST

/* Changes while copies are bad: they mend themselves as they are written again. */
START_TEST(working_on_damaged_copies)
{
	for (unsigned i = 0; i < nr_nodes; i++)
		flip(nodes[i].addr[i % 2], 100 + i);
	open_pool(false);
	for (unsigned i = 0; i < 100; i++) {
		char name[16];
		snprintf(name, sizeof(name), "n%u", i);
		if (i % 4)
			ck_ok(unlink_name(in.sub, name));
	}
	put_pattern(make_file(in.dir, "new"), 0, MIB);
	ck_ok(pf_pool_sync(POOL));
	close_pool();
	const struct found *f = fsck(false);
	ck_ids(f, "PF0213");
	ck_assert_uint_lt(f->nr, nr_nodes);
	f = fsck(true);
	ck_assert_uint_eq(f->result.nr_left, 0);
	ck_ids(fsck(false), "");
}
END_TEST

/* -- forged pointers: the checksums are right -------------------------------------------------------------------- */
static pf_addr old_second;

/* The second address of the root's first child. */
static void forge_second(pf_addr addr)
{
	struct poke *p = poke_open(sp->world);
	ck_assert_uint_eq(poke_super(p)->root_level, 1);
	struct le64 bytes = pf_le64(addr);
	old_second = nodes[1].addr[1];
	poke_node_bytes(p, PF_KEY_MIN, 1, sizeof(struct pf_disk_node_head) + offsetof(struct pf_disk_child, ptr.addr[1]), &bytes,
			sizeof(bytes));
	poke_close(p);
}

/* It leads nowhere: the first copy serves, and after a repair there are two again; nothing has been freed that was not there. */
START_TEST(second_address_outside)
{
	const pf_addr addrs[] = { pf_addr_make(1, 1), pf_addr_make(1, 8000), pf_addr_make(1, UINT64_C(1) << 47),
				  pf_addr_make(31, 1000), pf_addr_make(2, 1000) };
	forge_second(addrs[_i]);
	see_all_afresh(true);
	ck_assert_uint_eq(nr_failed, 0);
	scrub();
	ck_assert_uint_eq(nr_with_copy, 1);
	ck_ids(fsck(false), "PF0213 PF0306"); /* what the second copy took is nobody's */
	ck_assert_msg(!fsck(true)->result.nr_left, "left:%s", all_messages(&last));
	ck_ids(fsck(false), "");
	ck_assert_uint_eq(nr_single(), 0);
	see_all_afresh(false);
	ck_assert_uint_eq(nr_failed, 0);
	ck_ids(fsck(false), "");
}
END_TEST

/* Used, changed and freed as it is. */
START_TEST(working_with_a_second_address_outside)
{
	const pf_addr addrs[] = { pf_addr_make(1, 1), pf_addr_make(1, 8000), pf_addr_make(1, UINT64_C(1) << 47),
				  pf_addr_make(31, 1000), pf_addr_make(2, 1000) };
	forge_second(addrs[_i]);
	open_pool(false);
	put_pattern(make_file(PF_ROOT_INO, "new"), 0, MIB);
	for (unsigned i = 0; i < 100; i++) {
		char name[16];
		snprintf(name, sizeof(name), "n%u", i);
		ck_ok(unlink_name(in.sub, name));
	}
	settle();
	close_pool();
	ck_assert_msg(!fsck(true)->result.nr_left, "left:%s", all_messages(&last));
	ck_ids(fsck(false), "");
}
END_TEST

/* Two addresses on one member, or the same twice: no such pointer is ever written. */
START_TEST(both_addresses_on_one_member)
{
	pf_addr first = nodes[1].addr[0];
	forge_second(_i ? first : first + PF_NODE_BLOCKS);
	const struct found *f = fsck(false);
	ck_assert_msg(!f->err && has_id(f, "PF0201"), "found:%s", all_messages(f));
	char why[1200] = "";
	if (!simpool_open(sp, true, why, sizeof(why))) {
		see_everything();
		ck_assert_uint_gt(nr_failed, 0);
		close_pool();
	}
	forge_second(old_second);
	ck_ids(fsck(false), "");
}
END_TEST

/* -- both ------------------------------------------------------------------------------------------------------------ */
START_TEST(both_copies_are_damaged)
{
	unsigned nr_met = 0;
	for (unsigned i = 0; i < nr_nodes; i++) {
		flip(nodes[i].addr[0], 500 + i);
		flip(nodes[i].addr[1], 9000 + i);
		char why[1200] = "";
		if (simpool_open(sp, true, why, sizeof(why))) {
			ck_assert_msg(strstr(why, "fsck.poolfs"), "%s", why);
			nr_met++;
		} else {
			see_everything();
			nr_met += nr_failed > 0;
			close_pool();
			scrub();
			ck_assert_uint_eq(nr_without, 2);
			ck_assert_uint_eq(nr_with_copy, 0);
		}
		const struct found *f = fsck(false);
		ck_assert_msg(!f->err && has_id(f, "PF0201"), "found:%s", all_messages(f));
		ck_assert(!has_id(f, "PF0213"));
		f = fsck(true);
		ck_assert_uint_gt(f->result.nr_left, 0);
		/* with one of them back, nothing has been lost */
		flip(nodes[i].addr[_i], _i ? 9000 + i : 500 + i);
		ck_assert_msg(!fsck(true)->result.nr_left, "left:%s", all_messages(&last));
		ck_ids(fsck(false), "");
		see_all_afresh(true);
		ck_assert_uint_eq(nr_failed, 0);
		find_nodes();
	}
	ck_assert_uint_gt(nr_met, nr_nodes / 2);
}
END_TEST

/* One member: as it always was. */
START_TEST(one_member_has_one_copy)
{
	setup_six(6, 1, 0);
	ck_assert_uint_eq(nr_single(), nr_nodes);
	ck_ids(fsck(false), "");
	ck_assert_uint_eq(last.result.nr_single_nodes, 0);
	flip(nodes[nr_nodes - 1].addr[0], 5000);
	ck_assert(has_id(fsck(false), "PF0201") && !has_id(&last, "PF0213"));
	scrub();
	ck_assert_uint_eq(nr_without, 1);
	flip(nodes[nr_nodes - 1].addr[0], 5000);
	teardown_world();
}
END_TEST

/* -- upgrade --------------------------------------------------------------------------------------------------------- */
static int upgrade(unsigned to, struct pf_diag *diag)
{
	memset(diag, 0, sizeof(*diag));
	return pf_pool_upgrade(POOL, to, diag);
}

START_TEST(upgraded_pools_have_two_copies)
{
	static const unsigned from[] = { 1, 3, 5, 5, 5, 5 };
	static const unsigned nr_members[] = { 2, 2, 1, 2, 3, 3 };
	struct pf_diag diag;
	setup_six(from[_i], nr_members[_i], _i == 5 ? 7 : 0);
	unsigned nr = nr_nodes;
	ck_assert_uint_eq(nr_single(), nr);
	open_pool(false);
	uint64_t before = avail_blocks();
	ck_ok(upgrade(6, &diag));
	ck_assert_uint_ge(avail_blocks(), before); /* nodes live in their share */
	ck_ok(upgrade(6, &diag)); /* nothing to do */
	/* what nodes may take is counted for two copies at once */
	ck_ok(pf_pool_sync(POOL));
	uint64_t room = pf_space_node_room(POOL->space), reserve = pf_space_node_reserve(POOL->space);
	remount();
	ck_assert_uint_eq(pf_space_node_room(POOL->space), room);
	ck_assert_uint_eq(pf_space_node_reserve(POOL->space), reserve);
	close_pool();
	ck_ids(fsck(false), "");
	ck_assert_uint_eq(nr_single(), nr_members[_i] == 1 ? nr : 0);
	ck_assert_uint_eq(nr_nodes, nr);
	see_all_afresh(false);
	ck_assert_uint_eq(nr_failed, 0);
	ck_ids(fsck(false), "");
	teardown_world();
}
END_TEST

/* The disk fails in the middle, at each write in turn; what is there is valid, and the next attempt completes it. */
START_TEST(an_interrupted_upgrade_goes_on)
{
	unsigned nr_partly = 0, nr_early = 0;
	setup_six(5, 2, 0);
	struct simworld *before = simworld_copy(sp->world);
	for (unsigned skip = (unsigned)_i; skip < 200; skip += 5) {
		struct pf_diag diag;
		struct sim_fault fault = { .ops = SIM_WRITE, .skip = skip };
		for (unsigned d = 0; d < 2; d++)
			simdisk_copy_from(simworld_disk(sp->world, d), simworld_disk(before, d));
		open_pool(false);
		simworld_add_fault(sp->world, &fault);
		int err = upgrade(6, &diag);
		simworld_clear_faults(sp->world);
		ck_assert(!err || diag.text[0]);
		simpool_abandon(sp);
		sp->torn_supers = sp->missing_supers = sp->single_nodes = true;
		char why[1200] = "";
		ck_assert_msg(!simpool_check(sp, why, sizeof(why)), "skip %u: %s", skip, why);
		bool some;
		struct pf_io *ios[2];
		struct pf_set *set;
		simworld_open(sp->world, true, ios);
		ck_ok(pf_set_open_ios(ios, 2, 0, &sp->env.env, &set, &diag));
		unsigned version = set->super.version;
		ck_ok(pf_pool_single_nodes(set, &some));
		pf_set_close(set);
		ck_assert(some == (version == 6 && nr_single() > 0));
		nr_early += version == 5;
		nr_partly += some;
		see_all_afresh(false);
		ck_assert_uint_eq(nr_failed, 0);
		open_pool(false);
		ck_ok(upgrade(6, &diag));
		close_pool();
		sp->torn_supers = sp->missing_supers = sp->single_nodes = false;
		ck_assert_msg(!simpool_check(sp, why, sizeof(why)), "skip %u: %s", skip, why);
		ck_assert_uint_eq(nr_single(), 0);
		if (!err)
			break;
	}
	ck_assert(_i || nr_early); /* the new version begins with the first superblock */
	ck_assert_uint_gt(nr_partly, 0);
	simworld_free(before);
	teardown_world();
}
END_TEST

/* Checked before anything is changed. */
START_TEST(no_room_for_the_copies)
{
	struct simpool_config config = {
		.version = 5, .nr_members = 2, .size_bytes = 64 * MIB, .last_bytes = 16 * MIB, .seed = 1, .cache_bytes = 16 * MIB
	};
	char why[1200] = "", name[300];
	struct pf_diag diag;
	setup_config(&config);
	memset(name, 'n', sizeof(name));
	name[255] = 0;
	/* more names than the small member's share has room for, then data on all that is left */
	struct pf_attr a;
	unsigned nr = 0;
	for (; nr < 12000; nr++) {
		snprintf(name + 245, 11, "%010u", nr);
		ck_ok(pf_create(POOL, PF_ROOT_INO, name, 255, S_IFREG | 0644, user, 0, 0, &a));
		pf_forget(POOL, a.ino, 1);
	}
	uint64_t f = make_file(PF_ROOT_INO, "f"), at = 0;
	uint8_t *p = pattern(1, 64 * KIB);
	while (pf_write(POOL, f, at, p, 64 * KIB, 0) == (int64_t)(64 * KIB))
		at += 64 * KIB;
	free(p);
	pf_forget(POOL, f, 1);
	remount();
	ck_err(upgrade(6, &diag), -ENOSPC);
	ck_assert_msg(strstr(diag.text, "member1") && strstr(diag.text, "stays 5"), "%s", diag.text);
	ck_assert_uint_eq(pf_pool_super(POOL)->version, 5);
	remount();
	ck_assert_uint_eq(pf_pool_super(POOL)->version, 5);
	ck_ok(unlink_name(PF_ROOT_INO, "f"));
	settle();
	remount();
	ck_ok(upgrade(6, &diag));
	remount();
	ck_assert_uint_eq(pf_pool_super(POOL)->version, 6);
	ck_assert_msg(!simpool_close(sp, why, sizeof(why)) && !simpool_check(sp, why, sizeof(why)), "%s", why);
	teardown_world();
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("check_copies");
	TCase *t = tcase_create("shapes");
	tcase_add_loop_test(t, all_copies_of_one_member_are_damaged, 0, 6);
	tcase_add_test(t, one_member_has_one_copy);
	tcase_set_timeout(t, 120);
	suite_add_tcase(s, t);
	t = tcase_create("two members");
	tcase_add_checked_fixture(t, setup_copies, teardown_world);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, each_copy_by_itself, 0, 4);
	tcase_add_loop_test(t, a_copy_is_another_node, 0, 2);
	tcase_add_loop_test(t, reads_of_one_member_fail, 0, 2);
	tcase_add_test(t, working_on_damaged_copies);
	tcase_add_loop_test(t, both_copies_are_damaged, 0, 2);
	tcase_add_loop_test(t, second_address_outside, 0, 5);
	tcase_add_loop_test(t, working_with_a_second_address_outside, 0, 5);
	tcase_add_loop_test(t, both_addresses_on_one_member, 0, 2);
	suite_add_tcase(s, t);
	t = tcase_create("upgrade");
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, upgraded_pools_have_two_copies, 0, 6);
	tcase_add_loop_test(t, an_interrupted_upgrade_goes_on, 0, 5);
	tcase_add_test(t, no_room_for_the_copies);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
