/* SPDX-License-Identifier: MIT
 *
 * Purpose: the staged blocks of one inode, for those who write them out. Private to stage.c, drain.c and stage_commit.c.
 * Invariants: see stage.h. Locks: the exclusive inode lock, unless it says otherwise. Uses: object/stage.
 */
#ifndef PF_OBJECT_STAGE_INT_H
#define PF_OBJECT_STAGE_INT_H

#include "object/stage.h"

struct pf_stage {
	struct pf_inode *inode;
	uint64_t size;         /* sealed, or being written: of the file with all of them */
	struct pf_times times; /* sealed: likewise */
	struct pf_write write; /* of a drain or commit under way */
	int err;               /* of a drain, so far */
	struct pf_stage *batch;
	/* staging lock: a drain, begun or not */
	TAILQ_ENTRY(pf_stage) drain;
	uint64_t number;
	bool taken;
	unsigned nr;
	struct pf_dirty_block blocks[PF_STAGE_BLOCKS]; /* ascending; data is ours, to change while it is not sealed */
};

/* inode->stage becomes inode->sealed, of which there is none. */
void pf_stage_seal(struct pf_inode *inode);
/* The first @nr_blocks are staged no more: the tree has them. */
void pf_stage_trim(struct pf_pool *pool, struct pf_stage *s, unsigned nr_blocks);
/* @s is gone. The caller has a pin of his own. */
void pf_stage_release(struct pf_pool *pool, struct pf_stage *s);

/* -- the list of inodes with staged blocks; no inode lock needed ------------------------------------------------------------- */
/* The oldest, pinned; or NULL. */
struct pf_inode *pf_stage_first(struct pf_pool *pool);
/* A drain that fails leaves its inode on the list: it moves to the end, so that the others have their turn. Still on it. */
void pf_stage_move_to_end(struct pf_pool *pool, struct pf_inode *inode);
unsigned pf_stage_count(struct pf_pool *pool);

/* -- drain.c ------------------------------------------------------------------------------------------------------------------ */
struct pf_write pf_stage_write_of(struct pf_stage *s);
enum pf_map_how {
	PF_MAP_LOCKING,  /* takes the lock of the draining inode for each piece */
	PF_MAP_LOCKED,   /* it is held */
	PF_MAP_HELD,     /* and so is sync_hold */
	PF_MAP_PROMISED, /* and the log names all of it */
};
/* The data of s->write has been written: enters it in the tree, from piece *@nr_mapped on, which says how far it came. */
int pf_stage_map(struct pf_pool *pool, struct pf_stage *s, unsigned *nr_mapped, enum pf_map_how how);
/* Ends s->write, which was mapped so far, if it came to that. What was staged is in the tree then, and @s gone (@err 0); or the rest of it
 * is still staged. Returns @err. */
int pf_stage_end_write(struct pf_pool *pool, struct pf_stage *s, unsigned nr_mapped, int err);

#endif
