/* SPDX-License-Identifier: MIT
 *
 * Pass 1: every superblock slot of both rings of each member.
 *
 * A crash leaves traces that are no damage: the slot that was being written is torn, or one ring or member has it and
 * another not yet. So on a pool that was not unmounted the newest slot and the one after it are not judged; on a
 * clean pool every member must have the current superblock in both rings, but for those that failed before. */
#include "check/checker.h"

#include <stdlib.h>
#include <string.h>

struct slot {
	unsigned member, ring, slot;
	bool is_current; /* where the current superblock belongs */
};

static bool same_content(const struct pf_super *a, const struct pf_super *b)
{
	uint8_t x[PF_BLOCK_SIZE], y[PF_BLOCK_SIZE];
	pf_super_pack(a, 0, x);
	pf_super_pack(b, 0, y);
	return !memcmp(x, y, sizeof(x));
}

static int note(struct pf_checker *c, const struct slot *s)
{
	struct pf_fix fix = { .kind = PF_FIX_SUPER, .a = s->member, .b = s->ring, .c = s->slot };
	return pf_repair_note(&c->repairs, &fix);
}

static pf_addr slot_addr(const struct pf_checker *c, const struct slot *s)
{
	const struct pf_geometry *geo = &c->set->members[s->member].geo;
	return pf_addr_make(s->member, pf_geometry_super_block(geo, s->ring, s->slot));
}

/* What is wrong with a superblock that verifies; NULL: nothing. */
static const char *misplaced(const struct pf_checker *c, const struct slot *s, const struct pf_super *super)
{
	if (memcmp(super->pool_uuid, c->super->pool_uuid, sizeof(super->pool_uuid)))
		return "it belongs to another pool";
	if (super->member_id != s->member)
		return "it belongs to another member";
	if (super->generation % PF_SUPER_SLOTS != s->slot)
		return "it lies in the wrong slot";
	return NULL;
}

static int check_slot(struct pf_checker *c, const struct slot *s, void *block, struct pf_super *newest)
{
	bool clean = c->super->flags & PF_SUPER_CLEAN && !pf_check_has_failed(c, s->member);
	struct pf_where place = pf_check_place(c->set, slot_addr(c, s));
	int err = pf_io_read(c->set->members[s->member].io, pf_addr_block(slot_addr(c, s)) << PF_BLOCK_SHIFT, block,
			     PF_BLOCK_SIZE);
	if (err) {
		pf_check_report(c, PF_PROBLEM_SUPER_UNREADABLE, "%s: %s", place.text, pf_strerror(err));
		return 0;
	}
	struct pf_super super;
	err = pf_super_unpack(block, &super);
	const char *why = err ? pf_strerror(err) : misplaced(c, s, &super);
	if (err == -PF_ESB_MAGIC) {
		if (clean && s->is_current &&
		    pf_check_report(c, PF_PROBLEM_SUPER_MISSING, "%s (generation %llu)", place.text,
				    (unsigned long long)c->super->generation))
			return note(c, s);
		return 0;
	}
	if (why) {
		if (!pf_check_slot_in_flight(c->super, s->slot) &&
		    pf_check_report(c, PF_PROBLEM_SUPER_DAMAGED, "%s: %s", place.text, why))
			return note(c, s);
		return 0;
	}
	if (super.generation > newest->generation)
		*newest = super;
	if (clean && s->is_current && super.generation != c->super->generation) {
		if (pf_check_report(c, PF_PROBLEM_SUPER_MISSING, "%s (generation %llu instead of %llu)", place.text,
				    (unsigned long long)super.generation, (unsigned long long)c->super->generation))
			return note(c, s);
	} else if (super.generation == c->super->generation && !same_content(&super, c->super)) {
		if (pf_check_report(c, PF_PROBLEM_SUPER_DIFFERS, "%s has another superblock of generation %llu",
				    place.text, (unsigned long long)super.generation))
			return note(c, s);
	}
	return 0;
}

static int check_member(struct pf_checker *c, unsigned member, void *block)
{
	struct pf_super newest = { 0 };
	for (unsigned i = 0; i < 2 * PF_SUPER_SLOTS; i++) {
		struct slot s = { .member = member, .ring = i / PF_SUPER_SLOTS, .slot = i % PF_SUPER_SLOTS };
		s.is_current = s.slot == c->super->generation % PF_SUPER_SLOTS;
		int err = check_slot(c, &s, block, &newest);
		if (err)
			return err;
	}
	const struct pf_member_row *own = &newest.members[member], *expected = &c->super->members[member];
	if (newest.generation &&
	    (own->root_generation != expected->root_generation || own->root_crc != expected->root_crc))
		c->stale |= UINT32_C(1) << member;
	return 0;
}

int pf_check_members(struct pf_checker *c)
{
	void *block = aligned_alloc(PF_BLOCK_SIZE, PF_BLOCK_SIZE);
	if (!block)
		return -ENOMEM;
	int err = 0;
	c->stale = 0;
	for (unsigned m = 0; !err && m < c->set->nr; m++) {
		err = pf_check_progress(c, "superblocks", m, c->set->nr);
		if (!err)
			err = check_member(c, m, block);
	}
	free(block);
	return err;
}
