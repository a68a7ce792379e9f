/* SPDX-License-Identifier: MIT */
#include "options.h"

#include "log.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef POOLFS_VERSION
#define POOLFS_VERSION "unknown"
#endif

enum kind {
	IGNORE,   /* for mount(8), fstab or others: accepted, nothing to do; a value may follow */
	SET,      /* bool := value */
	SWITCH,   /* enum tristate := value */
	SIZE,     /* uint64_t of bytes, K M G T behind the number */
	NUMBER,   /* unsigned, 1 ... value */
	STRING,   /* char *, the last one counts */
	SEARCH,   /* appended to search[] */
};

struct row {
	const char *name; /* a trailing * stands for any rest */
	enum kind kind;
	size_t offset;
	long value;
	bool own; /* known to this program alone: not handed on in a remount */
};

#define AT(field) offsetof(struct options, field)

static const struct row table[] = {
	/* of poolfs */
	{ "cache", SIZE, AT(cache_bytes), 0, true },
	{ "commit", NUMBER, AT(commit_seconds), 3600, true },
	{ "silence", NUMBER, AT(silence_seconds), 86400, true },
	{ "discard", SWITCH, AT(discard), YES, true },
	{ "nodiscard", SWITCH, AT(discard), NO, true },
	{ "foreground", SET, AT(foreground), true, true },
	{ "search", SEARCH, 0, 0, true },
	{ "threads", NUMBER, AT(threads), 64, true },
	{ "max_background", NUMBER, AT(max_background), 65535, true },
	{ "fsname", STRING, AT(fsname), 0, true },
	/* of FUSE */
	{ "allow_other", SWITCH, AT(allow_other), YES, true },
	{ "noallow_other", SWITCH, AT(allow_other), NO, true },
	{ "default_permissions", IGNORE, 0, 0, true }, /* always on: nobody else checks */
	/* what the kernel shows of a FUSE mount, and mount(8) hands back for a remount */
	{ "user_id", IGNORE, 0, 0, true },
	{ "group_id", IGNORE, 0, 0, true },
	{ "max_read", IGNORE, 0, 0, true },
	{ "blksize", IGNORE, 0, 0, true },
	/* of every filesystem */
	{ "remount", SET, AT(remount), true, false },
	{ "ro", SET, AT(read_only), true, false },
	{ "rw", SET, AT(read_only), false, false },
	{ "dev", SWITCH, AT(dev), YES, false },
	{ "nodev", SWITCH, AT(dev), NO, false },
	{ "suid", SWITCH, AT(suid), YES, false },
	{ "nosuid", SWITCH, AT(suid), NO, false },
	{ "exec", SWITCH, AT(exec), YES, false },
	{ "noexec", SWITCH, AT(exec), NO, false },
	{ "noatime", SET, AT(noatime), true, false },
	{ "atime", SET, AT(noatime), false, false },
	{ "sync", SET, AT(sync), true, false },
	{ "async", SET, AT(sync), false, false },
	{ "dirsync", SET, AT(dirsync), true, false },
	/* access times are never written by a read, so these change nothing */
	{ "relatime", IGNORE, 0, 0, false },
	{ "norelatime", IGNORE, 0, 0, false },
	{ "strictatime", IGNORE, 0, 0, false },
	{ "nostrictatime", IGNORE, 0, 0, false },
	{ "lazytime", IGNORE, 0, 0, false },
	{ "nolazytime", IGNORE, 0, 0, false },
	{ "diratime", IGNORE, 0, 0, false },
	{ "nodiratime", IGNORE, 0, 0, false },
	{ "iversion", IGNORE, 0, 0, false },
	{ "noiversion", IGNORE, 0, 0, false },
	{ "silent", IGNORE, 0, 0, false },
	{ "loud", IGNORE, 0, 0, false },
	/* ACLs and attributes are always there */
	{ "acl", IGNORE, 0, 0, false },
	{ "user_xattr", IGNORE, 0, 0, false },
	/* of fstab, mount(8) and systemd */
	{ "uhelper", IGNORE, 0, 0, true },
	{ "helper", IGNORE, 0, 0, true },
	{ "defaults", IGNORE, 0, 0, true },
	{ "nofail", IGNORE, 0, 0, true },
	{ "_netdev", IGNORE, 0, 0, true },
	{ "auto", IGNORE, 0, 0, true },
	{ "noauto", IGNORE, 0, 0, true },
	{ "user", IGNORE, 0, 0, true },
	{ "nouser", IGNORE, 0, 0, true },
	{ "users", IGNORE, 0, 0, true },
	{ "nousers", IGNORE, 0, 0, true },
	{ "owner", IGNORE, 0, 0, true },
	{ "noowner", IGNORE, 0, 0, true },
	{ "group", IGNORE, 0, 0, true },
	{ "nogroup", IGNORE, 0, 0, true },
	{ "comment", IGNORE, 0, 0, true },
	{ "x-*", IGNORE, 0, 0, true },
	{ "X-*", IGNORE, 0, 0, true },
};

