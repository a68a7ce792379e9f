/* SPDX-License-Identifier: MIT
 *
 * Purpose: POSIX operations on a pool: names, inodes, files, attributes. What fs/ translates requests into, and what tests,
 * replay and the explorer call in-process.
 *
 * Invariants
 *   I1  Permission checks are the caller's (the kernel's, by default_permissions); everything else POSIX demands is done here.
 *   I2  All functions return 0 (or a count) or a negative code (base/error.h); a failed one has changed nothing, except that what
 *       changes a file may have dropped its capability before (object/xattr.h I1; ctime tells), and pf_fallocate() may have given
 *       holes blocks.
 *   I3  Names are @len bytes, not terminated. More than PF_MAX_NAME_BYTES: -ENAMETOOLONG, in every function. Empty names,
 *       "." and "..": -EINVAL in what creates or removes; pf_lookup() knows "." and "..".
 *   I4  An inode number that a function hands out through @attr of lookup and the creating functions carries one reference;
 *       pf_forget() gives references back. An unlinked inode lives until its last reference is gone.
 *   I5  Any number of threads. Each operation is atomic towards the others and towards checkpoints.
 *   I6  Every modifying function returns -EROFS on a read-only pool.
 *
 * Uses: base, ondisk, member, space, tree, block.
 */
#ifndef PF_POSIX_H
#define PF_POSIX_H

#include "base/error.h"
#include "base/meanwhile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct pf_pool;

#define PF_ROOT_INO 1

struct pf_attr {
	uint64_t ino;
	uint32_t mode; /* S_IFMT and permission bits */
	uint32_t nlink, uid, gid;
	uint32_t rdev_major, rdev_minor;
	uint64_t size_bytes;
	uint64_t blocks; /* of PF_BLOCK_SIZE, promised ones included */
	struct timespec atime, mtime, ctime, btime;
	bool has_xattr;
};

struct pf_cred { /* owner of what is created */
	uint32_t uid, gid;
};

/* -- references ----------------------------------------------------------------------------------------------------- */
void pf_forget(struct pf_pool *pool, uint64_t ino, uint64_t nr);
/* Takes a reference to an inode by number (a file handle that came back). -ESTALE when there is none. */
int pf_ref(struct pf_pool *pool, uint64_t ino, struct pf_attr *attr);

/* -- names (namei.c, create.c, remove.c, rename.c) -------------------------------------------------------------------- */
int pf_lookup(struct pf_pool *pool, uint64_t parent, const char *name, size_t len, struct pf_attr *attr);
/* Makes a file, directory, fifo, socket or device by the type in @mode. A set-gid parent hands its group on, and its bit to
 * directories. Applies no umask (the caller did). */
int pf_create(struct pf_pool *pool, uint64_t parent, const char *name, size_t len, uint32_t mode, struct pf_cred cred,
	      uint32_t rdev_major, uint32_t rdev_minor, struct pf_attr *attr);
/* A file without a name, to be given one by pf_link() or to vanish with its last reference (O_TMPFILE). */
int pf_create_unnamed(struct pf_pool *pool, uint64_t parent, uint32_t mode, struct pf_cred cred, struct pf_attr *attr);
int pf_symlink(struct pf_pool *pool, uint64_t parent, const char *name, size_t len, const char *target,
	       struct pf_cred cred, struct pf_attr *attr);
int pf_link(struct pf_pool *pool, uint64_t ino, uint64_t parent, const char *name, size_t len, struct pf_attr *attr);
int pf_unlink(struct pf_pool *pool, uint64_t parent, const char *name, size_t len);
int pf_rmdir(struct pf_pool *pool, uint64_t parent, const char *name, size_t len);
/* @flags: those of renameat2(2). RENAME_WHITEOUT leaves a character device 0, 0 of @cred at the old name, in the same transaction; the log
 * has no record for that, so until the next checkpoint it and what comes after it are not promised by an fsync alone. */
int pf_rename(struct pf_pool *pool, uint64_t old_parent, const char *old_name, size_t old_len, uint64_t new_parent,
	      const char *new_name, size_t new_len, unsigned flags, struct pf_cred cred);
/* @buf of @cap bytes is terminated; returns the length. */
int pf_readlink(struct pf_pool *pool, uint64_t ino, char *buf, size_t cap);

/* Entries with a cookie > @cookie, "." and ".." (cookies 1 and 2) first; a cookie stays valid while the directory changes.
 * @fn returns false when it has no room for the entry. It is called without locks. */
struct pf_dirent {
	const char *name;
	size_t len;
	uint64_t ino;
	uint64_t cookie;
	unsigned dtype; /* DT_* */
};
typedef bool pf_dirent_fn(void *arg, const struct pf_dirent *entry);
int pf_readdir(struct pf_pool *pool, uint64_t dir, uint64_t cookie, pf_dirent_fn *fn, void *arg);

/* -- attributes (attr.c, xattr.c) ------------------------------------------------------------------------------------- */
int pf_getattr(struct pf_pool *pool, uint64_t ino, struct pf_attr *attr);
enum pf_setattr_mask {
	PF_ATTR_MODE = 1, PF_ATTR_UID = 2, PF_ATTR_GID = 4, PF_ATTR_SIZE = 8, PF_ATTR_ATIME = 16, PF_ATTR_MTIME = 32,
	PF_ATTR_ATIME_NOW = 64, PF_ATTR_MTIME_NOW = 128, PF_ATTR_CTIME = 256,
	PF_ATTR_KILL_SUIDGID = 512, /* also clear set-id bits as a write or chown by an unprivileged user does */
	PF_ATTR_KEEP_TIMES = 1024,  /* of a regular file, mtime and ctime change only where named (pitfalls 8.5) */
};
/* Sets the fields of @in named by @mask, all or none; size as truncate(2). ctime becomes the time of this call if it is not named; so
 * does mtime with a size; but see PF_ATTR_KEEP_TIMES. @out may be NULL. */
