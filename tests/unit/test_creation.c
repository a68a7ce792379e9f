/* SPDX-License-Identifier: MIT
 * An inode that is being created, and somebody who guesses its number (a file handle from before a crash): nothing is to be had by
 * that number before the creation is done, and nothing at all when it fails. The linker leads the creation's pf_txn_lock() here
 * (tests/local.mk), where the other one has his turn. */
#include "unit/posix_util.h"

#include "block/engine.h"
#include "object/inode.h"

int __real_pf_txn_lock(struct pf_txn *txn);
int __wrap_pf_txn_lock(struct pf_txn *txn);

static void (*turn)(uint64_t ino); /* of the other one, once */
static uint64_t guess;
static int verdict; /* on the creation */

int __wrap_pf_txn_lock(struct pf_txn *txn)
{
	if (!turn)
		return __real_pf_txn_lock(txn);
	void (*now)(uint64_t ino) = turn;
	turn = NULL;
	now(guess);
	return verdict ? verdict : __real_pf_txn_lock(txn);
}

static bool any_entry(void *arg, const struct pf_dirent *entry)
{
	(void)arg;
	(void)entry;
	return true;
}

static void nothing_there(uint64_t ino)
{
	struct pf_attr a = { .mode = 0600, .size_bytes = 5 };
	char buf[8192] __attribute__((aligned(4096)));
	ck_assert_uint_lt(ino, atomic_load(&POOL->next_id)); /* it is that of the creation */
	ck_err(pf_ref(POOL, ino, &a), -ESTALE);
	ck_err(pf_getattr(POOL, ino, &a), -ESTALE);
	ck_err(pf_setattr(POOL, ino, PF_ATTR_MODE, &a, NULL), -ESTALE);
	ck_err(pf_setattr(POOL, ino, PF_ATTR_SIZE, &a, NULL), -ESTALE);
	ck_err(pf_write(POOL, ino, 0, "mine", 4, 0), -ESTALE);
	ck_err(pf_read(POOL, ino, 0, buf, 4), -ESTALE);
	ck_err(pf_fallocate(POOL, ino, 0, 0, 8192, 0), -ESTALE);
	ck_err(pf_fsync(POOL, ino), -ESTALE);
	ck_err(pf_setxattr(POOL, ino, "user.a", "v", 1, 0), -ESTALE);
	ck_err(pf_listxattr(POOL, ino, buf, sizeof(buf)), -ESTALE);
	ck_err(pf_readlink(POOL, ino, buf, sizeof(buf)), -ESTALE);
	ck_err(pf_readdir(POOL, ino, 0, any_entry, NULL), -ESTALE);
}

/* He does not even have it, and gives it back. */
static void forget_it(uint64_t ino)
{
	pf_forget(POOL, ino, 1);
}

enum { FILE_, DIR_, LINK_, UNNAMED, NR_KINDS };

static int create_kind(int kind, struct pf_attr *a)
{
	switch (kind) {
	case FILE_:
		return pf_create(POOL, PF_ROOT_INO, "x", 1, S_IFREG | 0644, user, 0, 0, a);
	case DIR_:
		return pf_create(POOL, PF_ROOT_INO, "x", 1, S_IFDIR | 0755, user, 0, 0, a);
	case LINK_:
		return pf_symlink(POOL, PF_ROOT_INO, "x", 1, "target", user, a);
	default:
		return pf_create_unnamed(POOL, PF_ROOT_INO, S_IFREG | 0600, user, a);
	}
}

static int create_watched(int kind, void (*other)(uint64_t ino), int err, struct pf_attr *a)
{
	turn = other;
	guess = atomic_load(&POOL->next_id);
	verdict = err;
	return create_kind(kind, a);
}

START_TEST(before_it_is_done)
{
	struct pf_attr a, b;
	ck_ok(create_watched(_i, nothing_there, 0, &a));
	ck_assert_uint_eq(a.ino, guess);
	ck_ok(pf_ref(POOL, a.ino, &b));
	pf_forget(POOL, a.ino, 1);
	ck_ok(pf_getattr(POOL, a.ino, &b));
	ck_assert_uint_eq(a.mode, b.mode);
	ck_assert_uint_eq(b.nlink, _i == UNNAMED ? 0 : _i == DIR_ ? 2 : 1);
	if (_i == FILE_ || _i == UNNAMED)
		put(a.ino, 0, "bytes", 5);
	ck_assert_int_eq(look(PF_ROOT_INO, "x") != 0, _i != UNNAMED);
	settle();
}
END_TEST

START_TEST(when_it_fails)
{
	struct pf_attr a, before = attr_of(PF_ROOT_INO);
	uint64_t fresh = free_blocks();
	ck_err(create_watched(_i, nothing_there, -EIO, &a), -EIO);
	nothing_there(guess);
	ck_assert_uint_eq(look(PF_ROOT_INO, "x"), 0);
	ck_assert_uint_eq(attr_of(PF_ROOT_INO).nlink, before.nlink);
	settle();
	nothing_there(guess);
	ck_assert_uint_eq(free_blocks(), fresh);
	/* nor is the number given again */
	ck_ok(create_kind(_i, &a));
	ck_assert_uint_gt(a.ino, guess);
}
END_TEST

START_TEST(when_it_is_given_back)
{
	struct pf_attr a, b;
	ck_err(create_watched(_i, forget_it, -EIO, &a), -EIO);
	nothing_there(guess);
	ck_ok(create_watched(_i, forget_it, 0, &a));
	/* without the reference that was taken away, only a name keeps it */
	ck_err(pf_getattr(POOL, a.ino, &b), _i == UNNAMED ? -ESTALE : 0);
	settle();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("creation");
	TCase *t = tcase_create("guessed numbers");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, before_it_is_done, 0, NR_KINDS);
	tcase_add_loop_test(t, when_it_fails, 0, NR_KINDS);
	tcase_add_loop_test(t, when_it_is_given_back, 0, NR_KINDS);
	suite_add_tcase(s, t);
	return run_suite(s);
}
