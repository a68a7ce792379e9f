/* SPDX-License-Identifier: MIT
 *
 * Purpose: what fsck remembers of each inode between the passes: what the inode says, and what was seen to be so.
 *
 * Invariants
 *   I1  Sorted by number, because the walk shows them so. At most one for each inode item: memory is bounded by the
 *       pool.
 *   I2  A directory has a second record; dirs[inode.dir] belongs to it.
 *   I3  After pf_inodes_seal() no inode is added, and data ids can be looked up.
 *
 * Uses: base.
 */
#ifndef PF_CHECK_INODES_H
#define PF_CHECK_INODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PF_NO_DIR UINT32_MAX

/* pf_check_inode.seen */
enum pf_inode_seen {
	PF_SEEN_ORPHAN = 1,     /* listed as unlinked */
	PF_SEEN_INVALID = 2,    /* reported: its other fields are not compared */
	PF_SEEN_DATA_TWICE = 4, /* its data id is another's too */
};

struct pf_check_inode {
	uint64_t ino, size, blocks, data_id;
	uint64_t seen_blocks; /* of its extents */
	uint32_t nlink;
	uint32_t seen_names;
	uint32_t dir; /* index of its directory record, or PF_NO_DIR */
	uint16_t mode;
	uint8_t seen; /* enum pf_inode_seen */
};

enum pf_dir_state { PF_DIR_UNKNOWN, PF_DIR_WALKED, PF_DIR_CONNECTED, PF_DIR_LOOSE };

struct pf_check_dir {
	uint64_t parent, next_cookie;
	uint64_t inode; /* index of its inode */
	uint64_t seen_entries;
	uint64_t named_in, cookie; /* its first name: directory and cookie; 0: none */
	uint32_t seen_subdirs;
	uint8_t state; /* enum pf_dir_state */
};

struct pf_data_id {
	uint64_t data_id;
	size_t inode;
};

struct pf_inodes {
	struct pf_check_inode *inodes;
	size_t nr, cap;
	struct pf_check_dir *dirs;
	size_t nr_dirs, cap_dirs;
	struct pf_data_id *moved; /* files whose data id is not their number; sorted by data id */
	size_t nr_moved, cap_moved;
};

void pf_inodes_free(struct pf_inodes *inodes);
/* Appends a zeroed record; @is_dir: with a directory record. NULL: no memory. */
struct pf_check_inode *pf_inodes_add(struct pf_inodes *inodes, uint64_t ino, bool is_dir);
/* The last one added has this data id. -ENOMEM. */
int pf_inodes_add_data_id(struct pf_inodes *inodes, uint64_t data_id);
void pf_inodes_seal(struct pf_inodes *inodes);

struct pf_check_inode *pf_inodes_find(const struct pf_inodes *inodes, uint64_t ino);
/* NULL: no inode has it. */
struct pf_check_inode *pf_inodes_find_data(const struct pf_inodes *inodes, uint64_t data_id);

static inline struct pf_check_dir *pf_inodes_dir(const struct pf_inodes *inodes, const struct pf_check_inode *inode)
{
	return inode->dir == PF_NO_DIR ? NULL : &inodes->dirs[inode->dir];
}

/* Makes room for one more element of @size bytes in @array. -ENOMEM. */
int pf_grow(void *array, size_t nr, size_t *cap, size_t size);

#endif
