/* SPDX-License-Identifier: MIT */
#include "daemon.h"

#include "json.h"
#include "poolfs.h"
#include "status_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { START_TIME_FIELD = 22, MAX_WAITS = 1000, WAIT_US = 10000 };

int daemon_find(const char *dir, struct daemon *out)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	struct poolfs_ioc_info info;
	int err = ioctl(fd, POOLFS_IOC_INFO, &info) == 0 ? 0 : -errno;
	close(fd);
	if (!err)
		*out = (struct daemon){ .pid = (pid_t)info.pid, .start_time = info.start_time };
	return err;
}

/* -- the process ---------------------------------------------------------------------------------------------------- */
static FILE *open_proc(pid_t pid, const char *name)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%jd/%s", (intmax_t)pid, name);
	return fopen(path, "re");
}

/* A zombie has let go of everything; who does not reap it is not our concern. */
static int is_alive(const struct daemon *d)
{
	char line[1024];
	FILE *f = open_proc(d->pid, "stat");
	if (!f)
		return errno == ENOENT || errno == ESRCH ? 0 : -errno;
	/* Its name is in parentheses and may hold anything; behind the last one are the state and numbers. */
	char *p = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	if (!p || strlen(p) < 3)
		return 0;
	char state = p[2];
	for (unsigned field = 2; field < START_TIME_FIELD && p; field++)
		p = strchr(p + 1, ' ');
	return p && state != 'Z' && state != 'X' && strtoull(p, NULL, 10) == d->start_time;
}

int daemon_kill(const struct daemon *d)
{
	int alive = is_alive(d);
	if (alive <= 0)
		return alive ? alive : -ESRCH;
	if (kill(d->pid, SIGKILL) != 0)
		return -errno;
	for (unsigned i = 0; i < MAX_WAITS; i++) {
		alive = is_alive(d);
		if (alive <= 0)
			return alive;
		usleep(WAIT_US);
	}
	return -ETIMEDOUT;
}

int daemon_memory(const struct daemon *d, uint64_t *rss_bytes, uint64_t *peak_bytes)
{
	char line[256];
	uint64_t kib;
	FILE *f = open_proc(d->pid, "status");
	if (!f)
		return -errno;
	*rss_bytes = *peak_bytes = 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "VmRSS: %" SCNu64, &kib) == 1)
			*rss_bytes = kib * 1024;
		else if (sscanf(line, "VmHWM: %" SCNu64, &kib) == 1)
			*peak_bytes = kib * 1024;
	}
	fclose(f);
	return *rss_bytes ? 0 : -ESRCH;
}

/* -- the pool ------------------------------------------------------------------------------------------------------- */
int daemon_generation(int fd, uint64_t *out)
{
	char *text;
	int err = status_fetch(fd, &text);
	struct json_value *status = err ? NULL : json_parse(text);
	if (!err && !json_get(status, "generation"))
		err = -EPROTO;
	*out = json_get_number(status, "generation", 0);
	json_free(status);
	free(text);
	return err;
}
