/* SPDX-License-Identifier: MIT
 * Moving a pool to a newer format version in place: one checkpoint that carries the new version and, where space of deleted
 * files was never returned before, maps built anew from the tree. Then second copies of nodes, if it has them now. It lies here because it walks the tree as fsck does. */
#include "check/blockmap.h"
#include "check/copies.h"
#include "check/walk.h"
#include "commit/checkpoint.h"
#include "ondisk/item.h"
#include "pool/pool_int.h"

#include <string.h>

struct marking {
	struct pf_pool *pool;
	struct pf_blockmap *map;
};

static int mark(struct marking *m, pf_addr addr, unsigned nr_blocks)
{
	pf_addr first;
	if (!pf_set_addr_valid(m->pool->set, addr, nr_blocks))
		return -PF_EITEM_INVALID;
	int twice = pf_blockmap_mark(m->map, addr, nr_blocks, &first);
	return twice > 0 ? -PF_EITEM_INVALID : twice;
}

static int mark_node(void *arg, const struct pf_walk_node *node)
{
	int err = mark(arg, node->ptr.addr[0], PF_NODE_BLOCKS);
	return !err && node->ptr.addr[1] ? mark(arg, node->ptr.addr[1], PF_NODE_BLOCKS) : err;
}

static int mark_item(void *arg, const struct pf_walk_item *item)
{
	struct pf_extent e;
	if (pf_key_class(item->key) != PF_CLASS_EXTENT)
		return 0;
	int err = pf_extent_unpack(item->key, item->data, item->len, &e);
	for (unsigned i = 0; !err && i < e.nr_copies; i++)
		err = mark(arg, e.addr[i], e.nr);
	return err;
}

/* Bits of the fixed places and of what lies past the end of the member. */
static void set_fixed(const struct pf_geometry *geo, uint64_t group, uint8_t *used)
{
	for (unsigned b = 0; b < PF_GROUP_BLOCKS; b++) {
		uint64_t block = (group << PF_GROUP_SHIFT) + b;
		if (block < geo->data_start || block >= geo->data_end)
			used[b / 8] |= (uint8_t)(1u << (b % 8));
	}
}

static int rebuild_group(struct pf_pool *pool, const struct pf_blockmap *map, unsigned member, uint64_t group)
{
	uint8_t should[PF_GROUP_BLOCKS / 8] = { 0 }, is[PF_GROUP_BLOCKS / 8];
	const uint8_t *marked = pf_blockmap_group(map, member, group);
	if (marked)
		memcpy(should, marked, sizeof(should));
	set_fixed(&pool->set->members[member].geo, group, should);
	int err = pf_space_read_map(pool->space, member, group, is);
	if (err || !memcmp(should, is, sizeof(is)))
		return err;
	return pf_space_replace_map(pool->space, member, group, should);
}

static int rebuild_maps(struct pf_pool *pool)
{
	static const struct pf_walk_ops ops = { .node = mark_node, .item = mark_item, .bad = pf_walk_stop_at_bad };
	struct marking m = { .pool = pool };
	int err = pf_blockmap_create(pool->set, &m.map);
	if (!err)
		err = pf_walk_tree(pool->set, &pool->super, PF_KEY_MIN, PF_KEY_MAX, &ops, &m);
	for (unsigned i = 0; !err && i < pool->set->nr; i++) {
		for (uint64_t g = 0; !err && g < pool->set->members[i].geo.nr_groups; g++)
			err = rebuild_group(pool, m.map, i, g);
	}
	pf_blockmap_free(m.map);
	return err;
}

/* The bit first, the copies later: see copies.h I1. */
static int write_copies(struct pf_pool *pool, struct pf_diag *diag)
{
	int err = pf_copies_complete(pool);
	return err ? pf_diag_set(diag, err, "the pool has format version %u now, but some tree nodes still have one copy only: %s; "
				 "upgrade again to go on", pool->super.version, pf_strerror(err)) : 0;
}

static void set_version(struct pf_pool *pool, const struct pf_super *super)
{
	pthread_mutex_lock(&pool->super_lock);
	pool->super.version = pool->set->super.version = super->version;
	pool->super.features = pool->set->super.features = super->features;
	pthread_mutex_unlock(&pool->super_lock);
	pool->data_csum = pf_has(&super->features, PF_FEAT_DATA_CSUM);
	pool->reclaim = pf_has(&super->features, PF_FEAT_RECLAIM);
	if (pool->reclaim)
		pf_space_begin_reclaim(pool->space);
	pf_space_begin_copies(pool->space);
}

static int refuse(const struct pf_pool *pool, unsigned to, struct pf_diag *diag)
{
	unsigned from = pool->super.version;
	if (to > PF_VERSION_NEWEST || to < from)
		return pf_diag_set(diag, -EINVAL, "the pool has format version %u; it can be moved up to %u at most, never down",
				   from, PF_VERSION_NEWEST);
	if (pool->read_only)
		return pf_diag_set(diag, -EROFS, "the pool is open read-only");
	if (!pool->was_clean)
		return pf_diag_set(diag, -PF_EPOOL_DIRTY, "the pool was not unmounted cleanly: run fsck.poolfs first");
	return 0;
}

/* What has to be right before the version may change; nothing on disk but free-space maps has changed when it is not. */
static int prepare(struct pf_pool *pool, const struct pf_super *after, struct pf_diag *diag)
{
	int err;
	/* what waits for the reaper or for a crash's sake must not be mixed with maps made from the tree */
	while ((err = pf_pool_step(pool, false)) > 0)
		;
	if (!err)
		err = pf_commit_wait(pool, false);
	if (!err && !pf_has(&pool->super.features, PF_FEAT_RECLAIM) && pf_has(&after->features, PF_FEAT_RECLAIM))
		err = rebuild_maps(pool);
	if (err)
		return pf_diag_set(diag, err, "the tree cannot be walked: %s; nothing was changed, run fsck.poolfs", pf_strerror(err));
	if (pf_super_node_copies(after) == pf_super_node_copies(&pool->super))
		return 0;
	struct pf_diag why = { "" };
	err = pf_copies_have_room(pool, after, &why);
	return err ? pf_diag_set(diag, err, "%s; the format version stays %u", why.text, pool->super.version) : 0;
}

int pf_pool_upgrade(struct pf_pool *pool, unsigned to, struct pf_diag *diag)
{
	int err = refuse(pool, to, diag);
	if (err)
		return err;
	if (to > pool->super.version) {
		struct pf_super after = pool->super;
		after.version = to;
		after.features = pf_version_features(to);
		err = prepare(pool, &after, diag);
		if (err)
			return err;
		set_version(pool, &after);
		err = pf_commit_wait(pool, true);
		if (err)
			return pf_diag_set(diag, err, "writing the superblocks failed: %s", pf_strerror(err));
	}
	return pf_super_node_copies(&pool->super) > 1 ? write_copies(pool, diag) : 0;
}
