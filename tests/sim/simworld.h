/* SPDX-License-Identifier: MIT
 * What simdisk.c (I/O and faults) and simcrash.c (the log and crash states) share. Nobody else's. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "sim/simdisk.h"
#include "sim/simimage.h"

#include <pthread.h>

#define SIM_MAX_FAULTS   16u
#define SIM_NR_OPS       5u
#define SIM_SECTOR_BYTES 512u

/* Indices in the log of writes that are not durable. */
struct sim_pending {
	size_t *events;
	size_t nr, cap;
};

struct simdisk {
	struct simworld *world;
	unsigned index;
	char *name;
	enum pf_io_kind kind;
	struct sim_image *now;   /* what readers see */
	struct sim_image *start; /* when recording began */
	/* of the cursor: content made durable by the first world->rolled events, and what they left pending */
	struct sim_image *durable;
	struct sim_pending pending;
	uint64_t counts[SIM_NR_OPS];
	unsigned hang_ops, nr_hung;
};

struct armed_fault {
	struct sim_fault fault;
	uint64_t nr_matched, nr_hits;
};

struct simworld {
	pthread_mutex_t lock;
	pthread_cond_t unhung;
	struct simdisk **disks;
	unsigned nr_disks;
	struct armed_fault faults[SIM_MAX_FAULTS];
	unsigned nr_faults;
	unsigned nr_inside, nr_hung; /* calls; those that hang by a fault */
	bool hangs_ended;

	bool garbage; /* is what a discard leaves */
	bool recording;
	struct sim_event *log;
	size_t nr_events, cap_events;
	size_t rolled; /* position of the cursor */
};

void *sim_must(void *p); /* aborts on NULL */
void sim_log_clear(struct simworld *world);
/* What a discard does to part of an image. */
void sim_discard_range(const struct simworld *world, struct sim_image *image, uint64_t off_bytes, uint64_t len_bytes);
/* Appends to the log if the world records; copies @data. Lock held. */
void sim_log_add(struct simworld *world, const struct sim_event *event);

#endif
