/* SPDX-License-Identifier: MIT */
#include "check/blockmap.h"

#include <stdlib.h>

struct pf_blockmap {
	unsigned nr_members;
	struct {
		uint64_t nr_groups;
		uint8_t **groups;
	} members[PF_MAX_MEMBERS];
};

int pf_blockmap_create(const struct pf_set *set, struct pf_blockmap **out)
{
	struct pf_blockmap *map = calloc(1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	map->nr_members = set->nr;
	for (unsigned m = 0; m < set->nr; m++) {
		map->members[m].nr_groups = set->members[m].geo.nr_groups;
		map->members[m].groups = calloc(map->members[m].nr_groups, sizeof(uint8_t *));
		if (!map->members[m].groups) {
			pf_blockmap_free(map);
			return -ENOMEM;
		}
	}
	*out = map;
	return 0;
}

void pf_blockmap_free(struct pf_blockmap *map)
{
	if (!map)
		return;
	for (unsigned m = 0; m < map->nr_members; m++) {
		for (uint64_t g = 0; map->members[m].groups && g < map->members[m].nr_groups; g++)
			free(map->members[m].groups[g]);
		free(map->members[m].groups);
	}
	free(map);
}

int pf_blockmap_mark(struct pf_blockmap *map, pf_addr addr, unsigned nr_blocks, pf_addr *first_twice)
{
	unsigned member = pf_addr_member(addr);
	int nr_twice = 0;
	for (unsigned i = 0; i < nr_blocks; i++) {
		uint64_t block = pf_addr_block(addr) + i;
		uint8_t **group = &map->members[member].groups[block >> PF_GROUP_SHIFT];
		if (!*group)
			*group = calloc(1, PF_GROUP_BLOCKS / 8);
		if (!*group)
			return -ENOMEM;
		uint8_t *byte = &(*group)[block % PF_GROUP_BLOCKS / 8];
		uint8_t bit = (uint8_t)(1u << block % 8);
		if (*byte & bit) {
			if (!nr_twice)
				*first_twice = pf_addr_make(member, block);
			nr_twice++;
		}
		*byte |= bit;
	}
	return nr_twice;
}

const uint8_t *pf_blockmap_group(const struct pf_blockmap *map, unsigned member, uint64_t group)
{
	return map->members[member].groups[group];
}
