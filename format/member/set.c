/* SPDX-License-Identifier: MIT */
#include "member/set.h"

#include "member/assemble.h"
#include "member/same.h"
#include "member/super_ring.h"

#include <stdlib.h>
#include <string.h>

/* -- opening -------------------------------------------------------------------------------------------------------- */
static void close_ios(struct pf_io **ios, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		pf_io_close(ios[i]);
}

static int check_number(unsigned nr, struct pf_diag *diag)
{
	/* the constant, so that the compiler sees the bound of what follows */
	if (nr == 0) {
		pf_diag_set(diag, -EINVAL, "no members are named; name the partitions or image files of the pool");
		return -EINVAL;
	}
	if (nr > PF_MAX_MEMBERS) {
		pf_diag_set(diag, -EINVAL, "%u members are named, but a pool has at most %u", nr, PF_MAX_MEMBERS);
		return -EINVAL;
	}
	return 0;
}

static int new_set(const struct pf_env *env, struct pf_set **out)
{
	struct pf_set *set = calloc(1, sizeof(*set));
	int err = set ? pf_aio_create(&set->aio) : -ENOMEM;
	if (err) {
		free(set);
		return err;
	}
	set->env = env;
	pthread_mutex_init(&set->fail_lock, NULL);
	pthread_mutex_init(&set->watch_lock, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&set->watch_stopped, &attr);
	pthread_condattr_destroy(&attr);
	*out = set;
	return 0;
}

int pf_set_open_ios(struct pf_io **ios, unsigned nr, unsigned flags, const struct pf_env *env, struct pf_set **out,
		    struct pf_diag *diag)
{
	struct pf_io *owned[PF_MAX_MEMBERS];
	struct pf_set *set = NULL;
	*out = NULL;
	int err = check_number(nr, diag);
	if (err) {
		close_ios(ios, nr);
		return err;
	}
	memcpy(owned, ios, nr * sizeof(*ios));
	err = new_set(env, &set);
	if (err)
		pf_diag_set(diag, err, "out of memory");
	else
		err = pf_assemble(set, owned, nr, flags, diag);
	if (err) {
		close_ios(owned, nr);
		pf_set_close(set);
		return err;
	}
	set->read_only = !(flags & PF_SET_WRITE);
	*out = set;
	return 0;
}

int pf_set_open(const char *const *paths, unsigned nr_paths, unsigned flags, unsigned wait_ms, const struct pf_env *env,
		struct pf_set **out, struct pf_diag *diag)
{
	struct pf_io *ios[PF_MAX_MEMBERS];
	int io_flags =
		(flags & PF_SET_WRITE ? PF_IO_OPEN_WRITE : 0) | (flags & PF_SET_UNLOCKED ? PF_IO_OPEN_UNLOCKED : 0);
	*out = NULL;
	int err = check_number(nr_paths, diag);
	if (!err)
		err = pf_same_check(paths, nr_paths, diag);
	unsigned nr = 0;
	while (!err && nr < nr_paths) {
		err = pf_io_open(paths[nr], io_flags, wait_ms, env, &ios[nr], diag);
		nr += err == 0;
	}
	if (err) {
		close_ios(ios, nr);
		return err;
	}
	return pf_set_open_ios(ios, nr, flags, env, out, diag);
}

int pf_set_new(struct pf_io **ios, unsigned nr, const struct pf_env *env, struct pf_set **out)
{
	struct pf_set *set = NULL;
	*out = NULL;
	int err = check_number(nr, NULL);
	if (!err)
		err = new_set(env, &set);
	for (unsigned i = 0; !err && i < nr; i++) {
		uint64_t blocks = ios[i]->size_bytes / PF_BLOCK_SIZE;
		set->members[i].id = i;
		err = pf_geometry_init(&set->members[i].geo, blocks, pf_geometry_log_blocks(blocks));
	}
	if (err) {
		close_ios(ios, nr);
		pf_set_close(set);
		return err;
	}
	for (unsigned i = 0; i < nr; i++)
		set->members[i].io = ios[i];
	set->nr = nr;
	*out = set;
	return 0;
}

