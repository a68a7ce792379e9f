/* SPDX-License-Identifier: MIT */
#include "member/io_file.h"

#include "member/io_open.h"
#include "ondisk/ondisk.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A buffered write into a hole may be accepted by the page cache and fail at writeback, when only a flush can tell, and a
 * failed flush is final. So the first write into each chunk makes the host allocate the chunk: one call per MiB and mount,
 * the size in which data is placed anyway. */
#define CHUNK_SHIFT     20
#define CHUNKS_PER_WORD 64u
/* a dead disk fails thousands of requests: these are logged, then every power of two, and what comes after a silence */
#define NR_ERRORS_LOGGED 16u
#define SILENCE_NS       INT64_C(30000000000)

struct io_file {
	struct pf_io io;
	const struct pf_env *env;
	atomic_uint nr_errors;
	atomic_int_fast64_t logged_ns; /* when the last error was logged */
	atomic_bool no_discard, no_allocate;

	pthread_mutex_t flush_lock;
	pthread_cond_t flush_ended;
	bool flushing;
	int flush_err; /* of the first flush that failed; for ever */

	/* chunks known to be allocated; NULL: O_DIRECT or a device, where the write itself tells */
	atomic_uint_fast64_t *chunks;
	pthread_mutex_t chunk_lock; /* setting and clearing; testing needs none */
};

static struct io_file *to_file(struct pf_io *io)
{
	return (struct io_file *)io;
}

static bool worth_logging(struct io_file *f, unsigned nr)
{
	int64_t now = pf_now_ns(f->env), silence = now - atomic_load(&f->logged_ns);
	/* a clock that was set back is no silence, but must not become one that never ends */
	if (nr > NR_ERRORS_LOGGED && (nr & (nr - 1)) != 0 && silence >= 0 && silence < SILENCE_NS)
		return false;
	atomic_store(&f->logged_ns, now);
	return true;
}

/* The kernel answers ENOSPC to a write behind the end of a device as well; that is not a want of room. */
static bool has_shrunk(const struct pf_io *io)
{
	uint64_t size_bytes;
	return io->kind == PF_IO_BLOCK_DEVICE && ioctl(io->fd, BLKGETSIZE64, &size_bytes) == 0 && size_bytes < io->size_bytes;
}

int pf_io_file_error(struct pf_io *io, const char *what, uint64_t off_bytes, uint64_t len_bytes, int sys_err)
{
	struct io_file *f = to_file(io);
	unsigned nr = atomic_fetch_add(&f->nr_errors, 1) + 1;
	bool full = (sys_err == -ENOSPC || sys_err == -EDQUOT) && !has_shrunk(io);
	const char *what_to_do = full && io->kind == PF_IO_FILE ? "make room on the filesystem that holds it"
				 : full				? "make room in the storage behind it"
				 : io->kind == PF_IO_FILE	? "check the filesystem that holds it"
								: "check the disk and its cable";
	if (!full && (sys_err == -ENOSPC || sys_err == -EDQUOT))
		sys_err = 0;
	if (worth_logging(f, nr))
		pf_log(f->env, PF_LOG_ERROR, "%s: %s of %llu bytes at byte %llu failed: %s; %s (error %u of this member)",
		       io->name, what, (unsigned long long)len_bytes, (unsigned long long)off_bytes,
		       sys_err ? strerrordesc_np(-sys_err) : "behind its end, the member was truncated", what_to_do, nr);
	return full ? -ENOSPC : -EIO;
}

/* -- allocation -------------------------------------------------------------------------------------------------- */
static bool unsupported(int sys_err)
{
	return sys_err == -EOPNOTSUPP || sys_err == -ENOSYS || sys_err == -ENOTTY || sys_err == -EINVAL;
}

