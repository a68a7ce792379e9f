/* SPDX-License-Identifier: MIT
 * Requests about the data of files. */
#include "ops.h"
#include "transport.h"

void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = fuse_req_userdata(req);
	(void)ino;
	if (fs->no_open) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	fi->keep_cache = 1;
	fuse_reply_open(req, fi);
}

void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	size_t cap;
	char *buf = transport_scratch(&cap);
	(void)fi;
	if (off < 0 || pf_read_buf_bytes((uint64_t)off, size) > cap) {
		reply_code(req, -EINVAL);
		return;
	}
	int64_t n = pf_read(pool_of(req), ino, (uint64_t)off, buf, size);
	if (n < 0)
		reply_code(req, (int)n);
	else
		fuse_reply_buf(req, buf + off % PF_BLOCK_SIZE, (size_t)n);
}

void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off, struct fuse_file_info *fi)
{
	const struct fuse_in_header *in = transport_request();
	const struct fuse_write_in *arg = (const void *)(in + 1);
	unsigned flags = 0;
	(void)fi;
	if (arg->write_flags & FUSE_WRITE_CACHE)
		flags |= PF_WRITE_KEEP_TIMES;
	if (arg->write_flags & FUSE_WRITE_KILL_SUIDGID)
		flags |= PF_WRITE_KILL_SUIDGID;
	int64_t n = pf_write(pool_of(req), ino, (uint64_t)off, buf, size, flags);
	if (n < 0)
		reply_code(req, (int)n);
	else
		fuse_reply_write(req, (size_t)n);
}

/* Of files and directories; fdatasync too, for what would be left out is the cheaper part. */
void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)datasync;
	(void)fi;
	reply_code(req, pf_fsync(pool_of(req), ino));
}

void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len, struct fuse_file_info *fi)
{
	(void)fi;
	if (off < 0 || len <= 0)
		reply_code(req, -EINVAL);
	else
		reply_code(req, pf_fallocate(pool_of(req), ino, mode, (uint64_t)off, (uint64_t)len));
}

/* A bite at a time: the caller goes on by itself, and a worker is not held for gigabytes. */
#define COPY_BITE ((size_t)16 << 20)

void op_copy_file_range(fuse_req_t req, fuse_ino_t from, off_t from_off, struct fuse_file_info *from_fi, fuse_ino_t to,
			off_t to_off, struct fuse_file_info *to_fi, size_t len, int flags)
{
	(void)from_fi;
	(void)to_fi;
	if (flags || from_off < 0 || to_off < 0) {
		reply_code(req, -EINVAL);
		return;
	}
	int64_t n = pf_copy_range(pool_of(req), from, (uint64_t)from_off, to, (uint64_t)to_off,
				  len < COPY_BITE ? len : COPY_BITE);
	if (n < 0)
		reply_code(req, (int)n);
	else
		fuse_reply_write(req, (size_t)n);
}
