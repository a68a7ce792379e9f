#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every format version, both placements: a tree goes in, is the same after a remount, and goes out again.
. "$(dirname "$0")/functions.sh"

tree=/usr/include/linux
for version in $(seq "$newest"); do
	for placement in file stripe; do
		what="version $version, placement $placement"
		mkfs_options=(--format-version "$version" --placement "$placement")
		make_pool 48M 48M 48M
		pool_mount
		cp -a "$tree" "$mnt/tree" || fail "$what: cp -a"
		dd if=/dev/urandom of="$work/big" bs=1M count=60 status=none
		cp "$work/big" "$mnt/big" || fail "$what: a file that is larger than a member"
		dd if="$work/big" of="$mnt/big" bs=64K count=100 skip=100 seek=100 conv=notrunc,fsync status=none
		pool_umount
		pool_check
		pool_mount
		diff -r --no-dereference "$tree" "$mnt/tree" || fail "$what: the tree differs"
		cmp "$work/big" "$mnt/big" || fail "$what: the large file differs"
		rm -rf "${mnt:?}"/* || fail "$what: rm -rf"
		pool_umount
		pool_check
	done
done
finish
