/* SPDX-License-Identifier: MIT
 * Which members have the log. */
#include "log/log.h"

#define LOG_COPIES 2u

void pf_log_place(struct pf_super *super)
{
	super->nr_log = super->nr_meta < LOG_COPIES ? super->nr_meta : LOG_COPIES;
	for (unsigned i = 0; i < super->nr_log; i++)
		super->log_members[i] = super->meta_members[i];
}
