/* SPDX-License-Identifier: MIT
 * umount.fuse.poolfs: called by umount(8). Unmounts, and returns when the daemon has finished: the pool is then clean on its
 * members, and another mount, or the power switch, may follow.
 *
 * Whom to wait for: the mount itself says which process serves it (POOLFS_IOC_INFO). Where it cannot be asked (a mount of
 * another user, another PID namespace), the members named by the source of the mount in mountinfo are waited for: their locks. */
#include "clock.h"
#include "daemonize.h"
#include "elsewhere.h"
#include "holder.h"
#include "log.h"
#include "mountinfo.h"
#include "namespace.h"
#include "spec.h"
#include "unmount.h"
#include "utab.h"

#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define STEP_MS 50
#define EXPLAIN_MS 3000
#define STUCK_MS 3000 /* a process that has nothing more to do ends sooner, be there gigabytes to give back */
/* A mount in another namespace may stay for ever; what the daemon has still to write may not. */
#define LIMIT_ELSEWHERE_MS 60000
#define LIMIT_MS 600000

struct request {
	const char *dir;
	const char *name_space;
	bool lazy, force, read_only;
};

static const char usage[] =
	"Usage: umount.fuse.poolfs [-flnrv] [-N NAMESPACE] [-t TYPE] DIR\n"
	"Unmounts the pool on DIR and waits until it is clean on its members, or says what keeps it. Called by umount(8).\n"
	"  -f  unmount although not everything could be written\n"
	"  -l  take it out of the tree now, wait for nothing\n"
	"  -r  make it read-only if it cannot be unmounted\n"
	"  -N  in the mount namespace of this process or file\n"
	"  -n, -v, -t TYPE  accepted, change nothing\n";

/* Everything to the members while it can still be said that it failed. */
static int write_out(const struct request *r, int dir_fd)
{
	/* The first call may tell of a write that failed long ago, on a pool that was full: the program was told, and nothing of it
	 * is left that could still be written. */
	if ((syncfs(dir_fd) == 0 || syncfs(dir_fd) == 0) && ioctl(dir_fd, POOLFS_IOC_SYNC) == 0)
		return 0;
	int err = -errno;
	if (err == -ENOTRECOVERABLE) {
		say("%s: a member of the pool has failed, and what was written to it last is lost; everything else is durable: run "
		    "fsck.poolfs on all members before the next mount", r->dir);
		return 0;
	}
	if (err == -EROFS || err == -ENOTTY || err == -ENOTCONN || err == -ECONNABORTED)
		return 0; /* nothing to write, or nobody who could */
	say("%s: the pool cannot be written: %s", r->dir, strerror(-err));
	if (r->force)
		return 0;
	say("%s stays mounted; umount -f unmounts it and loses what is not on its members yet", r->dir);
	return err;
}

/* -- waiting for the end of the daemon ----------------------------------------------------------------------------------- */

struct wait {
	const struct request *r;
	const struct mountinfo *mi;
	int fd; /* of the daemon; -1: its members are watched */
	pid_t daemon;
	struct elsewhere elsewhere;
};

/* Waits for a moment. True when the daemon has let go of the pool. */
static bool has_ended(const struct wait *w, const struct spec *spec)
{
	struct pollfd p = { .fd = w->fd, .events = POLLIN };
	if (w->fd >= 0)
		return poll(&p, 1, STEP_MS) > 0;
	for (unsigned i = 0; i < spec->nr; i++) {
		if (holder_is_held(spec->paths[i], false)) {
			usleep(STEP_MS * 1000);
			return false;
		}
	}
	return true;
}

/* "process 12 (bash) on /mnt, process 15 (sleep) on /mnt and 2 more" */
static void list_elsewhere(const struct elsewhere *e, char *text, size_t cap)
{
	unsigned nr = e->nr_namespaces < ELSEWHERE_NAMED ? e->nr_namespaces : ELSEWHERE_NAMED;
	size_t len = 0;
	for (unsigned i = 0; i < nr && len < cap; i++)
		len += (size_t)snprintf(text + len, cap - len, "%sprocess %d (%s) on %.200s", i ? ", " : "",
					(int)e->named[i].pid, e->named[i].command, e->named[i].dir);
	if (e->nr_namespaces > nr && len < cap)
		snprintf(text + len, cap - len, " and %u more", e->nr_namespaces - nr);
}

static void explain(struct wait *w)
{
	char who[64] = "its daemon", where[1024];
	if (w->daemon)
		snprintf(who, sizeof(who), "its daemon, process %d,", (int)w->daemon);
	elsewhere_find(w->mi->major, w->mi->minor, w->daemon, &w->elsewhere);
	if (w->elsewhere.nr_namespaces == 0) {
		say("%s is unmounted; waiting for %s to finish: the pool is not clean on its members before%s", w->r->dir, who,
		    w->elsewhere.nr_denied ? " (it may still be mounted in a namespace of other users, which root can see)" : "");
		return;
	}
	list_elsewhere(&w->elsewhere, where, sizeof(where));
	say("%s is unmounted here, but %s goes on: the pool is still mounted in other mount namespaces, those of %s; unmount it "
	    "there too (nsenter -t %d -m umount %s), or end these processes; waiting for that",
	    w->r->dir, who, where, (int)w->elsewhere.named[0].pid, w->elsewhere.named[0].dir);
}

