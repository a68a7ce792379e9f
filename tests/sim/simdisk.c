/* SPDX-License-Identifier: MIT */
#include "sim/simworld.h"

#include "base/csum.h"
#include "ondisk/ondisk.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct handle {
	struct pf_io io;
	struct simdisk *disk;
	int flush_err; /* of the first flush that failed */
};

static struct simdisk *disk_of(struct pf_io *io)
{
	return ((struct handle *)io)->disk;
}

void *sim_must(void *p)
{
	if (!p)
		abort();
	return p;
}

/* -- worlds and disks ----------------------------------------------------------------------------------------------- */
struct simworld *simworld_new(void)
{
	struct simworld *world = sim_must(calloc(1, sizeof(*world)));
	pthread_mutex_init(&world->lock, NULL);
	pthread_cond_init(&world->unhung, NULL);
	return world;
}

void simworld_free(struct simworld *world)
{
	if (!world)
		return;
	sim_log_clear(world);
	for (unsigned i = 0; i < world->nr_disks; i++) {
		struct simdisk *disk = world->disks[i];
		sim_image_free(disk->now);
		free(disk->pending.events);
		free(disk->name);
		free(disk);
	}
	free(world->disks);
	free(world->log);
	pthread_cond_destroy(&world->unhung);
	pthread_mutex_destroy(&world->lock);
	free(world);
}

struct simdisk *simdisk_new(struct simworld *world, const char *name, uint64_t size_bytes)
{
	struct simdisk *disk = sim_must(calloc(1, sizeof(*disk)));
	disk->world = world;
	disk->name = sim_must(strdup(name));
	disk->kind = PF_IO_MEMORY;
	disk->now = sim_image_new(size_bytes);

	pthread_mutex_lock(&world->lock);
	world->disks = sim_must(realloc(world->disks, (world->nr_disks + 1) * sizeof(struct simdisk *)));
	disk->index = world->nr_disks;
	world->disks[world->nr_disks++] = disk;
	if (world->recording) {
		disk->start = sim_image_new(size_bytes);
		disk->durable = sim_image_new(size_bytes);
	}
	pthread_mutex_unlock(&world->lock);
	return disk;
}

struct simworld *simworld_copy(struct simworld *world)
{
	struct simworld *copy = simworld_new();
	pthread_mutex_lock(&world->lock);
	copy->garbage = world->garbage;
	for (unsigned i = 0; i < world->nr_disks; i++) {
		const struct simdisk *from = world->disks[i];
		struct simdisk *to = simdisk_new(copy, from->name, 0);
		to->kind = from->kind;
		sim_image_free(to->now);
		to->now = sim_image_copy(from->now);
	}
	pthread_mutex_unlock(&world->lock);
	return copy;
}

unsigned simworld_nr_disks(const struct simworld *world)
{
	return world->nr_disks;
}

struct simdisk *simworld_disk(struct simworld *world, unsigned index)
{
	assert(index < world->nr_disks);
	return world->disks[index];
}

void simdisk_set_kind(struct simdisk *disk, enum pf_io_kind kind)
{
	disk->kind = kind;
}

/* -- behind the back ------------------------------------------------------------------------------------------------ */
void simdisk_peek(struct simdisk *disk, uint64_t off_bytes, void *buf, size_t len_bytes)
{
	pthread_mutex_lock(&disk->world->lock);
	assert(off_bytes + len_bytes <= sim_image_size(disk->now));
	sim_image_read(disk->now, off_bytes, buf, len_bytes);
	pthread_mutex_unlock(&disk->world->lock);
}

void simdisk_poke(struct simdisk *disk, uint64_t off_bytes, const void *buf, size_t len_bytes)
{
	pthread_mutex_lock(&disk->world->lock);
	assert(off_bytes + len_bytes <= sim_image_size(disk->now));
	sim_image_write(disk->now, off_bytes, buf, len_bytes);
	pthread_mutex_unlock(&disk->world->lock);
}

