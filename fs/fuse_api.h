/* SPDX-License-Identifier: MIT
 *
 * Purpose: libfuse and the kernel's protocol, in the versions that we speak. The only place that names them.
 */
#ifndef FS_FUSE_API_H
#define FS_FUSE_API_H

#define FUSE_USE_VERSION FUSE_MAKE_VERSION(3, 12)

#include <fuse_lowlevel.h>
#include <linux/fuse.h>

/* What the kernel knows and its header on this machine may not. */
#ifndef FUSE_DIRECT_IO_ALLOW_MMAP
#define FUSE_DIRECT_IO_ALLOW_MMAP (1ULL << 36)
#endif

enum { RAW_SYNCFS = 50, RAW_TMPFILE = 51, RAW_STATX = 52 };

#endif
