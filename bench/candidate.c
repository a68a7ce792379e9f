/* SPDX-License-Identifier: MIT */
#include "candidate.h"

#include "cli.h"
#include "emptyfs.h"
#include "poolfs.h"
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>

enum { MAX_ARGS = SITE_MAX_MEMBERS + 16 };
enum peer_kind { PEER_FILESYSTEM, PEER_RAW_FILE, PEER_RAW_DEVICE, PEER_EMPTY, PEER_FUSE_FILE, PEER_FUSE_DEVICE };

struct candidate_peer {
	const char *name;
	enum peer_kind kind;
	bool pools; /* takes all members, the others the first only */
	const char *mkfs[MAX_ARGS - SITE_MAX_MEMBERS];
};
/* Nothing is discarded: that would give the host's blocks back. Nothing is left to be done in the background. */
static const struct candidate_peer peers[] = {
	{ "ext4",
	  PEER_FILESYSTEM,
	  false,
	  { "mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0" } },
	{ "xfs", PEER_FILESYSTEM, false, { "mkfs.xfs", "-q", "-f", "-K" } },
	{ "btrfs", PEER_FILESYSTEM, true, { "mkfs.btrfs", "-q", "-f", "-K", "-d", "single" } },
	{ "raw", PEER_RAW_FILE, false, { NULL } },
	{ "rawloop", PEER_RAW_DEVICE, false, { NULL } },
	{ "empty", PEER_EMPTY, false, { NULL } },
	{ "fuseraw", PEER_FUSE_FILE, false, { NULL } },
	{ "fuseloop", PEER_FUSE_DEVICE, false, { NULL } },
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

/* Takes @word apart. The number of members is 0 when it has none. */
static bool parse_pool(char word[CANDIDATE_NAME_LEN], struct candidate *out)
{
	*out = (struct candidate){ 0 };
	size_t len = strlen(word);
	if (len && word[len - 1] == 'i') {
		out->on_images = true;
		word[len - 1] = 0;
	}
	uint64_t version, members = 0;
	char *x = strchr(word, 'x');
	if (x) {
		*x = 0;
		if (!cli_parse_number(x + 1, CANDIDATE_MAX_MEMBERS, &members) || members == 0)
			return false;
	}
	if (!cli_parse_number(word, PF_VERSION_NEWEST, &version) || version < PF_VERSION_FIRST)
		return false;
	out->version = (unsigned)version;
	out->nr_members = (unsigned)members;
	return true;
}

bool candidate_add_versions(struct candidate all[CANDIDATE_MAX], unsigned *nr, const char *list)
{
	do {
		char word[CANDIDATE_NAME_LEN], copy[CANDIDATE_NAME_LEN];
		struct candidate pool;
		bool good = next_word(&list, word);
		memcpy(copy, word, sizeof(copy));
		if (!good || !parse_pool(copy, &pool)) {
			cli_message(
				"\"%s\" is not a format version (%d to %d), with \"x\" and the number of members (1 to "
				"%d) or \"i\" behind it if wanted",
				word, PF_VERSION_FIRST, PF_VERSION_NEWEST, CANDIDATE_MAX_MEMBERS);
			return false;
		}
		struct candidate *c = append(all, nr);
		if (!c)
			return false;
		*c = pool;
		snprintf(c->name, sizeof(c->name), "v%.*s", CANDIDATE_NAME_LEN - 2, word);
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
			cli_message(
				"\"%s\" is not a filesystem that can be compared with (ext4, xfs, btrfs, empty, fuseraw, fuseloop), nor raw "
				"or rawloop",
				word);
			return false;
		}
		struct candidate *c = append(all, nr);
		if (!c)
			return false;
		c->peer = peer;
		c->on_images = peer->kind == PEER_RAW_FILE || peer->kind == PEER_FUSE_FILE;
		snprintf(c->name, sizeof(c->name), "%s", peer->name);
	} while (list);
	return true;
}

unsigned candidate_members(const struct candidate *c, unsigned nr_members)
{
	if (c->peer && !c->peer->pools)
		return 1;
	return c->nr_members ? c->nr_members : nr_members;
}

