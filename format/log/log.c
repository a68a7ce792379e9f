/* SPDX-License-Identifier: MIT */
#include "log/log_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)PF_LOG_CHUNK_BLOCKS * PF_BLOCK_SIZE)
#define IDLE_MAX    32u /* chunks kept for the next blocks: twice what write-behind lets gather */
#define IDLE_FIRST  2u  /* of them made beforehand */

struct pf_log_chunk {
	union {
		uint8_t bytes[CHUNK_BYTES];
		struct pf_log_chunk *next; /* while idle */
	};
};

/* -- which members, how long ---------------------------------------------------------------------------------------- */
uint32_t pf_log_mask(const struct pf_super *super)
{
	uint32_t mask = 0;
	for (unsigned i = 0; i < super->nr_log && i < PF_MAX_META_MEMBERS; i++)
		mask |= UINT32_C(1) << super->log_members[i];
	return mask;
}

/* The length of a ring is in the member's row, whether the member is there or not: the others must find the same places. Those of
 * all metadata members count, so that the places stay when one of them fails and another takes over. */
uint32_t pf_log_ring_blocks(const struct pf_set *set, const struct pf_super *super)
{
	uint32_t ring = PF_LOG_MAX_BLOCKS, mask = pf_log_mask(super), all = mask | pf_super_meta(super);
	for (unsigned id = 0; id < set->nr; id++) {
		if ((all >> id & 1) && super->members[id].log_blocks < ring)
			ring = super->members[id].log_blocks;
	}
	return mask ? ring - ring % PF_LOG_CHUNK_BLOCKS : 0;
}

/* -- memory of blocks ----------------------------------------------------------------------------------------------- */
static uint64_t chunk_floor(uint64_t lsn)
{
	return lsn - lsn % PF_LOG_CHUNK_BLOCKS;
}

static struct pf_log_chunk **slot_of(const struct pf_log *log, uint64_t lsn)
{
	return &log->chunks[lsn % log->ring_blocks / PF_LOG_CHUNK_BLOCKS];
}

struct pf_disk_log_head *pf_log_block(const struct pf_log *log, uint64_t lsn)
{
	struct pf_log_chunk *chunk = *slot_of(log, lsn);
	return (struct pf_disk_log_head *)(chunk->bytes + lsn % PF_LOG_CHUNK_BLOCKS * PF_BLOCK_SIZE);
}

static struct pf_log_chunk *chunk_new(struct pf_log *log)
{
	struct pf_log_chunk *chunk = log->idle;
	if (!chunk)
		return aligned_alloc(PF_BLOCK_SIZE, sizeof(*chunk));
	log->idle = chunk->next;
	log->nr_idle--;
	return chunk;
}

static void chunk_put(struct pf_log *log, struct pf_log_chunk *chunk)
{
	if (!chunk)
		return;
	if (log->nr_idle == IDLE_MAX) {
		free(chunk);
		return;
	}
	chunk->next = log->idle;
	log->idle = chunk;
	log->nr_idle++;
}

void pf_log_trim(struct pf_log *log)
{
	uint64_t needed = log->busy && log->writing_from < log->written ? log->writing_from : log->written;
	for (; log->mem_first + PF_LOG_CHUNK_BLOCKS <= needed; log->mem_first += PF_LOG_CHUNK_BLOCKS) {
		chunk_put(log, *slot_of(log, log->mem_first));
		*slot_of(log, log->mem_first) = NULL;
	}
}

void pf_log_settle_members(struct pf_log *log)
{
	log->nr_members = 0;
	for (unsigned id = 0; id < log->set->nr; id++) {
		if (log->placed >> id & 1)
			log->members[log->nr_members++] = id;
	}
}

/* -- opening -------------------------------------------------------------------------------------------------------- */
static int init_memory(struct pf_log *log)
{
	log->chunks = calloc(log->ring_blocks / PF_LOG_CHUNK_BLOCKS, sizeof(log->chunks[0]));
	if (!log->chunks)
		return -ENOMEM;
	for (unsigned i = 0; i < IDLE_FIRST; i++) {
		struct pf_log_chunk *chunk = aligned_alloc(PF_BLOCK_SIZE, sizeof(*chunk));
		if (!chunk)
			return -ENOMEM;
		chunk_put(log, chunk);
	}
	return 0;
}

