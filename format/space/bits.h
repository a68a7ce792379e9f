/* SPDX-License-Identifier: MIT
 *
 * Purpose: a group's bitmap in memory, searched and changed by words. Bit b of word w is block 64 * w + b; set = in
 * use.
 *
 * Invariants
 *   I1  Ranges are half open and lie in [0, PF_GROUP_BLOCKS).
 *   I2  No function walks single bits.
 *
 * Uses: ondisk.
 */
#ifndef PF_SPACE_BITS_H
#define PF_SPACE_BITS_H

#include "ondisk/ondisk.h"

#define PF_MAP_WORDS (PF_GROUP_BLOCKS / 64)

/* First clear / set bit in [from, end), or @end. */
uint32_t pf_bits_next_clear(const uint64_t *words, uint32_t from, uint32_t end);
uint32_t pf_bits_next_set(const uint64_t *words, uint32_t from, uint32_t end);

/* Change @nr bits; return how many were different before. */
uint32_t pf_bits_set(uint64_t *words, uint32_t from, uint32_t nr);
uint32_t pf_bits_clear(uint64_t *words, uint32_t from, uint32_t nr);

uint32_t pf_bits_count_clear(const uint64_t *words);

/* The first run of at least @want clear bits in [from, end), else the longest. Returns its length (not cut to @want
 * when it is longer, 0 when nothing is clear) and start. */
uint32_t pf_bits_find(const uint64_t *words, uint32_t from, uint32_t end, uint32_t want, uint32_t *start);

/* To and from the bytes of a map on disk. */
void pf_bits_pack(const uint64_t *words, uint8_t *bytes);
void pf_bits_unpack(const uint8_t *bytes, uint64_t *words);

#endif
