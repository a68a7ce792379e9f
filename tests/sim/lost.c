/* SPDX-License-Identifier: MIT */
#include "sim/lost.h"

#include <stdlib.h>

/* -- fsck -y, of everything but data ------------------------------------------------------------------------------------- */
struct findings {
	bool repair, met;
	char first[400];
	unsigned nr;
};

static bool note(void *arg, const struct pf_problem_report *report)
{
	struct findings *f = arg;
	f->met = f->met || report->problem == PF_PROBLEM_MEMBER_FAILED;
	if (!f->nr++)
		say(f->first, sizeof(f->first), "%s: %s", report->id, report->message);
	return f->repair;
}

static int fsck(struct simpool *s, struct findings *f, char *why, size_t cap)
{
	struct pf_io *ios[SIMPOOL_MAX];
	struct pf_diag diag = { "" };
	struct pf_check_options options = { .repair = f->repair };
	struct pf_check_sink sink = { .problem = note, .arg = f };
	struct pf_check_result result;
	unsigned nr = simworld_nr_disks(s->world);
	simworld_open(s->world, !f->repair, ios);
	int err = pf_check(ios, nr, &options, &s->env.env, &sink, &result, &diag);
	if (err)
		say(why, cap, "fsck%s: %s: %s", f->repair ? " -y" : "", pf_strerror(err), diag.text);
	else if (!f->repair && !f->nr && result.nr_single_nodes)
		say(why, cap, "%ju nodes were left with one copy", (uintmax_t)result.nr_single_nodes);
	return err ? err : !f->repair && !f->nr && result.nr_single_nodes ? -1 : 0;
}

static int take_back(struct simpool *s, char *why, size_t cap)
{
	struct findings looked = { .repair = false }, repaired = { .repair = true }, left = { .repair = false };
	char ignored[600];
	fsck(s, &looked, ignored, sizeof(ignored));
	if (!looked.met) {
		say(why, cap, "the pool is refused for a failed member, and fsck -n does not say so");
		return -1;
	}
	if (fsck(s, &repaired, why, cap) || fsck(s, &left, why, cap))
		return -1;
	if (left.nr)
		say(why, cap, "fsck -y left %u problems, the first: %s", left.nr, left.first);
	return left.nr ? -1 : 0;
}

/* -- opening ------------------------------------------------------------------------------------------------------------- */
static bool names_member(const char *text, const char *failed)
{
	return strstr(text, "failed while the pool was in use") && strstr(text, "fsck.poolfs") && (!failed || strstr(text, failed));
}

static int open_again(struct simpool *s, const char *failed, bool *taken_back, char *why, size_t cap)
{
	int err = simpool_open(s, false, why, cap);
	if (err != -PF_EMEMBER_FAILED)
		return err;
	*taken_back = true;
	if (!names_member(why, failed)) {
		char text[1200];
		say(text, sizeof(text), "%s", why);
		say(why, cap, "refused with the wrong words: %s", text);
		return -1;
	}
	/* reading is always allowed: every member is there */
	if (simpool_open(s, true, why, cap))
		return -1;
	simpool_abandon(s);
	err = take_back(s, why, cap);
	return err ? err : simpool_open(s, false, why, cap);
}

int lost_open(struct simpool *s, const char *failed, char *why, size_t cap)
{
	bool taken_back = false;
	return open_again(s, failed, &taken_back, why, cap);
}

static int empty_unreadable(struct simpool *s, struct model *got, struct lost_result *result, char *why, size_t cap)
{
	int err = 0;
	for (size_t k = 0; !err && k < got->nr; k++) {
		struct pf_attr in = { .size_bytes = 0 }, out;
		const struct model_inode *f = got->slots[k].inode;
		if (!f->unreadable)
			continue;
		result->nr_unreadable++;
		err = pf_setattr(s->pool, f->ino, PF_ATTR_SIZE, &in, &out);
		if (err)
			say(why, cap, "emptying inode %ju gives %s", (uintmax_t)f->ino, pf_strerror(err));
	}
	/* what nobody can read any more is gone with the next check only when it has been reaped */
	while (!err && pf_pool_step(s->pool, false) > 0)
		;
	return err;
}

int lost_judge(struct simpool *s, struct oracle *oracle, size_t cut, const char *failed, struct lost_result *result, char *why,
	       size_t cap)
{
	*result = (struct lost_result){ 0 };
	int err = open_again(s, failed, &result->taken_back, why, cap);
	if (err)
		return err;
	struct model *got = model_new();
	err = result->taken_back ? model_load_damaged(s->pool, got, why, cap) : model_load(s->pool, got, why, cap);
	if (!err)
		err = oracle_judge(oracle, cut, got, why, cap);
	if (!err)
		err = empty_unreadable(s, got, result, why, cap);
	model_free(got);
	if (!err)
		err = simpool_close(s, why, cap);
	else
		simpool_abandon(s);
	return err ? err : simpool_check(s, why, cap);
}
