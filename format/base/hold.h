/* SPDX-License-Identifier: MIT
 *
 * Purpose: something that must not happen while anybody holds it off. Like a lock that is held shared or exclusively, except that a hold
 * taken by one thread may be given back by another.
 *
 * Invariants
 *   I1  pf_hold_close() returns when nobody has a hold; until pf_hold_open() nobody gets one.
 *   I2  Who closes does not wait for ever for holds that never end: new ones wait behind it.
 *
 * Uses: pthread.
 */
#ifndef PF_BASE_HOLD_H
#define PF_BASE_HOLD_H

#include <pthread.h>
#include <stdbool.h>

struct pf_hold {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned nr;
	bool closed;
};

void pf_hold_init(struct pf_hold *hold);
void pf_hold_destroy(struct pf_hold *hold); /* nobody has one */

void pf_hold_enter(struct pf_hold *hold);
void pf_hold_leave(struct pf_hold *hold);

/* One thread at a time. */
void pf_hold_close(struct pf_hold *hold);
void pf_hold_open(struct pf_hold *hold);

#endif
