/* SPDX-License-Identifier: MIT */
#include "unmount.h"

#include "spawn.h"

#include <errno.h>
#include <sys/mount.h>
#include <unistd.h>

int unmount_path(const char *path, int flags)
{
	int how = UMOUNT_NOFOLLOW | (flags & UNMOUNT_LAZY ? MNT_DETACH : 0) | (flags & UNMOUNT_FORCE ? MNT_FORCE : 0);
	if (umount2(path, how) == 0)
		return 0;
	if (errno != EPERM || geteuid() == 0)
		return -errno;
	char *argv[] = { "fusermount3", "-u", flags & UNMOUNT_LAZY ? "-z" : "-q", "--", (char *)path, NULL };
	int code = spawn_wait(argv, false);
	return code < 0 ? code : code ? -EBUSY : 0;
}
