/* SPDX-License-Identifier: MIT
 * A superblock in which every field has a value of its own: for the tests of its codec and of pool assembly. */
#ifndef SAMPLE_SUPER_H
#define SAMPLE_SUPER_H

#include "ondisk/geometry.h"
#include "ondisk/super.h"

#include <string.h>

static inline void sample_super(struct pf_super *s, unsigned nr_members, const uint64_t *size_blocks)
{
	memset(s, 0, sizeof(*s));
	s->version = 5;
	s->features = pf_version_features(5);
	memset(s->pool_uuid, 0xa5, 16);
	strcpy(s->label, "sample");
	s->generation = 1000;
	s->flags = PF_SUPER_CLEAN;
	s->created_ns = 1700000000000000000;
	s->written_ns = 1700000000000001234;
	s->hash_seed = 0x1122334455667788;
	s->placement = PF_PLACE_STRIPE;
	s->nr_members = nr_members;
	s->nr_meta = nr_members < 2 ? 1 : 2;
	s->log_start = 77;
	s->counters = (struct pf_counters){ .next_id = 5000,
					    .next_orphan = 3,
					    .nr_inodes = 4000,
					    .data_blocks = 1234,
					    .orphan_blocks = 12,
					    .node_blocks = 44 };
	s->epochs[0] = (struct pf_epoch){ .id = 33, .time_ns = 3000, .last_generation = 900 };
	s->epochs[1] = (struct pf_epoch){ .id = 22, .time_ns = 2000, .last_generation = 500 };
	s->epochs[2] = (struct pf_epoch){ .id = 11, .time_ns = 1000, .last_generation = 1 };
	for (unsigned i = 0; i < nr_members; i++) {
		struct pf_member_row *row = &s->members[i];
		memset(row->uuid, (int)(0x10 + i), 16);
		row->size_blocks = size_blocks[i];
		row->root_generation = 990 + i % 10;
		row->root_crc = 0xc0ffee00 + i;
		row->root_slot = i & 1;
		row->state = PF_MEMBER_ACTIVE;
		row->class = PF_CLASS_FAST;
		row->log_blocks = pf_geometry_log_blocks(size_blocks[i]);
	}
	for (unsigned i = 0; i < s->nr_meta; i++) {
		s->meta_members[i] = (uint8_t)(nr_members - 1 - i);
		s->members[nr_members - 1 - i].flags |= PF_MEMBER_META;
		s->members[nr_members - 1 - i].share_blocks = 600 + i;
	}
	struct pf_geometry geo;
	pf_geometry_init(&geo, size_blocks[nr_members - 1], s->members[nr_members - 1].log_blocks);
	s->root = (struct pf_ptr){ { pf_addr_make(nr_members - 1, geo.data_start + 8), 0 }, 998, 0xdeadbeef };
	s->root_level = 2;
}

#endif
