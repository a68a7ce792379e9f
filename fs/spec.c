/* SPDX-License-Identifier: MIT */
#include "spec.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *pool_name(const char *text)
{
	static const char *const prefixes[] = { "pool=", "poolfs:" };
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t len = strlen(prefixes[i]);
		if (strncmp(text, prefixes[i], len) == 0)
			return text + len;
	}
	return NULL;
}

/* Copies one path up to an unescaped colon; *@text moves behind that. */
static char *next_path(const char **text)
{
	const char *from = *text;
	char *path = malloc(strlen(from) + 1), *to = path;
	if (!path)
		return NULL;
	for (; *from && *from != ':'; from++) {
		if (*from == '\\' && (from[1] == ':' || from[1] == '\\'))
			from++;
		*to++ = *from;
	}
	*to = 0;
	*text = *from ? from + 1 : from;
	return path;
}

int spec_parse(const char *text, struct spec *out, struct pf_diag *diag)
{
	memset(out, 0, sizeof(*out));
	const char *name = pool_name(text);
	if (name) {
		if (!*name)
			return pf_diag_set(diag, -EINVAL, "'%s': the label or UUID of the pool is missing", text);
		out->pool = strdup(name);
		return out->pool ? 0 : -ENOMEM;
	}
	const char *rest = text;
	bool more = true;
	while (more) {
		const char *before = rest;
		char *path = next_path(&rest);
		if (!path)
			return -ENOMEM;
		if (!*path) {
			free(path);
			return pf_diag_set(diag, -EINVAL, "'%s': an empty member name; members are joined by single colons, and a "
						   "colon in a path is written '\\:'", text);
		}
		if (out->nr == PF_MAX_MEMBERS) {
			free(path);
			return pf_diag_set(diag, -EINVAL, "'%s': more than %u members", text, PF_MAX_MEMBERS);
		}
		out->paths[out->nr++] = path;
		more = rest > before && rest[-1] == ':';
	}
	return 0;
}

int spec_make_absolute(struct spec *spec)
{
	char cwd[PATH_MAX];
	if (!getcwd(cwd, sizeof(cwd)))
		return 0; /* removed, or out of reach: the paths still lead from it while members are opened */
	for (unsigned i = 0; i < spec->nr; i++) {
		const char *path = spec->paths[i];
		char *absolute;
		if (path[0] == '/')
			continue;
		while (path[0] == '.' && path[1] == '/' && path[2])
			path += strspn(path + 1, "/") + 1;
		if (asprintf(&absolute, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, path) < 0)
			return -ENOMEM;
		free(spec->paths[i]);
		spec->paths[i] = absolute;
	}
	return 0;
}

void spec_free(struct spec *spec)
{
	free(spec->pool);
	for (unsigned i = 0; i < spec->nr; i++)
		free(spec->paths[i]);
	memset(spec, 0, sizeof(*spec));
}
