/* SPDX-License-Identifier: MIT */
#include "sim/simworld.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* -- the log ------------------------------------------------------------------------------------------------------- */
static void cursor_reset(struct simworld *world)
{
	for (unsigned i = 0; i < world->nr_disks; i++) {
		struct simdisk *disk = world->disks[i];
		sim_image_free(disk->durable);
		disk->durable = disk->start ? sim_image_copy(disk->start) : NULL;
		disk->pending.nr = 0;
	}
	world->rolled = 0;
}

void sim_log_clear(struct simworld *world)
{
	for (size_t i = 0; i < world->nr_events; i++)
		free(world->log[i].data);
	world->nr_events = 0;
	for (unsigned i = 0; i < world->nr_disks; i++) {
		sim_image_free(world->disks[i]->start);
		world->disks[i]->start = NULL;
	}
	cursor_reset(world);
}

void simworld_record(struct simworld *world)
{
	pthread_mutex_lock(&world->lock);
	sim_log_clear(world);
	for (unsigned i = 0; i < world->nr_disks; i++)
		world->disks[i]->start = sim_image_copy(world->disks[i]->now);
	cursor_reset(world);
	world->recording = true;
	pthread_mutex_unlock(&world->lock);
}

void sim_log_add(struct simworld *world, const struct sim_event *event)
{
	if (!world->recording)
		return;
	if (world->nr_events == world->cap_events) {
		world->cap_events = world->cap_events ? 2 * world->cap_events : 256;
		world->log = sim_must(realloc(world->log, world->cap_events * sizeof(*world->log)));
	}
	struct sim_event *added = &world->log[world->nr_events++];
	*added = *event;
	if (event->data) {
		added->data = sim_must(malloc(event->len_bytes));
		memcpy(added->data, event->data, event->len_bytes);
	}
}

size_t simworld_log_len(struct simworld *world)
{
	pthread_mutex_lock(&world->lock);
	size_t nr = world->nr_events;
	pthread_mutex_unlock(&world->lock);
	return nr;
}

const struct sim_event *simworld_event(struct simworld *world, size_t index)
{
	assert(index < world->nr_events);
	return &world->log[index];
}

/* -- the cursor: what is durable for certain after the first events ------------------------------------------------- */
static void pending_add(struct sim_pending *pending, size_t event)
{
	if (pending->nr == pending->cap) {
		pending->cap = pending->cap ? 2 * pending->cap : 64;
		pending->events = sim_must(realloc(pending->events, pending->cap * sizeof(*pending->events)));
	}
	pending->events[pending->nr++] = event;
}

static void apply(const struct simworld *world, struct sim_image *image, const struct sim_event *event, uint64_t from,
		  uint64_t to)
{
	if (event->op == SIM_DISCARD)
		sim_discard_range(world, image, event->off_bytes + from, to - from);
	else
		sim_image_write(image, event->off_bytes + from, (const char *)event->data + from, to - from);
}

static void cursor_roll(struct simworld *world, size_t cut)
{
	assert(world->recording && cut <= world->nr_events);
	if (cut < world->rolled)
		cursor_reset(world);
	for (; world->rolled < cut; world->rolled++) {
		const struct sim_event *event = &world->log[world->rolled];
		struct simdisk *disk = world->disks[event->disk];
		if (event->op != SIM_FLUSH) {
			pending_add(&disk->pending, world->rolled);
		} else if (!event->ineffective) {
			for (size_t i = 0; i < disk->pending.nr; i++) {
				const struct sim_event *durable = &world->log[disk->pending.events[i]];
				apply(world, disk->durable, durable, 0, durable->len_bytes);
			}
			disk->pending.nr = 0;
		}
	}
}

static int by_number(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	return x < y ? -1 : x > y;
}

/* All pending events of all disks, ascending; allocated. */
static size_t *collect(struct simworld *world, size_t *nr)
{
	*nr = 0;
	for (unsigned i = 0; i < world->nr_disks; i++)
		*nr += world->disks[i]->pending.nr;
	size_t *all = sim_must(malloc((*nr + 1) * sizeof(*all)));
	size_t at = 0;
	for (unsigned i = 0; i < world->nr_disks; i++) {
		const struct sim_pending *pending = &world->disks[i]->pending;
		if (pending->nr)
			memcpy(all + at, pending->events, pending->nr * sizeof(*all));
		at += pending->nr;
	}
	qsort(all, *nr, sizeof(*all), by_number);
	return all;
}

