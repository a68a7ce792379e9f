/* SPDX-License-Identifier: MIT
 * First the blocks, of all copies side by side, then the records in them. */
#include "log/log_scan.h"

#include "base/csum.h"
#include "ondisk/ondisk_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_BLOCKS 256u /* read at a time, from each member */
#define GIVE_UP       32u  /* blocks that can't be read, and none that can: the member is not there */

struct copy {
	unsigned id;
	uint8_t *window;
	bool bad[WINDOW_BLOCKS]; /* could not be read */
	bool heard;              /* at least one block of it could be read */
	unsigned nr_unread;
	bool dead; /* nothing could be read so far, and no more is tried */
};

struct block_info { /* of a block of the log; its bytes lie in scan->bytes */
	uint16_t used, first;
};

struct scanner {
	struct pf_set *set;
	const struct pf_super *super;
	struct pf_diag *diag;
	struct pf_log_scan *scan;
	uint32_t ring_blocks;
	struct copy copies[PF_MAX_META_MEMBERS];
	unsigned nr_copies, nr_log; /* present, and all */
	uint8_t *windows;
	struct block_info *infos; /* ring_blocks */
	size_t nr_bytes, cap_bytes;
	bool ended;
	bool unread_end;  /* the first block that is not there could not be read on some member */
	uint64_t durable; /* the highest note */
};

/* The one place that says so. */
static int damaged(const struct scanner *s, const char *what)
{
	return pf_diag_set(s->diag, -PF_ELOG_DAMAGED, "the intent log is damaged: %s; run fsck.poolfs", what);
}

/* -- blocks --------------------------------------------------------------------------------------------------------- */
static uint64_t block_on_member(const struct scanner *s, const struct copy *copy, uint64_t lsn)
{
	return s->set->members[copy->id].geo.log_block + lsn % s->ring_blocks;
}

/* Block by block, after the whole failed: a bad sector costs one copy of one block. */
static void read_singly(struct scanner *s, struct copy *copy, uint64_t lsn, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		pf_addr addr = pf_addr_make(copy->id, block_on_member(s, copy, lsn + i));
		copy->bad[i] =
			copy->dead || pf_set_read(s->set, addr, copy->window + (size_t)i * PF_BLOCK_SIZE, 1) != 0;
		copy->heard = copy->heard || !copy->bad[i];
		copy->nr_unread += copy->bad[i];
		copy->dead = !copy->heard && copy->nr_unread >= GIVE_UP;
	}
}

/* [lsn, lsn + nr), which does not wrap, from all members at once. */
static void read_window(struct scanner *s, uint64_t lsn, unsigned nr)
{
	struct pf_aio_req reqs[PF_MAX_META_MEMBERS];
	struct copy *of[PF_MAX_META_MEMBERS];
	unsigned nr_reqs = 0;
	for (unsigned c = 0; c < s->nr_copies; c++) {
		struct copy *copy = &s->copies[c];
		memset(copy->bad, copy->dead, sizeof(copy->bad));
		if (copy->dead)
			continue;
		of[nr_reqs] = copy;
		pf_set_req(s->set, &reqs[nr_reqs++], PF_AIO_READ, pf_addr_make(copy->id, block_on_member(s, copy, lsn)),
			   copy->window, nr);
	}
	pf_aio_run(s->set->aio, reqs, nr_reqs);
	for (unsigned r = 0; r < nr_reqs; r++) {
		if (reqs[r].result == 0)
			of[r]->heard = true;
		else
			read_singly(s, of[r], lsn, nr);
	}
}

/* A block of this log, in the place of @lsn. Which LSN it has is the caller's to look at. */
static bool is_ours(const struct scanner *s, struct pf_disk_log_head *head, uint64_t lsn)
{
	if (pf_get64(head->magic) != PF_LOG_MAGIC || memcmp(head->pool_uuid, s->super->pool_uuid, 16) != 0)
		return false;
	if (pf_get64(head->epoch) != s->super->log_epoch && !pf_breaks(s->set->env, PF_BREAK_LOG_OLD_EPOCH))
		return false;
	if (pf_get64(head->lsn) % s->ring_blocks != lsn % s->ring_blocks ||
	    pf_get64(head->durable) > pf_get64(head->lsn))
		return false;
	struct le64 crc = head->crc;
	head->crc = pf_le64(0);
	uint64_t sum = pf_crc64(head, PF_BLOCK_SIZE);
	head->crc = crc;
	return sum == pf_get64(crc);
}

