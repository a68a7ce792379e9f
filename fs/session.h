/* SPDX-License-Identifier: MIT
 *
 * Purpose: one FUSE session and its mount: made with the options of the user, and taken away again.
 *
 * Invariants
 *   I1  Only our own mount is ever unmounted, or a dead poolfs mount that is in its place.
 *
 * Uses: options, ops, libfuse.
 */
#ifndef FS_SESSION_H
#define FS_SESSION_H

#include "ops.h"
#include "options.h"

#include <limits.h>

struct session {
	struct fuse_session *se; /* NULL: none */
	char mountpoint[PATH_MAX];
	bool mounted, in_utab;
	unsigned major, minor; /* of the mounted filesystem, once session_tune() has asked */
};

/* The mount point: canonical, a directory, and free of the remains of a daemon that died. Returns 0 or an error that it has
 * told the user. */
int session_prepare(struct session *s, const struct options *opt);

/* Mounts; with -N in that namespace (and prepares there). Returns 0 or an error that it has told the user. */
int session_mount(struct session *s, const struct options *opt, bool read_only, struct fs *fs);

/* The mount answers: raise its read-ahead, which only root can and FUSE does not offer by its protocol; tell umount(8) of its
 * helper. */
void session_tune(struct session *s, const struct options *opt);

/* Unmounts, if it is still mounted. @serving: the workers are running, so what the kernel holds can be written back first. */
void session_unmount(struct session *s, bool serving);

/* Lets go of the connection: whoever still uses the filesystem gets ENOTCONN. After the workers have ended. */
void session_free(struct session *s);

#endif
