# SPDX-License-Identifier: MIT
# mount.poolfs (helper and daemon) and umount.fuse.poolfs. The only programs that see libfuse.
FS_CPPFLAGS = $(AM_CPPFLAGS) $(FUSE_CFLAGS)
FS_LIBS = $(ENGINE_LIBS) $(FUSE_LIBS)

fs_shared = \
	fs/child.c fs/child.h \
	fs/clock.h \
	fs/holder.c fs/holder.h \
	fs/log.c fs/log.h \
	fs/mountinfo.c fs/mountinfo.h \
	fs/namespace.c fs/namespace.h \
	fs/spawn.c fs/spawn.h \
	fs/spec.c fs/spec.h \
	fs/unmount.c fs/unmount.h \
	fs/utab.c fs/utab.h

helper_PROGRAMS += mount.poolfs umount.fuse.poolfs
mount_poolfs_SOURCES = \
	$(fs_shared) \
	fs/acl.c fs/acl.h \
	fs/daemon.c fs/daemon.h \
	fs/daemonize.c fs/daemonize.h \
	fs/find.c fs/find.h \
	fs/fuse_api.h \
	fs/main.c \
	fs/memory.c fs/memory.h \
	fs/notices.c fs/notices.h \
	fs/ops.c fs/ops.h \
	fs/ops_attr.c \
	fs/ops_control.c \
	fs/ops_dir.c \
	fs/ops_file.c \
	fs/ops_name.c \
	fs/ops_raw.c \
	fs/ops_seek.c \
	fs/ops_xattr.c \
	fs/options.c fs/options.h \
	fs/session.c fs/session.h \
	fs/transport.c fs/transport.h
mount_poolfs_CPPFLAGS = $(FS_CPPFLAGS)
mount_poolfs_LDADD = $(FS_LIBS)
umount_fuse_poolfs_SOURCES = $(fs_shared) fs/daemonize.h fs/elsewhere.c fs/elsewhere.h fs/umount_helper.c
umount_fuse_poolfs_CPPFLAGS = $(AM_CPPFLAGS)
umount_fuse_poolfs_LDADD = $(ENGINE_LIBS)

# The kernel calls the type of a mounted pool fuse.poolfs, and that is whom mount(8) asks to remount it.
install-exec-hook:
	cd '$(DESTDIR)$(helperdir)' && rm -f mount.fuse.poolfs && ln -s mount.poolfs mount.fuse.poolfs
uninstall-hook:
	rm -f '$(DESTDIR)$(helperdir)/mount.fuse.poolfs'
