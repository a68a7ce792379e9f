/* SPDX-License-Identifier: MIT
 *
 * Purpose: one flipped bit anywhere in used metadata (superblocks, table roots, table blocks, maps, nodes): the pool opens or says
 * why not, every answer is right or an error, the check names the damage, and nothing crashes or hangs. Also writes that were lost
 * or went astray. 500 places; --flips N --seed S for more. */
#include "model/ops.h"
#include "ondisk/geometry.h"
#include "ondisk/super.h"
#include "sim/hang.h"
#include "sim/simpool.h"
#include "sim/walk.h"
#include "sim/workload.h"

#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

enum place_kind { PLACE_SUPER, PLACE_ROOT, PLACE_TABLE, PLACE_MAP, PLACE_NODE, PLACE_NR };
static const char *const kind_names[PLACE_NR] = { "superblock", "table root", "table block", "map", "node" };

struct place {
	unsigned disk;
	uint64_t off_bytes;
	size_t len_bytes;
	pf_addr copy; /* of a node; 0: it has none */
};
struct places {
	struct place *list[PLACE_NR];
	size_t nr[PLACE_NR];
};

struct bench {
	struct simpool *s;
	struct ops ops;
	struct places places;
	uint64_t nr_open_failed, nr_read_only, nr_errors, nr_silent, nr_bad;
};

static void add_place(struct places *p, enum place_kind kind, unsigned disk, uint64_t block, size_t len_bytes)
{
	p->list[kind] = realloc(p->list[kind], (p->nr[kind] + 1) * sizeof(struct place));
	p->list[kind][p->nr[kind]++] = (struct place){ disk, block * PF_BLOCK_SIZE, len_bytes, 0 };
}

static void peek_block(struct bench *b, unsigned disk, uint64_t block, void *buf, size_t len_bytes)
{
	simdisk_peek(simworld_disk(b->s->world, disk), block * PF_BLOCK_SIZE, buf, len_bytes);
}

/* The tree as the superblock names it. */
static void find_nodes(struct bench *b, struct pf_ptr ptr, unsigned level)
{
	uint8_t *node = malloc(PF_NODE_SIZE);
	peek_block(b, pf_addr_member(ptr.addr[0]), pf_addr_block(ptr.addr[0]), node, PF_NODE_SIZE);
	for (unsigned copy = 0; copy < 2 && ptr.addr[copy]; copy++) {
		pf_addr addr = ptr.addr[copy];
		add_place(&b->places, PLACE_NODE, pf_addr_member(addr), pf_addr_block(addr), PF_NODE_SIZE);
		b->places.list[PLACE_NODE][b->places.nr[PLACE_NODE] - 1].copy = ptr.addr[!copy];
	}
	const struct pf_disk_node_head *head = (const void *)node;
	const struct pf_disk_child *child = (const void *)(node + sizeof(*head));
	for (unsigned k = 0; level && k < pf_get16(head->nr_items); k++)
		find_nodes(b, pf_ptr_get(child[k].ptr), level - 1);
	free(node);
}

static void find_fixed(struct bench *b, unsigned disk, const struct pf_super *super)
{
	const struct pf_member_row *row = &super->members[disk];
	struct pf_geometry geo;
	uint8_t block[PF_BLOCK_SIZE];
	pf_geometry_init(&geo, row->size_blocks, row->log_blocks);
	for (unsigned k = 0; k < 2 * PF_SUPER_SLOTS; k++) {
		uint64_t at = pf_geometry_super_block(&geo, k / PF_SUPER_SLOTS, k % PF_SUPER_SLOTS);
		peek_block(b, disk, at, block, sizeof(block));
		if (pf_get64(((struct pf_disk_super *)block)->magic) == PF_SUPER_MAGIC)
			add_place(&b->places, PLACE_SUPER, disk, at, sizeof(struct pf_disk_super));
	}
	uint64_t root = geo.root_block + row->root_slot * geo.root_blocks;
	add_place(&b->places, PLACE_ROOT, disk, root,
		  sizeof(struct pf_disk_table_head) + sizeof(struct pf_disk_table_ref));
	peek_block(b, disk, root, block, sizeof(block));
	const struct pf_disk_table_ref *refs = (const void *)(block + sizeof(struct pf_disk_table_head));
	unsigned slot = refs[0].slot;
	add_place(&b->places, PLACE_TABLE, disk, geo.tables_block + slot,
		  sizeof(struct pf_disk_table_head) + geo.nr_groups * sizeof(struct pf_disk_group));
	peek_block(b, disk, geo.tables_block + slot, block, sizeof(block));
	const struct pf_disk_group *groups = (const void *)(block + sizeof(struct pf_disk_table_head));
	for (uint64_t g = 0; g < geo.nr_groups && g < PF_GROUPS_PER_TABLE; g++) {
		if (groups[g].flags & PF_GROUP_INIT)
			add_place(&b->places, PLACE_MAP, disk, geo.maps_block + 2 * g + groups[g].slot, PF_BLOCK_SIZE);
	}
}

