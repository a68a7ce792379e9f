/* SPDX-License-Identifier: MIT
 * poolfs sync: sync(2) does not reach a FUSE daemon, so the kernel's pages go first and the daemon is asked then. */
#include "cmd.h"

#include "poolfs.h"

#include <string.h>
#include <unistd.h>

static const struct cli_option options[] = { { 0 } };
static const char *const synopsis[] = { "DIR...", NULL };
static const struct cli_program program = {
	.name = "poolfs sync",
	.synopsis = synopsis,
	.summary = "Waits until everything in a mounted pool is durable.",
	.options = options,
	.usage_exit = FSCK_USAGE,
};

static int sync_one(const char *path)
{
	int fd = cmd_open_mounted(path);
	if (fd < 0)
		return FSCK_FAILED;
	/* both, as what the kernel could not write does not keep the rest from being made durable */
	int pages_err = syncfs(fd) != 0 ? errno : 0;
	int pool_err = ioctl(fd, POOLFS_IOC_SYNC) != 0 ? errno : 0;
	if (pool_err == ENOTRECOVERABLE)
		cli_message("%s: a member of the pool has failed, and what was written to it last is lost; everything else is durable; "
			    "'poolfs status' names it", path);
	else if (pool_err)
		cli_message("%s: not everything could be made durable: %s; the log of the daemon says why", path,
			    strerror(pool_err));
	else if (pages_err == ENOSPC)
		cli_message("%s: what was written lately found no room, and that much of it is lost: %s; make room in the pool, or "
			    "where its image files lie, and write it again; all the rest is durable",
			    path, strerror(pages_err));
	else if (pages_err)
		cli_message("%s: what was written lately could not all be written back, and that much of it is lost: %s; the log "
			    "of the daemon says why; all the rest is durable", path, strerror(pages_err));
	close(fd);
	return pool_err || pages_err ? FSCK_FAILED : FSCK_OK;
}

static int run(int argc, char **argv)
{
	int key = cli_next(&program, argc, argv);
	if (key != CLI_END)
		return FSCK_USAGE;
	if (optind == argc)
		return cli_usage(&program, "no directory given");
	int code = FSCK_OK;
	for (int i = optind; i < argc; i++)
		code |= sync_one(argv[i]);
	return code;
}

const struct cmd cmd_sync = { &program, run };