void pf_set_close(struct pf_set *set)
{
	if (!set)
		return;
	pf_set_stop_watch(set);
	for (unsigned i = 0; i < set->nr; i++)
		pf_aio_close_io(set->aio, set->members[i].io);
	pf_aio_destroy(set->aio);
	pthread_mutex_destroy(&set->fail_lock);
	pthread_mutex_destroy(&set->watch_lock);
	pthread_cond_destroy(&set->watch_stopped);
	free(set);
}

/* -- superblocks ---------------------------------------------------------------------------------------------------- */
int pf_set_read_super(struct pf_io *io, struct pf_super *out, unsigned *nr_bad)
{
	struct pf_aio *aio;
	int err = pf_aio_create(&aio);
	if (!err)
		err = pf_super_ring_read(aio, io, out, nr_bad);
	pf_aio_destroy(aio);
	return err;
}

/* The two requests of each member are in reqs[2 * i] and reqs[2 * i + 1]. */
static int judge_copies(struct pf_set *set, const struct pf_aio_req *reqs, unsigned nr, const unsigned *ids,
			uint32_t *failed)
{
	int first = 0;
	for (unsigned i = 0; i < nr; i++) {
		const struct pf_aio_req *a = &reqs[2 * i], *b = a + 1;
		if (a->result == 0 && b->result == 0)
			continue;
		if (a->result == 0 || b->result == 0) {
			pf_log(set->env, PF_LOG_WARNING, "%s: the %s copy of the superblock could not be written: %s",
			       a->io->name, a->result ? "first" : "second",
			       pf_strerror(a->result ? a->result : b->result));
			continue;
		}
		*failed |= UINT32_C(1) << ids[i];
		if (!first)
			first = a->result;
	}
	return first;
}

int pf_set_write_super(struct pf_set *set, const struct pf_super *super, uint32_t mask, uint32_t *failed)
{
	struct pf_aio_req reqs[2 * PF_MAX_MEMBERS];
	unsigned ids[PF_MAX_MEMBERS], nr = 0;
	uint32_t failed_here = 0;
	unsigned slot = super->generation % PF_SUPER_SLOTS;

	int err = -ENOMEM;
	uint8_t *blocks = aligned_alloc(PF_BLOCK_SIZE, (size_t)PF_MAX_MEMBERS * PF_BLOCK_SIZE);
	if (!blocks) {
		failed_here = mask;
		goto out;
	}
	for (unsigned id = 0; id < set->nr; id++) {
		const struct pf_member *m = &set->members[id];
		if (!(mask >> id & 1))
			continue;
		void *block = blocks + (size_t)nr * PF_BLOCK_SIZE;
		pf_super_pack(super, id, block);
		for (unsigned ring = 0; ring < 2; ring++) {
			uint64_t off = pf_geometry_super_block(&m->geo, ring, slot) * PF_BLOCK_SIZE;
			reqs[2 * nr + ring] = (struct pf_aio_req){ .io = m->io,
								   .op = PF_AIO_WRITE,
								   .off_bytes = off,
								   .buf = block,
								   .len_bytes = PF_BLOCK_SIZE };
		}
		ids[nr++] = id;
	}
	pf_aio_run(set->aio, reqs, 2 * nr);
	err = judge_copies(set, reqs, nr, ids, &failed_here);
	for (unsigned i = 0; i < nr; i++) {
		if (!(failed_here >> ids[i] & 1))
			set->members[ids[i]].super_generation = super->generation;
	}
out:
	free(blocks);
	if (failed)
		*failed = failed_here;
	return err;
}

/* What of @mask is to be flushed: *failed gets members that were given up too early, *flushed those that need no flush. */
static unsigned list_dirty(struct pf_set *set, uint32_t mask, unsigned *ids, struct pf_io **ios, uint32_t *failed, uint32_t *flushed)
{
	unsigned nr = 0;
	for (unsigned id = 0; id < set->nr; id++) {
		struct pf_io *io = set->members[id].io;
		uint32_t bit = UINT32_C(1) << id;
		if (!(mask & bit))
			continue;
		if (!pf_io_dirty(io)) {
			*flushed |= bit;
		} else if (pf_io_failed(io)) {
			*failed |= bit;
		} else {
			ids[nr] = id;
			ios[nr++] = io;
		}
	}
	return nr;
}

