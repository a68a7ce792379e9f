/* SPDX-License-Identifier: MIT */
#include "cli.h"

#include "poolfs.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *program_name = "poolfs";

/* -- messages ------------------------------------------------------------------------------------------------------- */
void cli_set_name(const char *name)
{
	program_name = name;
}

static void message(const char *fmt, va_list ap)
{
	fflush(stdout);
	flockfile(stderr);
	fprintf(stderr, "%s: ", program_name);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	funlockfile(stderr);
}

void cli_message(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	message(fmt, ap);
	va_end(ap);
}

void cli_fail(const struct pf_diag *diag, const char *what, int err)
{
	if (diag && diag->text[0])
		cli_message("%s", diag->text);
	else
		cli_message("%s: %s", what, pf_strerror(err));
}

bool cli_finish_stdout(void)
{
	if (!ferror(stdout) && fflush(stdout) == 0)
		return true;
	cli_message("standard output: %s", strerror(errno));
	return false;
}

static enum pf_log_level log_level;

static void log_message(void *arg, enum pf_log_level level, const char *text)
{
	(void)arg;
	if (level <= log_level)
		cli_message("%s", text);
}

const struct pf_env *cli_env(int level)
{
	static struct pf_env env;
	env = *pf_env_system();
	env.log = log_message;
	log_level = (enum pf_log_level)level;
	return &env;
}

/* -- exit codes ----------------------------------------------------------------------------------------------------- */
int cli_fsck_exit(int err)
{
	if (err == 0)
		return FSCK_OK;
	if (err == -EINTR)
		return FSCK_CANCELLED;
	return pf_is_damage(err) ? FSCK_LEFT : FSCK_FAILED;
}

/* -- options -------------------------------------------------------------------------------------------------------- */
enum { KEY_HELP = 'h', KEY_VERSION = 'V' };
static const struct cli_option common_options[] = {
	{ KEY_HELP, "help", NULL, "show this help and exit" },
	{ KEY_VERSION, "version", NULL, "show the version and exit" },
	{ 0 },
};

enum { HELP_COLUMN = 28, HELP_WIDTH = 80 };

/* @text behind what fills the line up to HELP_COLUMN, broken between words. */
static void print_wrapped(FILE *out, const char *text)
{
	size_t column = HELP_COLUMN;
	while (*text) {
		size_t word = strcspn(text, " ");
		if (column > HELP_COLUMN && column + 1 + word > HELP_WIDTH) {
			fprintf(out, "\n%*s", HELP_COLUMN, "");
			column = HELP_COLUMN;
		}
		column += (size_t)fprintf(out, "%s%.*s", column > HELP_COLUMN ? " " : "", (int)word, text);
		text += word + (text[word] == ' ');
	}
	fputc('\n', out);
}

static void print_options(FILE *out, const struct cli_option *o)
{
	for (; o->key; o++) {
		char left[80];
		size_t n = 0;
		if (o->key < CLI_LONG)
			n += (size_t)snprintf(left + n, sizeof(left) - n, "  -%c%s", o->key, o->name ? ", " : "");
		else
			n += (size_t)snprintf(left + n, sizeof(left) - n, "      ");
		if (o->name)
			n += (size_t)snprintf(left + n, sizeof(left) - n, "--%s", o->name);
		if (o->arg && o->arg[0] == '[' && o->name)
			snprintf(left + n, sizeof(left) - n, "[=%s", o->arg + 1);
		else if (o->arg)
			snprintf(left + n, sizeof(left) - n, " %s", o->arg);
		if (strlen(left) < HELP_COLUMN)
			fprintf(out, "%-*s", HELP_COLUMN, left);
		else
			fprintf(out, "%s\n%*s", left, HELP_COLUMN, "");
		print_wrapped(out, o->help);
	}
}

void cli_print_version(const char *name)
{
	printf("%s %s (format versions %d to %d, default %d)\n", name, POOLFS_VERSION, PF_VERSION_FIRST, PF_VERSION_NEWEST,
	       PF_VERSION_DEFAULT);
}

void cli_print_synopsis(FILE *out, const char *lead, const struct cli_program *program)
{
	for (unsigned i = 0; program->synopsis[i]; i++)
		fprintf(out, "%*s%s%s %s\n", (int)strlen(lead), i ? "" : lead, *lead ? " " : "", program->name,
			program->synopsis[i]);
}

void cli_print_options(FILE *out, const struct cli_program *program)
{
	print_options(out, program ? program->options : common_options);
}

static void print_help(const struct cli_program *program)
{
	cli_print_synopsis(stdout, "Usage:", program);
	printf("%s\n\nOptions:\n", program->summary);
	print_options(stdout, program->options);
	print_options(stdout, common_options);
}

