/* SPDX-License-Identifier: MIT */
#include "object/path.h"

#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 64
#define MAX_ENTRIES 20000 /* a longer directory is not searched for a message */

/* The name of @ino in directory @dir: its length, or 0. */
static unsigned find_name(struct pf_pool *pool, uint64_t dir, uint64_t ino, char *name)
{
	struct pf_view v;
	int err;
	unsigned len = 0, nr = 0;
	uint64_t cookie = 0;
	PF_VIEW(v, pool->tree, err) {
		while (!err && !len && nr++ < MAX_ENTRIES) {
			struct pf_item item;
			struct pf_name_item entry;
			err = pf_view_next(&v, pf_key_make(PF_CLASS_DIR, dir, PF_TYPE_NAME, cookie), &item);
			if (err || pf_key_object(item.key) != dir || pf_key_type(item.key) != PF_TYPE_NAME)
				break;
			cookie = pf_key_offset(item.key) + 1;
			if (pf_name_item_unpack(item.data, item.len, &entry) || entry.ino != ino)
				continue;
			memcpy(name, entry.name, entry.name_len);
			len = entry.name_len;
		}
	}
	return len;
}

static uint64_t parent_of(struct pf_pool *pool, uint64_t ino)
{
	struct pf_disk_inode disk;
	struct pf_inode_item item;
	int len = pf_tree_get(pool->tree, pf_key_inode(ino), &disk, sizeof(disk));
	return len > 0 && !pf_inode_item_unpack(&disk, (unsigned)len, &item) ? item.parent : 0;
}

void pf_path_of(struct pf_pool *pool, const struct pf_inode *inode, char *buf, size_t cap)
{
	char path[4096];
	size_t start = sizeof(path) - 1;
	uint64_t ino = inode->ino, parent = inode->item.parent;
	path[start] = 0;
	for (unsigned depth = 0; ino != PF_ROOT_INO; depth++) {
		char name[PF_MAX_NAME_BYTES];
		unsigned len = parent && depth < MAX_DEPTH ? find_name(pool, parent, ino, name) : 0;
		if (!len || len + 1 > start) {
			snprintf(buf, cap, "inode %llu%s", (unsigned long long)ino, path + start);
			return;
		}
		start -= len;
		memcpy(path + start, name, len);
		path[--start] = '/';
		ino = parent;
		parent = parent_of(pool, ino);
	}
	snprintf(buf, cap, "%s", path[start] ? path + start : "/");
}
