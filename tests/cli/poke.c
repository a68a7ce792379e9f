/* SPDX-License-Identifier: MIT
 * Makes damage on purpose, for the shell tests:
 *   poke IMAGE super FIELD=VALUE...   sets fields of every superblock, in both rings, with right checksums again
 *   poke IMAGE flip OFFSET...         inverts the lowest bit of the byte at OFFSET
 *   poke IMAGE zero-super RING        RING A or B: its slots become zeros */
#include "base/csum.h"
#include "ondisk/geometry.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct field {
	const char *name;
	size_t offset, size;
} fields[] = {
#define FIELD(name) { #name, offsetof(struct pf_disk_super, name), sizeof(((struct pf_disk_super *)0)->name) }
	FIELD(magic), FIELD(version), FIELD(member_id), FIELD(nr_members), FIELD(placement), FIELD(compat),
	FIELD(ro_compat), FIELD(incompat), FIELD(generation), FIELD(flags), FIELD(root_level), FIELD(next_id),
	FIELD(nr_inodes), FIELD(data_blocks), FIELD(no_csum_blocks), FIELD(node_blocks),
#undef FIELD
};

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void set_field(struct pf_disk_super *super, const char *text)
{
	const char *equals = strchr(text, '=');
	for (size_t i = 0; equals && i < sizeof(fields) / sizeof(fields[0]); i++) {
		const struct field *f = &fields[i];
		if (strlen(f->name) != (size_t)(equals - text) || strncmp(f->name, text, strlen(f->name)) != 0)
			continue;
		uint64_t value = htole64(strtoull(equals + 1, NULL, 0));
		memcpy((char *)super + f->offset, &value, f->size <= sizeof(value) ? f->size : sizeof(value));
		return;
	}
	fprintf(stderr, "poke: no such field: %s\n", text);
	exit(2);
}

static unsigned poke_super(int fd, const struct pf_geometry *geo, unsigned ring, unsigned slot, char **words)
{
	_Alignas(8) char block[PF_BLOCK_SIZE];
	struct pf_disk_super *super = (struct pf_disk_super *)block;
	off_t at = (off_t)(pf_geometry_super_block(geo, ring, slot) * PF_BLOCK_SIZE);
	if (pread(fd, block, sizeof(block), at) != sizeof(block))
		die("read");
	if (pf_get64(super->magic) != PF_SUPER_MAGIC)
		return 0;
	for (; *words; words++)
		set_field(super, *words);
	super->crc = pf_le64(0);
	super->crc = pf_le64(pf_crc64(block, PF_BLOCK_SIZE));
	if (pwrite(fd, block, sizeof(block), at) != sizeof(block))
		die("write");
	return 1;
}

static void zero_ring(int fd, const struct pf_geometry *geo, unsigned ring)
{
	static const char zeros[PF_BLOCK_SIZE];
	for (unsigned slot = 0; slot < PF_SUPER_SLOTS; slot++) {
		if (pwrite(fd, zeros, sizeof(zeros), (off_t)(pf_geometry_super_block(geo, ring, slot) * PF_BLOCK_SIZE)) < 0)
			die("write");
	}
}

static void flip(int fd, const char *offset)
{
	char byte;
	off_t at = (off_t)strtoull(offset, NULL, 0);
	if (pread(fd, &byte, 1, at) != 1)
		die("read");
	byte ^= 1;
	if (pwrite(fd, &byte, 1, at) != 1)
		die("write");
}

int main(int argc, char **argv)
{
	struct pf_geometry geo;
	unsigned found = 0;
	int fd = argc > 3 ? open(argv[1], O_RDWR) : -1;
	if (fd < 0)
		die(argc > 1 ? argv[1] : "poke");
	uint64_t blocks = (uint64_t)lseek(fd, 0, SEEK_END) / PF_BLOCK_SIZE;
	if (pf_geometry_init(&geo, blocks, pf_geometry_log_blocks(blocks)) != 0)
		die("geometry");
	if (!strcmp(argv[2], "super")) {
		for (unsigned i = 0; i < 2 * PF_SUPER_SLOTS; i++)
			found += poke_super(fd, &geo, i / PF_SUPER_SLOTS, i % PF_SUPER_SLOTS, argv + 3);
		return found ? 0 : 2;
	}
	if (!strcmp(argv[2], "zero-super")) {
		zero_ring(fd, &geo, argv[3][0] == 'B');
		return 0;
	}
	if (strcmp(argv[2], "flip") != 0)
		return 2;
	for (int i = 3; i < argc; i++)
		flip(fd, argv[i]);
	return 0;
}
