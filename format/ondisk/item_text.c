/* SPDX-License-Identifier: MIT */
#include "ondisk/item_text.h"

#include "ondisk/item.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct text {
	char *buf;
	size_t cap, len;
};

static void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	if (t->len + 1 >= t->cap)
		return;
	va_start(ap, fmt);
	int n = vsnprintf(t->buf + t->len, t->cap - t->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->len += (size_t)n < t->cap - t->len ? (size_t)n : t->cap - t->len - 1;
}

static struct text text_begin(char *buf, size_t cap)
{
	buf[0] = '\0';
	return (struct text){ .buf = buf, .cap = cap };
}

/* -- small things --------------------------------------------------------------------------------------------------- */
static void put_addr(struct text *t, pf_addr addr)
{
	if (addr)
		put(t, "%u:%" PRIu64, pf_addr_member(addr), pf_addr_block(addr));
	else
		put(t, "none");
}

static void put_quoted(struct text *t, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	put(t, "\"");
	for (size_t i = 0; i < len; i++) {
		if (p[i] < 0x20 || p[i] == 0x7f || p[i] == '"' || p[i] == '\\')
			put(t, "\\%03o", p[i]);
		else
			put(t, "%c", p[i]);
	}
	put(t, "\"");
}

static void put_hex(struct text *t, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	size_t shown = len < 64 ? len : 64;
	for (size_t i = 0; i < shown; i++)
		put(t, "%02x", p[i]);
	if (shown < len)
		put(t, "... (%zu bytes)", len);
}

static void put_time(struct text *t, const char *name, struct timespec ts)
{
	put(t, " %s %jd.%09ld", name, (intmax_t)ts.tv_sec, ts.tv_nsec);
}

char *pf_addr_to_text(pf_addr addr, char *buf, size_t cap)
{
	struct text t = text_begin(buf, cap);
	put_addr(&t, addr);
	return buf;
}

char *pf_ptr_to_text(const struct pf_ptr *ptr, char *buf, size_t cap)
{
	struct text t = text_begin(buf, cap);
	put_addr(&t, ptr->addr[0]);
	if (ptr->addr[1]) {
		put(&t, " and ");
		put_addr(&t, ptr->addr[1]);
	}
	if (ptr->addr[0])
		put(&t, " generation %" PRIu64 " crc 0x%016" PRIx64, ptr->generation, ptr->crc);
	return buf;
}

/* -- items ---------------------------------------------------------------------------------------------------------- */
static int inode_text(struct text *t, struct pf_key key, const void *data, unsigned len)
{
	struct pf_inode_item i;
	(void)key;
	int err = pf_inode_item_unpack(data, len, &i);
	if (err)
		return err;
	put(t, "mode 0%o uid %u gid %u nlink %u size %" PRIu64 " blocks %" PRIu64 " data %" PRIu64, i.mode, i.uid, i.gid,
	    i.nlink, i.size, i.blocks, i.data_id);
	if (S_ISDIR(i.mode))
		put(t, " parent %" PRIu64 " next_cookie %" PRIu64, i.parent, i.next_cookie);
	if (S_ISCHR(i.mode) || S_ISBLK(i.mode))
		put(t, " device %u:%u", i.rdev_major, i.rdev_minor);
	put(t, " flags 0x%x", i.flags);
	put_time(t, "atime", i.atime);
	put_time(t, "mtime", i.mtime);
	put_time(t, "ctime", i.ctime);
	put_time(t, "btime", i.btime);
	return 0;
}

static int name_text(struct text *t, struct pf_key key, const void *data, unsigned len)
{
	struct pf_name_item n;
	(void)key;
	int err = pf_name_item_unpack(data, len, &n);
	if (err)
		return err;
	put_quoted(t, n.name, n.name_len);
	put(t, " inode %" PRIu64 " type %u hash 0x%014" PRIx64, n.ino, n.dtype, n.hash_offset);
	return 0;
}

static int hash_text(struct text *t, struct pf_key key, const void *data, unsigned len)
{
	struct pf_hash_item h;
	(void)key;
	int err = pf_hash_item_unpack(data, len, &h);
	if (!err)
		put(t, "inode %" PRIu64 " cookie %" PRIu64 " type %u", h.ino, h.cookie, h.dtype);
	return err;
}

static int symlink_text(struct text *t, struct pf_key key, const void *data, unsigned len)
{
	(void)key;
	put_quoted(t, data, len);
	return 0;
}

