/* SPDX-License-Identifier: MIT */
#include "ondisk/item_text.h"

#include "ondisk/item.h"
#include "ondisk/text.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

char *pf_addr_to_text(pf_addr addr, char *buf, size_t cap)
{
	struct pf_text t = pf_text_begin(buf, cap);
	pf_text_addr(&t, addr);
	return buf;
}

char *pf_ptr_to_text(const struct pf_ptr *ptr, char *buf, size_t cap)
{
	struct pf_text t = pf_text_begin(buf, cap);
	pf_text_addr(&t, ptr->addr[0]);
	if (ptr->addr[1]) {
		pf_text_put(&t, " and ");
		pf_text_addr(&t, ptr->addr[1]);
	}
	if (ptr->addr[0])
		pf_text_put(&t, " generation %" PRIu64 " crc 0x%016" PRIx64, ptr->generation, ptr->crc);
	return buf;
}

/* -- items ---------------------------------------------------------------------------------------------------------- */
static int inode_text(struct pf_text *t, struct pf_key key, const void *data, unsigned len)
{
	struct pf_inode_item i;
	(void)key;
	int err = pf_inode_item_unpack(data, len, &i);
	if (err)
		return err;
	pf_text_put(t, "mode 0%o uid %u gid %u nlink %u size %" PRIu64 " blocks %" PRIu64 " data %" PRIu64, i.mode, i.uid,
		    i.gid, i.nlink, i.size, i.blocks, i.data_id);
	if (S_ISDIR(i.mode))
		pf_text_put(t, " parent %" PRIu64 " next_cookie %" PRIu64, i.parent, i.next_cookie);
	if (S_ISCHR(i.mode) || S_ISBLK(i.mode))
		pf_text_put(t, " device %u:%u", i.rdev_major, i.rdev_minor);
	pf_text_put(t, " flags 0x%x", i.flags);
	pf_text_timespec(t, "atime", i.atime);
	pf_text_timespec(t, "mtime", i.mtime);
	pf_text_timespec(t, "ctime", i.ctime);
	pf_text_timespec(t, "btime", i.btime);
	return 0;
}

static int name_text(struct pf_text *t, struct pf_key key, const void *data, unsigned len)
{
	struct pf_name_item n;
	(void)key;
	int err = pf_name_item_unpack(data, len, &n);
	if (err)
		return err;
	pf_text_quoted(t, n.name, n.name_len);
	pf_text_put(t, " inode %" PRIu64 " type %u hash 0x%014" PRIx64, n.ino, n.dtype, n.hash_offset);
	return 0;
}

static int hash_text(struct pf_text *t, struct pf_key key, const void *data, unsigned len)
{
	struct pf_hash_item h;
	(void)key;
	int err = pf_hash_item_unpack(data, len, &h);
	if (!err)
		pf_text_put(t, "inode %" PRIu64 " cookie %" PRIu64 " type %u", h.ino, h.cookie, h.dtype);
	return err;
}

static int symlink_text(struct pf_text *t, struct pf_key key, const void *data, unsigned len)
{
	(void)key;
	pf_text_quoted(t, data, len);
	return 0;
}

static int xattr_text(struct pf_text *t, struct pf_key key, const void *data, unsigned len)
{
	struct pf_xattr_item x;
	if (pf_key_offset(key) & 0xff) { /* a later chunk: bytes of the value */
		pf_text_hex(t, data, len);
		return 0;
	}
	int err = pf_xattr_item_unpack(data, len, &x);
	if (err)
		return err;
	pf_text_quoted(t, x.name, x.name_len);
	pf_text_put(t, " length %u value ", x.value_len);
	pf_text_hex(t, x.part, x.part_len);
	return 0;
}

static int extent_text(struct pf_text *t, struct pf_key key, const void *data, unsigned len)
{
	struct pf_extent e;
	int err = pf_extent_unpack(key, data, len, &e);
	if (err)
		return err;
	pf_text_put(t, "blocks %u birth %" PRIu64 " at", e.nr, e.birth);
	for (unsigned i = 0; i < e.nr_copies; i++) {
		pf_text_put(t, " ");
		pf_text_addr(t, e.addr[i]);
	}
	if (e.flags & PF_EXTENT_UNWRITTEN)
		pf_text_put(t, " unwritten");
	if (e.flags & PF_EXTENT_NO_CSUM)
		pf_text_put(t, " no-crc");
	if (e.crc)
		pf_text_put(t, " crc 0x%016" PRIx64 "%s", pf_get64(e.crc[0]), e.nr > 1 ? "..." : "");
	return 0;
}

static int orphan_inode_text(struct pf_text *t, struct pf_key key, const void *data, unsigned len)
{
	(void)key;
	if (len)
		pf_text_hex(t, data, len);
	return 0;
}

static int orphan_range_text(struct pf_text *t, struct pf_key key, const void *data, unsigned len)
{
	struct pf_orphan_range r;
	(void)key;
	int err = pf_orphan_range_unpack(data, len, &r);
	if (!err)
		pf_text_put(t, "data %" PRIu64 " blocks [%" PRIu64 ", %" PRIu64 ") inode %" PRIu64, r.data_id,
			    r.from_block, r.to_block, r.ino);
	return err;
}

/* -- dispatch ------------------------------------------------------------------------------------------------------- */
struct type_text {
	unsigned type;
	const char *name;
	const char *object; /* what the key's object is; NULL: always the pool */
	const char *offset; /* what the key's offset is; NULL: always 0 */
	int (*text)(struct pf_text *t, struct pf_key key, const void *data, unsigned len);
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
	struct pf_text t = pf_text_begin(buf, cap);
	if (row)
		pf_text_put(&t, "%s", row->name);
	else
		pf_text_put(&t, "type %u", type);
	return buf;
}

char *pf_key_to_text(struct pf_key key, char *buf, size_t cap)
{
	const struct type_text *row = find_type(pf_key_type(key));
	struct pf_text t = pf_text_begin(buf, cap);
	if (!row) {
		pf_text_put(&t, "class %u object %" PRIu64 " type %u offset %" PRIu64, pf_key_class(key),
			    pf_key_object(key), pf_key_type(key), pf_key_offset(key));
		return buf;
	}
	pf_text_put(&t, "%s", row->name);
	if (row->object)
		pf_text_put(&t, "%s%s %" PRIu64, *row->object ? " " : "", row->object, pf_key_object(key));
	if (row->offset && !strcmp(row->offset, "hash"))
		pf_text_put(&t, " hash 0x%014" PRIx64, pf_key_offset(key));
	else if (row->offset)
		pf_text_put(&t, " %s %" PRIu64, row->offset, pf_key_offset(key));
	return buf;
}

char *pf_item_to_text(struct pf_key key, const void *data, unsigned len, char *buf, size_t cap)
{
	const struct type_text *row = find_type(pf_key_type(key));
	struct pf_text t = pf_text_begin(buf, cap);
	if (row && row->text(&t, key, data, len) == 0)
		return buf;
	t = pf_text_begin(buf, cap);
	pf_text_put(&t, "%s: ", row ? "INVALID" : "unknown");
	pf_text_hex(&t, data, len);
	return buf;
}
