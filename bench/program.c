/* SPDX-License-Identifier: MIT */
#include "program.h"

#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool is_program(char path[PATH_MAX], const char *dir, size_t dir_len, const char *name)
{
	int n = snprintf(path, PATH_MAX, "%.*s/%s", (int)dir_len, dir, name);
	return n > 0 && n < PATH_MAX && access(path, X_OK) == 0;
}

bool program_find(const char *name, char path[PATH_MAX])
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n > 0) {
		self[n] = 0;
		char *slash = strrchr(self, '/');
		if (slash && is_program(path, self, (size_t)(slash - self), name))
			return true;
	}
	const char *lists[] = { getenv("PATH"), "/usr/local/sbin:/usr/sbin:/sbin" };
	for (unsigned i = 0; i < 2; i++) {
		for (const char *dir = lists[i]; dir && *dir;) {
			size_t len = strcspn(dir, ":");
			if (len && is_program(path, dir, len, name))
				return true;
			dir += len + (dir[len] == ':');
		}
	}
	return false;
}

/* A file and not a pipe: a daemon that keeps it open does not keep us waiting. */
static void show_output(int fd)
{
	char text[4096];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return;
	text[n] = 0;
	for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		fprintf(stderr, "  %s\n", line);
}

static int run_found(const char *path, const char *const argv[], int out_fd)
{
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out_fd, STDERR_FILENO);
	pid_t pid;
	int err = posix_spawn(&pid, path, &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (err) {
		cli_message("%s: %s", path, strerror(err));
		return -err;
	}
	int status;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status))
		cli_message("%s failed with exit code %d:", path, WEXITSTATUS(status));
	else
		cli_message("%s was killed by signal %d:", path, WTERMSIG(status));
	show_output(out_fd);
	return -EIO;
}

int program_run(const char *const argv[])
{
	char path[PATH_MAX];
	if (!program_find(argv[0], path)) {
		cli_message("%s: no such program beside this one or in PATH", argv[0]);
		return -ENOENT;
	}
	int out_fd = memfd_create("output", MFD_CLOEXEC);
	if (out_fd < 0)
		return -errno;
	int err = run_found(path, argv, out_fd);
	close(out_fd);
	return err;
}
