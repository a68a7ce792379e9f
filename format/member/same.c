/* SPDX-License-Identifier: MIT */
#include "member/same.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool read_line(const char *path, char *line, size_t cap)
{
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(line, (int)cap, f);
	if (f)
		fclose(f);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

/* The path of the file behind a loop device, or behind the disk whose partition it is. */
static bool backing_path(const struct stat *st, char path[PATH_MAX])
{
	static const char *const places[] = { "", "/.." };
	for (unsigned i = 0; i < 2 && S_ISBLK(st->st_mode); i++) {
		char name[64];
		snprintf(name, sizeof(name), "/sys/dev/block/%u:%u%s/loop/backing_file", major(st->st_rdev),
			 minor(st->st_rdev), places[i]);
		if (read_line(name, path, PATH_MAX))
			return true;
	}
	return false;
}

bool pf_loop_backing(const struct stat *st, dev_t *dev, ino_t *ino)
{
	char backing[PATH_MAX];
	struct stat file;
	if (!backing_path(st, backing) || stat(backing, &file) != 0)
		return false;
	*dev = file.st_dev;
	*ino = file.st_ino;
	return true;
}

static bool file_is_locked(const char *path, bool for_writing)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool locked = fd >= 0 && flock(fd, (for_writing ? LOCK_EX : LOCK_SH) | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	if (fd >= 0)
		close(fd);
	return locked;
}

static bool device_is_claimed(const char *path)
{
	int fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
	bool claimed = fd < 0 && errno == EBUSY;
	if (fd >= 0)
		close(fd);
	return claimed;
}

static bool has_claimed_loop(const struct stat *st)
{
	DIR *dir = opendir("/sys/block");
	bool claimed = false;
	for (struct dirent *e; dir && !claimed && (e = readdir(dir));) {
		char name[NAME_MAX + 64], backing[PATH_MAX];
		struct stat file;
		if (strncmp(e->d_name, "loop", 4) != 0)
			continue;
		snprintf(name, sizeof(name), "/sys/block/%s/loop/backing_file", e->d_name);
		if (!read_line(name, backing, sizeof(backing)) || stat(backing, &file) != 0 || file.st_dev != st->st_dev ||
		    file.st_ino != st->st_ino)
			continue;
		snprintf(name, sizeof(name), "/dev/%s", e->d_name);
		claimed = device_is_claimed(name);
	}
	if (dir)
		closedir(dir);
	return claimed;
}

bool pf_loop_is_held(const struct stat *st, bool for_writing)
{
	char backing[PATH_MAX];
	if (S_ISREG(st->st_mode))
		return has_claimed_loop(st);
	return backing_path(st, backing) && file_is_locked(backing, for_writing);
}

static bool is_behind(const struct stat *loop, const struct stat *file)
{
	dev_t dev;
	ino_t ino;
	return pf_loop_backing(loop, &dev, &ino) && dev == file->st_dev && ino == file->st_ino;
}

bool pf_same_thing(const char *a, const char *b)
{
	struct stat st_a, st_b;
	if (stat(a, &st_a) != 0 || stat(b, &st_b) != 0)
		return false;
	if (S_ISBLK(st_a.st_mode) && S_ISBLK(st_b.st_mode))
		return st_a.st_rdev == st_b.st_rdev;
	return (st_a.st_dev == st_b.st_dev && st_a.st_ino == st_b.st_ino) || is_behind(&st_a, &st_b) ||
	       is_behind(&st_b, &st_a);
}

int pf_same_check(const char *const *paths, unsigned nr, struct pf_diag *diag)
{
	for (unsigned i = 0; i < nr; i++) {
		for (unsigned k = 0; k < i; k++) {
			if (pf_same_thing(paths[k], paths[i]))
				return pf_diag_set(diag, -PF_EMEMBER_TWICE,
						   "%s and %s are the same file or device; name each member once",
						   paths[k], paths[i]);
		}
	}
	return 0;
}
