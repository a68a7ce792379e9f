/* SPDX-License-Identifier: MIT */
#include "space/bits.h"

#include <stdbool.h>
#include <string.h>

static uint32_t next(const uint64_t *words, uint32_t from, uint32_t end, uint64_t flip)
{
	if (from >= end)
		return end;
	uint32_t w = from / 64;
	uint64_t word = (words[w] ^ flip) & ~UINT64_C(0) << from % 64;
	while (!word) {
		if (++w * 64 >= end)
			return end;
		word = words[w] ^ flip;
	}
	uint32_t bit = w * 64 + (uint32_t)__builtin_ctzll(word);
	return bit < end ? bit : end;
}

uint32_t pf_bits_next_clear(const uint64_t *words, uint32_t from, uint32_t end)
{
	return next(words, from, end, ~UINT64_C(0));
}

uint32_t pf_bits_next_set(const uint64_t *words, uint32_t from, uint32_t end)
{
	return next(words, from, end, 0);
}

/* The bits of word @w that lie in [from, end); end > from. */
static uint64_t mask_of(uint32_t w, uint32_t from, uint32_t end)
{
	uint64_t mask = ~UINT64_C(0);
	if (w == from / 64)
		mask &= ~UINT64_C(0) << from % 64;
	if (w == end / 64)
		mask &= ~(~UINT64_C(0) << end % 64);
	return mask;
}

uint32_t pf_bits_set(uint64_t *words, uint32_t from, uint32_t nr)
{
	uint32_t changed = 0, end = from + nr;
	for (uint32_t w = from / 64; w * 64 < end; w++) {
		uint64_t mask = mask_of(w, from, end);
		changed += (uint32_t)__builtin_popcountll(mask & ~words[w]);
		words[w] |= mask;
	}
	return changed;
}

uint32_t pf_bits_clear(uint64_t *words, uint32_t from, uint32_t nr)
{
	uint32_t changed = 0, end = from + nr;
	for (uint32_t w = from / 64; w * 64 < end; w++) {
		uint64_t mask = mask_of(w, from, end);
		changed += (uint32_t)__builtin_popcountll(mask & words[w]);
		words[w] &= ~mask;
	}
	return changed;
}

uint32_t pf_bits_count_clear(const uint64_t *words)
{
	uint32_t nr = 0;
	for (uint32_t w = 0; w < PF_MAP_WORDS; w++)
		nr += (uint32_t)__builtin_popcountll(~words[w]);
	return nr;
}

/* -- quads
 * ------------------------------------------------------------------------------------------------------------ */

#define LOWEST_OF_QUADS UINT64_C(0x1111111111111111)

/* The lowest bit of each whole quad. */
static uint64_t whole_quads(uint64_t word)
{
	word |= word >> 1;
	word |= word >> 2;
	return ~word & LOWEST_OF_QUADS;
}

uint32_t pf_bits_count_quads(const uint64_t *words, uint32_t from, uint32_t nr)
{
	uint32_t count = 0, end = from + nr;
	from -= from % PF_NODE_BLOCKS;
	end += (PF_NODE_BLOCKS - end % PF_NODE_BLOCKS) % PF_NODE_BLOCKS;
	for (uint32_t w = from / 64; w * 64 < end; w++)
		count += (uint32_t)__builtin_popcountll(whole_quads(words[w]) & mask_of(w, from, end));
	return count;
}

uint32_t pf_bits_fit_quads(const uint64_t *words, uint32_t from, uint32_t nr, uint64_t quads)
{
	for (uint32_t at = from; at < from + nr; at += PF_NODE_BLOCKS - at % PF_NODE_BLOCKS) {
		bool whole = whole_quads(words[at / 64]) >> (at % 64 & ~3u) & 1;
		if (whole && quads-- == 0)
			return at - from;
	}
	return nr;
}

void pf_bits_keep_whole(const uint64_t *words, uint64_t *out)
{
	for (uint32_t w = 0; w < PF_MAP_WORDS; w++)
		out[w] = ~(whole_quads(words[w]) * 15);
}

void pf_bits_keep_broken(const uint64_t *words, uint64_t *out)
{
	for (uint32_t w = 0; w < PF_MAP_WORDS; w++)
		out[w] = words[w] | whole_quads(words[w]) * 15;
}

/* -- runs
 * ------------------------------------------------------------------------------------------------------------- */

uint32_t pf_bits_find(const uint64_t *words, uint32_t from, uint32_t end, uint32_t want, uint32_t *start)
{
	uint32_t best = 0;
	*start = from;
	for (uint32_t a = pf_bits_next_clear(words, from, end); a < end;) {
		uint32_t b = pf_bits_next_set(words, a, end);
		if (b - a > best) {
			best = b - a;
			*start = a;
			if (best >= want)
				break;
		}
		a = pf_bits_next_clear(words, b, end);
	}
	return best;
}

void pf_bits_pack(const uint64_t *words, uint8_t *bytes)
{
	for (uint32_t w = 0; w < PF_MAP_WORDS; w++) {
		struct le64 v = pf_le64(words[w]);
		memcpy(bytes + w * sizeof(v), &v, sizeof(v));
	}
}

void pf_bits_unpack(const uint8_t *bytes, uint64_t *words)
{
	for (uint32_t w = 0; w < PF_MAP_WORDS; w++) {
		struct le64 v;
		memcpy(&v, bytes + w * sizeof(v), sizeof(v));
		words[w] = pf_get64(v);
	}
}
