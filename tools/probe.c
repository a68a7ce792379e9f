/* SPDX-License-Identifier: MIT */
#include "probe.h"

#include "cli.h"

#include <blkid/blkid.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/major.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static void append(char text[PROBE_TEXT], const char *separator, const char *more)
{
	size_t n = strlen(text);
	snprintf(text + n, PROBE_TEXT - n, "%s%s", n ? separator : "", more);
}

/* -- signatures ----------------------------------------------------------------------------------------------------- */
static int probe_open(const char *path, int flags, blkid_probe *out, int *fd)
{
	*fd = open(path, flags | O_CLOEXEC);
	if (*fd < 0)
		return -errno;
	blkid_probe pr = blkid_new_probe();
	if (!pr || blkid_probe_set_device(pr, *fd, 0, 0) != 0) {
		blkid_free_probe(pr);
		close(*fd);
		return -EIO;
	}
	blkid_probe_enable_superblocks(pr, 1);
	blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_MAGIC | BLKID_SUBLKS_TYPE | BLKID_SUBLKS_USAGE |
						      BLKID_SUBLKS_LABEL | BLKID_SUBLKS_BADCSUM);
	blkid_probe_enable_partitions(pr, 1);
	blkid_probe_set_partitions_flags(pr, BLKID_PARTS_MAGIC | BLKID_PARTS_FORCE_GPT);
	*out = pr;
	return 0;
}

static const char *probe_value(blkid_probe pr, const char *name)
{
	const char *value;
	return blkid_probe_lookup_value(pr, name, &value, NULL) == 0 ? value : NULL;
}

static void describe(blkid_probe pr, char one[PROBE_TEXT])
{
	const char *table = probe_value(pr, "PTTYPE");
	if (table) {
		snprintf(one, PROBE_TEXT, "a partition table (%s)", table);
		return;
	}
	const char *usage = probe_value(pr, "USAGE"), *type = probe_value(pr, "TYPE");
	const char *label = probe_value(pr, "LABEL");
	const char *what = "an existing signature";
	if (!usage)
		;
	else if (!strcmp(usage, "filesystem"))
		what = "an existing filesystem";
	else if (!strcmp(usage, "raid"))
		what = "a RAID or LVM member";
	else if (!strcmp(usage, "crypto"))
		what = "an encrypted volume";
	else if (type && !strcmp(type, "swap"))
		what = "a swap area";
	if (label)
		snprintf(one, PROBE_TEXT, "%s (%s, label \"%s\")", what, type ? type : "unknown", label);
	else
		snprintf(one, PROBE_TEXT, "%s (%s)", what, type ? type : "unknown");
}

int probe_signatures(const char *path, char text[PROBE_TEXT])
{
	blkid_probe pr;
	int fd, err = probe_open(path, O_RDONLY, &pr, &fd);
	if (err)
		return err;
	text[0] = '\0';
	int more;
	while ((more = blkid_do_probe(pr)) == 0) {
		char one[PROBE_TEXT] = "";
		describe(pr, one);
		if (!strstr(text, one))
			append(text, " and ", one);
	}
	blkid_free_probe(pr);
	close(fd);
	return more < 0 ? -EIO : text[0] != '\0';
}

int probe_wipe(const char *path)
{
	blkid_probe pr;
	int fd, err = probe_open(path, O_RDWR, &pr, &fd);
	if (err)
		return err;
	int more;
	while ((more = blkid_do_probe(pr)) == 0 && !err) {
		if (blkid_do_wipe(pr, 0) != 0)
			err = -EIO;
	}
	if (more < 0 || (!err && fsync(fd) != 0))
		err = -EIO;
	blkid_free_probe(pr);
	close(fd);
	return err;
}

int probe_poolfs(struct pf_io *io, char text[PROBE_TEXT])
{
	struct pf_super super;
	unsigned nr_bad = 0;
	int err = pf_set_read_super(io, &super, &nr_bad);
	if (err == -PF_EMEMBER_NONE)
		return 0;
	if (err && !pf_is_damage(err))
		return err;
	char uuid[CLI_UUID_LEN], when[CLI_TIME_LEN];
	if (err)
		snprintf(text, PROBE_TEXT, "damaged superblocks of a poolfs member");
	else
		snprintf(text, PROBE_TEXT, "member %u of %u of the poolfs pool %s%s%s%s, last written %s",
			 super.member_id + 1, super.nr_members, super.label[0] ? "\"" : "", super.label,
			 super.label[0] ? "\" " : "", cli_uuid(uuid, super.pool_uuid), cli_time(when, super.written_ns));
	return 1;
}

