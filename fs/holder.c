/* SPDX-License-Identifier: MIT */
#include "holder.h"

#include "child.h"
#include "mountinfo.h"
#include "poolfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define ANSWER_MS 250

bool holder_is_held(const char *path, bool for_writing)
{
	struct stat st;
	if (path[0] != '/' || stat(path, &st) < 0)
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC | (S_ISBLK(st.st_mode) ? O_EXCL : 0));
	if (fd < 0)
		return errno == EBUSY;
	/* a writer of a device holds it O_EXCL, and a flock is what its readers have */
	bool ask = S_ISREG(st.st_mode) || (S_ISBLK(st.st_mode) && for_writing);
	bool held = ask && flock(fd, (for_writing ? LOCK_EX : LOCK_SH) | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	close(fd);
	return held;
}

bool holder_start_time(const char *process, uint64_t *ticks)
{
	char path[64], line[1024];
	snprintf(path, sizeof(path), "/proc/%s/stat", process);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	/* the name of the program, field 2, may hold anything: count behind its parenthesis */
	const char *p = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	for (int i = 0; p && i < 20; i++)
		p = strchr(p + 1, ' ');
	if (p)
		*ticks = strtoull(p, NULL, 10);
	fclose(f);
	return p != NULL;
}

bool holder_has_ended(pid_t daemon)
{
	char path[64], name[sizeof(HOLDER_ENDED) + 1] = "";
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)daemon);
	FILE *f = daemon > 0 ? fopen(path, "re") : NULL;
	if (!f)
		return false;
	bool ended = fgets(name, sizeof(name), f) && strncmp(name, HOLDER_ENDED, strlen(HOLDER_ENDED)) == 0;
	fclose(f);
	return ended;
}

/* True when @pid is still the process that started at @start_time. */
static bool is_process(uint32_t pid, uint64_t start_time)
{
	char text[16];
	uint64_t ticks;
	snprintf(text, sizeof(text), "%u", pid);
	return holder_start_time(text, &ticks) && ticks == start_time;
}

int holder_of_mount(int dir_fd, pid_t *pid)
{
	struct poolfs_ioc_info info;
	*pid = 0;
	if (ioctl(dir_fd, POOLFS_IOC_INFO, &info) < 0)
		return -1;
	int fd = pidfd_open((pid_t)info.pid, 0);
	if (fd >= 0 && !is_process(info.pid, info.start_time)) {
		close(fd);
		fd = -1;
	}
	if (fd >= 0)
		*pid = (pid_t)info.pid;
	return fd;
}

/* Has process @pid the file or device of @wanted open? */
static bool has_open(pid_t pid, const struct stat *wanted)
{
	char path[64];
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path);
	for (struct dirent *e; dir && !found && (e = readdir(dir));) {
		struct stat st;
		if (e->d_name[0] == '.' || fstatat(dirfd(dir), e->d_name, &st, 0) < 0)
			continue;
		found = S_ISBLK(wanted->st_mode) ? S_ISBLK(st.st_mode) && st.st_rdev == wanted->st_rdev
						 : st.st_dev == wanted->st_dev && st.st_ino == wanted->st_ino;
	}
	if (dir)
		closedir(dir);
	return found;
}

struct question {
	const char *dir;
	const struct stat *member;
};

static int ask_mount(const void *arg)
{
	const struct question *q = arg;
	pid_t pid;
	int fd = open(q->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int daemon = fd < 0 ? -1 : holder_of_mount(fd, &pid);
	bool found = daemon >= 0 && has_open(pid, q->member);
	if (daemon >= 0)
		close(daemon);
	if (fd >= 0)
		close(fd);
	return found;
}

static bool is_served_with(const char *dir, void *arg)
{
	struct question q = { dir, arg };
	return child_call(ask_mount, &q, ANSWER_MS) == 1;
}

bool holder_find_mount(const char *path, char *dir)
{
	struct stat st;
	return stat(path, &st) == 0 && mountinfo_find_pool(is_served_with, &st, dir);
}
