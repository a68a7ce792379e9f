/* SPDX-License-Identifier: MIT
 *
 * Purpose: what main() of a test does with its suite.
 * Uses: check.
 */
#ifndef PF_TEST_RUN_SUITE_H
#define PF_TEST_RUN_SUITE_H

#include <check.h>
#include <stdlib.h>

static inline int run_suite(Suite *s)
{
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int nr_failed = srunner_ntests_failed(r);
	srunner_free(r);
	return nr_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
