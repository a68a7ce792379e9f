/* SPDX-License-Identifier: MIT */
#include "ondisk/item.h"

#include <string.h>
#include <sys/stat.h>

static struct pf_disk_time pack_time(struct timespec t)
{
	return (struct pf_disk_time){ pf_le64((uint64_t)t.tv_sec), pf_le32((uint32_t)t.tv_nsec) };
}

static int unpack_time(struct pf_disk_time disk, struct timespec *t)
{
	t->tv_sec = (time_t)pf_get64(disk.sec);
	t->tv_nsec = pf_get32(disk.nsec);
	return t->tv_nsec < 1000000000;
}

void pf_inode_item_pack(const struct pf_inode_item *item, struct pf_disk_inode *disk)
{
	*disk = (struct pf_disk_inode){
		.mode = pf_le32(item->mode),
		.uid = pf_le32(item->uid),
		.gid = pf_le32(item->gid),
		.nlink = pf_le32(item->nlink),
		.size = pf_le64(item->size),
		.blocks = pf_le64(item->blocks),
		.data_id = pf_le64(item->data_id),
		.parent = pf_le64(item->parent),
		.next_cookie = pf_le64(item->next_cookie),
		.rdev_major = pf_le32(item->rdev_major),
		.rdev_minor = pf_le32(item->rdev_minor),
		.flags = pf_le32(item->flags),
		.atime = pack_time(item->atime),
		.mtime = pack_time(item->mtime),
		.ctime = pack_time(item->ctime),
		.btime = pack_time(item->btime),
	};
}

bool pf_mode_valid(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		return !(mode & ~(uint32_t)(S_IFMT | 07777));
	default:
		return false;
	}
}

int pf_inode_item_unpack(const void *data, unsigned len, struct pf_inode_item *item)
{
	const struct pf_disk_inode *disk = data;
	if (len != sizeof(*disk))
		return -PF_EITEM_INVALID;
	*item = (struct pf_inode_item){
		.mode = pf_get32(disk->mode),
		.uid = pf_get32(disk->uid),
		.gid = pf_get32(disk->gid),
		.nlink = pf_get32(disk->nlink),
		.size = pf_get64(disk->size),
		.blocks = pf_get64(disk->blocks),
		.data_id = pf_get64(disk->data_id),
		.parent = pf_get64(disk->parent),
		.next_cookie = pf_get64(disk->next_cookie),
		.rdev_major = pf_get32(disk->rdev_major),
		.rdev_minor = pf_get32(disk->rdev_minor),
		.flags = pf_get32(disk->flags),
	};
	bool ok = pf_mode_valid(item->mode) && item->data_id <= PF_KEY_FIELD_MAX && item->parent <= PF_KEY_FIELD_MAX &&
		  item->next_cookie <= PF_KEY_FIELD_MAX && item->size <= (uint64_t)PF_MAX_FILE_BYTES &&
		  unpack_time(disk->atime, &item->atime) && unpack_time(disk->mtime, &item->mtime) &&
		  unpack_time(disk->ctime, &item->ctime) && unpack_time(disk->btime, &item->btime);
	return ok ? 0 : -PF_EITEM_INVALID;
}

unsigned pf_name_item_pack(const struct pf_name_item *item, void *buf)
{
	struct pf_disk_name *disk = buf;
	disk->ino = pf_le64(item->ino);
	disk->hash_offset = pf_le64(item->hash_offset);
	disk->dtype = (uint8_t)item->dtype;
	disk->name_len = (uint8_t)item->name_len;
	memcpy(disk->name, item->name, item->name_len);
	return (unsigned)sizeof(*disk) + item->name_len;
}

int pf_name_item_unpack(const void *data, unsigned len, struct pf_name_item *item)
{
	const struct pf_disk_name *disk = data;
	if (len < sizeof(*disk) || len != sizeof(*disk) + disk->name_len || !disk->name_len)
		return -PF_EITEM_INVALID;
	*item = (struct pf_name_item){
		.ino = pf_get64(disk->ino),
		.hash_offset = pf_get64(disk->hash_offset),
		.dtype = disk->dtype,
		.name = (const char *)disk->name,
		.name_len = disk->name_len,
	};
	bool ok = item->ino && item->ino <= PF_KEY_FIELD_MAX && item->hash_offset <= PF_KEY_FIELD_MAX &&
		  item->dtype <= 15 && !memchr(item->name, 0, item->name_len) && !memchr(item->name, '/', item->name_len);
	return ok ? 0 : -PF_EITEM_INVALID;
}

void pf_hash_item_pack(const struct pf_hash_item *item, struct pf_disk_hash *disk)
{
	*disk = (struct pf_disk_hash){
		.ino = pf_le64(item->ino),
		.cookie = pf_le64(item->cookie),
		.dtype = (uint8_t)item->dtype,
	};
}

int pf_hash_item_unpack(const void *data, unsigned len, struct pf_hash_item *item)
{
	const struct pf_disk_hash *disk = data;
	if (len != sizeof(*disk))
		return -PF_EITEM_INVALID;
	*item = (struct pf_hash_item){
		.ino = pf_get64(disk->ino),
		.cookie = pf_get64(disk->cookie),
		.dtype = disk->dtype,
	};
	bool ok = item->ino && item->ino <= PF_KEY_FIELD_MAX && item->cookie <= PF_KEY_FIELD_MAX && item->dtype <= 15;
	return ok ? 0 : -PF_EITEM_INVALID;
}