static int give_up(struct wait *w, long waited_ms)
{
	elsewhere_find(w->mi->major, w->mi->minor, w->daemon, &w->elsewhere);
	if (waited_ms < LIMIT_MS && w->elsewhere.nr_namespaces == 0)
		return 0;
	say("%s: gave up waiting after %ld s: it is unmounted here, but the pool is not clean on its members yet%s", w->r->dir,
	    waited_ms / 1000, w->elsewhere.nr_namespaces ? ", as it is mounted in other mount namespaces" : "");
	return -ETIMEDOUT;
}

/* The daemon is done with the pool, but the kernel does not let the process end. */
static bool is_stuck(const struct wait *w, unsigned *nr_seen)
{
	*nr_seen = holder_has_ended(w->daemon) ? *nr_seen + 1 : 0;
	if (*nr_seen * STEP_MS < STUCK_MS)
		return false;
	say("%s is unmounted, and the pool is as clean as it can be: but its daemon, process %d, ends only when a member of the pool that "
	    "does not answer gives back what was asked of it, or the machine is switched off; so long that member is in use",
	    w->r->dir, (int)w->daemon);
	return true;
}

/* Says what it is waiting for when that takes long. 0 or -ETIMEDOUT. */
static int wait_for_end(struct wait *w)
{
	char dir[PATH_MAX];
	struct spec spec = { 0 };
	/* bound to another directory here: still in use, and in sight */
	if (mountinfo_find_device("/proc/self/mountinfo", w->mi->major, w->mi->minor, dir) == 0)
		return 0;
	int err = w->fd < 0 ? spec_parse(w->mi->source, &spec, NULL) : 0;
	long start = clock_now_ms(), next_limit = LIMIT_ELSEWHERE_MS;
	bool explained = false;
	unsigned nr_ended = 0;
	while (!err && !has_ended(w, &spec) && !is_stuck(w, &nr_ended)) {
		long waited = clock_now_ms() - start;
		if (!explained && waited >= EXPLAIN_MS) {
			explain(w);
			explained = true;
		}
		if (waited >= next_limit) {
			err = give_up(w, waited);
			next_limit = waited + STEP_MS * 20;
		}
	}
	spec_free(&spec);
	return err == -ETIMEDOUT ? err : 0;
}

/* -- unmounting ---------------------------------------------------------------------------------------------------------- */

static int unmount(const struct request *r, const char *path)
{
	int flags = (r->lazy ? UNMOUNT_LAZY : 0) | (r->force ? UNMOUNT_FORCE : 0);
	int err = unmount_path(path, flags);
	if (!err)
		return 0;
	if (r->read_only && mount(NULL, path, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0) {
		say("%s: in use; it is read-only now", r->dir);
		return 0;
	}
	say("%s: %s%s", r->dir, err == -EBUSY ? "in use" : strerror(-err),
	    err == -EBUSY ? "; fuser -m shows by whom" : "");
	return err;
}

/* The same mount as before: unmounting was replaced by making it read-only. */
static bool is_mounted(const char *path, const struct mountinfo *before)
{
	struct mountinfo now;
	return mountinfo_find(path, &now) == 0 && now.major == before->major && now.minor == before->minor;
}

static int run(const struct request *r)
{
	char path[PATH_MAX];
	struct mountinfo mi;
	if (r->name_space && namespace_enter(r->name_space))
		return EXIT_SYSTEM;
	int err = mountinfo_canonical(r->dir, path);
	if (!err)
		err = mountinfo_find(path, &mi);
	if (err || strcmp(mi.type, FS_TYPE) != 0) {
		say("%s: %s", r->dir, err && err != -ENOENT ? strerror(-err) : "no poolfs is mounted there");
		return EXIT_MOUNT;
	}
	struct wait w = { .r = r, .mi = &mi, .fd = -1 };
	int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd >= 0) {
		w.fd = holder_of_mount(dir_fd, &w.daemon);
		if (!r->lazy)
			err = write_out(r, dir_fd);
		close(dir_fd);
	}
	if (!err)
		err = unmount(r, path);
	bool gone = !err && !is_mounted(path, &mi);
	if (gone && !r->name_space)
		utab_remove(path);
	if (gone && !r->lazy)
		err = wait_for_end(&w);
	if (w.fd >= 0)
		close(w.fd);
	return err ? EXIT_MOUNT : 0;
}

int main(int argc, char **argv)
{
	struct request r = { 0 };
	int c;
	log_set_name("umount.fuse.poolfs");
	opterr = 0;
	/* umount(8) puts the directory first */
	while ((c = getopt(argc, argv, "flnrvN:t:h")) != -1) {
		switch (c) {
		case 'f':
			r.force = true;
			break;
		case 'l':
			r.lazy = true;
			break;
		case 'r':
			r.read_only = true;
			break;
		case 'N':
			r.name_space = optarg;
			break;
		case 'n':
		case 'v':
		case 't':
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			say("unknown option '-%c'", optopt);
			fputs(usage, stderr);
			return EXIT_USAGE;
		}
	}
	if (argc - optind != 1) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	r.dir = argv[optind];
	return run(&r);
}
