/* SPDX-License-Identifier: MIT
 * Large image files on a host with little room: making them, a host that gets full, and one that gets room again. */
#include "unit/posix_util.h"

#include "block/engine.h"
#include "ondisk/geometry.h"
#include "space/private.h"

#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)
#define BLOCKS(bytes) ((bytes) / PF_BLOCK_SIZE)

/* -- the host -------------------------------------------------------------------------------------------------------- */
/* A filesystem that holds all images: a block is allocated by a write or a request for it, and freed by a discard. */
static struct {
	uint64_t limit, used; /* blocks */
	uint8_t *bits[SIMPOOL_MAX];
	struct pf_io *ios[SIMPOOL_MAX];
	unsigned nr;
	uint64_t nr_refused;
	bool asks_nobody; /* cannot allocate but by a write, as some cannot */
} host;
static const struct pf_io_ops *sim_ops;

static uint8_t *bits_of(const struct pf_io *io)
{
	for (unsigned i = 0; i < host.nr; i++) {
		if (host.ios[i] == io)
			return host.bits[i];
	}
	ck_abort_msg("not one of the host's");
}

static int host_take(struct pf_io *io, uint64_t off, uint64_t len)
{
	uint8_t *bits = bits_of(io);
	for (uint64_t b = BLOCKS(off); b < BLOCKS(off + len); b++) {
		if (bits[b / 8] >> b % 8 & 1)
			continue;
		if (host.used == host.limit) {
			host.nr_refused++;
			return -ENOSPC;
		}
		bits[b / 8] |= (uint8_t)(1 << b % 8);
		host.used++;
	}
	return 0;
}

static int host_write(struct pf_io *io, uint64_t off, const void *buf, size_t len)
{
	int err = host_take(io, off, len);
	return err ? err : sim_ops->write(io, off, buf, len);
}

static int host_allocate(struct pf_io *io, uint64_t off, uint64_t len)
{
	return host.asks_nobody ? 0 : host_take(io, off, len);
}

static int host_discard(struct pf_io *io, uint64_t off, uint64_t len)
{
	uint8_t *bits = bits_of(io);
	for (uint64_t b = BLOCKS(off); b < BLOCKS(off + len); b++) {
		host.used -= bits[b / 8] >> b % 8 & 1;
		bits[b / 8] &= (uint8_t) ~(1 << b % 8);
	}
	return sim_ops->discard(io, off, len);
}

static void host_open(struct pf_io **ios)
{
	static struct pf_io_ops ops;
	simworld_open(sp->world, false, ios);
	sim_ops = ios[0]->ops;
	ops = *sim_ops;
	ops.write = host_write;
	ops.allocate = host_allocate;
	ops.discard = host_discard;
	host.nr = simworld_nr_disks(sp->world);
	for (unsigned i = 0; i < host.nr; i++) {
		ios[i]->ops = &ops;
		ios[i]->kind = PF_IO_FILE;
		ios[i]->sparse = true;
		host.ios[i] = ios[i];
		if (!host.bits[i])
			host.bits[i] = calloc(BLOCKS(ios[i]->size_bytes) / 8 + 1, 1);
	}
}

static int host_mkfs(unsigned version, unsigned nr_members, uint64_t size_bytes, uint64_t limit_bytes)
{
	struct simpool_config config = { .version = version, .nr_members = nr_members, .size_bytes = size_bytes, .seed = 1 };
	struct pf_mkfs_options options = { .version = version };
	struct pf_mkfs_report report;
	struct pf_io *ios[SIMPOOL_MAX];
	struct pf_diag diag;
	sp = simpool_bare(&config);
	memset(&host, 0, sizeof(host));
	host.limit = BLOCKS(limit_bytes);
	host_open(ios);
	return pf_pool_create(ios, host.nr, &options, &sp->env.env, false, &report, &diag);
}

