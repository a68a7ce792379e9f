/* SPDX-License-Identifier: MIT */
#include "candidate.h"

#include "cli.h"
#include "poolfs.h"
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_ARGS = 32 };

struct candidate_peer {
	const char *name;
	bool pools; /* takes all members, the others the first only */
	const char *mkfs[MAX_ARGS - CANDIDATE_MAX_MEMBERS];
};
/* Nothing is discarded: that would give the host's blocks back. Nothing is left to be done in the background. */
static const struct candidate_peer peers[] = {
	{ "ext4", false, { "mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0" } },
	{ "xfs", false, { "mkfs.xfs", "-q", "-f", "-K" } },
	{ "btrfs", true, { "mkfs.btrfs", "-q", "-f", "-K", "-d", "single" } },
};
enum { NR_PEERS = sizeof(peers) / sizeof(peers[0]) };

/* -- lists ---------------------------------------------------------------------------------------------------------- */
/* The next word of *@list, which becomes NULL behind the last one. False when it is none. */
static bool next_word(const char **list, char word[CANDIDATE_NAME_LEN])
{
	size_t len = strcspn(*list, ",");
	snprintf(word, CANDIDATE_NAME_LEN, "%.*s", (int)len, *list);
	*list = (*list)[len] ? *list + len + 1 : NULL;
	return len > 0 && len < CANDIDATE_NAME_LEN;
}

static struct candidate *append(struct candidate all[CANDIDATE_MAX], unsigned *nr)
{
	if (*nr == CANDIDATE_MAX) {
		cli_message("at most %d candidates can be compared", CANDIDATE_MAX);
		return NULL;
	}
	all[*nr] = (struct candidate){ 0 };
	return &all[(*nr)++];
}

bool candidate_add_versions(struct candidate all[CANDIDATE_MAX], unsigned *nr, const char *list)
{
	do {
		char word[CANDIDATE_NAME_LEN];
		uint64_t version;
		if (!next_word(&list, word) || !cli_parse_number(word, PF_VERSION_NEWEST, &version) ||
		    version < PF_VERSION_FIRST) {
			cli_message("\"%s\" is not a format version (%d to %d)", word, PF_VERSION_FIRST,
				    PF_VERSION_NEWEST);
			return false;
		}
		struct candidate *c = append(all, nr);
		if (!c)
			return false;
		c->version = (unsigned)version;
		snprintf(c->name, sizeof(c->name), "v%u", c->version);
	} while (list);
	return true;
}

bool candidate_add_peers(struct candidate all[CANDIDATE_MAX], unsigned *nr, const char *list)
{
	do {
		char word[CANDIDATE_NAME_LEN];
		const struct candidate_peer *peer = NULL;
		bool good = next_word(&list, word);
		for (unsigned i = 0; i < NR_PEERS && good; i++)
			peer = strcmp(word, peers[i].name) ? peer : &peers[i];
		if (!peer) {
			cli_message("\"%s\" is not a filesystem that can be compared with (ext4, xfs, btrfs)", word);
			return false;
		}
		struct candidate *c = append(all, nr);
		if (!c)
			return false;
		c->peer = peer;
		snprintf(c->name, sizeof(c->name), "%s", peer->name);
	} while (list);
	return true;
}

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

