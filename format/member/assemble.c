/* SPDX-License-Identifier: MIT */
#include "member/assemble.h"

#include "base/csum.h"
#include "member/super_ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct candidate {
	struct pf_io *io;
	int err; /* no superblock could be read (only with PF_SET_REPAIR) */
	struct pf_super super;
};

struct assembly {
	struct pf_set *set;
	struct pf_diag *diag;
	unsigned flags;
	unsigned nr;
	struct candidate *candidates;
	const struct candidate *winner;
	const struct candidate *found[PF_MAX_MEMBERS]; /* by id of the winner's table */
	bool stale[PF_MAX_MEMBERS];
	char pool[PF_TEXT_BYTES]; /* the winner's, in words */
};

/* -- superblocks ---------------------------------------------------------------------------------------------------- */
static int no_super(const struct candidate *c, struct pf_diag *diag)
{
	const char *path = c->io->name;
	char size[PF_TEXT_BYTES];
	switch (c->err) {
	case -PF_EMEMBER_NONE:
		return pf_diag_set(
			diag, c->err,
			"%s: not a poolfs member (%s without a superblock of poolfs); check the path, or make a pool "
			"with mkfs.poolfs",
			path, pf_text_size(c->io->size_bytes, size));
	case -PF_ESB_CSUM:
	case -PF_ESB_INVALID:
		return pf_diag_set(
			diag, c->err,
			"%s: a poolfs member, but all copies of its superblock are damaged (%s); run fsck.poolfs on "
			"all members of the pool, which can restore it from theirs",
			path, pf_strerror(c->err));
	case -EIO:
		return pf_diag_set(
			diag, c->err,
			"%s: its superblocks cannot be read (input/output error, see the log); check the disk and its "
			"cable",
			path);
	default:
		return pf_diag_set(diag, c->err, "%s: %s", path, pf_strerror(c->err));
	}
}

static int read_supers(struct assembly *a, struct pf_io **ios)
{
	unsigned nr_good = 0;
	for (unsigned i = 0; i < a->nr; i++) {
		struct candidate *c = &a->candidates[i];
		unsigned nr_bad = 0;
		c->io = ios[i];
		c->err = pf_super_ring_read(a->set->aio, c->io, &c->super, &nr_bad);
		if (nr_bad)
			pf_log(a->set->env, PF_LOG_WARNING, "%s: %u damaged superblock copies", c->io->name, nr_bad);
		nr_good += c->err == 0;
		if (c->err && (!(a->flags & PF_SET_REPAIR) || c->err == -ENOMEM))
			return no_super(c, a->diag);
	}
	return nr_good ? 0 : no_super(&a->candidates[0], a->diag);
}

static int check_features(struct assembly *a)
{
	char pool[PF_TEXT_BYTES], bits[PF_TEXT_BYTES];
	for (unsigned i = 0; i < a->nr; i++) {
		const struct candidate *c = &a->candidates[i];
		struct pf_features unknown = pf_features_unknown(&c->super.features);
		if (c->err)
			continue;
		if (unknown.incompat)
			return pf_diag_set(a->diag, -PF_EFEATURE,
					   "%s: %s (format version %u) uses features that this program does not know: "
					   "incompat %s; "
					   "use a newer poolfs",
					   c->io->name, pf_text_pool(&c->super, pool), c->super.version,
					   pf_text_bits(unknown.incompat, bits));
		if (unknown.ro_compat && (a->flags & PF_SET_WRITE))
			return pf_text_only_readable(c->io->name, &c->super,
						     "use a newer poolfs, or only read it (mount -o ro, fsck.poolfs -n)",
						     a->diag);
	}
	return 0;
}

