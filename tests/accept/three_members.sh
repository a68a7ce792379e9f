#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An image file, a loop device and a partition take a real tree and a file that is larger than any of them, and give back every
# byte and attribute when mounted in another order; deleting returns every byte of room. All versions, with the members that
# they admit.
. "$(dirname "$0")/functions.sh"
need losetup sfdisk partx blockdev rsync sha256sum

image_mib=$(scaled 1024 176) loop_mib=$(scaled 2048 192) part_mib=$(scaled 1536 184) big_mib=$(scaled 2253 200)
need_room "$(scaled 10240 1024)"

real_tree "$work/tree" "$(scaled 1024)" "$(scaled 50000)" || die "cannot gather a tree from /usr"
head -c "${big_mib}M" /dev/urandom >"$work/big"
big_sum=$(sha256sum <"$work/big")
lap

# try VERSION PLACEMENT MEMBER...
try() {
	local version=$1 placement=$2 what="version $1, $2" text fresh member largest=0 size
	shift 2
	for member; do
		size=$(blockdev --getsize64 "$member" 2>/dev/null || stat -c %s "$member")
		[ "$size" -le $largest ] || largest=$size
	done
	[ $((big_mib << 20)) -gt "$largest" ] || die "the big file is not larger than any member"
	mkfs_options=(--format-version "$version" --placement "$placement")
	new_pool "$@"
	pool_mount
	fresh=$(df_bytes "$mnt")
	lap
	text=$(cp -a "$work/tree" "$mnt/" 2>&1) || fail "$what: cp -a: $text"
	[ -z "$text" ] || fail "$what: cp -a printed: $text"
	lap "$what: cp -a"
	cp "$work/big" "$mnt/big" || fail "$what: copying the big file"
	lap "$what: $big_mib MiB in one file"
	pool_umount
	lap "$what: unmounted"

	other_order
	pool_mount
	text=$(rsync -aHAXn --delete --checksum --itemize-changes "$work/tree/" "$mnt/tree/" 2>&1) || fail "$what: rsync: exit $?"
	[ -z "$text" ] || fail "$what: rsync finds differences: $(head -n 20 <<<"$text")"
	lap "$what: compared by rsync"
	equal "$what: SHA-256 of the big file" "$big_sum" "$(sha256sum <"$mnt/big")"
	lap "$what: big file read"
	pool_umount
	pool_check
	lap "$what: fsck.poolfs -n"
	text=$(pool_scrub) || fail "$what: $text"
	lap "$what: scrub: $text"

	other_order
	pool_mount
	lap
	rm -rf "$mnt/tree" "$mnt/big" || fail "$what: rm -rf"
	lap "$what: deleted"
	if [ "$version" -ge 4 ]; then
		wait_for_free "$fresh"
		lap "$what: free as when it was fresh (free, available: $fresh)"
	fi
	pool_umount
	pool_check
	pool_mount
	[ "$version" -lt 4 ] || equal "$what: free and available bytes after a remount" "$fresh" "$(df_bytes "$mnt")"
	equal "$what: files left" "" "$(ls -A "$mnt")"
	pool_umount
	pool_check
}

loop_device "$loop_mib"
loop=$device
loop_partition "$part_mib"
part=$device
truncate -s "${image_mib}M" "$work/image"
for row in '3 file' '4 file' '5 file' '5 stripe' '6 file'; do
	# shellcheck disable=SC2086
	try $row "$work/image" "$loop" "$part"
done
rm "$work/image"

# Version 2: raw members of equal size. Version 1: image files of equal size.
loop_device "$part_mib"
loop=$device
loop_device "$part_mib"
try 2 file "$part" "$loop" "$device"
for i in 0 1 2; do
	truncate -s "${part_mib}M" "$work/$i.img"
done
try 1 file "$work/0.img" "$work/1.img" "$work/2.img"
finish
