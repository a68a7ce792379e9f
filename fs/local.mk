# SPDX-License-Identifier: MIT
# mount.poolfs (helper and daemon) and umount.fuse.poolfs. The only programs that see libfuse.
FS_CPPFLAGS = $(AM_CPPFLAGS) $(FUSE_CFLAGS) $(BLKID_CFLAGS)
FS_LIBS = $(ENGINE_LIBS) $(FUSE_LIBS) $(BLKID_LIBS)

# helper_PROGRAMS += mount.poolfs umount.fuse.poolfs
# mount_poolfs_SOURCES = fs/main.c fs/main.h
# mount_poolfs_CPPFLAGS = $(FS_CPPFLAGS)
# mount_poolfs_LDADD = $(FS_LIBS)
