/* SPDX-License-Identifier: MIT
 *
 * Purpose: opening and locking an image file or block device, and saying why it could not be done. Private to member/.
 *
 * Locks: a writer of a file holds an exclusive flock(2), a reader a shared one. A writer of a block device holds it O_EXCL,
 * as mount(8) and mkfs do. Two readers of a device may not shut each other out, so a reader holds a shared flock on the
 * device node and looks by a short O_EXCL open whether anybody claims the device; a writer looks by a short exclusive flock
 * whether there are readers. It does not keep that one: udev leaves a device alone as long as it is flocked.
 * A loop device and the file behind it have locks of their own: who opens one looks at the other's (member/same).
 *
 * Invariants
 *   I1  A descriptor that is returned is that of a regular file or block device whose logical sectors fit a block.
 *
 * Uses: member/io, member/same.
 */
#ifndef PF_MEMBER_IO_OPEN_H
#define PF_MEMBER_IO_OPEN_H

#include "member/io.h"

struct pf_io_opened {
	int fd;
	enum pf_io_kind kind;
	uint64_t size_bytes;
	uint64_t host_dev;
	bool sparse;
};

/* @flags, @wait_ms, errors: as pf_io_open(). */
int pf_io_open_locked(const char *path, int flags, unsigned wait_ms, struct pf_io_opened *out, struct pf_diag *diag);

#endif
