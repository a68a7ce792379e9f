/* SPDX-License-Identifier: MIT */
#include "sim/workload.h"

#include <stdlib.h>

struct weight {
	enum op_kind kind;
	unsigned weight;
};

/* What a profile does more, or less, often than the random test. */
static const struct weight names[] = { { OP_CREATE, 90 },   { OP_MKDIR, 40 },    { OP_LINK, 40 },   { OP_RENAME, 120 },
				       { OP_UNLINK, 70 },   { OP_WRITE, 10 },    { OP_APPEND, 15 }, { OP_OVERWRITE, 5 },
				       { OP_TRUNCATE, 10 }, { OP_FALLOCATE, 5 }, { OP_COPY, 3 },    { OP_SETXATTR, 60 },
				       { OP_COUNT, 0 } };
static const struct weight overwrites[] = { { OP_CREATE, 12 },  { OP_MKDIR, 2 },   { OP_MKNOD, 0 },
					    { OP_SYMLINK, 2 },  { OP_UNLINK, 14 }, { OP_RENAME, 10 },
					    { OP_WRITE, 60 },   { OP_APPEND, 60 }, { OP_OVERWRITE, 250 },
					    { OP_SETXATTR, 4 }, { OP_COUNT, 0 } };
static const struct weight big[] = { { OP_CREATE, 25 },  { OP_MKDIR, 4 },      { OP_WRITE, 120 },
				     { OP_APPEND, 160 }, { OP_OVERWRITE, 80 }, { OP_COUNT, 0 } };
static const struct weight holes[] = { { OP_CREATE, 20 },     { OP_MKDIR, 4 }, { OP_WRITE, 100 },  { OP_TRUNCATE, 90 },
				       { OP_FALLOCATE, 140 }, { OP_COPY, 40 }, { OP_SCATTER, 12 }, { OP_COUNT, 0 } };
static const struct weight syncs[] = {
	{ OP_CREATE, 25 },   { OP_MKDIR, 2 },      { OP_MKNOD, 1 },       { OP_SYMLINK, 3 },    { OP_UNNAMED, 14 },
	{ OP_LINK, 30 },     { OP_UNLINK, 12 },    { OP_RMDIR, 1 },       { OP_RENAME, 60 },    { OP_WRITE, 40 },
	{ OP_APPEND, 110 },  { OP_OVERWRITE, 90 }, { OP_SCATTER, 1 },     { OP_TRUNCATE, 45 },  { OP_FALLOCATE, 25 },
	{ OP_COPY, 8 },      { OP_SETATTR, 15 },   { OP_SETXATTR, 25 },   { OP_FORGET, 5 },     { OP_FSYNC, 220 },
	{ OP_SYNC, 2 },      { OP_STEP, 60 },      { OP_CHECKPOINT, 25 }, { OP_COUNT, 0 },
};
static const struct weight ring[] = { { OP_SETXATTR, 110 }, { OP_FSYNC, 300 }, { OP_SYNC, 0 }, { OP_REMOUNT, 0 }, { OP_STEP, 5 }, { OP_CHECKPOINT, 0 },
				      { OP_COUNT, 0 } };
/* Small trees: nobody has to wait for a checkpoint to end. */
static const struct weight slow_checkpoints[] = { { OP_SYMLINK, 1 },   { OP_TRUNCATE, 70 }, { OP_FALLOCATE, 60 }, { OP_SETXATTR, 4 },
						  { OP_FSYNC, 150 },   { OP_STEP, 10 },	    { OP_CHECKPOINT, 40 }, { OP_COUNT, 0 } };

static void weigh(struct ops_config *c, const struct weight *w)
{
	for (; w->kind != OP_COUNT; w++)
		c->weight[w->kind] = w->weight;
}

