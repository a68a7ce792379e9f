/* SPDX-License-Identifier: MIT
 * mkfs: judging the members, laying them out, and making the empty pool by an ordinary checkpoint. */
#include "commit/checkpoint.h"
#include "object/inode.h"
#include "object/names.h"
#include "pool/pool_int.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct plan {
	unsigned nr;
	struct pf_io **ios;
	struct pf_super super;
	struct pf_geometry geo[PF_MAX_MEMBERS];
};

static int check_kinds(const struct plan *p, struct pf_diag *diag)
{
	const struct pf_features *f = &p->super.features;
	uint64_t size = p->geo[0].size_blocks;
	for (unsigned i = 0; i < p->nr; i++) {
		if (p->ios[i]->kind == PF_IO_BLOCK_DEVICE && !pf_has(f, PF_FEAT_RAW_MEMBERS))
			return pf_diag_set(diag, -EINVAL, "%s is a block device; format version %u takes image files only: "
					   "use --format-version 2 or newer", p->ios[i]->name, p->super.version);
		if (p->geo[i].size_blocks != size && !pf_has(f, PF_FEAT_MIXED_SIZES))
			return pf_diag_set(diag, -EINVAL, "%s and %s differ in size (%llu and %llu bytes); format version %u takes "
					   "members of equal size only: use --format-version 3 or newer", p->ios[0]->name,
					   p->ios[i]->name, (unsigned long long)p->ios[0]->size_bytes,
					   (unsigned long long)p->ios[i]->size_bytes, p->super.version);
	}
	return 0;
}

static int plan_geometry(struct plan *p, struct pf_diag *diag)
{
	for (unsigned i = 0; i < p->nr; i++) {
		uint64_t blocks = p->ios[i]->size_bytes / PF_BLOCK_SIZE;
		struct pf_member_row *row = &p->super.members[i];
		row->size_blocks = blocks;
		row->log_blocks = pf_geometry_log_blocks(blocks);
		row->state = PF_MEMBER_ACTIVE;
		row->flags = p->ios[i]->kind == PF_IO_BLOCK_DEVICE ? PF_MEMBER_RAW : 0;
		int err = pf_geometry_init(&p->geo[i], blocks, row->log_blocks);
		if (err)
			return pf_diag_set(diag, err, "%s is too small: %llu bytes; a member has at least %llu bytes (16 MiB)",
					   p->ios[i]->name, (unsigned long long)p->ios[i]->size_bytes,
					   (unsigned long long)PF_MIN_MEMBER_BYTES);
	}
	return 0;
}

/* The largest member that is not in @taken; of equal ones the first. */
static unsigned largest(const struct plan *p, uint32_t taken)
{
	unsigned best = 0;
	bool found = false;
	for (unsigned i = 0; i < p->nr; i++) {
		if (taken >> i & 1)
			continue;
		if (!found || p->geo[i].size_blocks > p->geo[best].size_blocks)
			best = i;
		found = true;
	}
	return best;
}

static int plan_metadata(struct plan *p, uint32_t mask, struct pf_diag *diag)
{
	uint64_t pool_blocks = 0;
	for (unsigned i = 0; i < p->nr; i++)
		pool_blocks += p->geo[i].size_blocks;
	unsigned nr = mask ? (unsigned)__builtin_popcount(mask) : p->nr < 2 ? 1 : 2;
	if (nr > PF_MAX_META_MEMBERS || (uint64_t)mask >> p->nr)
		return pf_diag_set(diag, -EINVAL, "at most %u members can be nominated for metadata", PF_MAX_META_MEMBERS);
	uint32_t taken = mask ? ~mask : 0;
	for (unsigned n = 0; n < nr; n++) {
		unsigned id = largest(p, taken);
		taken |= 1u << id;
		p->super.meta_members[n] = p->super.log_members[n] = (uint8_t)id;
		p->super.members[id].flags |= PF_MEMBER_META;
		p->super.members[id].share_blocks = pf_geometry_share_blocks(pool_blocks, &p->geo[id]);
	}
	p->super.nr_meta = nr;
	return 0;
}

