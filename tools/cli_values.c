/* SPDX-License-Identifier: MIT
 * Values on the command line and in output: sizes, numbers, UUIDs, times, names. */
#include "cli.h"

#include "utf8.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uuid/uuid.h>

static const char units[] = "KMGTPE";

/* Factor of a unit: "", "K", "KiB", "KB"; 0 when @text is none. */
static uint64_t unit_factor(const char *text)
{
	if (!*text || !strcmp(text, "B"))
		return 1;
	const char *u = strchr(units, toupper((unsigned char)*text));
	if (!u)
		return 0;
	bool binary = !text[1] || !strcmp(text + 1, "iB");
	if (!binary && strcmp(text + 1, "B") != 0)
		return 0;
	uint64_t factor = 1;
	for (const char *p = units; p <= u; p++)
		factor *= binary ? 1024 : 1000;
	return factor;
}

bool cli_parse_size(const char *text, uint64_t *bytes)
{
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	char *end;
	uint64_t whole = strtoull(text, &end, 10);
	if (errno)
		return false;
	const char *fraction = NULL;
	if (*end == '.' && isdigit((unsigned char)end[1])) {
		fraction = ++end;
		end += strspn(end, "0123456789");
	}
	uint64_t factor = unit_factor(end), result;
	if (!factor || __builtin_mul_overflow(whole, factor, &result))
		return false;
	/* In integers: "0.1G" is the same on every machine. More digits than 18 change nothing. */
	unsigned __int128 part = 0, scale = 1;
	for (unsigned n = 0; n < 18 && fraction && isdigit((unsigned char)*fraction); n++, fraction++) {
		part = part * 10 + (unsigned)(*fraction - '0');
		scale *= 10;
	}
	if (__builtin_add_overflow(result, (uint64_t)(part * factor / scale), &result))
		return false;
	*bytes = result;
	return true;
}

bool cli_parse_number(const char *text, uint64_t max, uint64_t *out)
{
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	char *end;
	uint64_t value = strtoull(text, &end, 0);
	if (errno || *end || value > max)
		return false;
	*out = value;
	return true;
}

bool cli_parse_uuid(const char *text, uint8_t uuid[16])
{
	return uuid_parse(text, uuid) == 0 && !uuid_is_null(uuid);
}

const char *cli_size(char buf[CLI_SIZE_LEN], uint64_t bytes)
{
	unsigned u = 0;
	uint64_t unit = 1;
	while (u < strlen(units) && bytes / unit >= 1024) {
		unit *= 1024;
		u++;
	}
	if (u == 0)
		snprintf(buf, CLI_SIZE_LEN, "%ju bytes", (uintmax_t)bytes);
	else if (bytes % unit == 0)
		snprintf(buf, CLI_SIZE_LEN, "%ju %ciB", (uintmax_t)(bytes / unit), units[u - 1]);
	else
		snprintf(buf, CLI_SIZE_LEN, "%.*f %ciB", bytes / unit < 100 ? 2 : 1, (double)bytes / (double)unit,
			 units[u - 1]);
	return buf;
}

const char *cli_uuid(char buf[CLI_UUID_LEN], const uint8_t uuid[16])
{
	uuid_unparse_lower(uuid, buf);
	return buf;
}

const char *cli_time(char buf[CLI_TIME_LEN], int64_t ns)
{
	time_t s = (time_t)(ns / 1000000000);
	struct tm tm;
	if (!localtime_r(&s, &tm) || !strftime(buf, CLI_TIME_LEN, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(buf, CLI_TIME_LEN, "unknown time");
	return buf;
}

void cli_print_name(FILE *out, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t left = strlen(text);
	while (left) {
		size_t n = utf8_length(p, left);
		if (n == 0 || (n == 1 && (*p < 0x20 || *p == 0x7f || *p == '\\'))) {
			fprintf(out, "\\%03o", *p);
			n = 1;
		} else {
			fwrite(p, 1, n, out);
		}
		p += n;
		left -= n;
	}
}
