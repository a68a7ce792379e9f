/* SPDX-License-Identifier: MIT
 *
 * Purpose: is the pool what it should be (fsck), and can every block still be read (scrub)? Both only look, unless asked to repair.
 *
 * Invariants
 *   I1  Problems are rows of problem.def, each with a permanent id, found in one place and reported through the sink.
 *   I2  The passes read the committed tree by pf_set_read() and pf_node_validate(), not through the engine's cache or its
 *       look-ups: what judges the engine does not share its mistakes.
 *   I3  Repairs go through a pool open for writing, as ordinary changes and a checkpoint: a crash during a repair is a crash.
 *   I4  After a repair a second run finds nothing.
 *
 * Uses: everything below check/.
 */
#ifndef PF_CHECK_H
#define PF_CHECK_H

#include "pool/pool.h"

enum pf_problem {
#define PROBLEM(NAME, id, repair, text) PF_PROBLEM_##NAME,
#include "check/problem.def"
#undef PROBLEM
	PF_PROBLEM_COUNT
};
enum pf_repair {
	PF_REPAIR_NONE, /* cannot be repaired here (data or tree lost) */
	PF_REPAIR_AUTO, /* safe: fsck -p does it */
	PF_REPAIR_ASK,  /* fsck -y, or after a question */
};

struct pf_problem_report {
	enum pf_problem problem;
	const char *id;      /* "PF0301" */
	enum pf_repair repair;
	char message[512];   /* what and where, one line */
};

struct pf_check_sink {
	/* A problem was found; each is reported once. Returns true when it is to be repaired (looked at only if repair != NONE
	 * and the run repairs). Repairs follow after the passes; the result says how many stood the second look. */
	bool (*problem)(void *arg, const struct pf_problem_report *report);
	/* @done of @total units of pass @pass; may be NULL. Returns false to stop (check then returns -EINTR). */
	bool (*progress)(void *arg, const char *pass, uint64_t done, uint64_t total);
	void *arg;
};

struct pf_check_options {
	bool repair;      /* needs members open for writing */
	bool check_data;  /* also read every data block (a scrub) */
};

struct pf_check_result {
	uint64_t nr_problems, nr_repaired, nr_left;
	uint64_t nr_inodes, nr_directories, nr_extents, data_blocks, node_blocks, nr_orphans;
	uint64_t nr_log_records; /* not redone: a run that only looks judges the last checkpoint, which is whole without them */
	uint64_t nr_single_nodes; /* with one copy where new ones get two: an upgrade to version 6 was interrupted */
};

/* Checks the pool on @ios (all members, any order; takes the ios, also on failure). Errors: those of opening a pool; -EIO;
 * -EINTR. Problems are no error: see @result. */
int pf_check(struct pf_io **ios, unsigned nr, const struct pf_check_options *options, const struct pf_env *env,
	     const struct pf_check_sink *sink, struct pf_check_result *result, struct pf_diag *diag);

/* -- scrub ---------------------------------------------------------------------------------------------------------- */
struct pf_scrub_options {
	bool fill_in;           /* compute the CRCs of no-CRC extents (pool open for writing) */
	uint64_t rate_bytes_s;  /* per member; 0: no limit */
};
struct pf_scrub_error {
	const char *path;      /* of the file, "?" when its name is lost; NULL: metadata */
	uint64_t ino, file_off_bytes;
	const char *member;    /* name of the member */
	uint64_t member_off_bytes;
	int err;               /* -PF_EDATA_CSUM, -EIO, a node or map code */
	bool good_copy;        /* metadata: nothing is lost, fsck.poolfs -p -f writes the damaged copy anew */
};
struct pf_scrub_sink {
	void (*error)(void *arg, const struct pf_scrub_error *error);
	bool (*progress)(void *arg, uint64_t done_bytes, uint64_t total_bytes); /* false: stop, -EINTR */
	void *arg;
};
struct pf_scrub_result {
	uint64_t data_bytes, metadata_bytes, nr_errors, nr_damaged_files;
	uint64_t unverified_bytes; /* no CRC on disk */
	uint64_t filled_in_bytes;
};
/* Reads and verifies every block of data and metadata, in physical order per member, members in parallel (a thread each).
 * @pool is open (read-only unless fill_in), without workers. */
int pf_scrub(struct pf_pool *pool, const struct pf_scrub_options *options, const struct pf_scrub_sink *sink,
	     struct pf_scrub_result *result);

#endif
