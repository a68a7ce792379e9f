# SPDX-License-Identifier: MIT
# poolfs-bench. What the unit test needs is a library.
BENCH_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools

noinst_LIBRARIES += bench/libbench.a
bench_libbench_a_SOURCES = \
	bench/candidate.c \
	bench/candidate.h \
	bench/compare.h \
	bench/compare_report.c \
	bench/compare_target.c \
	bench/counter.c \
	bench/counter.h \
	bench/daemon.c \
	bench/daemon.h \
	bench/emptyfs.c \
	bench/emptyfs.h \
	bench/load.c \
	bench/load.h \
	bench/loop.c \
	bench/loop.h \
	bench/metric.c \
	bench/metric.def \
	bench/metric.h \
	bench/metric_device.c \
	bench/metric_files.c \
	bench/metric_mixed.c \
	bench/metric_prototype.c \
	bench/metric_random.c \
	bench/metric_sequential.c \
	bench/metric_sync.c \
	bench/program.c \
	bench/program.h \
	bench/queue.c \
	bench/queue.h \
	bench/recovery.c \
	bench/recovery.h \
	bench/report.c \
	bench/report.h \
	bench/site.c \
	bench/site.h \
	bench/stats.c \
	bench/stats.h \
	bench/sync_ops.h \
	bench/target.def \
	bench/workspace.c \
	bench/workspace.h \
	bench/workspace_file.c
bench_libbench_a_CPPFLAGS = $(BENCH_CPPFLAGS)

bin_PROGRAMS += poolfs-bench
poolfs_bench_SOURCES = \
	bench/compare.c \
	bench/main.c \
	bench/mode.c \
	bench/mode.h \
	bench/mounting.c \
	bench/run.c
poolfs_bench_CPPFLAGS = $(BENCH_CPPFLAGS)
poolfs_bench_LDADD = bench/libbench.a tools/libtools.a $(ENGINE_LIBS) $(UUID_LIBS)
