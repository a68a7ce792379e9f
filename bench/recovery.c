/* SPDX-License-Identifier: MIT */
#include "recovery.h"

#include "cli.h"
#include "daemon.h"
#include "poolfs.h"
#include "stats.h"
#include "workspace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAX_FILE_BYTES = 256 << 20,
	FILE_SHARE = 8,    /* of the member */
	OPS_PER_LOOK = 16, /* between two looks at the generation */
	FULL_PERCENT = 95,
	MAX_TRIES = 8,
	MAX_CAPACITY = 10000000,
};
/* No checkpoint by time. */
static const char options[] = "commit=3600";

/* What is in the pool, and what has to be in it again. */
struct contents {
	int fd; /* of the file or the directory */
	char path[PATH_MAX];
	uint64_t nr_blocks;
	uint32_t *versions; /* how often each block was written */
	uint64_t nr_files, state;
};

/* -- contents ------------------------------------------------------------------------------------------------------- */
static void fill_block(unsigned char *buffer, uint64_t block, uint32_t version)
{
	uint64_t state = block << 32 | version;
	for (size_t at = 0; at < WS_BLOCK; at += sizeof(uint64_t)) {
		uint64_t word = stats_random(&state);
		memcpy(buffer + at, &word, sizeof(word));
	}
}

static int write_block(struct contents *c, uint64_t block)
{
	unsigned char buffer[WS_BLOCK];
	fill_block(buffer, block, c->versions[block]);
	ssize_t n = pwrite(c->fd, buffer, WS_BLOCK, (off_t)(block * WS_BLOCK));
	return n == WS_BLOCK ? 0 : n < 0 ? -errno : -ENOSPC;
}

static int open_file(const struct recovery *r, struct contents *c)
{
	uint64_t bytes = r->member_bytes / FILE_SHARE;
	c->nr_blocks = (bytes < MAX_FILE_BYTES ? bytes : MAX_FILE_BYTES) / WS_BLOCK;
	c->versions = calloc(c->nr_blocks, sizeof(*c->versions));
	c->fd = open(c->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int err = !c->versions ? -ENOMEM : c->fd < 0 ? -errno : 0;
	for (uint64_t i = 0; i < c->nr_blocks && !err; i++)
		err = cli_interrupted() ? -EINTR : write_block(c, i);
	return err;
}

static int open_dir(struct contents *c)
{
	if (mkdir(c->path, 0700) != 0)
		return -errno;
	c->fd = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return c->fd < 0 ? -errno : 0;
}

static int contents_open(const struct recovery *r, struct contents *c)
{
	*c = (struct contents){ .fd = -1, .state = r->seed };
	bool writes = r->kind == RECOVERY_WRITES;
	if ((size_t)snprintf(c->path, sizeof(c->path), "%s/%s", r->site->mount_dir, writes ? "file" : "dir") >=
	    sizeof(c->path))
		return -ENAMETOOLONG;
	return writes ? open_file(r, c) : open_dir(c);
}

static void contents_free(struct contents *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->versions);
	*c = (struct contents){ .fd = -1 };
}

