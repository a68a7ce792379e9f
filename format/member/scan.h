/* SPDX-License-Identifier: MIT
 *
 * Purpose: finding members: what a path says that it is, without locking it, and which files or block devices of this machine
 * belong to a pool. So that a pool can be mounted by its label, its uuid or one of its members.
 *
 * Invariants
 *   I1  Nothing is locked and nothing is written. What is found is a hint: pf_set_open() judges.
 *   I2  A path that is no member, or cannot be read, is passed over, and counted.
 *
 * Uses: base, ondisk, member/set.
 */
#ifndef PF_MEMBER_SCAN_H
#define PF_MEMBER_SCAN_H

#include "member/set.h"

struct pf_scan_entry {
	char *path; /* owned by the list; NULL from pf_scan_path() */
	uint8_t pool_uuid[16], member_uuid[16];
	char label[PF_LABEL_BYTES + 1];
	unsigned version, member_id, nr_members;
	uint64_t generation, size_bytes;
	bool usable; /* no unknown incompat feature */
};

struct pf_scan_list {
	struct pf_scan_entry *entries;
	unsigned nr, cap;
	unsigned nr_denied; /* paths that this user may not read: as root there may be more */
};

/* Errors: those of pf_io_open() and pf_set_read_super(), with @diag. */
int pf_scan_path(const char *path, const struct pf_env *env, struct pf_scan_entry *out, struct pf_diag *diag);

/* Does a member at one of @paths have ro-compat features that this program does not know? Then the pool can be opened for
 * reading only, and @diag says why. What cannot be read is passed over: opening it says so. */
bool pf_scan_only_readable(const char *const *paths, unsigned nr, const struct pf_env *env, struct pf_diag *diag);

/* Appends the members of @pool_uuid (NULL: of any pool) among the regular files in @dir, in the order of their names, not those
 * in folders below. Errors: -ENOMEM, -errno of opening @dir, with @diag. */
int pf_scan_dir(const char *dir, const uint8_t *pool_uuid, const struct pf_env *env, struct pf_scan_list *list,
		struct pf_diag *diag);

/* The same among all block devices of /proc/partitions. */
int pf_scan_devices(const uint8_t *pool_uuid, const struct pf_env *env, struct pf_scan_list *list,
		    struct pf_diag *diag);

/* @list starts as all zeros; this frees what was appended and makes it so again. */
void pf_scan_free(struct pf_scan_list *list);

#endif
