/* SPDX-License-Identifier: MIT
 *
 * Purpose: disks in memory for tests, behind member/io.h. They record every write and flush, build the states that a power
 * cut could leave, and fail, tear, lose, misdirect and hang as the test says.
 *
 * A simworld holds disks and one log of what was done to all of them. A pf_io from simdisk_open() is a handle: closing it
 * leaves the disk in the world, as unplugging a disk leaves its content.
 *
 * Invariants
 *   I1  Everything is deterministic: same calls, same results. There is no randomness except from a given seed.
 *   I2  A write is on the disk for readers when it returns, and durable when a flush of that disk that began later succeeded.
 *   I3  Offsets, lengths and buffers are asserted to be as io.h I1 demands. A range past the end is -EIO.
 *   I4  A flush that failed fails for ever on that handle (io.h I4).
 *   I5  Any number of threads may do I/O; one mutex per world. What is marked (quiet) may only be called while none does.
 *   I6  No memory aborts: these are tests.
 *
 * Uses: member/io.
 */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include "member/io.h"

struct simworld;
struct simdisk;

/* -- worlds and disks ---------------------------------------------------------------------------------------------- */
struct simworld *simworld_new(void);
void simworld_free(struct simworld *world); /* all handles are closed */
/* The same disks with the same content as now; no log, no faults. Costs little: the content is shared until written. */
struct simworld *simworld_copy(struct simworld *world);
unsigned simworld_nr_disks(const struct simworld *world);
struct simdisk *simworld_disk(struct simworld *world, unsigned index);

/* Empty (zeros). @name is what messages show. The index is the number of disks before. */
struct simdisk *simdisk_new(struct simworld *world, const char *name, uint64_t size_bytes);
/* What the handles say that it is: PF_IO_MEMORY unless set. */
void simdisk_set_kind(struct simdisk *disk, enum pf_io_kind kind);
struct pf_io *simdisk_open(struct simdisk *disk, bool read_only);
/* Handles of all disks, in the order of the world: ios[i] for disk i. */
void simworld_open(struct simworld *world, bool read_only, struct pf_io **ios);

/* What a discard leaves, now and in crash states: garbage rather than zeros, which might be taken for something. */
void simworld_discard_to_garbage(struct simworld *world);

/* -- behind the back of the pool: neither recorded nor failing; crash states do not contain it ---------------------- */
void simdisk_peek(struct simdisk *disk, uint64_t off_bytes, void *buf, size_t len_bytes);
void simdisk_poke(struct simdisk *disk, uint64_t off_bytes, const void *buf, size_t len_bytes);
void simdisk_flip_bit(struct simdisk *disk, uint64_t off_bytes, unsigned bit);
void simdisk_resize(struct simdisk *disk, uint64_t size_bytes); /* handles keep the size that they had */
uint64_t simdisk_size(struct simdisk *disk);
uint64_t simdisk_digest(struct simdisk *disk); /* of size and content */
/* Copies content and size of one disk over another (a clone, a restored backup). */
void simdisk_copy_from(struct simdisk *disk, struct simdisk *from);
/* 0 or -errno; zeros become holes. load makes a disk called @path. */
int simdisk_save(struct simdisk *disk, const char *path);
int simdisk_load(struct simworld *world, const char *path, struct simdisk **out);

