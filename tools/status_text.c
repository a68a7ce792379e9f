/* SPDX-License-Identifier: MIT */
#include "status_text.h"

#include "cli.h"
#include "json.h"


static void print_line(const char *name, const char *value)
{
	printf("%-10s ", name);
	cli_print_name(stdout, value);
	putchar('\n');
}

static void print_identity(const struct json_value *v)
{
	const char *label = json_get_string(v, "label", "");
	print_line("pool", json_get_string(v, "pool_uuid", "unknown"));
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
	const char *how = json_get_bool(v, "read_only", false) ? ", read-only" : "";
	if (!state)
		printf("%-10s %s\n", "state", json_get_bool(v, "clean", false) ? "not mounted, clean" :
										"not mounted, was not unmounted cleanly");
	else
		printf("%-10s %s%s\n", "state", state, how);
	char t[CLI_TIME_LEN];
	int64_t written_ns = (int64_t)json_get_number(v, "written_ns", 0);
	if (written_ns)
		printf("%-10s %s, generation %ju\n", "written", cli_time(t, written_ns),
		       (uintmax_t)json_get_number(v, "generation", 0));
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
	uint64_t size = json_get_number(v, "size_bytes", 0), left = json_get_number(v, "free_bytes", 0);
	printf("%-10s %s, used %s, free %s (", "size", cli_size(a, size), cli_size(b, size - left), cli_size(c, left));
	print_percent(left, size);
	puts(")");
	if (json_get(v, "inodes"))
		printf("%-10s %ju\n", "inodes", (uintmax_t)json_get_number(v, "inodes", 0));
	uint64_t unverified = json_get_number(v, "no_csum_bytes", 0);
	if (unverified)
		printf("%-10s %s without checksums; 'poolfs scrub' fills them in\n", "unverified", cli_size(a, unverified));
}

static void print_member(const struct json_value *m)
{
	char a[CLI_SIZE_LEN], b[CLI_SIZE_LEN];
	uint64_t size = json_get_number(m, "size_bytes", 0), left = json_get_number(m, "free_bytes", 0);
	printf("%3ju  %-5s  %-11s %-11s ", (uintmax_t)json_get_number(m, "id", 0), json_get_string(m, "kind", "-"),
	       cli_size(a, size), cli_size(b, size - left));
	print_percent(left, size);
	printf("  %6ju  %-4s  ", (uintmax_t)json_get_number(m, "errors", 0),
	       json_get_bool(m, "metadata", false) ? "yes" : "no");
	cli_print_name(stdout, json_get_string(m, "name", "?"));
	if (json_get(m, "direct") && !json_get_bool(m, "direct", true))
		fputs(" (buffered)", stdout);
	putchar('\n');
}

int status_print(const char *text, const char *state)
{
	struct json_value *v = json_parse(text);
	if (!v || v->type != JSON_OBJECT) {
		cli_message("the pool's answer is not understood; --json shows it as it is");
		json_free(v);
		return -1;
	}
	print_identity(v);
	print_version(v);
	print_line("placement", json_get_string(v, "placement", "unknown"));
	print_state(v, state);
	print_space(v);
	const struct json_value *members = json_get(v, "members");
	printf("%3s  %-5s  %-11s %-11s %7s  %6s  %-4s  %s\n", "id", "kind", "size", "used", "free", "errors", "meta",
	       "member");
	for (const struct json_value *m = members ? members->children : NULL; m; m = m->next)
		print_member(m);
	json_free(v);
	return 0;
}