static void host_mount_with(uint64_t cache_bytes)
{
	struct pf_io *ios[SIMPOOL_MAX];
	struct pf_diag diag = { "" };
	struct pf_pool_options options = { .cache_bytes = cache_bytes, .discard = PF_DISCARD_ALL };
	host_open(ios);
	int err = pf_pool_open_ios(ios, host.nr, &options, &sp->env.env, &sp->pool, &diag);
	ck_assert_msg(err == 0, "mount: %s: %s", pf_strerror(err), diag.text);
}

static void host_mount(void)
{
	host_mount_with(64 * MIB);
}

static void host_free(void)
{
	for (unsigned i = 0; i < SIMPOOL_MAX; i++)
		free(host.bits[i]);
	memset(&host, 0, sizeof(host));
}

/* -- making ---------------------------------------------------------------------------------------------------------- */

/* What the host must have for a pool: fixed places, what checkpoints need, and the nodes' first group. */
static void makeable(unsigned version, unsigned nr_members, uint64_t size_bytes, uint64_t enough_bytes)
{
	char why[1200];
	ck_ok(host_mkfs(version, nr_members, size_bytes, enough_bytes));
	ck_assert_msg(host.used <= BLOCKS(enough_bytes), "%ju MiB", (uintmax_t)(host.used >> 8));
	host_mount();
	make_file(PF_ROOT_INO, "f");
	ck_assert_msg(simpool_close(sp, why, sizeof(why)) == 0, "%s", why);
	if (size_bytes < TIB) /* it takes a while */
		ck_assert_msg(simpool_check(sp, why, sizeof(why)) == 0, "%s", why);
	simpool_free(sp);
	host_free();
}

START_TEST(large_images_on_small_hosts)
{
	makeable(5, 1, 20 * TIB, 3 * GIB);
	makeable(6, 2, 2 * TIB, 3 * GIB / 2);
	makeable(6, 1, 100 * GIB, 512 * MIB);
}
END_TEST

/* The whole share of a small pool, as ever. */
START_TEST(small_images_have_their_share)
{
	ck_ok(host_mkfs(6, 1, 20 * GIB, 20 * GIB));
	struct simdisk *disk = simworld_disk(sp->world, 0);
	struct pf_geometry geo = simpool_geometry(disk);
	uint64_t share = pf_geometry_share_blocks(BLOCKS(20 * GIB), &geo);
	ck_assert_uint_eq(host.used, geo.data_start + share + PF_SUPER_RING_BLOCKS);
	host_mount();
	ck_assert_uint_eq(POOL->space->members[0].home.nr_groups, 0);
	teardown();
	host_free();
}
END_TEST

START_TEST(no_room_for_a_pool)
{
	ck_err(host_mkfs(6, 1, 2 * TIB, 300 * MIB), -ENOSPC);
	simpool_free(sp);
	host_free();
}
END_TEST

/* -- a full host ----------------------------------------------------------------------------------------------------- */
static uint8_t *value;

/* A name and about four nodes that nothing touches any more. */
static int grow(unsigned i)
{
	char name[16] = "";
	struct pf_attr a;
	sprintf(name, "%u", i);
	int err = pf_create(POOL, PF_ROOT_INO, name, strlen(name), S_IFREG | 0644, user, 0, 0, &a);
	if (err)
		return err;
	memcpy(value, name, sizeof(name));
	err = pf_setxattr(POOL, a.ino, "user.x", value, 65000, 0);
	if (err)
		ck_ok(unlink_name(PF_ROOT_INO, name));
	pf_forget(POOL, a.ino, 1);
	return err;
}

/* Until it is refused; each hundredth time everything becomes durable. */
static unsigned grow_until_full(unsigned from, unsigned most)
{
	unsigned i = from;
	int err = 0;
	while (!err && i < from + most) {
		err = grow(i);
		if (!err && ++i % 100 == 0)
			ck_ok(pf_pool_sync(POOL));
	}
	ck_assert_msg(!err || err == -ENOSPC, "%s", pf_strerror(err));
	ck_ok(pf_pool_sync(POOL));
	return i;
}

