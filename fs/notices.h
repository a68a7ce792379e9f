/* SPDX-License-Identifier: MIT
 *
 * Purpose: what the kernel must hear about regular files whose pages it writes back. It keeps attributes without bound
 * (ops.h I2) and takes write(2) into its cache without asking; yet three things it cannot know: how many blocks a file has
 * (stat, du), that the pool had no room for pages that a writer believes written, and that pages which could not be written are
 * worth nothing: it goes on showing them to readers, until it needs the memory and they see what was there before.
 *
 * How the second reaches the writer: the kernel asks for a file's attributes by its handle (GETATTR_FH) only before it takes
 * a write(2) into the cache, and only when those it has are void. So they are made void, and the question is answered by the
 * error of the write-back. Without this, a writer that never closes goes on for ever on a full pool.
 * (Linux, fs/fuse/file.c: fuse_cache_write_iter(); fs/fuse/dir.c: fuse_update_get_attr(), fuse_do_getattr().)
 * The third: such pages are made void as soon as the write-back has been answered, up to the last whole one; what is read then is the
 * pool's error (posix.h, PF_WRITE_BACK).
 * (Linux, fs/fuse/file.c: fuse_writepage_end() notes the error and leaves the page clean and up to date.)
 *
 * Invariants
 *   I1  Only a thread that owes the kernel no reply tells it something about an inode, or one whose unanswered request is a
 *       system call's, which pins the inode. Else: an inode that is going away waits for its pages to be written, the kernel's
 *       search for the inode waits for it to be gone, and the worker that should write the pages waits for the search.
 *   I2  An error is handed out once for each time it was noted, and not when room was made since.
 *   I3  Block counts are made void at most once a second for each file. The table is of a fixed size: where more files than
 *       that are written within a second, some are forgotten until they are written again, synced or closed.
 *
 * Uses: libfuse (notifications), object/posix (poolfs.h).
 */
#ifndef FS_NOTICES_H
#define FS_NOTICES_H

#include <stdint.h>

struct fs;
struct notices;

/* Starts the thread that tells. Returns 0 or -errno. */
int notices_start(struct fs *fs);
/* Ends it; nothing is told any more. To be called while the workers still serve. @fs->notices NULL: nothing to do. */
void notices_stop(struct fs *fs);
void notices_free(struct fs *fs);

/* The blocks of @ino have changed by pages written back. */
void notices_blocks(struct fs *fs, uint64_t ino);
/* Writing pages of @ino back failed with @err (negative). */
void notices_failure(struct fs *fs, uint64_t ino, int err);
/* Within an fsync of @ino: what was noted of its blocks is told now. */
void notices_sync(struct fs *fs, uint64_t ino);
/* The error that the next write(2) to @ino must be refused with, or 0; forgets it. */
int notices_take_failure(struct fs *fs, uint64_t ino);

#endif