/* A pool with something of everything, closed; its committed metadata found. */
static int fill(struct bench *b, unsigned version, uint64_t seed, char *why, size_t cap)
{
	struct simpool_config config = {
		.version = version, .nr_members = 2, .size_bytes = UINT64_C(96) << 20, .seed = seed
	};
	struct ops_config ops;
	b->s = simpool_new(&config, why, cap);
	if (!b->s)
		return -1;
	workload_ops_config(&ops, seed, WORKLOAD_NAMES);
	ops.max_inodes = 900;
	ops.weight[OP_UNLINK] = 30;
	ops.weight[OP_WRITE] = ops.weight[OP_APPEND] = 30;
	ops.max_write_bytes = 65536;
	int err = ops_start(&b->ops, &ops, &b->s->env, b->s->pool);
	for (unsigned k = 0; !err && k < 3500; k++)
		err = ops_step(&b->ops);
	if (err) {
		say(why, cap, "%s", b->ops.failure);
		return err;
	}
	model_remount(b->ops.model);
	if (simpool_remount(b->s, why, cap))
		return -1;
	struct pf_super super = *pf_pool_super(b->s->pool);
	int got;
	while ((got = pf_pool_step(b->s->pool, false)) == 1)
		;
	if (got || pf_pool_sync(b->s->pool))
		return -1;
	if (simpool_close(b->s, why, cap) || simpool_check(b->s, why, cap))
		return -1;
	/* the newest superblock, from the disk */
	struct pf_io *io = simdisk_open(simworld_disk(b->s->world, 0), true);
	err = pf_set_read_super(io, &super, NULL);
	pf_io_close(io);
	for (unsigned d = 0; !err && d < config.nr_members; d++)
		find_fixed(b, d, &super);
	if (!err && super.root.addr[0])
		find_nodes(b, super.root, super.root_level);
	return err;
}

/* Ordinary work on the damaged pool: may fail, may not crash. */
static void work(struct simpool *s)
{
	struct pf_attr a;
	struct pf_cred cred = { 0, 0 };
	static uint8_t data[200000];
	if (pf_create(s->pool, PF_ROOT_INO, "work", 4, 0100644, cred, 0, 0, &a))
		return;
	pf_write(s->pool, a.ino, 0, data, sizeof(data), 0);
	pf_pool_sync(s->pool);
	pf_unlink(s->pool, PF_ROOT_INO, "work", 4);
	pf_forget(s->pool, a.ino, 1);
	for (unsigned k = 0; k < 50 && pf_pool_step(s->pool, k % 10 == 0) >= 0; k++)
		;
}

/* @damaged: the check has to find something. 0, or -1 and @why. */
static int judge(struct bench *b, struct simworld *world, bool damaged, char *why, size_t cap)
{
	struct simpool *s = simpool_adopt(&b->s->config, world);
	struct walk_result result = { 0 };
	char text[1200] = "";
	int err = 0;
	s->env.now_ns = b->s->env.now_ns;
	alarm(30);
	if (damaged && simpool_check(s, text, sizeof(text)) == 0) {
		say(why, cap, "the check finds nothing");
		err = -1;
	}
	/* what cannot be opened for writing may still be read */
	if (!err && simpool_open(s, false, text, sizeof(text)) && simpool_open(s, true, text, sizeof(text))) {
		b->nr_open_failed++;
	} else if (!err) {
		b->nr_read_only += pf_pool_read_only(s->pool);
		err = walk_damaged(s->pool, b->ops.model, &result, why, cap);
		b->nr_errors += result.nr_errors > 0;
		b->nr_silent += !result.nr_errors;
		work(s);
		simpool_close(s, text, sizeof(text));
	}
	simpool_free(s);
	alarm(0);
	return err;
}

/* Superblocks, tables and maps can be made again from what is whole: afterwards nothing is missing. */
static int repair(struct bench *b, struct simworld *world, char *why, size_t cap)
{
	struct simpool *s = simpool_adopt(&b->s->config, world);
	struct walk_result result = { 0 };
	s->env.now_ns = b->s->env.now_ns;
	alarm(30);
	int err = simpool_repair(s, why, cap);
	if (!err)
		err = simpool_open(s, false, why, cap);
	if (!err)
		err = walk_damaged(s->pool, b->ops.model, &result, why, cap);
	if (!err && result.nr_errors) {
		say(why, cap, "repaired, but %ju calls fail", (uintmax_t)result.nr_errors);
		err = -1;
	}
	if (!err)
		err = simpool_close(s, why, cap);
	if (!err)
		err = simpool_check(s, why, cap);
	simpool_free(s);
	alarm(0);
	return err;
}

