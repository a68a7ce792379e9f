/* SPDX-License-Identifier: MIT
 * Pass 2, items of class 0: inodes, symbolic links, extended attributes, and the lists of what waits for removal. */
#include "check/items.h"

#include "base/csum.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_XATTR_HASH ((UINT64_C(1) << 48) - 1)

static int note_delete(struct pf_checker *c, struct pf_key key)
{
	struct pf_fix fix = { .kind = PF_FIX_DELETE, .key = key };
	return pf_repair_note(&c->repairs, &fix);
}

static void count_id(struct pf_checker *c, uint64_t id)
{
	if (c->seen_counters.next_id <= id)
		c->seen_counters.next_id = id + 1;
}

/* -- the inode itself ---------------------------------------------------------------------------------------------- */
/* What no codec can know: fields that must fit the type. NULL: nothing wrong. */
static const char *inode_wrong(const struct pf_inode_item *item)
{
	bool is_dir = S_ISDIR(item->mode), is_file = S_ISREG(item->mode);
	if (is_dir && (!item->parent || item->next_cookie < 3))
		return "a directory without parent or cookies";
	if (is_file != (item->data_id != 0))
		return is_file ? "a file without data id" : "a data id in something that is no file";
	if (!is_file && item->blocks)
		return "blocks in something that is no file";
	if (S_ISLNK(item->mode) && (!item->size || item->size > PF_MAX_SYMLINK_BYTES))
		return "a symbolic link of impossible length";
	return NULL;
}

static int add_inode(struct pf_check_items *s, const struct pf_walk_item *walked)
{
	struct pf_checker *c = s->c;
	struct pf_inode_item item;
	int err = pf_inode_item_unpack(walked->data, walked->len, &item);
	const char *why = err ? pf_strerror(err) : inode_wrong(&item);
	s->inode = pf_inodes_add(&c->inodes, s->ino, !why && S_ISDIR(item.mode));
	if (!s->inode)
		return -ENOMEM;
	count_id(c, s->ino);
	c->seen_counters.nr_inodes++;
	c->result->nr_inodes++;
	if (why) {
		pf_check_report(c, PF_PROBLEM_INODE_INVALID, "inode %llu: %s", (unsigned long long)s->ino, why);
		s->inode->seen |= PF_SEEN_INVALID;
		c->items_known = false;
		return 0;
	}
	s->inode->size = item.size;
	s->inode->blocks = item.blocks;
	s->inode->nlink = item.nlink;
	s->inode->mode = (uint16_t)item.mode;
	s->inode_flags = item.flags;
	struct pf_check_dir *dir = pf_inodes_dir(&c->inodes, s->inode);
	if (dir) {
		dir->parent = item.parent;
		dir->next_cookie = item.next_cookie;
		c->result->nr_directories++;
	}
	if (S_ISREG(item.mode)) {
		count_id(c, item.data_id);
		return pf_inodes_add_data_id(&c->inodes, item.data_id);
	}
	return 0;
}

/* -- chunks -------------------------------------------------------------------------------------------------------- */
static void symlink_wrong(struct pf_check_items *s, const char *why)
{
	pf_check_report(s->c, PF_PROBLEM_SYMLINK_INVALID, "inode %llu: %s", (unsigned long long)s->ino, why);
}

static void xattr_wrong(struct pf_check_items *s, uint64_t hash, const char *why)
{
	pf_check_report(s->c, PF_PROBLEM_XATTR_INVALID, "inode %llu, attribute %llx: %s", (unsigned long long)s->ino,
			(unsigned long long)hash, why);
}

/* Takes one more chunk into account. False: it does not fit. */
static bool chunk_fits(struct pf_check_chunks *chunks, uint64_t chunk, unsigned len, unsigned chunk_bytes)
{
	if (!chunks->open || chunk != chunks->next_chunk)
		return false;
	uint64_t left = chunks->want_bytes - chunks->got_bytes;
	if (len != (left < chunk_bytes ? left : chunk_bytes))
		return false;
	chunks->got_bytes += len;
	chunks->next_chunk++;
	chunks->open = chunks->got_bytes < chunks->want_bytes;
	return true;
}

