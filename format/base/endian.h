/* SPDX-License-Identifier: MIT
 *
 * Purpose: little-endian integers as one-member structs, so that a forgotten conversion does not compile.
 *
 * Invariants
 *   I1  Every integer that lies on disk has one of these types.
 *   I2  Alignment is 1: a struct of them has no padding and may be read at any address.
 *
 * Uses: nothing.
 */
#ifndef PF_BASE_ENDIAN_H
#define PF_BASE_ENDIAN_H

#include <endian.h>
#include <stdint.h>

struct le16 {
	uint16_t raw;
} __attribute__((packed));
struct le32 {
	uint32_t raw;
} __attribute__((packed));
struct le64 {
	uint64_t raw;
} __attribute__((packed));

static inline uint16_t pf_get16(struct le16 v)
{
	return le16toh(v.raw);
}
static inline uint32_t pf_get32(struct le32 v)
{
	return le32toh(v.raw);
}
static inline uint64_t pf_get64(struct le64 v)
{
	return le64toh(v.raw);
}
static inline struct le16 pf_le16(uint16_t v)
{
	return (struct le16){ htole16(v) };
}
static inline struct le32 pf_le32(uint32_t v)
{
	return (struct le32){ htole32(v) };
}
static inline struct le64 pf_le64(uint64_t v)
{
	return (struct le64){ htole64(v) };
}

#endif