static void random_uuid(const struct pf_env *env, uint8_t *uuid)
{
	uint64_t half[2] = { env->random64(env->arg), env->random64(env->arg) };
	memcpy(uuid, half, sizeof(half));
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40); /* RFC 4122: version 4, variant 1 */
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

static int plan_pool(struct plan *p, const struct pf_mkfs_options *o, const struct pf_env *env, struct pf_diag *diag)
{
	struct pf_super *s = &p->super;
	s->version = o->version ? o->version : PF_VERSION_DEFAULT;
	if (s->version < PF_VERSION_FIRST || s->version > PF_VERSION_NEWEST)
		return pf_diag_set(diag, -EINVAL, "there is no format version %u; versions %u to %u can be made", s->version,
				   PF_VERSION_FIRST, PF_VERSION_NEWEST);
	if (!p->nr || p->nr > PF_MAX_MEMBERS)
		return pf_diag_set(diag, -EINVAL, "a pool has 1 to %u members, not %u", PF_MAX_MEMBERS, p->nr);
	if (o->placement > PF_PLACE_STRIPE)
		return pf_diag_set(diag, -EINVAL, "unknown placement");
	if (o->label && strlen(o->label) > PF_LABEL_BYTES)
		return pf_diag_set(diag, -EINVAL, "the label is longer than %u bytes", PF_LABEL_BYTES);
	s->features = pf_version_features(s->version);
	s->nr_members = p->nr;
	s->placement = o->placement;
	s->created_ns = s->written_ns = pf_now_ns(env);
	s->hash_seed = env->random64(env->arg);
	s->counters.next_id = s->counters.next_orphan = PF_ROOT_INO + 1;
	s->epochs[0] = (struct pf_epoch){ .id = env->random64(env->arg) | 1, .time_ns = s->created_ns };
	if (o->label)
		memcpy(s->label, o->label, strlen(o->label));
	if (o->pool_uuid)
		memcpy(s->pool_uuid, o->pool_uuid, sizeof(s->pool_uuid));
	else
		random_uuid(env, s->pool_uuid);
	for (unsigned i = 0; i < p->nr; i++)
		random_uuid(env, s->members[i].uuid);
	int err = plan_geometry(p, diag);
	if (!err)
		err = check_kinds(p, diag);
	return err ? err : plan_metadata(p, o->meta_mask, diag);
}

/* Old superblocks go first, so that a crash leaves no pool rather than half of one; block 0 stays zero. */
static int clear_member(struct pf_io *io, const struct pf_geometry *geo)
{
	void *zero = NULL;
	if (posix_memalign(&zero, PF_BLOCK_SIZE, PF_BLOCK_SIZE))
		return -ENOMEM;
	memset(zero, 0, PF_BLOCK_SIZE);
	int err = pf_io_write(io, 0, zero, PF_BLOCK_SIZE);
	for (unsigned slot = 0; !err && slot < 2 * PF_SUPER_SLOTS; slot++) {
		uint64_t block = pf_geometry_super_block(geo, slot / PF_SUPER_SLOTS, slot % PF_SUPER_SLOTS);
		err = pf_io_write(io, block * PF_BLOCK_SIZE, zero, PF_BLOCK_SIZE);
	}
	free(zero);
	return err ? err : pf_io_flush(io);
}

/* What must never meet ENOSPC of the host (pitfalls 5.9): fixed places, log, and of the share of the nodes what checkpoints need. */
static int allocate_on_host(struct pf_io *io, const struct pf_geometry *geo, uint64_t share_blocks)
{
	int err = pf_io_allocate(io, 0, (geo->data_start + pf_geometry_home_blocks(geo, share_blocks)) * PF_BLOCK_SIZE);
	if (!err)
		err = pf_io_allocate(io, geo->backup_block * PF_BLOCK_SIZE, PF_SUPER_RING_BLOCKS * (uint64_t)PF_BLOCK_SIZE);
	return err;
}

