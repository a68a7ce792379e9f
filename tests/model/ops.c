/* SPDX-License-Identifier: MIT */
#include "model/ops_internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>

static int op_fsync(struct ops *o);
static int op_sync(struct ops *o);
static int op_step(struct ops *o);
static int op_checkpoint(struct ops *o);
static int op_remount(struct ops *o);

static const struct {
	const char *name;
	int (*run)(struct ops *o);
	unsigned weight;
} kinds[OP_COUNT] = {
	[OP_CREATE] = { "create", op_create, 60 },
	[OP_MKDIR] = { "mkdir", op_mkdir, 20 },
	[OP_MKNOD] = { "mknod", op_mknod, 6 },
	[OP_SYMLINK] = { "symlink", op_symlink, 12 },
	[OP_UNNAMED] = { "unnamed", op_unnamed, 4 },
	[OP_LINK] = { "link", op_link, 15 },
	[OP_UNLINK] = { "unlink", op_unlink, 50 },
	[OP_RMDIR] = { "rmdir", op_rmdir, 15 },
	[OP_RENAME] = { "rename", op_rename, 40 },
	[OP_LOOKUP] = { "lookup", op_lookup, 10 },
	[OP_READDIR] = { "readdir", op_readdir, 8 },
	[OP_CURSOR] = { "cursor", op_cursor, 12 },
	[OP_READLINK] = { "readlink", op_readlink, 4 },
	[OP_WRITE] = { "write", op_write, 90 },
	[OP_APPEND] = { "append", op_append, 60 },
	[OP_OVERWRITE] = { "overwrite", op_overwrite, 50 },
	[OP_SCATTER] = { "scatter", op_scatter, 3 },
	[OP_READ] = { "read", op_read, 60 },
	[OP_TRUNCATE] = { "truncate", op_truncate, 40 },
	[OP_FALLOCATE] = { "fallocate", op_fallocate, 40 },
	[OP_LSEEK] = { "lseek", op_lseek, 25 },
	[OP_COPY] = { "copy", op_copy, 15 },
	[OP_SETATTR] = { "setattr", op_setattr, 30 },
	[OP_SETXATTR] = { "setxattr", op_setxattr, 30 },
	[OP_GETXATTR] = { "getxattr", op_getxattr, 15 },
	[OP_REMOVEXATTR] = { "removexattr", op_removexattr, 12 },
	[OP_FORGET] = { "forget", op_forget, 15 },
	[OP_STATFS] = { "statfs", op_statfs, 4 },
	[OP_FSYNC] = { "fsync", op_fsync, 10 },
	[OP_SYNC] = { "sync", op_sync, 4 },
	[OP_STEP] = { "step", op_step, 120 },
	[OP_CHECKPOINT] = { "checkpoint", op_checkpoint, 12 },
	[OP_REMOUNT] = { "remount", op_remount, 1 },
};

const char *ops_name(enum op_kind kind)
{
	return kinds[kind].name;
}

void ops_config_default(struct ops_config *c, uint64_t seed)
{
	memset(c, 0, sizeof(*c));
	c->seed = seed;
	c->max_file_bytes = MODEL_MAX_FILE_BYTES;
	c->max_write_bytes = OPS_DATA_BYTES;
	c->big_xattrs = 12;
	c->max_inodes = 400;
	c->strict_blocks = true;
	for (unsigned k = 0; k < OP_COUNT; k++)
		c->weight[k] = kinds[k].weight;
}

/* -- shared helpers ------------------------------------------------------------------------------------------------- */
void describe(struct ops *o, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(o->text, sizeof(o->text), fmt, ap);
	va_end(ap);
}

int fail(struct ops *o, const char *fmt, ...)
{
	char what[800];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (!o->failure[0])
		say(o->failure, sizeof(o->failure), "operation %ju, %s %s: %s", (uintmax_t)o->nr, ops_name(o->kind),
		    o->text, what);
	return -1;
}