static void shrink(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		char name[16];
		sprintf(name, "%u", i);
		ck_ok(unlink_name(PF_ROOT_INO, name));
		if (i % 50 == 0)
			ck_ok(pf_pool_sync(POOL));
	}
	while (pf_pool_step(POOL, false) > 0)
		;
	ck_ok(pf_pool_sync(POOL));
}

static void there(unsigned from, unsigned to)
{
	uint8_t *got = malloc(65536);
	for (unsigned i = from; i < to; i++) {
		char name[16] = "";
		sprintf(name, "%u", i);
		uint64_t ino = look(PF_ROOT_INO, name);
		memcpy(value, name, sizeof(name));
		ck_assert_int_eq(pf_getxattr(POOL, ino, "user.x", got, 65536), 65000);
		ck_assert_msg(!memcmp(got, value, 65000), "what %u has is something else", i);
		pf_forget(POOL, ino, 1);
	}
	free(got);
}

static uint64_t nodes_at_home(void)
{
	const struct pf_space_member *m = &POOL->space->members[POOL->space->meta_members[0]];
	uint64_t blocks = 0;
	for (uint32_t g = 0; g < m->home.nr_groups; g++)
		blocks += pf_group_capacity(&m->geo, g) - m->groups[g].free_blocks;
	return blocks / PF_NODE_BLOCKS;
}

static void crash_and_mount(void)
{
	simpool_abandon(sp);
	host_mount();
}

/* Names fill it. What is there can be deleted, then there is room again, also for others; and after a crash all that was synced. */
START_TEST(names_fill_the_host)
{
	value = calloc(1, 65536);
	ck_ok(host_mkfs(6, _i + 1, 150 * GIB, TIB));
	host_mount();
	ck_assert_uint_eq(nodes_at_home(), 0);
	host.limit = host.used + BLOCKS(10 * MIB);
	unsigned nr = grow_until_full(0, 1000000);
	ck_assert_uint_gt(host.nr_refused, 0);
	uint64_t used = nodes_at_home(), room = pf_space_home_room(POOL->space) / PF_NODE_BLOCKS;
	ck_assert_msg(used > 1000 && room > 7000, "%ju nodes at home, room for %ju", (uintmax_t)used, (uintmax_t)room);
	/* each time it is opened anew, too: nothing eats up what is left for deletions */
	for (unsigned k = 0; k < 3; k++) {
		crash_and_mount();
		there(0, nr);
		nr = grow_until_full(nr, 1000);
	}
	ck_assert_uint_ge(pf_space_home_room(POOL->space) / PF_NODE_BLOCKS, room - 300);
	/* all but the latest, which are those at home */
	shrink(0, nr - 100);
	there(nr - 100, nr);
	unsigned again = grow_until_full(nr, 300);
	ck_assert_uint_gt(again, nr);
	/* room on the host: nodes go elsewhere, what is at home stays until it changes */
	host.limit += BLOCKS(GIB);
	again = grow_until_full(again, 300);
	used = nodes_at_home();
	ck_assert_uint_eq(grow_until_full(again, 300), again + 300);
	ck_assert_uint_le(nodes_at_home(), used);
	there(nr, again + 300);
	shrink(nr - 100, again + 300);
	ck_assert_uint_le(nodes_at_home(), 10);
	teardown();
	host_free();
	free(value);
}
END_TEST

/* A cache for more dirty nodes than there is room at home: they are written before they are so many. */
START_TEST(many_dirty_nodes)
{
	value = calloc(1, 65536);
	ck_ok(host_mkfs(6, 1, 150 * GIB, TIB));
	host_mount_with(4 * GIB);
	host.limit = host.used + BLOCKS(MIB);
	unsigned nr = 0;
	int err = 0;
	while (!err && nr < 6000) {
		err = grow(nr);
		nr += !err;
	}
	ck_assert_int_eq(err, -ENOSPC);
	ck_ok(pf_pool_sync(POOL));
	there(0, nr);
	shrink(0, nr);
	teardown();
	host_free();
	free(value);
}
END_TEST

