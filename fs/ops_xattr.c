/* SPDX-License-Identifier: MIT
 * Requests about extended attributes. Access control lists are some of them. */
#include "acl.h"
#include "ops.h"
#include "transport.h"

#include <sys/xattr.h>

static bool starts_with(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);
	return strncmp(name, prefix, len) == 0 && name[len];
}

static bool is_acl(const char *name)
{
	return strcmp(name, ACL_ACCESS_NAME) == 0 || strcmp(name, ACL_DEFAULT_NAME) == 0;
}

/* As the kernel has it for its own filesystems: -EINVAL for a namespace without a name in it, -EOPNOTSUPP for no namespace of ours. */
static int name_error(const char *name)
{
	static const char *const spaces[] = { "user.", "trusted.", "security." };
	for (unsigned i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		if (strcmp(name, spaces[i]) == 0)
			return -EINVAL;
		if (starts_with(name, spaces[i]))
			return 0;
	}
	return is_acl(name) ? 0 : -EOPNOTSUPP;
}

/* Linux filesystems show trusted.* only to who may read them; FUSE leaves that to the daemon. */
static bool sees_trusted(fuse_req_t req)
{
	return fuse_req_ctx(req)->uid == 0;
}

/* -- setting ------------------------------------------------------------------------------------------------------------- */

/* The mode follows an access list, and a list that says no more than a mode is not stored. */
static int set_access_acl(struct pf_pool *pool, uint64_t ino, const void *acl, size_t len)
{
	struct pf_attr attr, in = { 0 };
	int err = pf_getattr(pool, ino, &attr);
	if (err)
		return err;
	in.mode = (attr.mode & 07000) | acl_mode(acl, len);
	/* the kernel asks for this when the caller is not of the file's group: the bit would be theirs to misuse */
	if (transport_setxattr_flags() & FUSE_SETXATTR_ACL_KILL_SGID)
		in.mode &= ~(mode_t)S_ISGID;
	if (acl_is_minimal(len)) {
		err = pf_removexattr(pool, ino, ACL_ACCESS_NAME);
		if (err == -ENODATA)
			err = 0;
	} else {
		err = pf_setxattr(pool, ino, ACL_ACCESS_NAME, acl, len, 0);
	}
	if (!err)
		err = pf_setattr(pool, ino, PF_ATTR_MODE, &in, NULL);
	return err;
}

static int set_acl(struct pf_pool *pool, uint64_t ino, const char *name, const void *value, size_t len)
{
	size_t cap;
	void *acl = transport_scratch(&cap);
	if (len > ACL_MAX_BYTES)
		return -E2BIG;
	/* the value lies somewhere in the request: give it an alignment */
	memcpy(acl, value, len);
	if (!acl_valid(acl, len))
		return -EINVAL;
	if (strcmp(name, ACL_ACCESS_NAME) == 0)
		return set_access_acl(pool, ino, acl, len);
	return pf_setxattr(pool, ino, name, acl, len, 0);
}

void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags)
{
	int err = name_error(name);
	if (!err && is_acl(name))
		err = set_acl(pool_of(req), ino, name, value, size);
	else if (!err)
		err = pf_setxattr(pool_of(req), ino, name, value, size, flags);
	reply_code(req, err);
}

void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	int err = name_error(name);
	reply_code(req, err ? err : pf_removexattr(pool_of(req), ino, name));
}

/* -- reading ------------------------------------------------------------------------------------------------------------- */

/* @size 0: the caller asks for the length. */
static void reply_bytes(fuse_req_t req, const void *buf, int64_t len, size_t size)
{
	if (len < 0)
		reply_code(req, (int)len);
	else if (size == 0)
		fuse_reply_xattr(req, (size_t)len);
	else if ((size_t)len > size)
		reply_code(req, -ERANGE);
	else
		fuse_reply_buf(req, buf, (size_t)len);
}

void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	size_t cap;
	void *buf = transport_scratch(&cap);
	int err = name_error(name);
	if (err) {
		reply_code(req, err);
		return;
	}
	reply_bytes(req, buf, pf_getxattr(pool_of(req), ino, name, size ? buf : NULL, size < cap ? size : cap), size);
}

static int64_t drop_trusted(char *list, int64_t len)
{
	char *to = list;
	for (char *name = list; name < list + len;) {
		size_t n = strlen(name) + 1;
		if (!starts_with(name, "trusted.")) {
			memmove(to, name, n);
			to += n;
		}
		name += n;
	}
	return to - list;
}

void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	size_t cap;
	char *list = transport_scratch(&cap);
	/* whole, because what the caller may not see does not count */
	int64_t len = pf_listxattr(pool_of(req), ino, list, cap);
	if (len > 0 && !sees_trusted(req))
		len = drop_trusted(list, len);
	reply_bytes(req, list, len, size);
}
