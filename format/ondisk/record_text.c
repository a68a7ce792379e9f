/* SPDX-License-Identifier: MIT */
#include "ondisk/record_text.h"

#include "ondisk/text.h"

#include <inttypes.h>
#include <sys/stat.h>

static void put_name(struct pf_text *t, const struct pf_record_bytes *name)
{
	pf_text_put(t, " ");
	pf_text_quoted(t, name->data, name->len);
}

static void create_text(struct pf_text *t, const struct pf_record *r)
{
	pf_text_put(t, " inode %" PRIu64 " in %" PRIu64, r->ino, r->create.parent);
	if (r->create.name.len)
		put_name(t, &r->create.name);
	else
		pf_text_put(t, " unnamed");
	pf_text_put(t, " mode 0%o uid %u gid %u", r->create.mode, r->create.uid, r->create.gid);
	if (S_ISREG(r->create.mode))
		pf_text_put(t, " data %" PRIu64, r->create.data_id);
	if (S_ISCHR(r->create.mode) || S_ISBLK(r->create.mode))
		pf_text_put(t, " device %u:%u", r->create.rdev_major, r->create.rdev_minor);
	pf_text_timespec(t, "time", r->time);
	if (S_ISLNK(r->create.mode)) { /* last: it may be cut */
		pf_text_put(t, " target");
		put_name(t, &r->create.target);
	}
}

static void name_text(struct pf_text *t, const struct pf_record *r)
{
	pf_text_put(t, " inode %" PRIu64 " in %" PRIu64, r->ino, r->name.parent);
	put_name(t, &r->name.name);
	pf_text_timespec(t, "time", r->time);
}

static void rename_text(struct pf_text *t, const struct pf_record *r)
{
	pf_text_put(t, " inode %" PRIu64 " from %" PRIu64, r->ino, r->rename.old_parent);
	put_name(t, &r->rename.old_name);
	pf_text_put(t, " to %" PRIu64, r->rename.new_parent);
	put_name(t, &r->rename.new_name);
	if (r->rename.target)
		pf_text_put(t, " %s inode %" PRIu64,
			    r->rename.flags & PF_RECORD_RENAME_EXCHANGE ? "exchanged with" : "over", r->rename.target);
	pf_text_timespec(t, "time", r->time);
}

static void setattr_text(struct pf_text *t, const struct pf_record *r)
{
	unsigned mask = r->setattr.mask;
	pf_text_put(t, " inode %" PRIu64, r->ino);
	if (mask & PF_SET_MODE)
		pf_text_put(t, " mode 0%o", r->setattr.mode);
	if (mask & PF_SET_UID)
		pf_text_put(t, " uid %u", r->setattr.uid);
	if (mask & PF_SET_GID)
		pf_text_put(t, " gid %u", r->setattr.gid);
	if (mask & PF_SET_ATIME)
		pf_text_timespec(t, "atime", r->setattr.atime);
	if (mask & PF_SET_MTIME)
		pf_text_timespec(t, "mtime", r->setattr.mtime);
	if (mask & PF_SET_CTIME)
		pf_text_timespec(t, "ctime", r->time);
}

static void xattr_text(struct pf_text *t, const struct pf_record *r)
{
	pf_text_put(t, " inode %" PRIu64 " %s", r->ino, r->xattr.remove ? "remove" : "set");
	put_name(t, &r->xattr.name);
	pf_text_timespec(t, "time", r->time);
	if (!r->xattr.remove) {
		pf_text_put(t, " length %u value ", r->xattr.value.len);
		pf_text_hex(t, r->xattr.value.data, r->xattr.value.len);
	}
}

static void file_text(struct pf_text *t, const struct pf_record *r)
{
	pf_text_put(t, " inode %" PRIu64 " data %" PRIu64 " size %" PRIu64 " ranges %u", r->ino, r->file.data_id,
		    r->file.size, r->file.nr_ranges);
	pf_text_timespec(t, "mtime", r->file.mtime);
	pf_text_timespec(t, "ctime", r->time);
}

struct type_text {
	const char *name;
	void (*text)(struct pf_text *t, const struct pf_record *r);
};
static const struct type_text types[] = {
	[PF_RECORD_CREATE] = { "create", create_text },
	[PF_RECORD_LINK] = { "link", name_text },
	[PF_RECORD_REMOVE] = { "remove", name_text },
	[PF_RECORD_RENAME] = { "rename", rename_text },
	[PF_RECORD_SETATTR] = { "setattr", setattr_text },
	[PF_RECORD_XATTR] = { "xattr", xattr_text },
	[PF_RECORD_FILE] = { "file", file_text },
};

static void put_type(struct pf_text *t, unsigned type)
{
	if (type < sizeof(types) / sizeof(types[0]) && types[type].name)
		pf_text_put(t, "%s", types[type].name);
	else
		pf_text_put(t, "type %u", type);
}

char *pf_record_type_to_text(unsigned type, char *buf, size_t cap)
{
	struct pf_text t = pf_text_begin(buf, cap);
	put_type(&t, type);
	return buf;
}

char *pf_record_to_text(const void *data, uint32_t len, char *buf, size_t cap)
{
	struct pf_text t = pf_text_begin(buf, cap);
	struct pf_record r;
	if (pf_record_unpack(data, len, &r) != 0) {
		pf_text_put(&t, "INVALID: ");
		pf_text_hex(&t, data, len);
		return buf;
	}
	put_type(&t, r.type);
	types[r.type].text(&t, &r);
	return buf;
}

char *pf_record_range_to_text(const struct pf_record_range *range, char *buf, size_t cap)
{
	static const char *const kinds[] = {
		[PF_RANGE_HOLE] = "hole",
		[PF_RANGE_UNWRITTEN] = "unwritten",
		[PF_RANGE_BLOCKS] = "blocks",
	};
	struct pf_text t = pf_text_begin(buf, cap);
	uint64_t end = range->start + range->nr;
	pf_text_put(&t, "%s [%" PRIu64 ", ", kinds[range->kind], range->start);
	if (end == PF_KEY_FIELD_MAX)
		pf_text_put(&t, "end)");
	else
		pf_text_put(&t, "%" PRIu64 ")", end);
	if (range->addr) {
		pf_text_put(&t, " at ");
		pf_text_addr(&t, range->addr);
	}
	if (range->crc)
		pf_text_put(&t, " crc 0x%016" PRIx64 "%s", pf_get64(range->crc[0]), range->nr > 1 ? "..." : "");
	return buf;
}
