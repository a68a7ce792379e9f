/* SPDX-License-Identifier: MIT
 * Counts of references: random additions and drops against plain counters, with counts on both sides of what fits in a small entry. */
#include "model/rng.h"
#include "object/refs.h"
#include "unit/run_suite.h"

#include <string.h>

#define NR 5000

static struct rng rng;
static uint64_t plain[NR];

/* Numbers that collide, and the largest ones. */
static uint64_t ino_of(unsigned i)
{
	return i % 3 ? 1 + (uint64_t)i * 4096 : (UINT64_C(1) << 56) - 1 - i;
}

static void check_all(const struct pf_refs *refs)
{
	size_t nr = 0, at = 0;
	uint64_t sum = 0;
	for (unsigned i = 0; i < NR; i++) {
		ck_assert_uint_eq(pf_refs_get(refs, ino_of(i)), plain[i]);
		nr += plain[i] != 0;
		sum ^= plain[i] ? ino_of(i) : 0;
	}
	for (uint64_t ino = pf_refs_next(refs, &at); ino; ino = pf_refs_next(refs, &at)) {
		nr--;
		sum ^= ino;
	}
	ck_assert_uint_eq(nr, 0);
	ck_assert_uint_eq(sum, 0);
}

START_TEST(random_counts)
{
	struct pf_refs refs = { 0 };
	rng.state = rng_mix(7);
	ck_assert_uint_eq(pf_refs_get(&refs, 1), 0);
	ck_assert_uint_eq(pf_refs_drop(&refs, 1, 1), 0);
	for (unsigned step = 0; step < 300000; step++) {
		/* in turns there are more of one kind: the tables grow and shrink */
		bool adding = rng_one_in(&rng, step / 40000 % 2 ? 4 : 2);
		unsigned i = (unsigned)rng_below(&rng, NR);
		uint64_t nr = rng_one_in(&rng, 10) ? rng_below(&rng, 600) : 1 + rng_below(&rng, 3);
		if (adding) {
			ck_assert_int_eq(pf_refs_add(&refs, ino_of(i), nr ? nr : 1), 0);
			plain[i] += nr ? nr : 1;
		} else {
			plain[i] -= nr < plain[i] ? nr : plain[i];
			ck_assert_uint_eq(pf_refs_drop(&refs, ino_of(i), nr), plain[i]);
		}
		if (step % 20000 == 0)
			check_all(&refs);
	}
	check_all(&refs);
	for (unsigned i = 0; i < NR; i++)
		ck_assert_uint_eq(pf_refs_drop(&refs, ino_of(i), UINT64_MAX), 0);
	memset(plain, 0, sizeof(plain));
	check_all(&refs);
	ck_assert_uint_le(refs.few.cap, 2048);
	pf_refs_free(&refs);
}
END_TEST

/* A number that goes from few to many and back, beside its neighbours. */
START_TEST(few_and_many)
{
	struct pf_refs refs = { 0 };
	for (unsigned nr = 1; nr < 600; nr++) {
		ck_assert_int_eq(pf_refs_add(&refs, 5, 1), 0);
		ck_assert_uint_eq(pf_refs_get(&refs, 5), nr);
		ck_assert_uint_eq(pf_refs_get(&refs, 6), 0);
	}
	for (unsigned nr = 599; nr-- > 0;)
		ck_assert_uint_eq(pf_refs_drop(&refs, 5, 1), nr);
	ck_assert_int_eq(pf_refs_add(&refs, 5, UINT64_C(1) << 40), 0);
	ck_assert_uint_eq(pf_refs_drop(&refs, 5, (UINT64_C(1) << 40) - 2), 2);
	ck_assert_uint_eq(refs.many.nr_used, 1);
	ck_assert_uint_eq(pf_refs_drop(&refs, 5, 2), 0);
	ck_assert_uint_eq(refs.many.nr_used + refs.few.nr_used, 0);
	pf_refs_free(&refs);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("refs");
	TCase *tc = tcase_create("refs");
	tcase_add_test(tc, random_counts);
	tcase_add_test(tc, few_and_many);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
