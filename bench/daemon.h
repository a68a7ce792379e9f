/* SPDX-License-Identifier: MIT
 *
 * Purpose: the daemon that serves a mounted pool: which process it is, its memory, its checkpoints, its sudden end.
 *
 * Uses: poolfs.h (for the ioctls), status_fetch.h, json.h.
 */
#ifndef BENCH_DAEMON_H
#define BENCH_DAEMON_H

#include <stdint.h>
#include <sys/types.h>

struct daemon {
	pid_t pid;
	uint64_t start_time; /* field 22 of /proc/PID/stat: the number alone may be somebody else's by now */
};

/* The one that serves @dir. All of these: 0 or -errno. */
int daemon_find(const char *dir, struct daemon *out);
int daemon_memory(const struct daemon *d, uint64_t *rss_bytes, uint64_t *peak_bytes);
/* Returns when it is gone. -ESRCH: it was gone already. */
int daemon_kill(const struct daemon *d);
/* Counts up with each checkpoint of the pool in which @fd is open. */
int daemon_generation(int fd, uint64_t *out);

#endif