int pf_setattr(struct pf_pool *pool, uint64_t ino, unsigned mask, const struct pf_attr *in, struct pf_attr *out);

/* @flags: XATTR_CREATE, XATTR_REPLACE. Namespaces are the caller's. */
int pf_setxattr(struct pf_pool *pool, uint64_t ino, const char *name, const void *value, size_t len, int flags);
/* Length of the value; @cap 0: only the length; -ERANGE, -ENODATA. */
int64_t pf_getxattr(struct pf_pool *pool, uint64_t ino, const char *name, void *buf, size_t cap);
int64_t pf_listxattr(struct pf_pool *pool, uint64_t ino, char *buf, size_t cap);
int pf_removexattr(struct pf_pool *pool, uint64_t ino, const char *name);

/* -- file data (file.c, falloc.c) ------------------------------------------------------------------------------------- */
/* @buf of at least pf_read_buf_bytes(off, len), aligned to PF_BLOCK_SIZE; the bytes begin at @buf + off % PF_BLOCK_SIZE.
 * Returns the number of bytes, short only at the end of the file. A damaged block anywhere in the range: -EIO, never a short
 * read (the kernel takes a short read for a hole and would show zeros); ask block by block for what is still good.
 *
 * Up to 4 MiB are one point of the file's history, from which on a slow member holds up nobody who changes the file; more is read in
 * pieces, each of which may be a later point. -ENOMEM. */
int64_t pf_read(struct pf_pool *pool, uint64_t ino, uint64_t off_bytes, void *buf, size_t len_bytes);
size_t pf_read_buf_bytes(uint64_t off_bytes, size_t len_bytes);

enum pf_write_flags {
	PF_WRITE_KEEP_TIMES = 1,    /* the kernel sets mtime and ctime itself (pitfalls 8.5) */
	PF_WRITE_KILL_SUIDGID = 2,  /* clear set-id bits and security.capability first (pitfalls 8.4) */
	PF_WRITE_BACK = 4,          /* the writer has been told that it went well: what cannot be written is lost */
};
/* Up to 4 MiB are written whole or not at all, as one point of the file's history; more may be a short count after an error.
 * @buf need not be aligned, but is written without a copy when it is. -EFBIG past PF_MAX_FILE_BYTES, -ENOSPC, -EIO.
 *
 * With PF_WRITE_BACK, the rest after an error is lost, and part of the file's size: reading it gives -EIO, and pf_fsync() the error
 * of the write, until all of it has been written, truncated away, punched or zeroed, or the pool is opened anew. */
int64_t pf_write(struct pf_pool *pool, uint64_t ino, uint64_t off_bytes, const void *buf, size_t len_bytes,
		 unsigned flags);

/* @mode: 0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | KEEP_SIZE, FALLOC_FL_ZERO_RANGE [| KEEP_SIZE]; else -EOPNOTSUPP.
 * @flags: PF_WRITE_KEEP_TIMES. */
int pf_fallocate(struct pf_pool *pool, uint64_t ino, int mode, uint64_t off_bytes, uint64_t len_bytes, unsigned flags);
/* SEEK_DATA, SEEK_HOLE; -ENXIO. */
int64_t pf_lseek(struct pf_pool *pool, uint64_t ino, uint64_t off_bytes, int whence);
/* @flags: of the write. */
int64_t pf_copy_range(struct pf_pool *pool, uint64_t from, uint64_t from_off, uint64_t to, uint64_t to_off,
		      size_t len_bytes, unsigned flags);

/* A range that was lost to PF_WRITE_BACK, each once: false when there is none. Whoever keeps what was written there must forget it. */
struct pf_lost_range {
	uint64_t ino, off_bytes, len_bytes;
};
bool pf_take_lost_range(struct pf_pool *pool, struct pf_lost_range *range);

/* Durable when it returns: data and attributes of @ino, and in these versions all of the namespace. Reports an earlier
 * failed write of the file until that data is rewritten or truncated. */
int pf_fsync(struct pf_pool *pool, uint64_t ino);
/* The same without waiting: @done is called once with the result, before this returns or later, in whatever thread. The pool must not be
 * closed before; and operations on the file that follow at once may wait a little. */
typedef void pf_fsync_done_fn(void *arg, int err);
void pf_fsync_start(struct pf_pool *pool, uint64_t ino, pf_fsync_done_fn *done, void *arg);
/* After a write: if each of the last few fsyncs of the file came after one write, begins the next one now, so that the fsync finds it under
 * way. Unless the file's mtime is not @now: then who keeps the times (PF_WRITE_KEEP_TIMES) will set it first, and that would need a
 * commit of its own. Wrong guesses cost a flush. Needs a log. @answer, which answers the write, is done as soon as disks are at work, at
 * the latest before it returns. */
void pf_fsync_ahead(struct pf_pool *pool, uint64_t ino, const struct timespec *now, struct pf_meanwhile *answer);

#endif