static const char usage[] =
	"Usage: mount.poolfs SPEC DIR [-fnsv] [-N NAMESPACE] [-t TYPE] [-o OPTION,...]\n"
	"Mounts a pool on the directory DIR. SPEC is one of\n"
	"  MEMBER[:MEMBER]...    image files, partitions or disks; a colon in a path is written \\:\n"
	"                        one member suffices when the others lie beside it or can be found by a scan\n"
	"  pool=LABEL|UUID       found by a scan; poolfs:LABEL|UUID is the same\n"
	"\n"
	"  -f, --fake            check everything, mount nothing\n"
	"  -n, --no-mtab         accepted, changes nothing\n"
	"  -s, --sloppy          ignore unknown options\n"
	"  -v, --verbose         more messages\n"
	"  -N, --namespace NS    mount in the mount namespace of this process or file\n"
	"  -t, --types TYPE      accepted, changes nothing\n"
	"  -o, --options LIST    options of mount(8), and\n"
	"       cache=SIZE        memory for the cache, with K, M, G or T (default 256M)\n"
	"       commit=SECONDS    longest time until a change is durable by itself (default 5)\n"
	"       silence=SECONDS   how long a member may not answer before the pool goes on without it (default 60)\n"
	"       [no]discard       give freed space back to the device or the host (default: of sparse image files)\n"
	"       foreground        stay in the foreground, messages on standard error\n"
	"       search=DIR        a directory with image files to scan; may be given several times\n"
	"       threads=N         threads that read requests\n"
	"       max_background=N  read-ahead and asynchronous requests in flight (default 64)\n"
	"       fsname=NAME       shown as the source of the mount instead of SPEC\n"
	"       [no]allow_other   whether other users may use the mount; on for root\n"
	"  -h, --help            this text\n"
	"  -V, --version         the version\n";

static const struct row *find_row(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		size_t n = strlen(table[i].name);
		if (table[i].name[n - 1] == '*' ? len >= n - 1 && strncmp(name, table[i].name, n - 1) == 0
						: len == n && strncmp(name, table[i].name, n) == 0)
			return &table[i];
	}
	return NULL;
}

static bool parse_size(const char *text, uint64_t *out)
{
	static const char units[] = "KMGT";
	char *end;
	errno = 0;
	if (!isdigit((unsigned char)*text))
		return false;
	unsigned long long v = strtoull(text, &end, 10);
	if (errno || v == 0)
		return false;
	if (*end) {
		const char *unit = strchr(units, toupper((unsigned char)*end));
		if (!unit || end[1])
			return false;
		unsigned shift = 10 * (unsigned)(unit - units + 1);
		if (v > UINT64_MAX >> shift)
			return false;
		v <<= shift;
	}
	*out = v;
	return true;
}

static bool parse_number(const char *text, long max, unsigned *out)
{
	char *end;
	errno = 0;
	if (!isdigit((unsigned char)*text))
		return false;
	unsigned long v = strtoul(text, &end, 10);
	if (errno || *end || v == 0 || v > (unsigned long)max)
		return false;
	*out = (unsigned)v;
	return true;
}

static bool apply_search(struct options *opt, const char *value)
{
	if (opt->nr_search == OPTIONS_MAX_SEARCH) {
		say("option 'search=' is given more than %d times", OPTIONS_MAX_SEARCH);
		return false;
	}
	opt->search[opt->nr_search] = strdup(value);
	return opt->search[opt->nr_search++] != NULL;
}

/* @value is NULL when there is no '='. */
static bool apply(struct options *opt, const struct row *row, const char *value)
{
	void *field = (char *)opt + row->offset;
	bool wants_value = row->kind >= SIZE;
	if (wants_value && (!value || !*value)) {
		say("option '%s' needs a value: %s=...", row->name, row->name);
		return false;
	}
	if (!wants_value && row->kind != IGNORE && value) {
		say("option '%s' takes no value", row->name);
		return false;
	}
	switch (row->kind) {
	case IGNORE:
		return true;
	case SET:
		*(bool *)field = row->value;
		return true;
	case SWITCH:
		*(enum tristate *)field = (enum tristate)row->value;
		return true;
	case SIZE:
		if (parse_size(value, field))
			return true;
		say("option '%s=%s': not a size (a number, with K, M, G or T behind it)", row->name, value);
		return false;
	case NUMBER:
		if (parse_number(value, row->value, field))
			return true;
		say("option '%s=%s': not a number from 1 to %ld", row->name, value, row->value);
		return false;
	case STRING:
		free(*(char **)field);
		*(char **)field = strdup(value);
		return *(char **)field != NULL;
	case SEARCH:
		return apply_search(opt, value);
	}
	return false;
}

