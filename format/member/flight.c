/* SPDX-License-Identifier: MIT
 * Requests that may never come back, and the memory that is then theirs (aio.h I5). */
#include "member/aio_int.h"

#include "ondisk/ondisk.h"

#include <stdlib.h>
#include <string.h>

#define SMALL_BYTES (4 * (size_t)PF_BLOCK_SIZE) /* a node; of these some are kept with spare flights */
#define SPARE_MAX   64u

static void flight_free(struct pf_flight *f)
{
	free(f->small);
	free(f->large);
	free(f);
}

static struct pf_flight *take_spare(struct pf_aio *aio)
{
	pthread_mutex_lock(&aio->lock);
	struct pf_flight *f = TAILQ_FIRST(&aio->spare);
	if (f) {
		TAILQ_REMOVE(&aio->spare, f, link);
		aio->nr_spare--;
	}
	pthread_mutex_unlock(&aio->lock);
	return f ? f : calloc(1, sizeof(*f));
}

/* The buffer of its own. */
static uint8_t *room_for(struct pf_flight *f, uint64_t len_bytes)
{
	if (len_bytes > SMALL_BYTES)
		return f->large = aligned_alloc(PF_BLOCK_SIZE, len_bytes);
	if (!f->small)
		f->small = aligned_alloc(PF_BLOCK_SIZE, SMALL_BYTES);
	return f->small;
}

struct pf_flight *pf_flight_new(struct pf_aio *aio, struct pf_io *io, enum pf_io_call call, uint64_t off_bytes, void *buf,
				uint64_t len_bytes, bool copy)
{
	struct pf_flight *f = take_spare(aio);
	if (!f)
		return NULL;
	*f = (struct pf_flight){ .io = io, .call = call, .off_bytes = off_bytes, .len_bytes = len_bytes, .buf = buf, .small = f->small };
	f->since = atomic_load_explicit(&aio->ticks, memory_order_relaxed);
	if (copy && buf && len_bytes) {
		f->user = buf;
		f->buf = room_for(f, len_bytes);
		if (!f->buf) {
			flight_free(f);
			return NULL;
		}
		if (call == PF_IO_WRITE)
			memcpy(f->buf, buf, len_bytes);
	}
	atomic_fetch_add_explicit(&io->nr_in_flight, 1, memory_order_relaxed);
	if (call == PF_IO_FLUSH)
		atomic_fetch_add_explicit(&io->nr_flushing, 1, memory_order_relaxed);
	return f;
}

/* Lock held. */
static void put(struct pf_aio *aio, struct pf_flight *f)
{
	free(f->large);
	f->large = NULL;
	if (aio->nr_spare < SPARE_MAX) {
		TAILQ_INSERT_HEAD(&aio->spare, f, link);
		aio->nr_spare++;
	} else {
		flight_free(f);
	}
}

void pf_flight_put(struct pf_aio *aio, struct pf_flight *f)
{
	pthread_mutex_lock(&aio->lock);
	put(aio, f);
	pthread_mutex_unlock(&aio->lock);
}

void pf_flight_free_spare(struct pf_aio *aio)
{
	struct pf_flight *f;
	while ((f = TAILQ_FIRST(&aio->spare))) {
		TAILQ_REMOVE(&aio->spare, f, link);
		flight_free(f);
	}
}

void pf_flight_account(const struct pf_flight *f, int err)
{
	if (f->call == PF_IO_READ)
		pf_io_account_read(f->io, f->len_bytes, err);
	else if (f->call == PF_IO_WRITE)
		pf_io_account_write(f->io, f->len_bytes, err);
	else if (f->call == PF_IO_FLUSH)
		pf_io_account_flush_end(f->io, f->nr_writes, err);
}

void pf_flight_settle(struct pf_flight *f, int err)
{
	if (f->call == PF_IO_READ && f->user && !err)
		memcpy(f->user, f->buf, f->len_bytes);
	if (f->call == PF_IO_FLUSH)
		atomic_fetch_sub_explicit(&f->io->nr_flushing, 1, memory_order_relaxed);
	pf_flight_account(f, err);
	atomic_fetch_add_explicit(&f->io->nr_ended, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&f->io->nr_in_flight, 1, memory_order_relaxed);
}

