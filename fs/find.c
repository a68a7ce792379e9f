/* SPDX-License-Identifier: MIT */
#include "find.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int none_found(const char *pool, bool searched, unsigned nr_denied, struct pf_diag *diag)
{
	char denied[64] = "";
	if (nr_denied)
		snprintf(denied, sizeof(denied), "; %u of them could not be read%s", nr_denied, geteuid() == 0 ? "" : ", try as root");
	return pf_diag_set(diag, -ENOENT, "no pool with the label or UUID '%s' was found on the block devices%s%s%s", pool,
			   searched ? " or in the directories given" : "", denied,
			   searched ? "; name its members instead" : "; image files are found with -o search=DIR");
}

int find_members(struct spec *spec, char *const *search, unsigned nr_search, const struct pf_env *env,
		 struct pf_diag *diag)
{
	struct pf_complete all = {
		.pool = spec->pool,
		.search = (const char *const *)search,
		.nr_search = nr_search,
		.nr = spec->nr,
	};
	memcpy(all.paths, spec->paths, sizeof(all.paths));
	int err = pf_complete_members(&all, env, diag);
	spec->nr = all.nr;
	memcpy(spec->paths, all.paths, sizeof(spec->paths));
	if (err || all.nr)
		return err;
	return none_found(spec->pool, nr_search > 0, all.nr_denied, diag);
}
