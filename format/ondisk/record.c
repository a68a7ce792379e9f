/* SPDX-License-Identifier: MIT */
#include "ondisk/record.h"

#include "ondisk/item.h"

#include <string.h>
#include <sys/stat.h>

/* What of a record's bytes has not been looked at yet. */
struct rest {
	const uint8_t *p;
	uint32_t len;
};

static bool take(struct rest *rest, uint32_t len, struct pf_record_bytes *bytes)
{
	if (len > rest->len)
		return false;
	*bytes = (struct pf_record_bytes){ (const char *)rest->p, len };
	rest->p += len;
	rest->len -= len;
	return true;
}

static bool id_valid(uint64_t id)
{
	return id >= 1 && id <= PF_KEY_FIELD_MAX;
}

/* The name of a directory entry. */
static bool name_valid(const struct pf_record_bytes *name)
{
	const char *p = name->data;
	uint32_t len = name->len;
	return len >= 1 && len <= PF_MAX_NAME_BYTES && !memchr(p, 0, len) && !memchr(p, '/', len) &&
	       !(len == 1 && p[0] == '.') && !(len == 2 && p[0] == '.' && p[1] == '.');
}

static bool get_time(struct le64 sec, struct le32 nsec, struct timespec *t)
{
	*t = (struct timespec){ .tv_sec = (time_t)pf_get64(sec), .tv_nsec = (long)pf_get32(nsec) };
	return pf_get32(nsec) < 1000000000;
}

static struct le64 le_sec(struct timespec t)
{
	return pf_le64((uint64_t)t.tv_sec);
}

static struct le32 le_nsec(struct timespec t)
{
	return pf_le32((uint32_t)t.tv_nsec);
}

/* -- create --------------------------------------------------------------------------------------------------------- */
static uint32_t pack_create(const struct pf_record *rec, void *head)
{
	assert(rec->create.name.len <= PF_MAX_NAME_BYTES && rec->create.target.len <= PF_MAX_SYMLINK_BYTES);
	*(struct pf_disk_record_create *)head = (struct pf_disk_record_create){
		.parent = pf_le64(rec->create.parent),
		.ino = pf_le64(rec->ino),
		.data_id = pf_le64(rec->create.data_id),
		.time_sec = le_sec(rec->time),
		.time_nsec = le_nsec(rec->time),
		.mode = pf_le32(rec->create.mode),
		.uid = pf_le32(rec->create.uid),
		.gid = pf_le32(rec->create.gid),
		.rdev_major = pf_le32(rec->create.rdev_major),
		.rdev_minor = pf_le32(rec->create.rdev_minor),
		.name_len = pf_le16((uint16_t)rec->create.name.len),
		.target_len = pf_le16((uint16_t)rec->create.target.len),
	};
	return rec->create.name.len + rec->create.target.len;
}

/* Each kind of inode has what belongs to it and nothing else. */
static bool create_fits_type(const struct pf_record *rec)
{
	uint32_t mode = rec->create.mode;
	const struct pf_record_bytes *target = &rec->create.target;
	if (S_ISREG(mode) ? !id_valid(rec->create.data_id) : rec->create.data_id != 0)
		return false;
	if (!S_ISCHR(mode) && !S_ISBLK(mode) && (rec->create.rdev_major || rec->create.rdev_minor))
		return false;
	if (S_ISLNK(mode) ? !target->len || target->len > PF_MAX_SYMLINK_BYTES || memchr(target->data, 0, target->len)
			  : target->len != 0)
		return false;
	return rec->create.name.len ? name_valid(&rec->create.name) : S_ISREG(mode); /* O_TMPFILE makes regular files */
}

static bool unpack_create(const void *head, struct rest *rest, struct pf_record *rec)
{
	const struct pf_disk_record_create *disk = head;
	rec->ino = pf_get64(disk->ino);
	rec->create.parent = pf_get64(disk->parent);
	rec->create.data_id = pf_get64(disk->data_id);
	rec->create.mode = pf_get32(disk->mode);
	rec->create.uid = pf_get32(disk->uid);
	rec->create.gid = pf_get32(disk->gid);
	rec->create.rdev_major = pf_get32(disk->rdev_major);
	rec->create.rdev_minor = pf_get32(disk->rdev_minor);
	return id_valid(rec->ino) && id_valid(rec->create.parent) && pf_mode_valid(rec->create.mode) &&
	       get_time(disk->time_sec, disk->time_nsec, &rec->time) &&
	       take(rest, pf_get16(disk->name_len), &rec->create.name) &&
	       take(rest, pf_get16(disk->target_len), &rec->create.target) && create_fits_type(rec);
}

