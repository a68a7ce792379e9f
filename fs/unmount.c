/* SPDX-License-Identifier: MIT */
#include "unmount.h"

#include <errno.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int run_fusermount(const char *path, int flags)
{
	char *argv[] = { "fusermount3", "-u", flags & UNMOUNT_LAZY ? "-z" : "-q", "--", (char *)path, NULL };
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid;
	int status;
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	/* the daemon blocks signals that the child should have */
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	int err = posix_spawnp(&pid, argv[0], NULL, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	if (err)
		return -err;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EBUSY;
}

int unmount_path(const char *path, int flags)
{
	int how = UMOUNT_NOFOLLOW | (flags & UNMOUNT_LAZY ? MNT_DETACH : 0) | (flags & UNMOUNT_FORCE ? MNT_FORCE : 0);
	if (umount2(path, how) == 0)
		return 0;
	return errno == EPERM && geteuid() != 0 ? run_fusermount(path, flags) : -errno;
}
