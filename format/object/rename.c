/* SPDX-License-Identifier: MIT
 * Rename, replace, exchange and rename with a whiteout: one transaction, so nobody ever sees neither or both. */
#include "object/intent.h"
#include "object/namei.h"
#include "object/stage.h"

#include <stdio.h>
#include <sys/stat.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
#define RENAME_WHITEOUT 4
#endif

struct side {
	struct pf_inode *dir, *inode; /* inode NULL: the name is free */
	struct pf_slot slot;
	const char *name;
	size_t len;
};

/* Is @ino the directory @dir or above it? Parents change under names_lock only. */
static int is_above(struct pf_pool *pool, uint64_t ino, uint64_t dir, bool *yes)
{
	uint64_t mark = 0; /* damage: in a ring of parents it is met again (Brent's way of finding cycles) */
	*yes = false;
	for (uint64_t nr = 0; !(*yes = dir == ino) && dir != PF_ROOT_INO; nr++) {
		struct pf_inode *inode;
		if (dir == mark)
			return -PF_EITEM_INVALID;
		if (!(nr & (nr + 1)))
			mark = dir;
		int err = pf_inode_get(pool, dir, &inode);
		if (err)
			return err;
		dir = pf_inode_look(inode).parent;
		pf_inode_put(pool, inode);
	}
	return 0;
}

static int find_side(struct pf_pool *pool, struct side *s)
{
	int err = pf_slot_find(pool, s->dir->ino, s->name, s->len, &s->slot);
	if (!err && s->slot.found)
		err = pf_entry_get(pool, &s->slot, &s->inode);
	return err;
}

/* A directory must not move below itself. */
static int check_cycle(struct pf_pool *pool, const struct side *from, const struct side *to)
{
	bool above;
	if (!pf_inode_is_dir(from->inode) || from->dir == to->dir)
		return 0;
	int err = is_above(pool, from->inode->ino, to->dir->ino, &above);
	return err ? err : above ? -EINVAL : 0;
}

static int check(struct pf_pool *pool, const struct side *from, const struct side *to, unsigned flags)
{
	if (!from->inode)
		return -ENOENT;
	if (flags & RENAME_NOREPLACE && to->inode)
		return -EEXIST;
	if (flags & RENAME_EXCHANGE && !to->inode)
		return -ENOENT;
	if (to->slot.full)
		return -ENOSPC;
	int err = check_cycle(pool, from, to);
	if (!err && flags & RENAME_EXCHANGE)
		err = check_cycle(pool, to, from);
	if (err || !to->inode || flags & RENAME_EXCHANGE)
		return err;
	if (pf_inode_is_dir(from->inode) == pf_inode_is_dir(to->inode))
		return 0;
	return pf_inode_is_dir(to->inode) ? -EISDIR : -ENOTDIR;
}

static void want_all(struct pf_txn *txn, const struct side *from, const struct side *to, const struct pf_inode *whiteout)
{
	pf_slot_want(txn, from->dir->ino, &from->slot);
	pf_slot_want(txn, to->dir->ino, &to->slot);
	pf_inode_want(txn, from->dir->ino);
	pf_inode_want(txn, to->dir->ino);
	pf_inode_want(txn, from->inode->ino);
	if (to->inode) {
		pf_inode_want(txn, to->inode->ino);
		pf_link_want_drop(txn, to->inode);
	}
	if (whiteout)
		pf_inode_want(txn, whiteout->ino);
}

static void exchange(struct pf_txn *txn, struct side *a, struct side *b, struct timespec now)
{
	int a_dir = pf_inode_is_dir(a->inode), b_dir = pf_inode_is_dir(b->inode);
	pf_slot_put(txn, a->dir->ino, &a->slot, b->inode->ino, pf_dtype_of(b->inode->item.mode), a->name, a->len);
	pf_slot_put(txn, b->dir->ino, &b->slot, a->inode->ino, pf_dtype_of(a->inode->item.mode), b->name, b->len);
	a->inode->item.parent = b->dir->ino;
	b->inode->item.parent = a->dir->ino;
	a->inode->item.ctime = b->inode->item.ctime = now;
	pf_dir_changed(a->dir, 0, b_dir - a_dir, now);
	pf_dir_changed(b->dir, 0, a_dir - b_dir, now);
	pf_inode_store(txn, b->inode);
}

/* What an overlay filesystem takes for "removed": the kernel's WHITEOUT_DEV and WHITEOUT_MODE. */
static int make_whiteout(struct pf_pool *pool, const struct pf_inode *dir, struct pf_cred cred, struct pf_inode **out)
{
	struct timespec now = pf_inode_now(pool);
	struct pf_inode_item item = { .mode = S_IFCHR, .nlink = 1, .parent = dir->ino, .atime = now, .mtime = now, .ctime = now, .btime = now };
	pf_inherit(dir, cred, &item);
	return pf_inode_new(pool, pf_pool_new_id(pool), &item, out);
}

static void enter_whiteout(struct pf_txn *txn, struct pf_pool *pool, struct side *from, struct pf_inode *whiteout)
{
	pf_inode_store(txn, whiteout);
	pf_slot_put(txn, from->dir->ino, &from->slot, whiteout->ino, pf_dtype_of(whiteout->item.mode), from->name, from->len);
	pool->counters.nr_inodes++;
	pf_inode_born(whiteout);
}

