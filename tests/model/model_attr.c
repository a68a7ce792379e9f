/* SPDX-License-Identifier: MIT */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

static struct model_xattr *find_xattr(const struct model_inode *i, const char *name)
{
	for (size_t x = 0; x < i->nr_xattrs; x++) {
		if (!strcmp(i->xattrs[x].name, name))
			return &i->xattrs[x];
	}
	return NULL;
}

const struct model_value *model_getxattr(const struct model_inode *i, const char *name)
{
	struct model_xattr *x = find_xattr(i, name);
	return x ? x->value : NULL;
}

static void put_value(struct model_value *v)
{
	if (!--v->refs)
		free(v);
}

static void del_xattr(struct model_inode *i, struct model_xattr *x)
{
	free(x->name);
	put_value(x->value);
	*x = i->xattrs[--i->nr_xattrs];
}

void model_drop_capability(struct model_inode *i)
{
	struct model_xattr *x = find_xattr(i, "security.capability");
	if (!x)
		return;
	del_xattr(i, x);
}

/* What a write or chown without privilege takes away: set-gid only together with the group's right to execute. */
void model_kill_suidgid(struct model_inode *i)
{
	i->mode &= ~(uint32_t)S_ISUID;
	if (i->mode & S_IXGRP)
		i->mode &= ~(uint32_t)S_ISGID;
}

int model_setxattr(struct model *m, uint64_t ino, const char *name, const void *value, size_t len, int flags)
{
	if (len > 65536)
		return -E2BIG;
	struct model_xattr *x = find_xattr(model_get(m, ino), name);
	if (x && flags & XATTR_CREATE)
		return -EEXIST;
	if (!x && flags & XATTR_REPLACE)
		return -ENODATA;
	struct model_inode *i = model_edit(m, ino);
	struct model_value *v = malloc(sizeof(*v) + len);
	v->refs = 1;
	v->len = len;
	memcpy(v->bytes, value, len);
	x = find_xattr(i, name);
	if (x) {
		put_value(x->value);
		x->value = v;
	} else {
		i->xattrs = realloc(i->xattrs, (i->nr_xattrs + 1) * sizeof(*i->xattrs));
		i->xattrs[i->nr_xattrs++] = (struct model_xattr){ strdup(name), v };
	}
	i->ctime = m->now;
	return 0;
}

int model_removexattr(struct model *m, uint64_t ino, const char *name)
{
	if (!find_xattr(model_get(m, ino), name))
		return -ENODATA;
	struct model_inode *i = model_edit(m, ino);
	del_xattr(i, find_xattr(i, name));
	i->ctime = m->now;
	return 0;
}

int model_setattr(struct model *m, uint64_t ino, unsigned mask, const struct pf_attr *in)
{
	const struct model_inode *old = model_get(m, ino);
	if (mask & PF_ATTR_SIZE && !model_is_file(old))
		return -MODEL_EKIND;
	if (mask & PF_ATTR_SIZE && in->size_bytes > PF_MAX_FILE_BYTES)
		return -EFBIG;
	struct model_inode *i = model_edit(m, ino);
	bool keeps_times = mask & PF_ATTR_KEEP_TIMES && model_is_file(i);
	bool chown = mask & (PF_ATTR_UID | PF_ATTR_GID) && !(mask & PF_ATTR_MODE) && !model_is_dir(i);
	if (chown || mask & PF_ATTR_KILL_SUIDGID)
		model_kill_suidgid(i);
	if (mask & (PF_ATTR_UID | PF_ATTR_GID | PF_ATTR_SIZE))
		model_drop_capability(i);
	if (mask & PF_ATTR_MODE)
		i->mode = (i->mode & (uint32_t)S_IFMT) | (in->mode & 07777);
	if (mask & PF_ATTR_UID)
		i->uid = in->uid;
	if (mask & PF_ATTR_GID)
		i->gid = in->gid;
	if (mask & PF_ATTR_SIZE) {
		model_truncate(i, in->size_bytes);
		if (!keeps_times)
			i->mtime = m->now;
	}
	if (mask & PF_ATTR_ATIME)
		i->atime = in->atime;
	if (mask & PF_ATTR_MTIME)
		i->mtime = in->mtime;
	if (mask & PF_ATTR_ATIME_NOW)
		i->atime = m->now;
	if (mask & PF_ATTR_MTIME_NOW)
		i->mtime = m->now;
	if (mask & PF_ATTR_CTIME)
		i->ctime = in->ctime;
	else if (!keeps_times)
		i->ctime = m->now;
	return 0;
}
