/* SPDX-License-Identifier: MIT */
#include "emptyfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MAX_NODES = 8192, NR_THREADS = 2, NR_DISK_THREADS = 24, MAX_IO = 1 << 20, REQUEST_CAP = MAX_IO + 65536 };
enum { BLOCK = 4096, MAX_DISK_IO = 64 << 10, NR_PLACES = 16 }; /* what is larger is not what is synced one by one */

struct node {
	uint64_t parent; /* 0: the slot is free */
	char name[256];
	struct fuse_attr attr;
	pthread_mutex_t disk; /* held while what was written last is on its way there */
	bool on_its_way;
	uint64_t waiting; /* FSYNC that is answered when it is there, or 0 */
};

struct emptyfs {
	int fd, disk_fd; /* -1: nothing behind it */
	uint64_t disk_bytes;
	pthread_mutex_t lock;
	struct node *nodes; /* [nodeid]; 1 is the root */
	uint64_t nr;        /* slots that have been used */
};

struct request {
	struct emptyfs *fs;
	const struct fuse_in_header *in;
	const void *arg; /* behind the header */
	struct node *node;
	struct io_uring *ring; /* of the thread, and */
	unsigned char *buf;    /* for direct I/O */
};

static const unsigned char zeros[MAX_IO];

static void reply_to(const struct request *r, uint64_t unique, int err, const void *data, size_t len)
{
	struct fuse_out_header out = { .len = (uint32_t)(sizeof(out) + len), .error = -err, .unique = unique };
	struct iovec iov[] = { { &out, sizeof(out) }, { (void *)data, len } };
	/* ENOENT: who asked has gone */
	if (writev(r->fs->fd, iov, len ? 2 : 1) < 0 && errno != ENOENT)
		perror("poolfs-bench: the empty filesystem");
}

static void reply(struct request *r, int err, const void *data, size_t len)
{
	reply_to(r, r->in->unique, err, data, len);
}

/* -- names ------------------------------------------------------------------------------------------------------------------- */
static uint64_t find(struct emptyfs *fs, uint64_t parent, const char *name)
{
	for (uint64_t i = 2; i < fs->nr; i++) {
		if (fs->nodes[i].parent == parent && strcmp(fs->nodes[i].name, name) == 0)
			return i;
	}
	return 0;
}

static void init_node(struct node *node, uint64_t id, uint32_t mode)
{
	node->attr = (struct fuse_attr){ .ino = id, .mode = mode, .nlink = 1, .blksize = 4096 };
}

static uint64_t make(struct emptyfs *fs, uint64_t parent, const char *name, uint32_t mode)
{
	uint64_t id = 2;
	while (id < fs->nr && fs->nodes[id].parent)
		id++;
	if (id == MAX_NODES)
		return 0;
	fs->nr = id == fs->nr ? id + 1 : fs->nr;
	fs->nodes[id].parent = parent;
	snprintf(fs->nodes[id].name, sizeof(fs->nodes[id].name), "%s", name);
	init_node(&fs->nodes[id], id, mode);
	return id;
}

static void reply_entry(struct request *r, uint64_t id, bool open)
{
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} out = { 0 };
	out.entry.nodeid = id;
	out.entry.entry_valid = out.entry.attr_valid = UINT32_MAX;
	if (id)
		out.entry.attr = r->fs->nodes[id].attr;
	reply(r, 0, &out, open ? sizeof(out) : sizeof(out.entry));
}

static void create(struct request *r, const char *name, uint32_t mode, bool open)
{
	uint64_t id = make(r->fs, r->in->nodeid, name, mode);
	if (id)
		reply_entry(r, id, open);
	else
		reply(r, ENOSPC, NULL, 0);
}

static void remove_name(struct request *r)
{
	uint64_t id = find(r->fs, r->in->nodeid, r->arg);
	if (id)
		r->fs->nodes[id].parent = 0;
	reply(r, id ? 0 : ENOENT, NULL, 0);
}

