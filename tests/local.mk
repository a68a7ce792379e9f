# SPDX-License-Identifier: MIT
# Tests. A unit test is one program, one file: append it to unit_tests (its source is tests/unit/NAME.c).
# A test of whole pools in this process: sim_tests. A shell test exits 77 when it cannot run here: cli_tests, lint_tests.
# mount_tests need root and /dev/fuse and are run by 'make check-mount' only.
unit_tests = \
	tests/unit/test_aio \
	tests/unit/test_assemble \
	tests/unit/test_attack_engine \
	tests/unit/test_attack_names \
	tests/unit/test_check \
	tests/unit/test_check_copies \
	tests/unit/test_check_hostile \
	tests/unit/test_check_names \
	tests/unit/test_check_repair \
	tests/unit/test_check_tree \
	tests/unit/test_creation \
	tests/unit/test_complete \
	tests/unit/test_discard \
	tests/unit/test_discard_pool \
	tests/unit/test_drain \
	tests/unit/test_fsync_start \
	tests/unit/test_geometry \
	tests/unit/test_guard \
	tests/unit/test_home \
	tests/unit/test_intent \
	tests/unit/test_intent_nomem \
	tests/unit/test_intent_sync \
	tests/unit/test_io \
	tests/unit/test_log \
	tests/unit/test_log_crash \
	tests/unit/test_log_nomem \
	tests/unit/test_log_parallel \
	tests/unit/test_log_scan \
	tests/unit/test_member_fails \
	tests/unit/test_node \
	tests/unit/test_numbers \
	tests/unit/test_posix_attr \
	tests/unit/test_posix_big \
	tests/unit/test_posix_drain \
	tests/unit/test_posix_failed \
	tests/unit/test_posix_faults \
	tests/unit/test_posix_file \
	tests/unit/test_posix_names \
	tests/unit/test_posix_nomem \
	tests/unit/test_posix_owed \
	tests/unit/test_posix_read \
	tests/unit/test_posix_rename \
	tests/unit/test_posix_space \
	tests/unit/test_posix_staged \
	tests/unit/test_record \
	tests/unit/test_record_judge \
	tests/unit/test_refs \
	tests/unit/test_scrub \
	tests/unit/test_set \
	tests/unit/test_simdisk \
	tests/unit/test_space \
	tests/unit/test_space_disk \
	tests/unit/test_space_model \
	tests/unit/test_space_nomem \
	tests/unit/test_space_parallel \
	tests/unit/test_space_share \
	tests/unit/test_stats \
	tests/unit/test_super \
	tests/unit/test_tools \
	tests/unit/test_tree \
	tests/unit/test_tree_copies \
	tests/unit/test_tree_damage \
	tests/unit/test_tree_txg

sim_tests = \
	tests/model/test_clients \
	tests/model/test_model \
	tests/sim/test_bitflip \
	tests/sim/test_crash \
	tests/sim/test_crash_bites \
	tests/sim/test_crash_tools \
	tests/sim/test_faults \
	tests/sim/test_full \
	tests/sim/test_lying_disk \
	tests/sim/test_member_fails \
	tests/sim/test_parallel

cli_tests = \
	tests/cli/bench.sh \
	tests/cli/dump.sh \
	tests/cli/fsck.sh \
	tests/cli/golden.sh \
	tests/cli/log.sh \
	tests/cli/members_refuse.sh \
	tests/cli/mkfs_device.sh \
	tests/cli/mkfs_make.sh \
	tests/cli/mkfs_refuse.sh \
	tests/cli/options.sh \
	tests/cli/scrub.sh \
	tests/cli/trim.sh \
	tests/cli/upgrade.sh

lint_tests = \
	tests/lint/code.sh \
	tests/lint/format_doc.sh \
	tests/lint/layers.sh \
	tests/lint/lists.sh \
	tests/lint/man.sh \
	tests/lint/shell.sh

mount_tests = \
	tests/mount/acl.sh \
	tests/mount/basic.sh \
	tests/mount/bench.sh \
	tests/mount/control.sh \
	tests/mount/damage.sh \
	tests/mount/devices.sh \
	tests/mount/discard.sh \
	tests/mount/elsewhere.sh \
	tests/mount/handles.sh \
	tests/mount/holes.sh \
	tests/mount/hostfull.sh \
	tests/mount/kill.sh \
	tests/mount/mount8.sh \
	tests/mount/options.sh \
	tests/mount/overlay.sh \
	tests/mount/permissions.sh \
	tests/mount/readdir.sh \
	tests/mount/rename.sh \
	tests/mount/selfless.sh \
	tests/mount/silent.sh \
	tests/mount/space.sh \
	tests/mount/sync.sh \
	tests/mount/times.sh \
	tests/mount/unsupported.sh \
	tests/mount/user.sh \
	tests/mount/userns.sh \
	tests/mount/vanish.sh \
	tests/mount/versions.sh \
	tests/mount/writeback.sh \
	tests/mount/xattr.sh

