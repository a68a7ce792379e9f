/* SPDX-License-Identifier: MIT */
#include "elsewhere.h"

#include "mountinfo.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_NAMESPACES 64

struct search {
	unsigned major, minor;
	struct elsewhere *out;
	unsigned nr_seen;
	ino_t seen[MAX_NAMESPACES]; /* with this mount or without */
};

static void read_command(pid_t pid, char *command, size_t cap)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	FILE *f = fopen(path, "re");
	if (!f || !fgets(command, (int)cap, f))
		snprintf(command, cap, "?");
	command[strcspn(command, "\n")] = 0;
	if (f)
		fclose(f);
}

/* True the first time that a namespace is asked for. */
static bool is_new(struct search *s, ino_t ns)
{
	for (unsigned i = 0; i < s->nr_seen; i++) {
		if (s->seen[i] == ns)
			return false;
	}
	if (s->nr_seen == MAX_NAMESPACES)
		return false;
	s->seen[s->nr_seen++] = ns;
	return true;
}

static void look_at(struct search *s, pid_t pid)
{
	char path[64], dir[PATH_MAX];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	if (stat(path, &st) < 0) {
		s->out->nr_denied += errno == EACCES || errno == EPERM;
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	if (!is_new(s, st.st_ino) || mountinfo_find_device(path, s->major, s->minor, dir))
		return;
	unsigned nr = s->out->nr_namespaces++;
	if (nr >= ELSEWHERE_NAMED)
		return;
	s->out->named[nr].pid = pid;
	read_command(pid, s->out->named[nr].command, sizeof(s->out->named[nr].command));
	strcpy(s->out->named[nr].dir, dir);
}

void elsewhere_find(unsigned major, unsigned minor, pid_t daemon, struct elsewhere *out)
{
	struct search s = { .major = major, .minor = minor, .out = out };
	struct stat own;
	memset(out, 0, sizeof(*out));
	if (stat("/proc/self/ns/mnt", &own) == 0)
		is_new(&s, own.st_ino);
	DIR *proc = opendir("/proc");
	for (struct dirent *e; proc && (e = readdir(proc));) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		if (pid > 0 && pid != daemon)
			look_at(&s, pid);
	}
	if (proc)
		closedir(proc);
	if (daemon > 0)
		look_at(&s, daemon);
}
