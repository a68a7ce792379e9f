/* SPDX-License-Identifier: MIT
 * Writing the log out, and commits. One thread writes at a time, in the thread of whoever needs it: a commit costs no hand-over.
 * Those who come meanwhile wait, and one of them does the next round for all. */
#include "base/csum.h"
#include "log/log_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_CHUNKS  16u  /* in flight at once, on each member: 1 MiB */
#define BEHIND_BLOCKS 256u /* closed blocks that write-behind lets gather */

/* Closed blocks that the writer has taken. */
struct job {
	uint64_t from, to;
	uint64_t durable;      /* for the note in each of them */
	uint32_t data_members; /* mask: to be flushed with the log */
	struct pf_log_writes *writes;
	struct pf_meanwhile *meanwhile;
};

#define REQS_ON_STACK (BATCH_CHUNKS * PF_MAX_META_MEMBERS + 16)

static uint32_t bit(unsigned id)
{
	return UINT32_C(1) << id;
}

/* -- the writer's part, without the lock ---------------------------------------------------------------------------- */
static void stamp(struct pf_log *log, uint64_t lsn, uint64_t durable)
{
	struct pf_disk_log_head *head = pf_log_block(log, lsn);
	unsigned used = pf_get16(head->used);
	memset((uint8_t *)(head + 1) + used, 0, PF_LOG_PAYLOAD_BYTES - used);
	head->durable = pf_le64(pf_breaks(log->set->env, PF_BREAK_LOG_PROVES_EARLY) ? lsn : durable);
	head->crc = pf_le64(0);
	head->crc = pf_le64(pf_crc64(head, PF_BLOCK_SIZE));
}

/* Says once that a member takes no log blocks, and once that it does again. */
static void report(struct pf_log *log, const struct pf_aio_req *reqs, unsigned nr, uint32_t failed)
{
	for (unsigned i = 0; i < nr; i++) {
		unsigned id = log->members[i % log->nr_members];
		if (reqs[i].result == 0 || ((log->failing | pf_set_failed(log->set)) & bit(id)))
			continue;
		log->failing |= bit(id);
		pf_log(log->set->env, PF_LOG_WARNING,
		       "%s: the intent log could not be written (%s); "
		       "while that is so, each fsync waits for a whole checkpoint",
		       reqs[i].io->name, pf_strerror(reqs[i].result));
	}
	for (unsigned i = 0; log->failing && i < log->nr_members; i++) {
		unsigned id = log->members[i];
		if (!(log->failing & bit(id)) || (failed & bit(id)))
			continue;
		log->failing &= ~bit(id);
		pf_log(log->set->env, PF_LOG_INFO, "%s: the intent log can be written again",
		       log->set->members[id].io->name);
	}
}

/* Up to BATCH_CHUNKS chunks of @job, from @from on, to all members, behind the @nr_data requests that are in @reqs already. Returns where
 * the next batch begins; *failed: mask of members. */
static uint64_t write_batch(struct pf_log *log, const struct job *job, uint64_t from, struct pf_aio_req *reqs, unsigned nr_data,
			    uint32_t *failed)
{
	unsigned nr = nr_data;
	for (unsigned c = 0; c < BATCH_CHUNKS && from < job->to; c++) {
		unsigned nr_blocks = PF_LOG_CHUNK_BLOCKS - from % PF_LOG_CHUNK_BLOCKS;
		if (nr_blocks > job->to - from)
			nr_blocks = (unsigned)(job->to - from);
		for (unsigned b = 0; b < nr_blocks; b++)
			stamp(log, from + b, job->durable);
		for (unsigned i = 0; i < log->nr_members; i++) {
			unsigned copy = pf_breaks(log->set->env, PF_BREAK_LOG_ONE_COPY) ? 0 : i;
			const struct pf_member *m = &log->set->members[log->members[copy]];
			pf_addr addr = pf_addr_make(m->id, m->geo.log_block + from % log->ring_blocks);
			pf_set_req(log->set, &reqs[nr++], PF_AIO_WRITE, addr, pf_log_block(log, from), nr_blocks);
		}
		from += nr_blocks;
	}
	pf_aio_run_and(log->set->aio, reqs, nr, job->meanwhile);
	for (unsigned i = 0; i < nr - nr_data; i++) {
		if (reqs[nr_data + i].result != 0)
			*failed |= bit(log->members[i % log->nr_members]);
	}
	report(log, reqs + nr_data, nr - nr_data, *failed);
	return from;
}

static unsigned count_data(const struct job *job)
{
	unsigned nr = 0;
	for (const struct pf_log_writes *w = job->writes; w; w = w->next)
		nr += w->nr;
	return nr;
}

static void gather_data(const struct job *job, struct pf_aio_req *reqs)
{
	for (const struct pf_log_writes *w = job->writes; w; w = w->next) {
		memcpy(reqs, w->reqs, w->nr * sizeof(*reqs));
		reqs += w->nr;
	}
}

