/* SPDX-License-Identifier: MIT
 *
 * Pass 4: directories. Each name has its hash entry and the other way round, leads to an inode of its type and occurs
 * once; each directory has one name, in its parent, and the root above it.
 *
 * Items of a directory come by as: hash entries by hash, then names by cookie. So the hash entries are kept (48 bytes
 * each) and each name looks for its own. */
#include "check/checker.h"

#include "base/csum.h"
#include "ondisk/item.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct hash_entry {
	uint64_t offset, ino, cookie;
	uint64_t fingerprint; /* of the name that has it; 0: none yet */
	uint64_t base;        /* hash of that name */
	uint8_t dtype;
};

struct pass {
	struct pf_checker *c;
	uint64_t ino; /* of the directory */
	struct pf_check_inode *inode;
	struct pf_check_dir *dir; /* NULL: it is none */
	bool judged;              /* its names are to be judged; otherwise it is not known what it is */
	bool not_dir_reported, not_dir_wanted;
	struct hash_entry *hashes;
	size_t nr, cap;
	uint64_t last_cookie;
	uint64_t nr_done;
};

static int note(struct pass *p, enum pf_repair_kind kind, uint64_t dir, uint64_t cookie, uint64_t value)
{
	struct pf_fix fix = { .kind = kind, .a = dir, .b = cookie, .c = value };
	return pf_repair_note(&p->c->repairs, &fix);
}

static int note_delete(struct pass *p, struct pf_key key)
{
	struct pf_fix fix = { .kind = PF_FIX_DELETE, .key = key };
	return pf_repair_note(&p->c->repairs, &fix);
}

static unsigned dtype_of(uint32_t mode)
{
	return mode >> 12 & 15; /* the DT_ constants are the type bits of a mode */
}

/* A name for a message: what is not printable becomes '?'. */
struct name_text {
	char text[PF_MAX_NAME_BYTES + 1];
};
static struct name_text printable(const struct pf_name_item *item)
{
	struct name_text t = { { 0 } };
	for (unsigned i = 0; i < item->name_len; i++)
		t.text[i] = (unsigned char)item->name[i] < 32 || item->name[i] == 127 ? '?' : item->name[i];
	return t;
}

/* -- where a name's hash entry may lie --------------------------------------------------------------------------- */
static uint64_t hash_base(const struct pf_checker *c, const struct pf_name_item *item)
{
	return pf_hash64(c->super->hash_seed, item->name, item->name_len) >> 8;
}

static bool in_probes(uint64_t base, uint64_t offset)
{
	return ((offset - base) & PF_KEY_FIELD_MAX) < PF_HASH_PROBES;
}

static int hash_cmp(const void *key, const void *element)
{
	uint64_t offset = *(const uint64_t *)key;
	const struct hash_entry *entry = element;
	return offset < entry->offset ? -1 : offset > entry->offset;
}

/* -- items --------------------------------------------------------------------------------------------------------- */
static int see_hash(struct pass *p, const struct pf_walk_item *walked)
{
	struct pf_hash_item item;
	if (pf_hash_item_unpack(walked->data, walked->len, &item)) {
		if (pf_check_report(p->c, PF_PROBLEM_HASH_DANGLING, "directory %llu, hash %llx: it is invalid",
				    (unsigned long long)p->ino, (unsigned long long)pf_key_offset(walked->key)))
			return note_delete(p, walked->key);
		return 0;
	}
	if (pf_grow(&p->hashes, p->nr, &p->cap, sizeof(p->hashes[0])))
		return -ENOMEM;
	p->hashes[p->nr++] = (struct hash_entry){
		.offset = pf_key_offset(walked->key),
		.ino = item.ino,
		.cookie = item.cookie,
		.dtype = (uint8_t)item.dtype,
	};
	return 0;
}

