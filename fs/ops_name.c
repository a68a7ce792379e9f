/* SPDX-License-Identifier: MIT
 * Requests about names: looking up, making, linking, renaming, removing. */
#include "acl.h"
#include "ops.h"
#include "transport.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

static struct pf_cred cred_of(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	return (struct pf_cred){ .uid = ctx->uid, .gid = ctx->gid };
}

/* -- looking up ---------------------------------------------------------------------------------------------------------- */

static int lookup(struct pf_pool *pool, uint64_t parent, const char *name, struct pf_attr *attr)
{
	/* "." comes with file handles (NFS) and names the inode itself, directory or not */
	if (strcmp(name, ".") == 0)
		return pf_ref(pool, parent, attr);
	return pf_lookup(pool, parent, name, strlen(name), attr);
}

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct pf_attr attr;
	int err = lookup(pool_of(req), parent, name, &attr);
	if (err == -ENOENT) {
		/* that there is no such name may be remembered for ever too */
		struct fuse_entry_param none = { .entry_timeout = CACHE_SECONDS };
		fuse_reply_entry(req, &none);
		return;
	}
	reply_entry(req, err, &attr);
}

void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	pf_forget(pool_of(req), ino, nlookup);
	fuse_reply_none(req);
}

void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		pf_forget(pool_of(req), forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

/* -- making -------------------------------------------------------------------------------------------------------------- */

/* Length of the default ACL of @dir in @buf, 0 when there is none, or an error. */
static int64_t default_acl(struct pf_pool *pool, uint64_t dir, void *buf)
{
	struct pf_attr attr;
	int err = pf_getattr(pool, dir, &attr);
	if (err || !attr.has_xattr)
		return err;
	int64_t len = pf_getxattr(pool, dir, ACL_DEFAULT_NAME, buf, ACL_MAX_BYTES);
	if (len == -ENODATA)
		return 0;
	if (len >= 0 && !acl_valid(buf, (size_t)len))
		return -EIO;
	return len;
}

static int make(struct pf_pool *pool, uint64_t parent, const char *name, mode_t mode, struct pf_cred cred, dev_t rdev,
		struct pf_attr *attr)
{
	if (!name)
		return pf_create_unnamed(pool, parent, mode, cred, attr);
	return pf_create(pool, parent, name, strlen(name), mode, cred, major(rdev), minor(rdev), attr);
}

static void unmake(struct pf_pool *pool, uint64_t parent, const char *name, const struct pf_attr *attr)
{
	/* what cannot be removed stays, without its ACL and with permissions that give nobody too much */
	if (name && S_ISDIR(attr->mode))
		pf_rmdir(pool, parent, name, strlen(name));
	else if (name)
		pf_unlink(pool, parent, name, strlen(name));
	pf_forget(pool, attr->ino, 1);
}

int make_node(struct pf_pool *pool, uint64_t parent, const char *name, mode_t mode, mode_t umask, struct pf_cred cred,
	      dev_t rdev, struct pf_attr *attr)
{
	size_t cap;
	char *inherited = transport_scratch(&cap), *access = inherited + ACL_MAX_BYTES;
	int64_t found = default_acl(pool, parent, inherited);
	if (found < 0)
		return (int)found;
	if (found == 0)
		return make(pool, parent, name, mode & ~umask, cred, rdev, attr);

	size_t len = (size_t)found;
	memcpy(access, inherited, len);
	mode_t perm = acl_inherit(access, len, mode & 0777);
	/* Several steps, so a crash may fall in between: until the list is there, the mode gives the group no more than the list
	 * will, although the group bits will then stand for the mask. */
	mode_t first = (perm & ~(mode_t)070) | acl_group_perm(access, len) << 3;
	int err = make(pool, parent, name, (mode & ~(mode_t)0777) | first, cred, rdev, attr);
	if (err)
		return err;
	if (S_ISDIR(mode))
		err = pf_setxattr(pool, attr->ino, ACL_DEFAULT_NAME, inherited, len, 0);
	if (!err && !acl_is_minimal(len))
		err = pf_setxattr(pool, attr->ino, ACL_ACCESS_NAME, access, len, 0);
	if (!err) {
		struct pf_attr in = { .mode = (attr->mode & ~(mode_t)0777) | perm };
		err = pf_setattr(pool, attr->ino, PF_ATTR_MODE, &in, attr);
	}
	if (err)
		unmake(pool, parent, name, attr);
	return err;
}

void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	struct pf_attr attr;
	int err = make_node(pool_of(req), parent, name, mode, fuse_req_ctx(req)->umask, cred_of(req), rdev, &attr);
	reply_entry(req, err, &attr);
}

void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	op_mknod(req, parent, name, (mode & 07777) | S_IFDIR, 0);
}

void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	struct pf_pool *pool = pool_of(req);
	struct pf_attr attr;
	int err = make_node(pool, parent, name, (mode & 07777) | S_IFREG, fuse_req_ctx(req)->umask, cred_of(req), 0, &attr);
	if (err == -EEXIST && !(fi->flags & O_EXCL))
		err = lookup(pool, parent, name, &attr);
	if (err) {
		reply_code(req, err);
		return;
	}
	struct fuse_entry_param e;
	attr_to_entry(&attr, &e);
	fi->keep_cache = 1;
	if (fuse_reply_create(req, &e, fi) < 0)
		pf_forget(pool, attr.ino, 1);
}

void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct pf_attr attr;
	int err = pf_symlink(pool_of(req), parent, name, strlen(name), target, cred_of(req), &attr);
	reply_entry(req, err, &attr);
}

void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name)
{
	struct pf_attr attr;
	int err = pf_link(pool_of(req), ino, new_parent, new_name, strlen(new_name), &attr);
	reply_entry(req, err, &attr);
}

void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	char target[PF_MAX_SYMLINK_BYTES + 1];
	int err = pf_readlink(pool_of(req), ino, target, sizeof(target));
	if (err < 0)
		reply_code(req, err);
	else
		fuse_reply_readlink(req, target);
}

/* -- removing and renaming ----------------------------------------------------------------------------------------------- */

void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	reply_code(req, pf_unlink(pool_of(req), parent, name, strlen(name)));
}

void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	reply_code(req, pf_rmdir(pool_of(req), parent, name, strlen(name)));
}

void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
	       unsigned flags)
{
	reply_code(req, pf_rename(pool_of(req), parent, name, strlen(name), new_parent, new_name, strlen(new_name), flags, cred_of(req)));
}
