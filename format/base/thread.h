/* SPDX-License-Identifier: MIT
 *
 * Purpose: threads that are waited for by their own word. One that has given up a request to a disk that does not answer has ended
 * for us when its function has returned; but the kernel lets its task exist until the request is back, and so long
 * pthread_join(3) would wait.
 *
 * Invariants
 *   I1  After pf_thread_join() the function has returned, and the thread uses no memory of ours.
 *
 * Uses: nothing.
 */
#ifndef PF_BASE_THREAD_H
#define PF_BASE_THREAD_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

struct pf_thread {
	pthread_t id; /* for signals and the like, until it is joined */
	void *(*run)(void *arg);
	void *arg;
	sem_t ended;
};

/* Lets those run who wait for a processor. Who computes for nobody in particular does that now and then, without locks: kernels let a
 * thread run for milliseconds while others wait that would need it for microseconds. Where they need it for long, though, he
 * would never get on: then it does nothing for a while. */
struct pf_breath {
	atomic_uint nr_skip;
};
void pf_thread_breathe(struct pf_breath *breath);

/* @thread stays where it is until it is joined. 0 or -errno. */
int pf_thread_start(struct pf_thread *thread, void *(*run)(void *arg), void *arg);
void pf_thread_join(struct pf_thread *thread);
/* The same, for @ms at most. False: it has not ended. */
bool pf_thread_join_for(struct pf_thread *thread, unsigned ms);

#endif