static int choose_winner(struct assembly *a)
{
	char pool[PF_TEXT_BYTES];
	for (unsigned i = 0; i < a->nr; i++) {
		const struct candidate *c = &a->candidates[i];
		if (!c->err && (!a->winner || c->super.generation > a->winner->super.generation))
			a->winner = c;
	}
	pf_text_pool(&a->winner->super, a->pool);
	for (unsigned i = 0; i < a->nr; i++) {
		const struct candidate *c = &a->candidates[i];
		if (!c->err && memcmp(c->super.pool_uuid, a->winner->super.pool_uuid, 16) != 0)
			return pf_diag_set(
				a->diag, -PF_EMEMBER_FOREIGN,
				"members of two pools: %s belongs to %s, %s to %s; name the members of one pool only",
				a->winner->io->name, a->pool, c->io->name, pf_text_pool(&c->super, pool));
	}
	return 0;
}

/* -- who is who ----------------------------------------------------------------------------------------------------- */
static int identify(struct assembly *a)
{
	const struct pf_super *super = &a->winner->super;
	char uuid[PF_TEXT_BYTES];
	for (unsigned i = 0; i < a->nr; i++) {
		const struct candidate *c = &a->candidates[i];
		unsigned id = 0;
		if (c->err)
			continue;
		while (id < super->nr_members && memcmp(super->members[id].uuid, c->super.member_uuid, 16) != 0)
			id++;
		if (id == super->nr_members)
			return pf_diag_set(
				a->diag, -PF_EMEMBER_FOREIGN,
				"%s: its uuid %s is not one of the %u members of %s (any more); leave it out",
				c->io->name, pf_text_uuid(c->super.member_uuid, uuid), super->nr_members, a->pool);
		if (a->found[id])
			return pf_diag_set(a->diag, -PF_EMEMBER_TWICE,
					   "%s and %s are both member %u of %u of %s; name it once, and if one is a "
					   "copy (a clone, "
					   "a loop device of the same image), leave the copy out",
					   a->found[id]->io->name, c->io->name, id + 1, super->nr_members, a->pool);
		a->found[id] = c;
	}
	return 0;
}

static uint64_t io_blocks(const struct pf_io *io)
{
	return io->size_bytes / PF_BLOCK_SIZE;
}

/* 1: the table root that the winner names for @id is on @io; 0: it is not; or -EIO, -ENOMEM. */
static int root_is_there(struct assembly *a, unsigned id, struct pf_io *io)
{
	const struct pf_super *super = &a->winner->super;
	const struct pf_member_row *row = &super->members[id];
	struct pf_geometry geo;
	if (pf_geometry_init(&geo, row->size_blocks, row->log_blocks) != 0 || io_blocks(io) < row->size_blocks)
		return 0;
	size_t len = geo.root_blocks * PF_BLOCK_SIZE;
	struct pf_disk_table_head *root = aligned_alloc(PF_BLOCK_SIZE, len);
	if (!root)
		return -ENOMEM;
	int ret = pf_io_read(io, (geo.root_block + row->root_slot * geo.root_blocks) * PF_BLOCK_SIZE, root, len);
	if (!ret) {
		bool named = pf_get64(root->magic) == PF_TABLE_ROOT_MAGIC && pf_get64(root->crc) == row->root_crc &&
			     pf_get64(root->generation) == row->root_generation && root->member_id == id &&
			     root->slot == row->root_slot && memcmp(root->pool_uuid, super->pool_uuid, 16) == 0;
		root->crc = pf_le64(0);
		ret = named && pf_crc64(root, len) == row->root_crc;
	}
	free(root);
	return ret;
}

/* Members without a good superblock, by elimination and by their table root (rule 20: an unreadable superblock proves
 * nothing). */
static int identify_by_root(struct assembly *a)
{
	for (unsigned i = 0; i < a->nr; i++) {
		const struct candidate *c = &a->candidates[i];
		unsigned id = 0;
		if (!c->err)
			continue;
		for (; id < a->winner->super.nr_members; id++) {
			int there = a->found[id] ? 0 : root_is_there(a, id, c->io);
			if (there == -ENOMEM)
				return pf_diag_set(a->diag, there, "%s: out of memory", c->io->name);
			if (there > 0)
				break;
		}
		if (id == a->winner->super.nr_members)
			return no_super(c, a->diag);
		pf_log(a->set->env, PF_LOG_WARNING,
		       "%s: has no good superblock, but the group table of member %u of %s", c->io->name, id + 1,
		       a->pool);
		a->found[id] = c;
	}
	return 0;
}

