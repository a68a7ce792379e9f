/* SPDX-License-Identifier: MIT
 *
 * Pass 5: what is counted. Link counts, sizes of directories, blocks of files, the list of unlinked inodes, and the
 * counters of the superblock. Compared only when everything was seen. */
#include "check/checker.h"

#define ROOT_INO 1

static int set_field(struct pf_checker *c, uint64_t ino, enum pf_inode_field field, uint64_t value)
{
	struct pf_fix fix = { .kind = PF_FIX_INODE, .a = ino, .b = field, .c = value };
	return pf_repair_note(&c->repairs, &fix);
}

static int compare(struct pf_checker *c, enum pf_problem problem, const struct pf_check_inode *inode,
		   enum pf_inode_field field, uint64_t is, uint64_t should)
{
	if (is == should ||
	    !pf_check_report(c, problem, "inode %llu: %llu instead of %llu", (unsigned long long)inode->ino,
			     (unsigned long long)is, (unsigned long long)should))
		return 0;
	return set_field(c, inode->ino, field, should);
}

/* -- inodes -------------------------------------------------------------------------------------------------------- */
static int check_links(struct pf_checker *c, const struct pf_check_inode *inode, const struct pf_check_dir *dir)
{
	bool named = inode->seen_names || inode->ino == ROOT_INO;
	if (inode->seen & PF_SEEN_ORPHAN && named &&
	    pf_check_report(c, PF_PROBLEM_ORPHAN_STALE, "inode %llu has a name", (unsigned long long)inode->ino)) {
		struct pf_fix fix = {
			.kind = PF_FIX_DELETE,
			.key = pf_key_make(PF_CLASS_INODE, 0, PF_TYPE_ORPHAN_INODE, inode->ino),
		};
		int err = pf_repair_note(&c->repairs, &fix);
		if (err)
			return err;
	}
	if (!named && !inode->nlink && !(inode->seen & PF_SEEN_ORPHAN) &&
	    pf_check_report(c, PF_PROBLEM_ORPHAN_MISSING, "inode %llu", (unsigned long long)inode->ino)) {
		struct pf_fix fix = { .kind = PF_FIX_ADD_ORPHAN, .a = inode->ino, .nr_blocks = inode->seen_blocks };
		int err = pf_repair_note(&c->repairs, &fix);
		if (err)
			return err;
	}
	if (!named && !(inode->seen & PF_SEEN_ORPHAN))
		return 0; /* nameless: reported by pass 4, or just now */
	if (!named)
		c->seen_counters.orphan_blocks += inode->seen_blocks;
	uint64_t links = !named ? 0 : dir ? UINT64_C(2) + dir->seen_subdirs : inode->seen_names;
	return compare(c, PF_PROBLEM_NLINK, inode, PF_FIELD_NLINK, inode->nlink, links);
}

static int check_inode(struct pf_checker *c, const struct pf_check_inode *inode)
{
	const struct pf_check_dir *dir = pf_inodes_dir(&c->inodes, inode);
	int err = check_links(c, inode, dir);
	if (!err && dir)
		err = compare(c, PF_PROBLEM_DIR_SIZE, inode, PF_FIELD_SIZE, inode->size, dir->seen_entries);
	if (inode->seen & PF_SEEN_DATA_TWICE)
		pf_check_report(c, PF_PROBLEM_DATA_ID_SHARED, "inode %llu, data %llu", (unsigned long long)inode->ino,
				(unsigned long long)inode->data_id);
	else if (!err && c->blocks_known)
		err = compare(c, PF_PROBLEM_BLOCKS, inode, PF_FIELD_BLOCKS, inode->blocks, inode->seen_blocks);
	return err;
}

static int check_orphans(struct pf_checker *c)
{
	for (size_t i = 0; i < c->nr_orphans; i++) {
		if (pf_inodes_find(&c->inodes, c->orphans[i]) ||
		    !pf_check_report(c, PF_PROBLEM_ORPHAN_STALE, "inode %llu does not exist",
				     (unsigned long long)c->orphans[i]))
			continue;
		struct pf_fix fix = {
			.kind = PF_FIX_DELETE,
			.key = pf_key_make(PF_CLASS_INODE, 0, PF_TYPE_ORPHAN_INODE, c->orphans[i]),
		};
		int err = pf_repair_note(&c->repairs, &fix);
		if (err)
			return err;
	}
	return 0;
}

/* -- counters ------------------------------------------------------------------------------------------------------ */
static bool counter_wrong(struct pf_checker *c, enum pf_problem problem, uint64_t is, uint64_t should)
{
	return is != should &&
	       pf_check_report(c, problem, "%llu instead of %llu", (unsigned long long)is, (unsigned long long)should);
}

static int check_counters(struct pf_checker *c)
{
	const struct pf_counters *is = &c->super->counters, *should = &c->seen_counters;
	bool fix = counter_wrong(c, PF_PROBLEM_COUNT_INODES, is->nr_inodes, should->nr_inodes);
	fix |= counter_wrong(c, PF_PROBLEM_COUNT_DATA, is->data_blocks, should->data_blocks);
	fix |= counter_wrong(c, PF_PROBLEM_COUNT_NO_CSUM, is->no_csum_blocks, should->no_csum_blocks);
	fix |= counter_wrong(c, PF_PROBLEM_COUNT_ORPHANS, is->orphan_blocks, should->orphan_blocks);
	fix |= counter_wrong(c, PF_PROBLEM_COUNT_NODES, is->node_blocks, should->node_blocks);
	if (is->next_id < should->next_id)
		fix |= pf_check_report(c, PF_PROBLEM_NEXT_ID, "%llu instead of at least %llu",
				       (unsigned long long)is->next_id, (unsigned long long)should->next_id);
	struct pf_fix f = { .kind = PF_FIX_COUNTERS };
	return fix ? pf_repair_note(&c->repairs, &f) : 0;
}

int pf_check_counts(struct pf_checker *c)
{
	if (!c->items_known)
		return 0;
	int err = pf_check_progress(c, "counts", 0, c->inodes.nr);
	for (size_t i = 0; !err && i < c->inodes.nr; i++) {
		if (!(c->inodes.inodes[i].seen & PF_SEEN_INVALID))
			err = check_inode(c, &c->inodes.inodes[i]);
	}
	if (!err)
		err = check_orphans(c);
	/* what is repaired first may change them: they are compared when everything else is in order */
	return err || !c->blocks_known || c->repairs.nr ? err : check_counters(c);
}
