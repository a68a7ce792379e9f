/* SPDX-License-Identifier: MIT
 *
 * Purpose: the verbs of poolfs(8). A verb is a row in poolfs.c and a function here.
 *
 * Invariants
 *   I1  A verb parses its own command line by its own option table and returns the exit code.
 *   I2  Exit codes are those of fsck(8), for all verbs.
 *
 * Uses: cli, members.
 */
#ifndef TOOLS_CMD_H
#define TOOLS_CMD_H

#include "cli.h"
#include "members.h"

struct cmd {
	const struct cli_program *program; /* its name is "poolfs VERB" */
	int (*run)(int argc, char **argv);
};

extern const struct cmd cmd_dump, cmd_scrub, cmd_status, cmd_sync, cmd_trim, cmd_upgrade;

/* Are there operands, and not too many? 0 or an exit code, after a message. */
int cmd_operands(const struct cli_program *program, int argc);
/* The operands as members, complete. 0 or an exit code, after a message. */
int cmd_members(const struct cli_program *program, int argc, char **argv, struct members *out);

/* Is the only operand a directory? Then it means the pool that is mounted there. */
bool cmd_is_directory(int argc, char **argv);
/* A directory or file of a mounted pool, open for requests; -1 after a message. */
int cmd_open_mounted(const char *path);

#endif
