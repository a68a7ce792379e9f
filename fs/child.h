/* SPDX-License-Identifier: MIT
 *
 * Purpose: system calls that wait for a FUSE daemon, in a process of their own. A thread that waits for an answer cannot be killed; and
 * if the answer should come from its own process, which is being killed, that process never ends, its connection is never
 * closed, and everybody who touches the mount waits with it.
 *
 * Invariants
 *   I1  The child has no descriptor of the parent but 0, 1 and 2: it does not keep a connection open.
 *   I2  The parent waits killably, and not longer than it wants.
 *
 * Uses: nothing.
 */
#ifndef FS_CHILD_H
#define FS_CHILD_H

#include <sys/types.h>

#define CHILD_FOR_EVER (-1)

/* Runs @call, which returns 0 to 255, and returns that; or -errno, -ETIMEDOUT: the child is killed and left alone. When the caller has
 * threads, @call may use system calls only (signal-safety(7)). */
int child_call(int (*call)(const void *arg), const void *arg, int timeout_ms);

/* Waits for a child: its exit code, or -errno. */
int child_wait(pid_t pid);

#endif