unsigned pf_xattr_item_pack(const struct pf_xattr_item *item, void *buf)
{
	struct pf_disk_xattr *disk = buf;
	*disk = (struct pf_disk_xattr){ .value_len = pf_le32(item->value_len), .name_len = (uint8_t)item->name_len };
	memcpy(disk->bytes, item->name, item->name_len);
	memcpy(disk->bytes + item->name_len, item->part, item->part_len);
	return (unsigned)sizeof(*disk) + item->name_len + item->part_len;
}

int pf_xattr_item_unpack(const void *data, unsigned len, struct pf_xattr_item *item)
{
	const struct pf_disk_xattr *disk = data;
	if (len < sizeof(*disk) || len < sizeof(*disk) + disk->name_len || !disk->name_len)
		return -PF_EITEM_INVALID;
	*item = (struct pf_xattr_item){
		.value_len = pf_get32(disk->value_len),
		.name = (const char *)disk->bytes,
		.name_len = disk->name_len,
		.part = disk->bytes + disk->name_len,
		.part_len = len - (unsigned)sizeof(*disk) - disk->name_len,
	};
	uint32_t part = item->value_len < PF_XATTR_CHUNK_BYTES ? item->value_len : PF_XATTR_CHUNK_BYTES;
	bool ok = item->value_len <= PF_MAX_XATTR_BYTES && item->part_len == part &&
		  !memchr(item->name, 0, item->name_len);
	return ok ? 0 : -PF_EITEM_INVALID;
}

unsigned pf_extent_pack(const struct pf_extent *extent, void *buf)
{
	struct pf_disk_extent *disk = buf;
	*disk = (struct pf_disk_extent){
		.nr_blocks = pf_le16((uint16_t)extent->nr),
		.flags = (uint8_t)extent->flags,
		.nr_copies = (uint8_t)extent->nr_copies,
		.birth = pf_le64(extent->birth),
	};
	for (unsigned i = 0; i < extent->nr_copies; i++)
		disk->addr_crc[i] = pf_le64(extent->addr[i]);
	unsigned nr_crc = extent->crc ? extent->nr : 0;
	if (nr_crc)
		memmove(disk->addr_crc + extent->nr_copies, extent->crc, nr_crc * sizeof(struct le64));
	return (unsigned)(sizeof(*disk) + (extent->nr_copies + nr_crc) * sizeof(struct le64));
}

int pf_extent_unpack(struct pf_key key, const void *data, unsigned len, struct pf_extent *extent)
{
	const struct pf_disk_extent *disk = data;
	if (len < sizeof(*disk))
		return -PF_EITEM_INVALID;
	*extent = (struct pf_extent){
		.data_id = pf_key_object(key),
		.start = pf_key_offset(key),
		.nr = pf_get16(disk->nr_blocks),
		.flags = disk->flags,
		.nr_copies = disk->nr_copies,
		.birth = pf_get64(disk->birth),
	};
	const unsigned known = PF_EXTENT_UNWRITTEN | PF_EXTENT_NO_CSUM;
	unsigned nr_crc = extent->flags & known ? 0 : extent->nr;
	bool ok = extent->nr >= 1 && extent->nr <= PF_MAX_EXTENT_BLOCKS && extent->nr_copies >= 1 &&
		  extent->nr_copies <= PF_MAX_COPIES && !(extent->flags & ~known) &&
		  extent->start + extent->nr <= PF_MAX_FILE_BLOCKS &&
		  len == sizeof(*disk) + (extent->nr_copies + nr_crc) * sizeof(struct le64);
	if (!ok)
		return -PF_EITEM_INVALID;
	for (unsigned i = 0; i < extent->nr_copies; i++)
		extent->addr[i] = pf_get64(disk->addr_crc[i]);
	if (nr_crc)
		extent->crc = disk->addr_crc + extent->nr_copies;
	return 0;
}

void pf_orphan_range_pack(const struct pf_orphan_range *range, struct pf_disk_orphan_range *disk)
{
	*disk = (struct pf_disk_orphan_range){
		.data_id = pf_le64(range->data_id),
		.ino = pf_le64(range->ino),
		.from_block = pf_le64(range->from_block),
		.to_block = pf_le64(range->to_block),
	};
}

int pf_orphan_range_unpack(const void *data, unsigned len, struct pf_orphan_range *range)
{
	const struct pf_disk_orphan_range *disk = data;
	if (len != sizeof(*disk))
		return -PF_EITEM_INVALID;
	*range = (struct pf_orphan_range){
		.data_id = pf_get64(disk->data_id),
		.ino = pf_get64(disk->ino),
		.from_block = pf_get64(disk->from_block),
		.to_block = pf_get64(disk->to_block),
	};
	bool ok = range->data_id && range->data_id <= PF_KEY_FIELD_MAX && range->ino <= PF_KEY_FIELD_MAX &&
		  range->from_block < range->to_block && range->to_block <= PF_KEY_FIELD_MAX;
	return ok ? 0 : -PF_EITEM_INVALID;
}