/* One that cannot be asked for room says so when nodes are written. They go home, as long as that lasts; then changes stay in memory
 * until there is room, and nothing is lost. */
START_TEST(a_host_that_cannot_allocate)
{
	value = calloc(1, 65536);
	ck_ok(host_mkfs(6, _i + 1, 150 * GIB, TIB));
	host.asks_nobody = true;
	host_mount();
	host.limit = host.used + BLOCKS(10 * MIB);
	unsigned nr = 0;
	int err = 0;
	while (!err && nr < 1000000) {
		err = grow(nr);
		if (!err && ++nr % 100 == 0)
			err = pf_pool_sync(POOL);
	}
	ck_assert_int_eq(err, -ENOSPC);
	ck_assert_uint_gt(nr, 3000);
	there(0, nr);
	host.limit += BLOCKS(GIB);
	ck_ok(pf_pool_sync(POOL));
	crash_and_mount();
	there(0, nr);
	shrink(0, nr);
	teardown();
	host_free();
	free(value);
}
END_TEST

/* So does data. Deleting it gives the host its room back. */
START_TEST(data_fills_the_host)
{
	value = calloc(1, 65536);
	uint8_t *p = pattern(1, MIB);
	ck_ok(host_mkfs(6, _i + 1, 150 * GIB, TIB));
	host_mount();
	uint64_t kept = make_file(PF_ROOT_INO, "kept"), f = make_file(PF_ROOT_INO, "f");
	put(kept, 0, p, MIB);
	ck_ok(pf_fsync(POOL, kept));
	host.limit = host.used + BLOCKS(50 * MIB);
	int64_t n = (int64_t)MIB;
	for (uint64_t k = 0; n == (int64_t)MIB && k < 200; k++)
		n = pf_write(POOL, f, k * MIB, p, MIB, 0);
	ck_assert_msg(n == -ENOSPC, "%jd", (intmax_t)n);
	/* an overwrite needs room, too, and what was there stays */
	ck_err(pf_write(POOL, kept, 0, p + 1, MIB - 4096, 0), -ENOSPC);
	ck_assert_uint_eq(host.used, host.limit);
	for (unsigned i = 0; i < 20; i++)
		ck_ok(grow(i));
	ck_ok(pf_pool_sync(POOL));
	crash_and_mount();
	there(0, 20);
	ck_bytes(look(PF_ROOT_INO, "kept"), 0, p, MIB);
	ck_ok(unlink_name(PF_ROOT_INO, "f"));
	for (unsigned k = 0; k < 1000; k++)
		ck_assert_int_ge(pf_pool_step(POOL, k == 0), 0);
	ck_ok(pf_pool_sync(POOL));
	ck_assert_msg(host.used + BLOCKS(30 * MIB) < host.limit, "%ju of %ju blocks used", (uintmax_t)host.used, (uintmax_t)host.limit);
	put(look(PF_ROOT_INO, "kept"), 0, p + 4096, MIB - 4096);
	ck_ok(pf_pool_sync(POOL));
	shrink(0, 20);
	teardown();
	host_free();
	free(p);
	free(value);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("home");
	TCase *tc = tcase_create("host");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, large_images_on_small_hosts);
	tcase_add_test(tc, small_images_have_their_share);
	tcase_add_test(tc, no_room_for_a_pool);
	tcase_add_loop_test(tc, names_fill_the_host, 0, 2);
	tcase_add_test(tc, many_dirty_nodes);
	tcase_add_loop_test(tc, a_host_that_cannot_allocate, 0, 2);
	tcase_add_loop_test(tc, data_fills_the_host, 0, 2);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
