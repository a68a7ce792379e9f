/* SPDX-License-Identifier: MIT
 *
 * Purpose: what the operations on names share: directories that can be changed, links that go. Private to object/.
 *
 * Invariants
 *   I1  A name and the link count of what it names change in one transaction, with the directory that has the name.
 *   I2  An inode that loses its last name gets an orphan item in that transaction (object/orphan.h I1).
 *
 * Locks: names_lock. Uses: object/names, object/data, object/orphan.
 */
#ifndef PF_OBJECT_NAMEI_H
#define PF_OBJECT_NAMEI_H

#include "object/data.h"
#include "object/names.h"
#include "object/orphan.h"

/* A directory in which a name can be made or removed, pinned. -ENOTDIR; -ENOENT: it has been removed. */
int pf_dir_get(struct pf_pool *pool, uint64_t ino, struct pf_inode **out);

/* The entry of @slot, pinned. An entry whose inode is missing is damage. */
int pf_entry_get(struct pf_pool *pool, const struct pf_slot *slot, struct pf_inode **out);

/* Inside a transaction: a name of @inode went (a directory loses all its links at once). Wants the orphan item. */
void pf_link_want_drop(struct pf_txn *txn, const struct pf_inode *inode);
void pf_link_drop(struct pf_txn *txn, struct pf_pool *pool, struct pf_inode *inode, struct timespec now);
/* After it, under the inode's lock. */
void pf_link_dropped(struct pf_pool *pool, struct pf_inode *inode);

/* Inside a transaction: the directory got (+1) or lost (-1) an entry, and a subdirectory. */
void pf_dir_changed(struct pf_inode *dir, int entries, int subdirs, struct timespec now);

/* Owner and mode of what is made in @dir by @cred. */
void pf_inherit(const struct pf_inode *dir, struct pf_cred cred, struct pf_inode_item *item);

/* PF_BREAK_HALF_OPERATION (tests): lets a checkpoint fall between two changes of one transaction. */
void pf_op_half(struct pf_pool *pool, struct pf_txn *txn);

#endif