int pf_log_open(struct pf_set *set, const struct pf_super *super, uint64_t epoch, uint64_t first_lsn,
		struct pf_log **out)
{
	*out = NULL;
	uint32_t mask = pf_log_mask(super), ring = pf_log_ring_blocks(set, super);
	if (ring == 0)
		return -EINVAL;
	struct pf_log *log = calloc(1, sizeof(*log));
	if (!log)
		return -ENOMEM;
	log->set = set;
	memcpy(log->pool_uuid, super->pool_uuid, sizeof(log->pool_uuid));
	log->epoch = epoch;
	log->ring_blocks = ring;
	log->placed = mask;
	pf_log_settle_members(log);
	log->start = log->durable = log->written = log->open = log->frozen = first_lsn;
	log->mem_first = chunk_floor(first_lsn);
	log->last_writes = &log->writes;
	log->last_wait = &log->waits;
	pthread_mutex_init(&log->lock, NULL);
	pthread_cond_init(&log->changed, NULL);
	if (init_memory(log) != 0) {
		pf_log_close(log);
		return -ENOMEM;
	}
	*out = log;
	return 0;
}

void pf_log_close(struct pf_log *log)
{
	if (!log)
		return;
	assert(!log->busy && !log->waits);
	for (uint32_t i = 0; log->chunks && i < log->ring_blocks / PF_LOG_CHUNK_BLOCKS; i++)
		free(log->chunks[i]);
	while (log->idle) {
		struct pf_log_chunk *chunk = log->idle;
		log->idle = chunk->next;
		free(chunk);
	}
	pthread_cond_destroy(&log->changed);
	pthread_mutex_destroy(&log->lock);
	free(log->chunks);
	free(log);
}

/* -- appending ------------------------------------------------------------------------------------------------------ */
static uint64_t max_record(uint32_t ring_blocks)
{
	return (uint64_t)ring_blocks / 8 * PF_LOG_PAYLOAD_BYTES;
}

uint64_t pf_log_max_record(const struct pf_log *log)
{
	return max_record(log->ring_blocks);
}

static void begin_block(struct pf_log *log)
{
	struct pf_disk_log_head *head = pf_log_block(log, log->open);
	*head = (struct pf_disk_log_head){
		.magic = pf_le64(PF_LOG_MAGIC),
		.epoch = pf_le64(log->epoch),
		.lsn = pf_le64(log->open),
		.first = pf_le16(PF_LOG_NO_RECORD),
	};
	memcpy(head->pool_uuid, log->pool_uuid, sizeof(head->pool_uuid));
}

void pf_log_close_block(struct pf_log *log)
{
	if (log->used == 0)
		return;
	pf_log_block(log, log->open)->used = pf_le16((uint16_t)log->used);
	log->open++;
	log->used = 0;
}

/* Room and memory for @len more bytes; taken from neither yet. */
static bool reserve(struct pf_log *log, uint64_t len)
{
	uint64_t last = log->open + (log->used + len - 1) / PF_LOG_PAYLOAD_BYTES;
	uint64_t oldest = log->start < log->mem_first && !pf_breaks(log->set->env, PF_BREAK_LOG_OVERRUN)
				  ? log->start
				  : log->mem_first;
	if (last >= oldest + log->ring_blocks)
		return false;
	for (uint64_t lsn = chunk_floor(log->open); lsn <= last; lsn += PF_LOG_CHUNK_BLOCKS) {
		struct pf_log_chunk **slot = slot_of(log, lsn);
		if (!*slot)
			*slot = chunk_new(log);
		if (!*slot)
			return false;
	}
	return true;
}

static void put(struct pf_log *log, const uint8_t *data, size_t len)
{
	while (len > 0) {
		if (log->used == 0)
			begin_block(log);
		size_t n = PF_LOG_PAYLOAD_BYTES - log->used;
		if (n > len)
			n = len;
		memcpy((uint8_t *)(pf_log_block(log, log->open) + 1) + log->used, data, n);
		log->used += (uint32_t)n;
		data += n;
		len -= n;
		if (log->used == PF_LOG_PAYLOAD_BYTES)
			pf_log_close_block(log);
	}
}

/* For tests of the tests: the block that the last commit closed is filled further, and will be written a second time. */
static void reopen_block(struct pf_log *log)
{
	uint64_t lsn = log->open - 1;
	if (log->used > 0 || log->busy || log->open <= log->frozen || log->open <= log->start || lsn < log->mem_first)
		return;
	uint32_t used = pf_get16(pf_log_block(log, lsn)->used);
	if (used == PF_LOG_PAYLOAD_BYTES)
		return;
	log->open = lsn;
	log->used = used;
	log->written = log->written < lsn ? log->written : lsn;
	log->durable = log->durable < lsn ? log->durable : lsn;
}

