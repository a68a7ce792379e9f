/* SPDX-License-Identifier: MIT
 *
 * Golden images: a small pool of each released format version, made once and kept compressed in tests/images/released. Whatever
 * becomes of the code, they must open, check clean and hold what they were given.
 *
 *	golden make VERSION MEMBER...   makes the pool on empty image files (run once, when a version is released)
 *	golden check MEMBER...          compares everything, then changes and removes it all
 */
#include "model/testenv.h"
#include "poolfs.h"

#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct pf_pool *pool;
static struct test_env env;
static const struct pf_cred cred = { 1000, 100 };

#define CHECK(cond)                                                                                                    \
	do {                                                                                                           \
		if (!(cond)) {                                                                                         \
			fprintf(stderr, "golden.c:%d: %s does not hold (%s)\n", __LINE__, #cond, env.last_error);      \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static char long_name[PF_MAX_NAME_BYTES + 1], long_target[PF_MAX_SYMLINK_BYTES + 1];
static uint8_t xattr_value[PF_MAX_XATTR_BYTES];

/* Content that compresses well and still says where it belongs. */
static void pattern(uint8_t *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(seed + i / 512);
}

static const struct {
	const char *name;
	size_t len;
} files[] = { { "empty", 0 }, { "one", 1 }, { "block", 4096 }, { "odd", 5000 }, { "large", 300001 }, { "larger", 1500000 } };
#define NR_FILES (sizeof(files) / sizeof(files[0]))

static void init(void)
{
	test_env_init(&env, 4711);
	memset(long_name, 'n', PF_MAX_NAME_BYTES);
	memset(long_target, 't', PF_MAX_SYMLINK_BYTES);
	pattern(xattr_value, sizeof(xattr_value), 3);
}

static uint64_t create(uint64_t dir, const char *name, uint32_t mode)
{
	struct pf_attr a;
	CHECK(pf_create(pool, dir, name, strlen(name), mode, cred, 7, 8, &a) == 0);
	return a.ino;
}

static void open_pool(char **paths, int nr, bool read_only)
{
	struct pf_pool_options options = { .read_only = read_only, .cache_bytes = 8 << 20 };
	struct pf_diag diag = { "" };
	int err = pf_pool_open((const char *const *)paths, (unsigned)nr, &options, &env.env, &pool, &diag);
	if (err)
		fprintf(stderr, "%s\n", diag.text);
	CHECK(err == 0);
}

static void mkfs(unsigned version, char **paths, int nr)
{
	struct pf_io *ios[PF_MAX_MEMBERS];
	struct pf_diag diag = { "" };
	struct pf_mkfs_options options = { .version = version, .label = "golden" };
	for (int i = 0; i < nr; i++)
		CHECK(pf_io_open(paths[i], PF_IO_OPEN_WRITE, 0, &env.env, &ios[i], &diag) == 0);
	CHECK(pf_pool_create(ios, (unsigned)nr, &options, &env.env, false, NULL, &diag) == 0);
}

static void make(unsigned version, char **paths, int nr)
{
	static uint8_t buf[2 << 20];
	struct pf_attr a;
	mkfs(version, paths, nr);
	open_pool(paths, nr, false);
	uint64_t dir = create(PF_ROOT_INO, "dir", S_IFDIR | 02775);
	for (size_t i = 0; i < NR_FILES; i++) {
		uint64_t f = create(dir, files[i].name, S_IFREG | 0640);
		pattern(buf, files[i].len, (unsigned)i);
		CHECK(pf_write(pool, f, 0, buf, files[i].len, 0) == (int64_t)files[i].len);
		pf_forget(pool, f, 1);
	}
	uint64_t sparse = create(dir, "sparse", S_IFREG | 0600);
	CHECK(pf_write(pool, sparse, UINT64_C(1) << 50, "far", 3, 0) == 3);
	CHECK(pf_fallocate(pool, sparse, FALLOC_FL_KEEP_SIZE, 0, 40960, 0) == 0);
	uint64_t x = create(PF_ROOT_INO, long_name, S_IFREG | 04755);
	CHECK(pf_setxattr(pool, x, "user.small", "value", 5, 0) == 0);
	CHECK(pf_setxattr(pool, x, "user.large", xattr_value, sizeof(xattr_value), 0) == 0);
	CHECK(pf_link(pool, x, dir, "hard", 4, &a) == 0);
	CHECK(pf_symlink(pool, dir, "link", 4, long_target, cred, &a) == 0);
	create(dir, "fifo", S_IFIFO | 0600);
	create(dir, "device", S_IFCHR | 0600);
	struct pf_attr times = { .mtime = { -1234567890, 123456789 }, .atime = { 9876543210, 1 } };
	CHECK(pf_setattr(pool, x, PF_ATTR_MTIME | PF_ATTR_ATIME, &times, NULL) == 0);
	for (unsigned i = 0; i < 300; i++) {
		char name[32];
		sprintf(name, "many-%u", i);
		create(PF_ROOT_INO, name, S_IFREG | 0644);
	}
	CHECK(pf_unlink(pool, PF_ROOT_INO, "many-7", 6) == 0);
	CHECK(pf_pool_sync(pool) == 0);
	CHECK(pf_pool_close(pool) == 0);
}

static uint64_t look(uint64_t dir, const char *name, struct pf_attr *a)
{
	CHECK(pf_lookup(pool, dir, name, strlen(name), a) == 0);
	return a->ino;
}

static void compare(void)
{
	static uint8_t want[2 << 20], got[(2 << 20) + 8192] __attribute__((aligned(4096)));
	struct pf_attr a;
	uint64_t dir = look(PF_ROOT_INO, "dir", &a);
	CHECK(a.mode == (S_IFDIR | 02775) && a.uid == cred.uid && a.gid == cred.gid && a.nlink == 2);
	for (size_t i = 0; i < NR_FILES; i++) {
		uint64_t f = look(dir, files[i].name, &a);
		pattern(want, files[i].len, (unsigned)i);
		CHECK(a.size_bytes == files[i].len && a.mode == (S_IFREG | 0640));
		CHECK(pf_read(pool, f, 0, got, 2 << 20) == (int64_t)files[i].len);
		CHECK(!memcmp(got, want, files[i].len));
	}
	uint64_t sparse = look(dir, "sparse", &a);
	CHECK(a.size_bytes == (UINT64_C(1) << 50) + 3 && a.blocks == 11);
	CHECK(pf_read(pool, sparse, UINT64_C(1) << 50, got, 4096) == 3 && !memcmp(got, "far", 3));
	memset(want, 0, 40960);
	CHECK(pf_read(pool, sparse, 0, got, 40960) == 40960 && !memcmp(got, want, 40960));
	uint64_t x = look(PF_ROOT_INO, long_name, &a);
	CHECK(a.nlink == 2 && a.mode == (S_IFREG | 04755) && a.mtime.tv_sec == -1234567890 && a.mtime.tv_nsec == 123456789 &&
	      a.atime.tv_sec == 9876543210);
	CHECK(look(dir, "hard", &a) == x);
	CHECK(pf_getxattr(pool, x, "user.small", got, 100) == 5 && !memcmp(got, "value", 5));
	CHECK(pf_getxattr(pool, x, "user.large", got, sizeof(got)) == (int64_t)sizeof(xattr_value));
	CHECK(!memcmp(got, xattr_value, sizeof(xattr_value)));
	uint64_t l = look(dir, "link", &a);
	CHECK(pf_readlink(pool, l, (char *)got, 4096) == PF_MAX_SYMLINK_BYTES && !strcmp((char *)got, long_target));
	look(dir, "device", &a);
	CHECK(S_ISCHR(a.mode) && a.rdev_major == 7 && a.rdev_minor == 8);
	look(PF_ROOT_INO, "many-299", &a);
	CHECK(pf_lookup(pool, PF_ROOT_INO, "many-7", 6, &a) == -ENOENT);
}

static bool remove_entry(void *arg, const struct pf_dirent *e)
{
	uint64_t dir = *(uint64_t *)arg;
	if (e->cookie > 2 && e->dtype != 4)
		CHECK(pf_unlink(pool, dir, e->name, e->len) == 0);
	return true;
}

static bool report(void *arg, const struct pf_problem_report *r)
{
	(void)arg;
	fprintf(stderr, "%s: %s\n", r->id, r->message);
	return false;
}

static void check_pool(char **paths, int nr)
{
	struct pf_io *ios[PF_MAX_MEMBERS];
	struct pf_check_sink sink = { .problem = report };
	struct pf_check_options options = { .check_data = true };
	struct pf_check_result result;
	struct pf_diag diag = { "" };
	for (int i = 0; i < nr; i++)
		CHECK(pf_io_open(paths[i], 0, 0, &env.env, &ios[i], &diag) == 0);
	CHECK(pf_check(ios, (unsigned)nr, &options, &env.env, &sink, &result, &diag) == 0);
	CHECK(result.nr_problems == 0);
}

static void check(char **paths, int nr)
{
	struct pf_attr a;
	check_pool(paths, nr);
	open_pool(paths, nr, true);
	compare();
	CHECK(pf_pool_close(pool) == 0);
	open_pool(paths, nr, false);
	compare();
	uint64_t root = PF_ROOT_INO, dir = look(root, "dir", &a);
	CHECK(pf_readdir(pool, dir, 0, remove_entry, &dir) == 0);
	CHECK(pf_readdir(pool, root, 0, remove_entry, &root) == 0);
	CHECK(pf_rmdir(pool, root, "dir", 3) == 0);
	CHECK(pf_pool_close(pool) == 0);
	check_pool(paths, nr);
}

int main(int argc, char **argv)
{
	init();
	if (argc >= 4 && !strcmp(argv[1], "make"))
		make((unsigned)atoi(argv[2]), argv + 3, argc - 3);
	else if (argc >= 3 && !strcmp(argv[1], "check"))
		check(argv + 2, argc - 2);
	else
		return 2;
	return 0;
}
