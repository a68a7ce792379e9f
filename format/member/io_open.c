/* SPDX-License-Identifier: MIT */
#include "member/io_open.h"

#include "member/same.h"
#include "ondisk/ondisk.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 20u
/* udev and other readers look at a device for an instant: that alone is no reason to refuse */
#define DEVICE_WAIT_MIN_MS 500u

static void sleep_ms(unsigned ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };
	nanosleep(&ts, NULL);
}

/* -- why it failed ----------------------------------------------------------------------------------------------- */
static bool device_is_read_only(int fd)
{
	int ro = 0;
	return ioctl(fd, BLKROGET, &ro) == 0 && ro;
}

static int read_only_device(const char *path, struct pf_diag *diag)
{
	return pf_diag_set(
		diag, -EROFS,
		"%s: the device is read-only; mount with -o ro, or allow writing (a switch on the disk, or: blockdev "
		"--setrw %s)",
		path, path);
}

static int may_not_write(const char *path, bool is_device, int sys_err, struct pf_diag *diag)
{
	int fd = is_device ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	bool read_only = fd >= 0 && device_is_read_only(fd);
	if (fd >= 0)
		close(fd);
	if (read_only)
		return read_only_device(path, diag);
	if (sys_err == -EROFS)
		return pf_diag_set(
			diag, -EROFS,
			"%s: lies on a read-only filesystem; mount with -o ro, or remount that filesystem read-write",
			path);
	if (access(path, R_OK) == 0)
		return pf_diag_set(
			diag, -EACCES,
			"%s: read-only for this user; mount with -o ro, or allow writing (chmod, chattr -i, or run as "
			"its owner or as root)",
			path);
	return pf_diag_set(diag, -EACCES, "%s: permission denied; run as its owner or as root", path);
}

static int open_failed(const char *path, bool is_device, int flags, int sys_err, struct pf_diag *diag)
{
	switch (sys_err) {
	case -ENOENT:
	case -ENOTDIR:
	case -ENXIO:
	case -ENODEV:
	case -ENOMEDIUM:
		return pf_diag_set(diag, -ENOENT, "%s: no such member (%s); check the path, or plug the disk in", path,
				   strerrordesc_np(-sys_err));
	case -EROFS:
	case -EACCES:
	case -EPERM:
		if (flags & PF_IO_OPEN_WRITE)
			return may_not_write(path, is_device, sys_err, diag);
		return pf_diag_set(diag, -EACCES, "%s: permission denied; run as its owner or as root", path);
	default:
		return pf_diag_set(diag, sys_err, "%s: cannot be opened: %s", path, strerrordesc_np(-sys_err));
	}
}

static int busy(const char *path, bool is_device, int flags, struct pf_diag *diag)
{
	if (is_device)
		return pf_diag_set(
			diag, -PF_EMEMBER_BUSY,
			"%s: in use: mounted, or held by another program; unmount or stop that first (who it is: "
			"lsblk %s; fuser -v %s)",
			path, path, path);
	return pf_diag_set(diag, -PF_EMEMBER_BUSY,
			   "%s: in use by another program%s; unmount or stop that first (who it is: fuser -v %s)", path,
			   flags & PF_IO_OPEN_WRITE ? " (a mounted pool, fsck ...)" : " that writes to it", path);
}

