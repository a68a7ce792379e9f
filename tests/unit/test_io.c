/* SPDX-License-Identifier: MIT
 * Image files and block devices behind member/io.h: locks, refusals and their words, errors that must not get lost. What
 * needs root, a loop device or a mount namespace is left out where it is not to be had. */
#include "member/io.h"
#include "ondisk/ondisk.h"

#include <check.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096u
#define SIZE  (UINT64_C(8) << 20)

static char dir[] = "/tmp/test_io.XXXXXX";
static char path[64];
static uint8_t *buf;
static struct pf_diag diag;
static struct pf_env env;
static char logged[1024];
static int64_t now_ns;

static void remember(void *arg, enum pf_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	snprintf(logged, sizeof(logged), "%s", message);
}

static void make_file(const char *name, uint64_t size)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
	close(fd);
}

static void setup(void)
{
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.img", dir);
	make_file(path, SIZE);
	buf = memset(aligned_alloc(BLOCK, 1 << 20), 1, 1 << 20);
	env = *pf_env_system();
	env.log = remember;
	memset(&diag, 0, sizeof(diag));
	logged[0] = 0;
}

static void teardown(void)
{
	free(buf);
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static struct pf_io *must_open(const char *name, int flags)
{
	struct pf_io *io;
	int err = pf_io_open(name, flags, 0, &env, &io, &diag);
	ck_assert_msg(err == 0, "%d: %s", err, diag.text);
	return io;
}

static void must_refuse(const char *name, int flags, int expected, const char *words)
{
	struct pf_io *io = (void *)1;
	memset(&diag, 0, sizeof(diag));
	int err = pf_io_open(name, flags, 0, &env, &io, &diag);
	ck_assert_msg(err == expected, "%d instead of %d: %s", err, expected, diag.text);
	ck_assert_ptr_null(io);
	ck_assert_msg(strstr(diag.text, name) == diag.text, "does not begin with the path: %s", diag.text);
	ck_assert_msg(strstr(diag.text, words) != NULL, "'%s' is not in: %s", words, diag.text);
}

static int open_error(const char *name, int flags, unsigned wait_ms)
{
	struct pf_io *io;
	int err = pf_io_open(name, flags, wait_ms, &env, &io, NULL);
	if (!err)
		pf_io_close(io);
	return err;
}

static void write_and_read(struct pf_io *io)
{
	for (unsigned i = 0; i < 64; i++) {
		memset(buf, (int)i + 1, 64 * 1024);
		ck_assert_int_eq(pf_io_write(io, i * 100 * 1024 / BLOCK * BLOCK, buf, 64 * 1024), 0);
	}
	ck_assert(pf_io_dirty(io));
	ck_assert_int_eq(pf_io_flush(io), 0);
	ck_assert(!pf_io_dirty(io));
	ck_assert_uint_eq(io->nr_writes, 64);
	ck_assert_uint_eq(io->bytes_written, 64 * 64 * 1024);
	for (unsigned i = 0; i < 64; i++) {
		memset(buf, 0, 64 * 1024);
		ck_assert_int_eq(pf_io_read(io, i * 100 * 1024 / BLOCK * BLOCK, buf, 64 * 1024), 0);
		bool same = true;
		for (unsigned k = 0; k < 64 * 1024; k++)
			same = same && buf[k] == i + 1;
		ck_assert(same);
	}
}

START_TEST(direct_and_buffered)
{
	struct pf_io *io = must_open(path, PF_IO_OPEN_WRITE);
	ck_assert_int_eq(io->kind, PF_IO_FILE);
	ck_assert_uint_eq(io->size_bytes, SIZE);
	ck_assert_str_eq(io->name, path);
	ck_assert_uint_ne(io->host_dev, 0);
	ck_assert(!io->read_only);
	write_and_read(io);
	pf_io_close(io);

	io = must_open(path, PF_IO_OPEN_WRITE | PF_IO_OPEN_BUFFERED);
	ck_assert(!io->direct);
	write_and_read(io);
	pf_io_close(io);

	io = must_open(path, 0);
	ck_assert(io->read_only);
	ck_assert_int_eq(pf_io_read(io, 0, buf, BLOCK), 0);
	ck_assert_int_eq(buf[9], 1);
	ck_assert_int_eq(pf_io_write(io, 0, buf, BLOCK), -EIO);
	ck_assert_ptr_nonnull(strstr(logged, "Bad file descriptor")); /* the original error */
	pf_io_close(io);
}
END_TEST

START_TEST(nothing_grows_or_reads_past_the_end)
{
	struct pf_io *io = must_open(path, PF_IO_OPEN_WRITE);
	ck_assert_int_eq(pf_io_write(io, SIZE, buf, BLOCK), -EIO);
	ck_assert_int_eq(pf_io_write(io, SIZE - BLOCK, buf, 2 * BLOCK), -EIO);
	ck_assert_int_eq(pf_io_write(io, UINT64_C(1) << 62, buf, BLOCK), -EIO);
	ck_assert_int_eq(pf_io_read(io, SIZE, buf, BLOCK), -EIO);
	ck_assert_int_eq(pf_io_read(io, SIZE - BLOCK, buf, 2 * BLOCK), -EIO);
	ck_assert_int_eq(pf_io_allocate(io, SIZE, BLOCK), -EIO);
	ck_assert_int_eq(pf_io_discard(io, SIZE - BLOCK, 2 * BLOCK), -EIO);
	struct stat st;
	stat(path, &st);
	ck_assert_uint_eq((uint64_t)st.st_size, SIZE);

	/* truncated under our hands, also in the middle of a block */
	ck_assert_int_eq(truncate(path, 3 * BLOCK + 100), 0);
	ck_assert_int_eq(pf_io_read(io, 0, buf, 3 * BLOCK), 0);
	logged[0] = 0;
	ck_assert_int_eq(pf_io_read(io, 0, buf, 8 * BLOCK), -EIO);
	ck_assert_ptr_nonnull(strstr(logged, path));
	ck_assert_ptr_nonnull(strstr(logged, "truncated"));
	ck_assert_int_eq(pf_io_read(io, 3 * BLOCK, buf, BLOCK), -EIO);
	pf_io_close(io);
	io = must_open(path, PF_IO_OPEN_BUFFERED);
	ck_assert_int_eq(pf_io_read(io, 0, buf, 8 * BLOCK), -EIO);
	pf_io_close(io);
}
END_TEST

START_TEST(refused_kinds)
{
	char name[80];
	snprintf(name, sizeof(name), "%s/none.img", dir);
	must_refuse(name, 0, -ENOENT, "no such member");
	must_refuse(name, PF_IO_OPEN_WRITE, -ENOENT, "check the path");
	must_refuse(dir, 0, -EINVAL, "is a directory; a member is an image file or a block device");
	must_refuse("/dev/null", PF_IO_OPEN_WRITE, -EINVAL, "is a special file");
	snprintf(name, sizeof(name), "%s/fifo", dir);
	ck_assert_int_eq(mkfifo(name, 0600), 0);
	must_refuse(name, 0, -EINVAL, "is a special file"); /* and does not wait for a writer */
	snprintf(name, sizeof(name), "%s/a.img/b", dir);
	must_refuse(name, 0, -ENOENT, "no such member");
	/* small and empty files open: it is not for this layer to judge them */
	make_file(path, 0);
	pf_io_close(must_open(path, PF_IO_OPEN_WRITE));
}
END_TEST

/* Runs @body in a child; its exit status. */
static int in_child(void (*body)(void))
{
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		body();
		_exit(0);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status), "child ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* Assertions in a child that has dropped its rights cannot report; it counts. */
static void expect(int nr, int err, int expected, const char *words)
{
	if (err != expected || !strstr(diag.text, words)) {
		fprintf(stderr, "case %d: %d instead of %d: %s\n", nr, err, expected, diag.text);
		_exit(nr);
	}
	memset(&diag, 0, sizeof(diag));
}

static void without_rights(void)
{
	struct pf_io *io;
	if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
		_exit(99);
	chmod(path, 0); /* when it is still ours */
	expect(1, pf_io_open(path, 0, 0, &env, &io, &diag), -EACCES, "permission denied; run as");
	expect(2, pf_io_open(path, PF_IO_OPEN_WRITE, 0, &env, &io, &diag), -EACCES, "permission denied; run as");
}

static void with_read_only_rights(void)
{
	struct pf_io *io;
	if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
		_exit(99);
	chmod(path, 0444);
	expect(1, pf_io_open(path, 0, 0, &env, &io, &diag), 0, "");
	pf_io_close(io);
	expect(2, pf_io_open(path, PF_IO_OPEN_WRITE, 0, &env, &io, &diag), -EACCES, "read-only for this user");
}

START_TEST(permissions)
{
	ck_assert_int_eq(chmod(dir, 0755), 0);
	ck_assert_int_eq(chmod(path, 0), 0);
	ck_assert_int_eq(in_child(without_rights), 0);
	ck_assert_int_eq(chmod(path, 0444), 0);
	ck_assert_int_eq(in_child(with_read_only_rights), 0);
}
END_TEST

/* -- locks ---------------------------------------------------------------------------------------------------------- */
static pid_t holder;
static struct pf_io *held;
static int hold_until; /* write end: closing it lets the holder go */

/* A child that has the member open with @flags until let go, and @then_ms more. */
static void hold(const char *name, int flags, unsigned then_ms)
{
	int ready[2], go[2];
	ck_assert_int_eq(pipe(ready), 0);
	ck_assert_int_eq(pipe(go), 0);
	holder = fork();
	if (holder == 0) {
		char c = 'x';
		close(go[1]);
		if (pf_io_open(name, flags, 0, &env, &held, &diag))
			_exit(1);
		if (write(ready[1], &c, 1) != 1 || read(go[0], &c, 1) != 0)
			_exit(2);
		usleep(then_ms * 1000);
		_exit(0); /* the kernel lets go, as after a kill -9 */
	}
	char c;
	close(ready[1]);
	close(go[0]);
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
	hold_until = go[1];
}

static void let_go(void)
{
	int status;
	close(hold_until);
	ck_assert_int_eq(waitpid(holder, &status, 0), holder);
	ck_assert_int_eq(status, 0);
}

static void check_locks(const char *name)
{
	hold(name, PF_IO_OPEN_WRITE, 0);
	must_refuse(name, PF_IO_OPEN_WRITE, -PF_EMEMBER_BUSY, "in use");
	must_refuse(name, 0, -PF_EMEMBER_BUSY, "fuser -v");
	pf_io_close(must_open(name, PF_IO_OPEN_UNLOCKED));
	let_go();
	pf_io_close(must_open(name, PF_IO_OPEN_WRITE));

	hold(name, 0, 0);
	must_refuse(name, PF_IO_OPEN_WRITE, -PF_EMEMBER_BUSY, "in use");
	pf_io_close(must_open(name, 0)); /* readers go together */
	let_go();

	/* an unlocked reader is in nobody's way */
	hold(name, PF_IO_OPEN_UNLOCKED, 0);
	pf_io_close(must_open(name, PF_IO_OPEN_WRITE));
	let_go();

	/* twice in one process is a conflict too */
	struct pf_io *io = must_open(name, PF_IO_OPEN_WRITE);
	ck_assert_int_eq(open_error(name, PF_IO_OPEN_WRITE, 0), -PF_EMEMBER_BUSY);
	pf_io_close(io);
	ck_assert_int_eq(open_error(name, PF_IO_OPEN_WRITE, 0), 0);
}

START_TEST(locks_of_files)
{
	check_locks(path);
}
END_TEST

static int64_t now_ms(void)
{
	return pf_now_ns(&env) / 1000000;
}

START_TEST(waits_for_a_lock)
{
	hold(path, PF_IO_OPEN_WRITE, 300);
	int64_t start = now_ms();
	ck_assert_int_eq(open_error(path, PF_IO_OPEN_WRITE, 150), -PF_EMEMBER_BUSY);
	ck_assert_int_ge(now_ms() - start, 140);
	close(hold_until);
	start = now_ms();
	ck_assert_int_eq(open_error(path, PF_IO_OPEN_WRITE, 20000), 0);
	ck_assert_int_ge(now_ms() - start, 200);
	ck_assert_int_lt(now_ms() - start, 10000);
	hold_until = open("/dev/null", O_RDONLY);
	let_go();
}
END_TEST

/* -- errors that must not get lost ---------------------------------------------------------------------------------- */
START_TEST(a_failed_flush_is_final)
{
	struct pf_io *io = must_open(path, PF_IO_OPEN_WRITE);
	int pipes[2], saved = dup(io->fd);
	ck_assert_int_eq(pipe(pipes), 0);
	ck_assert_int_eq(pf_io_write(io, 0, buf, BLOCK), 0);
	/* fdatasync() of a pipe fails */
	dup2(pipes[1], io->fd);
	ck_assert_int_eq(pf_io_flush(io), -EIO);
	ck_assert_ptr_nonnull(strstr(logged, "flush"));
	dup2(saved, io->fd);
	ck_assert_int_eq(pf_io_write(io, 0, buf, BLOCK), 0);
	ck_assert_int_eq(pf_io_flush(io), -EIO);
	ck_assert_int_eq(pf_io_flush(io), -EIO);
	ck_assert(pf_io_dirty(io));
	close(saved);
	pf_io_close(io);
}
END_TEST

static int64_t set_now(void *arg)
{
	(void)arg;
	return now_ns;
}

START_TEST(the_log_is_not_flooded)
{
	now_ns = 1000;
	env.now_ns = set_now;
	struct pf_io *io = must_open(path, 0);
	unsigned nr_lines = 0;
	for (unsigned i = 0; i < 1000; i++) {
		logged[0] = 0;
		ck_assert_int_eq(pf_io_read(io, SIZE, buf, BLOCK), -EIO);
		nr_lines += logged[0] != 0;
	}
	ck_assert_uint_eq(nr_lines, 16 + 5);
	/* what comes after a silence is told, also when the clock was set back; the next one is not */
	static const int64_t steps[] = { INT64_C(40000000000), -INT64_C(1000000000) };
	for (unsigned i = 0; i < 2; i++) {
		now_ns += steps[i];
		ck_assert_int_eq(pf_io_read(io, SIZE, buf, BLOCK), -EIO);
		ck_assert_ptr_nonnull(strstr(logged, "truncated; check the filesystem that holds it"));
		logged[0] = 0;
		ck_assert_int_eq(pf_io_read(io, SIZE, buf, BLOCK), -EIO);
		ck_assert_str_eq(logged, "");
	}
	pf_io_close(io);
}
END_TEST

static uint64_t host_bytes(const char *name)
{
	struct stat st;
	ck_assert_int_eq(stat(name, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

START_TEST(allocate_and_discard)
{
	struct pf_io *io = must_open(path, PF_IO_OPEN_WRITE);
	memset(buf, 5, 1 << 20);
	ck_assert_int_eq(pf_io_write(io, 0, buf, 1 << 20), 0);
	ck_assert_int_eq(pf_io_allocate(io, 0, 4 << 20), 0);
	ck_assert_uint_ge(host_bytes(path), 4 << 20);
	ck_assert_int_eq(pf_io_read(io, 0, buf, 1 << 20), 0);
	ck_assert_int_eq(buf[12345], 5); /* keeps the content */
	ck_assert_int_eq(pf_io_discard(io, 0, 4 << 20), 0);
	ck_assert_uint_lt(host_bytes(path), 1 << 20);
	struct stat st;
	stat(path, &st);
	ck_assert_uint_eq((uint64_t)st.st_size, SIZE);
	ck_assert_int_eq(pf_io_allocate(io, 0, 0), 0);
	ck_assert_int_eq(pf_io_discard(io, 0, 0), 0);
	pf_io_close(io);

	/* buffered: the first write into a MiB allocates it, and does so again after a discard */
	io = must_open(path, PF_IO_OPEN_WRITE | PF_IO_OPEN_BUFFERED);
	ck_assert_int_eq(pf_io_write(io, (1 << 20) + 8 * BLOCK, buf, BLOCK), 0);
	ck_assert_uint_ge(host_bytes(path), 1 << 20);
	ck_assert_uint_lt(host_bytes(path), 2 << 20);
	ck_assert_int_eq(pf_io_write(io, (3 << 20) - BLOCK, buf, 2 * BLOCK), 0);
	ck_assert_uint_ge(host_bytes(path), 3 << 20);
	ck_assert_int_eq(pf_io_discard(io, 1 << 20, 3 << 20), 0);
	ck_assert_uint_lt(host_bytes(path), 1 << 20);
	ck_assert_int_eq(pf_io_write(io, 1 << 20, buf, BLOCK), 0);
	ck_assert_uint_ge(host_bytes(path), 1 << 20);
	pf_io_close(io);
}
END_TEST

/* A filesystem of our own of 2 MiB at @dir, seen by this process only. False: not allowed here. */
static bool small_filesystem(void)
{
	if (geteuid() != 0 && unshare(CLONE_NEWUSER) < 0)
		return false;
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	return mount("tmpfs", dir, "tmpfs", 0, "size=2m") == 0;
}

static void full_host(void)
{
	struct pf_io *io;
	if (!small_filesystem())
		_exit(77);
	for (int buffered = 0; buffered < 2; buffered++) {
		int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (fd < 0 || ftruncate(fd, 8 << 20) < 0)
			_exit(98);
		close(fd);
		int flags = PF_IO_OPEN_WRITE | (buffered ? PF_IO_OPEN_BUFFERED : 0);
		expect(1, pf_io_open(path, flags, 0, &env, &io, &diag), 0, "");
		expect(2, pf_io_write(io, 0, buf, 1 << 20), 0, "");
		expect(3, pf_io_allocate(io, 4 << 20, 4 << 20), -ENOSPC, "");
		expect(4, pf_io_write(io, 2 << 20, buf, 900 << 10), 0, "");
		/* of two MiB nearly all is taken: the write says so, not a later flush */
		expect(5, pf_io_write(io, 4 << 20, buf, 1 << 20), -ENOSPC, "");
		expect(6, pf_io_flush(io), 0, "");
		/* what is there already can be written still; room again, and all is well */
		expect(7, pf_io_write(io, 0, buf, 1 << 20), 0, "");
		expect(8, pf_io_discard(io, 0, 1 << 20), 0, "");
		expect(9, pf_io_write(io, 4 << 20, buf, 512 << 10), 0, "");
		expect(10, pf_io_flush(io), 0, "");
		pf_io_close(io);
	}
	if (mount("none", dir, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL) < 0)
		_exit(97);
	expect(11, pf_io_open(path, PF_IO_OPEN_WRITE, 0, &env, &io, &diag), -EROFS,
	       "read-only filesystem; mount with -o ro");
	expect(12, pf_io_open(path, 0, 0, &env, &io, &diag), 0, "");
	pf_io_close(io);
}

START_TEST(host_full_or_read_only)
{
	int status = in_child(full_host);
	ck_assert(status == 0 || status == 77);
}
END_TEST

/* -- block devices -------------------------------------------------------------------------------------------------- */
static char loop[32];
static int loop_fd = -1;

/* False: no loop devices here. -1 in *err: not with this sector size. */
static bool attach(uint32_t flags, uint32_t sector)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int file = open(path, flags & LO_FLAGS_READ_ONLY ? O_RDONLY : O_RDWR);
	bool done = false;
	for (int tries = 0; control >= 0 && !done && tries < 20; tries++) {
		int nr = ioctl(control, LOOP_CTL_GET_FREE);
		struct loop_config config = { .fd = (uint32_t)file, .block_size = sector };
		config.info.lo_flags = flags | LO_FLAGS_AUTOCLEAR;
		snprintf(loop, sizeof(loop), "/dev/loop%d", nr);
		loop_fd = open(loop, (flags & LO_FLAGS_READ_ONLY ? O_RDONLY : O_RDWR) | O_CLOEXEC);
		if (loop_fd < 0)
			break;
		done = ioctl(loop_fd, LOOP_CONFIGURE, &config) == 0;
		int err = errno;
		if (!done)
			close(loop_fd);
		if (!done && err != EBUSY)
			break;
	}
	close(control);
	close(file);
	return done;
}

static void detach(void)
{
	ioctl(loop_fd, LOOP_CLR_FD, 0);
	close(loop_fd);
}

START_TEST(block_device)
{
	if (!attach(0, 4096))
		return;
	struct pf_io *io = must_open(loop, PF_IO_OPEN_WRITE);
	ck_assert_int_eq(io->kind, PF_IO_BLOCK_DEVICE);
	ck_assert_uint_eq(io->size_bytes, SIZE);
	ck_assert(io->direct);
	ck_assert_uint_eq(io->host_dev, 0);
	write_and_read(io);
	ck_assert_int_eq(pf_io_allocate(io, 0, SIZE), 0);
	ck_assert_int_eq(pf_io_discard(io, 0, 1 << 20), 0);
	ck_assert_int_eq(pf_io_write(io, SIZE, buf, BLOCK), -EIO);
	ck_assert_int_eq(pf_io_read(io, SIZE, buf, BLOCK), -EIO);
	/* others that claim the device, as mount(8) and mkfs do, are shut out */
	ck_assert_int_lt(open(loop, O_RDWR | O_EXCL), 0);
	ck_assert_int_eq(errno, EBUSY);
	/* udev must not be: no flock is left on the node */
	int node = open(loop, O_RDONLY);
	ck_assert_int_eq(flock(node, LOCK_EX | LOCK_NB), 0);
	close(node);
	pf_io_close(io);
	check_locks(loop);

	/* a device that something else claims */
	node = open(loop, O_RDONLY | O_EXCL);
	ck_assert_int_ge(node, 0);
	must_refuse(loop, PF_IO_OPEN_WRITE, -PF_EMEMBER_BUSY, "lsblk");
	must_refuse(loop, 0, -PF_EMEMBER_BUSY, "lsblk");
	close(node);

	/* somebody who only looks for an instant is no conflict */
	pid_t pid = fork();
	if (pid == 0) {
		node = open(loop, O_RDONLY);
		flock(node, LOCK_SH);
		usleep(200000);
		_exit(0);
	}
	usleep(50000);
	ck_assert_int_eq(open_error(loop, PF_IO_OPEN_WRITE, 0), 0);
	waitpid(pid, NULL, 0);
	detach();
}
END_TEST

START_TEST(read_only_device)
{
	if (!attach(LO_FLAGS_READ_ONLY, 512))
		return;
	must_refuse(loop, PF_IO_OPEN_WRITE, -EROFS, "the device is read-only; mount with -o ro");
	pf_io_close(must_open(loop, 0));
	detach();
}
END_TEST

START_TEST(big_sectors)
{
	if (!attach(0, 16384))
		return;
	must_refuse(loop, PF_IO_OPEN_WRITE, -PF_EMEMBER_SECTOR, "sectors of 16384 bytes");
	detach();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("io");
	TCase *tc = tcase_create("io");
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, direct_and_buffered);
	tcase_add_test(tc, nothing_grows_or_reads_past_the_end);
	tcase_add_test(tc, refused_kinds);
	tcase_add_test(tc, permissions);
	tcase_add_test(tc, locks_of_files);
	tcase_add_test(tc, waits_for_a_lock);
	tcase_add_test(tc, a_failed_flush_is_final);
	tcase_add_test(tc, the_log_is_not_flooded);
	tcase_add_test(tc, allocate_and_discard);
	tcase_add_test(tc, host_full_or_read_only);
	tcase_add_test(tc, block_device);
	tcase_add_test(tc, read_only_device);
	tcase_add_test(tc, big_sectors);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
