/* SPDX-License-Identifier: MIT */
#include "find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct found {
	char *path; /* NULL: not yet */
	uint64_t generation;
	unsigned stage; /* in which look it was found; 0: named by the user */
};

struct finder {
	struct spec *spec;
	const struct pf_env *env;
	struct pf_diag *diag;
	bool have_pool;
	uint8_t pool_uuid[16];
	unsigned nr_members, nr_found;
	struct found members[PF_MAX_MEMBERS];
	unsigned stage;
	unsigned nr_denied;
	bool searched; /* directories were given */
};

static void uuid_text(const uint8_t *uuid, char *out)
{
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*out++ = '-';
		out += sprintf(out, "%02x", uuid[i]);
	}
}

static bool is_wanted(const struct finder *f, const struct pf_scan_entry *e)
{
	char uuid[37];
	if (!f->spec->pool)
		return f->have_pool && memcmp(f->pool_uuid, e->pool_uuid, 16) == 0;
	uuid_text(e->pool_uuid, uuid);
	return strcasecmp(uuid, f->spec->pool) == 0 || strcmp(e->label, f->spec->pool) == 0;
}

static bool is_complete(const struct finder *f)
{
	return f->have_pool && f->nr_found >= f->nr_members;
}

static int check_pool(struct finder *f, const struct pf_scan_entry *e)
{
	if (f->have_pool && memcmp(f->pool_uuid, e->pool_uuid, 16) != 0) {
		char a[37], b[37];
		uuid_text(f->pool_uuid, a);
		uuid_text(e->pool_uuid, b);
		return pf_diag_set(f->diag, -EINVAL, "two pools have the label '%s': %s and %s; name the UUID instead",
				   f->spec->pool, a, b);
	}
	memcpy(f->pool_uuid, e->pool_uuid, 16);
	f->have_pool = true;
	f->nr_members = e->nr_members;
	return 0;
}

/* Of one member that is found several times what lies nearest wins, then the newest. Two that are alike are for the user to
 * tell apart: one is a copy, or the same thing under two names. */
static int take(struct finder *f, const struct pf_scan_entry *e)
{
	int err = check_pool(f, e);
	if (err || e->member_id >= PF_MAX_MEMBERS)
		return err;
	struct found *m = &f->members[e->member_id];
	if (m->path && (m->stage < f->stage || m->generation > e->generation))
		return 0;
	if (m->path && m->generation == e->generation)
		return pf_diag_set(f->diag, -EINVAL, "'%s' and '%s' are the same member of the pool; name the members that are meant, "
						     "joined by ':'", m->path, e->path);
	if (!m->path)
		f->nr_found++;
	free(m->path);
	m->path = strdup(e->path);
	m->generation = e->generation;
	m->stage = f->stage;
	return m->path ? 0 : -ENOMEM;
}

static int take_list(struct finder *f, struct pf_scan_list *list, int err)
{
	for (unsigned i = 0; i < list->nr && !err; i++) {
		if (is_wanted(f, &list->entries[i]))
			err = take(f, &list->entries[i]);
	}
	f->nr_denied += list->nr_denied;
	pf_scan_free(list);
	return err;
}

/* By a label several pools may be found, and then all are needed to say so. */
static const uint8_t *filter(const struct finder *f)
{
	return f->spec->pool ? NULL : f->pool_uuid;
}

static int look_in(struct finder *f, const char *dir)
{
	struct pf_scan_list list = { 0 };
	int err = pf_scan_dir(dir, filter(f), f->env, &list, f->diag);
	return take_list(f, &list, err);
}

static int look_in_search(struct finder *f, char *const *search, unsigned nr)
{
	int err = 0;
	f->stage++;
	for (unsigned i = 0; i < nr && !err; i++)
		err = look_in(f, search[i]);
	return err;
}

static int look_on_devices(struct finder *f)
{
	struct pf_scan_list list = { 0 };
	f->stage++;
	int err = pf_scan_devices(filter(f), f->env, &list, f->diag);
	return take_list(f, &list, err);
}