void workload_ops_config(struct ops_config *c, uint64_t seed, int profile)
{
	ops_config_default(c, seed);
	/* what only looks is the random test's business */
	static const enum op_kind looks[] = { OP_LOOKUP, OP_READDIR, OP_CURSOR,   OP_READLINK,
					      OP_READ,   OP_LSEEK,   OP_GETXATTR, OP_STATFS };
	for (unsigned k = 0; k < sizeof(looks) / sizeof(looks[0]); k++)
		c->weight[looks[k]] = 1;
	c->weight[OP_FSYNC] = 12;
	c->weight[OP_SYNC] = 4;
	c->weight[OP_REMOUNT] = 3;
	c->weight[OP_STEP] = 200;
	c->weight[OP_CHECKPOINT] = 30;
	c->max_file_bytes = UINT64_C(1) << 20;
	c->max_write_bytes = UINT64_C(128) << 10;
	c->max_inodes = 60;
	switch (profile) {
	case WORKLOAD_NAMES:
		weigh(c, names);
		c->max_write_bytes = 8192;
		break;
	case WORKLOAD_OVERWRITES:
		weigh(c, overwrites);
		c->max_file_bytes = UINT64_C(4) << 20;
		c->max_write_bytes = UINT64_C(512) << 10;
		c->max_inodes = 20;
		break;
	case WORKLOAD_BIG:
		weigh(c, big);
		c->max_file_bytes = UINT64_C(4) << 20;
		c->max_write_bytes = UINT64_C(2) << 20;
		c->max_inodes = 12;
		break;
	case WORKLOAD_HOLES:
		weigh(c, holes);
		c->max_file_bytes = UINT64_C(2) << 20;
		c->max_inodes = 15;
		break;
	case WORKLOAD_SYNCS:
	case WORKLOAD_RING:
		weigh(c, syncs);
		if (profile == WORKLOAD_RING)
			weigh(c, ring);
		else if (seed % 2)
			weigh(c, slow_checkpoints);
		c->max_file_bytes = UINT64_C(128) << 10;
		c->max_write_bytes = 12288;
		c->big_xattrs = 4;
		c->max_inodes = 14;
		break;
	default:
		break;
	}
}

static int remount(void *arg, struct pf_pool **pool)
{
	struct workload *w = arg;
	int err = simpool_remount(w->s, w->why, sizeof(w->why));
	*pool = w->s->pool;
	return err;
}

/* All that is free just now, in the middle of everything else. */
static int trim(struct workload *w)
{
	struct pf_trim trim = { .unused = w->ops.nr % 3 == 0 };
	int more;
	while ((more = pf_pool_trim_step(w->s->pool, &trim)) > 0)
		;
	if (more)
		say(w->why, sizeof(w->why), "trim: %s", pf_strerror(more));
	return more;
}

static int run_op(struct workload *w)
{
	struct ops *ops = &w->ops;
	size_t begin = simworld_log_len(w->s->world);
	int err = w->config.pool.discard && ops->nr % 16 == 7 ? trim(w) : 0;
	if (!err)
		err = ops_step(ops);
	if (!err) {
		oracle_add_op(w->oracle, begin, simworld_log_len(w->s->world), ops);
	} else {
		char before[1200];
		say(before, sizeof(before), "%s", w->why);
		say(w->why, sizeof(w->why), "%s%s%s", ops->failure, before[0] ? ": " : "", before);
	}
	return err;
}

int workload_continue(struct workload *w, const struct workload_config *config, struct simpool *s)
{
	struct ops_config ops;
	memset(w, 0, sizeof(*w));
	w->config = *config;
	w->s = s;
	simpool_choose_stages(&s->config);
	int profile = config->profile >= 0 ? config->profile : (int)(config->pool.seed % WORKLOAD_NR);
	workload_ops_config(&ops, config->pool.seed, profile);
	ops.trace = config->trace;
	/* of what an earlier life left only the content is known */
	ops.strict_blocks = !s->torn_supers;
	simworld_record(w->s->world);
	if (simpool_open(w->s, false, w->why, sizeof(w->why)))
		return -1;
	w->opened = simworld_log_len(w->s->world);
	int err = ops_start(&w->ops, &ops, &w->s->env, w->s->pool);
	if (err) {
		say(w->why, sizeof(w->why), "%s", w->ops.failure);
		return err;
	}
	w->ops.remount = remount;
	w->ops.remount_arg = w;
	w->oracle = oracle_new(w->ops.model);
	for (unsigned k = 0; !err && k < config->nr_ops; k++)
		err = run_op(w);
	return err;
}

int workload_run(struct workload *w, const struct workload_config *config)
{
	struct simpool *s = simpool_bare(&config->pool);
	char why[1200];
	if (!simpool_mkfs(s, why, sizeof(why)))
		return workload_continue(w, config, s);
	memset(w, 0, sizeof(*w));
	say(w->why, sizeof(w->why), "%s", why);
	simpool_free(s);
	return -1;
}

void workload_free(struct workload *w)
{
	if (w->ops.model)
		ops_finish(&w->ops);
	oracle_free(w->oracle);
	simpool_free(w->s);
	memset(w, 0, sizeof(*w));
}
