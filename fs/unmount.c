/* SPDX-License-Identifier: MIT */
#include "unmount.h"

#include "child.h"
#include "spawn.h"

#include <errno.h>
#include <sys/mount.h>
#include <unistd.h>

struct unmounting {
	const char *path;
	int how;
};

static int call_umount(const void *arg)
{
	const struct unmounting *u = arg;
	return umount2(u->path, u->how) < 0 ? errno : 0;
}

int unmount_path(const char *path, int flags)
{
	struct unmounting u = { .path = path };
	u.how = UMOUNT_NOFOLLOW | (flags & UNMOUNT_LAZY ? MNT_DETACH : 0) | (flags & UNMOUNT_FORCE ? MNT_FORCE : 0);
	int err = flags & UNMOUNT_OWN ? child_call(call_umount, &u, CHILD_FOR_EVER) : call_umount(&u);
	if (err != EPERM || geteuid() == 0)
		return err > 0 ? -err : err;
	char *argv[] = { "fusermount3", "-u", flags & UNMOUNT_LAZY ? "-z" : "-q", "--", (char *)path, NULL };
	int code = spawn_wait(argv, false);
	return code < 0 ? code : code ? -EBUSY : 0;
}