static void read_dir(struct request *r)
{
	const struct fuse_read_in *arg = r->arg;
	static char buf[65536];
	size_t len = 0;
	for (uint64_t i = arg->offset < 2 ? 2 : arg->offset; i < r->fs->nr; i++) {
		const struct node *n = &r->fs->nodes[i];
		size_t name_len = strlen(n->name), size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + name_len);
		if (n->parent != r->in->nodeid)
			continue;
		if (len + size > arg->size || len + size > sizeof(buf))
			break;
		struct fuse_dirent *e = (struct fuse_dirent *)(buf + len);
		memset(e, 0, size);
		e->ino = i;
		e->off = i + 1;
		e->namelen = (uint32_t)name_len;
		e->type = n->attr.mode >> 12;
		memcpy(e->name, n->name, name_len);
		len += size;
	}
	reply(r, 0, buf, len);
}

/* -- files ------------------------------------------------------------------------------------------------------------------- */
static void reply_attr(struct request *r)
{
	struct fuse_attr_out out = { .attr_valid = UINT32_MAX, .attr = r->node->attr };
	reply(r, 0, &out, sizeof(out));
}

static void set_attr(struct request *r)
{
	const struct fuse_setattr_in *arg = r->arg;
	struct fuse_attr *a = &r->node->attr;
	if (arg->valid & FATTR_SIZE)
		a->size = arg->size;
	if (arg->valid & FATTR_MODE)
		a->mode = (a->mode & S_IFMT) | (arg->mode & 07777);
	if (arg->valid & FATTR_MTIME) {
		a->mtime = arg->mtime;
		a->mtimensec = arg->mtimensec;
	}
	reply_attr(r);
}

static void read_file(struct request *r)
{
	const struct fuse_read_in *arg = r->arg;
	uint64_t size = r->node->attr.size, left = arg->offset < size ? size - arg->offset : 0;
	size_t len = arg->size < left ? arg->size : (size_t)left;
	reply(r, 0, zeros, len < sizeof(zeros) ? len : sizeof(zeros));
}

static void write_file(struct request *r)
{
	const struct fuse_write_in *arg = r->arg;
	struct fuse_write_out out = { .size = arg->size };
	if (arg->offset + arg->size > r->node->attr.size)
		r->node->attr.size = arg->offset + arg->size;
	reply(r, 0, &out, sizeof(out));
}

static void stat_fs(struct request *r)
{
	struct fuse_statfs_out out = { .st = { .blocks = 1 << 30, .bfree = 1 << 30, .bavail = 1 << 30, .files = MAX_NODES,
					       .ffree = MAX_NODES, .bsize = 4096, .namelen = 255, .frsize = 4096 } };
	reply(r, 0, &out, sizeof(out));
}

/* -- what is synced, with a disk behind it ------------------------------------------------------------------------------------ */
/* Each file has a part of the disk, used again and again. */
static off_t place_of(const struct request *r, uint64_t offset)
{
	uint64_t part = r->fs->disk_bytes / NR_PLACES / BLOCK * BLOCK;
	return (off_t)(r->in->nodeid % NR_PLACES * part + offset % (part - MAX_DISK_IO) / BLOCK * BLOCK);
}

static void must(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	_exit(1); /* whoever measures sees ENOTCONN */
}

/* The disk is set to work, then the write is answered, then, when all is done, the sync that has come meanwhile: no FUSE filesystem can do
 * it in fewer steps. */
static void write_disk(struct request *r)
{
	const struct fuse_write_in *arg = r->arg;
	size_t len = (arg->size + BLOCK - 1) / BLOCK * BLOCK;
	struct io_uring_cqe *cqe;
	memcpy(r->buf, arg + 1, arg->size);
	pthread_mutex_lock(&r->node->disk);
	struct io_uring_sqe *sqe = io_uring_get_sqe(r->ring);
	io_uring_prep_write(sqe, r->fs->disk_fd, r->buf, (unsigned)len, (uint64_t)place_of(r, arg->offset));
	must(io_uring_submit(r->ring) == 1, "poolfs-bench: io_uring");
	pthread_mutex_lock(&r->fs->lock);
	r->node->on_its_way = true;
	write_file(r);
	pthread_mutex_unlock(&r->fs->lock);
	must(io_uring_wait_cqe(r->ring, &cqe) == 0 && cqe->res == (int)len, "poolfs-bench: the disk behind a FUSE filesystem");
	io_uring_cqe_seen(r->ring, cqe);
	must(fdatasync(r->fs->disk_fd) == 0, "poolfs-bench: the disk behind a FUSE filesystem");
	pthread_mutex_lock(&r->fs->lock);
	uint64_t waiting = r->node->waiting;
	r->node->on_its_way = false;
	r->node->waiting = 0;
	pthread_mutex_unlock(&r->fs->lock);
	pthread_mutex_unlock(&r->node->disk);
	if (waiting)
		reply_to(r, waiting, 0, NULL, 0);
}