void simdisk_flip_bit(struct simdisk *disk, uint64_t off_bytes, unsigned bit)
{
	uint8_t byte;
	simdisk_peek(disk, off_bytes, &byte, 1);
	byte ^= (uint8_t)(1u << bit % 8);
	simdisk_poke(disk, off_bytes, &byte, 1);
}

void simdisk_resize(struct simdisk *disk, uint64_t size_bytes)
{
	pthread_mutex_lock(&disk->world->lock);
	sim_image_resize(disk->now, size_bytes);
	pthread_mutex_unlock(&disk->world->lock);
}

uint64_t simdisk_size(struct simdisk *disk)
{
	pthread_mutex_lock(&disk->world->lock);
	uint64_t size = sim_image_size(disk->now);
	pthread_mutex_unlock(&disk->world->lock);
	return size;
}

static bool is_zero(const void *page)
{
	static const uint8_t zeros[SIM_PAGE_BYTES];
	return memcmp(page, zeros, SIM_PAGE_BYTES) == 0;
}

uint64_t simdisk_digest(struct simdisk *disk)
{
	pthread_mutex_lock(&disk->world->lock);
	uint64_t digest = sim_image_size(disk->now);
	const void *data;
	for (uint64_t p = 0; (p = sim_image_next(disk->now, p, &data)) != UINT64_MAX; p++) {
		uint64_t part[3] = { digest, p, 0 };
		if (is_zero(data))
			continue;
		part[2] = pf_crc64(data, SIM_PAGE_BYTES);
		digest = pf_crc64(part, sizeof(part));
	}
	pthread_mutex_unlock(&disk->world->lock);
	return digest;
}

void simdisk_copy_from(struct simdisk *disk, struct simdisk *from)
{
	pthread_mutex_lock(&from->world->lock);
	struct sim_image *copy = sim_image_copy(from->now);
	pthread_mutex_unlock(&from->world->lock);
	pthread_mutex_lock(&disk->world->lock);
	sim_image_free(disk->now);
	disk->now = copy;
	pthread_mutex_unlock(&disk->world->lock);
}

static int save_pages(const struct sim_image *image, int fd)
{
	if (ftruncate(fd, (off_t)sim_image_size(image)) < 0)
		return -errno;
	const void *data;
	for (uint64_t p = 0; (p = sim_image_next(image, p, &data)) != UINT64_MAX; p++) {
		uint64_t off = p * SIM_PAGE_BYTES, left = sim_image_size(image) - off;
		size_t len = left < SIM_PAGE_BYTES ? (size_t)left : SIM_PAGE_BYTES;
		if (is_zero(data))
			continue;
		ssize_t n = pwrite(fd, data, len, (off_t)off);
		if (n != (ssize_t)len)
			return n < 0 ? -errno : -EIO;
	}
	return 0;
}

int simdisk_save(struct simdisk *disk, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	pthread_mutex_lock(&disk->world->lock);
	int err = save_pages(disk->now, fd);
	pthread_mutex_unlock(&disk->world->lock);
	close(fd);
	return err;
}

int simdisk_load(struct simworld *world, const char *path, struct simdisk **out)
{
	struct stat st;
	*out = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int err = fstat(fd, &st) < 0 ? -errno : 0;
	struct simdisk *disk = err ? NULL : simdisk_new(world, path, (uint64_t)st.st_size);
	uint8_t page[SIM_PAGE_BYTES] = { 0 };
	/* only what has data: an image of a TiB may be nearly all hole */
	off_t off = 0;
	while (!err && (off = lseek(fd, off, SEEK_DATA)) >= 0) {
		off -= off % (off_t)SIM_PAGE_BYTES;
		ssize_t n = pread(fd, page, sizeof(page), off);
		if (n < 0)
			err = -errno;
		else if (n > 0 && !is_zero(page))
			simdisk_poke(disk, (uint64_t)off, page, (size_t)n);
		off += (off_t)SIM_PAGE_BYTES;
	}
	close(fd);
	*out = disk;
	return err;
}