/* Results go back to whose requests they are. False: one failed. */
static bool scatter_results(const struct job *job, const struct pf_aio_req *reqs)
{
	bool good = true;
	for (struct pf_log_writes *w = job->writes; w; w = w->next) {
		for (unsigned i = 0; i < w->nr; i++, reqs++) {
			w->reqs[i].result = reqs->result;
			good = good && !reqs->result;
		}
		w->done = true;
	}
	return good;
}

/* 0 or -EAGAIN: a member did not take everything. -ENOMEM is one: nothing was begun. */
static int write_blocks(struct pf_log *log, const struct job *job)
{
	struct pf_aio_req on_stack[REQS_ON_STACK], *reqs = on_stack;
	unsigned nr_data = count_data(job);
	uint32_t failed = 0;
	uint64_t lsn = job->from;
	bool good = true;
	if (nr_data + BATCH_CHUNKS * PF_MAX_META_MEMBERS > REQS_ON_STACK)
		reqs = malloc((nr_data + BATCH_CHUNKS * PF_MAX_META_MEMBERS) * sizeof(*reqs));
	if (!reqs)
		return -EAGAIN;
	gather_data(job, reqs);
	while ((lsn < job->to && !failed) || nr_data) {
		lsn = write_batch(log, job, lsn, reqs, nr_data, &failed);
		if (nr_data)
			good = scatter_results(job, reqs);
		nr_data = 0;
	}
	if (reqs != on_stack)
		free(reqs);
	return failed || !good ? -EAGAIN : 0;
}

/* -EAGAIN: the pool goes on without the members that failed. */
static int flush(struct pf_log *log, uint32_t members)
{
	uint32_t failed;
	int err = pf_set_flush(log->set, members, &failed);
	if (!err || !(failed & ~pf_set_failed(log->set)))
		return err ? -EAGAIN : 0;
	for (unsigned id = 0; id < log->set->nr; id++) {
		if (failed & bit(id))
			pf_log(log->set->env, PF_LOG_ERROR,
			       "%s: a flush failed (%s): what was written there since the one before may be lost, "
			       "and fsync promises nothing any more",
			       log->set->members[id].io->name, pf_strerror(err));
	}
	return -EIO;
}

/* I4 of log.h: the flush is issued when all writes have completed, and covers every member that the records need. */
static int make_durable(struct pf_log *log, const struct job *job)
{
	const struct pf_env *env = log->set->env;
	uint32_t members = 0;
	for (unsigned i = 0; i < log->nr_members; i++)
		members |= bit(log->members[i]);
	if (!pf_breaks(env, PF_BREAK_LOG_SKIP_DATA_MEMBERS))
		members |= job->data_members;
	bool early = pf_breaks(env, PF_BREAK_LOG_FLUSH_EARLY);
	int err = early ? flush(log, members) : 0;
	if (!err)
		err = write_blocks(log, job);
	pf_meanwhile(job->meanwhile); /* nothing was left to write */
	if (!err && !early && !pf_breaks(env, PF_BREAK_LOG_NO_FLUSH))
		err = flush(log, members);
	return err;
}

/* -- under the lock ------------------------------------------------------------------------------------------------- */
static struct job begin_writing(struct pf_log *log)
{
	assert(!log->busy);
	log->busy = true;
	pf_log_settle_members(log);
	log->writing_from = log->written;
	log->writing_to = log->open;
	return (struct job){ .from = log->written, .to = log->open, .durable = log->durable };
}

static void end_writing(struct pf_log *log, const struct job *job, int err)
{
	log->busy = false;
	/* also what failed: a block is not written a second time */
	if (log->written < job->to)
		log->written = job->to;
	pf_log_trim(log);
	if (err) {
		log->failed = log->failed || err == -EIO;
		pf_log_open_gap(log);
	} else {
		log->blocks_written += job->to - job->from;
	}
}

/* One round, for all who have appended. */
static void lead(struct pf_log *log, struct pf_meanwhile *meanwhile)
{
	pf_log_close_block(log);
	struct job job = begin_writing(log);
	job.meanwhile = meanwhile;
	job.data_members = log->data_members;
	log->data_members = 0;
	job.writes = log->writes;
	log->writes = NULL;
	log->last_writes = &log->writes;
	log->taken = job.writes;
	pthread_mutex_unlock(&log->lock);

	pf_env_waits(log->set->env, true);
	int err = make_durable(log, &job);
	pf_env_waits(log->set->env, false);

	pthread_mutex_lock(&log->lock);
	log->taken = NULL;
	end_writing(log, &job, err);
	if (err) {
		log->data_members |= job.data_members;
	} else {
		if (log->durable < job.to)
			log->durable = job.to;
		log->nr_commits++;
	}
	pthread_cond_broadcast(&log->changed); /* who takes writes back */
}

