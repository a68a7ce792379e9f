/* SPDX-License-Identifier: MIT
 *
 * Purpose: a whole pool on disks in memory: made, opened, closed, opened again in another order, checked. What the model test,
 * the explorer, the fault and the bit-flip tests have in common.
 *
 * Invariants
 *   I1  The same configuration gives the same pool, byte for byte.
 *   I2  In versions 1 and 2 all members have the same size, from 3 on each is smaller than the one before it.
 *
 * Uses: simdisk.h, model/testenv.h, poolfs.h.
 */
#ifndef PF_TEST_SIMPOOL_H
#define PF_TEST_SIMPOOL_H

#include "model/testenv.h"
#include "ondisk/geometry.h"
#include "poolfs.h"
#include "sim/simdisk.h"

#define SIMPOOL_MAX 4

struct simpool_config {
	unsigned version;    /* 0: default */
	unsigned nr_members; /* 0: 1 */
	unsigned placement;  /* enum pf_placement */
	uint64_t size_bytes; /* of the largest member; 0: 32 MiB */
	uint64_t last_bytes; /* of the last member; 0: by I2 */
	uint32_t meta_mask;  /* metadata members; 0: as mkfs chooses */
	uint64_t seed;
	uint64_t break_rules;        /* enum pf_break, of everything after mkfs */
	uint64_t cache_bytes;        /* 0: 16 MiB */
	unsigned stage_max;          /* blocks of a file that wait in memory; fuller ones are left to pf_pool_step(). 0: as always */
	unsigned map_max;            /* of them what one transaction maps */
	bool discard;                /* freed blocks are discarded; the seed says what that leaves */
	unsigned commit_interval_ms; /* of the workers, when a test starts them */
	bool verbose;
};

struct simpool {
	struct simpool_config config;
	struct test_env env;
	struct rng rng; /* order of the members */
	struct simworld *world;
	struct pf_pool *pool; /* NULL: closed */
	/* What the check may find after the power failed: a torn superblock copy (PF0101), as long as another is whole; and before
	 * the next mount a copy that was not written any more (PF0102). */
	bool torn_supers, missing_supers;
	bool single_nodes; /* and nodes that wait for their second copy: the power failed in an upgrade */
};

/* By the seed, before the pool is opened: in two of three runs what is written is drained in the background, that is by pf_pool_step(),
 * in small portions. */
void simpool_choose_stages(struct simpool_config *c);
uint64_t simpool_member_bytes(const struct simpool_config *config, unsigned member);
/* Where things lie on a member, as mkfs lays it out. */
struct pf_geometry simpool_geometry(struct simdisk *disk);

/* Disks, mkfs, open. NULL and @why on failure. */
struct simpool *simpool_new(const struct simpool_config *config, char *why, size_t cap);
/* The disks, empty, and an environment only. */
struct simpool *simpool_bare(const struct simpool_config *config);
/* The same over the disks of @world, which it takes: a crash state. */
struct simpool *simpool_adopt(const struct simpool_config *config, struct simworld *world);
int simpool_mkfs(struct simpool *s, char *why, size_t cap);
/* Opens with the members in a random order. */
int simpool_open(struct simpool *s, bool read_only, char *why, size_t cap);
int simpool_close(struct simpool *s, char *why, size_t cap);
int simpool_remount(struct simpool *s, char *why, size_t cap);
/* As after the power went: what is in memory is gone, the disks are as the engine left them. */
void simpool_abandon(struct simpool *s);
/* The closed pool by pf_check(): 0 when it finds nothing. */
int simpool_check(struct simpool *s, char *why, size_t cap);
/* Repairs all that can be, then checks again: 0 when the second run finds nothing. */
int simpool_repair(struct simpool *s, char *why, size_t cap);
void simpool_free(struct simpool *s);

#endif
