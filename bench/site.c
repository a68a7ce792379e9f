/* SPDX-License-Identifier: MIT */
#include "site.h"

#include "cli.h"
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_ARGS = SITE_MAX_MEMBERS + 16 };

/* -- members -------------------------------------------------------------------------------------------------------- */
static int write_zeros(int fd, uint64_t bytes)
{
	static const unsigned char zeros[1 << 20];
	for (uint64_t at = 0; at < bytes; at += sizeof(zeros)) {
		size_t len = bytes - at < sizeof(zeros) ? (size_t)(bytes - at) : sizeof(zeros);
		if (pwrite(fd, zeros, len, (off_t)at) != (ssize_t)len)
			return errno ? -errno : -ENOSPC;
		if (cli_interrupted())
			return -EINTR;
	}
	return fsync(fd) == 0 ? 0 : -errno;
}

static int make_image(const char *path, uint64_t bytes, bool sparse)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	errno = 0;
	int err = sparse ? (ftruncate(fd, (off_t)bytes) == 0 ? 0 : -errno) : write_zeros(fd, bytes);
	close(fd);
	return err;
}

/* @path becomes "@dir/@name". */
static int join(char **path, const char *dir, const char *name)
{
	if (asprintf(path, "%s/%s", dir, name) >= 0)
		return 0;
	*path = NULL;
	return -ENOMEM;
}

static int make_dirs(struct site *site, const char *workdir)
{
	/* Absolute: the daemon changes its directory. */
	char *real = realpath(workdir, NULL);
	int err = real ? join(&site->dir, real, "poolfs-bench.XXXXXX") : -errno;
	free(real);
	if (!err && !mkdtemp(site->dir)) {
		err = -errno;
		free(site->dir);
		site->dir = NULL;
	}
	if (!err)
		err = join(&site->mount_dir, site->dir, "mnt");
	return err ? err : mkdir(site->mount_dir, 0700) == 0 ? 0 : -errno;
}

int site_open(struct site *site, const char *workdir, unsigned nr_members, uint64_t member_bytes, bool sparse)
{
	*site = (struct site){ .nr_members = nr_members };
	int err = make_dirs(site, workdir);
	for (unsigned i = 0; i < nr_members && !err; i++) {
		char name[32];
		snprintf(name, sizeof(name), "member%u", i);
		err = join(&site->images[i], site->dir, name);
		if (!err)
			err = make_image(site->images[i], member_bytes, sparse);
	}
	if (err)
		cli_message("%s: %s", workdir, strerror(-err));
	return err;
}

int site_detach(struct site *site, bool harmless)
{
	int err = 0;
	for (unsigned i = 0; i < site->nr_members; i++) {
		if (!site->devices[i][0])
			continue;
		int bad = loop_detach(site->devices[i]);
		if (bad == -EBUSY && harmless)
			bad = 0;
		if (bad)
			cli_message("%s: cannot be detached: %s", site->devices[i], strerror(-bad));
		else
			site->devices[i][0] = 0;
		err = err ? err : bad;
	}
	return err;
}

bool site_close(struct site *site)
{
	bool good = !site->mounted && site_detach(site, false) == 0;
	for (unsigned i = 0; i < site->nr_members && good; i++) {
		if (site->images[i])
			unlink(site->images[i]);
	}
	if (good && site->mount_dir)
		good = rmdir(site->mount_dir) == 0 || errno == ENOENT;
	if (good && site->dir)
		good = rmdir(site->dir) == 0;
	if (!good)
		cli_message("%s is left behind: unmount what is in it, then remove it", site->dir);
	for (unsigned i = 0; i < site->nr_members; i++)
		free(site->images[i]);
	free(site->mount_dir);
	free(site->dir);
	return good;
}

const char *site_member(const struct site *site, unsigned i)
{
	return site->devices[i][0] ? site->devices[i] : site->images[i];
}

int site_attach(struct site *site, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		int err = loop_attach(site->images[i], site->devices[i]);
		if (err) {
			cli_message("%s: no loop device with direct I/O: %s", site->images[i], strerror(-err));
			return err;
		}
	}
	return 0;
}

void site_settle(const struct site *site)
{
	int fd = open(site->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		syncfs(fd);
		close(fd);
	}
}

/* -- pools ---------------------------------------------------------------------------------------------------------- */
int site_make_pool(const struct site *site, unsigned nr, unsigned version, const char *placement)
{
	const char *argv[MAX_ARGS];
	char number[16];
	unsigned n = 0;
	snprintf(number, sizeof(number), "%u", version);
	argv[n++] = "mkfs.poolfs";
	argv[n++] = "-q";
	argv[n++] = "-f";
	argv[n++] = "--format-version";
	argv[n++] = number;
	if (placement) {
		argv[n++] = "--placement";
		argv[n++] = placement;
	}
	for (unsigned i = 0; i < nr; i++)
		argv[n++] = site_member(site, i);
	argv[n] = NULL;
	return program_run(argv);
}

/* Members joined by colons; those in their paths, and backslashes, get a backslash. NULL: no memory. */
static char *make_spec(const struct site *site, unsigned nr)
{
	size_t len = 1;
	for (unsigned i = 0; i < nr; i++)
		len += 2 * strlen(site_member(site, i)) + 1;
	char *spec = malloc(len), *out = spec;
	for (unsigned i = 0; i < nr && spec; i++) {
		if (i)
			*out++ = ':';
		for (const char *p = site_member(site, i); *p; p++) {
			if (*p == ':' || *p == '\\')
				*out++ = '\\';
			*out++ = *p;
		}
	}
	if (spec)
		*out = 0;
	return spec;
}

int site_mount_pool(struct site *site, unsigned nr, const char *options)
{
	char *spec = make_spec(site, nr);
	if (!spec)
		return -ENOMEM;
	const char *argv[] = { "mount.poolfs", spec, site->mount_dir, options ? "-o" : NULL, options, NULL };
	int err = program_run(argv);
	free(spec);
	site->mounted = !err;
	return err;
}

int site_unmount_pool(struct site *site)
{
	/* umount(8) returns before the daemon has finished; its helper waits. */
	int err = program_run((const char *const[]){ "umount.fuse.poolfs", site->mount_dir, NULL });
	site->mounted = err != 0;
	return err;
}

int site_check_pool(const struct site *site, unsigned nr)
{
	const char *argv[MAX_ARGS] = { "fsck.poolfs", "-n" };
	for (unsigned i = 0; i < nr; i++)
		argv[2 + i] = site_member(site, i);
	return program_run(argv);
}
