/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#define KERNEL_MS 200 /* what the kernel usually needs by far */

static void *run(void *arg)
{
	struct pf_thread *thread = arg;
	thread->run(thread->arg);
	sem_post(&thread->ended);
	return NULL;
}

void pf_thread_breathe(void)
{
	sched_yield();
}

int pf_thread_start(struct pf_thread *thread, void *(*function)(void *arg), void *arg)
{
	thread->run = function;
	thread->arg = arg;
	sem_init(&thread->ended, 0, 0);
	int err = pthread_create(&thread->id, NULL, run, thread);
	if (err)
		sem_destroy(&thread->ended);
	return -err;
}

static struct timespec after_ms(clockid_t clock, unsigned ms)
{
	struct timespec t;
	clock_gettime(clock, &t);
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void release(struct pf_thread *thread)
{
	/* not pthread_clockjoin_np(): ThreadSanitizer does not know it. If the clock is set just now, little is lost. */
	struct timespec until = after_ms(CLOCK_REALTIME, KERNEL_MS);
	sem_destroy(&thread->ended);
	if (pthread_timedjoin_np(thread->id, NULL, &until))
		pthread_detach(thread->id);
}

void pf_thread_join(struct pf_thread *thread)
{
	while (sem_wait(&thread->ended) < 0)
		;
	release(thread);
}

bool pf_thread_join_for(struct pf_thread *thread, unsigned ms)
{
	struct timespec until = after_ms(CLOCK_MONOTONIC, ms);
	int err;
	do
		err = sem_clockwait(&thread->ended, CLOCK_MONOTONIC, &until) < 0 ? errno : 0;
	while (err == EINTR);
	if (!err)
		release(thread);
	return !err;
}