/* -- faults --------------------------------------------------------------------------------------------------------- */
unsigned simworld_add_fault(struct simworld *world, const struct sim_fault *fault)
{
	pthread_mutex_lock(&world->lock);
	assert(world->nr_faults < SIM_MAX_FAULTS);
	unsigned nr = world->nr_faults++;
	world->faults[nr] = (struct armed_fault){ .fault = *fault };
	pthread_mutex_unlock(&world->lock);
	return nr;
}

uint64_t simworld_fault_hits(struct simworld *world, unsigned fault)
{
	pthread_mutex_lock(&world->lock);
	assert(fault < world->nr_faults);
	uint64_t hits = world->faults[fault].nr_hits;
	pthread_mutex_unlock(&world->lock);
	return hits;
}

void simworld_clear_faults(struct simworld *world)
{
	pthread_mutex_lock(&world->lock);
	world->nr_faults = 0;
	pthread_mutex_unlock(&world->lock);
}

/* Which operations a kind of fault can hit. */
static unsigned ops_of_kind(enum sim_fault_kind kind)
{
	switch (kind) {
	case SIM_TEAR:
	case SIM_MISDIRECT:
		return SIM_WRITE;
	case SIM_DROP:
		return SIM_WRITE | SIM_FLUSH | SIM_DISCARD;
	case SIM_CORRUPT:
		return SIM_READ;
	case SIM_FAIL:
	case SIM_HANG:
		break;
	}
	return SIM_ANY;
}

/* The fault that hits this call, or NULL. Lock held. */
static const struct sim_fault *find_fault(struct simdisk *disk, enum sim_op op, uint64_t off_bytes, uint64_t len_bytes)
{
	struct simworld *world = disk->world;
	struct armed_fault *hit = NULL;
	for (unsigned i = 0; i < world->nr_faults; i++) {
		struct armed_fault *a = &world->faults[i];
		const struct sim_fault *f = &a->fault;
		bool in_range = op == SIM_FLUSH || f->to_bytes == 0 ||
				(off_bytes < f->to_bytes && f->from_bytes < off_bytes + len_bytes);
		if ((f->disk && f->disk != disk) || !(f->ops & op & ops_of_kind(f->kind)) || !in_range)
			continue;
		uint64_t nr = a->nr_matched++;
		if (!hit && nr >= f->skip && (f->count == 0 || nr < f->skip + f->count))
			hit = a;
	}
	if (hit)
		hit->nr_hits++;
	return hit ? &hit->fault : NULL;
}

static int fault_err(const struct sim_fault *fault)
{
	return fault->err ? fault->err : -EIO;
}

void simworld_end_hangs(struct simworld *world)
{
	pthread_mutex_lock(&world->lock);
	world->hangs_ended = true;
	pthread_cond_broadcast(&world->unhung);
	pthread_mutex_unlock(&world->lock);
}

unsigned simworld_nr_hung(struct simworld *world)
{
	pthread_mutex_lock(&world->lock);
	unsigned nr = world->nr_hung;
	pthread_mutex_unlock(&world->lock);
	return nr;
}

bool simworld_all_hung(struct simworld *world)
{
	pthread_mutex_lock(&world->lock);
	bool all = world->nr_hung > 0 && world->nr_hung == world->nr_inside;
	pthread_mutex_unlock(&world->lock);
	return all;
}

void simworld_quiesce(struct simworld *world)
{
	pthread_mutex_lock(&world->lock);
	while (world->nr_inside)
		pthread_cond_wait(&world->unhung, &world->lock);
	pthread_mutex_unlock(&world->lock);
}

void simdisk_set_hang(struct simdisk *disk, unsigned ops)
{
	pthread_mutex_lock(&disk->world->lock);
	disk->hang_ops = ops;
	pthread_cond_broadcast(&disk->world->unhung);
	pthread_mutex_unlock(&disk->world->lock);
}

unsigned simdisk_nr_hung(struct simdisk *disk)
{
	pthread_mutex_lock(&disk->world->lock);
	unsigned nr = disk->nr_hung;
	pthread_mutex_unlock(&disk->world->lock);
	return nr;
}