static int xattr_text(struct text *t, struct pf_key key, const void *data, unsigned len)
{
	struct pf_xattr_item x;
	if (pf_key_offset(key) & 0xff) { /* a later chunk: bytes of the value */
		put_hex(t, data, len);
		return 0;
	}
	int err = pf_xattr_item_unpack(data, len, &x);
	if (err)
		return err;
	put_quoted(t, x.name, x.name_len);
	put(t, " length %u value ", x.value_len);
	put_hex(t, x.part, x.part_len);
	return 0;
}

static int extent_text(struct text *t, struct pf_key key, const void *data, unsigned len)
{
	struct pf_extent e;
	int err = pf_extent_unpack(key, data, len, &e);
	if (err)
		return err;
	put(t, "blocks %u birth %" PRIu64 " at", e.nr, e.birth);
	for (unsigned i = 0; i < e.nr_copies; i++) {
		put(t, " ");
		put_addr(t, e.addr[i]);
	}
	if (e.flags & PF_EXTENT_UNWRITTEN)
		put(t, " unwritten");
	if (e.flags & PF_EXTENT_NO_CSUM)
		put(t, " no-crc");
	if (e.crc)
		put(t, " crc 0x%016" PRIx64 "%s", pf_get64(e.crc[0]), e.nr > 1 ? "..." : "");
	return 0;
}

static int orphan_inode_text(struct text *t, struct pf_key key, const void *data, unsigned len)
{
	(void)key;
	if (len)
		put_hex(t, data, len);
	return 0;
}

static int orphan_range_text(struct text *t, struct pf_key key, const void *data, unsigned len)
{
	struct pf_orphan_range r;
	(void)key;
	int err = pf_orphan_range_unpack(data, len, &r);
	if (!err)
		put(t, "data %" PRIu64 " blocks [%" PRIu64 ", %" PRIu64 ") inode %" PRIu64, r.data_id, r.from_block,
		    r.to_block, r.ino);
	return err;
}

/* -- dispatch ------------------------------------------------------------------------------------------------------- */
struct type_text {
	unsigned type;
	const char *name;
	const char *object; /* what the key's object is; NULL: always the pool */
	const char *offset; /* what the key's offset is; NULL: always 0 */
	int (*text)(struct text *t, struct pf_key key, const void *data, unsigned len);
};
static const struct type_text types[] = {
	{ PF_TYPE_ORPHAN_INODE, "orphan-inode", NULL, "inode", orphan_inode_text },
	{ PF_TYPE_ORPHAN_RANGE, "orphan-range", NULL, "number", orphan_range_text },
	{ PF_TYPE_INODE, "inode", "", NULL, inode_text },
	{ PF_TYPE_SYMLINK, "symlink", "inode", "chunk", symlink_text },
	{ PF_TYPE_XATTR, "xattr", "inode", "hash", xattr_text },
	{ PF_TYPE_HASH, "hash", "dir", "hash", hash_text },
	{ PF_TYPE_NAME, "name", "dir", "cookie", name_text },
	{ PF_TYPE_EXTENT, "extent", "data", "block", extent_text },
};

static const struct type_text *find_type(unsigned type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (types[i].type == type)
			return &types[i];
	}
	return NULL;
}

char *pf_key_type_to_text(unsigned type, char *buf, size_t cap)
{
	const struct type_text *row = find_type(type);
	struct text t = text_begin(buf, cap);
	if (row)
		put(&t, "%s", row->name);
	else
		put(&t, "type %u", type);
	return buf;
}

char *pf_key_to_text(struct pf_key key, char *buf, size_t cap)
{
	const struct type_text *row = find_type(pf_key_type(key));
	struct text t = text_begin(buf, cap);
	if (!row) {
		put(&t, "class %u object %" PRIu64 " type %u offset %" PRIu64, pf_key_class(key), pf_key_object(key),
		    pf_key_type(key), pf_key_offset(key));
		return buf;
	}
	put(&t, "%s", row->name);
	if (row->object)
		put(&t, "%s%s %" PRIu64, *row->object ? " " : "", row->object, pf_key_object(key));
	if (row->offset && !strcmp(row->offset, "hash"))
		put(&t, " hash 0x%014" PRIx64, pf_key_offset(key));
	else if (row->offset)
		put(&t, " %s %" PRIu64, row->offset, pf_key_offset(key));
	return buf;
}

char *pf_item_to_text(struct pf_key key, const void *data, unsigned len, char *buf, size_t cap)
{
	const struct type_text *row = find_type(pf_key_type(key));
	struct text t = text_begin(buf, cap);
	if (row && row->text(&t, key, data, len) == 0)
		return buf;
	t = text_begin(buf, cap);
	put(&t, "%s: ", row ? "INVALID" : "unknown");
	put_hex(&t, data, len);
	return buf;
}
