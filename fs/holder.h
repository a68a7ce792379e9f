/* SPDX-License-Identifier: MIT
 *
 * Purpose: who holds a member, and who serves a mount: whether a lock is that of a pool in use or of a daemon that is ending.
 *
 * Invariants
 *   I1  Nothing is opened for writing, and a lock is held for an instant only.
 *   I2  A mount is asked only when a member is held, and for a quarter of a second at most: a daemon that hangs keeps nobody else from mounting.
 *
 * Uses: child, mountinfo, poolfs.h.
 */
#ifndef FS_HOLDER_H
#define FS_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Would opening the member at @path have to wait for another process? For reading only writers are in the way. */
bool holder_is_held(const char *path, bool for_writing);

/* Field 22 of /proc/PROCESS/stat ("self", or a pid): with the pid, the identity of a process. */
bool holder_start_time(const char *process, uint64_t *ticks);

/* The name that a daemon gives itself when it has let go of its pool, and all that is left to do is to end. */
#define HOLDER_ENDED "poolfs-ended"
bool holder_has_ended(pid_t daemon);

/* The daemon of the mount to which @dir_fd belongs: a descriptor that becomes readable when it has ended, and its pid; -1 and
 * 0 when that is not known (no poolfs, another PID namespace). */
int holder_of_mount(int dir_fd, pid_t *pid);

/* A mount in this namespace whose daemon has @path open. @dir has PATH_MAX bytes. False also where that cannot be seen. */
bool holder_find_mount(const char *path, char *dir);

#endif