static int host_fallocate(struct pf_io *io, int mode, uint64_t off_bytes, uint64_t len_bytes)
{
	int ret;
	do
		ret = fallocate(io->fd, mode, (off_t)off_bytes, (off_t)len_bytes);
	while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

static bool chunk_known(struct io_file *f, uint64_t chunk)
{
	return atomic_load(&f->chunks[chunk / CHUNKS_PER_WORD]) >> chunk % CHUNKS_PER_WORD & 1;
}

static void chunk_set(struct io_file *f, uint64_t chunk)
{
	atomic_fetch_or(&f->chunks[chunk / CHUNKS_PER_WORD], UINT64_C(1) << chunk % CHUNKS_PER_WORD);
}

static void chunk_clear(struct io_file *f, uint64_t chunk)
{
	atomic_fetch_and(&f->chunks[chunk / CHUNKS_PER_WORD], ~(UINT64_C(1) << chunk % CHUNKS_PER_WORD));
}

static int chunk_allocate(struct io_file *f, uint64_t chunk)
{
	uint64_t from = chunk << CHUNK_SHIFT;
	uint64_t len = UINT64_C(1) << CHUNK_SHIFT;
	if (len > f->io.size_bytes - from)
		len = f->io.size_bytes - from;

	pthread_mutex_lock(&f->chunk_lock);
	int err = chunk_known(f, chunk) ? 0 : host_fallocate(&f->io, FALLOC_FL_KEEP_SIZE, from, len);
	if (!err)
		chunk_set(f, chunk);
	pthread_mutex_unlock(&f->chunk_lock);
	return err;
}

int pf_io_file_prepare_write(struct pf_io *io, uint64_t off_bytes, size_t len_bytes)
{
	struct io_file *f = to_file(io);
	/* a file would silently grow */
	if (off_bytes > io->size_bytes || len_bytes > io->size_bytes - off_bytes)
		return pf_io_file_error(io, "write", off_bytes, len_bytes, -EFBIG);
	if (!f->chunks || len_bytes == 0)
		return 0;
	uint64_t last = (off_bytes + len_bytes - 1) >> CHUNK_SHIFT;
	for (uint64_t chunk = off_bytes >> CHUNK_SHIFT; chunk <= last; chunk++) {
		if (chunk_known(f, chunk) || atomic_load(&f->no_allocate))
			continue;
		int err = chunk_allocate(f, chunk);
		/* the chunk does not fit any more, but the write itself may */
		if (err == -ENOSPC || err == -EDQUOT)
			err = host_fallocate(io, FALLOC_FL_KEEP_SIZE, off_bytes, len_bytes);
		/* such a host (NFS 4.0, some FUSE ones) may run out of space as late as the flush, which then fails */
		if (unsupported(err))
			atomic_store(&f->no_allocate, true);
		else if (err)
			return pf_io_file_error(io, "allocation", off_bytes, len_bytes, err);
	}
	return 0;
}

bool pf_io_file_prepared(struct pf_io *io, uint64_t off_bytes, size_t len_bytes)
{
	struct io_file *f = to_file(io);
	if (off_bytes > io->size_bytes || len_bytes > io->size_bytes - off_bytes)
		return false;
	if (!f->chunks || len_bytes == 0 || atomic_load(&f->no_allocate))
		return true;
	uint64_t chunk = off_bytes >> CHUNK_SHIFT, last = (off_bytes + len_bytes - 1) >> CHUNK_SHIFT;
	while (chunk <= last && chunk_known(f, chunk))
		chunk++;
	return chunk > last;
}

static int file_allocate(struct pf_io *io, uint64_t off_bytes, uint64_t len_bytes)
{
	if (io->kind != PF_IO_FILE || len_bytes == 0)
		return 0;
	if (off_bytes > io->size_bytes || len_bytes > io->size_bytes - off_bytes)
		return pf_io_file_error(io, "allocation", off_bytes, len_bytes, -EINVAL);
	int err = host_fallocate(io, FALLOC_FL_KEEP_SIZE, off_bytes, len_bytes);
	/* a host without fallocate: nothing can be promised, and a later write may meet ENOSPC */
	if (!err || unsupported(err))
		return 0;
	return pf_io_file_error(io, "allocation", off_bytes, len_bytes, err);
}

/* Punching and forgetting what was known is one step for a write beside it that allocates the chunk meanwhile. */
static int punch_hole(struct io_file *f, uint64_t off_bytes, uint64_t len_bytes)
{
	const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	if (!f->chunks)
		return host_fallocate(&f->io, mode, off_bytes, len_bytes);
	pthread_mutex_lock(&f->chunk_lock);
	int err = host_fallocate(&f->io, mode, off_bytes, len_bytes);
	for (uint64_t c = off_bytes >> CHUNK_SHIFT; c <= (off_bytes + len_bytes - 1) >> CHUNK_SHIFT; c++)
		chunk_clear(f, c);
	pthread_mutex_unlock(&f->chunk_lock);
	return err;
}

static int file_discard(struct pf_io *io, uint64_t off_bytes, uint64_t len_bytes)
{
	struct io_file *f = to_file(io);
	if (len_bytes == 0)
		return 0;
	if (off_bytes > io->size_bytes || len_bytes > io->size_bytes - off_bytes)
		return pf_io_file_error(io, "discard", off_bytes, len_bytes, -EINVAL);
	if (atomic_load(&f->no_discard))
		return -EOPNOTSUPP;
	int err;
	if (io->kind == PF_IO_BLOCK_DEVICE) {
		uint64_t range[2] = { off_bytes, len_bytes };
		do
			err = ioctl(io->fd, BLKDISCARD, range) < 0 ? -errno : 0;
		while (err == -EINTR);
	} else {
		err = punch_hole(f, off_bytes, len_bytes);
	}
	if (unsupported(err)) {
		atomic_store(&f->no_discard, true);
		return -EOPNOTSUPP;
	}
	return err ? pf_io_file_error(io, "discard", off_bytes, len_bytes, err) : 0;
}

/* -- transfers --------------------------------------------------------------------------------------------------- */
/* What one call moved may be continued from here: O_DIRECT goes on at a whole block. */
static size_t whole_blocks(const struct pf_io *io, size_t done)
{
	return io->direct ? done - done % PF_BLOCK_SIZE : done;
}

static int file_read(struct pf_io *io, uint64_t off_bytes, void *buf, size_t len_bytes)
{
	assert(off_bytes % PF_BLOCK_SIZE == 0 && len_bytes % PF_BLOCK_SIZE == 0 && (uintptr_t)buf % PF_BLOCK_SIZE == 0);
	size_t done = 0;
	while (done < len_bytes) {
		ssize_t n = pread(io->fd, (char *)buf + done, len_bytes - done, (off_t)(off_bytes + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return pf_io_file_error(io, "read", off_bytes, len_bytes, -errno);
		size_t next = whole_blocks(io, done + (size_t)n);
		if (next == done)
			return pf_io_file_error(io, "read", off_bytes, len_bytes, 0);
		done = next;
	}
	return 0;
}

static int file_write(struct pf_io *io, uint64_t off_bytes, const void *buf, size_t len_bytes)
{
	assert(off_bytes % PF_BLOCK_SIZE == 0 && len_bytes % PF_BLOCK_SIZE == 0 && (uintptr_t)buf % PF_BLOCK_SIZE == 0);
	int err = pf_io_file_prepare_write(io, off_bytes, len_bytes);
	size_t done = 0;
	while (!err && done < len_bytes) {
		ssize_t n = pwrite(io->fd, (const char *)buf + done, len_bytes - done, (off_t)(off_bytes + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return pf_io_file_error(io, "write", off_bytes, len_bytes, -errno);
		size_t next = whole_blocks(io, done + (size_t)n);
		if (next == done)
			return pf_io_file_error(io, "write", off_bytes, len_bytes, -EIO);
		done = next;
	}
	return err;
}

/* -- flush ------------------------------------------------------------------------------------------------------- */
int pf_io_file_flush_lock(struct pf_io *io)
{
	struct io_file *f = to_file(io);
	pthread_mutex_lock(&f->flush_lock);
	while (f->flushing && !pf_io_failed(io))
		pthread_cond_wait(&f->flush_ended, &f->flush_lock);
	int err = f->flush_err ? f->flush_err : f->flushing ? -EIO : 0;
	f->flushing = f->flushing || !err;
	pthread_mutex_unlock(&f->flush_lock);
	return err;
}

int pf_io_file_flush_unlock(struct pf_io *io, int sys_err)
{
	struct io_file *f = to_file(io);
	int err = sys_err ? pf_io_file_error(io, "flush", 0, io->size_bytes, sys_err) : 0;
	pthread_mutex_lock(&f->flush_lock);
	if (err)
		f->flush_err = err;
	f->flushing = false;
	pthread_cond_broadcast(&f->flush_ended);
	pthread_mutex_unlock(&f->flush_lock);
	return err;
}

void pf_io_file_flush_cancel(struct pf_io *io)
{
	struct io_file *f = to_file(io);
	pthread_mutex_lock(&f->flush_lock);
	f->flushing = false;
	pthread_cond_broadcast(&f->flush_ended);
	pthread_mutex_unlock(&f->flush_lock);
}

void pf_io_file_wake(struct pf_io *io)
{
	struct io_file *f = to_file(io);
	pthread_mutex_lock(&f->flush_lock);
	pthread_cond_broadcast(&f->flush_ended);
	pthread_mutex_unlock(&f->flush_lock);
}

static int file_flush(struct pf_io *io)
{
	int err = pf_io_file_flush_lock(io);
	if (err)
		return err;
	/* not even EINTR is tried again: what the first call dropped the second one would not report */
	return pf_io_file_flush_unlock(io, fdatasync(io->fd) < 0 ? -errno : 0);
}

static void file_close(struct pf_io *io)
{
	struct io_file *f = to_file(io);
	if (io->fd >= 0)
		close(io->fd);
	pthread_mutex_destroy(&f->flush_lock);
	pthread_cond_destroy(&f->flush_ended);
	pthread_mutex_destroy(&f->chunk_lock);
	free(f->chunks);
	free(io->name);
	free(f);
}

static const struct pf_io_ops file_ops = {
	.read = file_read,
	.write = file_write,
	.flush = file_flush,
	.discard = file_discard,
	.allocate = file_allocate,
	.close = file_close,
};

/* -- open -------------------------------------------------------------------------------------------------------- */
/* O_DIRECT may be accepted and then fail, or want more alignment than we have: one read tells. */
static bool take_direct(int fd, uint64_t size_bytes)
{
	int flags = fcntl(fd, F_GETFL);
	if (size_bytes < 2 * PF_BLOCK_SIZE || flags < 0 || fcntl(fd, F_SETFL, flags | O_DIRECT) < 0)
		return false;
	void *block = aligned_alloc(PF_BLOCK_SIZE, PF_BLOCK_SIZE);
	ssize_t n = block ? pread(fd, block, PF_BLOCK_SIZE, PF_BLOCK_SIZE) : -1;
	/* any other error than this one is the disk's, and the first real read will report it */
	bool direct = block && (n == PF_BLOCK_SIZE || (n < 0 && errno != EINVAL && errno != EOPNOTSUPP));
	free(block);
	if (!direct)
		fcntl(fd, F_SETFL, flags & ~O_DIRECT);
	return direct;
}

int pf_io_open(const char *path, int flags, unsigned wait_ms, const struct pf_env *env, struct pf_io **out,
	       struct pf_diag *diag)
{
	*out = NULL;
	struct io_file *f = calloc(1, sizeof(*f));
	if (!f)
		return pf_diag_set(diag, -ENOMEM, "%s: out of memory", path);
	f->env = env;
	f->io.ops = &file_ops;
	f->io.fd = -1;
	f->io.read_only = !(flags & PF_IO_OPEN_WRITE);
	pthread_mutex_init(&f->flush_lock, NULL);
	pthread_cond_init(&f->flush_ended, NULL);
	pthread_mutex_init(&f->chunk_lock, NULL);

	int err = -ENOMEM;
	f->io.name = strdup(path);
	if (!f->io.name)
		goto out;
	struct pf_io_opened opened;
	err = pf_io_open_locked(path, flags, wait_ms, &opened, diag);
	if (err)
		goto out;
	f->io.fd = opened.fd;
	f->io.kind = opened.kind;
	f->io.size_bytes = opened.size_bytes;
	f->io.host_dev = opened.host_dev;
	f->io.sparse = opened.sparse;
	f->io.direct = !(flags & PF_IO_OPEN_BUFFERED) && take_direct(opened.fd, opened.size_bytes);
	if (f->io.kind == PF_IO_FILE && !f->io.direct && !f->io.read_only) {
		uint64_t nr_words = (opened.size_bytes >> CHUNK_SHIFT) / CHUNKS_PER_WORD + 1;
		f->chunks = calloc(nr_words, sizeof(*f->chunks));
		err = f->chunks ? 0 : -ENOMEM;
	}
out:
	if (err) {
		file_close(&f->io);
		return pf_diag_set(diag, err, "%s: %s", path, pf_strerror(err));
	}
	*out = &f->io;
	return 0;
}
