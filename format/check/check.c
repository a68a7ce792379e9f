/* SPDX-License-Identifier: MIT
 *
 * The order of things: look at everything; if something is to be repaired, repair it and look again. So the result
 * says what is true at the end, and a repair that brings another problem to light, or does not hold, shows. */
#include "check/check.h"

#include "check/borrow.h"
#include "check/checker.h"
#include "pool/pool_int.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS 16u

/* -- one look ---------------------------------------------------------------------------------------------------- */
static void forget_round(struct pf_checker *c)
{
	pf_blockmap_free(c->map);
	c->map = NULL;
	for (unsigned m = 0; m < PF_MAX_MEMBERS; m++)
		pf_tables_free(&c->tables[m]);
	pf_inodes_free(&c->inodes);
	free(c->twice.users);
	c->twice = (struct pf_check_twice){ 0 };
	free(c->orphans);
	free(c->ranges);
	c->orphans = NULL;
	c->ranges = NULL;
	c->nr_orphans = c->cap_orphans = c->nr_ranges = c->cap_ranges = 0;
	pf_repair_clear(&c->repairs);
	pf_set_close(c->set);
	c->set = NULL;
}

int pf_check_open_set(struct pf_checker *c, struct pf_io *const *ios, unsigned nr, unsigned flags, struct pf_set **out,
		      struct pf_diag *diag)
{
	struct pf_io *lent[PF_MAX_MEMBERS];
	int err = pf_borrow_ios(ios, nr, lent);
	return err ? err : pf_set_open_ios(lent, nr, flags, c->env, out, diag);
}

static int open_set(struct pf_checker *c, struct pf_io *const *ios, unsigned nr, struct pf_set **out)
{
	return pf_check_open_set(c, ios, nr, PF_SET_REPAIR | (c->options->repair ? PF_SET_WRITE : 0), out, c->diag);
}

static int begin_round(struct pf_checker *c, struct pf_io *const *ios, unsigned nr)
{
	int err = open_set(c, ios, nr, &c->set);
	if (err)
		return err;
	struct pf_check_result *r = c->result;
	*r = (struct pf_check_result){ .nr_problems = r->nr_problems };
	c->super = &c->set->super;
	c->reclaim = pf_has(&c->super->features, PF_FEAT_RECLAIM);
	c->data_csum = pf_has(&c->super->features, PF_FEAT_DATA_CSUM);
	c->blocks_known = c->items_known = true;
	c->nr_found = 0;
	c->seen_counters = (struct pf_counters){ .next_id = 1 };
	return pf_blockmap_create(c->set, &c->map);
}

static int run_passes(struct pf_checker *c)
{
	int err = pf_check_members(c);
	if (!err)
		err = pf_check_tree(c);
	if (!err)
		err = pf_check_space(c);
	if (!err)
		err = pf_check_names(c);
	/* counts make sense when the items are settled; after their repair everything is looked at again */
	bool settled = true;
	for (size_t i = 0; i < c->repairs.nr && settled; i++) {
		enum pf_repair_kind kind = c->repairs.fixes[i].kind;
		settled = kind == PF_FIX_SUPER || kind == PF_FIX_MAP || kind == PF_FIX_NODE;
	}
	return err || !settled ? err : pf_check_counts(c);
}

/* -- repairing --------------------------------------------------------------------------------------------------- */
static int repair(struct pf_checker *c, struct pf_io *const *ios, unsigned nr)
{
	struct pf_pool_options options = { .no_recovery = true };
	struct pf_pool *pool;
	struct pf_set *set;
	int err = pf_repair_supers(c);
	if (err || !pf_repair_needs_pool(&c->repairs))
		return err;
	err = open_set(c, ios, nr, &set);
	if (!err)
		err = pf_pool_start(set, &options, c->repairs.rebuild, &pool, c->diag);
	if (err)
		return err;
	err = pf_repair_pool(c, pool);
	if (err) {
		pf_pool_abandon(pool);
		return pf_diag_set(c->diag, err, "the repair stopped: %s; check the disks and run fsck.poolfs again",
				   pf_strerror(err));
	}
	return pf_pool_close(pool);
}

static int run_rounds(struct pf_checker *c, struct pf_io *const *ios, unsigned nr)
{
	unsigned first = c->round;
	for (;; c->round++) {
		int err = begin_round(c, ios, nr);
		if (!err)
			err = run_passes(c);
		bool wanted = c->repairs.nr || c->repairs.rebuild;
		bool again = !err && wanted && c->round - first < MAX_ROUNDS;
		if (again)
			err = repair(c, ios, nr);
		forget_round(c);
		if (err || !again)
			return err;
	}
}

/* -- data -------------------------------------------------------------------------------------------------------- */
static void data_error(void *arg, const struct pf_scrub_error *e)
{
	struct pf_checker *c = arg;
	if (!e->path) /* metadata: the passes have seen it */
		return;
	pf_check_report(c, PF_PROBLEM_DATA_DAMAGED, "%s, offset %llu (%s, offset %llu): %s", e->path,
			(unsigned long long)e->file_off_bytes, e->member, (unsigned long long)e->member_off_bytes,
			pf_strerror(e->err));
}

static bool data_progress(void *arg, uint64_t done_bytes, uint64_t total_bytes)
{
	return !pf_check_progress(arg, "data", done_bytes, total_bytes);
}

static int check_data(struct pf_checker *c, struct pf_io *const *ios, unsigned nr)
{
	struct pf_pool_options options = { .read_only = true, .no_recovery = true };
	struct pf_scrub_options scrub_options = { 0 };
	struct pf_scrub_sink sink = { .error = data_error, .progress = data_progress, .arg = c };
	struct pf_scrub_result result;
	struct pf_pool *pool;
	struct pf_set *set;
	int err = open_set(c, ios, nr, &set);
	if (!err) /* the maps are not needed, and may be damaged */
		err = pf_pool_start(set, &options, true, &pool, c->diag);
	if (err)
		return err;
	err = pf_scrub(pool, &scrub_options, &sink, &result);
	pf_pool_abandon(pool);
	return err;
}

/* ---------------------------------------------------------------------------------------------------------------- */
int pf_check(struct pf_io **ios, unsigned nr, const struct pf_check_options *options, const struct pf_env *env,
	     const struct pf_check_sink *sink, struct pf_check_result *result, struct pf_diag *diag)
{
	struct pf_checker *c = calloc(1, sizeof(*c));
	int err = c ? 0 : -ENOMEM;
	memset(result, 0, sizeof(*result));
	if (!err) {
		c->env = env;
		c->options = options;
		c->sink = sink;
		c->result = result;
		c->diag = diag;
		c->salt = env->random64(env->arg);
		err = pf_check_log_before(c, ios, nr);
	}
	if (!err)
		err = run_rounds(c, ios, nr);
	bool again = false;
	if (!err)
		err = pf_check_log_after(c, ios, nr, &again);
	if (!err && again) {
		c->round++;
		err = run_rounds(c, ios, nr);
	}
	if (!err && options->check_data)
		err = check_data(c, ios, nr);
	if (c) {
		result->nr_left = c->nr_found + c->log_left;
		result->nr_log_records = c->log_left ? 0 : c->nr_log_records;
		result->nr_repaired = result->nr_problems > result->nr_left ? result->nr_problems - result->nr_left : 0;
		free(c->seen);
		free(c);
	}
	for (unsigned i = 0; i < nr; i++)
		pf_io_close(ios[i]);
	return err;
}
