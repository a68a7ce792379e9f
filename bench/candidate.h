/* SPDX-License-Identifier: MIT
 *
 * Purpose: what is compared: pools of a format version, and other filesystems, each made, mounted and unmounted in turn on
 * the same members.
 *
 * Invariants
 *   I1  One candidate at a time has the members. They are the same files for all, written once in full before the first
 *       round, so nobody pays for the allocation of host blocks and everybody works on the same ones.
 *   I2  Whatever candidate_up() has done, candidate_down() undoes, also after an error.
 *   I3  When a candidate needs loop devices, all get them.
 *
 * Uses: loop.h, program.h.
 */
#ifndef BENCH_CANDIDATE_H
#define BENCH_CANDIDATE_H

#include "loop.h"

#include <stdbool.h>
#include <stdint.h>

enum { CANDIDATE_MAX = 16, CANDIDATE_MAX_MEMBERS = 8, CANDIDATE_NAME_LEN = 16 };

struct candidate_peer; /* a filesystem of the kernel */

struct candidate {
	char name[CANDIDATE_NAME_LEN];
	unsigned version;                  /* of a pool */
	const struct candidate_peer *peer; /* NULL: a pool */
};

/* Words joined by commas, appended to @all. False after a message. */
bool candidate_add_versions(struct candidate all[CANDIDATE_MAX], unsigned *nr, const char *list);
bool candidate_add_peers(struct candidate all[CANDIDATE_MAX], unsigned *nr, const char *list);

struct site {
	char *dir, *mount_dir; /* made by site_open() */
	unsigned nr_members;
	bool loops;
	const char *placement; /* NULL: the default of mkfs.poolfs */
	char *images[CANDIDATE_MAX_MEMBERS];
	char devices[CANDIDATE_MAX_MEMBERS][LOOP_NAME_LEN]; /* empty: not attached */
	bool mounted;
};
/* Makes a directory in @workdir with the members in it. 0 or -errno after a message; site_close() in both cases. */
int site_open(struct site *site, const char *workdir, unsigned nr_members, uint64_t member_bytes);
bool site_close(struct site *site);

/* Makes @c anew on the members and mounts it on site->mount_dir. 0 or -errno after a message. */
int candidate_up(struct site *site, const struct candidate *c);
int candidate_down(struct site *site, const struct candidate *c);

#endif