static void symlink_item(struct pf_check_items *s, const struct pf_walk_item *item)
{
	bool is_link = S_ISLNK(s->inode->mode);
	if (s->inode->seen & PF_SEEN_INVALID)
		return;
	if (!is_link)
		symlink_wrong(s, "it is no symbolic link");
	else if (memchr(item->data, 0, item->len) ||
		 !chunk_fits(&s->symlink, pf_key_offset(item->key), item->len, PF_SYMLINK_CHUNK_BYTES))
		symlink_wrong(s, "a piece of the target is invalid");
}

static void xattr_ends(struct pf_check_items *s)
{
	if (s->xattr.open)
		xattr_wrong(s, s->xattr.hash, "the end of its value is missing");
	s->xattr.open = false;
}

static bool hash_fits(const struct pf_checker *c, uint64_t offset_hash, const struct pf_xattr_item *item)
{
	uint64_t hash = pf_hash64(c->super->hash_seed, item->name, item->name_len) >> 16;
	return ((offset_hash - hash) & MAX_XATTR_HASH) < PF_HASH_PROBES;
}

static void xattr_item(struct pf_check_items *s, const struct pf_walk_item *walked)
{
	uint64_t hash = pf_key_offset(walked->key) >> 8, chunk = pf_key_offset(walked->key) & 0xff;
	s->has_xattr = true;
	if (chunk) {
		if (hash != s->xattr.hash || !chunk_fits(&s->xattr, chunk, walked->len, PF_XATTR_CHUNK_BYTES)) {
			xattr_wrong(s, hash, "a piece of its value is invalid");
			s->xattr.open = false;
		}
		return;
	}
	xattr_ends(s);
	struct pf_xattr_item item;
	int err = pf_xattr_item_unpack(walked->data, walked->len, &item);
	if (err) {
		xattr_wrong(s, hash, pf_strerror(err));
		return;
	}
	if (!hash_fits(s->c, hash, &item))
		xattr_wrong(s, hash, "it lies where its name cannot be found");
	s->xattr = (struct pf_check_chunks){
		.open = item.part_len < item.value_len,
		.hash = hash,
		.next_chunk = 1,
		.want_bytes = item.value_len,
		.got_bytes = item.part_len,
	};
}

/* -- what waits for removal ---------------------------------------------------------------------------------------- */
static int orphan_wrong(struct pf_checker *c, struct pf_key key, const char *why)
{
	bool wanted = pf_check_report(c, PF_PROBLEM_ORPHAN_INVALID, "%s %llu: %s",
				      pf_key_type(key) == PF_TYPE_ORPHAN_INODE ? "inode" : "range",
				      (unsigned long long)pf_key_offset(key), why);
	return wanted ? note_delete(c, key) : 0;
}

static int orphan_item(struct pf_check_items *s, const struct pf_walk_item *item)
{
	struct pf_checker *c = s->c;
	uint64_t number = pf_key_offset(item->key);
	if (pf_key_type(item->key) == PF_TYPE_ORPHAN_INODE) {
		count_id(c, number);
		if (item->len || !number)
			return orphan_wrong(c, item->key, "it should be empty");
		if (pf_grow(&c->orphans, c->nr_orphans, &c->cap_orphans, sizeof(c->orphans[0])))
			return -ENOMEM;
		c->orphans[c->nr_orphans++] = number;
		c->result->nr_orphans++;
		return 0;
	}
	struct pf_orphan_range range;
	int err = pf_orphan_range_unpack(item->data, item->len, &range);
	if (err)
		return orphan_wrong(c, item->key, pf_strerror(err));
	if (pf_grow(&c->ranges, c->nr_ranges, &c->cap_ranges, sizeof(c->ranges[0])))
		return -ENOMEM;
	c->ranges[c->nr_ranges++] =
		(struct pf_check_range){ number, range.data_id, range.ino, range.from_block, range.to_block };
	count_id(c, range.data_id);
	count_id(c, number); /* ranges are numbered from the same counter */
	c->result->nr_orphans++;
	return 0;
}