bool candidate_reclaims(const struct candidate *c)
{
	struct pf_features features = pf_version_features(c->peer ? PF_VERSION_NEWEST : c->version);
	return pf_has(&features, PF_FEAT_RECLAIM);
}

/* -- filesystems of the kernel -------------------------------------------------------------------------------------- */
static int make_peer(struct site *site, const struct candidate_peer *peer, unsigned nr)
{
	const char *argv[MAX_ARGS];
	unsigned n = 0;
	while (peer->mkfs[n]) {
		argv[n] = peer->mkfs[n];
		n++;
	}
	for (unsigned i = 0; i < nr; i++)
		argv[n++] = site_member(site, i);
	argv[n] = NULL;
	return program_run(argv);
}

static int mount_peer(struct site *site, const struct candidate_peer *peer)
{
	int err = program_run(
		(const char *const[]){ "mount", "-t", peer->name, site_member(site, 0), site->mount_dir, NULL });
	site->mounted = !err;
	return err;
}

/* -- the empty filesystem ------------------------------------------------------------------------------------------- */
static bool is_empty(const struct candidate *c)
{
	return c->peer && c->peer->kind >= PEER_EMPTY;
}

static int mount_empty(struct site *site, const char *disk)
{
	int err = emptyfs_mount(site->mount_dir, disk, &site->empty);
	if (err)
		cli_message("%s: an empty FUSE filesystem cannot be mounted: %s", site->mount_dir, strerror(-err));
	site->mounted = !err;
	return err;
}

static int unmount_empty(struct site *site)
{
	int err = umount2(site->mount_dir, 0) < 0 ? -errno : 0;
	if (err)
		cli_message("%s: %s", site->mount_dir, strerror(-err));
	else if (waitpid(site->empty, NULL, 0) < 0)
		err = -errno;
	site->mounted = err != 0;
	return err;
}

/* -- up and down ---------------------------------------------------------------------------------------------------- */
int candidate_up(struct site *site, const struct candidate *c, const struct candidate_options *options)
{
	unsigned nr = candidate_members(c, options->nr_members);
	int err = options->loops && !c->on_images ? site_attach(site, nr) : 0;
	if (err)
		return err;
	if (!c->peer) {
		err = site_make_pool(site, nr, c->version, options->placement);
		return err ? err : site_mount_pool(site, nr, NULL);
	}
	if (is_empty(c))
		return mount_empty(site, c->peer->kind == PEER_EMPTY ? NULL : site_member(site, 0));
	if (c->peer->kind != PEER_FILESYSTEM)
		return 0;
	err = make_peer(site, c->peer, nr);
	return err ? err : mount_peer(site, c->peer);
}

/* Another mount namespace may have a copy of the mount, which keeps the filesystem alive after ours is gone; it would write
 * to the members of the next candidate. Read-only is a state of the filesystem, in all namespaces. */
static bool make_harmless(const struct site *site)
{
	return program_run((const char *const[]){ "mount", "-o", "remount,ro", site->mount_dir, NULL }) == 0;
}

static int unmount_peer(struct site *site)
{
	int err = program_run((const char *const[]){ "umount", site->mount_dir, NULL });
	site->mounted = err != 0;
	return err;
}

int candidate_down(struct site *site, const struct candidate *c)
{
	int err = 0;
	bool empty = is_empty(c);
	bool harmless = empty || (site->mounted && c->peer && make_harmless(site));
	if (site->mounted)
		err = empty ? unmount_empty(site) : c->peer ? unmount_peer(site) : site_unmount_pool(site);
	if (!err)
		err = site_detach(site, harmless);
	/* What the host has not written yet of one candidate must not be written while the next is measured. */
	site_settle(site);
	return err;
}

const char *candidate_raw(const struct site *site, const struct candidate *c)
{
	bool raw = c->peer && (c->peer->kind == PEER_RAW_FILE || c->peer->kind == PEER_RAW_DEVICE);
	return raw ? site_member(site, 0) : NULL;
}

void candidate_devices(const struct site *site, struct counter *out)
{
	*out = (struct counter){ 0 };
	for (unsigned i = 0; i < site->nr_members; i++) {
		if (site->devices[i][0])
			snprintf(out->devices[out->nr++], LOOP_NAME_LEN, "%s", site->devices[i]);
	}
}