bool is_named_dir(const struct model_inode *i)
{
	return model_is_dir(i) && i->nlink;
}
bool is_regular(const struct model_inode *i)
{
	return model_is_file(i);
}
bool is_any(const struct model_inode *i)
{
	(void)i;
	return true;
}

uint64_t pick_inode(struct ops *o, inode_filter *filter)
{
	struct model *m = o->model;
	size_t first = (size_t)rng_below(&o->rng, m->nr);
	for (size_t k = 0; k < m->nr; k++) {
		struct model_slot *slot = &m->slots[(first + k) % m->nr];
		if (!filter(slot->inode))
			continue;
		if (!slot->refs && slot->ino != o->config.root) {
			struct pf_attr attr;
			int err = pf_ref(o->pool, slot->ino, &attr);
			if (err) {
				if (!excused(o, err, false))
					fail(o, "pf_ref(%ju) gives %s", (uintmax_t)slot->ino, pf_strerror(err));
				return 0;
			}
			slot->refs++;
		}
		return slot->ino;
	}
	return 0;
}

void pick_name(struct ops *o, uint64_t dir, bool existing, char *name)
{
	const struct model_inode *d = model_get(o->model, dir);
	if (existing && d->nr_entries) {
		strcpy(name, d->entries[rng_below(&o->rng, d->nr_entries)].name);
		return;
	}
	unsigned which = (unsigned)rng_below(&o->rng, 200);
	if (which == 0) {
		strcpy(name, rng_one_in(&o->rng, 2) ? "." : "..");
	} else if (which == 1) {
		name[0] = 0;
	} else if (which < 10) {
		/* the limit, and one more */
		size_t len = 250 + (size_t)rng_below(&o->rng, 7);
		memset(name, 'a' + (int)rng_below(&o->rng, 26), len);
		name[len] = 0;
	} else if (which < 20) {
		size_t len = 1 + (size_t)rng_below(&o->rng, 20);
		for (size_t k = 0; k < len; k++) {
			do {
				name[k] = (char)(1 + rng_below(&o->rng, 255));
			} while (name[k] == '/' || name[k] == '.');
		}
		name[len] = 0;
	} else {
		say(name, 512, "n%u", (unsigned)rng_below(&o->rng, 60));
	}
}

bool excused(struct ops *o, int64_t result, bool takes_space)
{
	o->result = result;
	if (result == -ENOSPC && takes_space) {
		o->nr_enospc++;
		return true;
	}
	if (result >= 0 || !o->config.tolerate_errors)
		return false;
	int err = pf_errno((int)result);
	if (err == EIO || err == EROFS || err == ENOSPC) {
		o->nr_tolerated++;
		return true;
	}
	return false;
}

