/* SPDX-License-Identifier: MIT */
#include "ops.h"

#include "transport.h"

#include <sys/sysmacros.h>

void reply_code(fuse_req_t req, int err)
{
	fuse_reply_err(req, err ? pf_errno(err) : 0);
}

void attr_to_stat(const struct pf_attr *attr, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_ino = attr->ino;
	st->st_mode = attr->mode;
	st->st_nlink = attr->nlink;
	st->st_uid = attr->uid;
	st->st_gid = attr->gid;
	st->st_rdev = makedev(attr->rdev_major, attr->rdev_minor);
	st->st_size = (off_t)attr->size_bytes;
	st->st_blksize = PF_BLOCK_SIZE;
	st->st_blocks = (blkcnt_t)(attr->blocks * (PF_BLOCK_SIZE / 512));
	st->st_atim = attr->atime;
	st->st_mtim = attr->mtime;
	st->st_ctim = attr->ctime;
}

void attr_to_entry(const struct pf_attr *attr, struct fuse_entry_param *e)
{
	memset(e, 0, sizeof(*e));
	e->ino = attr->ino;
	attr_to_stat(attr, &e->attr);
	e->attr_timeout = CACHE_SECONDS;
	e->entry_timeout = CACHE_SECONDS;
}

void reply_entry(fuse_req_t req, int err, const struct pf_attr *attr)
{
	struct fuse_entry_param e;
	struct pf_pool *pool = pool_of(req);
	if (err) {
		reply_code(req, err);
		return;
	}
	attr_to_entry(attr, &e);
	if (fuse_reply_entry(req, &e) < 0)
		pf_forget(pool, attr->ino, 1);
}

/* From 3.17 on flags have 64 bits and libfuse refuses a mixture of the old way and the new. */
static void want(struct fuse_conn_info *conn, uint64_t flag)
{
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
	fuse_set_feature_flag(conn, flag);
#else
	conn->want |= conn->capable & (unsigned)flag;
#endif
}

static void do_not_want(struct fuse_conn_info *conn, uint64_t flag)
{
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
	fuse_unset_feature_flag(conn, flag);
#else
	conn->want &= ~(unsigned)flag;
#endif
}

/* The protocol of Linux 6.1: since then the kernel notes the time of every change of data itself (ops.h I4). */
#define FALLOCATE_SETS_TIMES 37

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	struct fs *fs = userdata;
	fs->no_open = conn->capable & FUSE_CAP_NO_OPEN_SUPPORT;
	fs->no_opendir = conn->capable & FUSE_CAP_NO_OPENDIR_SUPPORT;
	if (conn->max_write > TRANSPORT_MAX_PAYLOAD)
		conn->max_write = TRANSPORT_MAX_PAYLOAD;
	if (conn->capable & FUSE_CAP_WRITEBACK_CACHE) {
		fs->write_flags = PF_WRITE_KEEP_TIMES;
		if (conn->proto_minor >= FALLOCATE_SETS_TIMES)
			fs->change_flags = PF_WRITE_KEEP_TIMES;
	}
	conn->max_background = fs->max_background;
	conn->congestion_threshold = fs->max_background * 3 / 4;

	want(conn, FUSE_CAP_ASYNC_READ);
	want(conn, FUSE_CAP_ASYNC_DIO);
	want(conn, FUSE_CAP_WRITEBACK_CACHE);
	want(conn, FUSE_CAP_READDIRPLUS);
	want(conn, FUSE_CAP_READDIRPLUS_AUTO);
	want(conn, FUSE_CAP_PARALLEL_DIROPS);
	want(conn, FUSE_CAP_EXPORT_SUPPORT);
	want(conn, FUSE_CAP_CACHE_SYMLINKS);
	want(conn, FUSE_CAP_IOCTL_DIR);
	/* ACLs are stored and inherited here and enforced by the kernel; inheriting needs the mode before the umask */
	want(conn, FUSE_CAP_POSIX_ACL);
	want(conn, FUSE_CAP_DONT_MASK);
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 15)
	want(conn, FUSE_CAP_SETXATTR_EXT);
#endif
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
	want(conn, FUSE_CAP_HANDLE_KILLPRIV_V2);
	want(conn, FUSE_CAP_DIRECT_IO_ALLOW_MMAP);
#endif
#ifdef FUSE_CAP_OVER_IO_URING
	do_not_want(conn, FUSE_CAP_OVER_IO_URING); /* its threads are not our workers */
#endif
	/* a truncating open is a setattr: there is no open request. Nobody else changes files, so nothing is to be checked at open.
	 * Splicing is no gain for bytes that are checksummed here. KILLPRIV_V2 replaces its first version. */
	do_not_want(conn, FUSE_CAP_ATOMIC_O_TRUNC);
	do_not_want(conn, FUSE_CAP_AUTO_INVAL_DATA);
	do_not_want(conn, FUSE_CAP_SPLICE_READ);
	do_not_want(conn, FUSE_CAP_SPLICE_WRITE);
	do_not_want(conn, FUSE_CAP_SPLICE_MOVE);
	do_not_want(conn, FUSE_CAP_HANDLE_KILLPRIV);
}

/* flush and release are missing on purpose: ENOSYS to the first one stops the kernel from asking again. It still writes the
 * pages back at close(2) and reports their error there. */
const struct fuse_lowlevel_ops ops_table = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.readlink = op_readlink,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.symlink = op_symlink,
	.rename = op_rename,
	.link = op_link,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.fsync = op_fsync,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.fsyncdir = op_fsync,
	.statfs = op_statfs,
	.setxattr = op_setxattr,
	.getxattr = op_getxattr,
	.listxattr = op_listxattr,
	.removexattr = op_removexattr,
	.create = op_create,
	.ioctl = op_ioctl,
	.fallocate = op_fallocate,
	.lseek = op_lseek,
	.copy_file_range = op_copy_file_range,
};
