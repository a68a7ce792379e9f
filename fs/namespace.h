/* SPDX-License-Identifier: MIT
 *
 * Purpose: -N of mount(8) and umount(8): another mount namespace.
 *
 * Uses: log.
 */
#ifndef FS_NAMESPACE_H
#define FS_NAMESPACE_H

/* @name: the number of a process, or the file of a namespace. From now on the calling thread is in it. Returns 0 or an error that
 * it has told the user. */
int namespace_enter(const char *name);

#endif