static int create_one(struct contents *c)
{
	char name[32];
	snprintf(name, sizeof(name), "f%ju", (uintmax_t)c->nr_files);
	int fd = openat(c->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	c->nr_files++;
	return 0;
}

static int operate(struct contents *c)
{
	if (!c->versions)
		return create_one(c);
	uint64_t block = stats_random(&c->state) % c->nr_blocks;
	c->versions[block]++;
	int err = write_block(c, block);
	return err ? err : fsync(c->fd) == 0 ? 0 : -errno;
}

/* -- comparing ------------------------------------------------------------------------------------------------------ */
static int compare_file(const struct contents *c)
{
	unsigned char want[WS_BLOCK], got[WS_BLOCK];
	for (uint64_t i = 0; i < c->nr_blocks; i++) {
		fill_block(want, i, c->versions[i]);
		ssize_t n = pread(c->fd, got, WS_BLOCK, (off_t)(i * WS_BLOCK));
		if (n == WS_BLOCK && !memcmp(want, got, WS_BLOCK))
			continue;
		cli_message("%s: block %ju is not what was written and synced", c->path, (uintmax_t)i);
		return n < 0 ? -errno : -EBADMSG;
	}
	return 0;
}

static int compare_dir(const struct contents *c)
{
	uint64_t nr = 0;
	DIR *dir = opendir(c->path);
	if (!dir)
		return -errno;
	/* All names are different and were created by us, so counting them is enough. */
	for (struct dirent *e = readdir(dir); e; e = readdir(dir))
		nr += e->d_name[0] == 'f';
	closedir(dir);
	if (nr == c->nr_files)
		return 0;
	cli_message("%s: %ju files of %ju that were synced", c->path, (uintmax_t)nr, (uintmax_t)c->nr_files);
	return -EBADMSG;
}

/* -- a full log ----------------------------------------------------------------------------------------------------- */
/* Nothing is in the log. */
static int checkpoint(struct contents *c, uint64_t *generation)
{
	if (syncfs(c->fd) != 0 || ioctl(c->fd, POOLFS_IOC_SYNC) != 0)
		return -errno;
	return daemon_generation(c->fd, generation);
}

/* Until there is a checkpoint, or @max operations are done. */
static int fill(struct contents *c, uint64_t generation, uint64_t max, uint64_t *nr_ops, bool *checkpoint_came)
{
	int err = 0;
	*checkpoint_came = false;
	for (*nr_ops = 0; *nr_ops < max && !err && !*checkpoint_came; ++*nr_ops) {
		uint64_t now = generation;
		err = cli_interrupted() ? -EINTR : operate(c);
		if (!err && (*nr_ops + 1) % OPS_PER_LOOK == 0)
			err = daemon_generation(c->fd, &now);
		*checkpoint_came = now != generation;
	}
	return err;
}

/* -EAGAIN: there was a checkpoint, and r->capacity says now when. */
static int fill_log(struct recovery *r, struct contents *c)
{
	uint64_t generation, now, wanted = r->capacity ? r->capacity * FULL_PERCENT / 100 : MAX_CAPACITY;
	bool came;
	int err = checkpoint(c, &generation);
	if (!err)
		err = fill(c, generation, wanted ? wanted : 1, &r->nr_ops, &came);
	if (!err && fsync(c->fd) != 0)
		err = -errno;
	if (!err)
		err = daemon_generation(c->fd, &now);
	if (err)
		return err;
	if (now == generation)
		return r->capacity ? 0 : -EOVERFLOW;
	r->capacity = r->nr_ops;
	return -EAGAIN;
}

/* -- a round -------------------------------------------------------------------------------------------------------- */
static int make_full(struct recovery *r, struct contents *c)
{
	int err = site_make_pool(r->site, r->nr_members, r->version, NULL);
	if (!err)
		err = site_mount_pool(r->site, r->nr_members, options);
	if (err)
		return err;
	err = contents_open(r, c);
	if (!err)
		err = fill_log(r, c);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	if (err && err != -EAGAIN && err != -EINTR)
		cli_message("filling the log of %s: %s", r->site->mount_dir, strerror(-err));
	return err;
}

/* With a new pool for each try: after a checkpoint the next one may come sooner. */
static int prepare(struct recovery *r, struct contents *c)
{
	struct daemon daemon;
	int err = -EAGAIN;
	for (unsigned i = 0; i < MAX_TRIES && err == -EAGAIN; i++) {
		if (r->site->mounted && site_unmount_pool(r->site) != 0)
			return -EBUSY;
		contents_free(c);
		err = make_full(r, c);
	}
	if (err == -EAGAIN)
		cli_message("the pool makes checkpoints while its log is being filled");
	if (err)
		return err;
	err = daemon_find(r->site->mount_dir, &daemon);
	if (!err)
		err = daemon_kill(&daemon);
	if (err)
		cli_message("killing the daemon of %s: %s", r->site->mount_dir, strerror(-err));
	return err;
}

/* Over the mount that is dead. It answers when what was being written can be opened. */
static int mount_again(struct recovery *r, struct contents *c, int64_t *took_ns)
{
	site_settle(r->site);
	workspace_drop_page_cache();
	int64_t start = workspace_now_ns();
	int err = site_mount_pool(r->site, r->nr_members, NULL);
	if (err) {
		r->site->mounted = true; /* the dead one */
		return err;
	}
	c->fd = open(c->path, O_RDONLY | O_CLOEXEC);
	*took_ns = workspace_now_ns() - start;
	if (c->fd >= 0)
		return 0;
	err = -errno;
	cli_message("%s: after recovery: %s", c->path, strerror(-err));
	return err;
}

int recovery_round(struct recovery *r, int64_t *took_ns)
{
	struct contents c = { .fd = -1 };
	int err = prepare(r, &c);
	if (!err)
		err = mount_again(r, &c, took_ns);
	if (!err)
		err = c.versions ? compare_file(&c) : compare_dir(&c);
	contents_free(&c);
	int down_err = r->site->mounted ? site_unmount_pool(r->site) : 0;
	if (!err && !down_err)
		err = site_check_pool(r->site, r->nr_members);
	return err ? err : down_err;
}
