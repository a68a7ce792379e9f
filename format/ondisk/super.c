/* SPDX-License-Identifier: MIT */
#include "ondisk/super.h"

#include "base/csum.h"
#include "ondisk/geometry.h"

#include <limits.h>
#include <string.h>

/* A tree of more levels than this would need more nodes than there are block addresses. */
#define MAX_ROOT_LEVEL 12

static const uint8_t zero_uuid[16];

static uint64_t checksum(const struct pf_disk_super *disk)
{
	uint8_t block[PF_BLOCK_SIZE];
	memcpy(block, disk, PF_BLOCK_SIZE);
	memset(block + offsetof(struct pf_disk_super, crc), 0, sizeof(disk->crc));
	return pf_crc64(block, PF_BLOCK_SIZE);
}

uint32_t pf_super_failed(const struct pf_super *super)
{
	uint32_t mask = 0;
	for (unsigned i = 0; i < super->nr_members; i++)
		mask |= (uint32_t)(super->members[i].state == PF_MEMBER_FAILED) << i;
	return mask;
}

uint32_t pf_super_meta(const struct pf_super *super)
{
	uint32_t mask = 0;
	for (unsigned i = 0; i < super->nr_meta; i++)
		mask |= UINT32_C(1) << super->meta_members[i];
	return mask;
}

/* -- memory to disk ------------------------------------------------------------------------------------------------ */
static void pack_member(const struct pf_member_row *row, struct pf_disk_member *disk)
{
	memcpy(disk->uuid, row->uuid, sizeof(disk->uuid));
	disk->size_blocks = pf_le64(row->size_blocks);
	disk->root_generation = pf_le64(row->root_generation);
	disk->root_crc = pf_le64(row->root_crc);
	disk->root_slot = row->root_slot;
	disk->state = row->state;
	disk->class = row->class;
	disk->flags = row->flags;
	disk->log_blocks = pf_le32(row->log_blocks);
	disk->share_blocks = pf_le64(row->share_blocks);
}

static void pack_counters(const struct pf_counters *c, struct pf_disk_super *disk)
{
	disk->next_id = pf_le64(c->next_id);
	disk->next_orphan = pf_le64(c->next_orphan);
	disk->nr_inodes = pf_le64(c->nr_inodes);
	disk->data_blocks = pf_le64(c->data_blocks);
	disk->no_csum_blocks = pf_le64(c->no_csum_blocks);
	disk->orphan_blocks = pf_le64(c->orphan_blocks);
	disk->node_blocks = pf_le64(c->node_blocks);
}

void pf_super_pack(const struct pf_super *super, unsigned member_id, void *block)
{
	assert(member_id < super->nr_members && super->nr_members <= PF_MAX_MEMBERS);
	memset(block, 0, PF_BLOCK_SIZE);
	struct pf_disk_super *disk = block;

	disk->magic = pf_le64(PF_SUPER_MAGIC);
	disk->version = pf_le32(super->version);
	disk->member_id = (uint8_t)member_id;
	disk->nr_members = (uint8_t)super->nr_members;
	disk->placement = (uint8_t)super->placement;
	disk->nr_meta = (uint8_t)super->nr_meta;
	disk->compat = pf_le64(super->features.compat);
	disk->ro_compat = pf_le64(super->features.ro_compat);
	disk->incompat = pf_le64(super->features.incompat);
	memcpy(disk->pool_uuid, super->pool_uuid, sizeof(disk->pool_uuid));
	memcpy(disk->member_uuid, super->members[member_id].uuid, sizeof(disk->member_uuid));
	memcpy(disk->label, super->label, strnlen(super->label, PF_LABEL_BYTES));
	disk->generation = pf_le64(super->generation);
	disk->flags = pf_le64(super->flags);
	disk->created_ns = pf_le64((uint64_t)super->created_ns);
	disk->written_ns = pf_le64((uint64_t)super->written_ns);
	disk->hash_seed = pf_le64(super->hash_seed);
	disk->roots[0] = pf_ptr_le(super->root);
	disk->root_level[0] = (uint8_t)super->root_level;
	memcpy(disk->meta_members, super->meta_members, sizeof(disk->meta_members));
	memcpy(disk->log_members, super->log_members, sizeof(disk->log_members));
	disk->log_start = pf_le64(super->log_start);
	disk->log_epoch = pf_le64(super->log_epoch);
	disk->nr_log = pf_le64(super->nr_log);
	pack_counters(&super->counters, disk);
	for (unsigned i = 0; i < PF_MAX_EPOCHS; i++) {
		disk->epochs[i].id = pf_le64(super->epochs[i].id);
		disk->epochs[i].time_ns = pf_le64((uint64_t)super->epochs[i].time_ns);
		disk->epochs[i].last_generation = pf_le64(super->epochs[i].last_generation);
	}
	for (unsigned i = 0; i < PF_MAX_MEMBERS; i++)
		pack_member(&super->members[i], &disk->members[i]);
	disk->crc = pf_le64(checksum(disk));
}

