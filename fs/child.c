/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* 0: it has ended, or can be waited for. */
static int wait_ended(pid_t pid, int timeout_ms)
{
	int fd = pidfd_open(pid, 0);
	if (fd < 0)
		return timeout_ms == CHILD_FOR_EVER ? 0 : -errno;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int n;
	while ((n = poll(&p, 1, timeout_ms)) < 0 && errno == EINTR)
		;
	int err = n < 0 ? -errno : n ? 0 : -ETIMEDOUT;
	close(fd);
	return err;
}

int child_wait(pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

int child_call(int (*call)(const void *arg), const void *arg, int timeout_ms)
{
	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close_range(3, UINT_MAX, 0);
		_exit(call(arg));
	}
	int err = wait_ended(pid, timeout_ms);
	if (!err)
		return child_wait(pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, WNOHANG);
	return err;
}
