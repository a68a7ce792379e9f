/* SPDX-License-Identifier: MIT */
#include "utab.h"

#include "spawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TABLE "/run/mount/utab"
#define HELPER "uhelper=fuse.poolfs"

/* As the table writes it: white space and backslashes as \ooo. */
static void escape(const char *from, char *to, size_t cap)
{
	size_t n = 0;
	for (; *from && n + 5 < cap; from++) {
		if (strchr(" \t\n\\", *from))
			n += (size_t)sprintf(to + n, "\\%03o", (unsigned char)*from);
		else
			to[n++] = *from;
	}
	to[n] = 0;
}

static bool has_entry(const char *dir)
{
	char escaped[16384], *line = NULL;
	size_t cap = 0;
	bool found = false;
	FILE *f = fopen(TABLE, "re");
	if (!f)
		return false;
	escape(dir, escaped, sizeof(escaped));
	while (!found && getline(&line, &cap, f) >= 0) {
		const char *target = strstr(line, "TARGET=");
		size_t len = strlen(escaped);
		found = target && strncmp(target + 7, escaped, len) == 0 && strchr(" \n", target[7 + len]) &&
			strstr(line, HELPER);
	}
	free(line);
	fclose(f);
	return found;
}

void utab_remove(const char *dir)
{
	if (geteuid() != 0)
		return;
	/* a daemon that was killed has left its entry */
	for (int i = 0; i < 16 && has_entry(dir); i++) {
		char *argv[] = { "umount", "-i", "--fake", "--no-canonicalize", (char *)dir, NULL };
		if (spawn_wait(argv, true) != 0)
			break;
	}
}

void utab_add(const char *source, const char *dir)
{
	if (geteuid() != 0)
		return;
	utab_remove(dir);
	char *argv[] = { "mount", "-i", "--fake", "--no-canonicalize", "-t", "fuse.poolfs", "-o", HELPER, "--",
			 (char *)source, (char *)dir, NULL };
	spawn_wait(argv, true);
}
