/* SPDX-License-Identifier: MIT */
#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Others may take the free number before us. */
enum { MAX_TRIES = 20, WAIT_US = 50000 };

static int try_attach(int control_fd, int file_fd, char name[LOOP_NAME_LEN])
{
	int nr = ioctl(control_fd, LOOP_CTL_GET_FREE);
	if (nr < 0)
		return -errno;
	snprintf(name, LOOP_NAME_LEN, "/dev/loop%d", nr);
	int fd = open(name, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	struct loop_config config = { .fd = (unsigned)file_fd, .info.lo_flags = LO_FLAGS_DIRECT_IO };
	int err = ioctl(fd, LOOP_CONFIGURE, &config) == 0 ? 0 : -errno;
	if (!err) {
		struct loop_info64 info;
		if (ioctl(fd, LOOP_GET_STATUS64, &info) != 0)
			err = -errno;
		else if (!(info.lo_flags & LO_FLAGS_DIRECT_IO))
			err = -EOPNOTSUPP;
		if (err)
			ioctl(fd, LOOP_CLR_FD);
	}
	close(fd);
	return err;
}

int loop_attach(const char *file, char name[LOOP_NAME_LEN])
{
	int control_fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int file_fd = open(file, O_RDWR | O_CLOEXEC);
	int err = control_fd < 0 ? -ENXIO : file_fd < 0 ? -errno : -EBUSY;
	for (unsigned i = 0; i < MAX_TRIES && err == -EBUSY; i++)
		err = try_attach(control_fd, file_fd, name);
	if (control_fd >= 0)
		close(control_fd);
	if (file_fd >= 0)
		close(file_fd);
	if (err)
		name[0] = 0;
	return err;
}

/* LOOP_CLR_FD of a device that somebody still has open succeeds, and takes effect when he lets go. */
static bool is_attached(int fd)
{
	struct loop_info64 info;
	return ioctl(fd, LOOP_GET_STATUS64, &info) == 0;
}

int loop_detach(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int err = ioctl(fd, LOOP_CLR_FD) == 0 ? 0 : -errno;
	close(fd);
	for (unsigned i = 0; !err && i < MAX_TRIES; i++) {
		fd = open(name, O_RDONLY | O_CLOEXEC);
		bool busy = fd >= 0 && is_attached(fd);
		if (fd >= 0)
			close(fd);
		if (!busy)
			return 0;
		usleep(WAIT_US);
	}
	return err ? err : -EBUSY;
}
