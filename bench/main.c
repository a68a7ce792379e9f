/* SPDX-License-Identifier: MIT
 * poolfs-bench: measures. A new mode is a row below. */
#include "mode.h"

#include <string.h>

static const struct mode *const modes[] = { &mode_run, &mode_compare, &mode_mount };
enum { NR_MODES = sizeof(modes) / sizeof(modes[0]) };

static const char *mode_name(const struct mode *mode)
{
	return mode->program->name + strlen("poolfs-bench ");
}

static void print_modes(FILE *out)
{
	fputs("Usage: poolfs-bench MODE [OPTION]... [DIR]\n"
	      "Measures how fast a filesystem is, and compares.\n\nModes:\n",
	      out);
	for (unsigned i = 0; i < NR_MODES; i++)
		fprintf(out, "  %-10s %s\n", mode_name(modes[i]), modes[i]->program->summary);
}

static void print_help(void)
{
	print_modes(stdout);
	for (unsigned i = 0; i < NR_MODES; i++) {
		putchar('\n');
		cli_print_synopsis(stdout, "", modes[i]->program);
		cli_print_options(stdout, modes[i]->program);
	}
	puts("\nOptions of every mode:");
	cli_print_options(stdout, NULL);
	puts("\nMetrics:");
	for (unsigned i = 0; i < NR_METRICS; i++)
		printf("  %-26s %s\n", metric_table[i].key, metric_table[i].title);
}

int main(int argc, char **argv)
{
	cli_set_name("poolfs-bench");
	const char *word = argc > 1 ? argv[1] : "";
	if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
		print_help();
		return cli_finish_stdout() ? BENCH_OK : BENCH_FAILED;
	}
	if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
		cli_print_version("poolfs-bench");
		return cli_finish_stdout() ? BENCH_OK : BENCH_FAILED;
	}
	for (unsigned i = 0; i < NR_MODES; i++) {
		if (strcmp(word, mode_name(modes[i])) != 0)
			continue;
		cli_set_name(modes[i]->program->name);
		cli_catch_signals();
		return modes[i]->run(argc - 1, argv + 1);
	}
	if (*word)
		cli_message("\"%s\" is not a mode", word);
	else
		cli_message("no mode given");
	print_modes(stderr);
	return BENCH_USAGE;
}
