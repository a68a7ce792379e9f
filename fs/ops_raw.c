/* SPDX-License-Identifier: MIT
 * Requests that the oldest libfuse we build with cannot decode: O_TMPFILE, statx(2) with the time of birth, syncfs(2). */
#include "ops.h"
#include "transport.h"

#include <stddef.h>

/* The kernel's protocol, minor 36 and later; not in every <linux/fuse.h>. */
struct raw_time {
	int64_t sec;
	uint32_t nsec;
	int32_t reserved;
};
struct raw_statx {
	uint32_t mask, blksize;
	uint64_t attributes;
	uint32_t nlink, uid, gid;
	uint16_t mode, spare0;
	uint64_t ino, size, blocks, attributes_mask;
	struct raw_time atime, btime, ctime, mtime;
	uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
	uint64_t spare2[14];
};
struct raw_statx_out {
	uint64_t attr_valid;
	uint32_t attr_valid_nsec, flags;
	uint64_t spare[2];
	struct raw_statx stat;
};
_Static_assert(sizeof(struct raw_statx_out) == 288, "ABI");

struct raw_create_out {
	struct fuse_entry_out entry;
	struct fuse_open_out open;
};

static void fill_attr(struct fuse_attr *out, const struct pf_attr *attr)
{
	struct stat st;
	attr_to_stat(attr, &st);
	out->ino = st.st_ino;
	out->size = (uint64_t)st.st_size;
	out->blocks = (uint64_t)st.st_blocks;
	out->atime = (uint64_t)st.st_atim.tv_sec;
	out->mtime = (uint64_t)st.st_mtim.tv_sec;
	out->ctime = (uint64_t)st.st_ctim.tv_sec;
	out->atimensec = (uint32_t)st.st_atim.tv_nsec;
	out->mtimensec = (uint32_t)st.st_mtim.tv_nsec;
	out->ctimensec = (uint32_t)st.st_ctim.tv_nsec;
	out->mode = st.st_mode;
	out->nlink = (uint32_t)st.st_nlink;
	out->uid = st.st_uid;
	out->gid = st.st_gid;
	out->rdev = (uint32_t)st.st_rdev;
	out->blksize = (uint32_t)st.st_blksize;
}

static int raw_tmpfile(struct fs *fs, const struct fuse_in_header *in)
{
	const struct fuse_create_in *arg = (const void *)(in + 1);
	struct raw_create_out out = { 0 };
	struct pf_attr attr;
	if (in->len < sizeof(*in) + sizeof(*arg))
		return -EIO;
	struct pf_cred cred = { .uid = in->uid, .gid = in->gid };
	int err = make_node(fs->pool, in->nodeid, NULL, (arg->mode & 07777) | S_IFREG, arg->umask, cred, 0, &attr);
	if (err)
		return err;
	out.entry.nodeid = attr.ino;
	out.entry.entry_valid = out.entry.attr_valid = (uint64_t)CACHE_SECONDS;
	fill_attr(&out.entry.attr, &attr);
	out.open.open_flags = FOPEN_KEEP_CACHE;
	if (transport_reply(in->unique, 0, &out, sizeof(out)) < 0)
		pf_forget(fs->pool, attr.ino, 1);
	return 0;
}

static struct raw_time raw_time(struct timespec ts)
{
	return (struct raw_time){ .sec = ts.tv_sec, .nsec = (uint32_t)ts.tv_nsec };
}

static int raw_statx(struct fs *fs, const struct fuse_in_header *in)
{
	struct pf_attr attr;
	int err = pf_getattr(fs->pool, in->nodeid, &attr);
	if (err)
		return err;
	struct raw_statx_out out = {
		.attr_valid = (uint64_t)CACHE_SECONDS,
		.stat = {
			.mask = STATX_BASIC_STATS | STATX_BTIME,
			.blksize = PF_BLOCK_SIZE,
			.nlink = attr.nlink,
			.uid = attr.uid,
			.gid = attr.gid,
			.mode = (uint16_t)attr.mode,
			.ino = attr.ino,
			.size = attr.size_bytes,
			.blocks = attr.blocks * (PF_BLOCK_SIZE / 512),
			.atime = raw_time(attr.atime),
			.btime = raw_time(attr.btime),
			.ctime = raw_time(attr.ctime),
			.mtime = raw_time(attr.mtime),
			.rdev_major = attr.rdev_major,
			.rdev_minor = attr.rdev_minor,
		},
	};
	transport_reply(in->unique, 0, &out, sizeof(out));
	return 0;
}

static int raw_syncfs(struct fs *fs, const struct fuse_in_header *in)
{
	int err = pf_pool_sync(fs->pool);
	if (!err)
		transport_reply(in->unique, 0, NULL, 0);
	return err;
}

bool ops_raw(void *arg, const struct fuse_in_header *in)
{
	struct fs *fs = arg;
	int err;
	switch (in->opcode) {
	case RAW_TMPFILE:
		err = raw_tmpfile(fs, in);
		break;
	case RAW_STATX:
		err = raw_statx(fs, in);
		break;
	case RAW_SYNCFS:
		err = raw_syncfs(fs, in);
		break;
	default:
		return false;
	}
	if (err)
		transport_reply(in->unique, pf_errno(err), NULL, 0);
	return true;
}
