/* SPDX-License-Identifier: MIT */
#include "member/complete.h"

#include "member/assemble.h"
#include "member/same.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

struct found {
	char *path;  /* NULL: not yet */
	char *rival; /* another one that is just as near and just as new */
	uint64_t generation;
	unsigned stage; /* in which look it was found; 0: named by the user, and his */
};

struct finder {
	struct pf_complete *c;
	const struct pf_env *env;
	struct pf_diag *diag;
	bool have_pool;
	uint8_t pool_uuid[16];
	uint64_t generation; /* the newest seen: it knows how many members there are */
	unsigned nr_found, stage;
	struct found members[PF_MAX_MEMBERS];
};

/* -- taking what was found -------------------------------------------------------------------------------------------- */
static bool is_wanted(const struct finder *f, const struct pf_scan_entry *e)
{
	char uuid[PF_TEXT_BYTES];
	if (e->member_id >= PF_MAX_MEMBERS)
		return false;
	if (!f->c->pool)
		return memcmp(f->pool_uuid, e->pool_uuid, sizeof(f->pool_uuid)) == 0;
	return strcasecmp(pf_text_uuid(e->pool_uuid, uuid), f->c->pool) == 0 || strcmp(e->label, f->c->pool) == 0;
}

static bool is_complete(const struct finder *f)
{
	return f->have_pool && f->nr_found >= f->c->nr_members;
}

static int note_pool(struct finder *f, const struct pf_scan_entry *e)
{
	if (f->have_pool && memcmp(f->pool_uuid, e->pool_uuid, sizeof(f->pool_uuid)) != 0) {
		char a[PF_TEXT_BYTES], b[PF_TEXT_BYTES];
		return pf_diag_set(f->diag, -EINVAL, "two pools have the label '%s': %s and %s; name the UUID instead",
				   f->c->pool, pf_text_uuid(f->pool_uuid, a), pf_text_uuid(e->pool_uuid, b));
	}
	memcpy(f->pool_uuid, e->pool_uuid, sizeof(f->pool_uuid));
	if (!f->have_pool || e->generation > f->generation) {
		f->generation = e->generation;
		f->c->nr_members = e->nr_members;
	}
	f->have_pool = true;
	return 0;
}

static bool is_device(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISBLK(st.st_mode);
}

/* Moves the path of @e to @to. */
static void adopt(char **to, struct pf_scan_entry *e)
{
	free(*to);
	*to = e->path;
	e->path = NULL;
}

static int take(struct finder *f, struct pf_scan_entry *e)
{
	struct found *m = &f->members[e->member_id];
	int err = note_pool(f, e);
	if (err)
		return err;
	if (m->path && pf_same_thing(m->path, e->path)) {
		if (m->stage && is_device(e->path))
			adopt(&m->path, e);
		return 0;
	}
	if (m->path && (m->stage < f->stage || m->generation > e->generation))
		return 0;
	if (m->path && m->generation == e->generation) {
		adopt(&m->rival, e);
		return 0;
	}
	f->nr_found += !m->path;
	adopt(&m->path, e);
	free(m->rival);
	m->rival = NULL;
	m->generation = e->generation;
	m->stage = f->stage;
	return 0;
}

static int take_list(struct finder *f, struct pf_scan_list *list, int err)
{
	for (unsigned i = 0; i < list->nr && !err; i++) {
		if (is_wanted(f, &list->entries[i]))
			err = take(f, &list->entries[i]);
	}
	f->c->nr_denied += list->nr_denied;
	pf_scan_free(list);
	return err;
}

static int check_rivals(const struct finder *f)
{
	for (unsigned id = 0; id < PF_MAX_MEMBERS; id++) {
		const struct found *m = &f->members[id];
		if (m->rival)
			return pf_diag_set(f->diag, -PF_EMEMBER_TWICE,
					   "%s and %s are both member %u of the pool: name the one that you mean", m->path,
					   m->rival, id + 1);
	}
	return 0;
}

/* -- where to look ---------------------------------------------------------------------------------------------------- */
/* By a label several pools may be found, and then all are needed to say so. */
static const uint8_t *filter(const struct finder *f)
{
	return f->c->pool ? NULL : f->pool_uuid;
}

