# SPDX-License-Identifier: MIT
# libpoolfs: the engine. Folders bottom to top, files in the order of the alphabet.
noinst_LIBRARIES += libpoolfs.a

libpoolfs_a_SOURCES = \
	format/poolfs.h \
	format/base/csum.c \
	format/base/csum.h \
	format/base/endian.h \
	format/base/env.c \
	format/base/env.h \
	format/base/error.c \
	format/base/error.def \
	format/base/error.h \
	format/ondisk/geometry.c \
	format/ondisk/geometry.h \
	format/ondisk/item_text.c \
	format/ondisk/item_text.h \
	format/ondisk/ondisk.h \
	format/ondisk/ondisk_super.h \
	format/ondisk/ondisk_tree.h \
	format/ondisk/super.c \
	format/ondisk/super.h \
	format/ondisk/version.c \
	format/ondisk/version.def \
	format/ondisk/version.h \
	format/member/aio.c \
	format/member/aio.h \
	format/member/assemble.c \
	format/member/assemble.h \
	format/member/assemble_text.c \
	format/member/io.h \
	format/member/io_file.c \
	format/member/io_file.h \
	format/member/io_open.c \
	format/member/io_open.h \
	format/member/scan.c \
	format/member/scan.h \
	format/member/set.c \
	format/member/set.h \
	format/member/super_ring.c \
	format/member/super_ring.h \
	format/space/alloc.c \
	format/space/bits.c \
	format/space/bits.h \
	format/space/epoch.c \
	format/space/group.c \
	format/space/private.h \
	format/space/reserve.c \
	format/space/space.c \
	format/space/space.h \
	format/space/table.c \
	format/space/txg.c \
	format/space/write.c \
	format/tree/tree.h \
	format/object/posix.h \
	format/pool/pool.h \
	format/check/check.h \
	format/check/problem.def