uint64_t simdisk_count(struct simdisk *disk, unsigned ops)
{
	uint64_t sum = 0;
	pthread_mutex_lock(&disk->world->lock);
	for (unsigned i = 0; i < SIM_NR_OPS; i++) {
		if (ops >> i & 1)
			sum += disk->counts[i];
	}
	pthread_mutex_unlock(&disk->world->lock);
	return sum;
}

/* -- I/O ------------------------------------------------------------------------------------------------------------ */
/* A call that hangs by a fault, which may be cleared meanwhile. What it returns then. */
static int hang(struct simworld *world, int err)
{
	world->nr_hung++;
	while (!world->hangs_ended)
		pthread_cond_wait(&world->unhung, &world->lock);
	world->nr_hung--;
	return err;
}

/* Begins a call: takes the lock, counts, waits while hung, finds its fault. 0 or -EIO for a range past the end; what a hang
 * returns. */
static int enter(struct simdisk *disk, enum sim_op op, uint64_t off_bytes, uint64_t len_bytes,
		 const struct sim_fault **fault)
{
	assert(off_bytes % PF_BLOCK_SIZE == 0 && len_bytes % PF_BLOCK_SIZE == 0);
	pthread_mutex_lock(&disk->world->lock);
	disk->counts[__builtin_ctz(op)]++;
	disk->world->nr_inside++;
	disk->nr_hung++;
	while (disk->hang_ops & op)
		pthread_cond_wait(&disk->world->unhung, &disk->world->lock);
	disk->nr_hung--;
	*fault = find_fault(disk, op, off_bytes, len_bytes);
	int err = 0;
	if (*fault && (*fault)->kind == SIM_HANG) {
		err = hang(disk->world, (*fault)->err);
		*fault = NULL;
	}
	uint64_t size = sim_image_size(disk->now);
	return err ? err : off_bytes > size || len_bytes > size - off_bytes ? -EIO : 0;
}

static int leave(struct simdisk *disk, int err)
{
	if (--disk->world->nr_inside == 0)
		pthread_cond_broadcast(&disk->world->unhung);
	pthread_mutex_unlock(&disk->world->lock);
	return err;
}

