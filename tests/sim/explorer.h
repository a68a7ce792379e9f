/* SPDX-License-Identifier: MIT
 *
 * Purpose: the crash explorer: takes a recorded run, cuts the power at many points, builds the states that the disks could be in,
 * opens each, checks it, and asks the oracle whether the promise was kept. Some recovered pools go on working and are cut again,
 * perhaps while they still recover.
 *
 * Invariants
 *   I1  A state has a name, such as v5:m3:pfile:seed42:cut117:sub9 (and :recut5:resub2 when the power failed a second time), from
 *       which it can be built again.
 *   I2  sub 0: all that was not flushed is lost; 1: all of it is there; 2: the superblocks only; 3: all but the beginning of the
 *       log's; others: by a seed made of the whole name. sub % 8 == 5 with two copies of the log: one of them is gone as well.
 *   I3  recut even: in the mount of the second life, which is its new epoch, and, when the log held something, redoing that and the
 *       checkpoint after it; odd: anywhere in that life.
 *
 * Uses: workload.
 */
#ifndef PF_TEST_EXPLORER_H
#define PF_TEST_EXPLORER_H

#include "sim/workload.h"

struct explore_id {
	struct workload_config run;
	size_t cut;
	unsigned sub;
	bool again; /* a second life, and a second cut */
	size_t recut;
	unsigned resub;
};

struct explorer {
	struct workload w;
	uint64_t nr_states, nr_again, nr_bad;
	uint64_t nr_redone;                     /* mounts that found something in the log */
	uint64_t nr_cut_epoch, nr_cut_redoing;  /* second cuts in what a mount begins with, and in what it redoes (I3) */
	uint64_t nr_one_copy;                   /* states with one copy of the log */
	uint64_t max_bad;     /* stop after so many */
	bool quiet;           /* bad states are counted only */
	bool verbose;         /* the engine's messages */
	char first_bad[2500]; /* name and reason of the first */
};

/* Runs the workload. 0, or -1 and e->first_bad when the run itself went wrong. */
int explorer_run(struct explorer *e, const struct workload_config *config);
void explorer_free(struct explorer *e);
/* About @nr_states states of the run, spread over all of it. */
void explorer_states(struct explorer *e, uint64_t nr_states);
/* One state. 0: the promise is kept. */
int explorer_state(struct explorer *e, const struct explore_id *id, char *why, size_t cap);

void explore_name(const struct explore_id *id, char *buf, size_t cap);
/* Of its text; false when it is none. */
bool explore_parse(const char *text, struct explore_id *id);

#endif