/* -- one try ----------------------------------------------------------------------------------------------------- */
/* 0; -EWOULDBLOCK: somebody holds it; another -errno. */
static int try_flock(int fd, int operation)
{
	int ret;
	do
		ret = flock(fd, operation | LOCK_NB);
	while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

/* All three: the descriptor, locked, or -EWOULDBLOCK, or another -errno. */
static int try_file(const char *path, int flags)
{
	int fd = open(path, (flags & PF_IO_OPEN_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (flags & PF_IO_OPEN_UNLOCKED)
		return fd;
	int err = try_flock(fd, flags & PF_IO_OPEN_WRITE ? LOCK_EX : LOCK_SH);
	if (err)
		close(fd);
	return err ? err : fd;
}

static int try_device_writer(const char *path)
{
	int fd = open(path, O_RDWR | O_EXCL | O_CLOEXEC);
	if (fd < 0)
		return errno == EBUSY ? -EWOULDBLOCK : -errno;
	int err = try_flock(fd, LOCK_EX);
	if (err)
		close(fd);
	else
		flock(fd, LOCK_UN);
	return err ? err : fd;
}

static int try_device_reader(const char *path, int flags)
{
	int fd = open(path, (flags & PF_IO_OPEN_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (flags & PF_IO_OPEN_UNLOCKED)
		return fd;
	int err = try_flock(fd, LOCK_SH);
	int claim = err ? -1 : open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
	if (!err && claim < 0)
		err = errno == EBUSY ? -EWOULDBLOCK : -errno;
	if (claim >= 0)
		close(claim);
	if (err)
		close(fd);
	return err ? err : fd;
}

/* *by_device: it is a device that is claimed, or that somebody looked at just now. */
static int try_open(const char *path, const struct stat *st, int flags, bool *by_device)
{
	bool unlocked = flags & PF_IO_OPEN_UNLOCKED, writer = flags & PF_IO_OPEN_WRITE;
	*by_device = S_ISBLK(st->st_mode);
	int fd = !*by_device	       ? try_file(path, flags)
		 : writer && !unlocked ? try_device_writer(path)
				       : try_device_reader(path, flags);
	/* its own side first, then the other: of two that come at the same time one at least sees the other */
	if (fd < 0 || unlocked || !pf_loop_is_held(st, writer))
		return fd;
	close(fd);
	*by_device = true;
	return -EWOULDBLOCK;
}

static int open_with_patience(const char *path, const struct stat *st, int flags, unsigned wait_ms)
{
	for (unsigned waited_ms = 0;; waited_ms += POLL_MS) {
		bool by_device;
		int fd = try_open(path, st, flags, &by_device);
		if (fd != -EWOULDBLOCK || waited_ms >= (by_device && wait_ms < DEVICE_WAIT_MIN_MS ? DEVICE_WAIT_MIN_MS : wait_ms))
			return fd;
		sleep_ms(POLL_MS);
	}
}

/* -- what was opened --------------------------------------------------------------------------------------------- */
static int measure(const char *path, int flags, const struct stat *expected, struct pf_io_opened *out,
		   struct pf_diag *diag)
{
	struct stat st;
	if (fstat(out->fd, &st) < 0)
		return pf_diag_set(diag, -EIO, "%s: cannot be examined: %s", path, strerrordesc_np(errno));
	if ((st.st_mode & S_IFMT) != (expected->st_mode & S_IFMT))
		return pf_diag_set(diag, -EINVAL, "%s: was replaced by something else meanwhile; try again", path);
	if (out->kind == PF_IO_FILE) {
		out->size_bytes = (uint64_t)st.st_size;
		out->host_dev = st.st_dev;
		out->sparse = (uint64_t)st.st_blocks * 512 < out->size_bytes;
		return 0;
	}
	/* the kernel lets it be opened for writing, and only the writes fail */
	if ((flags & PF_IO_OPEN_WRITE) && device_is_read_only(out->fd))
		return read_only_device(path, diag);
	int sector = 0;
	if (ioctl(out->fd, BLKGETSIZE64, &out->size_bytes) < 0 || ioctl(out->fd, BLKSSZGET, &sector) < 0)
		return pf_diag_set(diag, -EIO, "%s: the device does not tell its size: %s", path,
				   strerrordesc_np(errno));
	if (sector > (int)PF_BLOCK_SIZE)
		return pf_diag_set(
			diag, -PF_EMEMBER_SECTOR,
			"%s: its sectors of %d bytes are larger than the 4096 that are supported; use another disk",
			path, sector);
	return 0;
}

int pf_io_open_locked(const char *path, int flags, unsigned wait_ms, struct pf_io_opened *out, struct pf_diag *diag)
{
	struct stat st;
	memset(out, 0, sizeof(*out));
	if (stat(path, &st) < 0)
		return open_failed(path, false, 0, -errno, diag);
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return pf_diag_set(diag, -EINVAL,
				   "%s: is a %s; a member is an image file or a block device (partition or disk)", path,
				   S_ISDIR(st.st_mode) ? "directory" : "special file");

	bool is_device = S_ISBLK(st.st_mode);
	out->kind = is_device ? PF_IO_BLOCK_DEVICE : PF_IO_FILE;
	out->fd = open_with_patience(path, &st, flags, wait_ms);
	if (out->fd == -EWOULDBLOCK)
		return busy(path, is_device, flags, diag);
	if (out->fd == -ENOLCK || out->fd == -EOPNOTSUPP)
		return pf_diag_set(
			diag, out->fd,
			"%s: its filesystem cannot lock files, so a second user of the pool would not be noticed; "
			"put the image on another filesystem",
			path);
	if (out->fd < 0)
		return open_failed(path, is_device, flags, out->fd, diag);
	int err = measure(path, flags, &st, out, diag);
	if (err)
		close(out->fd);
	return err;
}
