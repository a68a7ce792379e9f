/* SPDX-License-Identifier: MIT
 * Which members are told of free space, and telling them of all of it. */
#include "commit/checkpoint.h"
#include "object/orphan.h"
#include "pool/pool_int.h"
#include "space/discard.h"

#define CLOSE_NS INT64_C(10000000000) /* an unmount does not wait longer for discards */

void pf_pool_begin_discards(struct pf_pool *pool, enum pf_discard_mode mode)
{
	uint32_t members = 0;
	for (unsigned i = 0; i < pool->set->nr; i++) {
		const struct pf_io *io = pool->set->members[i].io;
		bool sparse = io->kind == PF_IO_FILE && io->sparse;
		if (mode == PF_DISCARD_ALL || (mode == PF_DISCARD_SPARSE && sparse))
			members |= UINT32_C(1) << i;
	}
	if (pool->reclaim && !pool->read_only && !pool->log_pending)
		pf_space_set_discard(pool->space, members);
}

void pf_pool_end_discards(struct pf_pool *pool)
{
	int64_t begin = pf_now_ns(pool->env), now = begin;
	while (now >= begin && now - begin < CLOSE_NS && pf_space_discard_step(pool->space))
		now = pf_now_ns(pool->env);
}

static int may_trim(struct pf_pool *pool)
{
	/* what the log names is not in use in the maps until it has been redone */
	return pool->log_pending ? -EROFS : pf_pool_writable(pool);
}

/* From a place on all members one behind the other to one of them; behind the last one: its end. */
static void find_place(const struct pf_pool *pool, uint64_t place_bytes, unsigned *member, uint64_t *block)
{
	uint64_t place = place_bytes / PF_BLOCK_SIZE;
	for (*member = 0; *member + 1 < pool->set->nr && place >= pool->set->members[*member].geo.size_blocks; ++*member)
		place -= pool->set->members[*member].geo.size_blocks;
	*block = place;
}

void pf_pool_trim_range(struct pf_pool *pool, uint64_t start_bytes, uint64_t len_bytes, struct pf_trim *trim)
{
	uint64_t end_bytes = len_bytes < UINT64_MAX - start_bytes ? start_bytes + len_bytes : UINT64_MAX;
	find_place(pool, start_bytes, &trim->member, &trim->block);
	find_place(pool, end_bytes, &trim->end_member, &trim->end_block);
}

int pf_pool_trim_begin(struct pf_pool *pool)
{
	int err = may_trim(pool);
	if (err)
		return err;
	while ((err = pf_orphan_reap(pool)) > 0)
		;
	return err ? err : pf_commit_sync(pool);
}

int pf_pool_trim_step(struct pf_pool *pool, struct pf_trim *trim)
{
	int err = may_trim(pool);
	return err ? err : pf_space_trim_step(pool->space, trim);
}

uint64_t pf_pool_trim_place(struct pf_pool *pool, const struct pf_trim *trim, uint64_t *total_bytes)
{
	uint64_t done = 0, total = 0;
	for (unsigned i = 0; i < pool->set->nr; i++) {
		uint64_t size = pool->set->members[i].geo.size_blocks;
		done += i < trim->member ? size : i == trim->member ? trim->block : 0;
		total += size;
	}
	*total_bytes = total * PF_BLOCK_SIZE;
	return (done < total ? done : total) * PF_BLOCK_SIZE;
}