/* -- link, remove ----------------------------------------------------------------------------------------------------- */
static uint32_t pack_name(const struct pf_record *rec, void *head)
{
	assert(rec->name.name.len <= PF_MAX_NAME_BYTES);
	*(struct pf_disk_record_name *)head = (struct pf_disk_record_name){
		.parent = pf_le64(rec->name.parent),
		.ino = pf_le64(rec->ino),
		.time_sec = le_sec(rec->time),
		.time_nsec = le_nsec(rec->time),
		.name_len = pf_le16((uint16_t)rec->name.name.len),
	};
	return rec->name.name.len;
}

static bool unpack_name(const void *head, struct rest *rest, struct pf_record *rec)
{
	const struct pf_disk_record_name *disk = head;
	rec->ino = pf_get64(disk->ino);
	rec->name.parent = pf_get64(disk->parent);
	return id_valid(rec->ino) && id_valid(rec->name.parent) && get_time(disk->time_sec, disk->time_nsec, &rec->time) &&
	       take(rest, pf_get16(disk->name_len), &rec->name.name) && name_valid(&rec->name.name);
}

/* -- rename ----------------------------------------------------------------------------------------------------------- */
static uint32_t pack_rename(const struct pf_record *rec, void *head)
{
	assert(rec->rename.old_name.len <= PF_MAX_NAME_BYTES && rec->rename.new_name.len <= PF_MAX_NAME_BYTES);
	*(struct pf_disk_record_rename *)head = (struct pf_disk_record_rename){
		.old_parent = pf_le64(rec->rename.old_parent),
		.new_parent = pf_le64(rec->rename.new_parent),
		.ino = pf_le64(rec->ino),
		.target = pf_le64(rec->rename.target),
		.time_sec = le_sec(rec->time),
		.time_nsec = le_nsec(rec->time),
		.flags = pf_le32(rec->rename.flags),
		.old_len = pf_le16((uint16_t)rec->rename.old_name.len),
		.new_len = pf_le16((uint16_t)rec->rename.new_name.len),
	};
	return rec->rename.old_name.len + rec->rename.new_name.len;
}

static bool unpack_rename(const void *head, struct rest *rest, struct pf_record *rec)
{
	const struct pf_disk_record_rename *disk = head;
	rec->ino = pf_get64(disk->ino);
	rec->rename.old_parent = pf_get64(disk->old_parent);
	rec->rename.new_parent = pf_get64(disk->new_parent);
	rec->rename.target = pf_get64(disk->target);
	rec->rename.flags = pf_get32(disk->flags);
	bool exchange = rec->rename.flags == PF_RECORD_RENAME_EXCHANGE;
	if ((rec->rename.flags && !exchange) || (exchange && !rec->rename.target) ||
	    rec->rename.target > PF_KEY_FIELD_MAX || rec->rename.target == rec->ino)
		return false;
	return id_valid(rec->ino) && id_valid(rec->rename.old_parent) && id_valid(rec->rename.new_parent) &&
	       get_time(disk->time_sec, disk->time_nsec, &rec->time) &&
	       take(rest, pf_get16(disk->old_len), &rec->rename.old_name) && name_valid(&rec->rename.old_name) &&
	       take(rest, pf_get16(disk->new_len), &rec->rename.new_name) && name_valid(&rec->rename.new_name);
}

/* -- setattr ---------------------------------------------------------------------------------------------------------- */
#define SET_ALL (PF_SET_MODE | PF_SET_UID | PF_SET_GID | PF_SET_ATIME | PF_SET_MTIME | PF_SET_CTIME)

/* What a record sets, and zero for the rest. */
static struct timespec masked_time(const struct pf_record *rec, unsigned bit, struct timespec t)
{
	return rec->setattr.mask & bit ? t : (struct timespec){ 0 };
}

