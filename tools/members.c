/* SPDX-License-Identifier: MIT */
#include "members.h"

#include "cli.h"
#include "probe.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void members_free(struct members *m)
{
	for (unsigned i = 0; i < m->nr; i++)
		free(m->paths[i]);
	m->nr = 0;
}

/* -- completing ----------------------------------------------------------------------------------------------------- */
struct candidate {
	const struct pf_scan_entry *entry, *rival; /* rival: another that is just as new */
};

static int append(struct members *m, const char *path)
{
	m->paths[m->nr] = strdup(path);
	if (!m->paths[m->nr])
		return -ENOMEM;
	m->nr++;
	return 0;
}

/* A loop device shows the content of its file: that is not a second copy. */
static bool same_thing(const char *a, const char *b)
{
	struct stat st_a, st_b;
	dev_t dev;
	ino_t ino;
	if (stat(a, &st_a) != 0 || stat(b, &st_b) != 0)
		return false;
	if (S_ISBLK(st_a.st_mode) && S_ISBLK(st_b.st_mode))
		return st_a.st_rdev == st_b.st_rdev;
	if (probe_loop_backing(&st_a, &dev, &ino))
		return dev == st_b.st_dev && ino == st_b.st_ino;
	if (probe_loop_backing(&st_b, &dev, &ino))
		return dev == st_a.st_dev && ino == st_a.st_ino;
	return st_a.st_dev == st_b.st_dev && st_a.st_ino == st_b.st_ino;
}

/* A backup that lies beside its original is older than that; of two that are equally new nobody can tell. */
static void offer(struct candidate *c, const struct pf_scan_entry *e)
{
	if (c->entry && same_thing(c->entry->path, e->path)) {
		struct stat st;
		if (stat(e->path, &st) == 0 && S_ISBLK(st.st_mode))
			c->entry = e;
	} else if (!c->entry || e->generation > c->entry->generation) {
		*c = (struct candidate){ .entry = e };
	} else if (e->generation == c->entry->generation) {
		c->rival = e;
	}
}

static int scan(const struct members *m, const uint8_t *pool_uuid, const struct pf_env *env, struct pf_scan_list *list)
{
	struct pf_diag ignored = { 0 };
	for (unsigned i = 0; i < m->nr; i++) {
		struct stat st;
		char *copy = strdup(m->paths[i]);
		if (!copy)
			return -ENOMEM;
		/* A directory that cannot be read has nothing to offer; the missing member will be named. */
		if (stat(copy, &st) == 0 && S_ISREG(st.st_mode))
			(void)pf_scan_dir(dirname(copy), pool_uuid, env, list, &ignored);
		free(copy);
	}
	(void)pf_scan_devices(pool_uuid, env, list, &ignored);
	return 0;
}

static int take_found(struct members *m, const struct candidate *found)
{
	for (unsigned id = 0; id < PF_MAX_MEMBERS && m->nr < PF_MAX_MEMBERS; id++) {
		const struct candidate *c = &found[id];
		if (!c->entry)
			continue;
		if (c->rival) {
			cli_message("%s and %s are both member %u of the pool: name the one that you mean", c->entry->path,
				    c->rival->path, id + 1);
			return -PF_EMEMBER_TWICE;
		}
		int err = append(m, c->entry->path);
		if (err)
			return err;
	}
	return 0;
}

/* @known[i] is what paths[i] says that it is. */
static int complete(struct members *m, const struct pf_scan_entry *known, const struct pf_env *env)
{
	struct candidate found[PF_MAX_MEMBERS] = { 0 };
	struct pf_scan_list list = { 0 };
	int err = scan(m, known[0].pool_uuid, env, &list);
	for (unsigned i = 0; !err && i < list.nr; i++) {
		const struct pf_scan_entry *e = &list.entries[i];
		bool given = false;
		for (unsigned k = 0; k < m->nr; k++)
			given |= !memcmp(known[k].member_uuid, e->member_uuid, sizeof(e->member_uuid));
		if (!given && e->member_id < PF_MAX_MEMBERS)
			offer(&found[e->member_id], e);
	}
	if (!err)
		err = take_found(m, found);
	if (!err && m->nr < known[0].nr_members && list.nr_denied && geteuid() != 0)
		cli_message("%u files or devices could not be read; as root more members may be found", list.nr_denied);
	pf_scan_free(&list);
	return err;
}

