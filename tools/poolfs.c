/* SPDX-License-Identifier: MIT
 * poolfs: one command with verbs. A new verb is a row below. */
#include "cmd.h"

#include <string.h>

static const struct cmd *const verbs[] = { &cmd_status, &cmd_scrub, &cmd_dump, &cmd_sync, &cmd_trim, &cmd_upgrade };
enum { NR_VERBS = sizeof(verbs) / sizeof(verbs[0]) };

static const char *verb_name(const struct cmd *verb)
{
	return verb->program->name + strlen("poolfs ");
}

static void print_verbs(FILE *out)
{
	fputs("Usage: poolfs VERB [OPTION]... [MEMBER...|DIR]\n"
	      "Looks at and looks after pools.\n\nVerbs:\n", out);
	for (unsigned i = 0; i < NR_VERBS; i++)
		fprintf(out, "  %-10s %s\n", verb_name(verbs[i]), verbs[i]->program->summary);
}

static void print_help(void)
{
	print_verbs(stdout);
	for (unsigned i = 0; i < NR_VERBS; i++) {
		putchar('\n');
		cli_print_synopsis(stdout, "", verbs[i]->program);
		cli_print_options(stdout, verbs[i]->program);
	}
	puts("\nOptions of poolfs and of every verb:");
	cli_print_options(stdout, NULL);
}

int main(int argc, char **argv)
{
	cli_set_name("poolfs");
	const char *word = argc > 1 ? argv[1] : "";
	if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
		print_help();
		return cli_finish_stdout() ? FSCK_OK : FSCK_FAILED;
	}
	if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
		cli_print_version("poolfs");
		return cli_finish_stdout() ? FSCK_OK : FSCK_FAILED;
	}
	for (unsigned i = 0; i < NR_VERBS; i++) {
		if (strcmp(word, verb_name(verbs[i])) != 0)
			continue;
		cli_set_name(verbs[i]->program->name);
		return verbs[i]->run(argc - 1, argv + 1);
	}
	if (*word)
		cli_message("\"%s\" is not a verb", word);
	else
		cli_message("no verb given");
	print_verbs(stderr);
	return FSCK_USAGE;
}
