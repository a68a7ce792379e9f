/* SPDX-License-Identifier: MIT
 *
 * Purpose: what /proc/self/mountinfo says about one directory or filesystem, and the checks around mount points that must work although
 * the filesystem on it is dead.
 *
 * Uses: nothing.
 */
#ifndef FS_MOUNTINFO_H
#define FS_MOUNTINFO_H

#include <limits.h>
#include <stdbool.h>

#define FS_TYPE "fuse.poolfs"

struct mountinfo {
	unsigned major, minor;
	char type[64];
	char source[PATH_MAX];
	bool super_read_only;
};

/* The absolute path of @dir without symbolic links. Works on a dead mount point, which realpath(3) cannot look at. Returns 0
 * or -errno. @out has PATH_MAX bytes. */
int mountinfo_canonical(const char *dir, char *out);

/* True when @path is a poolfs mount whose daemon is gone. */
bool mountinfo_is_dead(const char *path);

/* The topmost mount on @path (canonical). Returns 0, -ENOENT (nothing is mounted there) or -errno. */
int mountinfo_find(const char *path, struct mountinfo *out);

/* A place where the filesystem of that device number is mounted, by @file: /proc/self/mountinfo or that of another process.
 * @dir has PATH_MAX bytes. Returns 0, -ENOENT (nowhere) or -errno. */
int mountinfo_find_device(const char *file, unsigned major, unsigned minor, char *dir);

/* The first mount of a pool, in the order of mounting, for which @is_wanted says so. @dir has PATH_MAX bytes. */
bool mountinfo_find_pool(bool (*is_wanted)(const char *dir, void *arg), void *arg, char *dir);

#endif
