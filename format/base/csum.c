/* SPDX-License-Identifier: MIT */
#include "base/csum.h"

#include <isa-l/crc64.h>
#include <string.h>
#include <xxhash.h>

#ifdef __x86_64__
#include <immintrin.h>

__attribute__((target("avx"))) static void zeroupper(void)
{
	_mm256_zeroupper();
}

static void clean_upper_halves(void)
{
	if (__builtin_cpu_supports("avx"))
		zeroupper();
}
#else
static void clean_upper_halves(void)
{
}
#endif

uint64_t pf_crc64(const void *data, size_t len_bytes)
{
	uint64_t crc = crc64_ecma_refl(0, data, len_bytes);
	clean_upper_halves();
	return crc;
}

void pf_crc64_blocks(const void *data, size_t block_bytes, size_t nr, uint64_t *crc)
{
	const uint8_t *p = data;
	for (size_t i = 0; i < nr; i++, p += block_bytes)
		crc[i] = crc64_ecma_refl(0, p, block_bytes);
	clean_upper_halves();
}

void pf_crc64_copy_blocks(void *dst, const void *src, size_t block_bytes, size_t nr, uint64_t *crc)
{
	uint8_t *d = dst;
	const uint8_t *s = src;
	for (size_t i = 0; i < nr; i++, d += block_bytes, s += block_bytes) {
		/* before the copy: memcpy of libc may use SSE */
		crc[i] = crc64_ecma_refl(0, s, block_bytes);
		clean_upper_halves();
		memcpy(d, s, block_bytes);
	}
}

uint64_t pf_hash64(uint64_t seed, const void *data, size_t len_bytes)
{
	return XXH3_64bits_withSeed(data, len_bytes, seed);
}
