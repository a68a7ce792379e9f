# SPDX-License-Identifier: MIT
# Tests. A unit test is one program, one file: append it to unit_tests (its source is tests/unit/NAME.c).
# A test of whole pools in this process: sim_tests. A shell test exits 77 when it cannot run here: cli_tests, lint_tests.
# mount_tests need root and /dev/fuse and are run by 'make check-mount' only.
unit_tests =

sim_tests =

cli_tests =

lint_tests =

mount_tests =

# What tests share: the disk in memory, the model.
check_LIBRARIES += tests/libtest.a
tests_libtest_a_SOURCES =
tests_libtest_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests

# The default of programs that name no libraries of their own, that is of all tests.
LDADD = tests/libtest.a $(ENGINE_LIBS) $(CHECK_LIBS)
AM_CPPFLAGS += -I$(top_srcdir)/tests $(CHECK_CFLAGS)

if HAVE_CHECK
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
endif
check_PROGRAMS += $(sim_tests)
TESTS += $(sim_tests) $(cli_tests) $(lint_tests)
EXTRA_DIST += $(cli_tests) $(lint_tests) $(mount_tests)

TEST_EXTENSIONS = .sh .py
SH_LOG_COMPILER = bash
PY_LOG_COMPILER = python3
# Shell tests find the programs of this build first in PATH, and the sources at $top_srcdir.
AM_TESTS_ENVIRONMENT = \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	CC='$(CC)'; export CC; \
	PATH='$(abs_top_builddir)':"$$PATH"; export PATH;
