/* SPDX-License-Identifier: MIT
 * mount.poolfs: the helper that mount(8) calls, and the daemon. */
#include "clock.h"
#include "daemon.h"
#include "daemonize.h"
#include "find.h"
#include "holder.h"
#include "log.h"
#include "mountinfo.h"
#include "options.h"
#include "spec.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For a daemon that has been told to end and is about to take its mount away. */
#define MOUNTED_PATIENCE_MS 1000

/* -f: everything that mounting would check of the members. */
static int check_only(const struct options *opt, const struct spec *spec, const struct pf_env *env)
{
	struct pf_diag diag = { "" };
	struct pf_set *set;
	int err = pf_set_open((const char *const *)spec->paths, spec->nr, opt->read_only ? 0 : PF_SET_WRITE, 0, env, &set,
			      &diag);
	if (err) {
		say("%s", diag.text[0] ? diag.text : pf_strerror(err));
		return EXIT_MOUNT;
	}
	pf_set_close(set);
	return 0;
}

/* A pool that was opened read-only cannot be written, whatever the kernel is told. */
static bool opened_read_only(const char *dir)
{
	struct poolfs_ioc_info info = { 0 };
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool read_only = ioctl(fd, POOLFS_IOC_INFO, &info) == 0 && info.flags & POOLFS_INFO_READ_ONLY;
	close(fd);
	return read_only;
}

/* mount(8) calls the helper for a remount too, but this is the kernel's business: hand it back. */
static int remount(const struct options *opt)
{
	char path[PATH_MAX];
	struct mountinfo mi;
	if (mountinfo_canonical(opt->dir, path) || mountinfo_find(path, &mi) || strcmp(mi.type, FS_TYPE) != 0) {
		say("no poolfs is mounted on '%s'", opt->dir);
		return EXIT_MOUNT;
	}
	if (!opt->read_only && opened_read_only(path)) {
		say("'%s' was mounted read-only: unmount it and mount it again to write to it", opt->dir);
		return EXIT_MOUNT;
	}
	char *list = options_for_remount(opt->given ? opt->given : "");
	if (!list) {
		say("out of memory");
		return EXIT_SYSTEM;
	}
	execlp("mount", "mount", opt->fake ? "-if" : "-i", "-o", list, opt->spec, opt->dir, (char *)NULL);
	say("cannot run mount(8): %s", strerror(errno));
	free(list);
	return EXIT_SYSTEM;
}

/* A pool of a newer program, which this one can read but not write: better read-only than not at all, and said. */
static void yield_to_features(struct options *opt, const struct spec *spec, const struct pf_env *env)
{
	struct pf_diag diag = { "" };
	if (opt->read_only || !pf_scan_only_readable((const char *const *)spec->paths, spec->nr, env, &diag))
		return;
	say("%s; mounting it read-only", diag.text);
	opt->read_only = true;
}

/* The lock of a daemon that is just finishing is waited for when the pool is opened. That of a pool which is mounted, and
 * stays so, is not worth it. */
static bool is_mounted(const struct options *opt, const struct spec *spec)
{
	char dir[PATH_MAX];
	unsigned i = 0;
	const int64_t since_ms = clock_now_ms(); /* asking takes time, too */
	for (;;) {
		while (i < spec->nr && !holder_is_held(spec->paths[i], !opt->read_only))
			i++;
		if (i == spec->nr || !holder_find_mount(spec->paths[i], dir))
			return false;
		if (clock_now_ms() - since_ms >= MOUNTED_PATIENCE_MS)
			break;
		usleep(50000);
	}
	say("%s: in use: its pool is mounted on %s; unmount it there first (umount %s)", spec->paths[i], dir, dir);
	return true;
}

static int mount_pool(struct options *opt, struct spec *spec)
{
	struct pf_env env = daemon_env();
	struct pf_diag diag = { "" };
	/* by the paths as they were written: the user is to recognise them */
	int err = find_members(spec, opt->search, opt->nr_search, &env, &diag);
	if (!err)
		err = spec_make_absolute(spec);
	if (err) {
		say("%s", diag.text[0] ? diag.text : pf_strerror(err));
		return EXIT_MOUNT;
	}
	if (is_mounted(opt, spec))
		return EXIT_MOUNT;
	yield_to_features(opt, spec, &env);
	if (opt->fake)
		return check_only(opt, spec, &env);
	int report_fd = -1;
	daemon_block_signals();
	if (!opt->foreground) {
		report_fd = daemonize_fork();
		if (report_fd < 0)
			return EXIT_SYSTEM;
	}
	return daemon_run(opt, spec, report_fd);
}

static int run(struct options *opt)
{
	struct pf_diag diag = { "" };
	struct spec spec;
	if (opt->remount)
		return remount(opt);
	int code = EXIT_USAGE;
	if (spec_parse(opt->spec, &spec, &diag))
		say("%s", diag.text[0] ? diag.text : "out of memory");
	else
		code = mount_pool(opt, &spec);
	spec_free(&spec);
	return code;
}

int main(int argc, char **argv)
{
	struct options opt;
	int code = EXIT_USAGE;
	enum options_result result = options_parse(argc, argv, &opt);
	if (result == OPTIONS_DONE)
		code = 0;
	if (result == OPTIONS_RUN) {
		log_set_verbose(opt.verbose);
		code = run(&opt);
	}
	options_free(&opt);
	return code;
}
