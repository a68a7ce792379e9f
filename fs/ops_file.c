/* SPDX-License-Identifier: MIT
 * Requests about the data of files. */
#include "ops.h"
#include "transport.h"

#include <stdlib.h>
#include <time.h>

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

/* -- set-id bits --------------------------------------------------------------------------------------------------------- */

static bool has_set_id(struct pf_pool *pool, uint64_t ino)
{
	struct pf_attr attr;
	return pf_getattr(pool, ino, &attr) == 0 && S_ISREG(attr.mode) && attr.mode & (S_ISUID | S_ISGID);
}

/* The kernel goes on with the mode that it knows, for a write says nothing about modes; and with that mode it would run the
 * changed program as its owner. It has to ask again. Nothing waits in this, since no page is concerned. */
static void forget_mode(fuse_req_t req, uint64_t ino)
{
	const struct fs *fs = fuse_req_userdata(req);
	fuse_lowlevel_notify_inval_inode(fs->se, ino, -1, 0);
}

/* For requests that change bytes and do not say whether the caller may keep set-id bits: only root may. Capabilities are
 * dropped by the engine with every change. */
static int clear_set_id(fuse_req_t req, uint64_t ino)
{
	const struct pf_attr none = { 0 };
	if (fuse_req_ctx(req)->uid == 0 || !has_set_id(pool_of(req), ino))
		return 0;
	/* the change that follows sets the times */
	int err = pf_setattr(pool_of(req), ino, PF_ATTR_KILL_SUIDGID | PF_ATTR_KEEP_TIMES, &none, NULL);
	if (!err)
		forget_mode(req, ino);
	return err;
}

/* -- writing ------------------------------------------------------------------------------------------------------------- */

/* Everything, or as much as went well, or the error of the first byte. @from_cache: everything or the error; the kernel looks
 * at errors only, and a short count would lose the rest. */
static int64_t write_all(struct pf_pool *pool, uint64_t ino, uint64_t off, const char *buf, size_t size, unsigned flags,
			 bool from_cache)
{
	size_t done = 0;
	while (done < size) {
		int64_t n = pf_write(pool, ino, off + done, buf + done, size - done, flags);
		if (n < 0 && (done == 0 || from_cache))
			return n;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return (int64_t)done;
}

/* The flush of a file that is synced after each write need not wait until the kernel has asked for it too. */
#define SYNC_AHEAD_BYTES ((size_t)64 << 10)

struct answer {
	fuse_req_t req;
	size_t nr_bytes;
};

static void answer_write(void *arg)
{
	struct answer *a = arg;
	fuse_reply_write(a->req, a->nr_bytes);
	transport_answered();
}

static void sync_ahead(struct pf_pool *pool, uint64_t ino, struct answer *answer)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME_COARSE, &now); /* by which the kernel sets times */
	pf_fsync_ahead(pool, ino, &now, &(struct pf_meanwhile){ .run = answer_write, .arg = answer });
}

void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off, struct fuse_file_info *fi)
{
	const struct fuse_in_header *in = transport_request();
	const struct fuse_write_in *arg = (const void *)(in + 1);
	struct fs *fs = fuse_req_userdata(req);
	struct pf_pool *pool = fs->pool;
	unsigned flags = fs->write_flags;
	bool from_cache = arg->write_flags & FUSE_WRITE_CACHE;
	(void)fi;
	if (from_cache)
		flags |= PF_WRITE_BACK;
	bool kill = arg->write_flags & FUSE_WRITE_KILL_SUIDGID && has_set_id(pool, ino);
	if (kill)
		flags |= PF_WRITE_KILL_SUIDGID;
	int64_t n = write_all(pool, ino, (uint64_t)off, buf, size, flags, from_cache);
	if (n >= 0 && kill)
		forget_mode(req, ino);
	if (from_cache && n < 0)
		notices_failure(fs, ino, -pf_errno((int)n));
	else if (from_cache)
		notices_blocks(fs, ino);
	if (n < 0) {
		reply_code(req, (int)n);
		return;
	}
	struct answer answer = { .req = req, .nr_bytes = (size_t)n };
	if (size <= SYNC_AHEAD_BYTES)
		sync_ahead(pool, ino, &answer);
	else
		answer_write(&answer);
}

/* An fsync under way: no worker waits for it. */
struct sync {
	fuse_req_t req;
	fuse_ino_t ino;
	int fd;
};

/* In whatever worker made the commit that has it. */
static void synced(void *arg, int err)
{
	struct sync *s = arg;
	int own_fd = transport_reply_fd();
	transport_set_reply_fd(s->fd);
	notices_sync(fuse_req_userdata(s->req), s->ino);
	reply_code(s->req, err);
	transport_set_reply_fd(own_fd);
	free(s);
}

/* Of files and directories; fdatasync too, for what would be left out is the cheaper part. */
void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct sync *s = malloc(sizeof(*s));
	(void)datasync;
	(void)fi;
	if (!s) {
		reply_code(req, -ENOMEM);
		return;
	}
	*s = (struct sync){ .req = req, .ino = ino, .fd = transport_reply_fd() };
	pf_fsync_start(pool_of(req), ino, synced, s);
}

void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len, struct fuse_file_info *fi)
{
	const struct fs *fs = fuse_req_userdata(req);
	(void)fi;
	int err = off < 0 || len <= 0 ? -EINVAL : clear_set_id(req, ino);
	if (!err)
		err = pf_fallocate(fs->pool, ino, mode, (uint64_t)off, (uint64_t)len, fs->change_flags);
	reply_code(req, err);
}

/* A bite at a time: the caller goes on by itself, and a worker is not held for gigabytes. */
#define COPY_BITE ((size_t)16 << 20)

void op_copy_file_range(fuse_req_t req, fuse_ino_t from, off_t from_off, struct fuse_file_info *from_fi, fuse_ino_t to,
			off_t to_off, struct fuse_file_info *to_fi, size_t len, int flags)
{
	const struct fs *fs = fuse_req_userdata(req);
	(void)from_fi;
	(void)to_fi;
	if (flags || from_off < 0 || to_off < 0) {
		reply_code(req, -EINVAL);
		return;
	}
	int err = clear_set_id(req, to);
	if (err) {
		reply_code(req, err);
		return;
	}
	int64_t n = pf_copy_range(fs->pool, from, (uint64_t)from_off, to, (uint64_t)to_off,
				  len < COPY_BITE ? len : COPY_BITE, fs->change_flags);
	if (n < 0)
		reply_code(req, (int)n);
	else
		fuse_reply_write(req, (size_t)n);
}
