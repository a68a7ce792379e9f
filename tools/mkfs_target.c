/* SPDX-License-Identifier: MIT */
#include "mkfs_target.h"

#include "cli.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* -- looking -------------------------------------------------------------------------------------------------------- */
static int identify_missing(const struct targets *ts, struct target *t)
{
	if (!ts->image_bytes) {
		cli_message("%s: no such file or device; to create an image file, say how large with --size", t->path);
		return -1;
	}
	char *copy = strdup(t->path);
	const char *dir = copy ? dirname(copy) : NULL;
	int err = !dir ? ENOMEM : stat(dir, &t->st) != 0 ? errno : 0;
	if (err)
		cli_message("%s: cannot create an image file in %s: %s", t->path, dir ? dir : "memory", strerror(err));
	free(copy);
	const char *slash = strrchr(t->path, '/');
	t->base = slash ? slash + 1 : t->path;
	t->action = TARGET_CREATE;
	t->size_bytes = ts->image_bytes;
	if (!err && !*t->base) {
		cli_message("%s: not the name of a file", t->path);
		return -1;
	}
	return err ? -1 : 0;
}

static int identify_file(const struct targets *ts, struct target *t)
{
	if (!ts->image_bytes || (uint64_t)t->st.st_size == ts->image_bytes)
		return 0;
	if (t->st.st_size != 0 && !ts->force) {
		char buf[CLI_SIZE_LEN];
		cli_message("%s: exists already and has %s; leave --size out to use it as it is, or use -f to change "
			    "its size", t->path, cli_size(buf, (uint64_t)t->st.st_size));
		return -1;
	}
	t->action = TARGET_RESIZE;
	t->size_bytes = ts->image_bytes;
	return 0;
}

static int identify_one(const struct targets *ts, struct target *t)
{
	char user[PROBE_TEXT];
	if (stat(t->path, &t->st) != 0) {
		if (errno == ENOENT)
			return identify_missing(ts, t);
		cli_message("%s: %s", t->path, strerror(errno));
		return -1;
	}
	if (!S_ISREG(t->st.st_mode) && !S_ISBLK(t->st.st_mode)) {
		cli_message("%s: is %s; a member is a block device or an image file", t->path,
			    S_ISDIR(t->st.st_mode) ? "a directory" : "neither a block device nor a regular file");
		return -1;
	}
	if (probe_user(&t->st, user)) {
		cli_message("%s: in use: %s; nothing was changed. -f does not overwrite what is in use: release it "
			    "first, or name another member", t->path, user);
		return -1;
	}
	if (probe_read_only(t->path, &t->st)) {
		cli_message("%s: the device is read-only; allow writing (a switch on the disk, or: blockdev --setrw %s), or "
			    "name another member", t->path, t->path);
		return -1;
	}
	return S_ISREG(t->st.st_mode) ? identify_file(ts, t) : 0;
}

/* What is wrong with having both, as the words between their names; NULL: nothing. */
static const char *overlap(const struct target *a, const struct target *b)
{
	bool a_new = a->action == TARGET_CREATE, b_new = b->action == TARGET_CREATE;
	dev_t dev;
	ino_t ino;
	if (a_new || b_new) {
		bool same = a_new && b_new && a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino &&
			    !strcmp(a->base, b->base);
		return same ? "is the same file as" : NULL;
	}
	if (S_ISBLK(a->st.st_mode) && S_ISBLK(b->st.st_mode)) {
		if (a->st.st_rdev == b->st.st_rdev)
			return "is the same device as";
		if (probe_whole_disk(a->st.st_rdev) == b->st.st_rdev)
			return "is a partition of";
		return probe_whole_disk(b->st.st_rdev) == a->st.st_rdev ? "has as a partition" : NULL;
	}
	if (a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino)
		return "is the same file as";
	if (pf_loop_backing(&a->st, &dev, &ino) && dev == b->st.st_dev && ino == b->st.st_ino)
		return "is the loop device of";
	if (pf_loop_backing(&b->st, &dev, &ino) && dev == a->st.st_dev && ino == a->st.st_ino)
		return "is the file behind";
	return NULL;
}

static int find_overlap(const struct targets *ts)
{
	for (unsigned i = 0; i < ts->nr; i++) {
		for (unsigned k = 0; k < i; k++) {
			const char *how = overlap(&ts->t[i], &ts->t[k]);
			if (!how)
				continue;
			cli_message("%s %s %s: each member can be given only once", ts->t[i].path, how, ts->t[k].path);
			return -1;
		}
	}
	return 0;
}