# What the first issue promises to a user, on real mounts, scaled to a twentieth: 'make check-accept' only. See tests/accept/functions.sh.
accept_tests = \
	tests/accept/bitrot.sh \
	tests/accept/kill.sh \
	tests/accept/many_files.sh \
	tests/accept/messages.sh \
	tests/accept/programs.sh \
	tests/accept/prototype.sh \
	tests/accept/refill.sh \
	tests/accept/scale.sh \
	tests/accept/three_members.sh

# Applications on real mounts: 'make check-apps' in full, 'make check-apps-small' as CI does. See tests/apps/functions.sh.
apps_tests = \
	tests/apps/chroot.sh \
	tests/apps/mariadb.sh \
	tests/apps/postgresql.sh \
	tests/apps/qemu.sh \
	tests/apps/sqlite.sh

# What tests share: the disk in memory, the model.
check_LIBRARIES += tests/libtest.a
tests_libtest_a_SOURCES = \
	tests/images/poke.c \
	tests/images/poke.h \
	tests/model/model.c \
	tests/model/model.h \
	tests/model/model_attr.c \
	tests/model/model_compare.c \
	tests/model/model_data.c \
	tests/model/model_load.c \
	tests/model/model_names.c \
	tests/model/ops.c \
	tests/model/ops.h \
	tests/model/ops_attr.c \
	tests/model/ops_data.c \
	tests/model/ops_internal.h \
	tests/model/ops_names.c \
	tests/model/rng.h \
	tests/model/shared.c \
	tests/model/shared.h \
	tests/model/testenv.h \
	tests/sim/complain.c \
	tests/sim/complain.h \
	tests/sim/explorer.c \
	tests/sim/explorer.h \
	tests/sim/hang.h \
	tests/sim/lost.c \
	tests/sim/lost.h \
	tests/sim/oracle.c \
	tests/sim/oracle.h \
	tests/sim/simcrash.c \
	tests/sim/simdisk.c \
	tests/sim/simdisk.h \
	tests/sim/simimage.c \
	tests/sim/simimage.h \
	tests/sim/simpool.c \
	tests/sim/simpool.h \
	tests/sim/simworld.h \
	tests/sim/walk.c \
	tests/sim/walk.h \
	tests/sim/workload.c \
	tests/sim/workload.h \
	tests/unit/check_items.h \
	tests/unit/aio_util.h \
	tests/unit/check_util.h \
	tests/unit/intent_util.h \
	tests/unit/log_util.h \
	tests/unit/nomem.c \
	tests/unit/nomem.h \
	tests/unit/nomem_disks.h \
	tests/unit/posix_util.h \
	tests/unit/record_util.h \
	tests/unit/run_suite.h \
	tests/unit/sample_super.h \
	tests/unit/set_util.h \
	tests/unit/space_fill.h \
	tests/unit/space_util.h \
	tests/unit/tree_compare.h \
	tests/unit/tree_model.h \
	tests/unit/tree_util.h
tests_libtest_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests

# The default of programs that name no libraries of their own, that is of all tests.
LDADD = tests/libtest.a $(ENGINE_LIBS) $(CHECK_LIBS)
AM_CPPFLAGS += -I$(top_srcdir)/tests $(CHECK_CFLAGS)

tests_unit_test_stats_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/bench -I$(top_srcdir)/tools
tests_unit_test_stats_LDADD = bench/libbench.a tools/libtools.a $(LDADD) $(UUID_LIBS)
tests_unit_test_creation_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pf_txn_lock
tests_unit_test_intent_nomem_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=aligned_alloc -Wl,--wrap=calloc -Wl,--wrap=realloc \
	-Wl,--wrap=simworld_open
tests_unit_test_log_nomem_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=aligned_alloc -Wl,--wrap=calloc -Wl,--wrap=realloc
tests_unit_test_drain_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pf_inode_lock_busy -Wl,--wrap=pf_txn_lock
tests_unit_test_posix_drain_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pf_txn_lock -Wl,--wrap=pf_inode_put
tests_unit_test_posix_failed_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=realloc
tests_unit_test_posix_nomem_LDFLAGS = $(tests_unit_test_intent_nomem_LDFLAGS)
tests_unit_test_posix_read_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc
tests_unit_test_posix_staged_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pf_inode_get
tests_unit_test_space_nomem_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc
tests_unit_test_tools_LDADD = tools/libtools.a $(LDADD) $(BLKID_LIBS) $(UUID_LIBS)

