#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The sequence by which the prototype showed its version 6: a file of 150 MiB over two members, synced, the daemon killed, mounted
# again, and it has the SHA-256 that it had; the scrub afterwards is clean. Here with each placement, for each way to sync, and
# with writes under way when the daemon is killed.
. "$(dirname "$0")/functions.sh"
need sha256sum

mib=150
need_room 1000
head -c ${mib}M /dev/urandom >"$work/big"
sum=$(sha256sum <"$work/big")

# KiB of both members that the host has allocated
allocated() {
	du -k "$work/0.img" "$work/1.img" | cut -f1 | paste -sd' '
}

# try VERSION PLACEMENT SYNC...
try() {
	local version=$1 placement=$2 what="version $1, $2, ${3##*/}" before after pid i writer
	shift 2
	mkfs_options=(--format-version "$version" --placement "$placement")
	make_pool 128M 128M
	before=$(allocated)
	pool_mount
	cp "$work/big" "$mnt/big" || fail "$what: cp"
	"$@" || fail "$what: $*"
	after=$(allocated)
	for i in 1 2; do
		[ $(($(cut -d' ' -f$i <<<"$after") - $(cut -d' ' -f$i <<<"$before"))) -gt 20000 ] ||
			fail "$what: KiB on the members before and after: $before, $after: not on both"
	done
	pid=$(daemon_pid "$mnt")
	while echo more >>"$mnt/more" && sync "$mnt/more" && cp /etc/passwd "$mnt/copy"; do :; done 2>/dev/null &
	writer=$!
	sleep 0.3
	kill -9 "$pid" || die "$what: the daemon was gone"
	wait $writer
	wait_gone "$pid" || die "$what: SIGKILL?"
	other_order
	mount_again
	equal "$what: size after the kill" $((mib << 20)) "$(stat -c %s "$mnt/big")"
	equal "$what: SHA-256 after the kill" "$sum" "$(sha256sum <"$mnt/big")"
	pool_umount
	pool_check
	figure "$what: $(pool_scrub)"
	pool_mount
	equal "$what: SHA-256 after another mount" "$sum" "$(sha256sum <"$mnt/big")"
	pool_umount
}

try 6 file sync "$mnt/big"
try 6 stripe "$POOLFS" sync "$mnt"
try 5 file sync "$mnt/big"
finish
