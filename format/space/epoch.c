/* SPDX-License-Identifier: MIT
 *
 * Readers (I4). Each member counts the readers that entered in its present epoch e and in e - 1; older ones are
 * gone. What was freed before a freeze carries the epoch t of that moment: a reader that may still hold it entered
 * in t or earlier. It is released when it is durable and the readers of t are gone, which takes e > t; e moves on
 * when the readers of e - 1 are gone.
 *
 * A reader enters with the tree lock held, a freeze has it exclusively: a reader that entered after the freeze
 * looked into a tree that does not name the blocks any more. A reader that took its parity just before e moved on is
 * counted with the newer or the older readers, and both are waited for: entering needs no lock.
 *
 * No lost wake-up: a leaving reader first counts itself out, then looks at has_waiting; who adds to waiting[] sets
 * has_waiting first, then looks at the counters (all sequentially consistent).
 */
#include "space/private.h"

#include <time.h>

enum { READER_WAIT_S = 1, DISCARD_WAIT_S = 5, RUNS_AT_ONCE = 64 /* released with the lock held */ };

unsigned pf_space_reader_enter(struct pf_space *space, unsigned member)
{
	assert(member < space->nr);
	struct pf_space_member *m = &space->members[member];
	unsigned ticket = (unsigned)(atomic_load(&m->epoch) & 1);
	atomic_fetch_add(&m->readers[ticket], 1);
	return ticket;
}

void pf_space_reader_exit(struct pf_space *space, unsigned member, unsigned ticket)
{
	assert(member < space->nr && ticket <= 1);
	struct pf_space_member *m = &space->members[member];
	unsigned before = atomic_fetch_sub(&m->readers[ticket], 1);
	assert(before > 0);
	if (before == 1 && atomic_load(&m->has_waiting)) {
		pthread_mutex_lock(&space->lock);
		pf_epoch_release(space, m);
		pthread_mutex_unlock(&space->lock);
	}
}

void pf_epoch_freeze(struct pf_space_member *m)
{
	uint64_t e = atomic_load(&m->epoch);
	m->frozen_epoch = e;
	/* new readers into a new epoch, or a steady stream of them would never leave the old one empty */
	if (!m->waiting[(e - 1) & 1].first && !atomic_load(&m->readers[(e - 1) & 1]))
		atomic_store(&m->epoch, e + 1);
}

void pf_epoch_durable(struct pf_space *space, struct pf_space_member *m)
{
	if (m->frozen.freed.first) {
		uint64_t e = atomic_load(&m->epoch);
		uint64_t tag = m->frozen_epoch < e ? e - 1 : e; /* older ones have even less to wait for */
		pf_run_list_move(&m->waiting[tag & 1], &m->frozen.freed);
		atomic_store(&m->has_waiting, true);
	}
	pf_epoch_release(space, m);
}

/* What of the run lies in its first group; *run is the rest. */
static struct pf_run first_part(struct pf_run *run)
{
	uint64_t nr = PF_GROUP_BLOCKS - pf_addr_block(run->addr) % PF_GROUP_BLOCKS;
	struct pf_run part = { run->addr, run->nr < nr ? run->nr : nr };
	run->addr += part.nr;
	run->nr -= part.nr;
	return part;
}

void pf_epoch_free_list(struct pf_space *space, struct pf_space_member *m, struct pf_run_list *list)
{
	/* with the rule broken they were released when they were freed, and may be in use again */
	bool again = !pf_breaks(space->env, PF_BREAK_REUSE_BEFORE_DURABLE);
	unsigned nr_parts = 0;
	m->releasing_blocks += list->blocks;
	for (const struct pf_run_chunk *chunk = list->first; chunk; chunk = chunk->next) {
		for (unsigned i = 0; i < chunk->nr; i++) {
			struct pf_run rest = chunk->runs[i];
			while (rest.nr) { /* a large file was one run over many groups */
				struct pf_run part = first_part(&rest);
				m->releasing_blocks -= part.nr;
				if (again)
					pf_group_release(m, part);
				/* others may allocate what is free already, and load and evict maps: what is still to come has its
				 * bits set in 'used', nobody else has it, and each part looks for its maps by itself */
				if (++nr_parts % RUNS_AT_ONCE == 0)
					pf_space_give_way(space);
			}
		}
	}
	if (list->first) {
		space->released++;
		pthread_cond_broadcast(&space->release);
	}
	pf_run_list_clear(space, list);
}

uint64_t pf_space_released(struct pf_space *space)
{
	pthread_mutex_lock(&space->lock);
	uint64_t released = space->released;
	pthread_mutex_unlock(&space->lock);
	return released;
}

static bool any_waiting(const struct pf_space *space)
{
	for (unsigned i = 0; i < space->nr; i++) {
		const struct pf_space_member *m = &space->members[i];
		if (m->waiting[0].first || m->waiting[1].first || m->releasing_blocks || pf_discard_blocks(&m->discard))
			return true;
	}
	return false;
}

static bool any_flying(const struct pf_space *space)
{
	bool any = false;
	for (unsigned i = 0; i < space->nr; i++)
		any = any || space->members[i].discard.flying_blocks;
	return any;
}

bool pf_space_await_release(struct pf_space *space, uint64_t released)
{
	struct timespec start, end;
	clock_gettime(CLOCK_MONOTONIC, &start);
	pthread_mutex_lock(&space->lock);
	pf_discard_drop(space);
	while (space->released == released && any_waiting(space)) {
		end = start;
		end.tv_sec += any_flying(space) ? DISCARD_WAIT_S : READER_WAIT_S;
		if (pthread_cond_timedwait(&space->release, &space->lock, &end))
			break;
	}
	bool come = space->released != released;
	pthread_mutex_unlock(&space->lock);
	return come;
}

void pf_epoch_release(struct pf_space *space, struct pf_space_member *m)
{
	struct pf_run_list free_now = { 0 };
	for (;;) {
		uint64_t e = atomic_load(&m->epoch);
		if (atomic_load(&m->readers[(e - 1) & 1]))
			break;
		pf_run_list_move(&free_now, &m->waiting[(e - 1) & 1]);
		if (!m->waiting[e & 1].first) {
			atomic_store(&m->has_waiting, false);
			break;
		}
		atomic_store(&m->epoch, e + 1);
	}
	if (!pf_discard_accept(space, m, &free_now))
		pf_epoch_free_list(space, m, &free_now);
}
