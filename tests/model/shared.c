/* SPDX-License-Identifier: MIT */
#include "model/shared.h"

#include "sim/complain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK 4096u
#define WORDS (BLOCK / sizeof(uint64_t))

static const struct pf_cred cred = { 1000, 1000 };
static const char *const pair_names[2] = { "left", "right" };

static uint64_t tick(struct shared *s)
{
	return atomic_fetch_add(&s->tick, 1) + 1;
}

static bool no_space(struct shared *s, int64_t got)
{
	if (got == -ENOSPC)
		atomic_fetch_add(&s->nr_full, 1);
	return got == -ENOSPC;
}

static void register_name(char *name, unsigned reg)
{
	sprintf(name, "register-%u", reg);
}

static bool by_rename(unsigned reg)
{
	return reg < SHARED_REGISTERS / 2;
}

/* -- values -------------------------------------------------------------------------------------------------------------- */

static void fill(uint8_t *buf, uint64_t value, uint32_t nr_blocks)
{
	uint64_t *words = (uint64_t *)buf;
	for (size_t i = 0; i < nr_blocks * WORDS; i++)
		words[i] = value;
}

/* 0: there have been too many. */
static uint64_t new_value(struct shared *s, unsigned reg, uint32_t nr_blocks)
{
	uint64_t value = atomic_fetch_add(&s->nr_values, 1) + 1;
	if (value >= SHARED_MAX_VALUES)
		return 0;
	s->values[value].nr_blocks = nr_blocks;
	s->values[value].reg = reg;
	return value;
}

static void value_written(struct shared *s, uint64_t value, uint64_t begin, bool failed_to)
{
	struct shared_value *v = &s->values[value];
	v->failed = failed_to;
	atomic_store(&v->end, tick(s));
	if (failed_to)
		return;
	atomic_uint_fast64_t *latest = &s->registers[v->reg].latest_begin;
	uint64_t old = atomic_load(latest);
	while (old < begin && !atomic_compare_exchange_weak(latest, &old, begin))
		;
}

/* I1. @latest_begin: of the register, before the read began. */
static void check_value(struct shared *s, unsigned reg, const uint8_t *buf, int64_t len, uint64_t latest_begin)
{
	const uint64_t *words = (const uint64_t *)buf;
	uint64_t value = len > 0 ? words[0] : 0;
	if (len <= 0 || !value || value > atomic_load(&s->nr_values) || s->values[value].reg != reg) {
		complain("register %u reads %jd bytes, value %jx", reg, (intmax_t)len, (uintmax_t)value);
		return;
	}
	const struct shared_value *v = &s->values[value];
	uint64_t end = atomic_load(&v->end);
	if (len != (int64_t)v->nr_blocks * BLOCK)
		complain("register %u reads %jd bytes of value %ju, which has %u blocks", reg, (intmax_t)len, (uintmax_t)value, v->nr_blocks);
	for (size_t i = 0; i < (size_t)len / sizeof(*words); i++) {
		if (words[i] != value) {
			complain("register %u is torn: value %ju, and %ju in word %zu", reg, (uintmax_t)value, (uintmax_t)words[i], i);
			return;
		}
	}
	if (end && v->failed)
		complain("register %u has value %ju, whose write failed", reg, (uintmax_t)value);
	if (end && end < latest_begin)
		complain("register %u has value %ju, written until %ju, but a write that began at %ju was over before the read", reg,
			 (uintmax_t)value, (uintmax_t)end, (uintmax_t)latest_begin);
}

/* -- registers ----------------------------------------------------------------------------------------------------------- */

/* 0 and the number of a new file with @nr_blocks of @value under @name, referenced; or the error. */
static int make_file(struct shared_client *c, const char *name, uint64_t value, uint32_t nr_blocks, uint64_t *ino)
{
	struct shared *s = c->s;
	struct pf_attr attr;
	int err = pf_create(s->pool, s->dir, name, strlen(name), S_IFREG | 0644, cred, 0, 0, &attr);
	if (err)
		return err;
	fill(c->buf, value, nr_blocks);
	int64_t n = pf_write(s->pool, attr.ino, 0, c->buf, nr_blocks * BLOCK, 0);
	if (n != (int64_t)nr_blocks * BLOCK) {
		err = n < 0 ? (int)n : -EIO;
		pf_unlink(s->pool, s->dir, name, strlen(name));
		pf_forget(s->pool, attr.ino, 1);
		return err;
	}
	*ino = attr.ino;
	return 0;
}

