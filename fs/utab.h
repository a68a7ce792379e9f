/* SPDX-License-Identifier: MIT
 *
 * Purpose: that umount(8) calls umount.fuse.poolfs. Told only a directory, it asks statfs(2) for the type, gets "fuse", and
 * looks for umount.fuse: too general to be ours. It looks closer when its own table (/run/mount/utab) has an entry with a
 * helper for the directory. mount(8) and umount(8) make and remove such entries when called with --fake: the table's format is
 * theirs.
 *
 * Uses: spawn.
 */
#ifndef FS_UTAB_H
#define FS_UTAB_H

/* For root only; for others, or without util-linux, nothing happens, and umount(8) does not wait for the daemon. */
void utab_add(const char *source, const char *dir);
void utab_remove(const char *dir);

#endif
