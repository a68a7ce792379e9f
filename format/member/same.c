/* SPDX-License-Identifier: MIT */
#include "member/same.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

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

bool pf_loop_backing(const struct stat *st, dev_t *dev, ino_t *ino)
{
	/* of a device, and of the disk whose partition it is */
	static const char *const places[] = { "", "/.." };
	for (unsigned i = 0; i < 2 && S_ISBLK(st->st_mode); i++) {
		char path[64], backing[4096];
		struct stat file;
		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u%s/loop/backing_file", major(st->st_rdev),
			 minor(st->st_rdev), places[i]);
		if (!read_line(path, backing, sizeof(backing)))
			continue;
		if (stat(backing, &file) != 0)
			return false;
		*dev = file.st_dev;
		*ino = file.st_ino;
		return true;
	}
	return false;
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