static void replace_register(struct shared_client *c, unsigned reg)
{
	struct shared *s = c->s;
	char name[32], new_name[32];
	uint32_t nr_blocks = 1 + (uint32_t)rng_below(&c->rng, SHARED_BLOCKS);
	uint64_t ino = 0, value = new_value(s, reg, nr_blocks), begin = tick(s);
	if (!value)
		return;
	register_name(name, reg);
	sprintf(new_name, "new-%u", c->nr);
	int err = make_file(c, new_name, value, nr_blocks, &ino);
	if (!err && rng_one_in(&c->rng, 4))
		err = pf_fsync(s->pool, ino);
	if (!err)
		err = pf_rename(s->pool, s->dir, new_name, strlen(new_name), s->dir, name, strlen(name), 0, cred);
	value_written(s, value, begin, err);
	if (err && ino)
		pf_unlink(s->pool, s->dir, new_name, strlen(new_name));
	if (ino)
		pf_forget(s->pool, ino, 1);
	if (err && !no_space(s, err))
		complain("replacing register %u: %s", reg, pf_strerror(err));
}

static void overwrite_register(struct shared_client *c, unsigned reg)
{
	struct shared *s = c->s;
	uint64_t value = new_value(s, reg, SHARED_BLOCKS), begin = tick(s);
	if (!value)
		return;
	fill(c->buf, value, SHARED_BLOCKS);
	int64_t n = pf_write(s->pool, s->registers[reg].ino, 0, c->buf, SHARED_BLOCKS * BLOCK, 0);
	value_written(s, value, begin, n != SHARED_BLOCKS * BLOCK);
	if (n != SHARED_BLOCKS * BLOCK && !no_space(s, n))
		complain("overwriting register %u gives %jd", reg, (intmax_t)n);
	if (n > 0 && rng_one_in(&c->rng, 8)) {
		int err = pf_fsync(s->pool, s->registers[reg].ino);
		if (err)
			complain("fsync of register %u: %s", reg, pf_strerror(err));
	}
}

static void read_register(struct shared_client *c, unsigned reg)
{
	struct shared *s = c->s;
	struct pf_attr attr;
	char name[32];
	register_name(name, reg);
	uint64_t latest = atomic_load(&s->registers[reg].latest_begin);
	int err = pf_lookup(s->pool, s->dir, name, strlen(name), &attr);
	if (err) {
		complain("register %u is missing: %s", reg, pf_strerror(err));
		return;
	}
	int64_t n = pf_read(s->pool, attr.ino, 0, c->buf, (SHARED_BLOCKS + 1) * BLOCK);
	check_value(s, reg, c->buf, n, latest);
	if (rng_one_in(&c->rng, 6)) {
		char other[32];
		sprintf(other, "other-%u", c->nr);
		struct pf_attr linked;
		err = pf_link(s->pool, attr.ino, s->dir, other, strlen(other), &linked);
		if (!err) {
			pf_forget(s->pool, linked.ino, 1);
			err = pf_unlink(s->pool, s->dir, other, strlen(other));
		}
		/* it may have been replaced, and so have no name, since the lookup */
		if (err && !no_space(s, err) && !(err == -ENOENT && by_rename(reg)))
			complain("another name of register %u: %s", reg, pf_strerror(err));
	}
	pf_forget(s->pool, attr.ino, 1);
}

/* -- names --------------------------------------------------------------------------------------------------------------- */

static void exchange_pair(struct shared_client *c)
{
	struct shared *s = c->s;
	int err = pf_rename(s->pool, s->dir, pair_names[0], strlen(pair_names[0]), s->dir, pair_names[1], strlen(pair_names[1]),
			    2 /* RENAME_EXCHANGE */, cred);
	if (err && !no_space(s, err))
		complain("exchanging two names: %s", pf_strerror(err));
}

static void look_at_pair(struct shared_client *c)
{
	struct shared *s = c->s;
	for (unsigned k = 0; k < 2; k++) {
		struct pf_attr attr;
		int err = pf_lookup(s->pool, s->dir, pair_names[k], strlen(pair_names[k]), &attr);
		if (err || (attr.ino != s->pair[0] && attr.ino != s->pair[1]))
			complain("name '%s', which is exchanged, gives %s", pair_names[k], err ? pf_strerror(err) : "another file");
		if (!err)
			pf_forget(s->pool, attr.ino, 1);
	}
}

struct seen {
	unsigned nr_registers, nr_of_pair;
	uint64_t of_pair[2];
};

static bool see(void *arg, const struct pf_dirent *d)
{
	struct seen *seen = arg;
	if (d->len > 9 && !memcmp(d->name, "register-", 9))
		seen->nr_registers++;
	for (unsigned k = 0; k < 2; k++) {
		if (d->len == strlen(pair_names[k]) && !memcmp(d->name, pair_names[k], d->len)) {
			seen->nr_of_pair++;
			seen->of_pair[k] = d->ino;
		}
	}
	return true;
}

static void list(struct shared_client *c)
{
	struct shared *s = c->s;
	struct seen seen = { 0 };
	int err = pf_readdir(s->pool, s->dir, 0, see, &seen);
	if (err < 0 || seen.nr_registers != SHARED_REGISTERS || seen.nr_of_pair != 2)
		complain("a directory whose names are replaced and exchanged lists %u of %u and %u of 2: %s", seen.nr_registers,
			 SHARED_REGISTERS, seen.nr_of_pair, err < 0 ? pf_strerror(err) : "no error");
	else if (seen.of_pair[0] == seen.of_pair[1])
		complain("a directory lists one file under both of two names that are exchanged");
}