/* Change @nr and all before it are durable on the members of @mask. */
static void note_flushed(struct pf_set *set, uint32_t mask, uint64_t nr)
{
	for (unsigned id = 0; id < set->nr; id++) {
		struct pf_member *m = &set->members[id];
		uint_fast64_t old = atomic_load(&m->flushed);
		while ((mask >> id & 1) && old < nr && !atomic_compare_exchange_weak(&m->flushed, &old, nr))
			;
	}
}

int pf_set_flush(struct pf_set *set, uint32_t mask, uint32_t *failed)
{
	struct pf_io *ios[PF_MAX_MEMBERS];
	unsigned ids[PF_MAX_MEMBERS];
	int results[PF_MAX_MEMBERS];
	uint32_t failed_here = 0, failed_before = 0, flushed = 0;
	uint64_t nr_changes = atomic_load(&set->nr_changes);
	unsigned nr = list_dirty(set, mask, ids, ios, &failed_before, &flushed);
	int err = pf_aio_flush(set->aio, ios, nr, results);
	for (unsigned i = 0; i < nr; i++)
		*(results[i] < 0 ? &failed_here : &flushed) |= UINT32_C(1) << ids[i];
	note_flushed(set, flushed, nr_changes);
	if (failed_here && set->may_lose)
		pf_set_fail(set, failed_here, "flush", err);
	if (failed)
		*failed = failed_here | failed_before;
	return err ? err : failed_before ? -EIO : 0;
}

/* -- blocks by address ---------------------------------------------------------------------------------------------- */
static bool on_member(const struct pf_set *set, pf_addr addr, uint64_t nr_blocks)
{
	unsigned id = pf_addr_member(addr);
	uint64_t block = pf_addr_block(addr);
	return id < set->nr && addr == pf_addr_make(id, block) && block <= set->members[id].geo.size_blocks &&
	       nr_blocks <= set->members[id].geo.size_blocks - block;
}

bool pf_set_addr_valid(const struct pf_set *set, pf_addr addr, uint64_t nr_blocks)
{
	if (!on_member(set, addr, nr_blocks))
		return false;
	const struct pf_geometry *geo = &set->members[pf_addr_member(addr)].geo;
	uint64_t block = pf_addr_block(addr);
	return block >= geo->data_start && block + nr_blocks <= geo->data_end;
}

int pf_set_read(struct pf_set *set, pf_addr addr, void *buf, uint64_t nr_blocks)
{
	if (!on_member(set, addr, nr_blocks))
		return -EIO;
	return pf_io_read(set->members[pf_addr_member(addr)].io, pf_addr_block(addr) * PF_BLOCK_SIZE, buf,
			  nr_blocks * PF_BLOCK_SIZE);
}

int pf_set_write(struct pf_set *set, pf_addr addr, const void *buf, uint64_t nr_blocks)
{
	if (!on_member(set, addr, nr_blocks))
		return -EIO;
	return pf_io_write(set->members[pf_addr_member(addr)].io, pf_addr_block(addr) * PF_BLOCK_SIZE, buf,
			   nr_blocks * PF_BLOCK_SIZE);
}

void pf_set_req(struct pf_set *set, struct pf_aio_req *req, enum pf_aio_op op, pf_addr addr, void *buf,
		uint64_t nr_blocks)
{
	assert(on_member(set, addr, nr_blocks));
	*req = (struct pf_aio_req){
		.io = set->members[pf_addr_member(addr)].io,
		.op = op,
		.off_bytes = pf_addr_block(addr) * PF_BLOCK_SIZE,
		.buf = buf,
		.len_bytes = nr_blocks * PF_BLOCK_SIZE,
	};
}