static uint32_t pack_setattr(const struct pf_record *rec, void *head)
{
	unsigned mask = rec->setattr.mask;
	struct timespec atime = masked_time(rec, PF_SET_ATIME, rec->setattr.atime);
	struct timespec mtime = masked_time(rec, PF_SET_MTIME, rec->setattr.mtime);
	struct timespec ctime = masked_time(rec, PF_SET_CTIME, rec->time);
	assert(mask && !(mask & ~(unsigned)SET_ALL));
	*(struct pf_disk_record_setattr *)head = (struct pf_disk_record_setattr){
		.ino = pf_le64(rec->ino),
		.mask = pf_le32(mask),
		.mode = pf_le32(mask & PF_SET_MODE ? rec->setattr.mode & 07777 : 0),
		.uid = pf_le32(mask & PF_SET_UID ? rec->setattr.uid : 0),
		.gid = pf_le32(mask & PF_SET_GID ? rec->setattr.gid : 0),
		.atime_sec = le_sec(atime),
		.mtime_sec = le_sec(mtime),
		.ctime_sec = le_sec(ctime),
		.atime_nsec = le_nsec(atime),
		.mtime_nsec = le_nsec(mtime),
		.ctime_nsec = le_nsec(ctime),
	};
	return 0;
}

static bool unset_time_valid(unsigned mask, unsigned bit, struct timespec t)
{
	return mask & bit || (!t.tv_sec && !t.tv_nsec);
}

static bool unpack_setattr(const void *head, struct rest *rest, struct pf_record *rec)
{
	const struct pf_disk_record_setattr *disk = head;
	(void)rest;
	unsigned mask = pf_get32(disk->mask);
	rec->ino = pf_get64(disk->ino);
	rec->setattr.mask = mask;
	rec->setattr.mode = pf_get32(disk->mode);
	rec->setattr.uid = pf_get32(disk->uid);
	rec->setattr.gid = pf_get32(disk->gid);
	return id_valid(rec->ino) && mask && !(mask & ~(unsigned)SET_ALL) && rec->setattr.mode <= 07777 &&
	       (mask & PF_SET_MODE || !rec->setattr.mode) && (mask & PF_SET_UID || !rec->setattr.uid) &&
	       (mask & PF_SET_GID || !rec->setattr.gid) &&
	       get_time(disk->atime_sec, disk->atime_nsec, &rec->setattr.atime) &&
	       get_time(disk->mtime_sec, disk->mtime_nsec, &rec->setattr.mtime) &&
	       get_time(disk->ctime_sec, disk->ctime_nsec, &rec->time) &&
	       unset_time_valid(mask, PF_SET_ATIME, rec->setattr.atime) &&
	       unset_time_valid(mask, PF_SET_MTIME, rec->setattr.mtime) && unset_time_valid(mask, PF_SET_CTIME, rec->time);
}

/* -- xattr ------------------------------------------------------------------------------------------------------------ */
static uint32_t pack_xattr(const struct pf_record *rec, void *head)
{
	uint32_t value_len = rec->xattr.remove ? 0 : rec->xattr.value.len;
	assert(rec->xattr.name.len <= PF_MAX_NAME_BYTES && value_len <= PF_MAX_XATTR_BYTES);
	*(struct pf_disk_record_xattr *)head = (struct pf_disk_record_xattr){
		.ino = pf_le64(rec->ino),
		.time_sec = le_sec(rec->time),
		.time_nsec = le_nsec(rec->time),
		.value_len = pf_le32(value_len),
		.name_len = pf_le16((uint16_t)rec->xattr.name.len),
		.flags = rec->xattr.remove ? PF_RECORD_XATTR_REMOVE : 0,
	};
	return rec->xattr.name.len + value_len;
}

