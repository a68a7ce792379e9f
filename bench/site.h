/* SPDX-License-Identifier: MIT
 *
 * Purpose: the members on which everything is measured, and a place to mount: image files in a directory of their own, loop
 * devices over them, pools on either.
 *
 * Invariants
 *   I1  The files are made once, for all who are measured on them. Unless they are sparse they are written in full, so nobody
 *       pays for the allocation of host blocks, and everybody works on the same ones.
 *   I2  site_close() takes away what was made, also after an error. What is still mounted or attached stays, and it says so.
 *
 * Uses: loop.h, program.h.
 */
#ifndef BENCH_SITE_H
#define BENCH_SITE_H

#include "loop.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { SITE_MAX_MEMBERS = 16 };

struct site {
	char *dir, *mount_dir; /* made by site_open() */
	unsigned nr_members;
	char *images[SITE_MAX_MEMBERS];
	char devices[SITE_MAX_MEMBERS][LOOP_NAME_LEN]; /* empty: not attached */
	bool mounted;
	pid_t empty; /* the daemon of an empty filesystem, or 0 */
};
/* Makes a directory in @workdir with the members in it. 0 or -errno after a message; site_close() in both cases. */
int site_open(struct site *site, const char *workdir, unsigned nr_members, uint64_t member_bytes, bool sparse);
bool site_close(struct site *site);

/* Loop devices for the first @nr members. 0 or -errno after a message. @harmless: whoever still has a device then cannot write
 * to it. */
int site_attach(struct site *site, unsigned nr);
int site_detach(struct site *site, bool harmless);
/* Its loop device when it has one, else the image file. */
const char *site_member(const struct site *site, unsigned i);
/* What the host has not written yet is written. */
void site_settle(const struct site *site);

/* -- pools of the first @nr members --------------------------------------------------------------------------------- */
/* 0 or -errno after a message. @placement, @options: NULL for the defaults. */
int site_make_pool(const struct site *site, unsigned nr, unsigned version, const char *placement);
int site_mount_pool(struct site *site, unsigned nr, const char *options);
int site_unmount_pool(struct site *site);
/* -EIO, after a message, when fsck.poolfs -n has something to say. */
int site_check_pool(const struct site *site, unsigned nr);

#endif
