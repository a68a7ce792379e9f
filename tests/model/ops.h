/* SPDX-License-Identifier: MIT
 *
 * Purpose: seeded random operations, each done on a pool and on the model, results compared. The random test runs them by the
 * thousand; the crash explorer records a history of them; the fault test runs them on disks that fail.
 *
 * Invariants
 *   I1  The operations depend on the seed, the configuration and the answers of the pool alone.
 *   I2  After each operation the inodes that it touched are compared; ops_compare() compares everything.
 *   I3  -ENOSPC is accepted from what takes space (when the configuration says that the pool may be full), never from what gives
 *       space back; what failed must have changed nothing.
 *
 * Uses: model.h, testenv.h.
 */
#ifndef PF_TEST_OPS_H
#define PF_TEST_OPS_H

#include "model/model.h"
#include "model/testenv.h"

enum op_kind {
	OP_CREATE,
	OP_MKDIR,
	OP_MKNOD,
	OP_SYMLINK,
	OP_UNNAMED,
	OP_LINK,
	OP_UNLINK,
	OP_RMDIR,
	OP_RENAME,
	OP_LOOKUP,
	OP_READDIR,
	OP_CURSOR,
	OP_READLINK,
	OP_WRITE,
	OP_APPEND,
	OP_OVERWRITE,
	OP_SCATTER,
	OP_READ,
	OP_TRUNCATE,
	OP_FALLOCATE,
	OP_LSEEK,
	OP_COPY,
	OP_SETATTR,
	OP_SETXATTR,
	OP_GETXATTR,
	OP_REMOVEXATTR,
	OP_FORGET,
	OP_STATFS,
	OP_FSYNC,
	OP_SYNC,
	OP_STEP,
	OP_CHECKPOINT,
	OP_REMOUNT,
	OP_COUNT
};

struct ops_config {
	uint64_t seed;
	unsigned weight[OP_COUNT]; /* 0: never */
	uint64_t root;             /* the directory that is this driver's own; 0: the pool's root directory */
	uint64_t max_file_bytes;   /* up to MODEL_MAX_FILE_BYTES */
	uint64_t max_write_bytes;
	unsigned big_xattrs;  /* one in so many has about 64 KiB */
	unsigned max_inodes;  /* about: more than these, and removing is all that is done */
	bool tolerate_errors; /* disks fail: an operation may answer -EIO, -EROFS, -ENOSPC */
	bool strict_blocks;   /* attr.blocks is compared */
	bool trace;           /* each operation to stderr */
};
/* Everything with weights for a long random run. */
void ops_config_default(struct ops_config *c, uint64_t seed);

struct ops {
	struct ops_config config;
	struct rng rng;
	struct test_env *env;
	struct pf_pool *pool;
	struct model *model;
	/* Closes the pool and opens it again (OP_REMOUNT). */
	int (*remount)(void *arg, struct pf_pool **pool);
	void *remount_arg;
	uint8_t *data, *answer; /* aligned */
	/* of the last operation */
	uint64_t nr;
	enum op_kind kind;
	int64_t result;
	uint64_t ino;
	uint64_t moved[2]; /* inodes that it renamed, exchanged or linked; 0: none */
	bool settled; /* nothing of the inodes being compared waits in memory */
	char text[1024];
	char failure[2048];
	/* of all */
	uint64_t nr_enospc, nr_tolerated, nr_ok[OP_COUNT];
	unsigned removing; /* operations still to be removals */
	struct ops_scatter {
		uint64_t ino, block, step;
		unsigned left;
	} scatter;
	/* a directory being read while it changes */
	struct ops_cursor {
		uint64_t dir, cookie, nr;
		char **expect; /* names there at the start and never touched since */
		bool *seen;
		size_t nr_expect;
		struct model *start;
	} cursor;
};

/* The directory is empty; another one than the pool's root is in nobody else's hands, and the caller holds a reference. Takes neither. 0 or an error with o->failure set. */
int ops_start(struct ops *o, const struct ops_config *config, struct test_env *env, struct pf_pool *pool);
void ops_finish(struct ops *o);
/* One operation. 0, or -1 with o->failure set. */
int ops_step(struct ops *o);
/* The pool was closed and is @pool now: everything is compared. */
int ops_remounted(struct ops *o, struct pf_pool *pool);
/* Reads everything and compares. */
int ops_compare(struct ops *o);
/* Removes all that there is and gives every reference back. */
int ops_remove_all(struct ops *o);
const char *ops_name(enum op_kind kind);

#endif
