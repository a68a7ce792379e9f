/* SPDX-License-Identifier: MIT */
#include "commit/replay.h"

#include "object/orphan.h"
#include "object/path.h"
#include "object/redo.h"

bool pf_replay_needed(const struct pf_super *super)
{
	return pf_has(&super->features, PF_FEAT_INTENT_LOG) && super->nr_log && !(super->flags & PF_SUPER_CLEAN);
}

static int unpack(const struct pf_log_record *from, struct pf_record *rec, struct pf_diag *diag)
{
	int err = pf_record_unpack(from->data, from->len, rec);
	return err ? pf_diag_set(diag, err, "intent log, block %llu: a record of type %u makes no sense; run fsck.poolfs",
				 (unsigned long long)from->lsn, from->type) : 0;
}

static void tell_dropped(struct pf_pool *pool, const struct pf_record *rec)
{
	struct pf_inode *inode;
	char path[512];
	if (rec->type != PF_RECORD_FILE || pf_inode_get(pool, rec->ino, &inode))
		return;
	pf_path_of(pool, inode, path, sizeof(path));
	pf_inode_put(pool, inode);
	pf_log(pool->env, PF_LOG_WARNING, "%s: an fsync that was under way at the crash did not complete; the file is as it was before",
	       path);
}

/* Records from @first on are not redone. */
static void tell_rest(struct pf_pool *pool, const struct pf_log_scan *scan, unsigned first, pf_addr bad)
{
	struct pf_diag quiet = { "" };
	unsigned m = pf_addr_member(bad);
	pf_log(pool->env, PF_LOG_INFO, "intent log: the last %u of %u records were not promised yet and are dropped (data missing on %s)",
	       scan->nr_records - first, scan->nr_records, m < pool->set->nr ? pool->set->members[m].io->name : "?");
	for (unsigned i = first; i < scan->nr_records; i++) {
		struct pf_record rec;
		if (!unpack(&scan->records[i], &rec, &quiet))
			tell_dropped(pool, &rec);
	}
}

/* Promised or proven by its data. 1, 0, or an error. */
static int is_good(struct pf_pool *pool, const struct pf_log_record *from, const struct pf_record *rec, pf_addr *bad)
{
	*bad = 0;
	if (from->proven || rec->type != PF_RECORD_FILE || pf_breaks(pool->env, PF_BREAK_REPLAY_UNVERIFIED))
		return 1;
	return pf_redo_verify(pool, rec, bad);
}

static int redo_all(struct pf_pool *pool, const struct pf_log_scan *scan, struct pf_diag *diag)
{
	for (unsigned i = 0; i < scan->nr_records; i++) {
		struct pf_record rec;
		pf_addr bad;
		int err = unpack(&scan->records[i], &rec, diag);
		if (err)
			return err;
		int good = is_good(pool, &scan->records[i], &rec, &bad);
		if (!good) {
			tell_rest(pool, scan, i, bad);
			return 0;
		}
		err = good < 0 ? good : pf_redo(pool, &rec);
		if (err)
			return pf_diag_set(diag, err, "intent log, block %llu: record %u of %u (type %u, inode %llu) cannot be redone: %s; "
					   "run fsck.poolfs, or mount read-only without the log (-o ro,nolog)",
					   (unsigned long long)scan->records[i].lsn, i + 1, scan->nr_records, rec.type,
					   (unsigned long long)rec.ino, pf_strerror(err));
	}
	pf_log(pool->env, PF_LOG_INFO, "intent log: %u records redone", scan->nr_records);
	return 0;
}

int pf_replay(struct pf_pool *pool, const struct pf_log_scan *scan, struct pf_diag *diag)
{
	pool->replaying = true;
	/* what was being taken out of files is finished first: later records may have put something in its place */
	int err = pf_orphan_recover_ranges(pool);
	if (err)
		pf_diag_set(diag, err, "finishing interrupted truncations failed: %s; run fsck.poolfs", pf_strerror(err));
	else
		err = redo_all(pool, scan, diag);
	pool->replaying = false;
	return err;
}
