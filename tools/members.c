/* SPDX-License-Identifier: MIT */
#include "members.h"

#include "cli.h"

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
int members_find(char **given, unsigned nr, struct members *out)
{
	struct pf_complete all = { 0 };
	struct pf_diag diag = { 0 };
	int err = 0;
	for (unsigned i = 0; i < nr && i < PF_MAX_MEMBERS && !err; i++) {
		all.paths[i] = strdup(given[i]);
		all.nr += all.paths[i] != NULL;
		err = all.paths[i] ? 0 : -ENOMEM;
	}
	if (!err)
		err = pf_complete_members(&all, pf_env_system(), &diag);
	out->nr = all.nr;
	memcpy(out->paths, all.paths, sizeof(out->paths));
	if (!err && all.nr < all.nr_members && all.nr_denied && geteuid() != 0)
		cli_message("%u files or devices could not be read; as root more members may be found", all.nr_denied);
	if (err) {
		cli_fail(&diag, given[0], err);
		members_free(out);
	}
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
