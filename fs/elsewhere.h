/* SPDX-License-Identifier: MIT
 *
 * Purpose: where else a filesystem is mounted: in which other mount namespaces, and by which processes these can be named.
 *
 * Invariants
 *   I1  Each namespace counts once, by one of its processes; the daemon of the mount is named only where no other is there.
 *
 * Uses: mountinfo.
 */
#ifndef FS_ELSEWHERE_H
#define FS_ELSEWHERE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum { ELSEWHERE_NAMED = 3 };

struct elsewhere {
	unsigned nr_namespaces; /* of which the first ones are named */
	struct {
		pid_t pid;
		char command[32];
		char dir[PATH_MAX]; /* as that process sees it */
	} named[ELSEWHERE_NAMED];
	unsigned nr_denied; /* processes that this user may not look at */
};

/* @daemon: its pid, or 0. */
void elsewhere_find(unsigned major, unsigned minor, pid_t daemon, struct elsewhere *out);

#endif