static void sync_disk(struct request *r)
{
	pthread_mutex_lock(&r->fs->lock);
	bool waits = r->node->on_its_way, alone = !r->node->waiting;
	if (waits && alone)
		r->node->waiting = r->in->unique;
	pthread_mutex_unlock(&r->fs->lock);
	if (waits && alone)
		return;
	if (waits) {
		pthread_mutex_lock(&r->node->disk);
		pthread_mutex_unlock(&r->node->disk);
	}
	reply(r, 0, NULL, 0);
}

/* The ring is its thread's alone; kernels before 6.1 cannot make use of that. */
static bool ring_init(struct io_uring *ring)
{
	return io_uring_queue_init(4, ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN) == 0 ||
	       io_uring_queue_init(4, ring, 0) == 0;
}

static bool handle_on_disk(struct request *r)
{
	const struct fuse_write_in *arg = r->arg;
	if (r->fs->disk_fd >= 0 && r->in->opcode == FUSE_WRITE && arg->size <= MAX_DISK_IO)
		write_disk(r);
	else if (r->fs->disk_fd >= 0 && r->in->opcode == FUSE_FSYNC)
		sync_disk(r);
	else
		return false;
	return true;
}

/* -- serving ------------------------------------------------------------------------------------------------------------------- */
static void init(struct request *r)
{
	const struct fuse_init_in *arg = r->arg;
	const uint64_t wanted = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_WRITEBACK_CACHE | FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES |
				FUSE_NO_OPEN_SUPPORT | FUSE_NO_OPENDIR_SUPPORT | FUSE_INIT_EXT | FUSE_HANDLE_KILLPRIV_V2;
	uint64_t offered = arg->flags | (arg->flags & FUSE_INIT_EXT ? (uint64_t)arg->flags2 << 32 : 0);
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = arg->max_readahead,
		.flags = (uint32_t)(wanted & offered),
		.flags2 = (uint32_t)((wanted & offered) >> 32),
		.max_background = 64,
		.congestion_threshold = 48,
		.max_write = MAX_IO,
		.time_gran = 1,
		.max_pages = MAX_IO / 4096,
	};
	reply(r, 0, &out, sizeof(out));
}

static void handle(struct request *r)
{
	const struct fuse_mkdir_in *mkdir_in = r->arg;
	const struct fuse_create_in *create_in = r->arg;
	const struct fuse_mknod_in *mknod_in = r->arg;
	switch (r->in->opcode) {
	case FUSE_INIT:
		return init(r);
	case FUSE_LOOKUP:
		return reply_entry(r, find(r->fs, r->in->nodeid, r->arg), false);
	case FUSE_GETATTR:
		return reply_attr(r);
	case FUSE_SETATTR:
		return set_attr(r);
	case FUSE_MKDIR:
		return create(r, (const char *)(mkdir_in + 1), S_IFDIR | mkdir_in->mode, false);
	case FUSE_MKNOD:
		return create(r, (const char *)(mknod_in + 1), mknod_in->mode, false);
	case FUSE_CREATE:
		return create(r, (const char *)(create_in + 1), S_IFREG | create_in->mode, true);
	case FUSE_UNLINK:
	case FUSE_RMDIR:
		return remove_name(r);
	case FUSE_READ:
		return read_file(r);
	case FUSE_WRITE:
		return write_file(r);
	case FUSE_READDIR:
		return read_dir(r);
	case FUSE_STATFS:
		return stat_fs(r);
	case FUSE_FSYNC:
	case FUSE_FSYNCDIR:
		return reply(r, 0, NULL, 0);
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	default:
		return reply(r, ENOSYS, NULL, 0); /* the kernel does not ask again */
	}
}