/* Adds the block to the log. */
static int take(struct scanner *s, const struct pf_disk_log_head *head, uint64_t lsn)
{
	struct block_info info = { pf_get16(head->used), pf_get16(head->first) };
	if (info.used == 0 || info.used > PF_LOG_PAYLOAD_BYTES || info.used % 8 != 0) {
		char what[64];
		snprintf(what, sizeof(what), "block %llu cannot be %u bytes long", (unsigned long long)lsn, info.used);
		return damaged(s, what);
	}
	if (s->nr_bytes + info.used > s->cap_bytes) {
		size_t cap = s->cap_bytes ? 2 * s->cap_bytes : (size_t)WINDOW_BLOCKS * PF_BLOCK_SIZE;
		uint8_t *bytes = realloc(s->scan->bytes, cap);
		if (!bytes)
			return -ENOMEM;
		s->scan->bytes = bytes;
		s->cap_bytes = cap;
	}
	memcpy(s->scan->bytes + s->nr_bytes, head + 1, info.used);
	s->nr_bytes += info.used;
	s->infos[lsn - s->scan->start] = info;
	return 0;
}

/* Block @i of the window, which is @lsn: of all copies. A block that a later round of the ring put there says nothing about
 * @lsn but that it is lost, and its note counts like any other (I2). */
static int judge(struct scanner *s, uint64_t lsn, unsigned i)
{
	const struct pf_disk_log_head *good = NULL;
	unsigned nr_good = 0;
	bool unread = false;
	for (unsigned c = 0; c < s->nr_copies; c++) {
		struct pf_disk_log_head *head = (void *)(s->copies[c].window + (size_t)i * PF_BLOCK_SIZE);
		unread = unread || s->copies[c].bad[i];
		if (s->copies[c].bad[i] || !is_ours(s, head, lsn) || pf_get64(head->lsn) < lsn)
			continue;
		if (pf_get64(head->durable) > s->durable)
			s->durable = pf_get64(head->durable);
		if (pf_get64(head->lsn) != lsn)
			continue;
		good = head;
		nr_good++;
	}
	if (s->ended)
		return 0;
	if (!good) {
		s->ended = true;
		s->unread_end = unread;
		return 0;
	}
	int err = take(s, good, lsn);
	if (err) {
		s->ended = true;
		return err;
	}
	s->scan->end = lsn + 1;
	s->scan->nr_one_copy += nr_good < s->nr_log;
	return 0;
}

static int not_there(const struct scanner *s)
{
	char where[256] = "";
	size_t len = 0;
	for (unsigned c = 0; c < s->nr_copies && len < sizeof(where); c++) {
		const struct copy *copy = &s->copies[c];
		len += (size_t)snprintf(where + len, sizeof(where) - len, "%sblock %llu of %.60s", c ? ", " : "",
					(unsigned long long)block_on_member(s, copy, s->scan->end),
					s->set->members[copy->id].io->name);
	}
	char what[512];
	snprintf(what, sizeof(what),
		 "its block %llu was promised to be durable (all before %llu were), and is not to be found (%s)",
		 (unsigned long long)s->scan->end, (unsigned long long)s->durable, where);
	return damaged(s, what);
}

/* Reads on behind damage: later blocks say what of the records before it was promised. */
static int read_blocks(struct scanner *s)
{
	uint64_t start = s->super->log_start, stop = start + s->ring_blocks;
	bool heard = false;
	int err = 0;
	for (uint64_t lsn = start; lsn < stop;) {
		uint64_t nr = s->ring_blocks - lsn % s->ring_blocks;
		nr = nr < stop - lsn ? nr : stop - lsn;
		nr = nr < WINDOW_BLOCKS ? nr : WINDOW_BLOCKS;
		read_window(s, lsn, (unsigned)nr);
		for (unsigned i = 0; i < nr && err != -ENOMEM; i++) {
			int block_err = judge(s, lsn + i, i);
			err = block_err ? block_err : err;
		}
		if (err == -ENOMEM)
			return err;
		lsn += nr;
	}
	for (unsigned c = 0; c < s->nr_copies; c++)
		heard = heard || s->copies[c].heard;
	if (!heard)
		return pf_diag_set(s->diag, -EIO, "the intent log could not be read from any member that has it");
	if (!err && s->durable > s->scan->end)
		err = not_there(s);
	if (!err && s->unread_end)
		pf_log(s->set->env, PF_LOG_WARNING,
		       "the intent log is taken to end before block %llu, which could not be read from every member; "
		       "nothing that could be read says that it was promised",
		       (unsigned long long)s->scan->end);
	if (s->durable > start)
		s->scan->proven = s->durable < s->scan->end ? s->durable : s->scan->end;
	return err;
}

/* -- records -------------------------------------------------------------------------------------------------------- */
struct walk {
	size_t at;                 /* in scan->bytes */
	uint32_t missing;          /* bytes of the last record that are still to come */
	unsigned nr;               /* records that are whole */
	struct pf_log_record open; /* one that is not yet */
};

static int nonsense(const struct scanner *s, uint64_t lsn)
{
	char what[64];
	snprintf(what, sizeof(what), "the records in block %llu make no sense", (unsigned long long)lsn);
	return damaged(s, what);
}

