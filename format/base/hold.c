/* SPDX-License-Identifier: MIT */
#include "base/hold.h"

#include <assert.h>

void pf_hold_init(struct pf_hold *hold)
{
	pthread_mutex_init(&hold->lock, NULL);
	pthread_cond_init(&hold->changed, NULL);
	hold->nr = 0;
	hold->closed = false;
}

void pf_hold_destroy(struct pf_hold *hold)
{
	assert(!hold->nr);
	pthread_cond_destroy(&hold->changed);
	pthread_mutex_destroy(&hold->lock);
}

void pf_hold_enter(struct pf_hold *hold)
{
	pthread_mutex_lock(&hold->lock);
	while (hold->closed)
		pthread_cond_wait(&hold->changed, &hold->lock);
	hold->nr++;
	pthread_mutex_unlock(&hold->lock);
}

void pf_hold_leave(struct pf_hold *hold)
{
	pthread_mutex_lock(&hold->lock);
	assert(hold->nr > 0);
	if (--hold->nr == 0 && hold->closed)
		pthread_cond_broadcast(&hold->changed);
	pthread_mutex_unlock(&hold->lock);
}

void pf_hold_close(struct pf_hold *hold)
{
	pthread_mutex_lock(&hold->lock);
	assert(!hold->closed);
	hold->closed = true;
	while (hold->nr)
		pthread_cond_wait(&hold->changed, &hold->lock);
	pthread_mutex_unlock(&hold->lock);
}

void pf_hold_open(struct pf_hold *hold)
{
	pthread_mutex_lock(&hold->lock);
	hold->closed = false;
	pthread_cond_broadcast(&hold->changed);
	pthread_mutex_unlock(&hold->lock);
}