/* -- lost ------------------------------------------------------------------------------------------------------------------- */
void pf_flight_lose(struct pf_aio *aio, struct pf_flight *f, struct pf_flights *list)
{
	pf_flight_account(f, -EIO);
	f->lost = true;
	f->io->nr_lost++;
	TAILQ_INSERT_TAIL(list, f, link);
	atomic_fetch_add(&aio->nr_lost, 1);
}

static bool uses(const struct pf_flight *f, const void *buf, size_t len_bytes)
{
	const uint8_t *a = buf;
	return !f->user && f->buf && f->buf < a + len_bytes && a < f->buf + f->len_bytes;
}

static bool any_uses(const struct pf_flights *list, const void *buf, size_t len_bytes)
{
	const struct pf_flight *f;
	TAILQ_FOREACH(f, list, link)
	{
		if (uses(f, buf, len_bytes))
			return true;
	}
	return false;
}

/* Lock held. */
static bool holds(struct pf_aio *aio, const void *buf, size_t len_bytes)
{
	bool held = any_uses(&aio->lost_calls, buf, len_bytes);
	for (struct pf_ring *ring = aio->lost_rings; ring && !held; ring = ring->next)
		held = any_uses(&ring->lost, buf, len_bytes);
	return held;
}

bool pf_aio_holds(struct pf_aio *aio, const void *buf, size_t len_bytes)
{
	if (atomic_load(&aio->nr_lost) == 0)
		return false;
	pthread_mutex_lock(&aio->lock);
	bool held = holds(aio, buf, len_bytes);
	pthread_mutex_unlock(&aio->lock);
	return held;
}

void pf_aio_free(struct pf_aio *aio, void *buf, size_t len_bytes)
{
	if (!buf || atomic_load(&aio->nr_lost) == 0) {
		free(buf);
		return;
	}
	pthread_mutex_lock(&aio->lock);
	if (holds(aio, buf, len_bytes)) {
		struct pf_kept *kept = malloc(sizeof(*kept));
		if (kept) {
			*kept = (struct pf_kept){ aio->kept, buf, len_bytes };
			aio->kept = kept;
		}
		buf = NULL; /* without memory for the note it is never freed */
	}
	pthread_mutex_unlock(&aio->lock);
	free(buf);
}

static void free_kept(struct pf_aio *aio)
{
	for (struct pf_kept **at = &aio->kept; *at;) {
		struct pf_kept *kept = *at;
		if (holds(aio, kept->buf, kept->len_bytes)) {
			at = &kept->next;
			continue;
		}
		*at = kept->next;
		free(kept->buf);
		free(kept);
	}
}

struct pf_io *pf_flight_found(struct pf_aio *aio, struct pf_flight *f, struct pf_flights *list)
{
	struct pf_io *io = f->io;
	TAILQ_REMOVE(list, f, link);
	put(aio, f);
	atomic_fetch_sub(&aio->nr_lost, 1);
	free_kept(aio);
	return --io->nr_lost == 0 && io->close_late ? io : NULL;
}

void pf_flight_reap(struct pf_aio *aio)
{
	struct pf_io *to_close = NULL;
	pthread_mutex_lock(&aio->lock);
	for (struct pf_ring **at = &aio->lost_rings; *at && !to_close;) {
		struct pf_ring *ring = *at;
		uint64_t data;
		int res;
		while (!to_close && pf_ring_take_any(ring, &data, &res))
			to_close = pf_flight_found(aio, (struct pf_flight *)(uintptr_t)data, &ring->lost);
		if (!TAILQ_EMPTY(&ring->lost)) {
			at = &ring->next;
			continue;
		}
		*at = ring->next;
		pf_ring_free(ring);
	}
	pthread_mutex_unlock(&aio->lock);
	if (to_close) {
		to_close->ops->close(to_close);
		pf_flight_reap(aio);
	}
}

void pf_aio_close_io(struct pf_aio *aio, struct pf_io *io)
{
	if (!io)
		return;
	pthread_mutex_lock(&aio->lock);
	io->close_late = io->nr_lost > 0;
	bool now = !io->close_late;
	pthread_mutex_unlock(&aio->lock);
	if (now)
		io->ops->close(io);
}
