/* SPDX-License-Identifier: MIT */
#include "status_text.h"

#include "cli.h"
#include "json.h"

#include <string.h>


static void print_line(const char *name, const char *value)
{
	printf("%-10s ", name);
	cli_print_name(stdout, value);
	putchar('\n');
}

static void print_identity(const struct json_value *v)
{
	const char *label = json_get_string(v, "label", "");
	print_line("pool", json_get_string(v, "pool", "unknown"));
	if (*label)
		print_line("label", label);
}

static void print_version(const struct json_value *v)
{
	const struct json_value *features = json_get(v, "features");
	printf("%-10s %ju", "version", (uintmax_t)json_get_number(v, "version", 0));
	const char *separator = " (";
	for (const struct json_value *f = features ? features->children : NULL; f; f = f->next) {
		if (f->type != JSON_STRING)
			continue;
		printf("%s%s", separator, f->text);
		separator = ", ";
	}
	puts(*separator == ',' ? ")" : "");
}

static void print_state(const struct json_value *v, const char *state)
{
	if (!state)
		state = json_get_bool(v, "clean", false) ? "not mounted, clean" : "not mounted, was not unmounted cleanly";
	else if (json_get_bool(v, "failed", false))
		state = "mounted, read-only after an error: see the log of the daemon";
	else if (json_get_bool(v, "read_only", false) && !strcmp(state, "mounted"))
		state = "mounted, read-only";
	printf("%-10s %s, generation %ju\n", "state", state, (uintmax_t)json_get_number(v, "generation", 0));
}

static void print_percent(uint64_t part, uint64_t whole)
{
	if (whole)
		printf("%5.1f %%", 100.0 * (double)part / (double)whole);
	else
		printf("%7s", "-");
}

static void print_space(const struct json_value *v)
{
	char a[CLI_SIZE_LEN], b[CLI_SIZE_LEN], c[CLI_SIZE_LEN];
	uint64_t size = json_get_number(v, "total_bytes", 0), left = json_get_number(v, "free_bytes", 0);
	printf("%-10s %s, used %s, free %s (", "size", cli_size(a, size), cli_size(b, size - left), cli_size(c, left));
	print_percent(left, size);
	puts(")");
	printf("%-10s %s of %s set aside\n", "metadata", cli_size(a, json_get_number(v, "metadata_bytes", 0)),
	       cli_size(b, json_get_number(v, "metadata_share_bytes", 0)));
	if (json_get(v, "inodes"))
		printf("%-10s %ju\n", "inodes", (uintmax_t)json_get_number(v, "inodes", 0));
	uint64_t unverified = json_get_number(v, "no_csum_bytes", 0);
	if (unverified)
		printf("%-10s %s without checksums; 'poolfs scrub' fills them in\n", "unverified", cli_size(a, unverified));
	uint64_t lost = json_get_number(v, "lost_files", 0);
	if (lost)
		printf("%-10s what was written last to %ju file%s is lost in part (the log of the daemon says which): write it again, or "
		       "truncate or delete them\n", "lost", (uintmax_t)lost, lost == 1 ? "" : "s");
	uint64_t bad = json_get_number(v, "bad_groups", 0);
	if (bad)
		printf("%-10s %ju maps of free space cannot be used: run fsck.poolfs\n", "damaged", (uintmax_t)bad);
}

static void print_member(const struct json_value *m)
{
	char a[CLI_SIZE_LEN], b[CLI_SIZE_LEN];
	uint64_t size = json_get_number(m, "data_bytes", 0), left = json_get_number(m, "free_bytes", 0);
	printf("%3ju  %-6s  %-11s %-11s ", (uintmax_t)json_get_number(m, "id", 0), json_get_string(m, "kind", "-"),
	       cli_size(a, json_get_number(m, "size_bytes", 0)), cli_size(b, size - left));
	print_percent(left, size);
	printf("  %-8s  ", json_get_bool(m, "metadata", false) ? "yes" : "no");
	cli_print_name(stdout, json_get_string(m, "path", "?"));
	if (json_get(m, "direct_io") && !json_get_bool(m, "direct_io", true))
		fputs(" (buffered)", stdout);
	uint64_t errors = json_get_number(m, "errors", 0);
	if (errors)
		printf(" (%ju errors)", (uintmax_t)errors);
	if (json_get_bool(m, "failed", false))
		printf(" FAILED: %s; check the disk, unmount and run fsck.poolfs", json_get_string(m, "failure", "?"));
	putchar('\n');
}

void status_print(const struct json_value *v, const char *state)
{
	print_identity(v);
	print_version(v);
	print_line("placement", json_get_string(v, "placement", "unknown"));
	print_state(v, state);
	print_space(v);
	const struct json_value *members = json_get(v, "members");
	printf("%3s  %-6s  %-11s %-11s %7s  %-8s  %s\n", "id", "kind", "size", "used", "free", "metadata", "member");
	for (const struct json_value *m = members ? members->children : NULL; m; m = m->next)
		print_member(m);
}
