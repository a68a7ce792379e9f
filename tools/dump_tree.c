/* SPDX-License-Identifier: MIT
 * Nodes and items of the tree in words. */
#include "dump.h"

#include "cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -- items ---------------------------------------------------------------------------------------------------------- */
static void show_item(struct dump *d, const struct pf_walk_item *item)
{
	char key[PF_ITEM_TEXT_BYTES], text[PF_ITEM_TEXT_BYTES];
	pf_key_to_text(item->key, key, sizeof(key));
	pf_item_to_text(item->key, item->data, item->len, text, sizeof(text));
	if (d->json_wanted) {
		json_object(&d->json, NULL);
		json_string(&d->json, "key", key);
		json_number(&d->json, "length", item->len);
		json_string(&d->json, "item", text);
		json_end_object(&d->json);
	} else {
		printf("    %s (%u bytes): %s\n", key, item->len, text);
	}
}

static void show_child(struct dump *d, const struct pf_disk_child *child)
{
	char key[PF_ITEM_TEXT_BYTES], text[PF_ITEM_TEXT_BYTES];
	struct pf_ptr ptr = pf_ptr_get(child->ptr);
	pf_key_to_text(pf_key_get(child->key), key, sizeof(key));
	pf_ptr_to_text(&ptr, text, sizeof(text));
	if (d->json_wanted) {
		json_object(&d->json, NULL);
		json_string(&d->json, "key", key);
		json_string(&d->json, "child", text);
		json_end_object(&d->json);
	} else {
		printf("    %s -> %s\n", key, text);
	}
}

static void show_items(struct dump *d, const void *bytes)
{
	const struct pf_disk_node_head *head = bytes;
	const struct pf_disk_child *children = (const struct pf_disk_child *)(head + 1);
	struct pf_walk_item item = { 0 };
	if (d->json_wanted)
		json_array(&d->json, head->level ? "children" : "items");
	if (head->level) {
		for (unsigned i = 0; i < pf_get16(head->nr_items); i++)
			show_child(d, &children[i]);
	} else {
		for (unsigned i = 0; pf_walk_leaf_item(bytes, i, &item); i++)
			show_item(d, &item);
	}
	if (d->json_wanted)
		json_end_array(&d->json);
}

/* -- nodes ---------------------------------------------------------------------------------------------------------- */
/* @also: the other copy; 0: none. */
static void show_node(struct dump *d, pf_addr at, pf_addr also, unsigned level, uint64_t generation, struct pf_key from,
		      struct pf_key to, int err, const void *bytes)
{
	char addr[64], other[64] = "", lower[PF_ITEM_TEXT_BYTES], upper[PF_ITEM_TEXT_BYTES];
	pf_addr_to_text(at, addr, sizeof(addr));
	if (also)
		pf_addr_to_text(also, other, sizeof(other));
	pf_key_to_text(from, lower, sizeof(lower));
	pf_key_to_text(to, upper, sizeof(upper));
	if (!pf_key_cmp(from, PF_KEY_MIN))
		strcpy(lower, "first");
	if (!pf_key_cmp(to, PF_KEY_MAX))
		strcpy(upper, "end");
	if (d->json_wanted) {
		json_object(&d->json, NULL);
		json_string(&d->json, "addr", addr);
		if (also)
			json_string(&d->json, "copy", other);
		json_number(&d->json, "level", level);
		json_number(&d->json, "generation", generation);
		json_string(&d->json, "lower", lower);
		json_string(&d->json, "upper", upper);
		json_string(&d->json, "state", err ? pf_strerror(err) : "valid");
		if (bytes)
			show_items(d, bytes);
		json_end_object(&d->json);
		return;
	}
	printf("%s %s%s%s level %u generation %ju keys [%s, %s)%s%s\n", level ? "node" : "leaf", addr, also ? " " : "", other, level,
	       (uintmax_t)generation, lower, upper, err ? ": " : "", err ? pf_strerror(err) : "");
	if (bytes)
		show_items(d, bytes);
}

static int on_node(void *arg, const struct pf_walk_node *node)
{
	struct dump *d = arg;
	show_node(d, node->ptr.addr[0], node->ptr.addr[1], node->level, node->ptr.generation, node->lower, node->upper, 0,
		  node->bytes);
	return cli_interrupted() ? -EINTR : 0;
}

static int on_bad(void *arg, const struct pf_walk_node *node, int err)
{
	struct dump *d = arg;
	d->nr_damaged++;
	show_node(d, node->ptr.addr[0], node->ptr.addr[1], node->level, node->ptr.generation, node->lower, node->upper, err, NULL);
	return 0;
}

