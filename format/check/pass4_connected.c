/* SPDX-License-Identifier: MIT
 * Pass 4, second half: is every inode reached from the root, and every directory once? */
#include "check/checker.h"

#define ROOT_INO 1

static struct pf_check_dir *find_dir(const struct pf_checker *c, uint64_t ino)
{
	struct pf_check_inode *inode = pf_inodes_find(&c->inodes, ino);
	return inode ? pf_inodes_dir(&c->inodes, inode) : NULL;
}

/* Marks the way up from @dir and returns what it leads to: the root, an end (loose), or into the way itself: then
 * *loop is a directory of the loop. */
static enum pf_dir_state walk_up(const struct pf_checker *c, struct pf_check_dir *dir, struct pf_check_dir **loop)
{
	while (dir && dir->state == PF_DIR_UNKNOWN) {
		dir->state = PF_DIR_WALKED;
		if (c->inodes.inodes[dir->inode].ino == ROOT_INO)
			return PF_DIR_CONNECTED;
		dir = dir->named_in ? find_dir(c, dir->named_in) : NULL;
	}
	*loop = dir;
	return dir ? (enum pf_dir_state)dir->state : PF_DIR_LOOSE;
}

static void settle(const struct pf_checker *c, struct pf_check_dir *dir, enum pf_dir_state state)
{
	while (dir && dir->state == PF_DIR_WALKED) {
		dir->state = (uint8_t)state;
		dir = dir->named_in ? find_dir(c, dir->named_in) : NULL;
	}
}

/* Loops are cut at one place; what they hold gets a name in lost+found when everything is looked at again. */
static int check_loops(struct pf_checker *c)
{
	for (size_t i = 0; i < c->inodes.nr_dirs; i++) {
		struct pf_check_dir *dir = &c->inodes.dirs[i];
		struct pf_check_dir *in = NULL;
		enum pf_dir_state state = walk_up(c, dir, &in);
		if (state != PF_DIR_WALKED) {
			settle(c, dir, state);
			continue;
		}
		uint64_t ino = c->inodes.inodes[in->inode].ino;
		settle(c, dir, PF_DIR_LOOSE);
		if (!pf_check_report(c, PF_PROBLEM_DIR_LOOP, "inode %llu, named in directory %llu",
				     (unsigned long long)ino, (unsigned long long)in->named_in))
			continue;
		struct pf_fix fix = { .kind = PF_FIX_DELETE_NAME, .a = in->named_in, .b = in->cookie };
		int err = pf_repair_note(&c->repairs, &fix);
		if (err)
			return err;
	}
	return 0;
}

static int check_parents(struct pf_checker *c)
{
	for (size_t i = 0; i < c->inodes.nr_dirs; i++) {
		const struct pf_check_dir *dir = &c->inodes.dirs[i];
		uint64_t ino = c->inodes.inodes[dir->inode].ino;
		uint64_t parent = ino == ROOT_INO ? ROOT_INO : dir->named_in;
		if (!parent || dir->parent == parent)
			continue;
		if (!pf_check_report(c, PF_PROBLEM_DIR_PARENT, "inode %llu: %llu instead of %llu",
				     (unsigned long long)ino, (unsigned long long)dir->parent,
				     (unsigned long long)parent))
			continue;
		struct pf_fix fix = { .kind = PF_FIX_INODE, .a = ino, .b = PF_FIELD_PARENT, .c = parent };
		int err = pf_repair_note(&c->repairs, &fix);
		if (err)
			return err;
	}
	return 0;
}

/* What has no name and is not unlinked. */
static int check_nameless(struct pf_checker *c)
{
	for (size_t i = 0; i < c->inodes.nr; i++) {
		const struct pf_check_inode *inode = &c->inodes.inodes[i];
		if (inode->seen_names || inode->ino == ROOT_INO || !inode->nlink ||
		    inode->seen & (PF_SEEN_ORPHAN | PF_SEEN_INVALID))
			continue;
		if (!pf_check_report(c, PF_PROBLEM_INODE_NO_NAME, "inode %llu, %s", (unsigned long long)inode->ino,
				     inode->dir == PF_NO_DIR ? "no directory" : "a directory"))
			continue;
		struct pf_fix fix = { .kind = PF_FIX_RECONNECT, .a = inode->ino };
		int err = pf_repair_note(&c->repairs, &fix);
		if (err)
			return err;
	}
	return 0;
}

int pf_check_connected(struct pf_checker *c)
{
	if (!c->items_known)
		return 0;
	if (!find_dir(c, ROOT_INO)) {
		pf_check_report(c, PF_PROBLEM_ROOT_MISSING, "there is no directory with inode number 1");
		c->items_known = false;
		return 0;
	}
	int err = check_loops(c);
	if (!err)
		err = check_parents(c);
	return err ? err : check_nameless(c);
}
