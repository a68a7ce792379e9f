#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An overlay filesystem whose upper and work directories are in a pool: containers and live systems work like that. What is removed,
# renamed and replaced above a lower directory stays so, also over a remount and after a kill.
. "$(dirname "$0")/functions.sh"

[ "$(id -u)" = 0 ] || skip "mounting an overlay needs root"
grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null || skip "this kernel has no overlay filesystem"

lower=$work/lower merged=$work/merged
mkdir -p "$lower/dir/sub" "$lower/moved" "$merged"
echo lower >"$lower/file"
echo gone >"$lower/gone"
echo renamed >"$lower/old"
echo x >"$lower/dir/sub/x"
echo y >"$lower/moved/y"

make_pool 128M
pool_mount

mount_overlay()
{
	mkdir -p "$mnt/upper" "$mnt/work"
	mount -t overlay -o "lowerdir=$lower,upperdir=$mnt/upper,workdir=$mnt/work,redirect_dir=on" overlay "$merged" ||
		fail "the overlay cannot be mounted: $(dmesg | tail -3)"
}
unmount_overlay()
{
	umount "$merged" || fail "the overlay cannot be unmounted"
}
whiteout()
{
	equal "what $1 is" "character special file 0 0" "$(stat -c '%F %t %T' "$mnt/upper/$1")"
}
look()
{
	equal "a file that was changed" "lower
upper" "$(cat "$merged/file")"
	[ ! -e "$merged/gone" ] && [ ! -e "$merged/old" ] && [ ! -e "$merged/moved" ] || fail "$1: what was removed or renamed is there again"
	equal "a renamed file" renamed "$(cat "$merged/new")"
	equal "a renamed directory" y "$(cat "$merged/there/y")"
	equal "a directory made anew" z "$(ls "$merged/dir")"
	equal "all names" "dir file new there" "$(ls "$merged" | tr '\n' ' ' | sed 's/ $//')"
	whiteout gone
	whiteout old
	whiteout moved
}

before=$(dmesg 2>/dev/null | grep -c "overlayfs:")
mount_overlay
dmesg 2>/dev/null | grep "overlayfs:" | tail -n +$((before + 1)) | grep "upper fs\|not support\|falling back" &&
	fail "the overlay lacks something that an upper filesystem should have"
echo upper >>"$merged/file"
rm "$merged/gone"
mv "$merged/old" "$merged/new"
mv "$merged/moved" "$merged/there"
rm -r "$merged/dir"
mkdir "$merged/dir"
echo z >"$merged/dir/z"
look "at once"
unmount_overlay
pool_umount
pool_mount
mount_overlay
look "after a remount"

# What was synced survives the daemon.
mv "$merged/new" "$merged/newer"
mv "$merged/newer" "$merged/new"
sync -f "$merged/new"
python3 -c 'import os, sys; fd = os.open(sys.argv[1], os.O_RDONLY); os.fsync(fd)' "$mnt/upper"
unmount_overlay
pool_kill
pool_mount
mount_overlay
look "after a kill"
unmount_overlay
pool_umount
pool_check
finish