static int prepare_members(const struct plan *p, struct pf_diag *diag)
{
	for (unsigned i = 0; i < p->nr; i++) {
		int err = clear_member(p->ios[i], &p->geo[i]);
		if (!err)
			err = allocate_on_host(p->ios[i], &p->geo[i], p->super.members[i].share_blocks);
		if (err)
			return pf_diag_set(diag, err, "%s: cannot be written: %s", p->ios[i]->name, pf_strerror(err));
	}
	return 0;
}

static int make_root(struct pf_pool *pool, const struct pf_mkfs_options *o)
{
	struct timespec now = pf_inode_now(pool);
	struct pf_inode_item item = {
		.mode = S_IFDIR | (o->root_mode ? o->root_mode & 07777 : 0755),
		.uid = o->root_uid,
		.gid = o->root_gid,
		.nlink = 2,
		.parent = PF_ROOT_INO,
		.next_cookie = PF_FIRST_COOKIE,
		.atime = now,
		.mtime = now,
		.ctime = now,
		.btime = now,
	};
	struct pf_disk_inode disk;
	struct pf_txn txn;
	pf_inode_item_pack(&item, &disk);
	pf_txn_init(&txn, pool->tree);
	pf_inode_want(&txn, PF_ROOT_INO);
	int err = pf_txn_lock(&txn);
	if (!err) {
		pf_txn_put(&txn, pf_key_inode(PF_ROOT_INO), &disk, sizeof(disk));
		pool->counters.nr_inodes = 1;
	}
	pf_txn_end(&txn);
	return err;
}

static void fill_report(const struct plan *p, struct pf_mkfs_report *report)
{
	uint64_t usable = 0;
	for (unsigned i = 0; i < p->nr; i++)
		usable += p->geo[i].data_end - p->geo[i].data_start - p->super.members[i].share_blocks;
	memcpy(report->pool_uuid, p->super.pool_uuid, sizeof(report->pool_uuid));
	report->usable_bytes = usable * PF_BLOCK_SIZE;
	report->nr_meta = p->super.nr_meta;
	memcpy(report->meta_members, p->super.meta_members, sizeof(report->meta_members));
}

static void close_all(struct plan *p)
{
	for (unsigned i = 0; i < p->nr; i++)
		pf_io_close(p->ios[i]);
}

static int write_pool(struct plan *p, const struct pf_mkfs_options *o, const struct pf_env *env, struct pf_diag *diag)
{
	struct pf_set *set;
	struct pf_pool *pool;
	struct pf_pool_options options = { .cache_bytes = 8 << 20 };
	int err = prepare_members(p, diag);
	if (err) {
		close_all(p);
		return err;
	}
	err = pf_set_new(p->ios, p->nr, env, &set);
	if (err)
		return pf_diag_set(diag, err, "out of memory");
	set->super = p->super;
	for (unsigned i = 0; i < p->nr; i++)
		set->members[i].geo = p->geo[i];
	err = pf_pool_assemble(set, &options, true, &pool, diag);
	if (err)
		return err;
	err = make_root(pool, o);
	if (err)
		pf_pool_free(pool);
	else
		err = pf_pool_close(pool);
	return err ? pf_diag_set(diag, err, "writing the new pool failed: %s", pf_strerror(err)) : 0;
}

int pf_pool_create(struct pf_io **ios, unsigned nr, const struct pf_mkfs_options *options, const struct pf_env *env,
		   bool report_only, struct pf_mkfs_report *report, struct pf_diag *diag)
{
	struct plan p = { .nr = nr, .ios = ios };
	int err = plan_pool(&p, options, env, diag);
	if (!err && report)
		fill_report(&p, report);
	if (err || report_only) {
		close_all(&p);
		return err;
	}
	return write_pool(&p, options, env, diag);
}