static int check_complete(struct assembly *a)
{
	const struct pf_super *super = &a->winner->super;
	char list[512] = "", uuid[PF_TEXT_BYTES], size[PF_TEXT_BYTES];
	size_t len = 0;
	unsigned nr_missing = 0;
	for (unsigned id = 0; id < super->nr_members; id++) {
		const struct pf_member_row *row = &super->members[id];
		if (a->found[id])
			continue;
		nr_missing++;
		if (len < sizeof(list) - 1)
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%smember %u (%s, %s, uuid %s)",
						nr_missing > 1 ? ", " : "", id + 1,
						row->flags & PF_MEMBER_RAW ? "partition or disk" : "image file",
						pf_text_size(row->size_blocks * PF_BLOCK_SIZE, size),
						pf_text_uuid(row->uuid, uuid));
	}
	if (nr_missing == 0)
		return 0;
	return pf_diag_set(a->diag, -PF_EMEMBER_MISSING,
			   "%s: %u of its %u members %s missing: %s; name %s too, or plug the disk in", a->pool,
			   nr_missing, super->nr_members, nr_missing == 1 ? "is" : "are", list,
			   nr_missing == 1 ? "it" : "them");
}

/* -- is each the right one ------------------------------------------------------------------------------------------ */
static int check_sizes(struct assembly *a)
{
	char is[PF_TEXT_BYTES], was[PF_TEXT_BYTES];
	for (unsigned id = 0; id < a->winner->super.nr_members; id++) {
		const struct pf_io *io = a->found[id]->io;
		uint64_t blocks = a->winner->super.members[id].size_blocks;
		if (io_blocks(io) < blocks)
			return pf_diag_set(a->diag, -PF_EMEMBER_TRUNCATED,
					   "%s: truncated: member %u of %s had %s (%llu bytes), now it has %s; restore "
					   "it from a copy, "
					   "or undo what made the %s smaller",
					   io->name, id + 1, a->pool, pf_text_size(blocks * PF_BLOCK_SIZE, was),
					   (unsigned long long)(blocks * PF_BLOCK_SIZE),
					   pf_text_size(io->size_bytes, is),
					   io->kind == PF_IO_BLOCK_DEVICE ? "partition" : "file");
		if (io->read_only && (a->flags & PF_SET_WRITE))
			return pf_diag_set(a->diag, -EROFS, "%s: opened read-only; mount with -o ro, or allow writing",
					   io->name);
	}
	return 0;
}

/* Is @own out of the winner's past (set.h I2)? */
static bool has_diverged(const struct pf_super *winner, const struct pf_super *own)
{
	uint64_t ended = winner->generation; /* of the epoch looked at: where the next one began */
	for (unsigned i = 0; i < PF_MAX_EPOCHS && winner->epochs[i].id; i++) {
		if (winner->epochs[i].id == own->epochs[0].id)
			return own->generation > ended;
		ended = winner->epochs[i].last_generation;
	}
	/* older than the list goes back (it is full), or than the first mount (there is no epoch before it) */
	bool before_list = winner->epochs[PF_MAX_EPOCHS - 1].id || !own->epochs[0].id;
	return !before_list || own->generation > ended;
}

static int refuse_outdated(struct assembly *a, unsigned id, bool diverged)
{
	const struct candidate *c = a->found[id];
	char own[PF_TEXT_BYTES], theirs[PF_TEXT_BYTES];
	pf_text_time(c->super.written_ns, own);
	pf_text_time(a->winner->super.written_ns, theirs);
	if (diverged)
		return pf_diag_set(a->diag, -PF_EMEMBER_DIVERGED,
				   "%s: member %u of %s was used apart from the others: it was last written on %s, %s "
				   "on %s, and neither "
				   "knows of the other; name the members that were last used together",
				   c->io->name, id + 1, a->pool, own, a->winner->io->name, theirs);
	return pf_diag_set(
		a->diag, -PF_EMEMBER_STALE,
		"%s: member %u of %s is older than the pool: last written on %s, %s on %s (a clone, or restored from a "
		"backup); name the present one, or accept the loss of what was written since by fsck.poolfs -y",
		c->io->name, id + 1, a->pool, own, a->winner->io->name, theirs);
}

