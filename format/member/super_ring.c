/* SPDX-License-Identifier: MIT */
#include "member/super_ring.h"

#include "ondisk/geometry.h"

#include <stdlib.h>
#include <string.h>

struct search {
	struct pf_aio *aio;
	struct pf_io *io;
	uint8_t *blocks; /* one per slot of both rings */
	struct pf_super best, slot;
	bool found;
	unsigned nr_bad;
	int bad_err, io_err; /* of the first such slot */
};

/* Where the backup ring of this very superblock lies; 0 when its fields are not ours to understand. */
static uint64_t own_backup_block(const struct pf_super *super)
{
	const struct pf_member_row *own = &super->members[super->member_id];
	struct pf_geometry geo;
	if (pf_features_unknown(&super->features).incompat ||
	    pf_geometry_init(&geo, own->size_blocks, own->log_blocks) != 0)
		return 0;
	return geo.backup_block;
}

static bool is_newer(const struct pf_super *a, const struct pf_super *b)
{
	/* the remains of an earlier pool on this member */
	if (memcmp(a->pool_uuid, b->pool_uuid, sizeof(a->pool_uuid)) != 0)
		return a->created_ns > b->created_ns;
	if (a->generation != b->generation)
		return a->generation > b->generation;
	return a->written_ns > b->written_ns;
}

/* @backup_block: 0 for ring A. */
static void judge_slot(struct search *s, const void *block, unsigned slot, uint64_t backup_block)
{
	int err = pf_super_unpack(block, &s->slot);
	if (err == -PF_ESB_MAGIC)
		return;
	if (err) {
		s->nr_bad++;
		s->bad_err = s->bad_err ? s->bad_err : err;
		return;
	}
	uint64_t own_backup = own_backup_block(&s->slot);
	if (s->slot.generation % PF_SUPER_SLOTS != slot || (backup_block && own_backup && own_backup != backup_block)) {
		s->nr_bad++;
		return;
	}
	if (!s->found || is_newer(&s->slot, &s->best))
		s->best = s->slot;
	s->found = true;
}

/* Reads and judges the slots at @first_block that lie inside the member. */
static void read_ring(struct search *s, uint64_t first_block, bool backup)
{
	struct pf_aio_req reqs[PF_SUPER_SLOTS];
	unsigned nr = 0;
	for (; nr < PF_SUPER_SLOTS; nr++) {
		uint64_t off = (first_block + nr * PF_SUPER_SPACING_BLOCKS) * PF_BLOCK_SIZE;
		if (off + PF_BLOCK_SIZE > s->io->size_bytes)
			break;
		reqs[nr] = (struct pf_aio_req){ .io = s->io,
						.op = PF_AIO_READ,
						.off_bytes = off,
						.buf = s->blocks + nr * PF_BLOCK_SIZE,
						.len_bytes = PF_BLOCK_SIZE };
	}
	pf_aio_run(s->aio, reqs, nr);
	for (unsigned i = 0; i < nr; i++) {
		if (reqs[i].result == 0)
			judge_slot(s, reqs[i].buf, i, backup ? first_block : 0);
		else if (!s->io_err)
			s->io_err = reqs[i].result;
	}
}

int pf_super_ring_read(struct pf_aio *aio, struct pf_io *io, struct pf_super *out, unsigned *nr_bad)
{
	struct search *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;
	if (!s)
		goto out;
	s->aio = aio;
	s->io = io;
	s->blocks = aligned_alloc(PF_BLOCK_SIZE, PF_SUPER_SLOTS * PF_BLOCK_SIZE);
	if (!s->blocks)
		goto out;

	uint64_t backup_block = 0;
	if (io->size_bytes >= PF_MIN_MEMBER_BYTES)
		backup_block = io->size_bytes / PF_BLOCK_SIZE - PF_SUPER_RING_BLOCKS;
	read_ring(s, PF_SUPER_FIRST_BLOCK, false);
	if (backup_block)
		read_ring(s, backup_block, true);
	/* a file that has grown since: the ring is where the end was */
	uint64_t own_backup = s->found ? own_backup_block(&s->best) : 0;
	if (own_backup && own_backup < backup_block)
		read_ring(s, own_backup, true);

	err = s->found ? 0 : s->bad_err ? s->bad_err : s->io_err ? s->io_err : -PF_EMEMBER_NONE;
	if (s->found)
		*out = s->best;
	if (nr_bad)
		*nr_bad = s->nr_bad;
out:
	if (s)
		free(s->blocks);
	free(s);
	return err;
}