static int make_image(const char *path, uint64_t bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	errno = 0;
	int err = write_zeros(fd, bytes);
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

int site_open(struct site *site, const char *workdir, unsigned nr_members, uint64_t member_bytes)
{
	*site = (struct site){ .nr_members = nr_members };
	int err = make_dirs(site, workdir);
	for (unsigned i = 0; i < nr_members && !err; i++) {
		char name[32];
		snprintf(name, sizeof(name), "member%u", i);
		err = join(&site->images[i], site->dir, name);
		if (!err)
			err = make_image(site->images[i], member_bytes);
	}
	if (err)
		cli_message("%s: %s", workdir, strerror(-err));
	return err;
}

/* @harmless: whoever still has a device cannot write to it. */
static int detach_members(struct site *site, bool harmless)
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
	bool good = !site->mounted && detach_members(site, false) == 0;
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

static const char *member_path(const struct site *site, unsigned i)
{
	return site->loops ? site->devices[i] : site->images[i];
}

static int attach_members(struct site *site)
{
	for (unsigned i = 0; i < site->nr_members && site->loops; i++) {
		int err = loop_attach(site->images[i], site->devices[i]);
		if (err) {
			cli_message("%s: no loop device with direct I/O: %s", site->images[i], strerror(-err));
			return err;
		}
	}
	return 0;
}

/* -- pools ---------------------------------------------------------------------------------------------------------- */
static int make_pool(struct site *site, unsigned version)
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
	if (site->placement) {
		argv[n++] = "--placement";
		argv[n++] = site->placement;
	}
	for (unsigned i = 0; i < site->nr_members; i++)
		argv[n++] = member_path(site, i);
	argv[n] = NULL;
	return program_run(argv);
}

/* Members joined by colons; those in their paths, and backslashes, get a backslash. NULL: no memory. */
static char *make_spec(const struct site *site)
{
	size_t len = 1;
	for (unsigned i = 0; i < site->nr_members; i++)
		len += 2 * strlen(member_path(site, i)) + 1;
	char *spec = malloc(len), *out = spec;
	for (unsigned i = 0; i < site->nr_members && spec; i++) {
		if (i)
			*out++ = ':';
		for (const char *p = member_path(site, i); *p; p++) {
			if (*p == ':' || *p == '\\')
				*out++ = '\\';
			*out++ = *p;
		}
	}
	if (spec)
		*out = 0;
	return spec;
}

static int mount_pool(struct site *site)
{
	char *spec = make_spec(site);
	if (!spec)
		return -ENOMEM;
	int err = program_run((const char *const[]){ "mount.poolfs", spec, site->mount_dir, NULL });
	free(spec);
	return err;
}

/* -- peers ---------------------------------------------------------------------------------------------------------- */
static int make_peer(struct site *site, const struct candidate_peer *peer)
{
	const char *argv[MAX_ARGS];
	unsigned n = 0;
	while (peer->mkfs[n]) {
		argv[n] = peer->mkfs[n];
		n++;
	}
	for (unsigned i = 0; i < (peer->pools ? site->nr_members : 1); i++)
		argv[n++] = member_path(site, i);
	argv[n] = NULL;
	return program_run(argv);
}

static int mount_peer(struct site *site, const struct candidate_peer *peer)
{
	return program_run(
		(const char *const[]){ "mount", "-t", peer->name, member_path(site, 0), site->mount_dir, NULL });
}

/* -- up and down ---------------------------------------------------------------------------------------------------- */
int candidate_up(struct site *site, const struct candidate *c)
{
	int err = attach_members(site);
	if (!err)
		err = c->peer ? make_peer(site, c->peer) : make_pool(site, c->version);
	if (!err)
		err = c->peer ? mount_peer(site, c->peer) : mount_pool(site);
	site->mounted = !err;
	return err;
}

/* What the host has not written yet of one candidate must not be written while the next is measured. */
static void settle(const struct site *site)
{
	int fd = open(site->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		syncfs(fd);
		close(fd);
	}
}

/* Another mount namespace may have a copy of the mount, which keeps the filesystem alive after ours is gone; it would write
 * to the members of the next candidate. Read-only is a state of the filesystem, in all namespaces. */
static bool make_harmless(const struct site *site)
{
	return program_run((const char *const[]){ "mount", "-o", "remount,ro", site->mount_dir, NULL }) == 0;
}

int candidate_down(struct site *site, const struct candidate *c)
{
	int err = 0;
	bool harmless = site->mounted && c->peer && make_harmless(site);
	/* umount(8) returns before the daemon has finished; its helper waits. */
	if (site->mounted)
		err = program_run(
			(const char *const[]){ c->peer ? "umount" : "umount.fuse.poolfs", site->mount_dir, NULL });
	site->mounted = err != 0;
	if (!err)
		err = detach_members(site, harmless);
	settle(site);
	return err;
}
