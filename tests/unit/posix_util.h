/* SPDX-License-Identifier: MIT
 *
 * Purpose: a pool in memory for the tests of posix.h, and calls that must succeed.
 * Invariants: I1 Each test has a fresh pool of two members; its end closes it, and the check of the whole pool finds nothing.
 * Uses: sim/simpool.h, check.
 */
#ifndef PF_TEST_POSIX_UTIL_H
#define PF_TEST_POSIX_UTIL_H

#include "sim/simpool.h"
#include "unit/run_suite.h"

#include <check.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

static struct simpool *sp;
#define POOL (sp->pool)
static const struct pf_cred user = { 1000, 100 };

static inline void setup_config(const struct simpool_config *config)
{
	char why[1200] = "";
	sp = simpool_new(config, why, sizeof(why));
	ck_assert_msg(sp != NULL, "no pool: %s", why);
}

static inline void setup_with(unsigned version, unsigned nr_members, uint64_t size_bytes)
{
	struct simpool_config config = {
		.version = version, .nr_members = nr_members, .size_bytes = size_bytes, .seed = 1
	};
	setup_config(&config);
}

static inline void setup(void)
{
	setup_with(PF_VERSION_DEFAULT, 2, 32 * MIB);
}

/* Closes and opens again; the references are gone. */
static inline void remount(void)
{
	char why[1200] = "";
	ck_assert_msg(simpool_remount(sp, why, sizeof(why)) == 0, "remount: %s", why);
}

static inline void teardown(void)
{
	char why[1200] = "";
	ck_assert_msg(simpool_close(sp, why, sizeof(why)) == 0, "close: %s", why);
	ck_assert_msg(simpool_check(sp, why, sizeof(why)) == 0, "check: %s", why);
	simpool_free(sp);
}

static inline void tick(void)
{
	sp->env.now_ns += 1500000000;
}

#define ck_ok(expr)                                                                                                    \
	do {                                                                                                           \
		int64_t ck_ok_ = (expr);                                                                               \
		ck_assert_msg(ck_ok_ == 0, "%s gives %jd (%s)", #expr, (intmax_t)ck_ok_, pf_strerror((int)ck_ok_));    \
	} while (0)
#define ck_err(expr, expected)                                                                                         \
	do {                                                                                                           \
		int64_t ck_err_ = (expr);                                                                              \
		ck_assert_msg(ck_err_ == (expected), "%s gives %jd (%s), expected %s", #expr, (intmax_t)ck_err_,       \
			      pf_strerror((int)ck_err_), pf_strerror(expected));                                       \
	} while (0)

static inline uint64_t make(uint64_t dir, const char *name, uint32_t mode)
{
	struct pf_attr a;
	int err = pf_create(POOL, dir, name, strlen(name), mode, user, 0, 0, &a);
	ck_assert_msg(err == 0, "creating '%s' gives %s", name, pf_strerror(err));
	return a.ino;
}
static inline uint64_t make_file(uint64_t dir, const char *name)
{
	return make(dir, name, S_IFREG | 0644);
}
static inline uint64_t make_dir(uint64_t dir, const char *name)
{
	return make(dir, name, S_IFDIR | 0755);
}
/* The inode of a name, 0 when there is none; a reference is taken. */
static inline uint64_t look(uint64_t dir, const char *name)
{
	struct pf_attr a;
	int err = pf_lookup(POOL, dir, name, strlen(name), &a);
	ck_assert_msg(err == 0 || err == -ENOENT, "lookup of '%s' gives %s", name, pf_strerror(err));
	return err ? 0 : a.ino;
}
static inline int unlink_name(uint64_t dir, const char *name)
{
	return pf_unlink(POOL, dir, name, strlen(name));
}
static inline int rmdir_name(uint64_t dir, const char *name)
{
	return pf_rmdir(POOL, dir, name, strlen(name));
}
static inline int link_name(uint64_t ino, uint64_t dir, const char *name)
{
	struct pf_attr a;
	return pf_link(POOL, ino, dir, name, strlen(name), &a);
}
static inline int rename_name(uint64_t a, const char *from, uint64_t b, const char *to, unsigned flags)
{
	return pf_rename(POOL, a, from, strlen(from), b, to, strlen(to), flags, (struct pf_cred){ 0 });
}
static inline struct pf_attr attr_of(uint64_t ino)
{
	struct pf_attr a;
	int err = pf_getattr(POOL, ino, &a);
	ck_assert_msg(err == 0, "getattr of %ju gives %s", (uintmax_t)ino, pf_strerror(err));
	return a;
}
static inline void put(uint64_t ino, uint64_t off, const void *buf, size_t len)
{
	int64_t n = pf_write(POOL, ino, off, buf, len, 0);
	ck_assert_msg(n == (int64_t)len, "writing %zu bytes at %ju gives %jd", len, (uintmax_t)off, (intmax_t)n);
}
static inline int truncate_to(uint64_t ino, uint64_t size)
{
	struct pf_attr in = { .size_bytes = size };
	return pf_setattr(POOL, ino, PF_ATTR_SIZE, &in, NULL);
}
/* Reads into a fresh buffer (to be freed); *n gets the count or error. */
static inline uint8_t *get(uint64_t ino, uint64_t off, size_t len, int64_t *n)
{
	uint8_t *buf = aligned_alloc(4096, (pf_read_buf_bytes(off, len) + 4095) / 4096 * 4096 + 4096);
	*n = pf_read(POOL, ino, off, buf, len);
	memmove(buf, buf + off % 4096, *n > 0 ? (size_t)*n : 0);
	return buf;
}
/* The bytes must be there. */
static inline void ck_bytes(uint64_t ino, uint64_t off, const void *expected, size_t len)
{
	int64_t n;
	uint8_t *buf = get(ino, off, len, &n);
	ck_assert_msg(n == (int64_t)len, "reading %zu bytes at %ju of inode %ju gives %jd", len, (uintmax_t)off,
		      (uintmax_t)ino, (intmax_t)n);
	size_t k = 0;
	while (k < len && buf[k] == ((const uint8_t *)expected)[k])
		k++;
	ck_assert_msg(k == len, "byte %ju is %02x, expected %02x", (uintmax_t)(off + k), buf[k],
		      k < len ? ((const uint8_t *)expected)[k] : 0);
	free(buf);
}
static inline void ck_zeros(uint64_t ino, uint64_t off, size_t len)
{
	uint8_t *zeros = calloc(1, len);
	ck_bytes(ino, off, zeros, len);
	free(zeros);
}
/* Bytes that say where they belong. */
static inline uint8_t *pattern(uint64_t seed, size_t len)
{
	struct rng r = { .state = seed };
	uint8_t *buf = malloc(len ? len : 1);
	rng_fill(&r, buf, len);
	return buf;
}
/* All background work is done and durable. */
static inline void settle(void)
{
	int got;
	while ((got = pf_pool_step(POOL, false)) == 1)
		;
	ck_ok(got);
	ck_ok(pf_pool_sync(POOL));
}
static inline uint64_t free_blocks(void)
{
	struct pf_statfs s;
	pf_pool_statfs(POOL, &s);
	return s.free_blocks;
}
static inline uint64_t avail_blocks(void)
{
	struct pf_statfs s;
	pf_pool_statfs(POOL, &s);
	return s.avail_blocks;
}

#endif