/* Whatever is wrong with the members is left to the opening of the pool: it finds the words for everything. */
static bool should_complete(const struct members *m, const struct pf_env *env, struct pf_scan_entry *known)
{
	unsigned nr_members = 0;
	for (unsigned i = 0; i < m->nr; i++) {
		struct pf_diag ignored = { 0 };
		if (pf_scan_path(m->paths[i], env, &known[i], &ignored) != 0 ||
		    memcmp(known[i].pool_uuid, known[0].pool_uuid, sizeof(known[i].pool_uuid)) != 0)
			return false;
		if (known[i].nr_members > nr_members)
			nr_members = known[i].nr_members;
	}
	return m->nr < nr_members;
}

/* Two names of one file would end in a lock that this program holds itself. */
static int check_twice(const struct members *m)
{
	for (unsigned i = 0; i < m->nr; i++) {
		for (unsigned k = 0; k < i; k++) {
			if (!same_thing(m->paths[k], m->paths[i]))
				continue;
			cli_message("%s and %s are the same file or device; name each member once", m->paths[k], m->paths[i]);
			return -PF_EMEMBER_TWICE;
		}
	}
	return 0;
}

int members_find(char **given, unsigned nr, struct members *out)
{
	struct pf_scan_entry known[PF_MAX_MEMBERS];
	const struct pf_env *env = pf_env_system();
	int err = 0;
	*out = (struct members){ 0 };
	for (unsigned i = 0; i < nr && i < PF_MAX_MEMBERS && !err; i++)
		err = append(out, given[i]);
	if (!err)
		err = check_twice(out);
	if (!err && should_complete(out, env, known))
		err = complete(out, known, env);
	if (err == -ENOMEM)
		cli_fail(NULL, given[0], err);
	if (err)
		members_free(out);
	return err;
}

/* -- opening -------------------------------------------------------------------------------------------------------- */
/* The library's words are those for mount(8); what helps here is another thing. */
static void fail_open(const struct pf_diag *diag, const char *what, int err, const char *write_hint)
{
	if (write_hint && (err == -EROFS || err == -EACCES || err == -EPERM))
		cli_message("%s: cannot be written (%s); allow writing, or %s", what, pf_strerror(err), write_hint);
	else
		cli_fail(diag, what, err);
}

int members_open_ios(const struct members *m, const char *write_hint, const struct pf_env *env,
		     struct pf_io *ios[PF_MAX_MEMBERS])
{
	for (unsigned i = 0; i < m->nr; i++) {
		struct pf_diag diag = { 0 };
		int err = pf_io_open(m->paths[i], write_hint ? PF_IO_OPEN_WRITE : 0, CLI_LOCK_WAIT_MS, env, &ios[i],
				     &diag);
		if (!err)
			continue;
		fail_open(&diag, m->paths[i], err, write_hint);
		while (i--)
			pf_io_close(ios[i]);
		return err;
	}
	return 0;
}

int members_open_pool(const struct members *m, const struct pf_pool_options *options, const char *write_hint,
		      const struct pf_env *env, struct pf_pool **out)
{
	struct pf_pool_options patient = *options;
	struct pf_diag diag = { 0 };
	patient.wait_ms = CLI_LOCK_WAIT_MS;
	int err = pf_pool_open(members_paths(m), m->nr, &patient, env, out, &diag);
	if (err)
		fail_open(&diag, m->paths[0], err, write_hint);
	return err;
}

int members_open_set(const struct members *m, unsigned flags, const struct pf_env *env, struct pf_set **out, bool *in_use)
{
	struct pf_diag diag = { 0 };
	int err = pf_set_open(members_paths(m), m->nr, flags, 0, env, out, &diag);
	*in_use = err == -PF_EMEMBER_BUSY;
	if (*in_use) {
		diag.text[0] = '\0';
		err = pf_set_open(members_paths(m), m->nr, flags | PF_SET_UNLOCKED, 0, env, out, &diag);
	}
	if (err)
		cli_fail(&diag, m->paths[0], err);
	return err;
}
