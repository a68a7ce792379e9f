# SPDX-License-Identifier: MIT
# mkfs.poolfs, fsck.poolfs and poolfs (one command with verbs).
TOOLS_CPPFLAGS = $(AM_CPPFLAGS) $(BLKID_CFLAGS) $(UUID_CFLAGS)
TOOLS_LIBS = $(ENGINE_LIBS) $(BLKID_LIBS) $(UUID_LIBS)

# sbin_PROGRAMS += mkfs.poolfs fsck.poolfs
# bin_PROGRAMS += poolfs
# mkfs_poolfs_SOURCES = tools/mkfs.c tools/cli.c tools/cli.h
# mkfs_poolfs_CPPFLAGS = $(TOOLS_CPPFLAGS)
# mkfs_poolfs_LDADD = $(TOOLS_LIBS)