static int check_hash(struct pass *p, const struct pf_name_item *item, uint64_t cookie)
{
	struct pf_checker *c = p->c;
	struct name_text name = printable(item);
	struct hash_entry *entry = NULL;
	if (p->nr)
		entry = bsearch(&item->hash_offset, p->hashes, p->nr, sizeof(p->hashes[0]), hash_cmp);
	bool wanted;
	if (!entry && !c->items_known) /* it may be in what could not be read */
		return 0;
	if (!entry || entry->cookie != cookie) {
		wanted = pf_check_report(c, PF_PROBLEM_NAME_NO_HASH, "directory %llu, \"%s\"",
					 (unsigned long long)p->ino, name.text);
		return wanted ? note(p, PF_FIX_ADD_HASH, p->ino, cookie, 0) : 0;
	}
	entry->base = hash_base(c, item);
	entry->fingerprint = pf_hash64(c->salt, item->name, item->name_len) | 1;
	if (entry->ino == item->ino && entry->dtype == item->dtype && in_probes(entry->base, entry->offset))
		return 0;
	wanted = pf_check_report(c, PF_PROBLEM_HASH_WRONG, "directory %llu, \"%s\"", (unsigned long long)p->ino,
				 name.text);
	return wanted ? note(p, PF_FIX_ADD_HASH, p->ino, cookie, 0) : 0;
}

/* A directory has another name already: the one that its parent pointer confirms is kept. */
static int second_name(struct pass *p, struct pf_check_inode *target, struct pf_check_dir *dir, uint64_t cookie,
		       const char *name)
{
	uint64_t excess_in = p->ino, excess = cookie;
	if (target->ino != 1 && dir->parent == p->ino && dir->named_in != p->ino) {
		excess_in = dir->named_in;
		excess = dir->cookie;
		dir->named_in = p->ino;
		dir->cookie = cookie;
	}
	if (!pf_check_report(p->c, PF_PROBLEM_DIR_TWO_NAMES, "inode %llu, also by \"%s\" in directory %llu",
			     (unsigned long long)target->ino, name, (unsigned long long)p->ino))
		return 0;
	return note(p, PF_FIX_DELETE_NAME, excess_in, excess, 0);
}

static int check_target(struct pass *p, const struct pf_name_item *item, uint64_t cookie)
{
	struct pf_checker *c = p->c;
	struct name_text name = printable(item);
	struct pf_check_inode *target = pf_inodes_find(&c->inodes, item->ino);
	if (!target) {
		if (c->items_known &&
		    pf_check_report(c, PF_PROBLEM_NAME_TARGET, "directory %llu, \"%s\" (inode %llu)",
				    (unsigned long long)p->ino, name.text, (unsigned long long)item->ino))
			return note(p, PF_FIX_DELETE_NAME, p->ino, cookie, 0);
		return 0;
	}
	target->seen_names++;
	if (target->seen & PF_SEEN_INVALID)
		return 0;
	if (dtype_of(target->mode) != item->dtype &&
	    pf_check_report(c, PF_PROBLEM_NAME_TYPE, "directory %llu, \"%s\": %u instead of %u",
			    (unsigned long long)p->ino, name.text, item->dtype, dtype_of(target->mode))) {
		int err = note(p, PF_FIX_NAME_TYPE, p->ino, cookie, dtype_of(target->mode));
		if (err)
			return err;
	}
	struct pf_check_dir *dir = pf_inodes_dir(&c->inodes, target);
	if (!dir)
		return 0;
	p->dir->seen_subdirs++;
	if (dir->named_in || target->ino == 1)
		return second_name(p, target, dir, cookie, name.text);
	dir->named_in = p->ino;
	dir->cookie = cookie;
	return 0;
}

static bool is_dots(const struct pf_name_item *item)
{
	return item->name[0] == '.' && (item->name_len == 1 || (item->name_len == 2 && item->name[1] == '.'));
}

static int see_name(struct pass *p, const struct pf_walk_item *walked)
{
	uint64_t cookie = pf_key_offset(walked->key);
	struct pf_name_item item;
	p->dir->seen_entries++;
	p->last_cookie = cookie;
	int err = pf_name_item_unpack(walked->data, walked->len, &item);
	const char *why = err ? pf_strerror(err) : NULL;
	if (!why && is_dots(&item))
		why = "reserved name";
	if (!why && cookie < 3)
		why = "reserved cookie";
	if (why) {
		if (pf_check_report(p->c, PF_PROBLEM_NAME_INVALID, "directory %llu, cookie %llu: %s",
				    (unsigned long long)p->ino, (unsigned long long)cookie, why))
			return note_delete(p, walked->key);
		p->c->items_known = false; /* who knows whom it names */
		return 0;
	}
	err = check_hash(p, &item, cookie);
	return err ? err : check_target(p, &item, cookie);
}

/* -- the directory as a whole ------------------------------------------------------------------------------------ */
/* Two names of one directory are the same when hash and fingerprint are; their hash entries are then few probes
 * apart. */
