/* SPDX-License-Identifier: MIT
 * Log records for the tests of their codec: samples in which every field has a value of its own, and their bytes. */
#ifndef RECORD_UTIL_H
#define RECORD_UTIL_H

#include "ondisk/item.h"
#include "ondisk/record_text.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_BYTES (1u << 20)
#define NSEC_MAX 999999999

static uint8_t bytes[MAX_BYTES]; /* one record */
static uint32_t len;
static struct pf_record out;

static inline void add(const void *data, uint32_t n)
{
	ck_assert_uint_le(len + n, MAX_BYTES);
	if (n)
		memcpy(bytes + len, data, n);
	len += n;
}

/* Everything but ranges: into @bytes. */
static inline void build(const struct pf_record *r)
{
	uint32_t total;
	memset(bytes, 0xee, PF_RECORD_HEAD_MAX); /* packing must not rely on zeros */
	len = pf_record_pack(r, bytes, &total);
	ck_assert_uint_le(len, PF_RECORD_HEAD_MAX);
	switch (r->type) {
	case PF_RECORD_CREATE:
		add(r->create.name.data, r->create.name.len);
		add(r->create.target.data, r->create.target.len);
		break;
	case PF_RECORD_LINK:
	case PF_RECORD_REMOVE:
		add(r->name.name.data, r->name.name.len);
		break;
	case PF_RECORD_RENAME:
		add(r->rename.old_name.data, r->rename.old_name.len);
		add(r->rename.new_name.data, r->rename.new_name.len);
		break;
	case PF_RECORD_XATTR:
		add(r->xattr.name.data, r->xattr.name.len);
		add(r->xattr.value.data, r->xattr.value.len);
		break;
	case PF_RECORD_FILE:
		add(r->file.ranges, r->file.ranges_bytes);
		break;
	default:; /* nothing follows */
	}
	while (len % 8)
		add("", 1);
	ck_assert_uint_eq(total, len);
}

/* From memory of exactly its size, so that a sanitizer sees each byte that is read too much. */
static inline int unpack_exact(const uint8_t *data, uint32_t n)
{
	static uint8_t *last; /* what 'out' points into */
	free(last);
	last = malloc(n ? n : 1);
	ck_assert_ptr_nonnull(last);
	memcpy(last, data, n);
	return pf_record_unpack(last, n, &out);
}

static inline void ck_good(const struct pf_record *r)
{
	build(r);
	ck_assert_int_eq(unpack_exact(bytes, len), 0);
	ck_assert_int_eq(out.type, r->type);
	ck_assert_uint_eq(out.ino, r->ino);
	ck_assert_int_eq(out.time.tv_sec, r->time.tv_sec);
	ck_assert_int_eq(out.time.tv_nsec, r->time.tv_nsec);
}

static inline void ck_bytes(struct pf_record_bytes got, struct pf_record_bytes want)
{
	ck_assert_uint_eq(got.len, want.len);
	if (got.len)
		ck_assert_mem_eq(got.data, want.data, got.len);
}

/* -- samples: every field has a value of its own ----------------------------------------------------------------------- */
static inline struct pf_record_bytes text(const char *s)
{
	return (struct pf_record_bytes){ s, (uint32_t)strlen(s) };
}

/* @n different letters; static, so one of a kind at a time. */
static inline struct pf_record_bytes letters(uint32_t n)
{
	static char buf[PF_MAX_XATTR_BYTES];
	for (uint32_t i = 0; i < n; i++)
		buf[i] = (char)('a' + i % 26);
	return (struct pf_record_bytes){ buf, n };
}

static const struct timespec then = { 1700000001, 123456789 };
static inline struct pf_record sample_create(void)
{
	return (struct pf_record){ PF_RECORD_CREATE, 17, then,
				   .create = { 3, 18, S_IFREG | 04755, 1000, 1001, .name = text("name") } };
}

static inline struct pf_record sample_symlink(void)
{
	struct pf_record r = sample_create();
	r.create.mode = S_IFLNK | 0777;
	r.create.data_id = 0;
	r.create.target = text("../target");
	return r;
}

static inline struct pf_record sample_device(void)
{
	return (struct pf_record){ PF_RECORD_CREATE, 19, then,
				   .create = { 3, 0, S_IFBLK | 0600, 4, 5, 8, 17, .name = text("sda") } };
}

static inline struct pf_record sample_link(void)
{
	return (struct pf_record){ PF_RECORD_LINK, 21, then, .name = { 5, text("second") } };
}

static inline struct pf_record sample_remove(void)
{
	return (struct pf_record){ PF_RECORD_REMOVE, 22, then, .name = { 6, text("gone") } };
}

static inline struct pf_record sample_rename(void)
{
	return (struct pf_record){
		.type = PF_RECORD_RENAME, .ino = 31, .time = then,
		.rename = { .old_parent = 7, .new_parent = 8, .target = 32, .flags = PF_RECORD_RENAME_EXCHANGE,
			    .old_name = text("old"), .new_name = text("newer") },
	};
}

static inline struct pf_record sample_setattr(void)
{
	return (struct pf_record){ PF_RECORD_SETATTR, 41, then, .setattr = { 63, 0640, 500, 501, { 111, 1 }, { 222, 2 } } };
}

static inline struct pf_record sample_xattr(void)
{
	return (struct pf_record){ PF_RECORD_XATTR, 51, then, .xattr = { false, text("user.x"), text("a value") } };
}

/* -- ranges ------------------------------------------------------------------------------------------------------------ */
static uint8_t ranges[MAX_BYTES];
static struct pf_record file;

static inline void begin_file(void)
{
	file = (struct pf_record){ PF_RECORD_FILE, 61, then, .file = { 62, 123456, { 333, 3 }, .ranges = ranges } };
}

static inline uint64_t crc_of(uint64_t block)
{
	return block * UINT64_C(0x9e3779b97f4a7c15);
}

static inline void add_range(enum pf_record_range_kind kind, uint64_t start, uint64_t nr, pf_addr addr)
{
	struct pf_record_range r = { .start = start, .nr = nr, .kind = kind, .addr = addr };
	uint8_t *p = ranges + file.file.ranges_bytes;
	uint32_t n = pf_record_range_pack(&r, p);
	ck_assert_uint_eq(n, PF_RECORD_RANGE_BYTES);
	if (kind == PF_RANGE_BLOCKS) {
		for (uint64_t i = 0; i < nr; i++, n += 8)
			*(struct le64 *)(p + n) = pf_le64(crc_of(start + i));
	}
	file.file.nr_ranges++;
	file.file.ranges_bytes += n;
}

static inline struct pf_record sample_file(void)
{
	begin_file();
	add_range(PF_RANGE_HOLE, 0, 10, 0);
	add_range(PF_RANGE_BLOCKS, 10, 3, pf_addr_make(1, 4711));
	add_range(PF_RANGE_UNWRITTEN, 20, 300, pf_addr_make(0, 999));
	add_range(PF_RANGE_BLOCKS, 320, 1, pf_addr_make(31, 1));
	return file;
}

typedef struct pf_record (*sample_fn)(void);
static const sample_fn samples[] = { sample_create, sample_symlink, sample_device, sample_link, sample_remove,
				     sample_rename, sample_setattr, sample_xattr, sample_file };
enum { NR_SAMPLES = sizeof(samples) / sizeof(samples[0]) };

#endif
