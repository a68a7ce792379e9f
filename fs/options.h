/* SPDX-License-Identifier: MIT
 *
 * Purpose: the command line of mount.poolfs, by the conventions of mount(8), and its -o options.
 *
 * Invariants
 *   I1  One table names every option (options.c); what it does not know is a usage error that names it, unless -s was given.
 *   I2  Of options that contradict each other the last one counts.
 *
 * Uses: nothing.
 */
#ifndef FS_OPTIONS_H
#define FS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define OPTIONS_MAX_SEARCH 16

enum tristate { UNSET, NO, YES };

struct options {
	const char *spec;
	const char *dir;
	const char *name_space; /* -N: pid or path */
	char *given;            /* the -o text as it came, for a remount */
	bool fake, verbose, sloppy;
	/* -o */
	bool remount, foreground, read_only;
	enum tristate allow_other, dev, suid, exec, discard;
	bool noatime, sync, dirsync;
	uint64_t cache_bytes;   /* 0: the engine's default */
	unsigned commit_seconds; /* 0: the engine's default */
	unsigned silence_seconds; /* 0: the default */
	unsigned threads, max_background; /* 0: chosen by the number of processors; the default */
	char *fsname;
	unsigned nr_search;
	char *search[OPTIONS_MAX_SEARCH];
};

enum options_result { OPTIONS_RUN, OPTIONS_DONE /* --help, --version: printed */, OPTIONS_BAD /* said why */ };

/* Fills @opt, which options_free() releases in every case. */
enum options_result options_parse(int argc, char **argv, struct options *opt);
void options_free(struct options *opt);

/* The -o text of a remount without the options that only this program knows. Allocated; NULL: no memory. */
char *options_for_remount(const char *given);

#endif