static unsigned add_options(const struct cli_option *o, struct option *longs, unsigned nr_longs, char *shorts,
			    size_t shorts_cap)
{
	for (; o->key; o++) {
		int has_arg = !o->arg ? no_argument : o->arg[0] == '[' ? optional_argument : required_argument;
		if (o->name)
			longs[nr_longs++] = (struct option){ o->name, has_arg, NULL, o->key };
		if (o->key < CLI_LONG) {
			size_t n = strlen(shorts);
			snprintf(shorts + n, shorts_cap - n, "%c%s", o->key,
				 has_arg == no_argument ? "" : has_arg == required_argument ? ":" : "::");
		}
	}
	return nr_longs;
}

int cli_usage(const struct cli_program *program, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	message(fmt, ap);
	va_end(ap);
	fprintf(stderr, "Try '%s --help' for more information.\n", program->name);
	return program->usage_exit;
}

static const struct cli_option *find_option(const struct cli_option *o, int key)
{
	for (; o->key; o++) {
		if (o->key == key)
			return o;
	}
	return NULL;
}

/* getopt's optopt is the key of a known option that was used wrongly, an unknown letter, or 0 for an unknown word. */
static int bad_option(const struct cli_program *program, int result, char **argv)
{
	const struct cli_option *row = find_option(program->options, optopt);
	if (!row)
		row = find_option(common_options, optopt);
	const char *what = result == ':' ? "needs an argument" : "takes no argument";
	if (row && row->name)
		cli_usage(program, "--%s %s", row->name, what);
	else if (row)
		cli_usage(program, "-%c %s", row->key, what);
	else if (optopt)
		cli_usage(program, "-%c is not an option", optopt);
	else
		cli_usage(program, "%s is not an option", argv[optind - 1]);
	return CLI_BAD;
}

int cli_next(const struct cli_program *program, int argc, char **argv)
{
	struct option longs[CLI_MAX_OPTIONS] = { 0 };
	char shorts[4 * CLI_MAX_OPTIONS] = ":";
	unsigned n = add_options(program->options, longs, 0, shorts, sizeof(shorts));
	add_options(common_options, longs, n, shorts, sizeof(shorts));
	opterr = 0;
	int key = getopt_long(argc, argv, shorts, longs, NULL);
	switch (key) {
	case -1:
		return CLI_END;
	case '?':
	case ':':
		return bad_option(program, key, argv);
	case KEY_HELP:
		print_help(program);
		exit(cli_finish_stdout() ? 0 : program->usage_exit);
	case KEY_VERSION:
		cli_print_version(program->name);
		exit(cli_finish_stdout() ? 0 : program->usage_exit);
	default:
		return key;
	}
}

/* -- progress ------------------------------------------------------------------------------------------------------- */
static int64_t monotonic_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

void cli_progress_init(struct cli_progress *p, bool wanted)
{
	*p = (struct cli_progress){ .enabled = wanted && isatty(STDERR_FILENO) };
	p->started_ns = p->shown_ns = monotonic_ns();
}

void cli_progress(struct cli_progress *p, const char *label, uint64_t done, uint64_t total)
{
	int64_t now = monotonic_ns();
	/* Nothing in the first second: short work needs no line. Then five times a second. */
	if (!p->enabled || now - p->started_ns < 1000000000 || now - p->shown_ns < 200000000)
		return;
	p->shown_ns = now;
	p->line = true;
	double part = total ? (double)done / (double)total : 0;
	if (part > 1)
		part = 1;
	fprintf(stderr, "\r%s: %5.1f %%", label, 100 * part);
	if (part > 0.02) {
		int64_t left_s = (int64_t)((double)(now - p->started_ns) / 1e9 * (1 - part) / part);
		fprintf(stderr, ", %jd:%02jd:%02jd left", (intmax_t)(left_s / 3600), (intmax_t)(left_s / 60 % 60),
			(intmax_t)(left_s % 60));
	}
	fputs("\033[K", stderr);
	fflush(stderr);
}

void cli_progress_clear(struct cli_progress *p)
{
	if (p->line)
		fputs("\r\033[K", stderr);
	p->line = false;
}

/* -- interruption --------------------------------------------------------------------------------------------------- */
static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	interrupted = 1;
	signal(sig, SIG_DFL);
}

void cli_catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		/* Without SA_RESTART: a question on the terminal ends, too. */
		struct sigaction sa = { .sa_handler = on_signal };
		sigaction(signals[i], &sa, NULL);
	}
}

bool cli_interrupted(void)
{
	return interrupted;
}