static void move(struct pf_txn *txn, struct pf_pool *pool, struct side *from, struct side *to, struct pf_inode *whiteout,
		 struct timespec now)
{
	struct pf_inode *inode = from->inode;
	int is_dir = pf_inode_is_dir(inode);
	if (whiteout)
		enter_whiteout(txn, pool, from, whiteout);
	else
		pf_slot_del(txn, from->dir->ino, &from->slot);
	pf_dir_changed(from->dir, whiteout ? 0 : -1, -is_dir, now);
	pf_op_half(pool, txn);
	if (to->inode) {
		pf_dir_changed(to->dir, 0, is_dir - (pf_inode_is_dir(to->inode) ? 1 : 0), now);
		pf_link_drop(txn, pool, to->inode, now);
	} else {
		to->dir->item.next_cookie++;
		pf_dir_changed(to->dir, 1, is_dir, now);
	}
	pf_slot_put(txn, to->dir->ino, &to->slot, inode->ino, pf_dtype_of(inode->item.mode), to->name, to->len);
	inode->item.parent = to->dir->ino;
	inode->item.ctime = now;
}

static void tell_log(struct pf_pool *pool, const struct side *from, const struct side *to, unsigned flags, struct timespec now)
{
	struct pf_record rec = {
		.type = PF_RECORD_RENAME,
		.ino = from->inode->ino,
		.time = now,
		.rename = {
			.old_parent = from->dir->ino,
			.new_parent = to->dir->ino,
			.target = to->inode ? to->inode->ino : 0,
			.flags = flags & RENAME_EXCHANGE,
			.old_name = { from->name, (uint32_t)from->len },
			.new_name = { to->name, (uint32_t)to->len },
		},
	};
	pf_intent_rename(pool, &rec);
}

/* All locks are held. @whiteout: NULL, or new. */
static int rename_locked(struct pf_pool *pool, struct side *from, struct side *to, unsigned flags, struct pf_inode *whiteout)
{
	if (to->inode && pf_inode_is_dir(to->inode) && to->inode->item.size && !(flags & RENAME_EXCHANGE))
		return -ENOTEMPTY;
	/* rule 6: the new name has the data that the file had before; likewise for an exchange */
	int err = pf_stage_drain(pool, from->inode);
	if (!err && flags & RENAME_EXCHANGE)
		err = pf_stage_drain(pool, to->inode);
	if (!err)
		err = pf_intent_before_name(pool, from->inode);
	if (!err && flags & RENAME_EXCHANGE)
		err = pf_intent_before_name(pool, to->inode);
	if (err)
		return err;
	if (!to->slot.found)
		to->slot.cookie = to->dir->item.next_cookie;
	struct pf_txn txn;
	pf_txn_init(&txn, pool->tree);
	want_all(&txn, from, to, whiteout);
	err = pf_txn_lock(&txn);
	if (!err) {
		struct timespec now = pf_inode_now(pool);
		if (whiteout)
			pf_intent_none(pool);
		else
			tell_log(pool, from, to, flags, now);
		if (flags & RENAME_EXCHANGE)
			exchange(&txn, from, to, now);
		else
			move(&txn, pool, from, to, whiteout, now);
		pf_inode_store(&txn, from->dir);
		pf_inode_store(&txn, to->dir);
		pf_inode_store(&txn, from->inode);
	}
	pf_txn_end(&txn);
	if (!err && to->inode && !(flags & RENAME_EXCHANGE))
		pf_link_dropped(pool, to->inode);
	return err;
}

static int rename_with_whiteout(struct pf_pool *pool, struct side *from, struct side *to, unsigned flags, struct pf_cred cred)
{
	struct pf_inode *whiteout;
	int err = make_whiteout(pool, from->dir, cred, &whiteout);
	if (err)
		return err;
	err = rename_locked(pool, from, to, flags, whiteout);
	if (err)
		pf_inode_abort(pool, whiteout);
	else
		pf_inode_put(pool, whiteout);
	return err;
}

int pf_rename(struct pf_pool *pool, uint64_t old_parent, const char *old_name, size_t old_len, uint64_t new_parent,
	      const char *new_name, size_t new_len, unsigned flags, struct pf_cred cred)
{
	struct side from = { .name = old_name, .len = old_len }, to = { .name = new_name, .len = new_len };
	if (flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT) ||
	    (flags & RENAME_EXCHANGE && flags & (RENAME_NOREPLACE | RENAME_WHITEOUT)))
		return -EINVAL;
	int err = pf_name_check(old_name, old_len);
	if (!err)
		err = pf_name_check(new_name, new_len);
	if (!err)
		err = pf_op_begin(pool, flags & RENAME_WHITEOUT ? PF_GROWS : PF_OVERWRITES);
	if (err)
		return err;
	pthread_mutex_lock(&pool->names_lock);
	err = pf_dir_get(pool, old_parent, &from.dir);
	if (!err)
		err = pf_dir_get(pool, new_parent, &to.dir);
	if (!err)
		err = find_side(pool, &from);
	if (!err)
		err = find_side(pool, &to);
	if (!err)
		err = check(pool, &from, &to, flags);
	/* two names of one file: POSIX wants nothing done */
	if (!err && from.inode != to.inode) {
		struct pf_inode *all[4] = { from.dir, to.dir, from.inode, to.inode };
		pf_inode_lock_all(pool, all, 4);
		err = flags & RENAME_WHITEOUT ? rename_with_whiteout(pool, &from, &to, flags, cred)
					      : rename_locked(pool, &from, &to, flags, NULL);
		pf_inode_unlock_all(all, 4);
	}
	pthread_mutex_unlock(&pool->names_lock);
	pf_inode_put(pool, from.inode);
	pf_inode_put(pool, to.inode);
	pf_inode_put(pool, from.dir);
	pf_inode_put(pool, to.dir);
	return err;
}
