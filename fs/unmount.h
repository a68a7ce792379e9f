/* SPDX-License-Identifier: MIT
 *
 * Purpose: unmounting, by root and by ordinary users.
 *
 * Uses: child, spawn.
 */
#ifndef FS_UNMOUNT_H
#define FS_UNMOUNT_H

enum unmount_flags {
	UNMOUNT_LAZY = 1,  /* out of the tree now, gone when nobody uses it any more */
	UNMOUNT_FORCE = 2, /* requests that are waiting fail */
	UNMOUNT_OWN = 4,   /* this process serves the mount: what is written back comes to it (child.h) */
};

/* umount2(2), or fusermount3(1) for who may not call that. Returns 0 or -errno; whatever fusermount3 cannot do is -EBUSY after
 * it has printed why. */
int unmount_path(const char *path, int flags);

#endif
