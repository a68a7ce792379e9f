/* SPDX-License-Identifier: MIT
 *
 * Purpose: what is compared: pools of a format version, other filesystems, and a member without any, each made, mounted and
 * unmounted in turn on the same members.
 *
 * Invariants
 *   I1  One candidate at a time has the members.
 *   I2  Whatever candidate_up() has done, candidate_down() undoes, also after an error.
 *   I3  When a candidate needs loop devices, all get them; but those that are asked to be on the image files themselves.
 *
 * Uses: site.h, counter.h.
 */
#ifndef BENCH_CANDIDATE_H
#define BENCH_CANDIDATE_H

#include "counter.h"
#include "site.h"

enum { CANDIDATE_MAX = 16, CANDIDATE_MAX_MEMBERS = 8, CANDIDATE_NAME_LEN = 16 };

struct candidate_peer; /* another filesystem, or none */

struct candidate {
	char name[CANDIDATE_NAME_LEN];
	unsigned version;                  /* of a pool */
	const struct candidate_peer *peer; /* NULL: a pool */
	unsigned nr_members;               /* 0: as --members says */
	bool on_images;
};

/* Words joined by commas, appended to @all. False after a message. A version may be followed by "x" and the number of members
 * of its pool, and by "i" for the image files themselves: "6", "6x2", "6i", "6x2i". */
bool candidate_add_versions(struct candidate all[CANDIDATE_MAX], unsigned *nr, const char *list);
bool candidate_add_peers(struct candidate all[CANDIDATE_MAX], unsigned *nr, const char *list);
/* How many members it uses when a pool has @nr_members by default. */
unsigned candidate_members(const struct candidate *c, unsigned nr_members);
/* What is overwritten or deleted becomes free. */
bool candidate_reclaims(const struct candidate *c);

struct candidate_options {
	unsigned nr_members;
	bool loops;
	const char *placement; /* NULL: the default of mkfs.poolfs */
};
/* Makes @c anew on the members and mounts it on site->mount_dir. 0 or -errno after a message. */
int candidate_up(struct site *site, const struct candidate *c, const struct candidate_options *options);
int candidate_down(struct site *site, const struct candidate *c);
/* The file or device that is the candidate, when it is no filesystem; otherwise NULL. */
const char *candidate_raw(const struct site *site, const struct candidate *c);
/* The devices that it is on now; none on image files. */
void candidate_devices(const struct site *site, struct counter *out);

#endif
