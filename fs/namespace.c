/* SPDX-License-Identifier: MIT */
#include "namespace.h"

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int namespace_enter(const char *name)
{
	char path[64];
	if (strspn(name, "0123456789") == strlen(name) && strlen(name) < 16) {
		snprintf(path, sizeof(path), "/proc/%s/ns/mnt", name);
		name = path;
	}
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : 0;
	/* a mount namespace can only be changed by who shares its root and working directory with no other thread */
	if (!err && (unshare(CLONE_FS) < 0 || setns(fd, CLONE_NEWNS) < 0))
		err = -errno;
	if (fd >= 0)
		close(fd);
	if (err)
		say("cannot enter the mount namespace '%s': %s", name, strerror(-err));
	return err;
}
