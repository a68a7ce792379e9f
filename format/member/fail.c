/* SPDX-License-Identifier: MIT
 * Members that fail while the pool is in use (set.h I5, I6). */
#include "member/set.h"

void pf_set_allow_loss(struct pf_set *set)
{
	set->may_lose = set->nr > 1;
}

static void tell(struct pf_set *set, unsigned id, const char *what, int err)
{
	if (err == -PF_EMEMBER_SILENT) {
		pf_log(set->env, PF_LOG_ERROR,
		       "%s: no answer for more than %u seconds (mount option silence=): the pool goes on without this member; files on it give "
		       "errors, and what was written to it last may be lost (fsync says of which files); check the disk and its cable, or the "
		       "host that it lies on, then unmount and run fsck.poolfs, which takes it back",
		       set->members[id].io->name, set->silence_seconds);
		return;
	}
	pf_log(set->env, PF_LOG_ERROR,
	       "%s: a %s failed (%s): the pool goes on without this member; files on it give errors, and what was written to it last may "
	       "be lost (fsync says of which files); check the disk and its cable, then unmount and run fsck.poolfs, which takes it back",
	       set->members[id].io->name, what, pf_strerror(err));
}

uint32_t pf_set_fail(struct pf_set *set, uint32_t mask, const char *what, int err)
{
	uint32_t needed = mask;
	if (!set->may_lose)
		return needed;
	pthread_mutex_lock(&set->fail_lock);
	uint32_t before = pf_set_failed(set), meta = pf_super_meta(&set->super);
	needed = meta & ~before & ~mask ? 0 : mask & meta & ~before;
	uint32_t fresh = mask & ~needed & ~before;
	/* first the mask: an io that fails without being in it is one that the pool cannot do without */
	atomic_fetch_or(&set->failed, fresh);
	for (unsigned id = 0; id < set->nr; id++) {
		if (!(fresh >> id & 1))
			continue;
		atomic_store(&set->members[id].error, err);
		atomic_store_explicit(&set->members[id].io->failed, true, memory_order_release);
	}
	pthread_mutex_unlock(&set->fail_lock);
	for (unsigned id = 0; id < set->nr; id++) {
		if (fresh >> id & 1)
			tell(set, id, what, err);
	}
	return needed;
}

unsigned pf_set_node_copies(const struct pf_set *set)
{
	uint32_t meta = pf_super_meta(&set->super) & ~pf_set_failed(set);
	return pf_has(&set->super.features, PF_FEAT_NODE_COPIES) && (meta & (meta - 1)) ? PF_NODE_COPIES : 1;
}

uint32_t pf_set_take_suspects(struct pf_set *set)
{
	return atomic_exchange(&set->suspects, 0);
}

uint64_t pf_set_note_data(struct pf_set *set, uint32_t mask)
{
	uint64_t nr = atomic_fetch_add(&set->nr_changes, 1) + 1;
	for (unsigned id = 0; id < set->nr; id++) {
		if (mask >> id & 1)
			atomic_store(&set->members[id].changed, nr);
	}
	return nr;
}

uint32_t pf_set_unflushed(const struct pf_set *set, uint32_t mask, uint64_t nr)
{
	for (unsigned id = 0; id < set->nr; id++) {
		if ((mask >> id & 1) && atomic_load(&set->members[id].flushed) >= nr)
			mask &= ~(UINT32_C(1) << id);
	}
	return mask;
}

uint32_t pf_set_lost(const struct pf_set *set)
{
	uint32_t lost = pf_set_failed(set);
	for (unsigned id = 0; lost && id < set->nr; id++) {
		const struct pf_member *m = &set->members[id];
		if (atomic_load(&m->flushed) >= atomic_load(&m->changed))
			lost &= ~(UINT32_C(1) << id);
	}
	return lost;
}