int targets_identify(struct targets *ts, char **paths, unsigned nr)
{
	/* The overlaps first: an image and its loop device would otherwise be refused for "in use". */
	int err = 0;
	for (unsigned i = 0; i < nr; i++) {
		struct target *t = &ts->t[i];
		*t = (struct target){ .path = paths[i] };
		if (stat(t->path, &t->st) != 0)
			t->action = TARGET_CREATE;
	}
	ts->nr = nr;
	for (unsigned i = 0; i < nr; i++) {
		if (ts->t[i].action == TARGET_CREATE)
			err |= identify_one(ts, &ts->t[i]);
	}
	if (err || find_overlap(ts) != 0)
		return -1;
	for (unsigned i = 0; i < nr; i++) {
		if (ts->t[i].action != TARGET_CREATE)
			err |= identify_one(ts, &ts->t[i]);
	}
	return err ? -1 : 0;
}

int targets_find(const struct targets *ts, const char *path)
{
	struct stat st;
	bool exists = stat(path, &st) == 0;
	for (unsigned i = 0; i < ts->nr; i++) {
		const struct target *t = &ts->t[i];
		if (!strcmp(t->path, path))
			return (int)i;
		if (!exists || t->action == TARGET_CREATE)
			continue;
		if (S_ISBLK(st.st_mode) ? S_ISBLK(t->st.st_mode) && t->st.st_rdev == st.st_rdev :
					  t->st.st_dev == st.st_dev && t->st.st_ino == st.st_ino)
			return (int)i;
	}
	return -1;
}

/* -- locking and judging -------------------------------------------------------------------------------------------- */
static int open_one(struct target *t, const struct pf_env *env)
{
	struct pf_diag diag = { 0 };
	char user[PROBE_TEXT];
	int err = pf_io_open(t->path, PF_IO_OPEN_WRITE, CLI_LOCK_WAIT_MS, env, &t->io, &diag);
	if (err == -PF_EMEMBER_BUSY)
		cli_message("%s: in use: %s; nothing was changed. -f does not overwrite what is in use: release it "
			    "first, or name another member", t->path,
			    probe_user(&t->st, user) ? user : "another program has it");
	else if (err == -EROFS || err == -EACCES || err == -EPERM)
		cli_message("%s: read-only: cannot be opened for writing (%s); allow writing, or name another member", t->path,
			    pf_strerror(err));
	else if (err)
		cli_fail(&diag, t->path, err);
	return err ? -1 : 0;
}

int targets_open(struct targets *ts, const struct pf_env *env)
{
	int err = 0;
	for (unsigned i = 0; i < ts->nr; i++) {
		struct target *t = &ts->t[i];
		if (t->action == TARGET_CREATE)
			continue;
		if (open_one(t, env) != 0)
			err = -1;
		else if (t->action == TARGET_USE)
			t->size_bytes = t->io->size_bytes;
		if (!probe_aligned(&t->st))
			cli_message("%s: warning: does not begin at a multiple of 4 KiB of its disk; writes to it will be slow",
				    t->path);
	}
	return err;
}

static int look_into(struct target *t)
{
	char text[PROBE_TEXT] = "";
	if (t->io->size_bytes == 0)
		return 0;
	int ours = probe_poolfs(t->io, t->found);
	int foreign = ours < 0 ? ours : probe_signatures(t->path, text);
	if (foreign < 0) {
		cli_message("%s: cannot be read: %s", t->path, pf_strerror(foreign));
		return -1;
	}
	t->has_table = strstr(text, "partition table") != NULL;
	size_t n = strlen(t->found);
	if (foreign)
		snprintf(t->found + n, sizeof(t->found) - n, "%s%s", n ? " and " : "", text);
	return 0;
}

int targets_judge(struct targets *ts)
{
	int err = 0;
	for (unsigned i = 0; i < ts->nr; i++) {
		struct target *t = &ts->t[i];
		if (!t->io)
			continue;
		if (look_into(t) != 0) {
			err = -1;
		} else if (t->found[0] && !ts->force) {
			cli_message("%s: contains %s; nothing was changed. Use -f to overwrite it, or name another member",
				    t->path, t->found);
			err = -1;
		}
	}
	return err;
}