if HAVE_CHECK
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
endif
check_PROGRAMS += $(sim_tests)
# What the shell tests call: files in an unmounted pool, damage at a named place.
check_PROGRAMS += tests/cli/fill tests/cli/poke tests/images/golden
tests_images_golden_SOURCES = tests/images/golden.c
EXTRA_DIST += tests/images/make_golden.sh \
	tests/images/released/v1-a.img.xz tests/images/released/v1-b.img.xz \
	tests/images/released/v2-a.img.xz tests/images/released/v2-b.img.xz \
	tests/images/released/v3-a.img.xz tests/images/released/v3-b.img.xz \
	tests/images/released/v4-a.img.xz tests/images/released/v4-b.img.xz \
	tests/images/released/v5-a.img.xz tests/images/released/v5-b.img.xz \
	tests/images/released/v6-a.img.xz tests/images/released/v6-b.img.xz \
	tests/images/released/v6-log-a.img.xz tests/images/released/v6-log-b.img.xz
EXTRA_DIST += tests/cli/functions.sh
TESTS += $(sim_tests) $(cli_tests) $(lint_tests)
EXTRA_DIST += $(cli_tests) $(lint_tests) $(mount_tests) tests/mount/functions.sh
EXTRA_DIST += $(accept_tests) tests/accept/functions.sh tests/accept/promises.py
EXTRA_DIST += $(apps_tests) tests/apps/functions.sh
EXTRA_DIST += tests/compare/probes.sh

TEST_EXTENSIONS = .sh .py
SH_LOG_COMPILER = bash
PY_LOG_COMPILER = python3
# Shell tests find the programs of this build first in PATH, and the sources at $top_srcdir. The time that 'check' gives a
# test case is multiplied: sanitizers and busy machines are slow.
AM_TESTS_ENVIRONMENT = \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	CC='$(CC)'; export CC; \
	CK_TIMEOUT_MULTIPLIER="$${CK_TIMEOUT_MULTIPLIER-5}"; export CK_TIMEOUT_MULTIPLIER; \
	PATH='$(abs_top_builddir)':"$$PATH"; export PATH;

# -- more targets ---------------------------------------------------------------------------------------------------
# Without the shell tests: what a sanitizer or valgrind can look into.
program_tests = $(sim_tests)
if HAVE_CHECK
program_tests += $(unit_tests)
endif

.PHONY: test-programs check-programs check-mount check-accept check-apps check-apps-small check-long check-valgrind check-asan check-tsan
test-programs: $(check_LIBRARIES) $(check_PROGRAMS)
check-programs:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(program_tests)'

# Real mounts: needs root and /dev/fuse.
check-mount:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(mount_tests)'

# The acceptance tests: root, /dev/fuse and room in TMPDIR.
check-accept:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(accept_tests)'

# The same, and the applications themselves.
check-apps:
	POOLFS_TEST_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check-apps-small
check-apps-small:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(apps_tests)'

check-valgrind:
	CK_FORK=no CK_TIMEOUT_MULTIPLIER=50 VALGRIND=1 $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(unit_tests)' \
		LOG_COMPILER='valgrind -q --error-exitcode=99 --leak-check=full'

# A build of its own under another set of flags, from a copy of the sources as they would be released: so that it works
# from a configured source tree too.
sub_check = \
	rm -rf check-src && $(MAKE) $(AM_MAKEFLAGS) distdir distdir=check-src && \
	mkdir -p "$$dir" && cd "$$dir" && \
	../check-src/configure -q $$flags CC='$(CC)' CFLAGS='-g -O1' && \
	$(MAKE) $(AM_MAKEFLAGS) check

# Those with threads; the others only get slow under ThreadSanitizer.
thread_tests = \
	tests/sim/test_member_fails \
	tests/sim/test_parallel \
	tests/unit/test_aio \
	tests/unit/test_attack_engine \
	tests/unit/test_fsync_start \
	tests/unit/test_intent_sync \
	tests/unit/test_log_parallel \
	tests/unit/test_posix_read \
	tests/unit/test_posix_space \
	tests/unit/test_scrub \
	tests/unit/test_simdisk \
	tests/unit/test_space_parallel \
	tests/unit/test_tree_txg

check-asan:
	dir=check-asan.dir; flags='--enable-asan --enable-ubsan'; $(sub_check) TESTS='$(program_tests)'
check-tsan:
	dir=check-tsan.dir; flags='--enable-tsan'; $(sub_check) TESTS='$(thread_tests)'

# Everything, the random tests with many more seeds: an hour and more.
check-long:
	POOLFS_TEST_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check
	POOLFS_TEST_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check-mount
	POOLFS_TEST_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check-accept
	$(MAKE) $(AM_MAKEFLAGS) check-apps
	$(MAKE) $(AM_MAKEFLAGS) check-asan
	$(MAKE) $(AM_MAKEFLAGS) check-tsan
	$(MAKE) $(AM_MAKEFLAGS) check-valgrind

clean-local:
	chmod -R u+w check-src check-asan.dir check-tsan.dir 2>/dev/null || :
	rm -rf check-src check-asan.dir check-tsan.dir