static void append(struct pf_log *log, const struct pf_log_part *parts, unsigned nr)
{
	uint64_t lsn = log->open;
	uint32_t at = log->used;
	for (unsigned i = 0; i < nr; i++)
		put(log, parts[i].data, parts[i].len);
	struct pf_disk_log_head *head = pf_log_block(log, lsn);
	if (pf_get16(head->first) == PF_LOG_NO_RECORD)
		head->first = pf_le16((uint16_t)at);
}

bool pf_log_append(struct pf_log *log, const struct pf_log_part *parts, unsigned nr, uint32_t data_members)
{
	return pf_log_append_with(log, parts, nr, data_members, NULL);
}

bool pf_log_append_with(struct pf_log *log, const struct pf_log_part *parts, unsigned nr, uint32_t data_members,
			struct pf_log_writes *writes)
{
	uint64_t len = 0;
	for (unsigned i = 0; i < nr; i++)
		len += parts[i].len;
	assert(len >= sizeof(struct pf_disk_record_head) && len % 8 == 0);
	if (writes) {
		writes->done = false;
		writes->next = NULL;
	}

	pthread_mutex_lock(&log->lock);
	if (pf_breaks(log->set->env, PF_BREAK_LOG_REWRITE))
		reopen_block(log);
	bool taken = !log->gap && !log->failed && len <= max_record(log->ring_blocks) && reserve(log, len);
	if (taken) {
		append(log, parts, nr);
		log->data_members |= data_members;
		log->nr_records++;
		if (writes) {
			*log->last_writes = writes;
			log->last_writes = &writes->next;
		}
	} else {
		log->nr_lost++;
		pf_log_open_gap(log);
	}
	pthread_mutex_unlock(&log->lock);
	return taken;
}

/* -- gaps ----------------------------------------------------------------------------------------------------------- */
void pf_log_open_gap(struct pf_log *log)
{
	if (log->gap || pf_breaks(log->set->env, PF_BREAK_LOG_IGNORES_GAP))
		return;
	log->gap = true;
}

void pf_log_lose(struct pf_log *log)
{
	pthread_mutex_lock(&log->lock);
	log->nr_lost++;
	pf_log_open_gap(log);
	pthread_mutex_unlock(&log->lock);
}

/* -- checkpoint ----------------------------------------------------------------------------------------------------- */
uint64_t pf_log_freeze(struct pf_log *log)
{
	pthread_mutex_lock(&log->lock);
	pf_log_close_block(log);
	if (log->gap) {
		/* what is not written by now never will be, and this LSN has no block: a replay from before it ends here */
		log->open++;
		log->written = log->open;
		log->gap_end = log->open;
		log->gap = false;
		/* nor does anybody wait for the data that it names: the checkpoint has that, or it is lost with a member */
		log->data_members = 0;
		pf_log_trim(log);
	}
	uint64_t lsn = log->frozen = log->open;
	pthread_mutex_unlock(&log->lock);
	return lsn;
}

void pf_log_release(struct pf_log *log, uint64_t start)
{
	pthread_mutex_lock(&log->lock);
	assert(start <= log->open);
	if (start > log->start)
		log->start = start;
	if (start > log->durable)
		log->durable = start;
	if (start > log->written)
		log->written = start;
	if (start == log->open && log->used == 0)
		log->data_members = 0;
	pf_log_trim(log);
	pthread_mutex_unlock(&log->lock);
}

void pf_log_move(struct pf_log *log, const struct pf_super *super)
{
	pthread_mutex_lock(&log->lock);
	assert(log->placed == pf_log_mask(super) || log->gap || pf_breaks(log->set->env, PF_BREAK_LOG_IGNORES_GAP));
	log->placed = pf_log_mask(super);
	pthread_mutex_unlock(&log->lock);
}

uint64_t pf_log_epoch(const struct pf_log *log)
{
	return log->epoch;
}

bool pf_log_wants_checkpoint(struct pf_log *log)
{
	pthread_mutex_lock(&log->lock);
	bool wants = log->open - log->start >= log->ring_blocks / 2;
	pthread_mutex_unlock(&log->lock);
	return wants;
}

void pf_log_stats(struct pf_log *log, struct pf_log_stats *out)
{
	pthread_mutex_lock(&log->lock);
	*out = (struct pf_log_stats){
		.start = log->start,
		.durable = log->durable,
		.written = log->written,
		.open = log->open,
		.ring_blocks = log->ring_blocks,
		.nr_commits = log->nr_commits,
		.nr_waiters = log->nr_waiters,
		.nr_records = log->nr_records,
		.nr_lost = log->nr_lost,
		.blocks_written = log->blocks_written,
	};
	pthread_mutex_unlock(&log->lock);
}
