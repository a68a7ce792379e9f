/* SPDX-License-Identifier: MIT */
#include "check/checker.h"

#include "base/csum.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *id;
	enum pf_repair repair;
	const char *text;
} problems[] = {
#define PROBLEM(NAME, id, repair, text) { id, PF_REPAIR_##repair, text },
#include "check/problem.def"
#undef PROBLEM
};

/* -- the set of what was reported: open addressing, at most half full -------------------------------------------- */
static struct pf_seen *seen_find(struct pf_seen *table, size_t cap, uint64_t hash)
{
	size_t i = hash & (cap - 1);
	while (table[i].hash && table[i].hash != hash)
		i = (i + 1) & (cap - 1);
	return &table[i];
}

static bool seen_grow(struct pf_checker *c)
{
	size_t cap = c->cap_seen ? c->cap_seen * 2 : 256;
	struct pf_seen *table = calloc(cap, sizeof(*table));
	if (!table)
		return false;
	for (size_t i = 0; i < c->cap_seen; i++) {
		if (c->seen[i].hash)
			*seen_find(table, cap, c->seen[i].hash) = c->seen[i];
	}
	free(c->seen);
	c->seen = table;
	c->cap_seen = cap;
	return true;
}

/* True the first time. Without memory everything counts as seen: better to say a thing too rarely than to repair for
 * ever. */
static bool first_time(struct pf_checker *c, enum pf_problem problem, const char *message)
{
	uint64_t hash = pf_hash64(c->salt + problem, message, strlen(message));
	if (c->nr_seen * 2 >= c->cap_seen && !seen_grow(c)) {
		c->nr_found++;
		return false;
	}
	struct pf_seen *seen = seen_find(c->seen, c->cap_seen, hash ? hash : 1);
	bool is_new = !seen->hash;
	if (is_new || seen->round != c->round)
		c->nr_found++;
	seen->hash = hash ? hash : 1;
	seen->round = c->round;
	c->nr_seen += is_new;
	return is_new;
}

bool pf_check_report(struct pf_checker *c, enum pf_problem problem, const char *fmt, ...)
{
	struct pf_problem_report report = {
		.problem = problem,
		.id = problems[problem].id,
		.repair = problems[problem].repair,
	};
	int len = snprintf(report.message, sizeof(report.message), "%s: ", problems[problem].text);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(report.message + len, sizeof(report.message) - (size_t)len, fmt, ap);
	va_end(ap);

	if (!first_time(c, problem, report.message))
		return false;
	c->result->nr_problems++;
	bool wanted = c->sink->problem && c->sink->problem(c->sink->arg, &report);
	return wanted && c->options->repair && report.repair != PF_REPAIR_NONE;
}

int pf_check_progress(struct pf_checker *c, const char *pass, uint64_t done, uint64_t total)
{
	if (!c->sink->progress || c->sink->progress(c->sink->arg, pass, done, total))
		return 0;
	return -EINTR;
}

struct pf_where pf_check_place(const struct pf_set *set, pf_addr addr)
{
	struct pf_where place;
	unsigned member = pf_addr_member(addr);
	if (member < set->nr)
		snprintf(place.text, sizeof(place.text), "%.120s, block %llu", set->members[member].io->name,
			 (unsigned long long)pf_addr_block(addr));
	else
		snprintf(place.text, sizeof(place.text), "member %u, block %llu", member,
			 (unsigned long long)pf_addr_block(addr));
	return place;
}
