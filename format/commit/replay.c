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

/* 1: go on; 0: the log ends before this record; or an error. */
static int redo_one(struct pf_pool *pool, const struct pf_log_scan *scan, unsigned i, struct pf_diag *diag)
{
	const struct pf_log_record *from = &scan->records[i];
	struct pf_record rec;
	pf_addr bad;
	int err = unpack(from, &rec, diag);
	if (err)
		return err;
	int good = is_good(pool, from, &rec, &bad);
	if (!good) {
		tell_rest(pool, scan, i, bad);
		return 0;
	}
	err = good < 0 ? good : pf_redo(pool, &rec);
	return err ? pf_diag_set(diag, err, "intent log, block %llu: record %u of %u (type %u, inode %llu) cannot be redone: %s; "
				 "run fsck.poolfs", (unsigned long long)from->lsn, i + 1, scan->nr_records, rec.type,
				 (unsigned long long)rec.ino, pf_strerror(err)) : 1;
}

static int redo_all(struct pf_pool *pool, const struct pf_log_scan *scan, bool salvage, struct pf_diag *diag)
{
	unsigned nr = 0;
	int more = 1;
	while (nr < scan->nr_records && more == 1) {
		struct pf_diag why = { "" };
		more = redo_one(pool, scan, nr, &why);
		nr += more == 1;
		if (more < 0 && salvage && pf_is_damage(more)) {
			pf_log(pool->env, PF_LOG_WARNING, "%s: it and what comes after it are given up", why.text);
			more = 0;
		} else if (more < 0) {
			return pf_diag_set(diag, more, "%s", why.text);
		}
	}
	pf_log(pool->env, PF_LOG_INFO, "intent log: %u records redone", nr);
	return 0;
}

int pf_replay(struct pf_pool *pool, const struct pf_log_scan *scan, bool salvage, struct pf_diag *diag)
{
	pool->replaying = true;
	/* what was being taken out of files is finished first: later records may have put something in its place */
	int err = pf_orphan_recover_ranges(pool);
	if (err)
		pf_diag_set(diag, err, "finishing interrupted truncations failed: %s; run fsck.poolfs", pf_strerror(err));
	else
		err = redo_all(pool, scan, salvage, diag);
	pool->replaying = false;
	return err;
}

static int pin_record(struct pf_pool *pool, const struct pf_record *rec)
{
	struct pf_record_range range;
	for (uint32_t pos = 0; pf_record_next_range(rec, &pos, &range);) {
		for (uint64_t i = 0; range.kind != PF_RANGE_HOLE && i < range.nr; i++) {
			/* what is in use already need not be pinned */
			if (pf_set_addr_valid(pool->set, range.addr + i, 1) &&
			    pf_space_claim(pool->space, (struct pf_run){ range.addr + i, 1 }) == -ENOMEM)
				return -ENOMEM;
		}
	}
	return 0;
}

int pf_replay_pin(struct pf_pool *pool)
{
	struct pf_diag quiet = { "" };
	struct pf_log_scan scan;
	int err = pf_log_scan(pool->set, &pool->super, &scan, &quiet);
	if (err && !pf_is_damage(err))
		return err == -ENOMEM ? err : 0;
	err = 0;
	for (unsigned i = 0; i < scan.nr_records && !err; i++) {
		struct pf_record rec;
		if (!unpack(&scan.records[i], &rec, &quiet) && rec.type == PF_RECORD_FILE)
			err = pin_record(pool, &rec);
	}
	pf_log_scan_free(&scan);
	return err;
}
