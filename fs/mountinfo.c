/* SPDX-License-Identifier: MIT */
#include "mountinfo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>

int mountinfo_canonical(const char *dir, char *out)
{
	if (realpath(dir, out))
		return 0;
	if (errno != ENOTCONN)
		return -errno;
	/* the last component is the dead mount itself: resolve the directory that holds it */
	char parent[PATH_MAX], last[NAME_MAX + 1];
	if (strlen(dir) >= sizeof(parent))
		return -ENAMETOOLONG;
	strcpy(parent, dir);
	size_t len = strlen(parent);
	while (len > 1 && parent[len - 1] == '/')
		parent[--len] = 0;
	char *slash = strrchr(parent, '/');
	const char *base = slash ? slash + 1 : parent;
	if (!*base || strlen(base) > NAME_MAX || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
		return -ENOTCONN;
	strcpy(last, base);
	if (slash)
		slash[slash == parent] = 0;
	else
		strcpy(parent, ".");
	if (!realpath(parent, out))
		return -errno;
	len = strlen(out);
	if (len + 1 + strlen(last) >= PATH_MAX)
		return -ENAMETOOLONG;
	sprintf(out + len, "%s%s", len == 1 ? "" : "/", last);
	return 0;
}

/* Undoes the \ooo of the kernel, in place. */
static void unescape(char *s)
{
	char *to = s;
	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = 0;
}

static bool has_option(const char *options, const char *name)
{
	size_t len = strlen(name);
	for (const char *p = options; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, name, len) == 0 && (p[len] == ',' || p[len] == 0))
			return true;
	}
	return false;
}

/* One line: id parent maj:min root dir options [tags...] - type source superoptions */
static bool parse_line(char *line, const char *path, struct mountinfo *out)
{
	char *word[6], *save = NULL;
	for (int i = 0; i < 6; i++) {
		word[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!word[i])
			return false;
	}
	unescape(word[4]);
	if (strcmp(word[4], path) != 0)
		return false;
	const char *tag;
	do {
		tag = strtok_r(NULL, " ", &save);
	} while (tag && strcmp(tag, "-") != 0);
	const char *type = strtok_r(NULL, " ", &save);
	char *source = strtok_r(NULL, " ", &save);
	const char *super = strtok_r(NULL, " \n", &save);
	if (!tag || !type || !source || !super || sscanf(word[2], "%u:%u", &out->major, &out->minor) != 2)
		return false;
	unescape(source);
	snprintf(out->type, sizeof(out->type), "%s", type);
	snprintf(out->source, sizeof(out->source), "%s", source);
	out->super_read_only = has_option(super, "ro");
	return true;
}

int mountinfo_find(const char *path, struct mountinfo *out)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	if (!f)
		return -errno;
	int err = -ENOENT;
	char *line = NULL;
	size_t cap = 0;
	/* the last line that matches is the mount on top */
	while (getline(&line, &cap, f) >= 0) {
		if (parse_line(line, path, out))
			err = 0;
	}
	free(line);
	fclose(f);
	return err;
}

/* Where the mount of @line is; cuts the line. NULL when the line cannot be understood. */
static const char *mount_point(char *line, unsigned *major, unsigned *minor)
{
	int start = 0, end = 0;
	/* a space in any field is written as \040 */
	if (sscanf(line, "%*d %*d %u:%u %*s %n%*s%n", major, minor, &start, &end) != 2 || end <= start ||
	    end - start >= PATH_MAX)
		return NULL;
	line[end] = 0;
	unescape(line + start);
	return line + start;
}

int mountinfo_find_device(const char *file, unsigned major, unsigned minor, char *dir)
{
	FILE *f = fopen(file, "re");
	if (!f)
		return -errno;
	int err = -ENOENT;
	char *line = NULL;
	size_t cap = 0;
	while (err == -ENOENT && getline(&line, &cap, f) >= 0) {
		unsigned maj, min;
		const char *place = mount_point(line, &maj, &min);
		if (!place || maj != major || min != minor)
			continue;
		strcpy(dir, place);
		err = 0;
	}
	/* a process that has ended meanwhile */
	if (err && ferror(f))
		err = -ESRCH;
	free(line);
	fclose(f);
	return err;
}

bool mountinfo_find_pool(bool (*is_wanted)(const char *dir, void *arg), void *arg, char *dir)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t cap = 0;
	bool found = false;
	while (f && !found && getline(&line, &cap, f) >= 0) {
		unsigned maj, min;
		const char *place = strstr(line, " - " FS_TYPE " ") ? mount_point(line, &maj, &min) : NULL;
		if (!place)
			continue;
		strcpy(dir, place);
		found = is_wanted(dir, arg);
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

bool mountinfo_is_dead(const char *path)
{
	struct mountinfo mi;
	struct statfs st;
	if (mountinfo_find(path, &mi) || strcmp(mi.type, FS_TYPE) != 0)
		return false;
	/* not stat(2): its answer may still be in the kernel */
	return statfs(path, &st) < 0 && (errno == ENOTCONN || errno == ECONNABORTED);
}