size_t simworld_pending(struct simworld *world, size_t cut, size_t *events, size_t cap)
{
	pthread_mutex_lock(&world->lock);
	cursor_roll(world, cut);
	size_t nr;
	size_t *all = collect(world, &nr);
	if (nr && cap)
		memcpy(events, all, (nr < cap ? nr : cap) * sizeof(*events));
	free(all);
	pthread_mutex_unlock(&world->lock);
	return nr;
}

/* -- crash states --------------------------------------------------------------------------------------------------- */
/* splitmix64: a good enough stream from any seed. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static void apply_fate(const struct simworld *world, struct sim_image *image, const struct sim_event *event,
		       const struct sim_fate *fate)
{
	uint64_t len = event->len_bytes;
	uint64_t at = fate->arg - fate->arg % SIM_SECTOR_BYTES;
	uint64_t seed = fate->arg;
	if (at > len)
		at = len;
	switch (fate->kind) {
	case SIM_LOST:
		break;
	case SIM_KEPT:
		apply(world, image, event, 0, len);
		break;
	case SIM_TORN_HEAD:
		apply(world, image, event, 0, at);
		break;
	case SIM_TORN_TAIL:
		apply(world, image, event, at, len);
		break;
	case SIM_TORN_ANY:
		for (uint64_t s = 0; s < len; s += SIM_SECTOR_BYTES) {
			if (next_random(&seed) >> 63)
				apply(world, image, event, s, s + SIM_SECTOR_BYTES);
		}
		break;
	}
}

struct ranked {
	size_t event;
	const struct sim_fate *fate;
};

static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->fate->rank != y->fate->rank)
		return x->fate->rank < y->fate->rank ? -1 : 1;
	return x->event < y->event ? -1 : x->event > y->event;
}

struct simworld *simworld_crash(struct simworld *world, size_t cut, const struct sim_fate *fates)
{
	struct simworld *crashed = simworld_new();
	pthread_mutex_lock(&world->lock);
	crashed->garbage = world->garbage;
	cursor_roll(world, cut);
	for (unsigned i = 0; i < world->nr_disks; i++) {
		const struct simdisk *from = world->disks[i];
		struct simdisk *to = simdisk_new(crashed, from->name, 0);
		to->kind = from->kind;
		sim_image_free(to->now);
		to->now = sim_image_copy(from->durable);
	}
	size_t nr;
	size_t *pending = collect(world, &nr);
	struct ranked *ranked = sim_must(malloc((nr + 1) * sizeof(*ranked)));
	for (size_t i = 0; fates && i < nr; i++)
		ranked[i] = (struct ranked){ pending[i], &fates[i] };
	if (fates)
		qsort(ranked, nr, sizeof(*ranked), by_rank);
	for (size_t i = 0; fates && i < nr; i++) {
		const struct sim_event *event = &world->log[ranked[i].event];
		apply_fate(world, crashed->disks[event->disk]->now, event, ranked[i].fate);
	}
	free(ranked);
	free(pending);
	pthread_mutex_unlock(&world->lock);
	return crashed;
}

void sim_fates_seeded(uint64_t seed, struct sim_fate *fates, size_t nr)
{
	/* of the states of one cut some should be nearly all kept, others nearly all lost */
	uint64_t keep_percent = next_random(&seed) % 101;
	for (size_t i = 0; i < nr; i++) {
		bool keep = next_random(&seed) % 100 < keep_percent;
		uint64_t dice = next_random(&seed) % 16;
		fates[i].kind = dice == 0   ? SIM_TORN_HEAD
				: dice == 1 ? SIM_TORN_TAIL
				: dice == 2 ? SIM_TORN_ANY
				: keep      ? SIM_KEPT
					    : SIM_LOST;
		fates[i].rank = next_random(&seed) % 8 == 0 ? -1 : 0;
		/* a tear inside the first blocks is as likely as one far behind */
		uint64_t arg = next_random(&seed), scale = next_random(&seed) % 12;
		fates[i].arg = arg % (UINT64_C(512) << scale);
	}
}
