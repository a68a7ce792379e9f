/* SPDX-License-Identifier: MIT */
#include "daemonize.h"

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t child_pid, nr_forwarded;

static void forward(int sig)
{
	(void)sig;
	nr_forwarded++;
	kill((pid_t)child_pid, SIGTERM);
}

static _Noreturn void parent(pid_t child, int fd)
{
	child_pid = child;
	struct sigaction sa = { .sa_handler = forward, .sa_flags = SA_RESTART };
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);

	char ok;
	ssize_t n;
	do {
		n = read(fd, &ok, 1);
	} while (n < 0 && errno == EINTR);
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (n == 1 && !nr_forwarded)
		_exit(0);
	/* no report, or a signal: the child is ending, and its exit code is the answer */
	int status;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (n == 1) {
		/* it was just ready when the signal reached it */
		say("interrupted; nothing is mounted");
		_exit(EXIT_INTERRUPTED);
	}
	if (WIFEXITED(status))
		_exit(WEXITSTATUS(status) ? WEXITSTATUS(status) : EXIT_INTERNAL);
	say("the daemon died of signal %d (%s); nothing is mounted", WTERMSIG(status), strsignal(WTERMSIG(status)));
	_exit(EXIT_INTERNAL);
}

int daemonize_fork(void)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0) {
		say("cannot make a pipe: %s", strerror(errno));
		return -1;
	}
	pid_t pid = fork();
	if (pid < 0) {
		say("cannot start the daemon: %s", strerror(errno));
		close(fds[0]);
		close(fds[1]);
		return -1;
	}
	if (pid > 0) {
		close(fds[1]);
		parent(pid, fds[0]);
	}
	close(fds[0]);
	/* a session of its own, so that ^C reaches the parent alone, which hands it on */
	setsid();
	return fds[1];
}

void daemonize_report(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		for (int i = 0; i < 3; i++)
			dup2(null, i);
		if (null > 2)
			close(null);
	}
	if (chdir("/") < 0)
		log_line(PF_LOG_WARNING, "cannot leave the working directory: %s", strerror(errno));
	char ok = 1;
	while (write(fd, &ok, 1) < 0 && errno == EINTR)
		;
	close(fd);
}