/* The end of the first option of @list. A comma in a value is written "\," or stands in double quotes, as mount(8) has it. */
static const char *option_end(const char *list)
{
	bool quoted = false;
	for (; *list; list++) {
		if (*list == '\\' && list[1])
			list++;
		else if (*list == '"')
			quoted = !quoted;
		else if (*list == ',' && !quoted)
			break;
	}
	return list;
}

/* Copies without the quoting of option_end(). */
static char *unquote(const char *from, size_t len)
{
	char *out = malloc(len + 1), *to = out;
	if (!out)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		if (from[i] == '\\' && i + 1 < len && (from[i + 1] == ',' || from[i + 1] == '\\'))
			*to++ = from[++i];
		else if (from[i] != '"')
			*to++ = from[i];
	}
	*to = 0;
	return out;
}

static bool parse_one(struct options *opt, const char *text, size_t len)
{
	char *option = unquote(text, len);
	if (!option)
		return false;
	bool ok = true;
	char *value = strchr(option, '=');
	if (value)
		*value++ = 0;
	const struct row *row = find_row(option, strlen(option));
	if (row) {
		ok = apply(opt, row, value);
	} else if (!opt->sloppy) {
		say("unknown option '%s'; mount.poolfs --help lists the options", option);
		ok = false;
	}
	free(option);
	return ok;
}

static bool parse_list(struct options *opt, const char *list)
{
	while (*list) {
		const char *end = option_end(list);
		if (end > list && !parse_one(opt, list, (size_t)(end - list)))
			return false;
		list = *end ? end + 1 : end;
	}
	return true;
}

char *options_for_remount(const char *given)
{
	char *out = malloc(strlen(given) + sizeof("remount"));
	if (!out)
		return NULL;
	char *to = out + sprintf(out, "remount");
	while (*given) {
		const char *end = option_end(given);
		size_t len = (size_t)(end - given), name_len = strcspn(given, "=,");
		const struct row *row = find_row(given, name_len < len ? name_len : len);
		if (row && !row->own && strcmp(row->name, "remount") != 0 && len)
			to += sprintf(to, ",%.*s", (int)len, given);
		given = *end ? end + 1 : end;
	}
	return out;
}

static bool positional(struct options *opt, int argc, char **argv)
{
	if (argc - optind != 2) {
		say("%s; mount.poolfs --help shows the usage",
		    argc - optind < 2 ? "SPEC and DIR are needed" : "more than SPEC and DIR given");
		return false;
	}
	opt->spec = argv[optind];
	opt->dir = argv[optind + 1];
	if (!*opt->spec || !*opt->dir) {
		say("%s is empty", *opt->spec ? "DIR" : "SPEC");
		return false;
	}
	return true;
}

/* -o may come several times and -s after it, so the lists are read at the end. */
static bool collect(char **lists, const char *list)
{
	char *joined;
	if (asprintf(&joined, "%s%s%s", *lists ? *lists : "", *lists ? "," : "", list) < 0)
		return false;
	free(*lists);
	*lists = joined;
	return true;
}

enum options_result options_parse(int argc, char **argv, struct options *opt)
{
	static const struct option longs[] = {
		{ "fake", no_argument, NULL, 'f' },          { "no-mtab", no_argument, NULL, 'n' },
		{ "sloppy", no_argument, NULL, 's' },        { "verbose", no_argument, NULL, 'v' },
		{ "namespace", required_argument, NULL, 'N' }, { "types", required_argument, NULL, 't' },
		{ "options", required_argument, NULL, 'o' }, { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },       { NULL, 0, NULL, 0 },
	};
	char *lists = NULL;
	int c;
	memset(opt, 0, sizeof(*opt));
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":fnsvN:t:o:hV", longs, NULL)) != -1) {
		switch (c) {
		case 'f':
			opt->fake = true;
			break;
		case 's':
			opt->sloppy = true;
			break;
		case 'v':
			opt->verbose = true;
			break;
		case 'N':
			opt->name_space = optarg;
			break;
		case 'o':
			if (!collect(&lists, optarg))
				goto bad;
			break;
		case 'n':
		case 't':
			break;
		case 'h':
			fputs(usage, stdout);
			free(lists);
			return OPTIONS_DONE;
		case 'V':
			puts("mount.poolfs " POOLFS_VERSION);
			free(lists);
			return OPTIONS_DONE;
		default:
			say("%s '%s'; mount.poolfs --help shows the usage",
			    c == ':' ? "an argument is needed behind" : "unknown option", argv[optind - 1]);
			goto bad;
		}
	}
	opt->given = lists;
	if (positional(opt, argc, argv) && (!lists || parse_list(opt, lists)))
		return OPTIONS_RUN;
	return OPTIONS_BAD;
bad:
	free(lists);
	return OPTIONS_BAD;
}

void options_free(struct options *opt)
{
	free(opt->given);
	free(opt->fsname);
	for (unsigned i = 0; i < opt->nr_search; i++)
		free(opt->search[i]);
	memset(opt, 0, sizeof(*opt));
}
