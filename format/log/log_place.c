/* SPDX-License-Identifier: MIT
 * Which members have the log. */
#include "log/log.h"

#define LOG_COPIES 2u

void pf_log_place(struct pf_super *super)
{
	uint32_t failed = pf_super_failed(super);
	super->nr_log = 0;
	for (unsigned i = 0; i < super->nr_meta && super->nr_log < LOG_COPIES; i++) {
		if (!(failed >> super->meta_members[i] & 1))
			super->log_members[super->nr_log++] = super->meta_members[i];
	}
}
