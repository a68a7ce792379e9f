/* SPDX-License-Identifier: MIT
 * Requests about attributes of inodes and of the whole filesystem. */
#include "acl.h"
#include "ops.h"
#include "transport.h"

#include <sys/statvfs.h>

void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct pf_attr attr;
	struct stat st;
	/* with a handle, the kernel asks on behalf of a write(2) (notices.h) */
	int err = fi ? notices_take_failure(fuse_req_userdata(req), ino) : 0;
	if (!err)
		err = pf_getattr(pool_of(req), ino, &attr);
	if (err) {
		reply_code(req, err);
		return;
	}
	attr_to_stat(&attr, &st);
	fuse_reply_attr(req, &st, CACHE_SECONDS);
}

static unsigned engine_mask(int to_set)
{
	unsigned mask = 0;
	if (to_set & FUSE_SET_ATTR_MODE)
		mask |= PF_ATTR_MODE;
	if (to_set & FUSE_SET_ATTR_UID)
		mask |= PF_ATTR_UID;
	if (to_set & FUSE_SET_ATTR_GID)
		mask |= PF_ATTR_GID;
	if (to_set & FUSE_SET_ATTR_SIZE)
		mask |= PF_ATTR_SIZE;
	/* the kernel says both "set" and "to now" */
	if (to_set & FUSE_SET_ATTR_ATIME_NOW)
		mask |= PF_ATTR_ATIME_NOW;
	else if (to_set & FUSE_SET_ATTR_ATIME)
		mask |= PF_ATTR_ATIME;
	if (to_set & FUSE_SET_ATTR_MTIME_NOW)
		mask |= PF_ATTR_MTIME_NOW;
	else if (to_set & FUSE_SET_ATTR_MTIME)
		mask |= PF_ATTR_MTIME;
	if (to_set & FUSE_SET_ATTR_CTIME)
		mask |= PF_ATTR_CTIME;
	return mask;
}

/* KILLPRIV_V2: the kernel leaves it to us to clear set-id bits. libfuse hides its flag. */
static bool kill_suidgid(void)
{
	const struct fuse_in_header *in = transport_request();
	const struct fuse_setattr_in *arg = (const void *)(in + 1);
	return arg->valid & FATTR_KILL_SUIDGID;
}

/* chmod(2) changes the access list too, which the kernel leaves to us. */
static int chmod_acl(struct pf_pool *pool, uint64_t ino, mode_t mode)
{
	size_t cap;
	void *acl = transport_scratch(&cap);
	struct pf_attr attr;
	int err = pf_getattr(pool, ino, &attr);
	if (err || !attr.has_xattr)
		return err;
	int64_t len = pf_getxattr(pool, ino, ACL_ACCESS_NAME, acl, ACL_MAX_BYTES);
	if (len == -ENODATA)
		return 0;
	if (len < 0)
		return (int)len;
	if (!acl_valid(acl, (size_t)len))
		return -EIO;
	acl_chmod(acl, (size_t)len, mode);
	return pf_setxattr(pool, ino, ACL_ACCESS_NAME, acl, (size_t)len, 0);
}

/* chown(2) that names neither owner clears set-id bits all the same, and that is what the kernel sends only the ctime for: of a file whose
 * times it keeps it sends mtime with it when it is about those. */
static bool is_chown_of_nothing(const struct fs *fs, int to_set)
{
	return fs->write_flags & PF_WRITE_KEEP_TIMES && to_set == FUSE_SET_ATTR_CTIME;
}

void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set, struct fuse_file_info *fi)
{
	const struct fs *fs = fuse_req_userdata(req);
	struct pf_pool *pool = fs->pool;
	unsigned mask = engine_mask(to_set);
	struct pf_attr out;
	(void)fi;
	if (fs->write_flags & PF_WRITE_KEEP_TIMES)
		mask |= PF_ATTR_KEEP_TIMES;
	struct pf_attr in = {
		.mode = st->st_mode & 07777,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.size_bytes = (uint64_t)st->st_size,
		.atime = st->st_atim,
		.mtime = st->st_mtim,
		.ctime = st->st_ctim,
	};
	if (kill_suidgid() || is_chown_of_nothing(fs, to_set))
		mask |= PF_ATTR_KILL_SUIDGID;
	/* the list first: the kernel decides by it, and a failure has then changed nothing */
	int err = mask & PF_ATTR_MODE ? chmod_acl(pool, ino, in.mode) : 0;
	if (!err)
		err = pf_setattr(pool, ino, mask, &in, &out);
	if (err) {
		reply_code(req, err);
		return;
	}
	struct stat now;
	attr_to_stat(&out, &now);
	fuse_reply_attr(req, &now, CACHE_SECONDS);
}

void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct pf_statfs s;
	(void)ino;
	pf_pool_statfs(pool_of(req), &s);
	/* inodes are made as needed: what limits them is space */
	struct statvfs out = {
		.f_bsize = PF_BLOCK_SIZE,
		.f_frsize = PF_BLOCK_SIZE,
		.f_blocks = s.total_blocks,
		.f_bfree = s.free_blocks,
		.f_bavail = s.avail_blocks,
		.f_files = s.nr_inodes + s.avail_blocks,
		.f_ffree = s.avail_blocks,
		.f_favail = s.avail_blocks,
		.f_namemax = PF_MAX_NAME_BYTES,
	};
	fuse_reply_statfs(req, &out);
}
