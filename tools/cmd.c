/* SPDX-License-Identifier: MIT
 * What the verbs share. */
#include "cmd.h"

#include "poolfs.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cmd_operands(const struct cli_program *program, int argc)
{
	if (optind == argc)
		return cli_usage(program, "no member given");
	if ((unsigned)(argc - optind) > PF_MAX_MEMBERS)
		return cli_usage(program, "%d members given; a pool has at most %u", argc - optind, PF_MAX_MEMBERS);
	return FSCK_OK;
}

int cmd_members(const struct cli_program *program, int argc, char **argv, struct members *out)
{
	int code = cmd_operands(program, argc);
	return code ? code : cli_fsck_exit(members_find(argv + optind, (unsigned)(argc - optind), out));
}

bool cmd_is_directory(int argc, char **argv)
{
	struct stat st;
	return argc - optind == 1 && stat(argv[optind], &st) == 0 && S_ISDIR(st.st_mode);
}

int cmd_open_mounted(const char *path)
{
	struct poolfs_ioc_info info;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		cli_message("%s: %s", path, strerror(errno));
		return -1;
	}
	if (ioctl(fd, POOLFS_IOC_INFO, &info) == 0)
		return fd;
	if (errno == ENOTTY || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS)
		cli_message("%s: is not on a mounted poolfs; name a directory of a mounted pool", path);
	else
		cli_message("%s: the mounted pool does not answer: %s", path, strerror(errno));
	close(fd);
	return -1;
}
