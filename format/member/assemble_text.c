/* SPDX-License-Identifier: MIT */
#include "member/assemble.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

const char *pf_text_uuid(const uint8_t uuid[16], char text[PF_TEXT_BYTES])
{
	char *at = text;
	for (unsigned i = 0; i < 16; i++)
		at += sprintf(at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
	return text;
}

const char *pf_text_pool(const struct pf_super *super, char text[PF_TEXT_BYTES])
{
	char uuid[PF_TEXT_BYTES], label[PF_LABEL_BYTES + 1];
	pf_text_uuid(super->pool_uuid, uuid);
	if (!super->label[0]) {
		snprintf(text, PF_TEXT_BYTES, "pool %.36s", uuid);
		return text;
	}
	/* the label is whatever lies on the disk: it must not reach a terminal as commands */
	memcpy(label, super->label, sizeof(label));
	for (char *c = label; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	snprintf(text, PF_TEXT_BYTES, "pool \"%.64s\" (%.36s)", label, uuid);
	return text;
}

const char *pf_text_size(uint64_t bytes, char text[PF_TEXT_BYTES])
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB" };
	unsigned unit = 0;
	double value = (double)bytes / 1024;
	for (; value >= 1024 && unit < 4; unit++)
		value /= 1024;
	snprintf(text, PF_TEXT_BYTES, "%.1f %s", value, units[unit]);
	return text;
}

const char *pf_text_time(int64_t time_ns, char text[PF_TEXT_BYTES])
{
	struct tm tm;
	time_t seconds = (time_t)(time_ns / 1000000000);
	if (!gmtime_r(&seconds, &tm) || strftime(text, PF_TEXT_BYTES, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
		snprintf(text, PF_TEXT_BYTES, "%lld ns after 1970", (long long)time_ns);
	return text;
}

const char *pf_text_bits(uint64_t mask, char text[PF_TEXT_BYTES])
{
	int len = snprintf(text, PF_TEXT_BYTES, mask & (mask - 1) ? "bits" : "bit");
	const char *before = " ";
	for (unsigned bit = 0; bit < 64 && len < PF_TEXT_BYTES - 8; bit++) {
		if (mask >> bit & 1) {
			len += snprintf(text + len, PF_TEXT_BYTES - (size_t)len, "%s%u", before, bit);
			before = ", ";
		}
	}
	return text;
}

int pf_text_only_readable(const char *path, const struct pf_super *super, const char *what_to_do, struct pf_diag *diag)
{
	char pool[PF_TEXT_BYTES], bits[PF_TEXT_BYTES];
	return pf_diag_set(
		diag, -PF_EFEATURE,
		"%s: %s (format version %u) uses features that this program can only read: ro-compat %s; %s", path,
		pf_text_pool(super, pool), super->version, pf_text_bits(pf_features_unknown(&super->features).ro_compat, bits),
		what_to_do);
}
