/* SPDX-License-Identifier: MIT */
#include "ondisk/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct pf_text pf_text_begin(char *buf, size_t cap)
{
	buf[0] = '\0';
	return (struct pf_text){ .buf = buf, .cap = cap };
}

void pf_text_put(struct pf_text *t, const char *fmt, ...)
{
	va_list ap;
	if (t->len + 1 >= t->cap)
		return;
	va_start(ap, fmt);
	int n = vsnprintf(t->buf + t->len, t->cap - t->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->len += (size_t)n < t->cap - t->len ? (size_t)n : t->cap - t->len - 1;
}

void pf_text_addr(struct pf_text *t, pf_addr addr)
{
	if (addr)
		pf_text_put(t, "%u:%" PRIu64, pf_addr_member(addr), pf_addr_block(addr));
	else
		pf_text_put(t, "none");
}

void pf_text_quoted(struct pf_text *t, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	pf_text_put(t, "\"");
	for (size_t i = 0; i < len; i++) {
		if (p[i] < 0x20 || p[i] == 0x7f || p[i] == '"' || p[i] == '\\')
			pf_text_put(t, "\\%03o", p[i]);
		else
			pf_text_put(t, "%c", p[i]);
	}
	pf_text_put(t, "\"");
}

void pf_text_hex(struct pf_text *t, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	size_t shown = len < 64 ? len : 64;
	for (size_t i = 0; i < shown; i++)
		pf_text_put(t, "%02x", p[i]);
	if (shown < len)
		pf_text_put(t, "... (%zu bytes)", len);
}

void pf_text_timespec(struct pf_text *t, const char *name, struct timespec ts)
{
	pf_text_put(t, " %s %jd.%09ld", name, (intmax_t)ts.tv_sec, ts.tv_nsec);
}
