/* SPDX-License-Identifier: MIT
 *
 * Purpose: what operations tell the intent log (design rules 2 to 6). On a pool without a log all of this does nothing.
 *
 * Invariants
 *   I1  A change of the namespace, of attributes or of extended attributes appends its record inside its transaction, under the
 *       exclusive tree lock: records are in the order of the changes, and no freeze falls between a change and its record.
 *   I2  Changes of data append nothing; they are noted in the inode (object/dirty.h). pf_intent_file() turns what was noted into
 *       one record of what the file is now. It holds every change up to then: the tree has them, as nothing is staged.
 *   I3  A file record names blocks only whose writes have completed (block/write.h) or that the commit makes together with it
 *       (pf_intent_file_with()), and the members on which they lie.
 *   I4  A record that the log cannot take makes it promise nothing until the next checkpoint (log/log.h I3): nothing here fails for
 *       that.
 *
 * Uses: object/inode, object/dirty, log, ondisk/record.
 */
#ifndef PF_OBJECT_INTENT_H
#define PF_OBJECT_INTENT_H

#include "log/log.h"
#include "object/inode.h"
#include "ondisk/record.h"

/* -- inside the transaction (I1) ---------------------------------------------------------------------------------------- */
/* @name NULL: unnamed. @target: of a symlink. */
void pf_intent_create(struct pf_pool *pool, uint64_t parent, const struct pf_inode *inode, const char *name, size_t name_len,
		      const char *target, size_t target_len);
void pf_intent_link(struct pf_pool *pool, uint64_t parent, uint64_t ino, const char *name, size_t len, struct timespec now);
void pf_intent_remove(struct pf_pool *pool, uint64_t parent, uint64_t ino, const char *name, size_t len, struct timespec now);
/* Something that has no record: a gap. */
void pf_intent_none(struct pf_pool *pool);
/* @rec->rename is filled by the caller, names included. */
void pf_intent_rename(struct pf_pool *pool, const struct pf_record *rec);
/* What of mode, owners and times is different in @after; with @data, mtime and ctime are left to the file record. */
void pf_intent_setattr(struct pf_pool *pool, uint64_t ino, const struct pf_inode_item *before,
		       const struct pf_inode_item *after, bool data);
/* @value NULL: removed. */
void pf_intent_xattr(struct pf_pool *pool, uint64_t ino, const char *name, const void *value, uint32_t len,
		     struct timespec now);

/* -- outside of transactions -------------------------------------------------------------------------------------------- */
/* The file record of what was noted. Inode lock held exclusively, nothing staged. 0: it is in the log, or there was nothing;
 * -EAGAIN: only a checkpoint makes this file durable; -EIO, -ENOMEM, damage codes. */
int pf_intent_file(struct pf_pool *pool, struct pf_inode *inode);

/* The same, when @w has been prepared and not run (block/write.h): the record holds it too, as if it were mapped already, and the
 * next commit runs @writes, which are @w's requests. The caller maps @w when that is done; no checkpoint may be frozen in between
 * (pool->sync_hold). */
int pf_intent_file_with(struct pf_pool *pool, struct pf_inode *inode, struct pf_write *w, struct pf_log_writes *writes);

/* Before a name of @inode changes (rule 6): its file record goes first, or nothing after it is promised without a checkpoint. Same
 * locks. Errors: of reading the tree. */
int pf_intent_before_name(struct pf_pool *pool, struct pf_inode *inode);

#endif
