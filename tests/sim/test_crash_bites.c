/* SPDX-License-Identifier: MIT
 *
 * Purpose: shows that the crash explorer would notice: each ordering rule of the checkpoint is left out in turn (enum pf_break), and
 * the explorer must find a state that breaks the promise, within a bounded number of states. */
#include "sim/explorer.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct rule {
	const char *name;
	uint64_t bit;
	unsigned version; /* 0: 4 and 5 in turn */
	unsigned nr_members;
	int profile; /* where it is most likely to show first */
};
#define RULE(name, members, profile) { #name, PF_BREAK_##name, 0, members, WORKLOAD_##profile }
#define LOG_RULE(name, members, profile) { #name, PF_BREAK_##name, 6, members, WORKLOAD_##profile }
#define BOTH_RULE(name, members, profile) \
	RULE(name, members, profile), { #name " in version 6", PF_BREAK_##name, 6, members, WORKLOAD_##profile }
static const struct rule rules[] = {
	/* the checkpoint */
	BOTH_RULE(FLUSH_BEFORE_SUPER, 1, MIXED),
	BOTH_RULE(FLUSH_ONE_MEMBER, 2, MIXED),
	BOTH_RULE(FLUSH_AFTER_SUPER, 1, MIXED),
	BOTH_RULE(FLUSH_BEFORE_NODES, 1, MIXED),
	BOTH_RULE(FLUSH_BEFORE_MAPS, 1, MIXED),
	BOTH_RULE(FLUSH_BEFORE_COMPLETION, 1, MIXED),
	BOTH_RULE(REUSE_BEFORE_DURABLE, 1, OVERWRITES),
	BOTH_RULE(DISCARD_EARLY, 1, OVERWRITES),
	BOTH_RULE(MAP_BEFORE_DATA, 1, BIG),
	BOTH_RULE(MAP_IN_PLACE, 1, MIXED),
	BOTH_RULE(MAP_OF_NEXT_TXG, 1, MIXED),
	BOTH_RULE(HALF_OPERATION, 1, NAMES),
	BOTH_RULE(DRAIN_IN_PARTS, 1, MIXED),
	/* the log */
	LOG_RULE(LOG_NO_FLUSH, 1, SYNCS),
	LOG_RULE(LOG_FLUSH_EARLY, 1, SYNCS),
	LOG_RULE(LOG_SKIP_DATA_MEMBERS, 3, SYNCS),
	LOG_RULE(LOG_OLD_EPOCH, 1, RING),
	LOG_RULE(LOG_REWRITE, 1, SYNCS),
	LOG_RULE(LOG_START_EARLY, 1, SYNCS),
	LOG_RULE(LOG_OVERRUN, 1, RING),
	LOG_RULE(LOG_IGNORES_GAP, 1, RING),
	LOG_RULE(LOG_START_LATE, 1, SYNCS),
	LOG_RULE(LOG_ONE_COPY, 2, SYNCS),
	LOG_RULE(LOG_PROVES_EARLY, 1, SYNCS),
	LOG_RULE(LOG_FORGETS_DATA_ID, 1, SYNCS),
	LOG_RULE(RENAME_BEFORE_DATA, 1, SYNCS),
	LOG_RULE(FSYNC_FORGETS_FROZEN, 1, SYNCS),
	/* replay */
	LOG_RULE(REPLAY_UNVERIFIED, 1, SYNCS),
	LOG_RULE(REPLAY_UNCLAIMED, 1, SYNCS),
	LOG_RULE(REPLAY_CHECKPOINT, 1, SYNCS),
	LOG_RULE(REPLAY_OLD_EPOCH, 1, RING),
};
#define MAX_STATES 4000u

static struct workload_config config_for(const struct rule *rule, uint64_t seed)
{
	/* mostly the likely one, else the others in turn */
	int profile = seed % 4 ? rule->profile : (rule->profile + (int)(seed / 4)) % WORKLOAD_NR;
	return (struct workload_config){
		.pool = { .version = rule->version ? rule->version : seed % 2 ? 5 : 4,
			  .nr_members = rule->nr_members,
			  .size_bytes = UINT64_C(16) << 20,
			  .seed = seed,
			  /* with little memory data reaches the tree soon, without an fsync */
			  .cache_bytes = rule->version == 6 && profile == WORKLOAD_SYNCS && seed % 2 ? UINT64_C(64) << 10 : 0,
			  .discard = rule->bit == PF_BREAK_DISCARD_EARLY || (!rule->bit && seed % 2),
			  .break_rules = rule->bit },
		.nr_ops = profile == WORKLOAD_RING ? 800 : 200,
		.profile = profile,
	};
}

static bool noticed(const struct rule *rule)
{
	uint64_t states = 0;
	for (uint64_t seed = 1; states < MAX_STATES; seed++) {
		struct workload_config config = config_for(rule, seed);
		struct explorer e;
		alarm(300);
		/* a broken rule may harm the run already: what counts are the states that a power cut leaves up to there */
		bool ran = !explorer_run(&e, &config) || e.w.oracle;
		e.nr_bad = 0;
		e.max_bad = 1;
		e.quiet = true;
		if (ran)
			explorer_states(&e, 100);
		states += e.nr_states + 1;
		bool bad = e.nr_bad > 0;
		if (bad)
			printf("%s: noticed after %ju states: %s\n", rule->name, (uintmax_t)states, e.first_bad);
		explorer_free(&e);
		alarm(0);
		if (bad)
			return true;
	}
	printf("FAIL: %s was left out, and %ju states showed no harm\n", rule->name, (uintmax_t)states);
	return false;
}

/* Without a broken rule the same runs are good: otherwise what is found above proves nothing. */
static bool quiet_without(void)
{
	static const struct rule none = { "none", 0, 0, 2, WORKLOAD_MIXED };
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct workload_config config = config_for(&none, seed);
		struct explorer e;
		if (!explorer_run(&e, &config))
			explorer_states(&e, 40);
		bool bad = e.nr_bad > 0;
		if (bad)
			printf("FAIL: all rules kept: %s\n", e.first_bad);
		explorer_free(&e);
		if (bad)
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	bool good = argc > 1 || quiet_without();
	for (unsigned k = 0; k < sizeof(rules) / sizeof(rules[0]); k++) {
		if (argc > 1 && strcmp(argv[1], rules[k].name))
			continue;
		good = noticed(&rules[k]) && good;
		fflush(stdout);
	}
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
