/* SPDX-License-Identifier: MIT */
#include "model/ops_internal.h"

#include <stdlib.h>
#include <sys/xattr.h>

static struct timespec pick_time(struct ops *o)
{
	struct timespec t;
	t.tv_sec = (int64_t)rng_below(&o->rng, UINT64_C(1) << 35) - (INT64_C(1) << 32); /* the years 1833 to 2922 */
	t.tv_nsec = (long)rng_below(&o->rng, 1000000000);
	return t;
}

int op_setattr(struct ops *o)
{
	uint64_t ino = pick_inode(o, is_any);
	if (!ino)
		return o->failure[0] ? -1 : 0;
	struct pf_attr in = { 0 }, out;
	unsigned mask = 1u << rng_below(&o->rng, 11);
	if (rng_one_in(&o->rng, 3))
		mask |= 1u << rng_below(&o->rng, 11);
	mask &= ~(unsigned)PF_ATTR_SIZE;
	if (mask & PF_ATTR_ATIME)
		mask &= ~(unsigned)PF_ATTR_ATIME_NOW;
	if (mask & PF_ATTR_MTIME)
		mask &= ~(unsigned)PF_ATTR_MTIME_NOW;
	if (mask & PF_ATTR_MODE || model_is_dir(model_get(o->model, ino)))
		mask &= ~(unsigned)PF_ATTR_KILL_SUIDGID;
	if (!mask)
		return 0;
	in.mode = (uint32_t)rng_below(&o->rng, 010000);
	in.uid = (uint32_t)rng_next(&o->rng);
	in.gid = (uint32_t)rng_next(&o->rng);
	in.atime = pick_time(o);
	in.mtime = pick_time(o);
	in.ctime = pick_time(o);
	describe(o, "(%ju, mask %x, mode %o)", (uintmax_t)ino, mask, in.mode);
	o->ino = ino;
	int got = pf_setattr(o->pool, ino, mask, &in, &out);
	if (excused(o, got, false))
		return check_inode(o, ino);
	if (expect(o, model_setattr(o->model, ino, mask, &in), got))
		return -1;
	const struct model_inode *i = model_get(o->model, ino);
	if (mask & (PF_ATTR_ATIME | PF_ATTR_ATIME_NOW) &&
	    (out.atime.tv_sec != i->atime.tv_sec || out.atime.tv_nsec != i->atime.tv_nsec))
		return fail(o, "atime is not what was set");
	return check_attr(o, &out, ino);
}

static void pick_xattr(struct ops *o, uint64_t ino, bool existing, char *name)
{
	const struct model_inode *i = model_get(o->model, ino);
	if (existing && i->nr_xattrs) {
		strcpy(name, i->xattrs[rng_below(&o->rng, i->nr_xattrs)].name);
	} else if (rng_one_in(&o->rng, 8)) {
		strcpy(name, rng_one_in(&o->rng, 2) ? "security.capability" : "system.posix_acl_access");
	} else {
		say(name, 512, "user.x%u", (unsigned)rng_below(&o->rng, 40));
		if (rng_one_in(&o->rng, 10)) {
			size_t at = strlen(name), len = 200 + (size_t)rng_below(&o->rng, 56);
			memset(name + at, 'y', len - at);
			name[len] = 0;
		}
	}
}

int op_setxattr(struct ops *o)
{
	char name[512];
	uint64_t ino = pick_inode(o, is_any);
	if (!ino)
		return o->failure[0] ? -1 : 0;
	/* one inode in three is favoured: it gets many */
	if (rng_one_in(&o->rng, 3))
		ino = o->config.root;
	pick_xattr(o, ino, rng_one_in(&o->rng, 3), name);
	size_t len = (size_t)(rng_one_in(&o->rng, o->config.big_xattrs) ? 65530 + rng_below(&o->rng, 8) : rng_skewed(&o->rng, 5000));
	if (rng_one_in(&o->rng, 12))
		len = 0;
	int flags = rng_one_in(&o->rng, 4) ? XATTR_CREATE : rng_one_in(&o->rng, 4) ? XATTR_REPLACE : 0;
	rng_fill(&o->rng, o->data, len);
	describe(o, "(%ju, '%s', %zu bytes, flags %d)", (uintmax_t)ino, name, len, flags);
	o->ino = ino;
	int got = pf_setxattr(o->pool, ino, name, o->data, len, flags);
	if (excused(o, got, true))
		return check_inode(o, ino);
	if (expect(o, model_setxattr(o->model, ino, name, o->data, len, flags), got))
		return -1;
	return check_inode(o, ino);
}

