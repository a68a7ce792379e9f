/* SPDX-License-Identifier: MIT
 *
 * Purpose: records of the intent log in memory, and the codecs between them and their bytes.
 *
 * Invariants
 *   I1  pf_record_unpack() is the one gate: lengths, types, bounds of numbers and names, order of ranges. What it accepts can be
 *       applied without looking at bytes again; whether it fits the tree is for the code that applies it.
 *   I2  Pointers of an unpacked record lead into the bytes it was unpacked from.
 *   I3  What pf_record_pack() is given is asserted, not judged: names and values that the POSIX layer has accepted.
 *
 * Uses: base, ondisk.
 */
#ifndef PF_ONDISK_RECORD_CODEC_H
#define PF_ONDISK_RECORD_CODEC_H

#include "base/error.h"
#include "ondisk/ondisk_record.h"

#include <stdbool.h>
#include <time.h>

struct pf_record_bytes { /* a name, a target or a value */
	const char *data;
	uint32_t len;
};

struct pf_record_range {
	uint64_t start, nr;
	enum pf_record_range_kind kind;
	pf_addr addr;
	const struct le64 *crc; /* PF_RANGE_BLOCKS: nr of them */
};

struct pf_record {
	enum pf_record_type type;
	uint64_t ino;
	struct timespec time; /* of the change; FILE and SETATTR: ctime */
	union {
		struct {
			uint64_t parent, data_id;
			uint32_t mode, uid, gid, rdev_major, rdev_minor;
			struct pf_record_bytes name, target; /* name.len 0: unnamed */
		} create;
		struct {
			uint64_t parent;
			struct pf_record_bytes name;
		} name; /* LINK, REMOVE */
		struct {
			uint64_t old_parent, new_parent, target; /* target 0: the new name was free */
			unsigned flags; /* enum pf_record_rename_flags */
			struct pf_record_bytes old_name, new_name;
		} rename;
		struct {
			unsigned mask; /* enum pf_record_set */
			uint32_t mode, uid, gid;
			struct timespec atime, mtime;
		} setattr;
		struct {
			bool remove;
			struct pf_record_bytes name, value;
		} xattr;
		struct {
			uint64_t data_id, size;
			struct timespec mtime;
			uint32_t nr_ranges;
			const uint8_t *ranges; /* for pf_record_next_range() */
			uint32_t ranges_bytes;
		} file;
	};
};

/* Fixed part of a record, head included: the caller appends name(s) and target or value as further parts, and zeros up to a
 * multiple of 8; to a FILE record its ranges, of together file.ranges_bytes, each as by pf_record_range_pack() (file.ranges itself
 * is not looked at). @head: at least PF_RECORD_HEAD_MAX bytes. Returns its length; *total gets that of the whole record. */
#define PF_RECORD_HEAD_MAX sizeof(struct pf_disk_record_setattr)
unsigned pf_record_pack(const struct pf_record *rec, void *head, uint32_t *total);

/* Head of a range: the CRCs of PF_RANGE_BLOCKS follow as a part of their own. @buf: at least PF_RECORD_RANGE_BYTES. Returns the
 * length of the head. */
#define PF_RECORD_RANGE_BYTES sizeof(struct pf_disk_record_range)
unsigned pf_record_range_pack(const struct pf_record_range *range, void *buf);

/* -PF_ELOG_INVALID. */
int pf_record_unpack(const void *data, uint32_t len, struct pf_record *rec);

/* Walks the ranges of an unpacked FILE record: *pos = 0 at first. False: no more. */
bool pf_record_next_range(const struct pf_record *rec, uint32_t *pos, struct pf_record_range *range);

#endif
