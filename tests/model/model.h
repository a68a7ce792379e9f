/* SPDX-License-Identifier: MIT
 *
 * Purpose: a plain filesystem in memory with the semantics of object/posix.h. What the pool does is compared with what this does:
 * by the random test after each operation, by the crash explorer against every state of its history.
 *
 * Invariants
 *   I1  Inodes carry the numbers that the pool gave them, so that trees are compared without a translation.
 *   I2  model_snapshot() is cheap: inodes, pages and xattr values are shared and counted, and copied by who changes them.
 *   I3  A function that fails has changed nothing. Errors are those that posix.h demands; where POSIX leaves a choice (an
 *       operation on the wrong kind of inode) the model says -MODEL_EKIND, and model_same_error() accepts any of them.
 *   I4  Times come from 'now', which the driver sets before each operation and gives to the pool as its clock too.
 *
 * Uses: poolfs.h for the types of posix.h and for model_load(); not the engine's behaviour.
 */
#ifndef PF_TEST_MODEL_H
#define PF_TEST_MODEL_H

#include "poolfs.h"

#define MODEL_BLOCK          4096u
#define MODEL_MAX_FILE_BYTES (UINT64_C(8) << 20)
#define MODEL_EKIND          9001 /* wrong kind of inode: EISDIR, EINVAL, ENODEV ... */

/* What is known of a block of a file. Bytes of all but DATA are zero. */
enum model_block {
	MODEL_HOLE,      /* takes no space; lseek must call it a hole */
	MODEL_ALLOCATED, /* takes space, may read as data or as a hole */
	MODEL_MAYBE,     /* may take space */
	MODEL_DATA,      /* takes space, was written */
};

struct model_page {
	unsigned refs;
	uint64_t hash; /* 0: to be computed */
	uint8_t bytes[MODEL_BLOCK];
};

struct model_value {
	unsigned refs;
	size_t len;
	uint8_t bytes[];
};
struct model_xattr {
	char *name;
	struct model_value *value;
};

struct model_entry {
	char *name;
	uint64_t ino;
};

struct model_inode {
	unsigned shared; /* models that hold it */
	uint64_t ino;
	uint32_t mode, nlink, uid, gid, rdev_major, rdev_minor;
	struct timespec atime, mtime, ctime, btime;
	uint64_t hash_names, hash_content; /* 0: to be computed */
	/* regular file */
	uint64_t size_bytes;
	size_t nr_pages; /* of both arrays; what lies beyond is a hole */
	struct model_page **pages;
	uint8_t *blocks; /* enum model_block */
	/* directory */
	uint64_t parent;
	size_t nr_entries, cap_entries;
	struct model_entry *entries;
	/* symlink */
	char *target;
	size_t nr_xattrs;
	struct model_xattr *xattrs;
	bool unreadable; /* model_load_damaged(): its content is not known */
	bool unnamed; /* made without a name: may be linked while nlink is 0 */
};

struct model_slot {
	uint64_t ino;
	uint64_t refs; /* references that the driver holds */
	struct model_inode *inode;
};
struct model {
	size_t nr, cap;
	struct model_slot *slots; /* by inode number */
	struct timespec now;
};

static inline bool model_is_dir(const struct model_inode *i)
{
	return (i->mode & 0170000) == 0040000;
}
static inline bool model_is_file(const struct model_inode *i)
{
	return (i->mode & 0170000) == 0100000;
}
static inline bool model_is_symlink(const struct model_inode *i)
{
	return (i->mode & 0170000) == 0120000;
}

/* -- the store (model.c) -------------------------------------------------------------------------------------------- */
struct model *model_new(void); /* empty: add the root by model_load() or model_add() */
struct model *model_snapshot(const struct model *m);
void model_free(struct model *m);
struct model_slot *model_slot(const struct model *m, uint64_t ino); /* NULL: no such inode */
const struct model_inode *model_get(const struct model *m, uint64_t ino);
struct model_inode *model_edit(struct model *m, uint64_t ino); /* a copy of its own; forgets the hashes */
struct model_inode *model_add(struct model *m, uint64_t ino, uint32_t mode);
void model_drop(struct model *m, uint64_t ino);
/* Drops one reference, or all (@nr = UINT64_MAX); an inode without name goes with its last one. */
void model_forget(struct model *m, uint64_t ino, uint64_t nr);
/* What an unmount leaves: no references, no nameless inodes. */
void model_remount(struct model *m);
bool model_same_error(int64_t expected, int64_t got);

