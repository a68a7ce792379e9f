/* SPDX-License-Identifier: MIT
 * umount.fuse.poolfs: called by umount(8). Unmounts, and returns when the daemon has finished: the pool is then clean on its
 * members, and another mount, or the power switch, may follow.
 *
 * Whom to wait for: the mount itself says which process serves it (POOLFS_IOC_INFO). Where it cannot be asked (a mount of
 * another user, another PID namespace), the members named by the source of the mount in mountinfo are waited for: their locks. */
#include "daemonize.h"
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
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

struct request {
	const char *dir;
	const char *name_space;
	bool lazy, force, read_only;
};

static const char usage[] =
	"Usage: umount.fuse.poolfs [-flnrv] [-N NAMESPACE] [-t TYPE] DIR\n"
	"Unmounts the pool on DIR and waits until it is clean on its members. Called by umount(8).\n"
	"  -f  unmount although not everything could be written\n"
	"  -l  take it out of the tree now, wait for nothing\n"
	"  -r  make it read-only if it cannot be unmounted\n"
	"  -N  in the mount namespace of this process or file\n"
	"  -n, -v, -t TYPE  accepted, change nothing\n";

/* True when @pid is still the process that started at @start_time. */
static bool is_process(uint32_t pid, uint64_t start_time)
{
	char path[64], line[1024];
	bool same = false;
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	if (fgets(line, sizeof(line), f)) {
		const char *p = strrchr(line, ')');
		for (int i = 0; p && i < 20; i++)
			p = strchr(p + 1, ' ');
		same = p && strtoull(p, NULL, 10) == start_time;
	}
	fclose(f);
	return same;
}

/* A descriptor that becomes readable when the daemon has ended, or -1. */
static int daemon_fd(int dir_fd)
{
	struct poolfs_ioc_info info;
	if (ioctl(dir_fd, POOLFS_IOC_INFO, &info) < 0)
		return -1;
	int fd = pidfd_open((pid_t)info.pid, 0);
	if (fd >= 0 && !is_process(info.pid, info.start_time)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Everything to the members while it can still be said that it failed. */
static int write_out(const struct request *r, int dir_fd)
{
	/* The first call may tell of a write that failed long ago, on a pool that was full: the program was told, and nothing of it
	 * is left that could still be written. */
	if ((syncfs(dir_fd) == 0 || syncfs(dir_fd) == 0) && ioctl(dir_fd, POOLFS_IOC_SYNC) == 0)
		return 0;
	int err = -errno;
	if (err == -EROFS || err == -ENOTTY || err == -ENOTCONN || err == -ECONNABORTED)
		return 0; /* nothing to write, or nobody who could */
	say("%s: the pool cannot be written: %s", r->dir, strerror(-err));
	if (r->force)
		return 0;
	say("%s stays mounted; umount -f unmounts it and loses what is not on its members yet", r->dir);
	return err;
}

static bool is_held(const char *path)
{
	struct stat st;
	if (path[0] != '/' || stat(path, &st) < 0)
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC | (S_ISBLK(st.st_mode) ? O_EXCL : 0));
	if (fd < 0)
		return errno == EBUSY;
	bool held = S_ISREG(st.st_mode) && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	close(fd);
	return held;
}

static void wait_for_members(const char *source)
{
	struct spec spec;
	if (spec_parse(source, &spec, NULL) == 0) {
		for (unsigned i = 0; i < spec.nr;) {
			if (is_held(spec.paths[i]))
				usleep(50000);
			else
				i++;
		}
	}
	spec_free(&spec);
}

static void wait_for_end(int fd, const char *source)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	if (fd < 0) {
		wait_for_members(source);
		return;
	}
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
}

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
	int daemon = -1;
	int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd >= 0) {
		daemon = daemon_fd(dir_fd);
		if (!r->lazy)
			err = write_out(r, dir_fd);
		close(dir_fd);
	}
	if (!err)
		err = unmount(r, path);
	if (!err && !r->name_space && !is_mounted(path, &mi))
		utab_remove(path);
	if (!err && !r->lazy && !is_mounted(path, &mi))
		wait_for_end(daemon, mi.source);
	if (daemon >= 0)
		close(daemon);
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