/* What the others have written without it is not on it: its maps would give away blocks that are in use. */
static int refuse_failed(struct assembly *a, unsigned id)
{
	char when[PF_TEXT_BYTES];
	return pf_diag_set(a->diag, -PF_EMEMBER_FAILED,
			   "%s: member %u of %s failed while the pool was in use, which went on without it until %s; check the disk, then "
			   "take it back by fsck.poolfs -y on all members, or mount read-only",
			   a->found[id]->io->name, id + 1, a->pool, pf_text_time(a->winner->super.written_ns, when));
}

static int check_current(struct assembly *a, unsigned id)
{
	const struct candidate *c = a->found[id];
	const struct pf_super *winner = &a->winner->super;
	const struct pf_member_row *row = &winner->members[id], *own = &c->super.members[id];
	if (row->state == PF_MEMBER_FAILED && (a->flags & PF_SET_WRITE) && !(a->flags & PF_SET_REPAIR))
		return refuse_failed(a, id);
	if (c == a->winner || c->err)
		return 0;
	bool diverged = has_diverged(winner, &c->super);
	bool same_root = own->root_generation == row->root_generation && own->root_crc == row->root_crc &&
			 own->root_slot == row->root_slot;
	int there = !diverged && !same_root ? root_is_there(a, id, c->io) : 0;
	if (there == -ENOMEM || (there < 0 && !(a->flags & PF_SET_REPAIR)))
		return pf_diag_set(a->diag, there,
				   "%s: its group table cannot be read: %s; check the disk and its cable", c->io->name,
				   pf_strerror(there));
	if (!diverged && (same_root || there > 0))
		return 0;
	a->stale[id] = true;
	return a->flags & PF_SET_REPAIR ? 0 : refuse_outdated(a, id, diverged);
}

static void adopt(struct assembly *a, struct pf_io **ios)
{
	struct pf_set *set = a->set;
	set->super = a->winner->super;
	set->nr = set->super.nr_members;
	for (unsigned id = 0; id < set->nr; id++) {
		const struct pf_member_row *row = &set->super.members[id];
		struct pf_member *m = &set->members[id];
		m->id = id;
		m->io = a->found[id]->io;
		m->super_generation = a->found[id]->err ? 0 : a->found[id]->super.generation;
		m->stale = a->stale[id];
		int err = pf_geometry_init(&m->geo, row->size_blocks, row->log_blocks);
		assert(err == 0); /* pf_super_unpack() has checked it */
		(void)err;
	}
	memset(ios, 0, a->nr * sizeof(*ios));
}

int pf_assemble(struct pf_set *set, struct pf_io **ios, unsigned nr, unsigned flags, struct pf_diag *diag)
{
	struct assembly a = { .set = set, .diag = diag, .flags = flags, .nr = nr };
	a.candidates = calloc(nr, sizeof(*a.candidates));
	if (!a.candidates)
		return pf_diag_set(diag, -ENOMEM, "out of memory");

	int err = read_supers(&a, ios);
	if (!err)
		err = check_features(&a);
	if (!err)
		err = choose_winner(&a);
	if (!err)
		err = identify(&a);
	if (!err)
		err = identify_by_root(&a);
	if (!err)
		err = check_complete(&a);
	if (!err)
		err = check_sizes(&a);
	for (unsigned id = 0; !err && id < a.winner->super.nr_members; id++)
		err = check_current(&a, id);
	if (!err)
		adopt(&a, ios);
	free(a.candidates);
	return err;
}