/* -- changing ------------------------------------------------------------------------------------------------------- */
static int fail_errno(const struct target *t, const char *what)
{
	cli_message("%s: %s: %s", t->path, what, strerror(errno));
	return -1;
}

static int create_image(struct target *t, const struct pf_env *env)
{
	/* Private: what a filesystem hides from other users must not lie open in its image. */
	int fd = open(t->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_errno(t, "cannot create the image file");
	t->created = true;
	int err = ftruncate(fd, (off_t)t->size_bytes) != 0 ? fail_errno(t, "cannot get that size") : 0;
	close(fd);
	if (!err && stat(t->path, &t->st) != 0)
		err = fail_errno(t, "cannot be found again");
	return err ? err : open_one(t, env);
}

/* The descriptor that holds the lock stays open throughout, so nobody comes between. */
static int resize_image(struct target *t)
{
	int fd = open(t->path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return fail_errno(t, "cannot be opened");
	int err = ftruncate(fd, (off_t)t->size_bytes) != 0 ? fail_errno(t, "cannot get that size") : 0;
	close(fd);
	if (!err)
		t->io->size_bytes = t->size_bytes;
	return err;
}

int targets_prepare(struct targets *ts, const struct pf_env *env)
{
	for (unsigned i = 0; i < ts->nr; i++) {
		struct target *t = &ts->t[i];
		int err = 0;
		if (t->found[0] && (err = probe_wipe(t->path)) != 0) {
			cli_message("%s: cannot remove the old signatures: %s", t->path, pf_strerror(err));
			return -1;
		}
		if (t->action == TARGET_CREATE)
			err = create_image(t, env);
		else if (t->action == TARGET_RESIZE)
			err = resize_image(t);
		if (err)
			return -1;
	}
	return 0;
}

void targets_take(struct targets *ts, struct pf_io *ios[PF_MAX_MEMBERS])
{
	for (unsigned i = 0; i < ts->nr; i++) {
		ios[i] = ts->t[i].io;
		ts->t[i].io = NULL;
	}
}

void targets_close(struct targets *ts)
{
	for (unsigned i = 0; i < ts->nr; i++) {
		pf_io_close(ts->t[i].io);
		ts->t[i].io = NULL;
	}
}

void targets_undo(struct targets *ts)
{
	for (unsigned i = 0; i < ts->nr; i++) {
		if (ts->t[i].created)
			unlink(ts->t[i].path);
		ts->t[i].created = false;
	}
}

/* -- stand-ins ------------------------------------------------------------------------------------------------------ */
static int plan_read(struct pf_io *io, uint64_t off_bytes, void *buf, size_t len_bytes)
{
	(void)io, (void)off_bytes;
	memset(buf, 0, len_bytes);
	return 0;
}

static int plan_write(struct pf_io *io, uint64_t off_bytes, const void *buf, size_t len_bytes)
{
	(void)io, (void)off_bytes, (void)buf, (void)len_bytes;
	return -EROFS;
}

static int plan_flush(struct pf_io *io)
{
	(void)io;
	return 0;
}

static int plan_range(struct pf_io *io, uint64_t off_bytes, uint64_t len_bytes)
{
	(void)io, (void)off_bytes, (void)len_bytes;
	return -EROFS;
}

static void plan_close(struct pf_io *io)
{
	free(io->name);
	free(io);
}

static struct pf_io *plan_one(const struct target *t)
{
	static const struct pf_io_ops ops = {
		.read = plan_read, .write = plan_write, .flush = plan_flush,
		.discard = plan_range, .allocate = plan_range, .close = plan_close,
	};
	struct pf_io *io = calloc(1, sizeof(*io));
	if (!io || !(io->name = strdup(t->path))) {
		free(io);
		return NULL;
	}
	bool block = t->action != TARGET_CREATE && S_ISBLK(t->st.st_mode);
	io->ops = &ops;
	io->size_bytes = t->size_bytes;
	io->kind = block ? PF_IO_BLOCK_DEVICE : PF_IO_FILE;
	io->host_dev = block ? 0 : t->st.st_dev;
	io->fd = -1;
	return io;
}

int targets_plan(const struct targets *ts, struct pf_io *ios[PF_MAX_MEMBERS])
{
	for (unsigned i = 0; i < ts->nr; i++) {
		ios[i] = plan_one(&ts->t[i]);
		if (ios[i])
			continue;
		while (i--)
			pf_io_close(ios[i]);
		return -ENOMEM;
	}
	return 0;
}
