/* SPDX-License-Identifier: MIT
 * Names that share a hash: who knows the pool's seed can make them, and the 16 places of a hash fill up; also where the places go
 * round from the highest hash to 0. XXH3 is a bijection for 8 bytes, which is undone here. */
#include "unit/posix_util.h"

#include "base/csum.h"
#include "block/engine.h"
#include "ondisk/item.h"

#define PRIME UINT64_C(0x9FB21C651E98DF25) /* of XXH3_rrmxmx() */

static uint64_t rotl(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static uint64_t mix(uint64_t x)
{
	return x ^ rotl(x, 49) ^ rotl(x, 24);
}

/* The inverse of mix(), a linear map over GF(2): Gaussian elimination. */
static uint64_t unmix(uint64_t y)
{
	uint64_t rows[64], x = 0;
	for (unsigned i = 0; i < 64; i++) {
		rows[i] = 0;
		for (unsigned j = 0; j < 64; j++)
			rows[i] |= (mix(UINT64_C(1) << j) >> i & 1) << j;
	}
	for (unsigned col = 0; col < 64; col++) {
		unsigned pivot = col;
		while (!(rows[pivot] >> col & 1))
			pivot++;
		uint64_t row = rows[pivot], bit = y >> pivot & 1, other = y >> col & 1;
		rows[pivot] = rows[col];
		rows[col] = row;
		y = (y & ~(UINT64_C(1) << pivot | UINT64_C(1) << col)) | other << pivot | bit << col;
		for (unsigned i = 0; i < 64; i++) {
			if (i == col || !(rows[i] >> col & 1))
				continue;
			rows[i] ^= row;
			y ^= bit << i;
		}
	}
	for (unsigned i = 0; i < 64; i++)
		x |= (y >> i & 1) << i;
	return x;
}

static uint64_t inverse(uint64_t odd)
{
	uint64_t x = odd;
	for (unsigned i = 0; i < 6; i++)
		x *= 2 - odd * x;
	return x;
}

/* What the hash's last steps were fed with. */
static uint64_t unhash(uint64_t h)
{
	h ^= h >> 28 ^ h >> 56;
	h *= inverse(PRIME);
	h ^= (h >> 35) + 8;
	h *= inverse(PRIME);
	return unmix(h);
}

static uint64_t as_number(const char *name)
{
	uint32_t a, b;
	memcpy(&a, name, 4);
	memcpy(&b, name + 4, 4);
	return (uint64_t)le32toh(b) + ((uint64_t)le32toh(a) << 32);
}

/* The @nr-th name of 8 bytes whose 56-bit hash is @hash. */
static void name_of(uint64_t seed, uint64_t hash, unsigned nr, char *name)
{
	uint64_t key = unhash(pf_hash64(seed, "somename", 8)) ^ as_number("somename");
	for (unsigned low = 0; low < 256; low++) {
		uint64_t n = unhash(hash << 8 | low) ^ key;
		uint32_t a = htole32((uint32_t)(n >> 32)), b = htole32((uint32_t)n);
		memcpy(name, &a, 4);
		memcpy(name + 4, &b, 4);
		name[8] = 0;
		if (memchr(name, 0, 8) || memchr(name, '/', 8) || nr--)
			continue;
		ck_assert_uint_eq(pf_hash64(seed, name, 8) >> 8, hash);
		return;
	}
	ck_abort_msg("not so many names");
}

static int create(uint64_t dir, uint64_t hash, unsigned nr)
{
	char name[9];
	struct pf_attr a;
	name_of(POOL->hash_seed, hash, nr, name);
	return pf_create(POOL, dir, name, 8, S_IFREG | 0644, user, 0, 0, &a);
}
static int drop(uint64_t dir, uint64_t hash, unsigned nr)
{
	char name[9];
	name_of(POOL->hash_seed, hash, nr, name);
	return pf_unlink(POOL, dir, name, 8);
}
static bool is_there(uint64_t dir, uint64_t hash, unsigned nr)
{
	char name[9];
	name_of(POOL->hash_seed, hash, nr, name);
	return look(dir, name) != 0;
}

static const uint64_t hashes[] = {
	UINT64_C(0x123456789abcde), 0, 7, PF_KEY_FIELD_MAX, PF_KEY_FIELD_MAX - 1, PF_KEY_FIELD_MAX - 15,
	PF_KEY_FIELD_MAX - 16
};
#define NR_HASHES (sizeof(hashes) / sizeof(hashes[0]))

START_TEST(sixteen_names_of_one_hash)
{
	uint64_t dir = make_dir(PF_ROOT_INO, "d"), h = hashes[_i];
	char name[9];
	for (unsigned k = 0; k < PF_HASH_PROBES; k++)
		ck_ok(create(dir, h, k));
	ck_err(create(dir, h, 3), -EEXIST);
	ck_err(create(dir, h, 16), -ENOSPC);
	ck_assert(!is_there(dir, h, 16));
	/* what is not there is not there, whether or not there would be room for it */
	ck_err(drop(dir, h, 16), -ENOENT);
	name_of(POOL->hash_seed, h, 16, name);
	ck_err(rename_name(dir, name, dir, "other", 0), -ENOENT);
	ck_err(rename_name(dir, name, dir, "other", 2), -ENOENT);
	uint64_t other = make_file(dir, "other");
	ck_err(rename_name(dir, "other", dir, name, 0), -ENOSPC);
	ck_err(rename_name(dir, "other", dir, name, 2), -ENOENT);
	ck_err(link_name(other, dir, name), -ENOSPC);
	/* a gap is found, and hides nothing behind it */
	ck_ok(drop(dir, h, 5));
	for (unsigned k = 0; k < PF_HASH_PROBES; k++)
		ck_assert_int_eq(is_there(dir, h, k), k != 5);
	ck_ok(rename_name(dir, "other", dir, name, 0));
	ck_assert_uint_eq(look(dir, name), other);
	ck_err(create(dir, h, 5), -ENOSPC);
	remount();
	dir = look(PF_ROOT_INO, "d");
	ck_assert_uint_eq(attr_of(dir).size_bytes, PF_HASH_PROBES);
	for (unsigned k = 0; k <= PF_HASH_PROBES; k++)
		ck_assert_int_eq(is_there(dir, h, k), k != 5);
	for (unsigned k = 0; k <= PF_HASH_PROBES; k++)
		ck_err(drop(dir, h, k), k == 5 ? -ENOENT : 0);
	ck_ok(rmdir_name(PF_ROOT_INO, "d"));
}
END_TEST

/* Neighbouring hashes take each other's places; renames among them. */
START_TEST(hashes_side_by_side)
{
	uint64_t dir = make_dir(PF_ROOT_INO, "d"), h = hashes[_i];
	bool there[20][4] = { { false } };
	struct rng r = { .state = (uint64_t)_i + 1 };
	for (unsigned round = 0; round < 3000; round++) {
		unsigned a = (unsigned)rng_below(&r, 20), b = (unsigned)rng_below(&r, 4),
			 c = (unsigned)rng_below(&r, 20);
		uint64_t at = (h + a) & PF_KEY_FIELD_MAX, to = (h + c) & PF_KEY_FIELD_MAX;
		char from_name[9], to_name[9];
		name_of(POOL->hash_seed, at, b, from_name);
		name_of(POOL->hash_seed, to, b, to_name);
		int err;
		switch (rng_below(&r, 4)) {
		case 0:
			err = create(dir, at, b);
			ck_assert_msg(there[a][b] ? err == -EEXIST : err == 0 || err == -ENOSPC, "%s",
				      pf_strerror(err));
			there[a][b] |= !err;
			break;
		case 1:
			ck_err(drop(dir, at, b), there[a][b] ? 0 : -ENOENT);
			there[a][b] = false;
			break;
		case 2:
			ck_assert_int_eq(is_there(dir, at, b), there[a][b]);
			break;
		default:
			err = rename_name(dir, from_name, dir, to_name, 0);
			ck_assert_msg(!there[a][b] ? err == -ENOENT : err == 0 || (err == -ENOSPC && !there[c][b]),
				      "%s", pf_strerror(err));
			if (!err && a != c) {
				there[a][b] = false;
				there[c][b] = true;
			}
		}
	}
	for (unsigned a = 0; a < 20; a++) {
		for (unsigned b = 0; b < 4; b++)
			ck_assert_int_eq(is_there(dir, (h + a) & PF_KEY_FIELD_MAX, b), there[a][b]);
	}
}
END_TEST

static uint64_t any_offset(uint64_t hash48)
{
	return hash48 << 8; /* as a 56-bit hash */
}

/* The same for extended attributes, whose hash has 48 bits; without places left the others work, and writing does. */
START_TEST(sixteen_attributes_of_one_hash)
{
	static const uint64_t some[] = { UINT64_C(0x123456789abc), UINT64_C(0xffffffffffff), UINT64_C(0xfffffffffff8),
					 0 };
	uint64_t f = make_file(PF_ROOT_INO, "f"), h = any_offset(some[_i]);
	char name[18][9], buf[5000];
	uint8_t *value = pattern(1, 5000);
	for (unsigned k = 0; k < 18; k++)
		name_of(POOL->hash_seed, h, k, name[k]);
	for (unsigned k = 0; k < PF_HASH_PROBES; k++)
		ck_ok(pf_setxattr(POOL, f, name[k], value, 300 * k, 0));
	ck_err(pf_setxattr(POOL, f, name[16], "v", 1, 0), -ENOSPC);
	ck_err(pf_setxattr(POOL, f, name[16], "v", 1, XATTR_REPLACE), -ENODATA);
	ck_err(pf_getxattr(POOL, f, name[16], buf, sizeof(buf)), -ENODATA);
	ck_err(pf_removexattr(POOL, f, name[16]), -ENODATA);
	for (unsigned k = 0; k < PF_HASH_PROBES; k++) {
		ck_assert_int_eq(pf_getxattr(POOL, f, name[k], buf, sizeof(buf)), 300 * k);
		ck_assert_mem_eq(buf, value, 300 * k);
	}
	ck_ok(pf_removexattr(POOL, f, name[15]));
	ck_ok(pf_removexattr(POOL, f, name[0]));
	ck_ok(pf_setxattr(POOL, f, name[16], value, 5000, 0));
	ck_ok(pf_setxattr(POOL, f, name[17], value, 4999, 0));
	ck_assert_int_eq(pf_getxattr(POOL, f, name[14], buf, sizeof(buf)), 300 * 14);
	ck_assert_int_eq(pf_getxattr(POOL, f, name[16], buf, sizeof(buf)), 5000);
	ck_assert_mem_eq(buf, value, 5000);
	ck_assert_int_eq(pf_listxattr(POOL, f, buf, sizeof(buf)), 16 * 9);
	put(f, 0, "x", 1);
	free(value);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("attack names");
	TCase *t = tcase_create("hashes");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, sixteen_names_of_one_hash, 0, NR_HASHES);
	tcase_add_loop_test(t, hashes_side_by_side, 0, NR_HASHES);
	tcase_add_loop_test(t, sixteen_attributes_of_one_hash, 0, 4);
	suite_add_tcase(s, t);
	return run_suite(s);
}