/* -- names (model_names.c) ------------------------------------------------------------------------------------------ */
const struct model_entry *model_find(const struct model_inode *dir, const char *name);
int model_lookup(const struct model *m, uint64_t parent, const char *name, uint64_t *ino);
/* @ino: the number that the pool gave, or 0 when the pool has failed and the error is to be compared. */
int model_create(struct model *m, uint64_t parent, const char *name, uint32_t mode, struct pf_cred cred, uint32_t major,
		 uint32_t minor, uint64_t ino);
int model_create_unnamed(struct model *m, uint64_t parent, uint32_t mode, struct pf_cred cred, uint64_t ino);
int model_symlink(struct model *m, uint64_t parent, const char *name, const char *target, struct pf_cred cred,
		  uint64_t ino);
int model_link(struct model *m, uint64_t ino, uint64_t parent, const char *name);
int model_unlink(struct model *m, uint64_t parent, const char *name);
int model_rmdir(struct model *m, uint64_t parent, const char *name);
int model_rename(struct model *m, uint64_t old_parent, const char *old_name, uint64_t new_parent, const char *new_name,
		 unsigned flags, struct pf_cred cred, uint64_t whiteout); /* the last two: of RENAME_WHITEOUT */
bool model_is_ancestor(const struct model *m, uint64_t above, uint64_t below); /* also when they are the same */

/* -- attributes (model_attr.c) -------------------------------------------------------------------------------------- */
int model_setattr(struct model *m, uint64_t ino, unsigned mask, const struct pf_attr *in);
void model_kill_suidgid(struct model_inode *i);
void model_drop_capability(struct model_inode *i); /* by every change of a file's data, truncation and chown */
const struct model_value *model_getxattr(const struct model_inode *i, const char *name);
int model_setxattr(struct model *m, uint64_t ino, const char *name, const void *value, size_t len, int flags);
int model_removexattr(struct model *m, uint64_t ino, const char *name);

/* -- file data (model_data.c) --------------------------------------------------------------------------------------- */
void model_read_at(const struct model_inode *i, uint64_t off, void *buf, size_t len); /* zeros past the end */
int64_t model_read(const struct model *m, uint64_t ino, uint64_t off, void *buf, size_t len);
int64_t model_write(struct model *m, uint64_t ino, uint64_t off, const void *buf, size_t len, unsigned flags);
void model_truncate(struct model_inode *i, uint64_t size);
int model_fallocate(struct model *m, uint64_t ino, int mode, uint64_t off, uint64_t len, unsigned flags);
/* @copied: what the pool reported; applied when it is a legal count, else the error or count that was expected. */
int64_t model_copy_range(struct model *m, uint64_t from, uint64_t from_off, uint64_t to, uint64_t to_off, size_t len,
			 unsigned flags, int64_t copied);
/* NULL when @got is a legal answer of pf_lseek(), else what is wrong with it. */
const char *model_lseek_wrong(const struct model *m, uint64_t ino, uint64_t off, int whence, int64_t got);
void model_blocks(const struct model_inode *i, uint64_t *least, uint64_t *most);

/* -- comparing (model_compare.c) ------------------------------------------------------------------------------------ */
/* Of everything with a name but the content of files; of size and bytes of one file. Never 0. */
uint64_t model_hash_names(struct model *m);
uint64_t model_hash_inode(struct model_inode *i);
uint64_t model_hash_content(struct model_inode *i);
/* Reads the whole pool. Directories that were met, their entries, attributes, contents. @why gets the first thing that
 * could not be read or is inconsistent. 0 or the error. Holds no references afterwards. */
int model_load(struct pf_pool *pool, struct model *out, char *why, size_t cap);
/* The same of directory @top, which lies in the root directory or is it, and of what is below. */
int model_load_below(struct pf_pool *pool, uint64_t top, struct model *out, char *why, size_t cap);
/* The same of a pool that has lost data: files of which something cannot be read are so marked. */
int model_load_damaged(struct pf_pool *pool, struct model *out, char *why, size_t cap);
/* First difference of two trees as text; false: none. */
bool model_diff_names(struct model *expected, struct model *got, char *why, size_t cap);
bool model_diff_content(struct model_inode *expected, struct model_inode *got, char *why, size_t cap);

#endif