/* Nothing can be promised at present: why. */
static int refused(const struct pf_log *log)
{
	if (log->failed)
		return -EIO;
	return log->gap || log->start < log->gap_end ? -EAGAIN : 0;
}

/* Takes out those whose result is known. */
static struct pf_log_wait *take_settled(struct pf_log *log)
{
	struct pf_log_wait *settled = NULL, **end = &settled, **w = &log->waits;
	int err = refused(log);
	while (*w) {
		struct pf_log_wait *wait = *w;
		bool durable = wait->target <= log->durable;
		if (!durable && !err) {
			w = &wait->next;
			continue;
		}
		wait->result = durable ? 0 : err;
		log->nr_waiters += durable;
		*w = wait->next;
		*end = wait;
		end = &wait->next;
	}
	*end = NULL;
	log->last_wait = w;
	return settled;
}

static void tell(struct pf_log_wait *waits)
{
	while (waits) {
		struct pf_log_wait *again = NULL, **end = &again;
		while (waits) {
			struct pf_log_wait *wait = waits;
			waits = wait->next; /* afterwards it may be gone */
			if (!wait->done(wait))
				continue;
			wait->next = NULL;
			*end = wait;
			end = &wait->next;
		}
		waits = again;
	}
}

/* Whoever was busy calls it: as long as somebody waits without a thread, and no other thread is busy for them. */
static void serve(struct pf_log *log, struct pf_meanwhile *meanwhile)
{
	for (;;) {
		struct pf_log_wait *settled = take_settled(log);
		if (settled) {
			pthread_mutex_unlock(&log->lock);
			pf_meanwhile(meanwhile);
			tell(settled);
			pthread_mutex_lock(&log->lock);
		} else if (log->waits && !log->busy) {
			lead(log, meanwhile);
		} else {
			return;
		}
	}
}

/* Everything up to the end of the open block; that is closed by who writes it, so that others can still join. */
static uint64_t target_now(const struct pf_log *log)
{
	return log->open + (log->used > 0);
}

void pf_log_commit_start(struct pf_log *log, struct pf_log_wait *wait, struct pf_meanwhile *meanwhile)
{
	pthread_mutex_lock(&log->lock);
	wait->target = target_now(log);
	wait->next = NULL;
	wait->result = refused(log);
	bool waits = !wait->result && log->durable < wait->target;
	if (waits) {
		*log->last_wait = wait;
		log->last_wait = &wait->next;
		if (!log->busy)
			serve(log, meanwhile);
	}
	pthread_mutex_unlock(&log->lock);
	pf_meanwhile(meanwhile);
	if (!waits)
		tell(wait);
}

struct sleeper {
	struct pf_log_wait wait; /* first */
	struct pf_log *log;
	bool over;
};

static bool wake(struct pf_log_wait *wait)
{
	struct sleeper *s = (struct sleeper *)wait;
	struct pf_log *log = s->log;
	pthread_mutex_lock(&log->lock);
	s->over = true;
	pthread_cond_broadcast(&log->changed);
	pthread_mutex_unlock(&log->lock);
	return false;
}

int pf_log_commit(struct pf_log *log)
{
	struct sleeper s = { .wait = { .done = wake }, .log = log };
	pf_log_commit_start(log, &s.wait, NULL);
	pthread_mutex_lock(&log->lock);
	while (!s.over)
		pthread_cond_wait(&log->changed, &log->lock);
	pthread_mutex_unlock(&log->lock);
	return s.wait.result;
}

void pf_log_write_behind(struct pf_log *log)
{
	pthread_mutex_lock(&log->lock);
	if (!log->busy && log->open - log->written >= BEHIND_BLOCKS && !log->gap && !log->failed) {
		struct job job = begin_writing(log);
		pthread_mutex_unlock(&log->lock);
		int err = write_blocks(log, &job);
		pthread_mutex_lock(&log->lock);
		end_writing(log, &job, err);
		serve(log, NULL);
	}
	pthread_mutex_unlock(&log->lock);
}

static bool is_taken(const struct pf_log *log, const struct pf_log_writes *writes)
{
	const struct pf_log_writes *w = log->taken;
	while (w && w != writes)
		w = w->next;
	return w;
}

void pf_log_take_back(struct pf_log *log, struct pf_log_writes *writes)
{
	pthread_mutex_lock(&log->lock);
	for (struct pf_log_writes **w = &log->writes; *w; w = &(*w)->next) {
		if (*w != writes)
			continue;
		*w = writes->next;
		if (!writes->next)
			log->last_writes = w;
		break;
	}
	/* who waited for the commit that has them comes back before it ends when a gap was opened meanwhile */
	while (is_taken(log, writes))
		pthread_cond_wait(&log->changed, &log->lock);
	pthread_mutex_unlock(&log->lock);
}
