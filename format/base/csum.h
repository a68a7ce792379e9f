/* SPDX-License-Identifier: MIT
 *
 * Purpose: the two checksums of the format.
 *   pf_crc64()  CRC-64/XZ (ECMA-182 polynomial, reflected, init and xorout all ones; check value of "123456789" is
 *               0x995DC9BBDF1939FA), over everything whose damage must be found. By ISA-L.
 *   pf_hash64() XXH3-64 with the pool's seed, for directory and attribute names only.
 *
 * Invariants
 *   I1  After a batch of CRCs the AVX upper halves are clean (vzeroupper): Debian's ISA-L leaves them dirty, and
 *       SSE code in the same thread would then run four times slower (docs/DESIGN.md, "Checksums").
 *
 * Uses: libisal, libxxhash.
 */
#ifndef PF_BASE_CSUM_H
#define PF_BASE_CSUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t pf_crc64(const void *data, size_t len_bytes);

/* One CRC for each of @nr blocks of @block_bytes lying one behind the other at @data. */
void pf_crc64_blocks(const void *data, size_t block_bytes, size_t nr, uint64_t *crc);

/* Copies and checksums block by block in one pass, while each block is in the cache. */
void pf_crc64_copy_blocks(void *dst, const void *src, size_t block_bytes, size_t nr, uint64_t *crc);

uint64_t pf_hash64(uint64_t seed, const void *data, size_t len_bytes);

#endif
