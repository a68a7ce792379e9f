/* SPDX-License-Identifier: MIT */
#include "model/model.h"

#include <stdio.h> /* RENAME_* */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const struct model_entry *model_find(const struct model_inode *dir, const char *name)
{
	for (size_t e = 0; e < dir->nr_entries; e++) {
		if (!strcmp(dir->entries[e].name, name))
			return &dir->entries[e];
	}
	return NULL;
}

static void add_entry(struct model_inode *dir, const char *name, uint64_t ino)
{
	if (dir->nr_entries == dir->cap_entries) {
		dir->cap_entries = dir->cap_entries ? dir->cap_entries * 2 : 8;
		dir->entries = realloc(dir->entries, dir->cap_entries * sizeof(*dir->entries));
	}
	dir->entries[dir->nr_entries++] = (struct model_entry){ strdup(name), ino };
}

static void del_entry(struct model_inode *dir, const char *name)
{
	struct model_entry *e = (struct model_entry *)model_find(dir, name);
	free(e->name);
	*e = dir->entries[--dir->nr_entries];
}

static void touch(struct model *m, struct model_inode *dir)
{
	dir->mtime = dir->ctime = m->now;
}

/* Errors of a name that is to be made or removed. */
static int check_name(const char *name)
{
	if (strlen(name) > 255)
		return -ENAMETOOLONG;
	return !name[0] || !strcmp(name, ".") || !strcmp(name, "..") ? -EINVAL : 0;
}

int model_lookup(const struct model *m, uint64_t parent, const char *name, uint64_t *ino)
{
	const struct model_inode *dir = model_get(m, parent);
	if (strlen(name) > 255)
		return -ENAMETOOLONG;
	/* the kernel finds an inode by its number through "." */
	if (!strcmp(name, ".")) {
		*ino = parent;
		return 0;
	}
	if (!model_is_dir(dir))
		return -ENOTDIR;
	if (!strcmp(name, "..")) {
		*ino = dir->parent;
		return 0;
	}
	const struct model_entry *e = model_find(dir, name);
	if (!e)
		return -ENOENT;
	*ino = e->ino;
	return 0;
}

static int check_new(const struct model *m, uint64_t parent, const char *name)
{
	const struct model_inode *dir = model_get(m, parent);
	int err = check_name(name);
	if (err)
		return err;
	if (!model_is_dir(dir))
		return -ENOTDIR;
	if (!dir->nlink)
		return -ENOENT;
	return model_find(dir, name) ? -EEXIST : 0;
}

static struct model_inode *make(struct model *m, uint64_t parent, uint32_t mode, struct pf_cred cred, uint64_t ino)
{
	const struct model_inode *dir = model_get(m, parent);
	bool set_gid = dir->mode & S_ISGID;
	uint32_t gid = set_gid ? dir->gid : cred.gid;
	if (set_gid && S_ISDIR(mode))
		mode |= S_ISGID;
	struct model_inode *i = model_add(m, ino, mode);
	model_slot(m, ino)->refs = 1;
	i->uid = cred.uid;
	i->gid = gid;
	return i;
}

int model_create(struct model *m, uint64_t parent, const char *name, uint32_t mode, struct pf_cred cred, uint32_t major,
		 uint32_t minor, uint64_t ino)
{
	int err = check_new(m, parent, name);
	if (err || !ino)
		return err;
	struct model_inode *i = make(m, parent, mode, cred, ino);
	if (S_ISCHR(mode) || S_ISBLK(mode)) {
		i->rdev_major = major;
		i->rdev_minor = minor;
	}
	struct model_inode *dir = model_edit(m, parent);
	if (S_ISDIR(mode)) {
		i->parent = parent;
		dir->nlink++;
	}
	add_entry(dir, name, ino);
	touch(m, dir);
	return 0;
}

int model_create_unnamed(struct model *m, uint64_t parent, uint32_t mode, struct pf_cred cred, uint64_t ino)
{
	const struct model_inode *dir = model_get(m, parent);
	if (!model_is_dir(dir))
		return -ENOTDIR;
	if (!ino)
		return 0;
	struct model_inode *i = make(m, parent, mode, cred, ino);
	i->nlink = 0;
	i->unnamed = true;
	return 0;
}

int model_symlink(struct model *m, uint64_t parent, const char *name, const char *target, struct pf_cred cred,
		  uint64_t ino)
{
	if (strlen(target) > 4095)
		return -ENAMETOOLONG;
	int err = check_new(m, parent, name);
	if (err || !ino)
		return err;
	struct model_inode *i = make(m, parent, S_IFLNK | 0777, cred, ino);
	i->target = strdup(target);
	i->size_bytes = strlen(target);
	struct model_inode *dir = model_edit(m, parent);
	add_entry(dir, name, ino);
	touch(m, dir);
	return 0;
}

int model_link(struct model *m, uint64_t ino, uint64_t parent, const char *name)
{
	const struct model_inode *old = model_get(m, ino);
	int err = check_new(m, parent, name);
	if (model_is_dir(old) && (!err || err == -EEXIST))
		return -EPERM;
	if (err)
		return err;
	if (!old->nlink && !old->unnamed)
		return -ENOENT;
	struct model_inode *i = model_edit(m, ino);
	i->nlink++;
	i->unnamed = false;
	i->ctime = m->now;
	struct model_inode *dir = model_edit(m, parent);
	add_entry(dir, name, ino);
	touch(m, dir);
	return 0;
}

static void lose_name(struct model *m, uint64_t ino)
{
	struct model_inode *i = model_edit(m, ino);
	i->nlink = model_is_dir(i) ? 0 : i->nlink - 1;
	i->ctime = m->now;
	model_forget(m, ino, 0);
}