/* The directory of @path, or NULL when nothing can lie beside it: a device. */
static char *directory_of(const char *path)
{
	char *dir = strncmp(path, "/dev/", 5) == 0 ? NULL : strdup(path);
	char *slash = dir ? strrchr(dir, '/') : NULL;
	if (!slash) {
		free(dir);
		return NULL;
	}
	slash[slash == dir] = 0;
	return dir;
}

static int look_beside(struct finder *f)
{
	char *dirs[PF_MAX_MEMBERS];
	unsigned nr = 0;
	int err = 0;
	f->stage++;
	for (unsigned i = 0; i < PF_MAX_MEMBERS; i++) {
		char *dir = f->members[i].path ? directory_of(f->members[i].path) : NULL;
		for (unsigned k = 0; k < nr && dir; k++) {
			if (strcmp(dirs[k], dir) == 0) {
				free(dir);
				dir = NULL;
			}
		}
		if (dir)
			dirs[nr++] = dir;
	}
	for (unsigned k = 0; k < nr; k++) {
		struct pf_diag ignored = { "" }, *diag = f->diag;
		/* a directory that may be used but not listed is no reason to stop: the missing members are named later */
		f->diag = &ignored;
		int one = err ? err : look_in(f, dirs[k]);
		f->diag = diag;
		if (one == -EINVAL || one == -ENOMEM)
			err = pf_diag_set(diag, one, "%s", ignored.text);
		free(dirs[k]);
	}
	return err;
}

/* What the user named. Returns 1 when nothing is to be found for it: it is complete, or opening it will say what is wrong. */
static int start_from_given(struct finder *f)
{
	for (unsigned i = 0; i < f->spec->nr; i++) {
		struct pf_scan_entry e = { 0 };
		struct pf_diag ignored = { "" };
		if (pf_scan_path(f->spec->paths[i], f->env, &e, &ignored))
			return 1;
		if ((f->have_pool && memcmp(f->pool_uuid, e.pool_uuid, 16) != 0) || e.member_id >= PF_MAX_MEMBERS ||
		    f->members[e.member_id].path)
			return 1;
		e.path = f->spec->paths[i];
		int err = take(f, &e);
		if (err)
			return err;
	}
	return is_complete(f);
}

static int hand_over(struct finder *f)
{
	struct spec *spec = f->spec;
	for (unsigned i = 0; i < spec->nr; i++)
		free(spec->paths[i]);
	spec->nr = 0;
	for (unsigned i = 0; i < PF_MAX_MEMBERS; i++) {
		if (f->members[i].path)
			spec->paths[spec->nr++] = f->members[i].path;
		f->members[i].path = NULL;
	}
	if (spec->nr)
		return 0;
	return pf_diag_set(f->diag, -ENOENT, "no pool with the label or UUID '%s' was found on the block devices%s%s", spec->pool,
			   f->searched ? " or in the directories given" : "",
			   f->nr_denied ? "; some could not be read: try as root" : "; image files are found with -o search=DIR");
}

int find_members(struct spec *spec, char *const *search, unsigned nr_search, const struct pf_env *env,
		 struct pf_diag *diag)
{
	struct finder f = { .spec = spec, .env = env, .diag = diag, .searched = nr_search > 0 };
	int err = spec->pool ? 0 : start_from_given(&f);
	bool as_given = err > 0;
	if (!err && !spec->pool)
		err = look_beside(&f);
	if (!err && !is_complete(&f))
		err = look_in_search(&f, search, nr_search);
	if (!err && !is_complete(&f))
		err = look_on_devices(&f);
	if (!err && f.have_pool && !is_complete(&f) && spec->pool)
		err = look_beside(&f);
	if (!err)
		err = hand_over(&f);
	for (unsigned i = 0; i < PF_MAX_MEMBERS; i++)
		free(f.members[i].path);
	return as_given ? 0 : err;
}
