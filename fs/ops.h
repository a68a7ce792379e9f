/* SPDX-License-Identifier: MIT
 *
 * Purpose: the translation of FUSE requests into calls of object/posix.h, and of their results into replies. One file per
 * kind of request; this header is what they share.
 *
 * Invariants
 *   I1  Every request gets exactly one reply. A reply that hands out a reference and does not arrive gives it back.
 *   I2  The kernel caches names and attributes without bound: the daemon is the only one who changes the pool, and it
 *       changes nothing but what the kernel asks for.
 *   I3  No handler allocates for data: it has the worker's scratch (transport.h).
 *   I4  Of regular files the kernel alone sets mtime and ctime when data changes: it has set them in its cache before it asks
 *       us, sends them with a SETATTR of its own time, perhaps before the change itself arrives, and never asks for ours. It sends
 *       nothing when its clock has not moved since the last time: a SETATTR that names no time (the set-id bits that a write takes
 *       away, a truncation to the present size) does not change one.
 *       (Linux, fs/fuse: kiocb_modified() in fuse_cache_write_iter(), file_modified() in fuse_file_fallocate() since 6.1,
 *       fuse_get_cache_mask(), fuse_flush_times().)
 *
 * Uses: transport, notices, object/posix (poolfs.h).
 */
#ifndef FS_OPS_H
#define FS_OPS_H

#include "fuse_api.h"
#include "notices.h"
#include "poolfs.h"

#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

/* For ever: the kernel counts jiffies in 64 bits and takes what is larger than it can count as its largest. */
#define CACHE_SECONDS 1e9

struct fs {
	struct pf_pool *pool;
	struct fuse_session *se;
	struct seeker *seeker;
	struct notices *notices;
	unsigned max_background;
	bool no_open, no_opendir; /* the kernel does without these requests once we refuse the first one */
	unsigned write_flags, change_flags; /* PF_WRITE_KEEP_TIMES or 0, of WRITE and of other changes of data (I4) */
	uint64_t start_time;      /* of this process, for POOLFS_IOC_INFO */
	pthread_mutex_t status_lock;
	char *status; /* the picture that POOLFS_IOC_STATUS hands out in pieces */
	uint64_t status_serial;
};

extern const struct fuse_lowlevel_ops ops_table;

/* Requests that libfuse cannot decode (ops_raw.c); @arg is the struct fs. */
bool ops_raw(void *arg, const struct fuse_in_header *in);

/* -- shared helpers (ops.c) -------------------------------------------------------------------------------------------- */
static inline struct pf_pool *pool_of(fuse_req_t req)
{
	return ((struct fs *)fuse_req_userdata(req))->pool;
}

/* @err: 0 or a negative code of the engine. */
void reply_code(fuse_req_t req, int err);
void attr_to_stat(const struct pf_attr *attr, struct stat *st);
void attr_to_entry(const struct pf_attr *attr, struct fuse_entry_param *e);
/* Replies with the entry or the error; takes over the reference that @attr carries. */
void reply_entry(fuse_req_t req, int err, const struct pf_attr *attr);

/* Makes an inode with all that POSIX says about modes: umask, or instead of it the default ACL of @parent (ops_name.c).
 * @name NULL: an unnamed file. */
int make_node(struct pf_pool *pool, uint64_t parent, const char *name, mode_t mode, mode_t umask, struct pf_cred cred,
	      dev_t rdev, struct pf_attr *attr);

/* -- handlers ------------------------------------------------------------------------------------------------------------ */
void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup);
void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi);
void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
	       unsigned flags);
void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name);
void op_readlink(fuse_req_t req, fuse_ino_t ino);

void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi);
void op_statfs(fuse_req_t req, fuse_ino_t ino);

void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags);
void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);

void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off, struct fuse_file_info *fi);
void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len, struct fuse_file_info *fi);
/* The thread behind op_lseek(). Started before the workers. Stopped before them, because what it waits for they do; requests
 * that come later fail. Freed after them. Without one, the last two do nothing. */
int seeker_start(struct fs *fs);
void seeker_stop(struct fs *fs);
void seeker_free(struct fs *fs);
void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi);
void op_copy_file_range(fuse_req_t req, fuse_ino_t from, off_t from_off, struct fuse_file_info *from_fi, fuse_ino_t to,
			off_t to_off, struct fuse_file_info *to_fi, size_t len, int flags);

void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);

void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned cmd, void *arg, struct fuse_file_info *fi, unsigned flags,
	      const void *in_buf, size_t in_size, size_t out_size);

#endif
