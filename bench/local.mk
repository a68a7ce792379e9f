# SPDX-License-Identifier: MIT
# poolfs-bench. What the unit test needs is a library.
BENCH_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools

noinst_LIBRARIES += bench/libbench.a
bench_libbench_a_SOURCES = \
	bench/candidate.c \
	bench/candidate.h \
	bench/compare.h \
	bench/compare_report.c \
	bench/loop.c \
	bench/loop.h \
	bench/metric.c \
	bench/metric.def \
	bench/metric.h \
	bench/metric_files.c \
	bench/metric_prototype.c \
	bench/metric_random.c \
	bench/metric_sequential.c \
	bench/program.c \
	bench/program.h \
	bench/queue.c \
	bench/queue.h \
	bench/report.c \
	bench/report.h \
	bench/stats.c \
	bench/stats.h \
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
	bench/run.c
poolfs_bench_CPPFLAGS = $(BENCH_CPPFLAGS)
poolfs_bench_LDADD = bench/libbench.a tools/libtools.a $(ENGINE_LIBS) $(UUID_LIBS)
