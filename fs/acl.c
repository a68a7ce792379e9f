/* SPDX-License-Identifier: MIT */
#include "acl.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

enum tag { USER_OBJ = 1, USER = 2, GROUP_OBJ = 4, GROUP = 8, MASK = 16, OTHER = 32 };
#define VERSION 2u

struct header {
	uint32_t version;
};
struct entry {
	uint16_t tag, perm;
	uint32_t id;
};

static unsigned count(size_t len)
{
	return (unsigned)((len - sizeof(struct header)) / sizeof(struct entry));
}

static struct entry *entries(const void *acl)
{
	return (struct entry *)((char *)acl + sizeof(struct header));
}

static struct entry *find(const void *acl, size_t len, enum tag tag)
{
	struct entry *e = entries(acl);
	for (unsigned i = 0; i < count(len); i++) {
		if (le16toh(e[i].tag) == tag)
			return &e[i];
	}
	return NULL;
}

bool acl_valid(const void *acl, size_t len)
{
	uint32_t version;
	if (len < sizeof(struct header) || len > ACL_MAX_BYTES || (len - sizeof(struct header)) % sizeof(struct entry))
		return false;
	memcpy(&version, acl, sizeof(version));
	if (le32toh(version) != VERSION)
		return false;
	unsigned nr[OTHER + 1] = { 0 }, last = 0;
	const struct entry *e = entries(acl);
	for (unsigned i = 0; i < count(len); i++) {
		unsigned tag = le16toh(e[i].tag);
		if (tag < last || le16toh(e[i].perm) > 7)
			return false;
		if (tag != USER_OBJ && tag != USER && tag != GROUP_OBJ && tag != GROUP && tag != MASK && tag != OTHER)
			return false;
		last = tag;
		nr[tag]++;
	}
	bool named = nr[USER] || nr[GROUP];
	return nr[USER_OBJ] == 1 && nr[GROUP_OBJ] == 1 && nr[OTHER] == 1 && nr[MASK] <= 1 && (!named || nr[MASK] == 1);
}

bool acl_is_minimal(size_t len)
{
	return count(len) == 3;
}

static struct entry *group_class(const void *acl, size_t len)
{
	struct entry *mask = find(acl, len, MASK);
	return mask ? mask : find(acl, len, GROUP_OBJ);
}

mode_t acl_mode(const void *acl, size_t len)
{
	return (mode_t)(le16toh(find(acl, len, USER_OBJ)->perm) << 6 | le16toh(group_class(acl, len)->perm) << 3 |
			le16toh(find(acl, len, OTHER)->perm));
}

unsigned acl_group_perm(const void *acl, size_t len)
{
	return le16toh(find(acl, len, GROUP_OBJ)->perm) & le16toh(group_class(acl, len)->perm);
}

void acl_chmod(void *acl, size_t len, mode_t mode)
{
	find(acl, len, USER_OBJ)->perm = htole16(mode >> 6 & 7);
	group_class(acl, len)->perm = htole16(mode >> 3 & 7);
	find(acl, len, OTHER)->perm = htole16(mode & 7);
}

mode_t acl_inherit(void *acl, size_t len, mode_t mode)
{
	mode &= acl_mode(acl, len);
	acl_chmod(acl, len, mode);
	return mode & 0777;
}
