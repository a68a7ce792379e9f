/* SPDX-License-Identifier: MIT */
#include "spawn.h"

#include "child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

extern char **environ;

static int start(char *const argv[], bool quiet, pid_t *pid)
{
	posix_spawnattr_t attr;
	posix_spawn_file_actions_t actions;
	sigset_t none;
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_init(&actions);
	/* a daemon blocks signals that its children should have */
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	if (quiet) {
		posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
		posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	}
	int err = posix_spawnp(pid, argv[0], &actions, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -err;
}

int spawn_wait(char *const argv[], bool quiet)
{
	pid_t pid;
	int err = start(argv, quiet, &pid);
	return err ? err : child_wait(pid);
}
