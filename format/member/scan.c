/* SPDX-License-Identifier: MIT */
#include "member/scan.h"

#include "member/assemble.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PARTITIONS "/proc/partitions"

/* The superblock is the caller's to free, also on failure. */
static int read_super(const char *path, const struct pf_env *env, struct pf_super **super, uint64_t *size_bytes,
		      struct pf_diag *diag)
{
	struct pf_io *io;
	*super = NULL;
	/* buffered: what blkid and udev have read of a device lately need not be read again */
	int err = pf_io_open(path, PF_IO_OPEN_UNLOCKED | PF_IO_OPEN_BUFFERED, 0, env, &io, diag);
	if (err)
		return err;
	*size_bytes = io->size_bytes;
	*super = calloc(1, sizeof(**super));
	err = *super ? pf_set_read_super(io, *super, NULL) : -ENOMEM;
	pf_io_close(io);
	return err ? pf_diag_set(diag, err, "%s: %s", path, pf_strerror(err)) : 0;
}

int pf_scan_path(const char *path, const struct pf_env *env, struct pf_scan_entry *out, struct pf_diag *diag)
{
	struct pf_super *super;
	memset(out, 0, sizeof(*out));
	int err = read_super(path, env, &super, &out->size_bytes, diag);
	if (!err) {
		memcpy(out->pool_uuid, super->pool_uuid, sizeof(out->pool_uuid));
		memcpy(out->member_uuid, super->member_uuid, sizeof(out->member_uuid));
		memcpy(out->label, super->label, sizeof(out->label));
		out->version = super->version;
		out->member_id = super->member_id;
		out->nr_members = super->nr_members;
		out->generation = super->generation;
		out->usable = pf_features_unknown(&super->features).incompat == 0;
	}
	free(super);
	return err;
}

bool pf_scan_only_readable(const char *const *paths, unsigned nr, const struct pf_env *env, struct pf_diag *diag)
{
	bool found = false;
	for (unsigned i = 0; i < nr && !found; i++) {
		struct pf_diag ignored = { "" };
		struct pf_super *super;
		uint64_t size_bytes;
		if (read_super(paths[i], env, &super, &size_bytes, &ignored) == 0) {
			struct pf_features unknown = pf_features_unknown(&super->features);
			found = unknown.ro_compat && !unknown.incompat;
		}
		if (found)
			pf_text_only_readable(paths[i], super, "a newer poolfs can write to it", diag);
		free(super);
	}
	return found;
}

/* Appends @path if it is a member of the pool. Takes @path. 0 or -ENOMEM. */
static int add_path(struct pf_scan_list *list, char *path, const uint8_t *pool_uuid, const struct pf_env *env)
{
	struct pf_scan_entry entry;
	int err = pf_scan_path(path, env, &entry, NULL);
	if (err == -EACCES)
		list->nr_denied++;
	if (err || (pool_uuid && memcmp(entry.pool_uuid, pool_uuid, sizeof(entry.pool_uuid)) != 0)) {
		free(path);
		return err == -ENOMEM ? err : 0;
	}
	if (list->nr == list->cap) {
		unsigned cap = list->cap ? 2 * list->cap : 8;
		struct pf_scan_entry *more = realloc(list->entries, cap * sizeof(*more));
		if (!more) {
			free(path);
			return -ENOMEM;
		}
		list->entries = more;
		list->cap = cap;
	}
	entry.path = path;
	list->entries[list->nr++] = entry;
	return 0;
}

static bool is_big_file(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size >= PF_MIN_MEMBER_BYTES;
}

int pf_scan_dir(const char *dir, const uint8_t *pool_uuid, const struct pf_env *env, struct pf_scan_list *list,
		struct pf_diag *diag)
{
	struct dirent **names = NULL;
	int nr = scandir(dir, &names, NULL, alphasort);
	if (nr < 0) {
		int err = errno ? -errno : -ENOMEM;
		return pf_diag_set(diag, err, "%s: cannot be searched for members: %s", dir, pf_strerror(err));
	}
	int err = 0;
	for (int i = 0; i < nr; i++) {
		char *path = NULL;
		if (!err &&
		    asprintf(&path, "%s%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/", names[i]->d_name) < 0)
			err = -ENOMEM;
		else if (!err && is_big_file(path))
			err = add_path(list, path, pool_uuid, env);
		else
			free(path);
		free(names[i]);
	}
	free(names);
	return err ? pf_diag_set(diag, err, "%s: %s", dir, pf_strerror(err)) : 0;
}

int pf_scan_devices(const uint8_t *pool_uuid, const struct pf_env *env, struct pf_scan_list *list, struct pf_diag *diag)
{
	FILE *file = fopen(PARTITIONS, "re");
	if (!file)
		return pf_diag_set(diag, -errno, PARTITIONS ": %s; name the members instead", pf_strerror(errno));
	char line[256], name[128];
	unsigned long long kib;
	int err = 0;
	while (!err && fgets(line, sizeof(line), file)) {
		char *path = NULL;
		if (sscanf(line, " %*u %*u %llu %127s", &kib, name) != 2 || kib * 1024 < PF_MIN_MEMBER_BYTES)
			continue;
		/* the kernel's spelling of a slash, as in cciss!c0d0 */
		for (char *c = name; *c; c++)
			*c = *c == '!' ? '/' : *c;
		err = asprintf(&path, "/dev/%s", name) < 0 ? -ENOMEM : add_path(list, path, pool_uuid, env);
	}
	fclose(file);
	return err ? pf_diag_set(diag, err, PARTITIONS ": %s", pf_strerror(err)) : 0;
}

void pf_scan_free(struct pf_scan_list *list)
{
	for (unsigned i = 0; i < list->nr; i++)
		free(list->entries[i].path);
	free(list->entries);
	memset(list, 0, sizeof(*list));
}
