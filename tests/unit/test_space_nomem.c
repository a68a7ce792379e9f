/* SPDX-License-Identifier: MIT
 *
 * Free space without memory: what an operation has entered in the tree cannot fail any more, so it must not need any. The linker
 * leads malloc and calloc here (tests/local.mk).
 */
#include "space_util.h"
#include "unit/nomem.h"

#define MIB (UINT64_C(1) << 20)

static const uint64_t sizes[] = { 200 * MIB, 100 * MIB, 50 * MIB, 20 * MIB };
enum { NR = sizeof(sizes) / sizeof(sizes[0]) };

static struct pf_run take(struct rig *rig, unsigned member, enum pf_space_use use, uint64_t nr)
{
	struct pf_alloc_req req = { .use = use, .nr = nr, .min_nr = nr, .member = (int)member, .only_member = true };
	struct pf_run run;
	ck_assert_int_eq(pf_space_alloc(rig->space, &req, &run), 0);
	return run;
}

/* The first changes after an open, on every member: nothing is dropped, and the checkpoint has them all. */
START_TEST(first_runs)
{
	struct rig rig;
	struct pf_run old[NR], data[NR], nodes[NR];
	uint32_t changed;
	rig_new(&rig, 5, NR, sizes, NR > PF_MAX_META_MEMBERS ? PF_MAX_META_MEMBERS : NR);
	for (unsigned i = 0; i < NR; i++) {
		old[i] = take(&rig, i, PF_USE_DATA, 9);
		pf_space_commit(rig.space, old[i], PF_USE_DATA);
	}
	rig_checkpoint(&rig);
	rig_reopen(&rig);
	struct pf_space_stats before = rig_stats(&rig);
	for (unsigned i = 0; i < NR; i++) {
		data[i] = take(&rig, i, PF_USE_DATA, 10);
		nodes[i] = take(&rig, i, PF_USE_NODE, PF_NODE_BLOCKS);
	}
	nomem_begin(0, false);
	for (unsigned i = 0; i < NR; i++) {
		pf_space_commit(rig.space, data[i], PF_USE_DATA);
		pf_space_free(rig.space, old[i], PF_USE_DATA);
	}
	pf_space_freeze(rig.space);
	for (unsigned i = 0; i < NR; i++)
		pf_space_commit_frozen(rig.space, nodes[i]);
	nomem_end();
	struct pf_super super = rig.super;
	ck_assert_int_eq(pf_space_write(rig.space, rig.generation + 1, &super, &changed), 0);
	rig_durable(&rig, &super);
	struct pf_space_stats after = rig_stats(&rig);
	ck_assert_uint_eq(after.dropped_blocks, 0);
	ck_assert_uint_eq(after.free_blocks, before.free_blocks - NR * (10 - 9 + PF_NODE_BLOCKS));
	rig_reopen(&rig);
	ck_assert_uint_eq(rig_stats(&rig).free_blocks, after.free_blocks);
	rig_free(&rig);
}
END_TEST

/* Each allocation of an open can fail: it says so, and leaves nothing behind. */
START_TEST(open_fails)
{
	struct rig rig;
	unsigned after = 0;
	int err;
	rig_new(&rig, 5, NR, sizes, 1);
	do {
		struct pf_diag diag = { 0 };
		rig_detach(&rig);
		rig_attach(&rig);
		nomem_begin(after, false);
		err = pf_space_open(&rig.set, false, &rig.space, &diag);
		nomem_end();
		ck_assert_msg(err == 0 || err == -ENOMEM, "after %u allocations: %s", after, pf_strerror(err));
		after++;
	} while (err);
	ck_assert_uint_gt(after, NR);
	rig_free(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("space without memory");
	TCase *t = tcase_create("nomem");
	tcase_set_timeout(t, 30);
	tcase_add_test(t, first_runs);
	tcase_add_test(t, open_fails);
	suite_add_tcase(suite, t);
	return rig_main(suite);
}
