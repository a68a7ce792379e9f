/* SPDX-License-Identifier: MIT
 *
 * Purpose: what the files of the operation generator share.
 * Invariants: I1 An op_*() function returns 0, or -1 with o->failure set.
 * Uses: ops.h.
 */
#ifndef PF_TEST_OPS_INTERNAL_H
#define PF_TEST_OPS_INTERNAL_H

#include "model/ops.h"

#define OPS_DATA_BYTES (UINT64_C(2) << 20)

typedef bool inode_filter(const struct model_inode *i);

/* A random inode that @filter accepts, with a reference held; 0: there is none, or (o->failure set) it could not be had. */
uint64_t pick_inode(struct ops *o, inode_filter *filter);
/* A random name for directory @dir: of an entry when @existing and there is one. @name: 512 bytes. */
void pick_name(struct ops *o, uint64_t dir, bool existing, char *name);
bool is_named_dir(const struct model_inode *i);
bool is_regular(const struct model_inode *i);
bool is_any(const struct model_inode *i);

void describe(struct ops *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int fail(struct ops *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* True when @result is an error that need not be compared: the pool is full, or its disks fail. Notes the result. */
bool excused(struct ops *o, int64_t result, bool takes_space);
/* After an operation: result against the model's. */
int expect(struct ops *o, int64_t expected, int64_t got);
/* Attributes of one inode against the model's. */
int check_inode(struct ops *o, uint64_t ino);
/* A failed change of data may have dropped security.capability, which is on the safe side: then the model drops it too. */
int check_failed(struct ops *o, uint64_t ino);
int check_attr(struct ops *o, const struct pf_attr *attr, uint64_t ino);

int op_create(struct ops *o);
int op_mkdir(struct ops *o);
int op_mknod(struct ops *o);
int op_symlink(struct ops *o);
int op_unnamed(struct ops *o);
int op_link(struct ops *o);
int op_unlink(struct ops *o);
int op_rmdir(struct ops *o);
int op_rename(struct ops *o);
int op_lookup(struct ops *o);
int op_readdir(struct ops *o);
int op_cursor(struct ops *o);
int op_readlink(struct ops *o);
int op_write(struct ops *o);
int op_append(struct ops *o);
int op_overwrite(struct ops *o);
int op_scatter(struct ops *o);
int op_read(struct ops *o);
int op_truncate(struct ops *o);
int op_fallocate(struct ops *o);
int op_lseek(struct ops *o);
int op_copy(struct ops *o);
int op_setattr(struct ops *o);
int op_setxattr(struct ops *o);
int op_getxattr(struct ops *o);
int op_removexattr(struct ops *o);
int op_forget(struct ops *o);
int op_statfs(struct ops *o);
void cursor_drop(struct ops *o);

#endif