static void *serve(void *arg)
{
	struct emptyfs *fs = arg;
	char *buf = malloc(REQUEST_CAP);
	struct io_uring ring;
	unsigned char *disk_buf = aligned_alloc(BLOCK, MAX_DISK_IO);
	must(buf && disk_buf && (fs->disk_fd < 0 || ring_init(&ring)), "poolfs-bench: a FUSE filesystem");
	for (;;) {
		ssize_t n = read(fs->fd, buf, REQUEST_CAP);
		if (n < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN))
			continue;
		if (n < (ssize_t)sizeof(struct fuse_in_header))
			break;
		struct request r = { .fs = fs, .in = (void *)buf, .arg = buf + sizeof(struct fuse_in_header), .ring = &ring, .buf = disk_buf };
		r.node = &fs->nodes[r.in->nodeid < MAX_NODES ? r.in->nodeid : 0];
		if (handle_on_disk(&r))
			continue;
		pthread_mutex_lock(&fs->lock);
		handle(&r);
		pthread_mutex_unlock(&fs->lock);
	}
	if (fs->disk_fd >= 0)
		io_uring_queue_exit(&ring);
	free(disk_buf);
	free(buf);
	return NULL;
}

static int serve_all(int fd, int disk_fd, uint64_t disk_bytes)
{
	static struct emptyfs fs = { .lock = PTHREAD_MUTEX_INITIALIZER, .nr = 2 };
	pthread_t threads[NR_DISK_THREADS];
	fs.fd = fd;
	fs.disk_fd = disk_fd;
	fs.disk_bytes = disk_bytes;
	fs.nodes = calloc(MAX_NODES, sizeof(*fs.nodes));
	if (!fs.nodes)
		return 1;
	for (unsigned i = 0; i < MAX_NODES; i++)
		pthread_mutex_init(&fs.nodes[i].disk, NULL);
	init_node(&fs.nodes[FUSE_ROOT_ID], FUSE_ROOT_ID, S_IFDIR | 0700);
	unsigned nr = 0;
	while (nr < (disk_fd < 0 ? NR_THREADS : NR_DISK_THREADS) && pthread_create(&threads[nr], NULL, serve, &fs) == 0)
		nr++;
	for (unsigned i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	return nr == 0;
}

/* A file or device, for direct I/O. */
static int open_disk(const char *path, int *fd, uint64_t *bytes)
{
	*fd = open(path, O_RDWR | O_CLOEXEC | O_DIRECT);
	off_t size = *fd < 0 ? -1 : lseek(*fd, 0, SEEK_END);
	*bytes = (uint64_t)size;
	return size < 0 ? -errno : *bytes < (uint64_t)NR_PLACES * 4 * MAX_DISK_IO ? -ENOSPC : 0;
}

int emptyfs_mount(const char *dir, const char *disk, pid_t *daemon)
{
	char options[128];
	int disk_fd = -1;
	uint64_t disk_bytes = 0;
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	int disk_err = fd < 0 ? -errno : disk ? open_disk(disk, &disk_fd, &disk_bytes) : 0;
	if (disk_err) {
		if (fd >= 0)
			close(fd);
		if (disk_fd >= 0)
			close(disk_fd);
		return disk_err;
	}
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other", fd);
	int err = mount("poolfs-bench", dir, "fuse", MS_NOSUID | MS_NODEV, options) < 0 ? -errno : 0;
	*daemon = err ? -1 : fork();
	if (!err && *daemon < 0) {
		err = -errno;
		umount2(dir, MNT_DETACH);
	}
	if (!err && *daemon == 0)
		_exit(serve_all(fd, disk_fd, disk_bytes));
	close(fd);
	if (disk_fd >= 0)
		close(disk_fd);
	return err;
}