static int remove_name(struct model *m, uint64_t parent, const char *name, bool directory)
{
	const struct model_inode *dir = model_get(m, parent);
	int err = check_name(name);
	if (err)
		return err;
	if (!model_is_dir(dir))
		return -ENOTDIR;
	const struct model_entry *e = model_find(dir, name);
	if (!e)
		return -ENOENT;
	uint64_t ino = e->ino;
	const struct model_inode *i = model_get(m, ino);
	if (directory && !model_is_dir(i))
		return -ENOTDIR;
	if (!directory && model_is_dir(i))
		return -EISDIR;
	if (directory && i->nr_entries)
		return -ENOTEMPTY;
	struct model_inode *edit = model_edit(m, parent);
	del_entry(edit, name);
	if (directory)
		edit->nlink--;
	touch(m, edit);
	lose_name(m, ino);
	return 0;
}

int model_unlink(struct model *m, uint64_t parent, const char *name)
{
	return remove_name(m, parent, name, false);
}

int model_rmdir(struct model *m, uint64_t parent, const char *name)
{
	return remove_name(m, parent, name, true);
}

bool model_is_ancestor(const struct model *m, uint64_t above, uint64_t below)
{
	for (;;) {
		if (above == below)
			return true;
		const struct model_inode *i = model_get(m, below);
		if (!i || !model_is_dir(i) || i->parent == below)
			return false;
		below = i->parent;
	}
}

static void move_dir(struct model *m, uint64_t ino, uint64_t from, uint64_t to)
{
	model_edit(m, ino)->parent = to;
	model_edit(m, from)->nlink--;
	model_edit(m, to)->nlink++;
}

static void exchange(struct model *m, uint64_t old_parent, const char *old_name, uint64_t new_parent,
		     const char *new_name)
{
	struct model_entry *a = (struct model_entry *)model_find(model_edit(m, old_parent), old_name);
	struct model_entry *b = (struct model_entry *)model_find(model_edit(m, new_parent), new_name);
	uint64_t x = a->ino, y = b->ino;
	a->ino = y;
	b->ino = x;
	if (model_is_dir(model_get(m, x)))
		move_dir(m, x, old_parent, new_parent);
	if (model_is_dir(model_get(m, y)))
		move_dir(m, y, new_parent, old_parent);
	model_edit(m, x)->ctime = model_edit(m, y)->ctime = m->now;
	touch(m, model_edit(m, old_parent));
	touch(m, model_edit(m, new_parent));
}

static void move(struct model *m, uint64_t old_parent, const char *old_name, uint64_t new_parent, const char *new_name)
{
	uint64_t ino = model_find(model_get(m, old_parent), old_name)->ino;
	const struct model_entry *over = model_find(model_get(m, new_parent), new_name);
	if (over) {
		uint64_t victim = over->ino;
		if (model_is_dir(model_get(m, victim)))
			model_edit(m, new_parent)->nlink--;
		del_entry(model_edit(m, new_parent), new_name);
		lose_name(m, victim);
	}
	add_entry(model_edit(m, new_parent), new_name, ino);
	del_entry(model_edit(m, old_parent), old_name);
	if (model_is_dir(model_get(m, ino)))
		move_dir(m, ino, old_parent, new_parent);
	model_edit(m, ino)->ctime = m->now;
	touch(m, model_edit(m, old_parent));
	touch(m, model_edit(m, new_parent));
}

/* Errors of a rename whose names exist as @ino and (0: not) @over,: a cycle first, then the kinds. */
static int check_rename(const struct model *m, uint64_t ino, uint64_t old_parent, uint64_t over, uint64_t new_parent,
			unsigned flags)
{
	if (model_is_ancestor(m, ino, new_parent))
		return -EINVAL;
	if (over && flags & RENAME_EXCHANGE)
		return model_is_ancestor(m, over, old_parent) ? -EINVAL : 0;
	if (over && over != ino) {
		const struct model_inode *from = model_get(m, ino), *to = model_get(m, over);
		if (model_is_dir(to) && !model_is_dir(from))
			return -EISDIR;
		if (!model_is_dir(to) && model_is_dir(from))
			return -ENOTDIR;
		if (model_is_dir(to) && to->nr_entries)
			return -ENOTEMPTY;
	}
	return 0;
}

int model_rename(struct model *m, uint64_t old_parent, const char *old_name, uint64_t new_parent, const char *new_name,
		 unsigned flags, struct pf_cred cred, uint64_t whiteout)
{
	if (flags & ~7u || (flags & RENAME_EXCHANGE && flags != RENAME_EXCHANGE))
		return -EINVAL;
	int err = check_name(old_name);
	if (!err)
		err = check_name(new_name);
	if (err)
		return err;
	const struct model_inode *from = model_get(m, old_parent), *to = model_get(m, new_parent);
	if (!model_is_dir(from) || !model_is_dir(to))
		return -ENOTDIR;
	const struct model_entry *a = model_find(from, old_name), *b = model_find(to, new_name);
	if (!a || (!b && flags & RENAME_EXCHANGE) || !to->nlink)
		return -ENOENT;
	if (b && flags & RENAME_NOREPLACE)
		return -EEXIST;
	err = check_rename(m, a->ino, old_parent, b ? b->ino : 0, new_parent, flags);
	if (err)
		return err;
	if (b && a->ino == b->ino)
		return 0;
	if (flags & RENAME_EXCHANGE)
		exchange(m, old_parent, old_name, new_parent, new_name);
	else
		move(m, old_parent, old_name, new_parent, new_name);
	return flags & RENAME_WHITEOUT ? model_create(m, old_parent, old_name, S_IFCHR, cred, 0, 0, whiteout) : 0;
}