/* -- disk to memory ------------------------------------------------------------------------------------------------ */
static void unpack_member(const struct pf_disk_member *disk, struct pf_member_row *row)
{
	memcpy(row->uuid, disk->uuid, sizeof(row->uuid));
	row->size_blocks = pf_get64(disk->size_blocks);
	row->root_generation = pf_get64(disk->root_generation);
	row->root_crc = pf_get64(disk->root_crc);
	row->share_blocks = pf_get64(disk->share_blocks);
	row->log_blocks = pf_get32(disk->log_blocks);
	row->root_slot = disk->root_slot;
	row->state = disk->state;
	row->class = disk->class;
	row->flags = disk->flags;
}

static void unpack_fields(const struct pf_disk_super *disk, struct pf_super *super)
{
	super->version = pf_get32(disk->version);
	super->member_id = disk->member_id;
	super->nr_members = disk->nr_members;
	super->placement = disk->placement;
	super->nr_meta = disk->nr_meta;
	super->features.compat = pf_get64(disk->compat);
	super->features.ro_compat = pf_get64(disk->ro_compat);
	super->features.incompat = pf_get64(disk->incompat);
	memcpy(super->pool_uuid, disk->pool_uuid, sizeof(super->pool_uuid));
	memcpy(super->member_uuid, disk->member_uuid, sizeof(super->member_uuid));
	memcpy(super->label, disk->label, strnlen(disk->label, PF_LABEL_BYTES));
	super->generation = pf_get64(disk->generation);
	super->flags = pf_get64(disk->flags);
	super->created_ns = (int64_t)pf_get64(disk->created_ns);
	super->written_ns = (int64_t)pf_get64(disk->written_ns);
	super->hash_seed = pf_get64(disk->hash_seed);
	super->root = pf_ptr_get(disk->roots[0]);
	super->root_level = disk->root_level[0];
	memcpy(super->meta_members, disk->meta_members, sizeof(super->meta_members));
	memcpy(super->log_members, disk->log_members, sizeof(super->log_members));
	super->log_start = pf_get64(disk->log_start);
	super->log_epoch = pf_get64(disk->log_epoch);
	uint64_t nr_log = pf_get64(disk->nr_log);
	super->nr_log = nr_log <= PF_MAX_META_MEMBERS ? (unsigned)nr_log : UINT_MAX; /* for log_valid() to refuse */
	super->counters = (struct pf_counters){
		.next_id = pf_get64(disk->next_id),
		.next_orphan = pf_get64(disk->next_orphan),
		.nr_inodes = pf_get64(disk->nr_inodes),
		.data_blocks = pf_get64(disk->data_blocks),
		.no_csum_blocks = pf_get64(disk->no_csum_blocks),
		.orphan_blocks = pf_get64(disk->orphan_blocks),
		.node_blocks = pf_get64(disk->node_blocks),
	};
	for (unsigned i = 0; i < PF_MAX_EPOCHS; i++) {
		super->epochs[i].id = pf_get64(disk->epochs[i].id);
		super->epochs[i].time_ns = (int64_t)pf_get64(disk->epochs[i].time_ns);
		super->epochs[i].last_generation = pf_get64(disk->epochs[i].last_generation);
	}
	for (unsigned i = 0; i < PF_MAX_MEMBERS; i++)
		unpack_member(&disk->members[i], &super->members[i]);
}

/* -- judging ------------------------------------------------------------------------------------------------------- */
static bool identity_valid(const struct pf_super *s)
{
	if (s->version < PF_VERSION_FIRST || s->generation == 0)
		return false;
	if (s->nr_members < 1 || s->nr_members > PF_MAX_MEMBERS || s->member_id >= s->nr_members)
		return false;
	if (s->nr_meta < 1 || s->nr_meta > PF_MAX_META_MEMBERS || s->nr_meta > s->nr_members)
		return false;
	if (memcmp(s->pool_uuid, zero_uuid, 16) == 0)
		return false;
	return memcmp(s->member_uuid, s->members[s->member_id].uuid, 16) == 0;
}

static bool member_valid(const struct pf_super *s, unsigned id)
{
	const struct pf_member_row *row = &s->members[id];
	struct pf_geometry geo;

	/* only what a pool with a log can go on without may have failed */
	if (row->state != PF_MEMBER_ACTIVE &&
	    (row->state != PF_MEMBER_FAILED || !pf_has(&s->features, PF_FEAT_INTENT_LOG)))
		return false;
	if (memcmp(row->uuid, zero_uuid, 16) == 0)
		return false;
	for (unsigned i = 0; i < id; i++) {
		if (memcmp(row->uuid, s->members[i].uuid, 16) == 0)
			return false;
	}
	if (pf_geometry_init(&geo, row->size_blocks, row->log_blocks) != 0)
		return false;
	return row->share_blocks <= geo.data_end - geo.data_start && row->root_slot <= 1 &&
	       row->root_generation <= s->generation && row->class <= PF_CLASS_SLOW;
}

