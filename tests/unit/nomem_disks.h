/* SPDX-License-Identifier: MIT
 *
 * Purpose: disks that have memory of their own, for tests in which the allocations of the pool fail: the program is linked with
 * --wrap=simworld_open (tests/local.mk).
 * Invariants: I1 One thread at a time.
 * Uses: nomem.h, sim/simdisk.h.
 */
#ifndef PF_TEST_NOMEM_DISKS_H
#define PF_TEST_NOMEM_DISKS_H

#include "sim/simdisk.h"
#include "unit/nomem.h"

static const struct pf_io_ops *sim_ops;

static int spared_read(struct pf_io *io, uint64_t off, void *buf, size_t len)
{
	bool was = nomem_pause();
	int err = sim_ops->read(io, off, buf, len);
	nomem_resume(was);
	return err;
}
static int spared_write(struct pf_io *io, uint64_t off, const void *buf, size_t len)
{
	bool was = nomem_pause();
	int err = sim_ops->write(io, off, buf, len);
	nomem_resume(was);
	return err;
}
static int spared_flush(struct pf_io *io)
{
	bool was = nomem_pause();
	int err = sim_ops->flush(io);
	nomem_resume(was);
	return err;
}

void __real_simworld_open(struct simworld *world, bool read_only, struct pf_io **ios);
void __wrap_simworld_open(struct simworld *world, bool read_only, struct pf_io **ios);
void __wrap_simworld_open(struct simworld *world, bool read_only, struct pf_io **ios)
{
	static struct pf_io_ops ops;
	bool was = nomem_pause();
	__real_simworld_open(world, read_only, ios);
	nomem_resume(was);
	for (unsigned k = 0; k < simworld_nr_disks(world); k++) {
		if (ios[k]->ops == &ops)
			continue;
		sim_ops = ios[k]->ops;
		ops = *sim_ops;
		ops.read = spared_read;
		ops.write = spared_write;
		ops.flush = spared_flush;
		ios[k]->ops = &ops;
	}
}

#endif