static int on_bad_copy(void *arg, const struct pf_walk_node *node, unsigned copy, int err)
{
	struct dump *d = arg;
	char addr[64];
	d->nr_damaged++;
	cli_message("node %s: %s; its other copy is good", pf_addr_to_text(node->ptr.addr[copy], addr, sizeof(addr)),
		    pf_strerror(err));
	return 0;
}

int dump_tree(struct dump *d, struct pf_set *set)
{
	static const struct pf_walk_ops ops = { .node = on_node, .bad = on_bad, .bad_copy = on_bad_copy };
	if (d->json_wanted)
		json_array(&d->json, "nodes");
	else if (!set->super.root.addr[0])
		printf("the tree is empty\n");
	int err = pf_walk_tree(set, &set->super, PF_KEY_MIN, PF_KEY_MAX, &ops, d);
	if (d->json_wanted)
		json_end_array(&d->json);
	if (err)
		cli_message("tree: %s", pf_strerror(err));
	return err;
}

int dump_node(struct dump *d, struct pf_set *set, pf_addr addr)
{
	struct pf_disk_node_head *head = aligned_alloc(PF_BLOCK_SIZE, PF_NODE_SIZE);
	int err = -ENOMEM;
	if (!head)
		goto out;
	err = pf_set_addr_valid(set, addr, PF_NODE_BLOCKS) ? pf_set_read(set, addr, head, PF_NODE_BLOCKS) : -EINVAL;
	if (err)
		goto out;
	/* There is no parent to say what should be here, so the node is held against its own header. */
	struct pf_node_expect expect = {
		.pool_uuid = set->super.pool_uuid,
		.addr = addr,
		.generation = pf_get64(head->generation),
		.crc = pf_get64(head->crc),
		.level = head->level,
		.lower = pf_key_get(head->lower),
		.upper = pf_key_get(head->upper),
	};
	int bad = pf_node_validate(head, &expect);
	d->nr_damaged += bad != 0;
	if (d->json_wanted)
		json_array(&d->json, "nodes_at");
	pf_addr also = pf_get64(head->addr[pf_get64(head->addr[0]) == addr]);
	show_node(d, addr, bad ? 0 : also, expect.level, expect.generation, expect.lower, expect.upper, bad, bad ? NULL : head);
	if (d->json_wanted)
		json_end_array(&d->json);
out:
	free(head);
	if (err == -EINVAL)
		cli_message("node: the address lies outside the data area of the pool's members");
	else if (err)
		cli_message("node: %s", pf_strerror(err));
	return err;
}

/* -- one inode ------------------------------------------------------------------------------------------------------ */
struct inode_walk {
	struct dump *dump;
	uint64_t nr_items, data_id;
};

static int on_inode_item(void *arg, const struct pf_walk_item *item)
{
	struct inode_walk *w = arg;
	struct pf_inode_item inode;
	w->nr_items++;
	if (pf_key_type(item->key) == PF_TYPE_INODE && pf_inode_item_unpack(item->data, item->len, &inode) == 0)
		w->data_id = inode.data_id;
	show_item(w->dump, item);
	return cli_interrupted() ? -EINTR : 0;
}

static int on_inode_bad(void *arg, const struct pf_walk_node *node, int err)
{
	struct inode_walk *w = arg;
	w->dump->nr_damaged++;
	char addr[64];
	cli_message("node %s: %s", pf_addr_to_text(node->ptr.addr[0], addr, sizeof(addr)), pf_strerror(err));
	return 0;
}

static int walk_object(struct inode_walk *w, struct pf_set *set, enum pf_key_class class, uint64_t object)
{
	static const struct pf_walk_ops ops = { .item = on_inode_item, .bad = on_inode_bad };
	struct pf_key from = pf_key_make(class, object, (enum pf_key_type)0, 0);
	struct pf_key to = { from.hi, UINT64_MAX };
	return pf_walk_tree(set, &set->super, from, to, &ops, w);
}

int dump_inode(struct dump *d, struct pf_set *set, uint64_t ino)
{
	struct inode_walk w = { .dump = d };
	if (d->json_wanted)
		json_array(&d->json, "inode_items");
	int err = walk_object(&w, set, PF_CLASS_INODE, ino);
	if (!err)
		err = walk_object(&w, set, PF_CLASS_DIR, ino);
	if (!err && w.data_id)
		err = walk_object(&w, set, PF_CLASS_EXTENT, w.data_id);
	if (d->json_wanted)
		json_end_array(&d->json);
	if (!err && !w.nr_items)
		err = -ENOENT;
	if (err)
		cli_message("inode %ju: %s", (uintmax_t)ino, err == -ENOENT ? "does not exist" : pf_strerror(err));
	return err;
}
