/* SPDX-License-Identifier: MIT */
#include "load.h"

#include <pthread.h>
#include <stdbool.h>

struct gate {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool open, called_off;
};

struct load_thread {
	pthread_t thread;
	unsigned index;
	int (*body)(unsigned thread, void *arg);
	void *arg;
	struct gate *gate;
	int err;
};

static void open_gate(struct gate *gate, bool called_off)
{
	pthread_mutex_lock(&gate->mutex);
	gate->open = true;
	gate->called_off = called_off;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->mutex);
}

static bool wait_at(struct gate *gate)
{
	pthread_mutex_lock(&gate->mutex);
	while (!gate->open)
		pthread_cond_wait(&gate->changed, &gate->mutex);
	bool go = !gate->called_off;
	pthread_mutex_unlock(&gate->mutex);
	return go;
}

static void *run_thread(void *arg)
{
	struct load_thread *t = arg;
	if (wait_at(t->gate))
		t->err = t->body(t->index, t->arg);
	return NULL;
}

int load_run(unsigned nr, int (*body)(unsigned thread, void *arg), void *arg)
{
	struct load_thread threads[LOAD_MAX_THREADS];
	struct gate gate = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
	int err = 0;
	unsigned nr_started = 0;
	while (nr_started < nr && !err) {
		struct load_thread *t = &threads[nr_started];
		*t = (struct load_thread){ .index = nr_started, .body = body, .arg = arg, .gate = &gate };
		err = -pthread_create(&t->thread, NULL, run_thread, t);
		nr_started += !err;
	}
	open_gate(&gate, err != 0);
	for (unsigned i = 0; i < nr_started; i++) {
		pthread_join(threads[i].thread, NULL);
		err = err ? err : threads[i].err;
	}
	return err;
}
