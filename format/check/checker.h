/* SPDX-License-Identifier: MIT
 *
 * Purpose: what the passes of fsck share (private to check/).
 *
 * Invariants
 *   I1  A pass only looks, reports and notes repairs; repair.c carries them out after the passes, in the order in
 *       which they were noted. Then everything is looked at again: what a repair uncovers is found, and a repair
 *       counts only when the problem is gone.
 *   I2  A problem is reported once, however often it is found (seen).
 *   I3  Nothing is concluded from what was not seen while something could not be read (blocks_known, items_known).
 *
 * Uses: everything in check/.
 */
#ifndef PF_CHECK_CHECKER_H
#define PF_CHECK_CHECKER_H

#include "check/blockmap.h"
#include "check/check.h"
#include "check/inodes.h"
#include "check/repair.h"
#include "check/tables.h"
#include "check/twice.h"
#include "check/walk.h"
#include "ondisk/super.h"

struct pf_check_range { /* PF_TYPE_ORPHAN_RANGE */
	uint64_t number, data_id, ino, from_block, to_block;
};

struct pf_seen {
	uint64_t hash; /* 0: free */
	unsigned round;
};

struct pf_checker {
	struct pf_set *set;
	const struct pf_super *super; /* of the set: the winner */
	const struct pf_env *env;
	const struct pf_check_options *options;
	const struct pf_check_sink *sink;
	struct pf_check_result *result;
	struct pf_diag *diag;
	bool reclaim, data_csum; /* features */

	/* over all rounds */
	bool log_left; /* a log that has still to be redone */
	uint64_t nr_log_records; /* for the result of a run that only looks */
	unsigned round;
	struct pf_seen *seen; /* hash table of the problems reported */
	size_t nr_seen, cap_seen;
	uint64_t salt; /* random: nobody can make two problems or names collide */

	/* of this round */
	bool blocks_known; /* every node and extent was read: what is not marked is free */
	bool items_known;  /* every inode and name was read: what was not seen does not exist */
	uint64_t nr_found; /* problems of this round, each counted once */
	uint32_t stale;    /* mask of members whose own superblock names another table root than the pool's */
	struct pf_repairs repairs;
	struct pf_blockmap *map;
	struct pf_check_twice twice;
	struct pf_tables tables[PF_MAX_MEMBERS];
	struct pf_inodes inodes;
	uint64_t *orphans; /* inode numbers listed as unlinked, ascending */
	size_t nr_orphans, cap_orphans;
	struct pf_check_range *ranges; /* sorted by data id once the inodes are sealed */
	size_t nr_ranges, cap_ranges;
	struct pf_counters seen_counters; /* what the counters of the superblock should be */
};

/* Reports a problem; the message is its text and what @fmt adds. True when it is to be repaired. */
bool pf_check_report(struct pf_checker *c, enum pf_problem problem, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* 0 or -EINTR. */
int pf_check_progress(struct pf_checker *c, const char *pass, uint64_t done, uint64_t total);

/* On a pool that was not unmounted: is this a slot that a crash may have left torn, or in one ring only? */
static inline bool pf_check_slot_in_flight(const struct pf_super *super, unsigned slot)
{
	return !(super->flags & PF_SUPER_CLEAN) &&
	       (slot == super->generation % PF_SUPER_SLOTS || slot == (super->generation + 1) % PF_SUPER_SLOTS);
}

/* Opens the set of the pool on @ios, which it borrows. */
int pf_check_open_set(struct pf_checker *c, struct pf_io *const *ios, unsigned nr, unsigned flags, struct pf_set **out,
		      struct pf_diag *diag);

/* "member.img, block 123", for messages. */
struct pf_where {
	char text[160];
};
struct pf_where pf_check_place(const struct pf_set *set, pf_addr addr);

/* Reports a node that could not be read. 0 or -ENOMEM. */
int pf_check_bad_node(struct pf_checker *c, const struct pf_walk_node *node, int err);

/* The others went on without it. */
static inline bool pf_check_has_failed(const struct pf_checker *c, unsigned member)
{
	return c->super->members[member].state == PF_MEMBER_FAILED;
}

/* The map that @group should have, as far as is known (PF_GROUP_BLOCKS bits). False: too little is known to replace
 * it. */
bool pf_check_group_map(struct pf_checker *c, unsigned member, uint64_t group, uint8_t *used);

/* The intent log of a pool that was not unmounted (log.c). Before the passes: what only looks counts its records, and reports damage;
 * what repairs redoes it, unless something is in the way (c->log_left). After them: once more, and a damaged log is given up from the
 * damage on if the user wants that; *again: the pool has changed. 0, or what ends the whole check. */
int pf_check_log_before(struct pf_checker *c, struct pf_io *const *ios, unsigned nr);
int pf_check_log_after(struct pf_checker *c, struct pf_io *const *ios, unsigned nr, bool *again);

/* The passes. 0, or what ends the whole check: -EINTR, -ENOMEM. */
int pf_check_members(struct pf_checker *c);   /* pass 1 */
int pf_check_tree(struct pf_checker *c);      /* pass 2 */
int pf_check_space(struct pf_checker *c);     /* pass 3 */
int pf_check_names(struct pf_checker *c);     /* pass 4 */
int pf_check_connected(struct pf_checker *c); /* second half of pass 4 */
int pf_check_counts(struct pf_checker *c);    /* pass 5 */

#endif