/* @optional: a directory that may be used but not listed is no reason to stop. */
static int look_in(struct finder *f, const char *dir, bool optional)
{
	struct pf_scan_list list = { 0 };
	struct pf_diag ignored = { "" };
	int err = pf_scan_dir(dir, filter(f), f->env, &list, optional ? &ignored : f->diag);
	return take_list(f, &list, optional && err != -ENOMEM ? 0 : err);
}

static int look_in_search(struct finder *f)
{
	int err = 0;
	f->stage++;
	for (unsigned i = 0; i < f->c->nr_search && !err; i++)
		err = look_in(f, f->c->search[i], false);
	return err ? err : check_rivals(f);
}

static int look_on_devices(struct finder *f)
{
	struct pf_scan_list list = { 0 };
	struct pf_diag ignored = { "" };
	f->stage++;
	/* members that were named can be opened without what the machine says of its devices */
	int err = pf_scan_devices(filter(f), f->env, &list, f->c->pool ? f->diag : &ignored);
	err = take_list(f, &list, f->c->pool || err == -ENOMEM ? err : 0);
	return err ? err : check_rivals(f);
}

struct dirs {
	unsigned nr;
	char *names[2 * PF_MAX_MEMBERS];
};

/* The directory in which @path lies, if it is not there yet. Takes @path. */
static void add_dir(struct dirs *dirs, char *path)
{
	char *slash = path ? strrchr(path, '/') : NULL;
	if (slash)
		slash[slash == path] = '\0';
	else if (path)
		strcpy(path, ".");
	for (unsigned i = 0; i < dirs->nr && path; i++) {
		if (strcmp(dirs->names[i], path) == 0) {
			free(path);
			path = NULL;
		}
	}
	if (path)
		dirs->names[dirs->nr++] = path;
}

static int look_beside(struct finder *f)
{
	struct dirs dirs = { 0 };
	int err = 0;
	f->stage++;
	for (unsigned id = 0; id < PF_MAX_MEMBERS; id++) {
		const char *path = f->members[id].path;
		if (!path || is_device(path))
			continue;
		/* a link and what it leads to may each have the others beside it; one that is not there adds nothing */
		add_dir(&dirs, strdup(path));
		add_dir(&dirs, realpath(path, NULL));
	}
	for (unsigned i = 0; i < dirs.nr; i++) {
		if (!err)
			err = look_in(f, dirs.names[i], true);
		free(dirs.names[i]);
	}
	return err ? err : check_rivals(f);
}

/* -- from beginning to end -------------------------------------------------------------------------------------------- */
/* What the user named. False when nothing is to be searched for it: it is complete, or opening it will say what is wrong. */
static bool start_from_named(struct finder *f)
{
	for (unsigned i = 0; i < f->c->nr; i++) {
		struct pf_scan_entry e;
		struct pf_diag ignored = { "" };
		if (pf_scan_path(f->c->paths[i], f->env, &e, &ignored) || e.member_id >= PF_MAX_MEMBERS ||
		    (f->have_pool && !is_wanted(f, &e)) || f->members[e.member_id].path)
			return false;
		note_pool(f, &e);
		f->members[e.member_id] = (struct found){ .path = f->c->paths[i], .generation = e.generation };
		f->nr_found++;
	}
	return f->have_pool && !is_complete(f);
}

static int search(struct finder *f)
{
	bool by_name = f->c->pool;
	int err = by_name ? 0 : look_beside(f);
	if (!err && !is_complete(f))
		err = look_in_search(f);
	if (!err && !is_complete(f))
		err = look_on_devices(f);
	if (!err && by_name && f->have_pool && !is_complete(f))
		err = look_beside(f);
	return err;
}

/* Appends what was found to what was named, or frees it. */
static void hand_over(struct finder *f, bool wanted)
{
	for (unsigned id = 0; id < PF_MAX_MEMBERS; id++) {
		struct found *m = &f->members[id];
		free(m->rival);
		if (!m->path || !m->stage)
			continue;
		if (wanted && f->c->nr < PF_MAX_MEMBERS)
			f->c->paths[f->c->nr++] = m->path;
		else
			free(m->path);
	}
}

int pf_complete_members(struct pf_complete *c, const struct pf_env *env, struct pf_diag *diag)
{
	struct finder f = { .c = c, .env = env, .diag = diag };
	c->nr_members = c->nr_denied = 0;
	int err = pf_same_check((const char *const *)c->paths, c->nr, diag);
	if (!err && (c->pool || start_from_named(&f))) {
		err = search(&f);
		hand_over(&f, !err);
	}
	return err;
}