static int check_list(struct ops *o, uint64_t ino)
{
	const struct model_inode *i = model_get(o->model, ino);
	size_t want = 0;
	for (size_t x = 0; x < i->nr_xattrs; x++)
		want += strlen(i->xattrs[x].name) + 1;
	int64_t len = pf_listxattr(o->pool, ino, NULL, 0);
	if (excused(o, len, false))
		return 0;
	if (len != (int64_t)want)
		return fail(o, "the list of names has %jd bytes, expected %zu", (intmax_t)len, want);
	if (want > 1) {
		int64_t small = pf_listxattr(o->pool, ino, (char *)o->answer, want - 1);
		if (small != -ERANGE && !excused(o, small, false))
			return fail(o, "listing into a buffer that is too small gives %jd", (intmax_t)small);
	}
	len = pf_listxattr(o->pool, ino, (char *)o->answer, want + 100);
	if (excused(o, len, false) || !want)
		return 0;
	for (const char *name = (char *)o->answer; name < (char *)o->answer + want; name += strlen(name) + 1) {
		if (!model_getxattr(i, name))
			return fail(o, "lists '%s', which is not there", name);
	}
	return 0;
}

int op_getxattr(struct ops *o)
{
	char name[512];
	uint64_t ino = pick_inode(o, is_any);
	if (!ino)
		return o->failure[0] ? -1 : 0;
	pick_xattr(o, ino, !rng_one_in(&o->rng, 4), name);
	describe(o, "(%ju, '%s')", (uintmax_t)ino, name);
	const struct model_value *v = model_getxattr(model_get(o->model, ino), name);
	int64_t got = pf_getxattr(o->pool, ino, name, NULL, 0);
	if (excused(o, got, false))
		return 0;
	if (got != (v ? (int64_t)v->len : -ENODATA))
		return fail(o, "length %jd, expected %jd", (intmax_t)got, v ? (intmax_t)v->len : -ENODATA);
	if (v && v->len > 1) {
		got = pf_getxattr(o->pool, ino, name, o->answer, v->len - 1);
		if (got != -ERANGE && !excused(o, got, false))
			return fail(o, "a buffer that is too small gives %jd", (intmax_t)got);
	}
	if (v && v->len) {
		got = pf_getxattr(o->pool, ino, name, o->answer, v->len + rng_below(&o->rng, 100));
		if (excused(o, got, false))
			return 0;
		if (got != (int64_t)v->len || memcmp(o->answer, v->bytes, v->len))
			return fail(o, "another value (%jd)", (intmax_t)got);
	}
	return check_list(o, ino);
}

int op_removexattr(struct ops *o)
{
	char name[512];
	uint64_t ino = pick_inode(o, is_any);
	if (!ino)
		return o->failure[0] ? -1 : 0;
	pick_xattr(o, ino, !rng_one_in(&o->rng, 10), name);
	describe(o, "(%ju, '%s')", (uintmax_t)ino, name);
	o->ino = ino;
	int got = pf_removexattr(o->pool, ino, name);
	if (excused(o, got, false))
		return check_inode(o, ino);
	if (expect(o, model_removexattr(o->model, ino, name), got))
		return -1;
	return check_inode(o, ino);
}

int op_forget(struct ops *o)
{
	size_t first = (size_t)rng_below(&o->rng, o->model->nr);
	for (size_t k = 0; k < o->model->nr; k++) {
		struct model_slot *slot = &o->model->slots[(first + k) % o->model->nr];
		if (!slot->refs)
			continue;
		uint64_t nr = rng_one_in(&o->rng, 3) ? 1 + rng_below(&o->rng, slot->refs) : slot->refs;
		describe(o, "(%ju, %ju of %ju)", (uintmax_t)slot->ino, (uintmax_t)nr, (uintmax_t)slot->refs);
		pf_forget(o->pool, slot->ino, nr);
		model_forget(o->model, slot->ino, nr);
		return 0;
	}
	return 0;
}

int op_statfs(struct ops *o)
{
	struct pf_statfs s;
	pf_pool_statfs(o->pool, &s);
	describe(o, "()");
	if (s.avail_blocks > s.free_blocks || s.free_blocks > s.total_blocks)
		return fail(o, "%ju blocks, %ju free, %ju available", (uintmax_t)s.total_blocks,
			    (uintmax_t)s.free_blocks, (uintmax_t)s.avail_blocks);
	return 0;
}