static void flip_one(struct bench *b, struct rng *rng, uint64_t nr)
{
	enum place_kind kind = (enum place_kind)(nr % 8 < 4 ? PLACE_NODE : nr % 4);
	char why[1500] = "";
	if (!b->places.nr[kind])
		return;
	struct place p = b->places.list[kind][rng_below(rng, b->places.nr[kind])];
	uint64_t at = p.off_bytes + rng_below(rng, p.len_bytes);
	unsigned bit = (unsigned)rng_below(rng, 8);
	struct simworld *world = simworld_copy(b->s->world);
	simdisk_flip_bit(simworld_disk(world, p.disk), at, bit);
	/* of nodes with two copies every other one loses both; of the rest nothing is missing, and all is mended */
	bool lost = kind == PLACE_NODE && (!p.copy || nr % 2);
	if (lost && p.copy)
		simdisk_flip_bit(simworld_disk(world, pf_addr_member(p.copy)),
				 pf_addr_block(p.copy) * PF_BLOCK_SIZE + at % PF_BLOCK_SIZE, bit);
	struct simworld *again = simworld_copy(world);
	uint64_t nr_errors = b->nr_errors + b->nr_open_failed;
	int err = judge(b, world, true, why, sizeof(why));
	if (!err && kind == PLACE_NODE && !lost && b->nr_errors + b->nr_open_failed > nr_errors) {
		say(why, sizeof(why), "one of two copies is damaged, and there are errors");
		err = -1;
	}
	if (lost || err)
		simworld_free(again);
	else
		err = repair(b, again, why, sizeof(why));
	if (!err)
		return;
	printf("FAIL: version %u, flip %ju: bit %u of byte %ju of member %u (a %s at %ju): %s\n", b->s->config.version,
	       (uintmax_t)nr, bit, (uintmax_t)at, p.disk, kind_names[kind], (uintmax_t)p.off_bytes, why);
	b->nr_bad++;
}

static int run(unsigned version, uint64_t seed, uint64_t nr_flips)
{
	struct bench b = { 0 };
	char why[1500] = "";
	struct rng rng = { .state = seed };
	if (fill(&b, version, seed, why, sizeof(why))) {
		printf("FAIL: filling: %s\n", why);
		b.nr_bad++;
	} else {
		struct simworld *same = simworld_copy(b.s->world);
		if (judge(&b, same, false, why, sizeof(why)) || b.nr_errors) {
			printf("FAIL: undamaged: %s\n", why);
			b.nr_bad++;
		}
		for (uint64_t k = 0; k < nr_flips && b.nr_bad < 10; k++)
			flip_one(&b, &rng, k);
		printf("version %u: %ju flips in %zu superblocks, %zu roots, %zu tables, %zu maps, %zu nodes: %ju did "
		       "not open, %ju "
		       "only for reading, %ju with errors, %ju without, %ju wrong\n",
		       version, (uintmax_t)nr_flips, b.places.nr[0], b.places.nr[1], b.places.nr[2], b.places.nr[3],
		       b.places.nr[4], (uintmax_t)b.nr_open_failed, (uintmax_t)b.nr_read_only, (uintmax_t)b.nr_errors,
		       (uintmax_t)b.nr_silent, (uintmax_t)b.nr_bad);
	}
	if (b.ops.model)
		ops_finish(&b.ops);
	for (unsigned k = 0; k < PLACE_NR; k++)
		free(b.places.list[k]);
	simpool_free(b.s);
	return b.nr_bad ? -1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "flips", 1, NULL, 'n' },
					       { "seed", 1, NULL, 's' },
					       { NULL, 0, NULL, 0 } };
	uint64_t nr_flips = getenv("POOLFS_TEST_LONG") ? 20000 : 500, seed = 1;
	int c, bad = 0;
	catch_hangs();
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == '?') {
			fprintf(stderr, "usage: test_bitflip [--flips N] [--seed S]\n");
			return EXIT_FAILURE;
		}
		*(c == 'n' ? &nr_flips : &seed) = strtoull(optarg, NULL, 0);
	}
	bad |= run(6, seed, nr_flips * 3 / 5);
	bad |= run(5, seed, nr_flips * 2 / 5);
	bad |= run(3, seed, nr_flips / 5);
	return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