static bool unpack_xattr(const void *head, struct rest *rest, struct pf_record *rec)
{
	const struct pf_disk_record_xattr *disk = head;
	struct pf_record_bytes *name = &rec->xattr.name;
	uint32_t value_len = pf_get32(disk->value_len);
	rec->ino = pf_get64(disk->ino);
	rec->xattr.remove = disk->flags & PF_RECORD_XATTR_REMOVE;
	if (disk->flags & ~PF_RECORD_XATTR_REMOVE || value_len > PF_MAX_XATTR_BYTES || (rec->xattr.remove && value_len))
		return false;
	return id_valid(rec->ino) && get_time(disk->time_sec, disk->time_nsec, &rec->time) &&
	       take(rest, pf_get16(disk->name_len), name) && name->len >= 1 && name->len <= PF_MAX_NAME_BYTES &&
	       !memchr(name->data, 0, name->len) && take(rest, value_len, &rec->xattr.value);
}

/* -- file ------------------------------------------------------------------------------------------------------------- */
static uint32_t pack_file(const struct pf_record *rec, void *head)
{
	assert(rec->file.ranges_bytes % 8 == 0);
	*(struct pf_disk_record_file *)head = (struct pf_disk_record_file){
		.ino = pf_le64(rec->ino),
		.data_id = pf_le64(rec->file.data_id),
		.size = pf_le64(rec->file.size),
		.mtime_sec = le_sec(rec->file.mtime),
		.ctime_sec = le_sec(rec->time),
		.mtime_nsec = le_nsec(rec->file.mtime),
		.ctime_nsec = le_nsec(rec->time),
		.nr_ranges = pf_le32(rec->file.nr_ranges),
	};
	return rec->file.ranges_bytes;
}

unsigned pf_record_range_pack(const struct pf_record_range *range, void *buf)
{
	*(struct pf_disk_record_range *)buf = (struct pf_disk_record_range){
		.start = pf_le64(range->start),
		.nr_blocks = pf_le64(range->nr),
		.addr = pf_le64(range->addr),
		.kind = (uint8_t)range->kind,
	};
	return sizeof(struct pf_disk_record_range);
}

/* Bytes of the range at @p, with its CRCs; 0 when the @len bytes there do not hold it. */
static uint32_t get_range(const uint8_t *p, uint32_t len, struct pf_record_range *range)
{
	const struct pf_disk_record_range *disk = (const void *)p;
	if (len < sizeof(*disk))
		return 0;
	*range = (struct pf_record_range){
		.start = pf_get64(disk->start),
		.nr = pf_get64(disk->nr_blocks),
		.kind = disk->kind,
		.addr = pf_get64(disk->addr),
	};
	if (range->kind != PF_RANGE_BLOCKS)
		return sizeof(*disk);
	if (range->nr > (len - sizeof(*disk)) / sizeof(struct le64))
		return 0;
	range->crc = (const struct le64 *)(disk + 1);
	return (uint32_t)(sizeof(*disk) + range->nr * sizeof(struct le64));
}

/* Blocks of a member that may exist: whether they do is for the pool to say. */
static bool place_valid(pf_addr addr, uint64_t nr)
{
	unsigned member = pf_addr_member(addr);
	uint64_t block = pf_addr_block(addr);
	return addr == pf_addr_make(member, block) && member < PF_MAX_MEMBERS && block != 0 &&
	       block < PF_MAX_MEMBER_BLOCKS && nr <= PF_MAX_MEMBER_BLOCKS - block;
}

static bool range_valid(const struct pf_record_range *range)
{
	uint64_t limit = range->kind == PF_RANGE_HOLE ? PF_KEY_FIELD_MAX : PF_MAX_FILE_BLOCKS;
	if (range->nr < 1 || range->start > limit || range->nr > limit - range->start)
		return false;
	switch (range->kind) {
	case PF_RANGE_HOLE:
		return range->addr == 0;
	case PF_RANGE_UNWRITTEN:
	case PF_RANGE_BLOCKS:
		return place_valid(range->addr, range->nr);
	default:
		return false;
	}
}

static bool ranges_valid(struct rest *rest, uint32_t nr)
{
	uint64_t end = 0;
	for (uint32_t i = 0; i < nr; i++) {
		struct pf_record_range range;
		uint32_t len = get_range(rest->p, rest->len, &range);
		if (!len || !range_valid(&range) || range.start < end)
			return false;
		end = range.start + range.nr;
		rest->p += len;
		rest->len -= len;
	}
	return true;
}

