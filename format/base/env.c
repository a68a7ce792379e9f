/* SPDX-License-Identifier: MIT */
#include "base/env.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

/* The clock by which the kernel sets times, some milliseconds behind the finer one: what it and we set in turn must not go back. */
static int64_t system_now_ns(void *arg)
{
	(void)arg;
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME_COARSE, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static uint64_t system_random64(void *arg)
{
	(void)arg;
	uint64_t v;
	/* 8 bytes never come short, and getrandom() only waits for entropy right after boot */
	if (getrandom(&v, sizeof(v), 0) != sizeof(v))
		abort();
	return v;
}

static void system_log(void *arg, enum pf_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	(void)message;
}

const struct pf_env *pf_env_system(void)
{
	static const struct pf_env env = {
		.now_ns = system_now_ns,
		.random64 = system_random64,
		.log = system_log,
	};
	return &env;
}

void pf_log(const struct pf_env *env, enum pf_log_level level, const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	env->log(env->arg, level, line);
}