static int check_twice(struct pass *p, size_t i)
{
	const struct hash_entry *a = &p->hashes[i];
	for (size_t k = 1; k < PF_HASH_PROBES && k < p->nr; k++) {
		const struct hash_entry *b = &p->hashes[(i + k) % p->nr];
		if (!in_probes(a->offset, b->offset))
			break;
		if (b->fingerprint != a->fingerprint || b->base != a->base)
			continue;
		uint64_t cookie = a->cookie > b->cookie ? a->cookie : b->cookie;
		if (pf_check_report(p->c, PF_PROBLEM_NAME_TWICE, "directory %llu, cookies %llu and %llu",
				    (unsigned long long)p->ino, (unsigned long long)a->cookie,
				    (unsigned long long)b->cookie))
			return note(p, PF_FIX_DELETE_NAME, p->ino, cookie, 0);
	}
	return 0;
}

static int end_dir(struct pass *p)
{
	if (!p->dir)
		return 0;
	for (size_t i = 0; i < p->nr; i++) {
		const struct hash_entry *entry = &p->hashes[i];
		int err = 0;
		if (entry->fingerprint)
			err = check_twice(p, i);
		else if (p->c->items_known &&
			 pf_check_report(p->c, PF_PROBLEM_HASH_DANGLING, "directory %llu, hash %llx",
					 (unsigned long long)p->ino, (unsigned long long)entry->offset))
			err = note_delete(p, pf_key_make(PF_CLASS_DIR, p->ino, PF_TYPE_HASH, entry->offset));
		if (err)
			return err;
	}
	if (p->last_cookie < p->dir->next_cookie)
		return 0;
	if (!pf_check_report(p->c, PF_PROBLEM_NEXT_COOKIE, "directory %llu: %llu, but cookie %llu is in use",
			     (unsigned long long)p->ino, (unsigned long long)p->dir->next_cookie,
			     (unsigned long long)p->last_cookie))
		return 0;
	return note(p, PF_FIX_INODE, p->ino, PF_FIELD_COOKIE, p->last_cookie + 1);
}

static void begin_dir(struct pass *p, uint64_t ino)
{
	p->ino = ino;
	p->inode = pf_inodes_find(&p->c->inodes, ino);
	p->dir = p->inode ? pf_inodes_dir(&p->c->inodes, p->inode) : NULL;
	p->judged = p->inode ? !(p->inode->seen & PF_SEEN_INVALID) : p->c->items_known;
	p->not_dir_reported = false;
	p->nr = 0;
	p->last_cookie = 0;
}

static int not_in_dir(struct pass *p, struct pf_key key)
{
	if (!p->judged)
		return 0;
	if (!p->not_dir_reported)
		p->not_dir_wanted =
			pf_check_report(p->c, PF_PROBLEM_NAME_NOT_IN_DIR, "inode %llu", (unsigned long long)p->ino);
	p->not_dir_reported = true;
	return p->not_dir_wanted ? note_delete(p, key) : 0;
}

static int see_item(void *arg, const struct pf_walk_item *item)
{
	struct pass *p = arg;
	unsigned type = pf_key_type(item->key);
	if (type != PF_TYPE_HASH && type != PF_TYPE_NAME)
		return 0; /* reported by pass 2 */
	if (pf_key_object(item->key) != p->ino) {
		int err = end_dir(p);
		if (!err && p->nr_done++ % 64 == 0)
			err = pf_check_progress(p->c, "names", p->nr_done, p->c->inodes.nr_dirs);
		if (err)
			return err;
		begin_dir(p, pf_key_object(item->key));
	}
	if (!p->dir)
		return not_in_dir(p, item->key);
	return type == PF_TYPE_HASH ? see_hash(p, item) : see_name(p, item);
}

/* Known from pass 2, or gone bad since. */
static int see_bad(void *arg, const struct pf_walk_node *node, int err)
{
	struct pass *p = arg;
	return pf_check_bad_node(p->c, node, err);
}

int pf_check_names(struct pf_checker *c)
{
	static const struct pf_walk_ops ops = { .item = see_item, .bad = see_bad };
	struct pass p = { .c = c };
	int err = pf_walk_tree(c->set, c->super, pf_key_make(PF_CLASS_DIR, 0, 0, 0),
			       pf_key_make(PF_CLASS_DIR, PF_KEY_FIELD_MAX, 0xff, PF_KEY_FIELD_MAX), &ops, &p);
	if (!err)
		err = end_dir(&p);
	free(p.hashes);
	return err ? err : pf_check_connected(c);
}