static bool unpack_file(const void *head, struct rest *rest, struct pf_record *rec)
{
	const struct pf_disk_record_file *disk = head;
	rec->ino = pf_get64(disk->ino);
	rec->file.data_id = pf_get64(disk->data_id);
	rec->file.size = pf_get64(disk->size);
	rec->file.nr_ranges = pf_get32(disk->nr_ranges);
	rec->file.ranges = rest->p;
	rec->file.ranges_bytes = rest->len;
	return id_valid(rec->ino) && id_valid(rec->file.data_id) && rec->file.size <= (uint64_t)PF_MAX_FILE_BYTES &&
	       get_time(disk->mtime_sec, disk->mtime_nsec, &rec->file.mtime) &&
	       get_time(disk->ctime_sec, disk->ctime_nsec, &rec->time) && ranges_valid(rest, rec->file.nr_ranges);
}

bool pf_record_next_range(const struct pf_record *rec, uint32_t *pos, struct pf_record_range *range)
{
	uint32_t len = get_range(rec->file.ranges + *pos, rec->file.ranges_bytes - *pos, range);
	*pos += len;
	return len != 0;
}

/* -- all types -------------------------------------------------------------------------------------------------------- */
struct codec {
	unsigned head_bytes;
	uint32_t (*pack)(const struct pf_record *rec, void *head); /* returns the bytes that follow the head */
	bool (*unpack)(const void *head, struct rest *rest, struct pf_record *rec);
};
static const struct codec codecs[] = {
	[PF_RECORD_CREATE] = { sizeof(struct pf_disk_record_create), pack_create, unpack_create },
	[PF_RECORD_LINK] = { sizeof(struct pf_disk_record_name), pack_name, unpack_name },
	[PF_RECORD_REMOVE] = { sizeof(struct pf_disk_record_name), pack_name, unpack_name },
	[PF_RECORD_RENAME] = { sizeof(struct pf_disk_record_rename), pack_rename, unpack_rename },
	[PF_RECORD_SETATTR] = { sizeof(struct pf_disk_record_setattr), pack_setattr, unpack_setattr },
	[PF_RECORD_XATTR] = { sizeof(struct pf_disk_record_xattr), pack_xattr, unpack_xattr },
	[PF_RECORD_FILE] = { sizeof(struct pf_disk_record_file), pack_file, unpack_file },
};
static_assert(PF_RECORD_HEAD_MAX >= sizeof(struct pf_disk_record_create), "the longest head");

static const struct codec *find_codec(unsigned type)
{
	return type < sizeof(codecs) / sizeof(codecs[0]) && codecs[type].pack ? &codecs[type] : NULL;
}

unsigned pf_record_pack(const struct pf_record *rec, void *head, uint32_t *total)
{
	const struct codec *codec = find_codec(rec->type);
	assert(codec);
	uint32_t follow_bytes = codec->pack(rec, head);
	*total = (codec->head_bytes + follow_bytes + 7) & ~UINT32_C(7);
	*(struct pf_disk_record_head *)head = (struct pf_disk_record_head){
		.len = pf_le32(*total),
		.type = (uint8_t)rec->type,
	};
	return codec->head_bytes;
}

/* The record ends where its length says, but for the zeros that make it a multiple of 8. */
static bool padding_valid(const struct rest *rest)
{
	static const uint8_t zeros[8];
	return rest->len < sizeof(zeros) && memcmp(rest->p, zeros, rest->len) == 0;
}

int pf_record_unpack(const void *data, uint32_t len, struct pf_record *rec)
{
	const struct pf_disk_record_head *head = data;
	memset(rec, 0, sizeof(*rec));
	if (len < sizeof(*head) || len % 8 || pf_get32(head->len) != len)
		return -PF_ELOG_INVALID;
	const struct codec *codec = find_codec(head->type);
	if (!codec || len < codec->head_bytes)
		return -PF_ELOG_INVALID;
	rec->type = head->type;
	struct rest rest = { (const uint8_t *)data + codec->head_bytes, len - codec->head_bytes };
	return codec->unpack(data, &rest, rec) && padding_valid(&rest) ? 0 : -PF_ELOG_INVALID;
}