/* -- users ---------------------------------------------------------------------------------------------------------- */
static bool read_line(const char *path, char *line, size_t cap)
{
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	bool ok = fgets(line, (int)cap, f) != NULL;
	fclose(f);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

dev_t probe_whole_disk(dev_t rdev)
{
	dev_t whole;
	return blkid_devno_to_wholedisk(rdev, NULL, 0, &whole) == 0 ? whole : rdev;
}

static bool is_device(const char *path, dev_t rdev)
{
	struct stat st;
	return path[0] == '/' && stat(path, &st) == 0 && S_ISBLK(st.st_mode) &&
	       (st.st_rdev == rdev || probe_whole_disk(st.st_rdev) == rdev);
}

/* \040 and its like, as the kernel writes them in mountinfo. */
static void unescape(char *s)
{
	char *out = s;
	while (*s) {
		unsigned code;
		if (*s == '\\' && sscanf(s + 1, "%3o", &code) == 1 && strlen(s) >= 4) {
			*out++ = (char)code;
			s += 4;
		} else {
			*out++ = *s++;
		}
	}
	*out = '\0';
}

static bool find_mount(dev_t rdev, char text[PROBE_TEXT])
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, dir[PROBE_TEXT - 32];
	size_t cap = 0;
	bool found = false;
	while (f && !found && getline(&line, &cap, f) > 0) {
		unsigned maj, min;
		if (sscanf(line, "%*d %*d %u:%u %*s %479s", &maj, &min, dir) != 3)
			continue;
		/* A filesystem over several devices has a number of its own; its source is one of them. */
		dev_t dev = makedev(maj, min);
		char source[480] = "";
		const char *rest = strstr(line, " - ");
		if (rest && sscanf(rest, " - %*s %479s", source) == 1)
			unescape(source);
		found = dev == rdev || (maj && probe_whole_disk(dev) == rdev) || is_device(source, rdev);
	}
	free(line);
	if (f)
		fclose(f);
	if (found) {
		unescape(dir);
		snprintf(text, PROBE_TEXT, "mounted on %s", dir);
	}
	return found;
}

static bool find_swap(const struct stat *st, char text[PROBE_TEXT])
{
	FILE *f = fopen("/proc/swaps", "re");
	char *line = NULL, name[1024];
	size_t cap = 0;
	bool found = false;
	while (f && !found && getline(&line, &cap, f) > 0) {
		struct stat swap;
		if (sscanf(line, "%1023s", name) != 1)
			continue;
		unescape(name);
		if (name[0] != '/' || stat(name, &swap) != 0)
			continue;
		found = S_ISBLK(st->st_mode) ? S_ISBLK(swap.st_mode) && swap.st_rdev == st->st_rdev :
					       swap.st_dev == st->st_dev && swap.st_ino == st->st_ino;
	}
	free(line);
	if (f)
		fclose(f);
	if (found)
		snprintf(text, PROBE_TEXT, "used as swap");
	return found;
}

static bool find_holder(dev_t rdev, char text[PROBE_TEXT])
{
	char path[64];
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/holders", major(rdev), minor(rdev));
	DIR *dir = opendir(path);
	bool found = false;
	for (struct dirent *e; dir && !found && (e = readdir(dir));) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(text, PROBE_TEXT, "used by %s", e->d_name);
		found = true;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* A file behind a loop device: writing to both at once mixes two caches, and no lock would tell. */
static bool find_loop(const struct stat *st, char text[PROBE_TEXT])
{
	DIR *dir = opendir("/sys/block");
	bool found = false;
	for (struct dirent *e; dir && !found && (e = readdir(dir));) {
		char path[512], backing[4096];
		struct stat file;
		if (strncmp(e->d_name, "loop", 4) != 0)
			continue;
		snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", e->d_name);
		if (!read_line(path, backing, sizeof(backing)) || stat(backing, &file) != 0)
			continue;
		found = file.st_dev == st->st_dev && file.st_ino == st->st_ino;
		if (found)
			snprintf(text, PROBE_TEXT, "attached to /dev/%s", e->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

bool probe_user(const struct stat *st, char text[PROBE_TEXT])
{
	if (find_swap(st, text))
		return true;
	if (S_ISBLK(st->st_mode))
		return find_mount(st->st_rdev, text) || find_holder(st->st_rdev, text);
	return S_ISREG(st->st_mode) && find_loop(st, text);
}

/* -- block devices -------------------------------------------------------------------------------------------------- */
bool probe_aligned(const struct stat *st)
{
	char path[64], line[64];
	unsigned long long start_sectors;
	if (!S_ISBLK(st->st_mode))
		return true;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/start", major(st->st_rdev), minor(st->st_rdev));
	if (!read_line(path, line, sizeof(line)) || sscanf(line, "%llu", &start_sectors) != 1)
		return true;
	return start_sectors % (PF_BLOCK_SIZE / 512) == 0;
}

bool probe_read_only(const char *path, const struct stat *st)
{
	int fd = S_ISBLK(st->st_mode) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	int read_only = 0;
	bool is = fd >= 0 && ioctl(fd, BLKROGET, &read_only) == 0 && read_only;
	if (fd >= 0)
		close(fd);
	return is;
}

void probe_reread_partitions(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	/* Not every device has partitions, and somebody may just be looking at one: no reason to fail. */
	(void)ioctl(fd, BLKRRPART);
	close(fd);
}