/* -- faults -------------------------------------------------------------------------------------------------------- */
enum sim_op { SIM_READ = 1, SIM_WRITE = 2, SIM_FLUSH = 4, SIM_DISCARD = 8, SIM_ALLOCATE = 16, SIM_ANY = 31 };
enum sim_fault_kind {
	SIM_FAIL,      /* returns err; a write changes nothing, a flush makes nothing durable */
	SIM_TEAR,      /* a write stores only its first arg bytes (a multiple of 512), and returns err */
	SIM_DROP,      /* acknowledged, not done: a lost write, a flush that makes nothing durable */
	SIM_MISDIRECT, /* a write lands arg bytes further (modulo the size, in whole blocks) */
	SIM_CORRUPT,   /* a read returns with bit arg of the buffer flipped; the disk is unchanged */
	SIM_HANG,      /* does not come back before simworld_end_hangs(); then it returns err, or with 0 is done */
};
struct sim_fault {
	struct simdisk *disk; /* NULL: any disk of the world */
	unsigned ops;         /* enum sim_op: which calls count and are hit; kinds hit only the operations they name */
	enum sim_fault_kind kind;
	uint64_t skip;        /* so many matching calls go well first */
	uint64_t count;       /* then so many are hit; 0: all from then on */
	int err;              /* 0: -EIO; of a hang: none */
	uint64_t arg;
	uint64_t from_bytes, to_bytes; /* only calls that touch [from, to); 0, 0: any. Flushes touch everything */
};
/* Up to 16 at a time; of several that match, all count the call and the first added hits. Returns its number. */
unsigned simworld_add_fault(struct simworld *world, const struct sim_fault *fault);
uint64_t simworld_fault_hits(struct simworld *world, unsigned fault);
void simworld_clear_faults(struct simworld *world);

/* Calls of @ops (enum sim_op) on this disk that have begun since it was made. */
uint64_t simdisk_count(struct simdisk *disk, unsigned ops);

/* Lets calls go that hang by a fault, and those that come later. */
void simworld_end_hangs(struct simworld *world);
/* How many hang by a fault. */
unsigned simworld_nr_hung(struct simworld *world);
/* Nobody is in a call but those that hang by a fault. */
bool simworld_all_hung(struct simworld *world);
/* Waits until no call is in the world any more. */
void simworld_quiesce(struct simworld *world);

/* Calls of @ops wait from now on (0: go on). simdisk_nr_hung(): how many are waiting. */
void simdisk_set_hang(struct simdisk *disk, unsigned ops);
unsigned simdisk_nr_hung(struct simdisk *disk);

/* -- the log and crash states ---------------------------------------------------------------------------------------- */
struct sim_event {
	enum sim_op op;        /* SIM_WRITE, SIM_FLUSH, SIM_DISCARD */
	unsigned disk;         /* index */
	uint64_t off_bytes, len_bytes; /* where it really went */
	void *data;            /* of a write */
	bool ineffective;      /* a flush that failed or was dropped */
};

/* From now on everything is logged; what is on the disks now counts as durable. Empties the log. Off at first. */
void simworld_record(struct simworld *world);
/* Events so far: also the position of a cut that comes after all of them. */
size_t simworld_log_len(struct simworld *world);
const struct sim_event *simworld_event(struct simworld *world, size_t index); /* (quiet) */

/* When the power fails after the first @cut events: the writes and discards among them that no flush has made durable, as
 * indices in the log, ascending. Returns their number; stores at most @cap. */
size_t simworld_pending(struct simworld *world, size_t cut, size_t *events, size_t cap);

enum sim_fate_kind {
	SIM_LOST,
	SIM_KEPT,
	SIM_TORN_HEAD, /* only the first arg bytes reached the disk (rounded down to 512) */
	SIM_TORN_TAIL, /* all but the first arg bytes did */
	SIM_TORN_ANY,  /* each sector of 512 bytes did or did not, by the seed arg */
};
struct sim_fate {
	enum sim_fate_kind kind;
	int rank; /* writes reach the disk by ascending rank, those of equal rank in the order of the log */
	uint64_t arg;
};
/* The world after that power cut; fates[i] for the i-th of simworld_pending() (NULL: all are lost). Cheap when cuts come in
 * ascending order; any order is correct. The new world is independent, and may be used by another thread. */
struct simworld *simworld_crash(struct simworld *world, size_t cut, const struct sim_fate *fates);

/* Fates for @nr pending writes from a seed: each kept, lost or torn, some swapped in order. */
void sim_fates_seeded(uint64_t seed, struct sim_fate *fates, size_t nr);

#endif
