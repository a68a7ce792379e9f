/* SPDX-License-Identifier: MIT
 * The requests of pool/control.h, and FITRIM, which fstrim(8) sends. */
#include "clock.h"
#include "ops.h"

#include <linux/fs.h>
#include <stdlib.h>
#include <unistd.h>

#define TRIM_NS 100000000 /* a thread that serves requests is not kept longer by one */

/* Fills @io with the piece that it asks for, from a new picture when it asks for the beginning of none. */
static int status_piece(struct fs *fs, struct poolfs_ioc_status *io)
{
	int err = 0;
	pthread_mutex_lock(&fs->status_lock);
	if (io->serial == 0 && io->offset == 0) {
		free(fs->status);
		fs->status = pf_pool_status_json(fs->pool);
		fs->status_serial++;
		io->serial = fs->status_serial;
	}
	if (io->serial != fs->status_serial) {
		err = -EAGAIN;
	} else if (!fs->status) {
		err = -ENOMEM;
	} else {
		size_t total = strlen(fs->status);
		size_t left = io->offset < total ? total - io->offset : 0;
		io->total = (uint32_t)total;
		io->len = (uint32_t)(left < sizeof(io->text) ? left : sizeof(io->text));
		memset(io->text, 0, sizeof(io->text));
		memcpy(io->text, fs->status + (left ? io->offset : total), io->len);
	}
	pthread_mutex_unlock(&fs->status_lock);
	return err;
}

static void ioctl_status(fuse_req_t req, const void *in_buf, size_t in_size, size_t out_size)
{
	struct poolfs_ioc_status io;
	if (in_size != sizeof(io) || out_size != sizeof(io)) {
		reply_code(req, -EINVAL);
		return;
	}
	memcpy(&io, in_buf, sizeof(io));
	io.reserved = 0;
	int err = status_piece(fuse_req_userdata(req), &io);
	if (err)
		reply_code(req, err);
	else
		fuse_reply_ioctl(req, 0, &io, sizeof(io));
}

static void ioctl_info(fuse_req_t req, size_t out_size)
{
	const struct fs *fs = fuse_req_userdata(req);
	struct poolfs_ioc_info info = {
		.start_time = fs->start_time,
		.pid = (uint32_t)getpid(),
		.flags = pf_pool_read_only(fs->pool) ? POOLFS_INFO_READ_ONLY : 0,
	};
	if (out_size != sizeof(info))
		reply_code(req, -EINVAL);
	else
		fuse_reply_ioctl(req, 0, &info, sizeof(info));
}

static void ioctl_sync(fuse_req_t req)
{
	int err = pf_pool_sync(pool_of(req));
	if (err == -PF_EDATA_LOST)
		fuse_reply_err(req, ENOTRECOVERABLE);
	else if (err)
		reply_code(req, err);
	else
		fuse_reply_ioctl(req, 0, NULL, 0);
}

/* -- trim ---------------------------------------------------------------------------------------------------------------- */
static bool may_trim(fuse_req_t req)
{
	uid_t uid = fuse_req_ctx(req)->uid;
	return uid == 0 || uid == geteuid();
}

/* 1: the time is up; 0: that was all; or a negative code. */
static int trim_until(fuse_req_t req, struct pf_trim *trim, int64_t end_ns)
{
	int more;
	while ((more = pf_pool_trim_step(pool_of(req), trim)) > 0) {
		if (fuse_req_interrupted(req))
			return -EINTR;
		if (clock_now_ns() >= end_ns)
			break;
	}
	return more;
}

static bool nobody_can(fuse_req_t req, const struct pf_trim *trim)
{
	unsigned nr = pf_pool_super(pool_of(req))->nr_members;
	return (unsigned)__builtin_popcount(trim->unable) == nr;
}

static void ioctl_trim(fuse_req_t req, const void *in_buf, size_t in_size, size_t out_size)
{
	struct poolfs_ioc_trim io;
	struct pf_pool *pool = pool_of(req);
	if (in_size != sizeof(io) || out_size != sizeof(io)) {
		reply_code(req, -EINVAL);
		return;
	}
	memcpy(&io, in_buf, sizeof(io));
	struct pf_trim trim = { .min_blocks = io.min_bytes / PF_BLOCK_SIZE, .unused = io.flags & POOLFS_TRIM_UNUSED };
	int more = !may_trim(req) ? -EPERM : io.place ? 0 : pf_pool_trim_begin(pool);
	if (!more) {
		pf_pool_trim_range(pool, io.place, UINT64_MAX, &trim);
		more = trim_until(req, &trim, clock_now_ns() + TRIM_NS);
	}
	if (!more && nobody_can(req, &trim))
		more = -EOPNOTSUPP;
	if (more < 0) {
		reply_code(req, more);
		return;
	}
	io.place = pf_pool_trim_place(pool, &trim, &io.total_bytes);
	if (!more)
		io.place = io.total_bytes;
	io.trimmed_bytes = trim.trimmed_blocks * PF_BLOCK_SIZE;
	io.unable = trim.unable;
	io.failed = trim.failed;
	io.reserved = 0;
	fuse_reply_ioctl(req, 0, &io, sizeof(io));
}

static void ioctl_fitrim(fuse_req_t req, const void *in_buf, size_t in_size, size_t out_size)
{
	struct fstrim_range range;
	struct pf_pool *pool = pool_of(req);
	if (in_size != sizeof(range) || out_size != sizeof(range)) {
		reply_code(req, -EINVAL);
		return;
	}
	memcpy(&range, in_buf, sizeof(range));
	if (range.len < PF_BLOCK_SIZE) {
		reply_code(req, -EINVAL);
		return;
	}
	struct pf_trim trim = { .min_blocks = range.minlen / PF_BLOCK_SIZE };
	int err = may_trim(req) ? pf_pool_trim_begin(pool) : -EPERM;
	if (!err) {
		pf_pool_trim_range(pool, range.start, range.len, &trim);
		err = trim_until(req, &trim, INT64_MAX);
	}
	if (!err && nobody_can(req, &trim))
		err = -EOPNOTSUPP;
	if (!err && trim.failed)
		err = -EIO;
	range.len = trim.trimmed_blocks * PF_BLOCK_SIZE;
	if (err)
		reply_code(req, err);
	else
		fuse_reply_ioctl(req, 0, &range, sizeof(range));
}

void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned cmd, void *arg, struct fuse_file_info *fi, unsigned flags,
	      const void *in_buf, size_t in_size, size_t out_size)
{
	(void)ino;
	(void)arg;
	(void)fi;
	(void)flags;
	switch (cmd) {
	case POOLFS_IOC_SYNC:
		ioctl_sync(req);
		break;
	case POOLFS_IOC_STATUS:
		ioctl_status(req, in_buf, in_size, out_size);
		break;
	case POOLFS_IOC_INFO:
		ioctl_info(req, out_size);
		break;
	case POOLFS_IOC_TRIM:
		ioctl_trim(req, in_buf, in_size, out_size);
		break;
	case FITRIM:
		ioctl_fitrim(req, in_buf, in_size, out_size);
		break;
	default:
		reply_code(req, -ENOTTY);
	}
}
