/* SPDX-License-Identifier: MIT
 *
 * Purpose: POSIX access control lists in the form in which xattrs carry them (acl(5), version 2): the rules of POSIX 1003.1e
 * draft 17 about modes and inheritance. The kernel enforces the lists; this keeps mode and list in step.
 *
 * Invariants
 *   I1  Every other function takes a list that acl_valid() has accepted.
 *
 * Uses: nothing.
 */
#ifndef FS_ACL_H
#define FS_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define ACL_ACCESS_NAME "system.posix_acl_access"
#define ACL_DEFAULT_NAME "system.posix_acl_default"
#define ACL_MAX_BYTES 65536

/* A list as POSIX demands it: owner, group, others once, named ones in between and then a mask, in this order. */
bool acl_valid(const void *acl, size_t len);

/* True when a list of @len bytes says no more than a mode does. */
bool acl_is_minimal(size_t len);

/* The nine permission bits that belong to the list: owner, mask (or group when there is none), others. */
mode_t acl_mode(const void *acl, size_t len);

/* The permissions that the owning group really has: its entry limited by the mask. 0 to 7. */
unsigned acl_group_perm(const void *acl, size_t len);

/* What chmod(2) does to a list. */
void acl_chmod(void *acl, size_t len, mode_t mode);

/* A default list becomes the access list of a new inode that is made with @mode. Returns the permission bits of the inode. */
mode_t acl_inherit(void *acl, size_t len, mode_t mode);

#endif
