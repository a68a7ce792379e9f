/* SPDX-License-Identifier: MIT
 *
 * Purpose: a group's bitmap in memory, searched and changed by words. Bit b of word w is block 64 * w + b; set = in
 * use.
 *
 * Invariants
 *   I1  Ranges are half open and lie in [0, PF_GROUP_BLOCKS).
 *   I2  No function walks single bits.
 *   I3  A quad is an aligned run of PF_NODE_BLOCKS blocks: a nibble of a word. It is whole when all of it is clear, else
 *       broken.
 *
 * Uses: ondisk.
 */
#ifndef PF_SPACE_BITS_H
#define PF_SPACE_BITS_H

#include "ondisk/ondisk.h"

#define PF_MAP_WORDS (PF_GROUP_BLOCKS / 64)
static_assert(PF_NODE_BLOCKS == 4 && PF_GROUP_BLOCKS % PF_NODE_BLOCKS == 0, "a node is a nibble of the map");

/* First clear / set bit in [from, end), or @end. */
uint32_t pf_bits_next_clear(const uint64_t *words, uint32_t from, uint32_t end);
uint32_t pf_bits_next_set(const uint64_t *words, uint32_t from, uint32_t end);

/* Change @nr bits; return how many were different before. */
uint32_t pf_bits_set(uint64_t *words, uint32_t from, uint32_t nr);
uint32_t pf_bits_clear(uint64_t *words, uint32_t from, uint32_t nr);

uint32_t pf_bits_count_clear(const uint64_t *words);

/* Whole quads among those of which [from, from + nr) touches a part. */
uint32_t pf_bits_count_quads(const uint64_t *words, uint32_t from, uint32_t nr);
/* How many of the @nr clear blocks behind @from can be set so that at most @quads whole quads are broken. */
uint32_t pf_bits_fit_quads(const uint64_t *words, uint32_t from, uint32_t nr, uint64_t quads);

/* Copies of a map in which only the blocks of whole quads, or only the clear ones of broken quads, are clear. */
void pf_bits_keep_whole(const uint64_t *words, uint64_t *out);
void pf_bits_keep_broken(const uint64_t *words, uint64_t *out);

/* The first run of at least @want clear bits in [from, end), else the longest. Returns its length (not cut to @want
 * when it is longer, 0 when nothing is clear) and start. */
uint32_t pf_bits_find(const uint64_t *words, uint32_t from, uint32_t end, uint32_t want, uint32_t *start);

/* To and from the bytes of a map on disk. */
void pf_bits_pack(const uint64_t *words, uint8_t *bytes);
void pf_bits_unpack(const uint8_t *bytes, uint64_t *words);

#endif
