/* SPDX-License-Identifier: MIT */
#include "find.h"

#include <string.h>

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
	return pf_diag_set(diag, -ENOENT, "no pool with the label or UUID '%s' was found on the block devices%s%s", spec->pool,
			   nr_search ? " or in the directories given" : "",
			   all.nr_denied ? "; some could not be read: try as root" : "; image files are found with -o search=DIR");
}
