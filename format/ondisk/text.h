/* SPDX-License-Identifier: MIT
 *
 * Purpose: putting words, names, times and addresses one after another into a buffer; for item_text.c and record_text.c.
 *
 * Invariants
 *   I1  The buffer holds a terminated string at all times; what has no room is cut off.
 *
 * Uses: ondisk.
 */
#ifndef PF_ONDISK_TEXT_H
#define PF_ONDISK_TEXT_H

#include "ondisk/ondisk.h"

#include <time.h>

struct pf_text {
	char *buf;
	size_t cap, len;
};

struct pf_text pf_text_begin(char *buf, size_t cap); /* @cap: at least 1 */
void pf_text_put(struct pf_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pf_text_addr(struct pf_text *t, pf_addr addr);
/* In quotes; control characters, quotes and backslashes as \ooo. */
void pf_text_quoted(struct pf_text *t, const void *bytes, size_t len);
/* Long ones are cut, and say so. */
void pf_text_hex(struct pf_text *t, const void *bytes, size_t len);
/* " mtime 1700000000.000000000" */
void pf_text_timespec(struct pf_text *t, const char *name, struct timespec ts);

#endif
