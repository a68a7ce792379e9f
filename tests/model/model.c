/* SPDX-License-Identifier: MIT */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

struct model *model_new(void)
{
	return calloc(1, sizeof(struct model));
}

static void free_inode(struct model_inode *i)
{
	if (--i->shared)
		return;
	for (size_t p = 0; p < i->nr_pages; p++) {
		if (i->pages[p] && !--i->pages[p]->refs)
			free(i->pages[p]);
	}
	free(i->pages);
	free(i->blocks);
	for (size_t e = 0; e < i->nr_entries; e++)
		free(i->entries[e].name);
	free(i->entries);
	free(i->target);
	for (size_t x = 0; x < i->nr_xattrs; x++) {
		free(i->xattrs[x].name);
		if (!--i->xattrs[x].value->refs)
			free(i->xattrs[x].value);
	}
	free(i->xattrs);
	free(i);
}

static struct model_inode *clone_inode(const struct model_inode *from)
{
	struct model_inode *i = malloc(sizeof(*i));
	*i = *from;
	i->shared = 1;
	if (i->nr_pages) {
		i->pages = malloc(i->nr_pages * sizeof(*i->pages));
		memcpy(i->pages, from->pages, i->nr_pages * sizeof(*i->pages));
		i->blocks = malloc(i->nr_pages);
		memcpy(i->blocks, from->blocks, i->nr_pages);
	} else {
		i->pages = NULL;
		i->blocks = NULL;
	}
	for (size_t p = 0; p < i->nr_pages; p++) {
		if (i->pages[p])
			i->pages[p]->refs++;
	}
	i->cap_entries = i->nr_entries;
	i->entries = i->nr_entries ? malloc(i->nr_entries * sizeof(*i->entries)) : NULL;
	for (size_t e = 0; e < i->nr_entries; e++)
		i->entries[e] = (struct model_entry){ strdup(from->entries[e].name), from->entries[e].ino };
	i->target = from->target ? strdup(from->target) : NULL;
	i->xattrs = i->nr_xattrs ? malloc(i->nr_xattrs * sizeof(*i->xattrs)) : NULL;
	for (size_t x = 0; x < i->nr_xattrs; x++) {
		i->xattrs[x] = (struct model_xattr){ strdup(from->xattrs[x].name), from->xattrs[x].value };
		i->xattrs[x].value->refs++;
	}
	return i;
}

struct model *model_snapshot(const struct model *m)
{
	struct model *s = malloc(sizeof(*s));
	*s = *m;
	s->cap = m->nr;
	s->slots = malloc((m->nr ? m->nr : 1) * sizeof(*s->slots));
	if (m->nr)
		memcpy(s->slots, m->slots, m->nr * sizeof(*s->slots));
	for (size_t k = 0; k < s->nr; k++)
		s->slots[k].inode->shared++;
	return s;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	for (size_t k = 0; k < m->nr; k++)
		free_inode(m->slots[k].inode);
	free(m->slots);
	free(m);
}

/* Index of the first slot whose number is not below @ino. */
static size_t slot_index(const struct model *m, uint64_t ino)
{
	size_t lo = 0, hi = m->nr;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (m->slots[mid].ino < ino)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct model_slot *model_slot(const struct model *m, uint64_t ino)
{
	size_t k = slot_index(m, ino);
	return k < m->nr && m->slots[k].ino == ino ? &m->slots[k] : NULL;
}

const struct model_inode *model_get(const struct model *m, uint64_t ino)
{
	struct model_slot *slot = model_slot(m, ino);
	return slot ? slot->inode : NULL;
}

struct model_inode *model_edit(struct model *m, uint64_t ino)
{
	struct model_slot *slot = model_slot(m, ino);
	if (!slot)
		return NULL;
	if (slot->inode->shared > 1) {
		struct model_inode *copy = clone_inode(slot->inode);
		slot->inode->shared--;
		slot->inode = copy;
	}
	slot->inode->hash_names = slot->inode->hash_content = 0;
	return slot->inode;
}

struct model_inode *model_add(struct model *m, uint64_t ino, uint32_t mode)
{
	size_t k = slot_index(m, ino);
	if (m->nr == m->cap) {
		m->cap = m->cap ? m->cap * 2 : 64;
		m->slots = realloc(m->slots, m->cap * sizeof(*m->slots));
	}
	memmove(m->slots + k + 1, m->slots + k, (m->nr - k) * sizeof(*m->slots));
	m->nr++;
	struct model_inode *i = calloc(1, sizeof(*i));
	i->shared = 1;
	i->ino = ino;
	i->mode = mode;
	i->nlink = model_is_dir(i) ? 2 : 1;
	i->atime = i->mtime = i->ctime = i->btime = m->now;
	m->slots[k] = (struct model_slot){ .ino = ino, .inode = i };
	return i;
}

void model_drop(struct model *m, uint64_t ino)
{
	size_t k = slot_index(m, ino);
	free_inode(m->slots[k].inode);
	memmove(m->slots + k, m->slots + k + 1, (m->nr - k - 1) * sizeof(*m->slots));
	m->nr--;
}

void model_forget(struct model *m, uint64_t ino, uint64_t nr)
{
	struct model_slot *slot = model_slot(m, ino);
	if (!slot)
		return;
	slot->refs -= nr < slot->refs ? nr : slot->refs;
	if (!slot->refs && !slot->inode->nlink)
		model_drop(m, ino);
}

void model_remount(struct model *m)
{
	for (size_t k = m->nr; k-- > 0;)
		model_forget(m, m->slots[k].ino, UINT64_MAX);
}

bool model_same_error(int64_t expected, int64_t got)
{
	if (expected != -MODEL_EKIND)
		return expected == got;
	switch (-got) {
	case EISDIR:
	case EINVAL:
	case ENODEV:
	case EPERM:
	case EOPNOTSUPP:
	case ENOTDIR:
		return true;
	default:
		return false;
	}
}
