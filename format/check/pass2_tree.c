/* SPDX-License-Identifier: MIT
 *
 * Pass 2: every node and item of the tree. Leaves behind: the bitmap of all blocks that the tree names, the table of
 * inodes, and the lists of what waits for removal. Names are left to pass 4. */
#include "check/items.h"

#include <stdio.h>

struct pass {
	struct pf_check_items items;
	unsigned class; /* of the item before */
	struct pf_key last;
	bool any;
};

struct pf_key_text pf_check_key_text(struct pf_key key)
{
	struct pf_key_text t;
	unsigned long long object = pf_key_object(key), offset = pf_key_offset(key);
	if (!pf_key_cmp(key, PF_KEY_MAX))
		snprintf(t.text, sizeof(t.text), "the end");
	else if (pf_key_class(key) == PF_CLASS_INODE)
		snprintf(t.text, sizeof(t.text), "inode %llu", object);
	else if (pf_key_class(key) == PF_CLASS_DIR)
		snprintf(t.text, sizeof(t.text), "directory %llu", object);
	else if (pf_key_class(key) == PF_CLASS_EXTENT)
		snprintf(t.text, sizeof(t.text), "data %llu at block %llu", object, offset);
	else
		snprintf(t.text, sizeof(t.text), "class %u, object %llu", pf_key_class(key), object);
	return t;
}

/* Whatever lies at a place that a pointer names, its blocks are in use. -ENOMEM. */
static int mark_copies(struct pf_checker *c, const struct pf_walk_node *node, bool tell_twice)
{
	for (unsigned copy = 0; copy < pf_walk_nr_copies(node); copy++) {
		pf_addr first;
		if (!pf_set_addr_valid(c->set, node->ptr.addr[copy], PF_NODE_BLOCKS))
			continue;
		int nr_twice = pf_blockmap_mark(c->map, node->ptr.addr[copy], PF_NODE_BLOCKS, &first);
		if (nr_twice < 0)
			return nr_twice;
		struct pf_check_user user = pf_check_user_node(node, copy);
		if (nr_twice && tell_twice && pf_check_twice_note(c, &user))
			return -ENOMEM;
	}
	return 0;
}

static int see_node(void *arg, const struct pf_walk_node *node)
{
	struct pass *p = arg;
	struct pf_checker *c = p->items.c;
	int err = mark_copies(c, node, true);
	if (err)
		return err;
	c->seen_counters.node_blocks += PF_NODE_BLOCKS * pf_walk_nr_copies(node);
	c->result->node_blocks += PF_NODE_BLOCKS * pf_walk_nr_copies(node);
	c->result->nr_single_nodes += pf_walk_nr_copies(node) < pf_super_node_copies(c->super);
	if (node->level)
		return 0;
	return pf_check_progress(c, "tree", c->seen_counters.node_blocks, c->super->counters.node_blocks);
}

int pf_check_bad_node(struct pf_checker *c, const struct pf_walk_node *node, int err)
{
	struct pf_where place = pf_check_place(c->set, node->ptr.addr[0]), other = { "" };
	struct pf_key_text from = pf_check_key_text(node->lower), to = pf_check_key_text(node->upper);
	bool two = pf_walk_nr_copies(node) > 1;
	if (two)
		other = pf_check_place(c->set, node->ptr.addr[1]);
	bool reachable = pf_set_addr_valid(c->set, node->ptr.addr[0], PF_NODE_BLOCKS);
	pf_check_report(c, reachable ? PF_PROBLEM_NODE_DAMAGED : PF_PROBLEM_NODE_ADDRESS,
			"%s, level %u: %s;%s%s%s what it held from %s to %s is lost", place.text, node->level,
			pf_strerror(err), two ? " its copy at " : "", other.text, two ? " is no better;" : "", from.text,
			to.text);
	c->blocks_known = false;
	c->items_known = false;
	return mark_copies(c, node, false);
}

/* Nothing is lost: written anew, the node gets two good copies in other places. */
static int see_bad_copy(void *arg, const struct pf_walk_node *node, unsigned copy, int err)
{
	struct pass *p = arg;
	struct pf_checker *c = p->items.c;
	struct pf_where place = pf_check_place(c->set, node->ptr.addr[copy]), good = pf_check_place(c->set, node->ptr.addr[!copy]);
	if (!pf_check_report(c, PF_PROBLEM_NODE_COPY, "%s, level %u: %s; the copy at %s is good", place.text, node->level,
			     pf_strerror(err), good.text))
		return 0;
	struct pf_fix fix = { .kind = PF_FIX_NODE, .key = node->lower, .a = node->level };
	return pf_repair_note(&c->repairs, &fix);
}

static int see_bad(void *arg, const struct pf_walk_node *node, int err)
{
	struct pass *p = arg;
	return pf_check_bad_node(p->items.c, node, err);
}

static int leave_class(struct pass *p, unsigned class)
{
	int err = 0;
	if (p->class == PF_CLASS_INODE && class > PF_CLASS_INODE) {
		err = pf_check_inode_done(&p->items);
		if (!err)
			err = pf_check_ranges_seal(&p->items);
	}
	p->class = class;
	return err;
}

static int see_item(void *arg, const struct pf_walk_item *item)
{
	struct pass *p = arg;
	struct pf_checker *c = p->items.c;
	unsigned class = pf_key_class(item->key), type = pf_key_type(item->key);
	if (p->any && pf_key_cmp(item->key, p->last) <= 0) { /* the nodes vouch for their ranges; here for the walk */
		pf_check_report(c, PF_PROBLEM_NODE_DAMAGED, "items out of order between two nodes");
		return 0;
	}
	p->any = true;
	p->last = item->key;
	int err = class != p->class ? leave_class(p, class) : 0;
	if (err)
		return err;
	if (class == PF_CLASS_INODE)
		return pf_check_inode_item(&p->items, item);
	if (class == PF_CLASS_EXTENT)
		return pf_check_extent_item(&p->items, item);
	if (class != PF_CLASS_DIR || (type != PF_TYPE_HASH && type != PF_TYPE_NAME)) {
		struct pf_key_text text = pf_check_key_text(item->key);
		pf_check_report(c, PF_PROBLEM_ITEM_UNKNOWN, "%s, type %u", text.text, type);
	}
	return 0;
}

int pf_check_tree(struct pf_checker *c)
{
	static const struct pf_walk_ops ops = { .node = see_node, .item = see_item, .bad = see_bad, .bad_copy = see_bad_copy };
	struct pass p = { .items.c = c };
	int err = pf_walk_tree(c->set, c->super, PF_KEY_MIN, PF_KEY_MAX, &ops, &p);
	if (!err)
		err = leave_class(&p, UINT32_MAX);
	if (!err)
		err = pf_check_extent_done(&p.items);
	return err ? err : pf_check_twice_report(c);
}
