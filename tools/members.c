/* SPDX-License-Identifier: MIT */
#include "members.h"

#include "cli.h"

#include <stdlib.h>
#include <string.h>

void members_free(struct members *m)
{
	for (unsigned i = 0; i < m->nr; i++)
		free(m->paths[i]);
	m->nr = 0;
}

int members_find(char **given, unsigned nr, struct members *out)
{
	*out = (struct members){ 0 };
	for (unsigned i = 0; i < nr && i < PF_MAX_MEMBERS; i++) {
		out->paths[i] = strdup(given[i]);
		if (!out->paths[i]) {
			cli_fail(NULL, given[i], -ENOMEM);
			members_free(out);
			return -ENOMEM;
		}
		out->nr++;
	}
	return 0;
}

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
		int err = pf_io_open(m->paths[i], write_hint ? PF_IO_OPEN_WRITE : 0, 0, env, &ios[i], &diag);
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
	struct pf_diag diag = { 0 };
	int err = pf_pool_open(members_paths(m), m->nr, options, env, out, &diag);
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
