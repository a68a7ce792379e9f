/* SPDX-License-Identifier: MIT
 *
 * Purpose: something that can be done while disks work, handed down to whoever sets them to work.
 *
 * Invariants
 *   I1  It is done exactly once, in the thread that handed it down: as soon as the I/O has begun, and when there is none, or it is
 *       another's, at the latest before the call that got it returns. Nothing is waited for before it.
 *   I2  It is short, and waits for no I/O.
 *
 * Uses: nothing.
 */
#ifndef PF_MEANWHILE_H
#define PF_MEANWHILE_H

#include <stdbool.h>
#include <stddef.h>

struct pf_meanwhile {
	void (*run)(void *arg); /* NULL: has been done */
	void *arg;
};

/* NULL stands for nothing to do, here and wherever one is handed down. */
static inline bool pf_meanwhile_left(const struct pf_meanwhile *meanwhile)
{
	return meanwhile && meanwhile->run;
}

static inline void pf_meanwhile(struct pf_meanwhile *meanwhile)
{
	if (!pf_meanwhile_left(meanwhile))
		return;
	void (*run)(void *arg) = meanwhile->run;
	meanwhile->run = NULL;
	run(meanwhile->arg);
}

#endif
