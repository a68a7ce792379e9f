/* SPDX-License-Identifier: MIT
 *
 * Purpose: the outside world of an engine under test: a clock that stands still until the test moves it, seeded randomness,
 * messages counted and kept for a failure report.
 * Invariants: I1 Two engines given test_envs of one seed, and the same calls, do the same.
 * Uses: base/env.h, rng.h.
 */
#ifndef PF_TEST_ENV_H
#define PF_TEST_ENV_H

#include "base/env.h"
#include "model/rng.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

struct test_env {
	struct pf_env env;
	int64_t now_ns;
	struct rng rng;
	unsigned nr_messages[4]; /* by enum pf_log_level */
	bool verbose;            /* messages to stderr */
	char last_error[512];
};

static inline int64_t test_env_now(void *arg)
{
	return ((struct test_env *)arg)->now_ns;
}
static inline uint64_t test_env_random(void *arg)
{
	return rng_next(&((struct test_env *)arg)->rng);
}
static inline void test_env_log(void *arg, enum pf_log_level level, const char *message)
{
	struct test_env *t = arg;
	t->nr_messages[level & 3]++;
	if (level == PF_LOG_ERROR)
		snprintf(t->last_error, sizeof(t->last_error), "%s", message);
	if (t->verbose)
		fprintf(stderr, "[%d] %s\n", (int)level, message);
}

/* snprintf() for messages that may be cut off. */
__attribute__((format(printf, 3, 4))) static inline void say(char *buf, size_t cap, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(buf, cap, fmt, ap);
	va_end(ap);
}

/* @t must stay where it is. */
static inline void test_env_init(struct test_env *t, uint64_t seed)
{
	memset(t, 0, sizeof(*t));
	t->now_ns = INT64_C(1800000000) * 1000000000;
	t->rng.state = rng_mix(seed ^ UINT64_C(0x656e76));
	t->env.now_ns = test_env_now;
	t->env.random64 = test_env_random;
	t->env.log = test_env_log;
	t->env.arg = t;
}

static inline struct timespec test_env_time(const struct test_env *t)
{
	return (struct timespec){ t->now_ns / 1000000000, t->now_ns % 1000000000 };
}

#endif
