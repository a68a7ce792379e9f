/* SPDX-License-Identifier: MIT
 *
 * From damaged data to paths: one scan of the inodes (which file has the data, which directories are there), one scan
 * of the names (what is the file called, what are the directories called), then up from parent to parent. */
#include "check/inodes.h"
#include "check/scrubber.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ROOT_INO       1
#define MAX_PATH_BYTES 65536u
#define NO_NAME        SIZE_MAX

struct file { /* one damaged data id */
	uint64_t data_id, ino;
	uint64_t parent;
	size_t name; /* in the arena, or NO_NAME */
};
struct dir {
	uint64_t ino, parent;
	size_t name;
};

struct naming {
	struct file *files; /* by data id, later by inode number */
	size_t nr_files;
	struct dir *dirs; /* by number */
	size_t nr_dirs, cap_dirs;
	char *arena; /* names, each terminated */
	size_t arena_len, arena_cap;
};

/* -- tables ------------------------------------------------------------------------------------------------------ */
static int hit_cmp(const void *a, const void *b)
{
	const struct pf_scrub_hit *x = a, *y = b;
	if (x->data_id != y->data_id)
		return x->data_id < y->data_id ? -1 : 1;
	if (x->file_block != y->file_block)
		return x->file_block < y->file_block ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int file_cmp_data(const void *a, const void *b)
{
	const struct file *x = a, *y = b;
	return x->data_id < y->data_id ? -1 : x->data_id > y->data_id;
}

static int file_cmp_ino(const void *a, const void *b)
{
	const struct file *x = a, *y = b;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

static int dir_cmp(const void *a, const void *b)
{
	const struct dir *x = a, *y = b;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

static struct dir *find_dir(const struct naming *n, uint64_t ino)
{
	struct dir key = { .ino = ino };
	return n->nr_dirs ? bsearch(&key, n->dirs, n->nr_dirs, sizeof(key), dir_cmp) : NULL;
}

static int keep_name(struct naming *n, const struct pf_name_item *item, size_t *where)
{
	while (n->arena_cap - n->arena_len < item->name_len + 1) {
		size_t cap = n->arena_cap ? n->arena_cap * 2 : 4096;
		char *bigger = realloc(n->arena, cap);
		if (!bigger)
			return -ENOMEM;
		n->arena = bigger;
		n->arena_cap = cap;
	}
	memcpy(n->arena + n->arena_len, item->name, item->name_len);
	n->arena[n->arena_len + item->name_len] = 0;
	*where = n->arena_len;
	n->arena_len += item->name_len + 1;
	return 0;
}

/* -- scans ------------------------------------------------------------------------------------------------------- */
static int see_inode(void *arg, const struct pf_walk_item *walked)
{
	struct naming *n = arg;
	struct pf_inode_item item;
	uint64_t ino = pf_key_object(walked->key);
	if (pf_key_type(walked->key) != PF_TYPE_INODE || !ino || pf_inode_item_unpack(walked->data, walked->len, &item))
		return 0;
	if (S_ISDIR(item.mode)) {
		if (pf_grow(&n->dirs, n->nr_dirs, &n->cap_dirs, sizeof(n->dirs[0])))
			return -ENOMEM;
		n->dirs[n->nr_dirs++] = (struct dir){ ino, item.parent, NO_NAME };
	} else if (S_ISREG(item.mode)) {
		struct file key = { .data_id = item.data_id };
		struct file *file = bsearch(&key, n->files, n->nr_files, sizeof(key), file_cmp_data);
		if (file)
			file->ino = ino;
	}
	return 0;
}

static int see_name(void *arg, const struct pf_walk_item *walked)
{
	struct naming *n = arg;
	struct pf_name_item item;
	uint64_t in = pf_key_object(walked->key);
	if (pf_key_type(walked->key) != PF_TYPE_NAME || pf_name_item_unpack(walked->data, walked->len, &item))
		return 0;
	if (item.dtype == S_IFDIR >> 12) {
		struct dir *dir = find_dir(n, item.ino);
		if (dir && dir->name == NO_NAME && dir->parent == in)
			return keep_name(n, &item, &dir->name);
		return 0;
	}
	struct file key = { .ino = item.ino };
	struct file *file = bsearch(&key, n->files, n->nr_files, sizeof(key), file_cmp_ino);
	if (!file || file->name != NO_NAME)
		return 0;
	file->parent = in;
	return keep_name(n, &item, &file->name);
}

static int scan(struct pf_set *set, const struct pf_super *super, enum pf_key_class class,
		int (*see)(void *arg, const struct pf_walk_item *item), struct naming *n)
{
	const struct pf_walk_ops ops = { .item = see };
	return pf_walk_tree(set, super, pf_key_make(class, 0, 0, 0),
			    pf_key_make(class, PF_KEY_FIELD_MAX, 0xff, PF_KEY_FIELD_MAX), &ops, n);
}

/* -- paths ------------------------------------------------------------------------------------------------------- */
static bool prepend(char *buf, size_t *start, const char *name)
{
	size_t len = strlen(name);
	if (len + 1 > *start)
		return false;
	*start -= len;
	memcpy(buf + *start, name, len);
	buf[--*start] = '/';
	return true;
}

/* The path of a file in @buf, or "?" when its name or a directory above is lost. */
static const char *path_of(const struct naming *n, const struct file *file, char *buf)
{
	size_t start = MAX_PATH_BYTES - 1;
	buf[start] = 0;
	if (file->name == NO_NAME || !prepend(buf, &start, n->arena + file->name))
		return "?";
	/* a name takes two bytes at least: the buffer bounds the steps, also in a loop */
	for (uint64_t ino = file->parent; ino != ROOT_INO;) {
		const struct dir *dir = find_dir(n, ino);
		if (!dir || dir->name == NO_NAME || !prepend(buf, &start, n->arena + dir->name))
			return "?";
		ino = dir->parent;
	}
	return buf + start;
}

/* The data ids of sorted @hits, each once. */
static int collect_files(struct naming *n, const struct pf_scrub_hit *hits, size_t nr)
{
	n->files = calloc(nr, sizeof(n->files[0]));
	if (!n->files)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		if (!i || hits[i].data_id != hits[i - 1].data_id)
			n->files[n->nr_files++] = (struct file){ .data_id = hits[i].data_id, .name = NO_NAME };
	}
	return 0;
}

static int tell_all(struct naming *n, const struct pf_scrub_hit *hits, size_t nr, pf_scrub_named_fn *fn, void *arg)
{
	char *buf = malloc(MAX_PATH_BYTES);
	if (!buf)
		return -ENOMEM;
	qsort(n->files, n->nr_files, sizeof(n->files[0]), file_cmp_data);
	const char *path = NULL;
	for (size_t i = 0, f = 0; i < nr; i++) {
		if (i && hits[i].data_id != hits[i - 1].data_id)
			f++;
		if (!i || hits[i].data_id != hits[i - 1].data_id)
			path = path_of(n, &n->files[f], buf);
		fn(arg, path, n->files[f].ino, &hits[i]);
	}
	free(buf);
	return 0;
}

int pf_scrub_names(struct pf_set *set, const struct pf_super *super, struct pf_scrub_hit *hits, size_t nr,
		   pf_scrub_named_fn *fn, void *arg)
{
	struct naming n = { 0 };
	qsort(hits, nr, sizeof(hits[0]), hit_cmp);
	int err = collect_files(&n, hits, nr);
	if (!err)
		err = scan(set, super, PF_CLASS_INODE, see_inode, &n);
	if (!err) {
		qsort(n.files, n.nr_files, sizeof(n.files[0]), file_cmp_ino);
		err = scan(set, super, PF_CLASS_DIR, see_name, &n);
	}
	if (!err)
		err = tell_all(&n, hits, nr, fn, arg);
	free(n.files);
	free(n.dirs);
	free(n.arena);
	return err;
}
