/* SPDX-License-Identifier: MIT */
#include "tree/cache.h"

#include <inttypes.h>
#include <stdlib.h>

enum { EVICT_TRIES = 256 }; /* for each node that is loaded */

/* Once for each place: a damaged node is met again by every operation that needs it. @helped: another copy is good. */
static void report(struct pf_tree *tree, pf_addr addr, int err, bool helped)
{
	bool known = false;
	pthread_mutex_lock(&tree->mutex);
	for (unsigned i = 0; i < PF_TREE_REPORTS; i++)
		known |= tree->reports[i] == addr;
	if (!known)
		tree->reports[tree->next_report++ % PF_TREE_REPORTS] = addr;
	pthread_mutex_unlock(&tree->mutex);
	unsigned member = pf_addr_member(addr);
	if (err == -EIO)
		pf_set_suspect(tree->set, member);
	/* of a member that was given up that has been said once */
	if (known || (helped && pf_set_failed(tree->set) >> member & 1))
		return;
	struct pf_io *io = member < tree->set->nr ? tree->set->members[member].io : NULL;
	if (io && pf_is_damage(err)) /* an error of the transfer has been counted */
		pf_io_account_error(io);
	pf_log(tree->set->env, helped ? PF_LOG_WARNING : PF_LOG_ERROR, "member %u (%s), offset %" PRIu64 ": %s; %s", member,
	       io ? io->name : "no such member", pf_addr_block(addr) << PF_BLOCK_SHIFT, pf_strerror(err),
	       helped ? "the other copy is good and is used; 'fsck.poolfs -p -f' on the unmounted pool writes this one anew" :
			"run fsck.poolfs on the unmounted pool to see what depends on it");
}

static int read_copy(struct pf_view *v, unsigned copy, struct pf_node *node)
{
	struct pf_set *set = v->tree->set;
	pf_addr addr = v->absent.addr[copy];
	struct pf_node_expect expect = {
		.pool_uuid = set->super.pool_uuid,
		.addr = addr,
		.generation = v->absent.generation,
		.crc = v->absent.crc,
		.level = v->absent_level,
		.lower = v->absent_lower,
		.upper = v->absent_upper,
	};
	int err = pf_set_read(set, addr, node->buf, PF_NODE_BLOCKS);
	return err ? err : pf_node_validate(node->buf, &expect);
}

static int pin_room(struct pf_node_pins *pins)
{
	if (pins->nr < pins->cap)
		return 0;
	unsigned cap = pins->cap ? 2 * pins->cap : 8;
	struct pf_node **nodes = realloc(pins->nodes, cap * sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	pins->nodes = nodes;
	pins->cap = cap;
	return 0;
}

void pf_cache_unpin(struct pf_tree *tree, struct pf_node_pins *pins)
{
	struct pf_node *dead = NULL;
	for (unsigned i = 0; i < pins->nr; i++) {
		struct pf_node *node = pins->nodes[i];
		if (atomic_fetch_sub(&node->refs, 1) == 1) {
			node->chain = dead;
			dead = node;
		}
	}
	pf_cache_free_list(tree, dead);
	free(pins->nodes);
	*pins = (struct pf_node_pins){ 0 };
}

/* Reads into a new node, from whichever copy is good; the first one unless that is bad, so that the disk of the second may sleep. */
static int read_node(struct pf_view *v, struct pf_node **out)
{
	struct pf_node *node = pf_cache_new(v->tree);
	if (!node)
		return -ENOMEM;
	unsigned nr_copies = v->absent.addr[1] ? 2 : 1, nr_bad = 0;
	int errs[PF_NODE_COPIES], err = 0;
	do {
		err = errs[nr_bad] = read_copy(v, nr_bad, node);
	} while (err && ++nr_bad < nr_copies);
	for (unsigned i = 0; i < nr_bad; i++)
		report(v->tree, v->absent.addr[i], errs[i], !err);
	if (err) {
		pf_cache_free_list(v->tree, node);
		return err;
	}
	node->number = v->absent.addr[0];
	node->ptr = v->absent;
	atomic_init(&node->touched, true);
	*out = node;
	return 0;
}

static void insert(struct pf_view *v, struct pf_node *node)
{
	struct pf_tree *tree = v->tree;
	struct pf_node *other = pf_cache_lookup(tree, node->number);
	if (other && other->ptr.generation == node->ptr.generation && other->ptr.crc == node->ptr.crc) {
		pf_cache_free_list(tree, node);
		node = other;
	} else {
		if (other) { /* what the disk held there before; this is what the asker's parent means */
			pf_cache_unset_clean(tree, other);
			pf_cache_drop(tree, other);
		}
		pf_cache_insert(tree, node);
		pf_cache_set_clean(tree, node);
	}
	atomic_fetch_add(&node->refs, 1);
	v->pins.nodes[v->pins.nr++] = node;
}

int pf_cache_load(struct pf_view *v)
{
	struct pf_tree *tree = v->tree;
	struct pf_space *space = tree->space;
	unsigned member[PF_NODE_COPIES], ticket[PF_NODE_COPIES], nr = 0;
	for (unsigned i = 0; i < PF_NODE_COPIES && v->absent.addr[i]; i++) {
		member[nr] = pf_addr_member(v->absent.addr[i]);
		if (member[nr] < tree->set->nr) { /* a forged pointer: the read will say so */
			ticket[nr] = pf_space_reader_enter(space, member[nr]);
			nr++;
		}
	}
	pthread_rwlock_unlock(&tree->lock);

	struct pf_node *node = NULL;
	int err = pin_room(&v->pins);
	if (!err)
		err = read_node(v, &node);
	if (!err) {
		atomic_fetch_add_explicit(&tree->nr_misses, 1, memory_order_relaxed);
		pthread_rwlock_wrlock(&tree->lock);
		insert(v, node);
		pf_cache_evict(tree, EVICT_TRIES);
		pthread_rwlock_unlock(&tree->lock);
	}
	/* After the insertion: see cache.h I4. */
	for (unsigned i = 0; i < nr; i++)
		pf_space_reader_exit(space, member[i], ticket[i]);
	return err;
}