/* -- the object as a whole ----------------------------------------------------------------------------------------- */
static bool unknown_key(const struct pf_walk_item *item)
{
	uint64_t object = pf_key_object(item->key);
	switch (pf_key_type(item->key)) {
	case PF_TYPE_ORPHAN_INODE:
	case PF_TYPE_ORPHAN_RANGE:
		return object != 0;
	case PF_TYPE_INODE:
		return !object || pf_key_offset(item->key);
	case PF_TYPE_SYMLINK:
	case PF_TYPE_XATTR:
		return !object;
	default:
		return true;
	}
}

/* An attribute or target whose inode is not there. */
static int unowned(struct pf_check_items *s, struct pf_key key)
{
	if (!s->c->blocks_known) /* it may be in what could not be read */
		return 0;
	if (!s->unowned_reported)
		s->unowned_wanted = pf_check_report(s->c, PF_PROBLEM_ITEM_UNOWNED, "inode %llu has %s only",
						    (unsigned long long)s->ino,
						    pf_key_type(key) == PF_TYPE_XATTR ? "attributes" : "a target");
	s->unowned_reported = true;
	return s->unowned_wanted ? note_delete(s->c, key) : 0;
}

static void begin(struct pf_check_items *s, uint64_t ino)
{
	s->ino = ino;
	s->inode = NULL;
	s->has_xattr = false;
	s->inode_flags = 0;
	s->unowned_reported = false;
	s->symlink = (struct pf_check_chunks){ 0 };
	s->xattr = (struct pf_check_chunks){ 0 };
}

int pf_check_inode_item(struct pf_check_items *s, const struct pf_walk_item *item)
{
	if (unknown_key(item)) {
		struct pf_key_text text = pf_check_key_text(item->key);
		pf_check_report(s->c, PF_PROBLEM_ITEM_UNKNOWN, "%s, type %u", text.text, pf_key_type(item->key));
		return 0;
	}
	if (pf_key_object(item->key) != s->ino) {
		int err = pf_check_inode_done(s);
		if (err)
			return err;
		begin(s, pf_key_object(item->key));
	}
	switch (pf_key_type(item->key)) {
	case PF_TYPE_INODE: {
		int err = add_inode(s, item);
		if (!err && S_ISLNK(s->inode->mode))
			s->symlink = (struct pf_check_chunks){ .open = true, .want_bytes = s->inode->size };
		return err;
	}
	case PF_TYPE_SYMLINK:
	case PF_TYPE_XATTR:
		if (!s->inode)
			return unowned(s, item->key);
		if (pf_key_type(item->key) == PF_TYPE_SYMLINK)
			symlink_item(s, item);
		else
			xattr_item(s, item);
		return 0;
	default:
		return orphan_item(s, item);
	}
}

int pf_check_inode_done(struct pf_check_items *s)
{
	struct pf_checker *c = s->c;
	if (!s->inode || s->inode->seen & PF_SEEN_INVALID)
		return 0;
	if (s->symlink.open && c->blocks_known)
		symlink_wrong(s, "the end of the target is missing");
	xattr_ends(s);
	if (s->has_xattr && !(s->inode_flags & PF_INODE_HAS_XATTR) &&
	    pf_check_report(c, PF_PROBLEM_XATTR_FLAG, "inode %llu", (unsigned long long)s->ino)) {
		struct pf_fix fix = {
			.kind = PF_FIX_INODE,
			.a = s->ino,
			.b = PF_FIELD_FLAGS,
			.c = s->inode_flags | PF_INODE_HAS_XATTR,
		};
		return pf_repair_note(&c->repairs, &fix);
	}
	return 0;
}
