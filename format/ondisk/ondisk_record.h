/* SPDX-License-Identifier: MIT
 *
 * Purpose: the records of the intent log as bytes (FORMAT 7.2). Each begins with struct pf_disk_record_head (ondisk_log.h) and is
 * padded with zeros to 8 bytes; names and values follow their structure without padding in between.
 *
 * A record says what was done, with everything that the doing took from outside: inode numbers, data ids, times. Done again on the
 * tree that the superblock names, in the same order, it has the same effect. Nothing else is in it: no counters, no items.
 *
 * Invariants, Uses: see ondisk.h.
 */
#ifndef PF_ONDISK_RECORD_H
#define PF_ONDISK_RECORD_H

#include "ondisk/ondisk_log.h"

enum pf_record_type {
	PF_RECORD_CREATE = 1,  /* pf_disk_record_create, name, target of a symlink. No name: an unnamed file */
	PF_RECORD_LINK = 2,    /* pf_disk_record_name, name */
	PF_RECORD_REMOVE = 3,  /* pf_disk_record_name, name: unlink and rmdir */
	PF_RECORD_RENAME = 4,  /* pf_disk_record_rename, old name, new name */
	PF_RECORD_SETATTR = 5, /* pf_disk_record_setattr */
	PF_RECORD_XATTR = 6,   /* pf_disk_record_xattr, name, value */
	PF_RECORD_FILE = 7,    /* pf_disk_record_file, then its ranges, each pf_disk_record_range and what that says */
};

struct pf_disk_record_create {
	struct pf_disk_record_head head;
	struct le64 parent, ino;
	struct le64 data_id; /* of a regular file */
	struct le64 time_sec;
	struct le32 time_nsec;
	struct le32 mode, uid, gid; /* as the inode got them */
	struct le32 rdev_major, rdev_minor;
	struct le16 name_len, target_len;
	struct le32 reserved;
};
static_assert(sizeof(struct pf_disk_record_create) == 72, "record: create");

struct pf_disk_record_name { /* link: @ino gets the name; remove: it loses it */
	struct pf_disk_record_head head;
	struct le64 parent, ino;
	struct le64 time_sec;
	struct le32 time_nsec;
	struct le16 name_len, reserved;
};
static_assert(sizeof(struct pf_disk_record_name) == 40, "record: name");

enum pf_record_rename_flags { PF_RECORD_RENAME_EXCHANGE = 2 }; /* the number that renameat2(2) has for it */
struct pf_disk_record_rename {
	struct pf_disk_record_head head;
	struct le64 old_parent, new_parent;
	struct le64 ino;    /* what has the old name */
	struct le64 target; /* what has the new one; 0: nothing */
	struct le64 time_sec;
	struct le32 time_nsec;
	struct le32 flags; /* enum pf_record_rename_flags */
	struct le16 old_len, new_len;
	struct le32 reserved;
};
static_assert(sizeof(struct pf_disk_record_rename) == 64, "record: rename");

/* Fields that a setattr record sets; the others are zero. */
enum pf_record_set { PF_SET_MODE = 1, PF_SET_UID = 2, PF_SET_GID = 4, PF_SET_ATIME = 8, PF_SET_MTIME = 16, PF_SET_CTIME = 32 };
struct pf_disk_record_setattr {
	struct pf_disk_record_head head;
	struct le64 ino;
	struct le32 mask; /* enum pf_record_set */
	struct le32 mode, uid, gid; /* mode: permission bits */
	struct le64 atime_sec, mtime_sec, ctime_sec;
	struct le32 atime_nsec, mtime_nsec, ctime_nsec;
	struct le32 reserved;
};
static_assert(sizeof(struct pf_disk_record_setattr) == 72, "record: setattr");

enum pf_record_xattr_flags { PF_RECORD_XATTR_REMOVE = 1 };
struct pf_disk_record_xattr {
	struct pf_disk_record_head head;
	struct le64 ino;
	struct le64 time_sec;
	struct le32 time_nsec;
	struct le32 value_len;
	struct le16 name_len;
	uint8_t flags; /* enum pf_record_xattr_flags */
	uint8_t reserved[5];
};
static_assert(sizeof(struct pf_disk_record_xattr) == 40, "record: xattr");

struct pf_disk_record_file { /* what a file has become since its last file record: one point of its history */
	struct pf_disk_record_head head;
	struct le64 ino;
	struct le64 data_id; /* another one than the inode has: all of its old data goes */
	struct le64 size;
	struct le64 mtime_sec, ctime_sec;
	struct le32 mtime_nsec, ctime_nsec;
	struct le32 nr_ranges; /* ascending, not overlapping */
	struct le32 reserved;
};
static_assert(sizeof(struct pf_disk_record_file) == 64, "record: file");

enum pf_record_range_kind {
	PF_RANGE_HOLE = 0,      /* addr is 0; may reach up to PF_KEY_FIELD_MAX: to the end of any file */
	PF_RANGE_UNWRITTEN = 1, /* at addr */
	PF_RANGE_BLOCKS = 2,    /* at addr; followed by the CRC-64 of each block */
};
struct pf_disk_record_range {
	struct le64 start; /* block of the file */
	struct le64 nr_blocks;
	struct le64 addr;
	uint8_t kind; /* enum pf_record_range_kind */
	uint8_t reserved[7];
};
static_assert(sizeof(struct pf_disk_record_range) == 32, "record: range");

#endif
