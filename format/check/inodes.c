/* SPDX-License-Identifier: MIT */
#include "check/inodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pf_grow(void *array, size_t nr, size_t *cap, size_t size)
{
	void **p = array;
	if (nr < *cap)
		return 0;
	size_t new_cap = *cap ? *cap + *cap / 2 : 64;
	void *bigger = reallocarray(*p, new_cap, size);
	if (!bigger)
		return -ENOMEM;
	*p = bigger;
	*cap = new_cap;
	return 0;
}

void pf_inodes_free(struct pf_inodes *t)
{
	free(t->inodes);
	free(t->dirs);
	free(t->moved);
	memset(t, 0, sizeof(*t));
}

struct pf_check_inode *pf_inodes_add(struct pf_inodes *t, uint64_t ino, bool is_dir)
{
	if (pf_grow(&t->inodes, t->nr, &t->cap, sizeof(t->inodes[0])))
		return NULL;
	if (is_dir && (t->nr_dirs == PF_NO_DIR || pf_grow(&t->dirs, t->nr_dirs, &t->cap_dirs, sizeof(t->dirs[0]))))
		return NULL;
	struct pf_check_inode *inode = &t->inodes[t->nr];
	*inode = (struct pf_check_inode){ .ino = ino, .dir = PF_NO_DIR };
	if (is_dir) {
		t->dirs[t->nr_dirs] = (struct pf_check_dir){ .inode = t->nr };
		inode->dir = (uint32_t)t->nr_dirs++;
	}
	t->nr++;
	return inode;
}

int pf_inodes_add_data_id(struct pf_inodes *t, uint64_t data_id)
{
	struct pf_check_inode *inode = &t->inodes[t->nr - 1];
	inode->data_id = data_id;
	if (data_id == inode->ino)
		return 0;
	if (pf_grow(&t->moved, t->nr_moved, &t->cap_moved, sizeof(t->moved[0])))
		return -ENOMEM;
	t->moved[t->nr_moved++] = (struct pf_data_id){ data_id, t->nr - 1 };
	return 0;
}

static int data_id_cmp(const void *a, const void *b)
{
	const struct pf_data_id *x = a, *y = b;
	if (x->data_id != y->data_id)
		return x->data_id < y->data_id ? -1 : 1;
	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

void pf_inodes_seal(struct pf_inodes *t)
{
	if (t->nr_moved)
		qsort(t->moved, t->nr_moved, sizeof(t->moved[0]), data_id_cmp);
	for (size_t i = 0; i < t->nr_moved; i++) {
		struct pf_check_inode *inode = &t->inodes[t->moved[i].inode];
		const struct pf_check_inode *other = pf_inodes_find(t, inode->data_id);
		bool before = i > 0 && t->moved[i - 1].data_id == inode->data_id;
		if (before || (other && other->data_id == inode->data_id))
			inode->seen |= PF_SEEN_DATA_TWICE;
	}
}

static int ino_cmp(const void *key, const void *element)
{
	uint64_t ino = *(const uint64_t *)key;
	const struct pf_check_inode *inode = element;
	return ino < inode->ino ? -1 : ino > inode->ino;
}

struct pf_check_inode *pf_inodes_find(const struct pf_inodes *t, uint64_t ino)
{
	return t->nr ? bsearch(&ino, t->inodes, t->nr, sizeof(t->inodes[0]), ino_cmp) : NULL;
}

static int moved_cmp(const void *key, const void *element)
{
	uint64_t data_id = *(const uint64_t *)key;
	const struct pf_data_id *moved = element;
	return data_id < moved->data_id ? -1 : data_id > moved->data_id;
}

struct pf_check_inode *pf_inodes_find_data(const struct pf_inodes *t, uint64_t data_id)
{
	struct pf_check_inode *same = pf_inodes_find(t, data_id);
	if (same && same->data_id == data_id)
		return same;
	struct pf_data_id *moved = NULL;
	if (t->nr_moved)
		moved = bsearch(&data_id, t->moved, t->nr_moved, sizeof(t->moved[0]), moved_cmp);
	return moved ? &t->inodes[moved->inode] : NULL;
}
