/* SPDX-License-Identifier: MIT
 *
 * Purpose: what all command line programs share: option tables, messages, sizes, progress, exit codes.
 *
 * Invariants
 *   I1  One table drives option parsing, --help and the lint that compares --help with the man page.
 *   I2  Results go to standard output, everything else to standard error as "program: lowercase text".
 *   I3  Exit codes are named here and nowhere else; main() returns them.
 *
 * Uses: poolfs.h (error texts), libuuid.
 */
#ifndef TOOLS_CLI_H
#define TOOLS_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* -- exit codes ----------------------------------------------------------------------------------------------------- */
enum cli_mkfs_exit { MKFS_OK = 0, MKFS_FAILED = 1 };
enum cli_fsck_exit { /* bits of fsck(8); poolfs(8) uses them too */
	FSCK_OK = 0,
	FSCK_CORRECTED = 1,
	FSCK_LEFT = 4, /* damage is left */
	FSCK_FAILED = 8,
	FSCK_USAGE = 16,
	FSCK_CANCELLED = 32,
};
/* The fsck exit code of a negative code of the format library. */
int cli_fsck_exit(int err);

/* -- options -------------------------------------------------------------------------------------------------------- */
enum { CLI_LONG = 256 }; /* keys from here on have no short letter */
enum { CLI_MAX_OPTIONS = 32 };

struct cli_option {
	int key;
	const char *name; /* long name, or NULL */
	const char *arg;  /* name of its argument; NULL: none; "[X]": optional */
	const char *help;
};
struct cli_program {
	const char *name;               /* as in messages: "mkfs.poolfs", "poolfs scrub" */
	const char *const *synopsis;    /* what follows the name, one string per form, NULL ends */
	const char *summary;            /* one sentence */
	const struct cli_option *options; /* a zero row ends; --help and --version are added */
	int usage_exit;
};
enum { CLI_END = -1, CLI_BAD = -2 };

/* Next option's key (its argument in optarg), CLI_END, or CLI_BAD after a message; leaves the program on --help and
 * --version. optind is then the first operand. Operands and options may be mixed. */
int cli_next(const struct cli_program *program, int argc, char **argv);
/* Message about a wrong command line, with where to find help. Returns program->usage_exit. */
int cli_usage(const struct cli_program *program, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Parts of --help, for a program that has several tables. @program NULL: the options that all have. */
void cli_print_synopsis(FILE *out, const char *lead, const struct cli_program *program);
void cli_print_options(FILE *out, const struct cli_program *program);
void cli_print_version(const char *name);

/* How long to wait for the lock of a daemon that is just finishing: fusermount3 -u returns before it has. */
enum { CLI_LOCK_WAIT_MS = 3000 };

/* -- messages ------------------------------------------------------------------------------------------------------- */
void cli_set_name(const char *name);
void cli_message(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The diag's text, or, when it is empty, "@what: text of @err". */
struct pf_diag;
void cli_fail(const struct pf_diag *diag, const char *what, int err);
/* Flushes standard output. False, after a message, when not everything could be written. */
bool cli_finish_stdout(void);
/* pf_env_system() with messages of the engine up to @level on standard error. */
struct pf_env;
const struct pf_env *cli_env(int level);

/* -- values --------------------------------------------------------------------------------------------------------- */
/* "4096", "64K", "1.5G", "10GiB" (powers of 1024), "10GB" (powers of 1000). */
bool cli_parse_size(const char *text, uint64_t *bytes);
bool cli_parse_number(const char *text, uint64_t max, uint64_t *out);
bool cli_parse_uuid(const char *text, uint8_t uuid[16]);

enum { CLI_SIZE_LEN = 32, CLI_UUID_LEN = 37, CLI_TIME_LEN = 32 };
const char *cli_size(char buf[CLI_SIZE_LEN], uint64_t bytes); /* "1.5 GiB" */
const char *cli_uuid(char buf[CLI_UUID_LEN], const uint8_t uuid[16]);
const char *cli_time(char buf[CLI_TIME_LEN], int64_t ns); /* local time, "2026-11-30 11:48:00" */
/* @text with control characters, and bytes that are not UTF-8, as \ooo, so that a line stays a line. */
void cli_print_name(FILE *out, const char *text);

/* -- progress ------------------------------------------------------------------------------------------------------- */
struct cli_progress { /* a line on standard error when that is a terminal, and only after a second */
	bool enabled;
	int64_t started_ns, shown_ns;
	bool line;         /* a line is on the terminal */
	const char *label;
};
void cli_progress_init(struct cli_progress *p, bool wanted);
void cli_progress(struct cli_progress *p, const char *label, uint64_t done, uint64_t total);
/* Takes the line away, before other output and at the end. */
void cli_progress_clear(struct cli_progress *p);

/* -- interruption --------------------------------------------------------------------------------------------------- */
/* SIGINT, SIGTERM and SIGHUP set a flag; a second one kills. */
void cli_catch_signals(void);
bool cli_interrupted(void);

#endif