int expect(struct ops *o, int64_t expected, int64_t got)
{
	if (model_same_error(expected, got))
		return 0;
	return fail(o, "gives %jd (%s), expected %jd (%s)", (intmax_t)got, got < 0 ? pf_strerror((int)got) : "success",
		    (intmax_t)expected, expected < 0 ? pf_strerror((int)expected) : "success");
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static int check_blocks(struct ops *o, const struct pf_attr *a, const struct model_inode *i)
{
	uint64_t least, most;
	/* while blocks are being rewritten, their number is known about only */
	if (!o->settled || !o->config.strict_blocks || !model_is_file(i))
		return 0;
	model_blocks(i, &least, &most);
	if (a->blocks >= least && a->blocks <= most)
		return 0;
	return fail(o, "inode %ju has %ju blocks, expected %ju to %ju", (uintmax_t)i->ino, (uintmax_t)a->blocks,
		    (uintmax_t)least, (uintmax_t)most);
}

int check_attr(struct ops *o, const struct pf_attr *a, uint64_t ino)
{
	const struct model_inode *i = model_get(o->model, ino);
	if (a->ino != ino)
		return fail(o, "attributes of inode %ju instead of %ju", (uintmax_t)a->ino, (uintmax_t)ino);
	if (a->mode != i->mode || a->nlink != i->nlink || a->uid != i->uid || a->gid != i->gid)
		return fail(o, "inode %ju has mode %o nlink %u owner %u:%u, expected %o %u %u:%u", (uintmax_t)ino,
			    a->mode, a->nlink, a->uid, a->gid, i->mode, i->nlink, i->uid, i->gid);
	if (a->rdev_major != i->rdev_major || a->rdev_minor != i->rdev_minor)
		return fail(o, "inode %ju is device %u:%u, expected %u:%u", (uintmax_t)ino, a->rdev_major,
			    a->rdev_minor, i->rdev_major, i->rdev_minor);
	if (!model_is_dir(i) && a->size_bytes != i->size_bytes)
		return fail(o, "inode %ju has size %ju, expected %ju", (uintmax_t)ino, (uintmax_t)a->size_bytes,
			    (uintmax_t)i->size_bytes);
	/* a hint: it may outlive the last one */
	if (!a->has_xattr && i->nr_xattrs)
		return fail(o, "inode %ju: has_xattr is %d", (uintmax_t)ino, a->has_xattr);
	if (!same_time(a->mtime, i->mtime))
		return fail(o, "inode %ju: mtime %jd.%09ld, expected %jd.%09ld", (uintmax_t)ino,
			    (intmax_t)a->mtime.tv_sec, a->mtime.tv_nsec, (intmax_t)i->mtime.tv_sec, i->mtime.tv_nsec);
	if (!same_time(a->ctime, i->ctime))
		return fail(o, "inode %ju: ctime %jd.%09ld, expected %jd.%09ld", (uintmax_t)ino,
			    (intmax_t)a->ctime.tv_sec, a->ctime.tv_nsec, (intmax_t)i->ctime.tv_sec, i->ctime.tv_nsec);
	if (!same_time(a->btime, i->btime))
		return fail(o, "inode %ju: btime differs", (uintmax_t)ino);
	return check_blocks(o, a, i);
}

int check_inode(struct ops *o, uint64_t ino)
{
	struct pf_attr a;
	if (!model_get(o->model, ino))
		return 0;
	int err = pf_getattr(o->pool, ino, &a);
	if (err)
		return excused(o, err, false)
			       ? 0
			       : fail(o, "getattr of inode %ju gives %s", (uintmax_t)ino, pf_strerror(err));
	return check_attr(o, &a, ino);
}

int check_failed(struct ops *o, uint64_t ino)
{
	if (model_getxattr(model_get(o->model, ino), "security.capability") &&
	    pf_getxattr(o->pool, ino, "security.capability", NULL, 0) == -ENODATA)
		model_drop_capability(model_edit(o->model, ino));
	return check_inode(o, ino);
}

/* -- the pool as a whole -------------------------------------------------------------------------------------------- */
static int op_fsync(struct ops *o)
{
	uint64_t ino = pick_inode(o, is_any);
	if (!ino)
		return o->failure[0] ? -1 : 0;
	describe(o, "(%ju)", (uintmax_t)ino);
	o->ino = ino;
	int64_t got = pf_fsync(o->pool, ino);
	if (excused(o, got, false))
		return 0;
	o->settled = true;
	return expect(o, 0, got) || check_inode(o, ino) ? -1 : 0;
}

static int op_sync(struct ops *o)
{
	describe(o, "()");
	int64_t got = pf_pool_sync(o->pool);
	return excused(o, got, false) ? 0 : expect(o, 0, got);
}

static int steps(struct ops *o, bool start)
{
	unsigned nr = 1 + (unsigned)rng_skewed(&o->rng, 12);
	describe(o, "(%u, %d)", nr, start);
	int got = 1;
	for (unsigned k = 0; k < nr && got == 1; k++)
		got = pf_pool_step(o->pool, start && k == 0);
	if (got >= 0)
		o->result = 0;
	return got >= 0 || excused(o, got, false) ? 0 : fail(o, "gives %s", pf_strerror(got));
}

static int op_step(struct ops *o)
{
	return steps(o, false);
}
static int op_checkpoint(struct ops *o)
{
	return steps(o, true);
}

static int op_remount(struct ops *o)
{
	describe(o, "()");
	if (!o->remount)
		return 0;
	struct pf_pool *pool = o->pool;
	int err = o->remount(o->remount_arg, &pool);
	o->result = err;
	return err ? fail(o, "gives %s", pf_strerror(err)) : ops_remounted(o, pool);
}

int ops_remounted(struct ops *o, struct pf_pool *pool)
{
	o->pool = pool;
	cursor_drop(o);
	model_remount(o->model);
	o->settled = true;
	for (size_t k = 0; k < o->model->nr; k++) {
		if (check_inode(o, o->model->slots[k].ino))
			return -1;
	}
	return ops_compare(o);
}

/* -- driving -------------------------------------------------------------------------------------------------------- */
int ops_start(struct ops *o, const struct ops_config *config, struct test_env *env, struct pf_pool *pool)
{
	memset(o, 0, sizeof(*o));
	o->config = *config;
	if (!o->config.root)
		o->config.root = PF_ROOT_INO;
	o->rng.state = rng_mix(config->seed ^ UINT64_C(0x6f7073));
	o->env = env;
	o->pool = pool;
	o->model = model_new();
	o->data = aligned_alloc(MODEL_BLOCK, OPS_DATA_BYTES + 2 * MODEL_BLOCK);
	o->answer = aligned_alloc(MODEL_BLOCK, OPS_DATA_BYTES + 4 * MODEL_BLOCK);
	char why[1000];
	if (model_load_below(pool, o->config.root, o->model, why, sizeof(why)))
		return fail(o, "the fresh pool cannot be read: %s", why);
	return 0;
}

void ops_finish(struct ops *o)
{
	cursor_drop(o);
	model_free(o->model);
	free(o->data);
	free(o->answer);
	o->model = NULL;
	o->data = o->answer = NULL;
}

static enum op_kind pick_kind(struct ops *o)
{
	static const enum op_kind removals[] = { OP_UNLINK,   OP_UNLINK, OP_UNLINK, OP_RMDIR,
						 OP_TRUNCATE, OP_FORGET, OP_STEP };
	if (!o->removing && (o->model->nr > o->config.max_inodes || (o->nr_enospc && o->nr_enospc % 12 == 0))) {
		o->nr_enospc += o->nr_enospc % 12 == 0;
		o->removing = 20 + (unsigned)rng_below(&o->rng, o->config.max_inodes);
	}
	/* with other things in between */
	if (o->scatter.left && !rng_one_in(&o->rng, 8))
		return OP_SCATTER;
	if (o->removing) {
		o->removing--;
		enum op_kind kind = removals[rng_below(&o->rng, sizeof(removals) / sizeof(removals[0]))];
		if (o->config.weight[kind])
			return kind;
	}
	unsigned sum = 0;
	for (unsigned k = 0; k < OP_COUNT; k++)
		sum += o->config.weight[k];
	unsigned at = (unsigned)rng_below(&o->rng, sum);
	for (unsigned k = 0;; k++) {
		if (at < o->config.weight[k])
			return (enum op_kind)k;
		at -= o->config.weight[k];
	}
}

int ops_step(struct ops *o)
{
	o->nr++;
	o->kind = pick_kind(o);
	o->result = 0;
	o->ino = 0;
	memset(o->moved, 0, sizeof(o->moved));
	o->text[0] = 0;
	o->settled = false;
	o->env->now_ns += 1 + (int64_t)rng_below(&o->rng, 2000000000);
	o->model->now = test_env_time(o->env);
	int err = kinds[o->kind].run(o);
	if (o->config.trace)
		fprintf(stderr, "%ju %s%s = %jd\n", (uintmax_t)o->nr, ops_name(o->kind), o->text, (intmax_t)o->result);
	if (!err && o->result >= 0)
		o->nr_ok[o->kind]++;
	return err;
}

static bool compare_contents(struct ops *o, struct model *got, char *why, size_t cap)
{
	for (size_t k = 0; k < o->model->nr; k++) {
		struct model_inode *i = o->model->slots[k].inode;
		if (!i->nlink || !model_is_file(i))
			continue;
		struct model_inode *j = model_slot(got, i->ino)->inode;
		if (model_diff_content(i, j, why, cap))
			return true;
		if (!same_time(i->mtime, j->mtime) || !same_time(i->ctime, j->ctime)) {
			say(why, cap, "inode %ju: mtime or ctime differs", (uintmax_t)i->ino);
			return true;
		}
	}
	return false;
}

/* Open files without a name are in no directory. */
static bool compare_nameless(struct ops *o, char *why, size_t cap)
{
	for (size_t k = 0; k < o->model->nr; k++) {
		const struct model_slot *slot = &o->model->slots[k];
		if (slot->inode->nlink || !slot->refs)
			continue;
		for (uint64_t off = 0; model_is_file(slot->inode) && off < slot->inode->size_bytes;
		     off += OPS_DATA_BYTES) {
			uint64_t want = slot->inode->size_bytes - off;
			if (want > OPS_DATA_BYTES)
				want = OPS_DATA_BYTES;
			model_read_at(slot->inode, off, o->data, want);
			int64_t n = pf_read(o->pool, slot->ino, off, o->answer, want);
			if (n == (int64_t)want && !memcmp(o->answer, o->data, want))
				continue;
			say(why, cap, "nameless inode %ju reads wrong at %ju (%jd)", (uintmax_t)slot->ino,
			    (uintmax_t)off, (intmax_t)n);
			return true;
		}
	}
	return false;
}

int ops_compare(struct ops *o)
{
	char why[1500] = "";
	struct model *got = model_new();
	int err = model_load_below(o->pool, o->config.root, got, why, sizeof(why));
	if (err && o->config.tolerate_errors && (pf_errno(err) == EIO))
		err = 0;
	else if (err || model_diff_names(o->model, got, why, sizeof(why)) ||
		 compare_contents(o, got, why, sizeof(why)) || compare_nameless(o, why, sizeof(why)))
		err = fail(o, "comparing everything afterwards: %s", why);
	model_free(got);
	return err;
}

static int remove_entry(struct ops *o, uint64_t dir, const char *name, bool directory)
{
	o->nr++;
	o->kind = directory ? OP_RMDIR : OP_UNLINK;
	describe(o, "(%ju, %s)", (uintmax_t)dir, name);
	int got = directory ? pf_rmdir(o->pool, dir, name, strlen(name)) : pf_unlink(o->pool, dir, name, strlen(name));
	if (expect(o, 0, got))
		return -1;
	return expect(o, 0, directory ? model_rmdir(o->model, dir, name) : model_unlink(o->model, dir, name));
}

/* Children have names of their own, so directories go in rounds, from the leaves. */
static int remove_round(struct ops *o, bool *more)
{
	for (size_t k = o->model->nr; k-- > 0;) {
		if (k >= o->model->nr)
			continue;
		uint64_t dir = o->model->slots[k].ino;
		if (!is_named_dir(o->model->slots[k].inode))
			continue;
		for (size_t e = 0; e < model_get(o->model, dir)->nr_entries;) {
			char name[512];
			strcpy(name, model_get(o->model, dir)->entries[e].name);
			const struct model_inode *i = model_get(o->model, model_get(o->model, dir)->entries[e].ino);
			if (model_is_dir(i) && i->nr_entries) {
				*more = true;
				e++;
			} else if (remove_entry(o, dir, name, model_is_dir(i))) {
				return -1;
			}
		}
	}
	return 0;
}

int ops_remove_all(struct ops *o)
{
	cursor_drop(o);
	o->env->now_ns += 1000000000;
	o->model->now = test_env_time(o->env);
	for (bool more = true; more;) {
		more = false;
		if (remove_round(o, &more))
			return -1;
	}
	for (size_t k = o->model->nr; k-- > 0;) {
		struct model_slot *slot = &o->model->slots[k];
		if (slot->refs)
			pf_forget(o->pool, slot->ino, slot->refs);
		model_forget(o->model, slot->ino, UINT64_MAX);
	}
	return 0;
}
