# SPDX-License-Identifier: MIT
dist_doc_DATA += docs/BENCHMARKS.md docs/DESIGN.md docs/FORMAT.md docs/HACKING.md docs/PROBES.md

dist_man_MANS += \
	docs/man/fsck.poolfs.8 \
	docs/man/mkfs.poolfs.8 \
	docs/man/mount.poolfs.8 \
	docs/man/poolfs.5 \
	docs/man/poolfs-bench.1 \
	docs/man/poolfs.8 \
	docs/man/umount.fuse.poolfs.8
