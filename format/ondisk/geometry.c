/* SPDX-License-Identifier: MIT */
#include "ondisk/geometry.h"

#include "base/error.h"

#include <string.h>

#define LOG_MIN_BLOCKS 256u   /* 1 MiB */
#define LOG_MAX_BLOCKS 16384u /* 64 MiB */
#define MIB_BLOCKS     (UINT64_C(1048576) / PF_BLOCK_SIZE)

static uint64_t div_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

uint32_t pf_geometry_log_blocks(uint64_t size_blocks)
{
	uint64_t blocks = size_blocks / 64;
	if (blocks < LOG_MIN_BLOCKS)
		return LOG_MIN_BLOCKS;
	return blocks > LOG_MAX_BLOCKS ? LOG_MAX_BLOCKS : (uint32_t)blocks;
}

int pf_geometry_init(struct pf_geometry *geo, uint64_t size_blocks, uint32_t log_blocks)
{
	memset(geo, 0, sizeof(*geo));
	if (size_blocks < PF_MIN_MEMBER_BYTES / PF_BLOCK_SIZE)
		return -PF_EMEMBER_SMALL;
	if (size_blocks > PF_MAX_MEMBER_BLOCKS)
		return -PF_ESB_INVALID;

	geo->size_blocks = size_blocks;
	geo->nr_groups = div_up(size_blocks, PF_GROUP_BLOCKS);
	geo->nr_tables = div_up(geo->nr_groups, PF_GROUPS_PER_TABLE);
	geo->root_blocks = div_up(geo->nr_tables, PF_TABLE_REFS_PER_BLOCK);
	geo->root_block = PF_SUPER_FIRST_BLOCK + PF_SUPER_RING_BLOCKS;
	geo->tables_block = geo->root_block + 2 * geo->root_blocks;
	geo->maps_block = geo->tables_block + 2 * geo->nr_tables;
	geo->log_block = geo->maps_block + 2 * geo->nr_groups;
	geo->log_blocks = log_blocks;
	geo->data_start = geo->log_block + log_blocks;
	geo->backup_block = size_blocks - PF_SUPER_RING_BLOCKS;
	geo->data_end = geo->backup_block;
	if (geo->data_start + PF_NODE_BLOCKS > geo->data_end)
		return -PF_ESB_INVALID;
	return 0;
}

uint64_t pf_geometry_super_block(const struct pf_geometry *geo, unsigned ring, unsigned slot)
{
	assert(ring < 2 && slot < PF_SUPER_SLOTS);
	uint64_t first = ring ? geo->backup_block : PF_SUPER_FIRST_BLOCK;
	return first + (uint64_t)slot * PF_SUPER_SPACING_BLOCKS;
}

uint64_t pf_geometry_share_blocks(uint64_t pool_blocks, const struct pf_geometry *member)
{
	uint64_t allowance = pool_blocks / 1000 * 6 + pool_blocks % 1000 * 6 / 1000;
	if (allowance < 2 * MIB_BLOCKS)
		allowance = 2 * MIB_BLOCKS;
	uint64_t reserve = pool_blocks / 1000;
	if (reserve < MIB_BLOCKS)
		reserve = MIB_BLOCKS;
	if (reserve > 256 * MIB_BLOCKS)
		reserve = 256 * MIB_BLOCKS;
	uint64_t quarter = (member->data_end - member->data_start) / 4;
	return allowance + reserve < quarter ? allowance + reserve : quarter;
}

#define HOME_BLOCKS (256 * MIB_BLOCKS)

uint64_t pf_geometry_home_blocks(const struct pf_geometry *member, uint64_t share_blocks)
{
	if (share_blocks <= 2 * HOME_BLOCKS)
		return share_blocks;
	uint64_t end = member->data_start + HOME_BLOCKS;
	end = (end + PF_GROUP_BLOCKS - 1) / PF_GROUP_BLOCKS * PF_GROUP_BLOCKS;
	return end - member->data_start;
}
