/* SPDX-License-Identifier: MIT
 *
 * Purpose: the requests that a tool sends to a mounted pool, as ioctl(2) on any file or directory of the mount.
 *
 * Invariants
 *   I1  The layout is the same for 32-bit and 64-bit callers; a change of meaning gets a new request number.
 *   I2  A filesystem that is not poolfs answers ENOTTY, and so does poolfs to requests that it does not know.
 *
 * Uses: nothing.
 */
#ifndef PF_POOL_CONTROL_H
#define PF_POOL_CONTROL_H

#include <stdint.h>
#include <sys/ioctl.h>

#define POOLFS_STATUS_CHUNK 8192

/* The state of the pool as JSON (pf_pool_status_json()), in pieces. Ask with serial = 0 and offset = 0; then with the serial
 * that came back and offset += len, until offset = total. EAGAIN: another caller took a newer picture; start again. */
struct poolfs_ioc_status {
	uint64_t serial;
	uint32_t offset;
	uint32_t len;   /* out: bytes in text[] */
	uint32_t total; /* out: bytes of the whole text */
	uint32_t reserved;
	char text[POOLFS_STATUS_CHUNK]; /* not terminated */
};

enum poolfs_info_flags {
	POOLFS_INFO_READ_ONLY = 1, /* the pool was opened read-only: a remount cannot make it writable */
};

/* Who serves the mount: what an unmount helper waits for. pid is in the PID namespace of the daemon, and means that daemon
 * only while field 22 of /proc/PID/stat equals start_time. */
struct poolfs_ioc_info {
	uint64_t start_time;
	uint32_t pid;
	uint32_t flags; /* enum poolfs_info_flags */
};

enum poolfs_trim_flags {
	POOLFS_TRIM_UNUSED = 1, /* also what was never used since the pool was made */
};

/* Discards free space for a tenth of a second or so. Ask with place = 0 first, and then with the place that came back, until
 * place = total_bytes. For root and the user who mounted. EOPNOTSUPP: no member can. */
struct poolfs_ioc_trim {
	uint64_t place;         /* in, out: on all members one behind the other, in bytes */
	uint64_t min_bytes;     /* in: shorter runs of free blocks are left alone */
	uint64_t total_bytes;   /* out: of all members */
	uint64_t trimmed_bytes; /* out: by this call */
	uint32_t flags;         /* in: enum poolfs_trim_flags */
	uint32_t unable;        /* out: members (bit = id) that cannot discard */
	uint32_t failed;        /* out: members where a discard failed */
	uint32_t reserved;
};

/* Everything that the daemon has is durable when it returns. Pages that are still in the kernel are not the daemon's yet: call
 * syncfs(2) first. ENOTRECOVERABLE: all but what was on its way to members that have failed; that is lost. */
#define POOLFS_IOC_SYNC _IO('p', 0xf0)
#define POOLFS_IOC_STATUS _IOWR('p', 0xf1, struct poolfs_ioc_status)
#define POOLFS_IOC_INFO _IOR('p', 0xf2, struct poolfs_ioc_info)
#define POOLFS_IOC_TRIM _IOWR('p', 0xf3, struct poolfs_ioc_trim)

_Static_assert(sizeof(struct poolfs_ioc_status) == 24 + POOLFS_STATUS_CHUNK, "ABI");
_Static_assert(sizeof(struct poolfs_ioc_info) == 16, "ABI");
_Static_assert(sizeof(struct poolfs_ioc_trim) == 48, "ABI");

#endif