static int sim_read(struct pf_io *io, uint64_t off_bytes, void *buf, size_t len_bytes)
{
	assert((uintptr_t)buf % PF_BLOCK_SIZE == 0);
	struct simdisk *disk = disk_of(io);
	const struct sim_fault *fault;
	int err = enter(disk, SIM_READ, off_bytes, len_bytes, &fault);
	if (!err && fault && fault->kind == SIM_FAIL)
		err = fault_err(fault);
	if (!err)
		sim_image_read(disk->now, off_bytes, buf, len_bytes);
	if (!err && fault && len_bytes > 0) {
		uint64_t bit = fault->arg % (8 * (uint64_t)len_bytes);
		((uint8_t *)buf)[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	return leave(disk, err);
}

static void store(struct simdisk *disk, uint64_t off_bytes, const void *buf, size_t len_bytes)
{
	if (len_bytes == 0)
		return;
	sim_image_write(disk->now, off_bytes, buf, len_bytes);
	/* the log copies what it is given */
	struct sim_event event = { SIM_WRITE, disk->index, off_bytes, len_bytes, (void *)(uintptr_t)buf, false };
	sim_log_add(disk->world, &event);
}

static int sim_write(struct pf_io *io, uint64_t off_bytes, const void *buf, size_t len_bytes)
{
	assert((uintptr_t)buf % PF_BLOCK_SIZE == 0);
	struct simdisk *disk = disk_of(io);
	const struct sim_fault *fault;
	int err = enter(disk, SIM_WRITE, off_bytes, len_bytes, &fault);
	if (!err && io->read_only)
		err = -EIO;
	if (err || !fault) {
		if (!err)
			store(disk, off_bytes, buf, len_bytes);
		return leave(disk, err);
	}
	uint64_t size = sim_image_size(disk->now);
	switch (fault->kind) {
	case SIM_TEAR:
		store(disk, off_bytes, buf, fault->arg < len_bytes ? (size_t)fault->arg : len_bytes);
		err = fault_err(fault);
		break;
	case SIM_MISDIRECT:
		off_bytes = (off_bytes + fault->arg) % size / PF_BLOCK_SIZE * PF_BLOCK_SIZE;
		store(disk, off_bytes, buf, len_bytes < size - off_bytes ? len_bytes : (size_t)(size - off_bytes));
		break;
	case SIM_DROP:
		break;
	default:
		err = fault_err(fault);
	}
	return leave(disk, err);
}

static int sim_flush(struct pf_io *io)
{
	struct handle *handle = (struct handle *)io;
	const struct sim_fault *fault;
	int err = enter(handle->disk, SIM_FLUSH, 0, 0, &fault);
	if (fault && fault->kind == SIM_FAIL)
		err = fault_err(fault);
	if (err && !handle->flush_err)
		handle->flush_err = err;
	struct sim_event event = { .op = SIM_FLUSH, .disk = handle->disk->index };
	event.ineffective = handle->flush_err || fault;
	sim_log_add(handle->disk->world, &event);
	return leave(handle->disk, handle->flush_err);
}

void simworld_discard_to_garbage(struct simworld *world)
{
	world->garbage = true;
}

void sim_discard_range(const struct simworld *world, struct sim_image *image, uint64_t off_bytes, uint64_t len_bytes)
{
	static const char sector[SIM_SECTOR_BYTES] = "this has been discarded: nobody may need it any more";
	if (!world->garbage)
		sim_image_zero(image, off_bytes, len_bytes);
	for (uint64_t at = 0; world->garbage && at < len_bytes; at += sizeof(sector))
		sim_image_write(image, off_bytes + at, sector, sizeof(sector));
}

static int sim_discard(struct pf_io *io, uint64_t off_bytes, uint64_t len_bytes)
{
	struct simdisk *disk = disk_of(io);
	const struct sim_fault *fault;
	int err = enter(disk, SIM_DISCARD, off_bytes, len_bytes, &fault);
	if (!err && io->read_only)
		err = -EIO;
	if (!err && fault && fault->kind == SIM_FAIL)
		err = fault_err(fault);
	if (!err && !fault && len_bytes > 0) {
		sim_discard_range(disk->world, disk->now, off_bytes, len_bytes);
		struct sim_event event = { SIM_DISCARD, disk->index, off_bytes, len_bytes, NULL, false };
		sim_log_add(disk->world, &event);
	}
	return leave(disk, err);
}

static int sim_allocate(struct pf_io *io, uint64_t off_bytes, uint64_t len_bytes)
{
	const struct sim_fault *fault;
	int err = enter(disk_of(io), SIM_ALLOCATE, off_bytes, len_bytes, &fault);
	if (!err && fault)
		err = fault_err(fault);
	return leave(disk_of(io), err);
}

static void sim_close(struct pf_io *io)
{
	free(io->name);
	free(io);
}

static const struct pf_io_ops sim_ops = {
	.read = sim_read,
	.write = sim_write,
	.flush = sim_flush,
	.discard = sim_discard,
	.allocate = sim_allocate,
	.close = sim_close,
};

struct pf_io *simdisk_open(struct simdisk *disk, bool read_only)
{
	struct handle *handle = sim_must(calloc(1, sizeof(*handle)));
	handle->disk = disk;
	handle->io.ops = &sim_ops;
	handle->io.name = sim_must(strdup(disk->name));
	handle->io.size_bytes = simdisk_size(disk);
	handle->io.kind = disk->kind;
	handle->io.read_only = read_only;
	handle->io.direct = handle->io.sparse = true;
	handle->io.fd = -1;
	return &handle->io;
}

void simworld_open(struct simworld *world, bool read_only, struct pf_io **ios)
{
	for (unsigned i = 0; i < simworld_nr_disks(world); i++)
		ios[i] = simdisk_open(world->disks[i], read_only);
}
