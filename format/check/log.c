/* SPDX-License-Identifier: MIT
 * What a crash left in the intent log. A tree is whole without it, so the passes need not wait for it; but a repair that takes blocks
 * could take those that it names. So it is redone first, and when damage keeps it from that, after the damage has been mended. */
#include "check/checker.h"
#include "commit/replay.h"
#include "pool/pool_int.h"

/* Only looks: how much there is, and whether it is whole. Members that do not fit together are the passes' business. */
static int look(struct pf_checker *c, struct pf_io *const *ios, unsigned nr)
{
	struct pf_diag diag = { "" };
	struct pf_log_scan scan;
	struct pf_set *set;
	int err = pf_check_open_set(c, ios, nr, PF_SET_REPAIR, &set, &diag);
	if (err)
		return err == -ENOMEM ? err : 0;
	if (pf_replay_needed(&set->super)) {
		err = pf_log_scan(set, &set->super, &scan, &diag);
		c->nr_log_records = scan.nr_records;
		c->log_left = pf_is_damage(err);
		if (c->log_left)
			pf_check_report(c, PF_PROBLEM_LOG_DAMAGED, "%s", diag.text);
		pf_log_scan_free(&scan);
	}
	pf_set_close(set);
	return err == -ENOMEM ? err : 0;
}

/* A failed member keeps it from being redone until it is taken back: is there anything? */
static bool waits_for_member(struct pf_checker *c, struct pf_io *const *ios, unsigned nr)
{
	struct pf_diag diag = { "" };
	struct pf_set *set;
	if (pf_check_open_set(c, ios, nr, PF_SET_REPAIR, &set, &diag))
		return false;
	bool waits = pf_replay_needed(&set->super);
	pf_set_close(set);
	return waits;
}

/* Opens the pool as a mount would, which redoes the log, and closes it clean. */
static int redo(struct pf_checker *c, struct pf_io *const *ios, unsigned nr, bool salvage, struct pf_diag *diag)
{
	struct pf_pool_options options = { .salvage_log = salvage };
	struct pf_pool *pool;
	struct pf_set *set;
	int err = pf_check_open_set(c, ios, nr, PF_SET_WRITE, &set, diag);
	c->log_left = false;
	if (err || !pf_replay_needed(&set->super)) {
		if (!err)
			pf_set_close(set);
		c->log_left = err == -PF_EMEMBER_FAILED && waits_for_member(c, ios, nr);
		return err;
	}
	c->log_left = true;
	err = pf_pool_start(set, &options, false, &pool, diag);
	if (!err)
		err = pf_pool_close(pool);
	if (!err)
		c->log_left = false;
	return err;
}

int pf_check_log_before(struct pf_checker *c, struct pf_io *const *ios, unsigned nr)
{
	struct pf_diag diag = { "" };
	if (!c->options->repair)
		return look(c, ios, nr);
	int err = redo(c, ios, nr, false, &diag);
	if (err == -ENOMEM)
		return err;
	if (c->log_left)
		pf_log(c->env, PF_LOG_WARNING, "the intent log could not be redone yet: %s", diag.text);
	return 0;
}

int pf_check_log_after(struct pf_checker *c, struct pf_io *const *ios, unsigned nr, bool *again)
{
	struct pf_diag diag = { "" };
	*again = false;
	if (!c->log_left || !c->options->repair)
		return 0;
	int err = redo(c, ios, nr, false, &diag);
	if (pf_is_damage(err) && pf_check_report(c, PF_PROBLEM_LOG_DAMAGED, "%s", diag.text))
		err = redo(c, ios, nr, true, &diag);
	*again = !c->log_left;
	return err == -ENOMEM ? err : 0;
}
