/* SPDX-License-Identifier: MIT
 * Members that do not answer (set.h I7). */
#include "member/set.h"

#include <time.h>

/* Called of one io by whoever notices; of the pool nothing is known here but the set. */
static void on_silent(void *arg, struct pf_io *io)
{
	struct pf_set *set = arg;
	unsigned id = 0;
	while (set->members[id].io != io)
		id++;
	if (!(pf_set_fail(set, UINT32_C(1) << id, "request", -PF_EMEMBER_SILENT) >> id & 1))
		return;
	int none = 0;
	if (atomic_compare_exchange_strong(&set->members[id].error, &none, -PF_EMEMBER_SILENT))
		pf_log(set->env, PF_LOG_ERROR,
		       "%s: no answer for more than %u seconds, and the pool cannot do without this member: what is on it gives errors, and "
		       "nothing can be changed any more; check the disk and its cable, or the host that it lies on, unmount and mount again",
		       io->name, set->silence_seconds);
}

static unsigned list_ios(struct pf_set *set, struct pf_io **ios)
{
	for (unsigned id = 0; id < set->nr; id++)
		ios[id] = set->members[id].io;
	return set->nr;
}

static unsigned tick_ms(const struct pf_set *set)
{
	return set->tick_ms ? set->tick_ms : 1000;
}

void pf_set_guard(struct pf_set *set, unsigned seconds)
{
	struct pf_io *ios[PF_MAX_MEMBERS];
	set->silence_seconds = seconds;
	if (seconds)
		pf_aio_guard(set->aio, ios, list_ios(set, ios), seconds, tick_ms(set), on_silent, set);
}

void pf_set_tick(struct pf_set *set)
{
	struct pf_io *ios[PF_MAX_MEMBERS];
	pf_aio_tick(set->aio, ios, list_ios(set, ios));
}

/* Seconds are counted, not read from a clock: a machine that was asleep, or a process that was stopped, has missed no answer. */
static void *watch(void *arg)
{
	struct pf_set *set = arg;
	struct timespec next, now;
	unsigned ms = tick_ms(set);
	pthread_mutex_lock(&set->watch_lock);
	clock_gettime(CLOCK_MONOTONIC, &next);
	while (!set->watch_stop) {
		next.tv_nsec += (long)ms * 1000000;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		while (!set->watch_stop && pthread_cond_timedwait(&set->watch_stopped, &set->watch_lock, &next) != ETIMEDOUT)
			;
		pthread_mutex_unlock(&set->watch_lock);
		pf_set_tick(set);
		pthread_mutex_lock(&set->watch_lock);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > next.tv_sec + 1)
			next = now;
	}
	pthread_mutex_unlock(&set->watch_lock);
	return NULL;
}

int pf_set_start_watch(struct pf_set *set)
{
	if (!set->silence_seconds || set->watching)
		return 0;
	int err = -pthread_create(&set->watcher, NULL, watch, set);
	set->watching = !err;
	return err;
}

void pf_set_stop_watch(struct pf_set *set)
{
	if (!set->watching)
		return;
	pthread_mutex_lock(&set->watch_lock);
	set->watch_stop = true;
	pthread_cond_broadcast(&set->watch_stopped);
	pthread_mutex_unlock(&set->watch_lock);
	pthread_join(set->watcher, NULL);
	set->watching = false;
}
