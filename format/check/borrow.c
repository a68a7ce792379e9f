/* SPDX-License-Identifier: MIT */
#include "check/borrow.h"

#include <stdlib.h>
#include <string.h>

struct borrowed {
	struct pf_io io; /* first */
	struct pf_io *owner;
};

static struct pf_io *owner_of(struct pf_io *io)
{
	return ((struct borrowed *)io)->owner;
}

static int borrowed_read(struct pf_io *io, uint64_t off_bytes, void *buf, size_t len_bytes)
{
	return pf_io_read(owner_of(io), off_bytes, buf, len_bytes);
}

static int borrowed_write(struct pf_io *io, uint64_t off_bytes, const void *buf, size_t len_bytes)
{
	return pf_io_write(owner_of(io), off_bytes, buf, len_bytes);
}

static int borrowed_flush(struct pf_io *io)
{
	return pf_io_flush(owner_of(io));
}

static int borrowed_discard(struct pf_io *io, uint64_t off_bytes, uint64_t len_bytes)
{
	return pf_io_discard(owner_of(io), off_bytes, len_bytes);
}

static int borrowed_allocate(struct pf_io *io, uint64_t off_bytes, uint64_t len_bytes)
{
	return pf_io_allocate(owner_of(io), off_bytes, len_bytes);
}

static void borrowed_close(struct pf_io *io)
{
	free(io->name);
	free(io);
}

static const struct pf_io_ops borrowed_ops = {
	.read = borrowed_read,
	.write = borrowed_write,
	.flush = borrowed_flush,
	.discard = borrowed_discard,
	.allocate = borrowed_allocate,
	.close = borrowed_close,
};

static struct pf_io *borrow(struct pf_io *owner)
{
	struct borrowed *b = calloc(1, sizeof(*b));
	char *name = strdup(owner->name);
	if (!b || !name) {
		free(b);
		free(name);
		return NULL;
	}
	b->owner = owner;
	b->io.ops = &borrowed_ops;
	b->io.name = name;
	b->io.size_bytes = owner->size_bytes;
	b->io.kind = owner->kind;
	b->io.read_only = owner->read_only;
	b->io.direct = owner->direct;
	b->io.fd = -1; /* through the ops: a descriptor would make aio.c take the wrapper for a file of io_file.c */
	b->io.host_dev = owner->host_dev;
	return &b->io;
}

int pf_borrow_ios(struct pf_io *const *ios, unsigned nr, struct pf_io **out)
{
	for (unsigned i = 0; i < nr; i++) {
		out[i] = borrow(ios[i]);
		if (out[i])
			continue;
		while (i--)
			pf_io_close(out[i]);
		return -ENOMEM;
	}
	return 0;
}
