/* SPDX-License-Identifier: MIT
 *
 * Purpose: is this UTF-8? File names are bytes; JSON and terminals want characters.
 * Invariants
 *   I1  Overlong forms, surrogates and values above U+10FFFF are not UTF-8.
 * Uses: nothing.
 */
#ifndef TOOLS_UTF8_H
#define TOOLS_UTF8_H

#include <stddef.h>

/* Length of the valid UTF-8 sequence that begins at @p (at most @left bytes), 0 when there is none. */
static inline size_t utf8_length(const unsigned char *p, size_t left)
{
	static const struct {
		unsigned char first_min, first_max, second_min, second_max, len;
	} forms[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	if (left == 0)
		return 0;
	if (*p < 0x80)
		return 1;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (*p < forms[i].first_min || *p > forms[i].first_max)
			continue;
		if (left < forms[i].len || p[1] < forms[i].second_min || p[1] > forms[i].second_max)
			return 0;
		for (size_t k = 2; k < forms[i].len; k++) {
			if ((p[k] & 0xc0) != 0x80)
				return 0;
		}
		return forms[i].len;
	}
	return 0;
}

#endif