/* The open record is whole: its last bytes lie in @lsn. @records: NULL when they are only counted. */
static void close_record(const struct scanner *s, struct walk *w, struct pf_log_record *records, uint64_t lsn)
{
	w->open.proven = lsn < s->scan->proven;
	if (records)
		records[w->nr] = w->open;
	w->nr++;
}

/* False: a record cannot be like this. */
static bool open_record(const struct scanner *s, struct walk *w, uint64_t lsn)
{
	struct pf_disk_record_head head;
	memcpy(&head, s->scan->bytes + w->at, sizeof(head));
	uint64_t len = pf_get32(head.len);
	if (len < sizeof(head) || len % 8 != 0 || len > (uint64_t)s->ring_blocks / 8 * PF_LOG_PAYLOAD_BYTES ||
	    head.type == 0)
		return false;
	w->open = (struct pf_log_record){ s->scan->bytes + w->at, (uint32_t)len, head.type, false, lsn };
	w->missing = (uint32_t)len;
	return true;
}

/* One block. Lengths and places are multiples of 8, so a head is never cut. */
static bool walk_block(const struct scanner *s, struct walk *w, struct pf_log_record *records, uint64_t lsn)
{
	struct block_info info = s->infos[lsn - s->scan->start];
	size_t end = w->at + info.used;
	unsigned first = w->missing < info.used ? w->missing : PF_LOG_NO_RECORD;
	if (info.first != first)
		return false;
	while (w->at < end) {
		if (w->missing == 0 && !open_record(s, w, lsn))
			return false;
		size_t n = w->missing < end - w->at ? w->missing : end - w->at;
		w->at += n;
		w->missing -= (uint32_t)n;
		if (w->missing == 0)
			close_record(s, w, records, lsn);
	}
	return w->missing == 0 || info.used == PF_LOG_PAYLOAD_BYTES;
}

/* After an error *nr are before the damage. */
static int walk_records(const struct scanner *s, struct pf_log_record *records, unsigned *nr)
{
	struct walk w = { 0 };
	int err = 0;
	for (uint64_t lsn = s->scan->start; !err && lsn < s->scan->end; lsn++) {
		if (!walk_block(s, &w, records, lsn))
			err = nonsense(s, lsn);
	}
	*nr = w.nr;
	return err;
}

static int find_records(struct scanner *s)
{
	unsigned nr;
	int err = walk_records(s, NULL, &nr);
	if (nr == 0)
		return err;
	s->scan->records = calloc(nr, sizeof(s->scan->records[0]));
	if (!s->scan->records)
		return -ENOMEM;
	return walk_records(s, s->scan->records, &s->scan->nr_records);
}

/* -- all of it ------------------------------------------------------------------------------------------------------ */
static int init(struct scanner *s)
{
	uint32_t mask = pf_log_mask(s->super);
	s->nr_log = (unsigned)__builtin_popcount(mask);
	for (unsigned id = 0; id < s->set->nr; id++) {
		if ((mask >> id & 1) && s->set->members[id].io)
			s->copies[s->nr_copies++].id = id;
	}
	s->infos = calloc(s->ring_blocks, sizeof(s->infos[0]));
	s->windows = aligned_alloc(PF_BLOCK_SIZE, (size_t)PF_MAX_META_MEMBERS * WINDOW_BLOCKS * PF_BLOCK_SIZE);
	if (!s->infos || !s->windows)
		return -ENOMEM;
	for (unsigned c = 0; c < s->nr_copies; c++)
		s->copies[c].window = s->windows + (size_t)c * WINDOW_BLOCKS * PF_BLOCK_SIZE;
	return 0;
}

int pf_log_scan(struct pf_set *set, const struct pf_super *super, struct pf_log_scan *out, struct pf_diag *diag)
{
	memset(out, 0, sizeof(*out));
	out->start = out->end = out->proven = super->log_start;
	struct scanner s = {
		.set = set,
		.super = super,
		.diag = diag,
		.scan = out,
		.ring_blocks = pf_log_ring_blocks(set, super),
	};
	if (s.ring_blocks == 0)
		return 0;
	int err = init(&s);
	if (!err)
		err = read_blocks(&s);
	if (!err || err == -PF_ELOG_DAMAGED) {
		int found = find_records(&s);
		err = err && found != -ENOMEM ? err : found;
	}
	if (err == -ENOMEM)
		pf_diag_set(diag, err, "out of memory");
	free(s.infos);
	free(s.windows);
	if (err && err != -PF_ELOG_DAMAGED)
		pf_log_scan_free(out);
	return err;
}

void pf_log_scan_free(struct pf_log_scan *scan)
{
	free(scan->records);
	free(scan->bytes);
	memset(scan, 0, sizeof(*scan));
}
