/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>

#define LONG_BREATH_NS 1000000
#define SKIPPED_BREATHS 100
#define KERNEL_MS 200 /* what the kernel usually needs by far */

static void *run(void *arg)
{
	struct pf_thread *thread = arg;
	thread->run(thread->arg);
	sem_post(&thread->ended);
	return NULL;
}

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Several threads at once may count wrongly: then it is a breath more or less. */
void pf_thread_breathe(struct pf_breath *breath)
{
	unsigned nr_skip = atomic_load_explicit(&breath->nr_skip, memory_order_relaxed);
	if (nr_skip) {
		atomic_store_explicit(&breath->nr_skip, nr_skip - 1, memory_order_relaxed);
		return;
	}
	int64_t start = now_ns();
	sched_yield();
	if (now_ns() - start > LONG_BREATH_NS)
		atomic_store_explicit(&breath->nr_skip, SKIPPED_BREATHS, memory_order_relaxed);
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