/* I3. A counter in a file, behind a name that only one can create. */
static void count(struct shared_client *c)
{
	static const char lock[] = "lock", counter[] = "counter";
	struct shared *s = c->s;
	struct pf_attr attr, held;
	int err = pf_create(s->pool, s->dir, lock, strlen(lock), S_IFREG | 0600, cred, 0, 0, &held);
	if (err == -EEXIST || no_space(s, err))
		return;
	if (!err)
		err = pf_lookup(s->pool, s->dir, counter, strlen(counter), &attr);
	if (err) {
		complain("the holder of the lock finds no counter: %s", pf_strerror(err));
		return;
	}
	uint64_t *number = (uint64_t *)c->buf;
	uint64_t before = atomic_load(&s->nr_counted);
	int64_t n = pf_read(s->pool, attr.ino, 0, c->buf, sizeof(*number));
	if (n != sizeof(*number) || *number != before)
		complain("the counter reads %jd bytes, %ju; it was set to %ju", (intmax_t)n, (uintmax_t)*number, (uintmax_t)before);
	++*number;
	n = pf_write(s->pool, attr.ino, 0, c->buf, sizeof(*number), 0);
	if (n == sizeof(*number))
		atomic_store(&s->nr_counted, before + 1);
	else if (!no_space(s, n))
		complain("writing the counter gives %jd", (intmax_t)n);
	err = pf_unlink(s->pool, s->dir, lock, strlen(lock));
	if (err)
		complain("removing the lock: %s", pf_strerror(err));
	pf_forget(s->pool, attr.ino, 1);
	pf_forget(s->pool, held.ino, 1);
}

/* -- driving ------------------------------------------------------------------------------------------------------------- */

void shared_step(struct shared_client *c)
{
	unsigned reg = (unsigned)rng_below(&c->rng, SHARED_REGISTERS);
	atomic_fetch_add(&c->s->nr_ops, 1);
	switch (rng_below(&c->rng, 16)) {
	case 0:
		count(c);
		break;
	case 1:
		exchange_pair(c);
		break;
	case 2:
		look_at_pair(c);
		break;
	case 3:
		list(c);
		break;
	case 4:
	case 5:
	case 6:
	case 7:
	case 8:
		if (by_rename(reg))
			replace_register(c, reg);
		else
			overwrite_register(c, reg);
		break;
	default:
		read_register(c, reg);
	}
}

void shared_start(struct shared *s, struct pf_pool *pool)
{
	struct pf_attr attr = { 0 };
	struct shared_client c;
	char name[32];
	memset(s, 0, sizeof(*s));
	s->pool = pool;
	s->values = calloc(SHARED_MAX_VALUES, sizeof(*s->values));
	int err = pf_create(pool, PF_ROOT_INO, "shared", 6, S_IFDIR | 0755, cred, 0, 0, &attr);
	s->dir = attr.ino;
	shared_client_init(&c, s, 0, 0);
	for (unsigned reg = 0; !err && reg < SHARED_REGISTERS; reg++) {
		uint64_t value = new_value(s, reg, SHARED_BLOCKS), begin = tick(s);
		register_name(name, reg);
		err = make_file(&c, name, value, SHARED_BLOCKS, &s->registers[reg].ino);
		value_written(s, value, begin, err);
	}
	for (unsigned k = 0; !err && k < 2; k++)
		err = make_file(&c, pair_names[k], 1, 1, &s->pair[k]);
	uint64_t ino;
	if (!err)
		err = make_file(&c, "counter", 0, 1, &ino);
	if (err)
		complain("the shared files: %s", pf_strerror(err));
	shared_client_free(&c);
}

void shared_finish(struct shared *s)
{
	free(s->values);
}

void shared_client_init(struct shared_client *c, struct shared *s, unsigned nr, uint64_t seed)
{
	*c = (struct shared_client){ .s = s, .nr = nr, .rng.state = rng_mix(seed ^ UINT64_C(0x736861)) };
	c->buf = aligned_alloc(BLOCK, (SHARED_BLOCKS + 3) * BLOCK);
}

void shared_client_free(struct shared_client *c)
{
	free(c->buf);
}

void shared_remounted(struct shared_client *c, struct pf_pool *pool)
{
	struct shared *s = c->s;
	struct pf_attr attr;
	s->pool = pool;
	/* the references went with the pool that was closed */
	if (pf_ref(pool, s->dir, &attr))
		complain("the shared directory is gone");
	for (unsigned reg = 0; reg < SHARED_REGISTERS; reg++) {
		read_register(c, reg);
		if (!by_rename(reg) && pf_ref(pool, s->registers[reg].ino, &attr))
			complain("register %u is another file after a remount", reg);
	}
	look_at_pair(c);
	list(c);
	count(c);
}