static bool meta_members_valid(const struct pf_super *s)
{
	uint32_t named = 0, flagged = 0;
	for (unsigned i = 0; i < s->nr_meta; i++) {
		if (s->meta_members[i] >= s->nr_members || (named >> s->meta_members[i] & 1))
			return false;
		named |= UINT32_C(1) << s->meta_members[i];
	}
	for (unsigned i = 0; i < s->nr_members; i++) {
		if (s->members[i].flags & PF_MEMBER_META)
			flagged |= UINT32_C(1) << i;
	}
	return named == flagged && (named & ~pf_super_failed(s));
}

static bool root_addr_valid(const struct pf_super *s, pf_addr addr)
{
	unsigned id = pf_addr_member(addr);
	uint64_t block = pf_addr_block(addr);
	struct pf_geometry geo;
	if (id >= s->nr_members || addr != pf_addr_make(id, block) ||
	    pf_geometry_init(&geo, s->members[id].size_blocks, s->members[id].log_blocks) != 0)
		return false;
	return block >= geo.data_start && block + PF_NODE_BLOCKS <= geo.data_end;
}

static bool root_valid(const struct pf_super *s)
{
	const struct pf_ptr *root = &s->root;
	bool copies = pf_has(&s->features, PF_FEAT_NODE_COPIES);
	if (root->addr[0] == 0)
		return s->root_level == 0 && root->addr[1] == 0;
	if (root->addr[1] && (!copies || pf_addr_member(root->addr[1]) == pf_addr_member(root->addr[0]) ||
			      !root_addr_valid(s, root->addr[1])))
		return false;
	return root_addr_valid(s, root->addr[0]) && s->root_level <= MAX_ROOT_LEVEL && root->generation >= 1 &&
	       root->generation <= s->generation;
}

/* Which members have the log is the checkpoint's to say; how long their rings are is known from their rows. */
static bool log_valid(const struct pf_super *s)
{
	if (!pf_has(&s->features, PF_FEAT_INTENT_LOG))
		return s->nr_log == 0;
	if (s->nr_log > s->nr_meta || s->log_start > PF_KEY_FIELD_MAX)
		return false;
	uint32_t named = 0;
	for (unsigned i = 0; i < s->nr_log; i++) {
		if (s->log_members[i] >= s->nr_members || (named >> s->log_members[i] & 1))
			return false;
		named |= UINT32_C(1) << s->log_members[i];
	}
	return true;
}

static bool epochs_valid(const struct pf_super *s)
{
	uint64_t before = s->generation;
	bool ended = false;
	for (unsigned i = 0; i < PF_MAX_EPOCHS; i++) {
		const struct pf_epoch *e = &s->epochs[i];
		ended = ended || e->id == 0;
		if (!ended) {
			if (e->last_generation > before)
				return false;
			before = e->last_generation;
		} else if (e->id != 0) {
			return false;
		}
	}
	return true;
}

/* Bounds of everything that becomes a key. The counts of inodes and blocks are left to fsck, which can correct them;
 * refusing them here would make the pool unreadable for the sake of df. */
static bool counters_valid(const struct pf_counters *c)
{
	return c->next_id >= 1 && c->next_id <= PF_KEY_FIELD_MAX && c->next_orphan <= PF_KEY_FIELD_MAX;
}

static bool content_valid(const struct pf_super *s)
{
	for (unsigned i = 0; i < PF_MAX_MEMBERS; i++) {
		if (i < s->nr_members ? !member_valid(s, i) : s->members[i].state != PF_MEMBER_UNUSED)
			return false;
	}
	return s->placement <= PF_PLACE_STRIPE && meta_members_valid(s) && root_valid(s) && log_valid(s) && epochs_valid(s) &&
	       counters_valid(&s->counters);
}

int pf_super_unpack(const void *block, struct pf_super *super)
{
	memset(super, 0, sizeof(*super));
	const struct pf_disk_super *disk = block;
	if (pf_get64(disk->magic) != PF_SUPER_MAGIC)
		return -PF_ESB_MAGIC;
	if (checksum(disk) != pf_get64(disk->crc))
		return -PF_ESB_CSUM;

	unpack_fields(disk, super);
	bool valid = identity_valid(super);
	/* a newer format may give fields other meanings: the caller shall name the feature, not call it damage */
	if (valid && pf_features_unknown(&super->features).incompat == 0)
		valid = content_valid(super);
	return valid ? 0 : -PF_ESB_INVALID;
}
