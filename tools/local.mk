# SPDX-License-Identifier: MIT
# mkfs.poolfs, fsck.poolfs and poolfs (one command with verbs).
TOOLS_CPPFLAGS = $(AM_CPPFLAGS) $(BLKID_CFLAGS) $(UUID_CFLAGS)
TOOLS_LIBS = tools/libtools.a $(ENGINE_LIBS) $(BLKID_LIBS) $(UUID_LIBS)

# What the programs share.
noinst_LIBRARIES += tools/libtools.a
tools_libtools_a_SOURCES = \
	tools/cli.c \
	tools/cli.h \
	tools/cli_values.c \
	tools/json.c \
	tools/json.h \
	tools/json_read.c \
	tools/members.c \
	tools/members.h \
	tools/probe.c \
	tools/probe.h \
	tools/status_fetch.c \
	tools/status_fetch.h \
	tools/utf8.h
tools_libtools_a_CPPFLAGS = $(TOOLS_CPPFLAGS)

sbin_PROGRAMS += mkfs.poolfs fsck.poolfs
bin_PROGRAMS += poolfs

mkfs_poolfs_SOURCES = \
	tools/mkfs.c \
	tools/mkfs_target.c \
	tools/mkfs_target.h
mkfs_poolfs_CPPFLAGS = $(TOOLS_CPPFLAGS)
mkfs_poolfs_LDADD = $(TOOLS_LIBS)

fsck_poolfs_SOURCES = tools/fsck.c
fsck_poolfs_CPPFLAGS = $(TOOLS_CPPFLAGS)
fsck_poolfs_LDADD = $(TOOLS_LIBS)

poolfs_SOURCES = \
	tools/cmd.c \
	tools/cmd.h \
	tools/cmd_dump.c \
	tools/cmd_scrub.c \
	tools/cmd_status.c \
	tools/cmd_sync.c \
	tools/cmd_trim.c \
	tools/cmd_upgrade.c \
	tools/dump.h \
	tools/dump_log.c \
	tools/dump_maps.c \
	tools/dump_super.c \
	tools/dump_tree.c \
	tools/poolfs.c \
	tools/status_text.c \
	tools/status_text.h
poolfs_CPPFLAGS = $(TOOLS_CPPFLAGS)
poolfs_LDADD = $(TOOLS_LIBS)
