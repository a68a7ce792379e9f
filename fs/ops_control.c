/* SPDX-License-Identifier: MIT
 * The requests of pool/control.h. */
#include "ops.h"

#include <stdlib.h>
#include <unistd.h>

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
	if (err)
		reply_code(req, err);
	else
		fuse_reply_ioctl(req, 0, NULL, 0);
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
	default:
		reply_code(req, -ENOTTY);
	}
}
