/* SPDX-License-Identifier: MIT
 *
 * Purpose: what lies on a file or device that is about to be overwritten, and who uses it.
 *
 * Invariants
 *   I1  Only probe_wipe() writes.
 *   I2  What is found is described in words that fit behind "contains".
 *
 * Uses: libblkid, poolfs.h.
 */
#ifndef TOOLS_PROBE_H
#define TOOLS_PROBE_H

#include "poolfs.h"

#include <sys/stat.h>

enum { PROBE_TEXT = 512 };

/* Everything that libblkid knows, partition tables included. 1: found, @text says what; 0: nothing; or a negative errno. */
int probe_signatures(const char *path, char text[PROBE_TEXT]);

/* Our own superblocks, which libblkid does not know. 1: found (also a damaged one), 0: none, or -EIO. */
int probe_poolfs(struct pf_io *io, char text[PROBE_TEXT]);

/* Who uses it: "mounted on /mnt", "used as swap", "attached to /dev/loop0", "used by dm-0". False: nobody known. */
bool probe_user(const struct stat *st, char text[PROBE_TEXT]);

/* Removes every signature that probe_signatures() finds, backups of partition tables included. 0 or a negative errno. */
int probe_wipe(const char *path);

/* The whole disk that a partition belongs to; the device itself when it is no partition. */
dev_t probe_whole_disk(dev_t rdev);
/* False when the device begins at a place that is not a multiple of 4 KiB on its disk. */
bool probe_aligned(const struct stat *st);
/* The kernel lets a read-only device be opened for writing, and refuses the writes. */
bool probe_read_only(const char *path, const struct stat *st);
/* After a partition table was wiped: let the kernel forget the partitions. */
void probe_reread_partitions(const char *path);

#endif
