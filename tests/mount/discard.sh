#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is deleted returns to the host of image files, and through devices; by itself, by poolfs trim and by fstrim.
. "$(dirname "$0")/functions.sh"
need losetup fallocate

allocated() { # FILE...: KiB on the host
	du -k -c "$@" | tail -1 | cut -f1
}
# sinks BELOW FILE...: within 20 s, to fewer KiB
sinks() {
	local i want=$1
	shift
	for ((i = 0; i < 200; i++)); do
		[ "$(allocated "$@")" -lt "$want" ] && return 0
		sleep 0.1
	done
	return 1
}
write_file() { # NAME MIB
	dd if=/dev/urandom of="$mnt/$1" bs=1M count="$2" status=none || die "writing $1"
}

# A host without holes proves nothing.
dd if=/dev/zero of="$work/probe" bs=1M count=4 status=none
fallocate -p -o 0 -l 4M "$work/probe" 2>/dev/null && [ "$(allocated "$work/probe")" -lt 1024 ] || skip "$work cannot punch holes"

# -- sparse images: by default, in every version that reclaims space, and soon
for ((version = 4; version <= newest; version++)); do
	mkfs_options=(--format-version "$version")
	make_pool 96M 64M
	fresh=$(allocated "$work"/[01].img)
	pool_mount commit=1
	write_file big 100
	cp -r /usr/include/linux "$mnt/tree"
	write_file kept 8
	sum=$(sha256sum <"$mnt/kept")
	"$POOLFS" sync "$mnt" || fail "poolfs sync"
	full=$(allocated "$work"/[01].img)
	[ "$full" -gt $((fresh + 100 * 1024)) ] || fail "version $version: $full KiB allocated after 100 MiB were written"
	rm -r "$mnt/big" "$mnt/tree"
	sinks $((fresh + 20 * 1024)) "$work"/[01].img ||
		fail "version $version: $(allocated "$work"/[01].img) KiB are still allocated, of $full; $fresh at first"
	# written again, read back past every cache, deleted just before the unmount
	write_file again 90
	again=$(sha256sum <"$mnt/again")
	pool_umount
	pool_check
	pool_mount
	equal "version $version: the file that stayed" "$sum" "$(sha256sum <"$mnt/kept")"
	equal "version $version: the file over discarded space" "$again" "$(sha256sum <"$mnt/again")"
	rm "$mnt/again"
	pool_umount
	[ "$(allocated "$work"/[01].img)" -lt $((fresh + 20 * 1024)) ] ||
		fail "version $version: $(allocated "$work"/[01].img) KiB allocated after the unmount; $fresh at first"
	pool_check
done
mkfs_options=()

# what mkfs had the host allocate stays allocated: superblocks, tables, log, and the share of the nodes
[ "$(allocated "$work"/[01].img)" -ge "$fresh" ] || fail "$(allocated "$work"/[01].img) KiB are less than the $fresh of mkfs"

# -- nodiscard; then in one go: by poolfs trim, also for a part of the users only
pool_mount nodiscard,commit=1
write_file big 100
rm "$mnt/big"
"$POOLFS" sync "$mnt" || fail "poolfs sync"
sleep 2
[ "$(allocated "$work"/[01].img)" -gt $((fresh + 90 * 1024)) ] || fail "nodiscard: space was given back"
if as_user true 2>/dev/null && [ "$(stat -c %a "$work")" = 755 ]; then
	exits 8 "only root" as_user "$POOLFS" trim "$mnt"
fi
text=$("$POOLFS" trim --minimum 1G "$mnt") || fail "poolfs trim --minimum"
[[ $text == "0 "* ]] || fail "trim --minimum 1G: $text"
text=$("$POOLFS" trim "$mnt") || fail "poolfs trim"
[[ $text == *MiB* ]] || fail "trim: $text"
[ "$(allocated "$work"/[01].img)" -lt $((fresh + 20 * 1024)) ] || fail "trim: $(allocated "$work"/[01].img) KiB still allocated"
# fstrim(8) by its own request
if command -v fstrim >/dev/null; then
	write_file big 100
	rm "$mnt/big"
	text=$(fstrim -v "$mnt" 2>&1) || fail "fstrim: $text"
	[[ $text == *trimmed* ]] || fail "fstrim -v printed: $text"
	[ "$(allocated "$work"/[01].img)" -lt $((fresh + 20 * 1024)) ] || fail "fstrim: $(allocated "$work"/[01].img) KiB still allocated"
fi
equal "the file that stayed, after trims" "$sum" "$(sha256sum <"$mnt/kept")"
pool_umount
pool_check
# of a pool that is not mounted
pool_mount nodiscard
write_file big 100
pool_umount
pool_mount nodiscard
rm "$mnt/big"
pool_umount
"$POOLFS" trim --json "$work/0.img" >"$work/out" || fail "poolfs trim of members"
python3 - "$work/out" <<'END' || fail "trim --json: $(cat "$work/out")"
import json, sys
with open(sys.argv[1]) as f:
    j = json.load(f)
sys.exit(not (j['complete'] and j['trimmed_bytes'] > 90 << 20 and j['unable'] == [] and j['failed'] == []))
END
[ "$(allocated "$work"/[01].img)" -lt $((fresh + 20 * 1024)) ] || fail "trim of members: $(allocated "$work"/[01].img) KiB"
pool_check
pool_mount ro
exits 8 "read-only" "$POOLFS" trim "$mnt"
equal "the file that stayed, at last" "$sum" "$(sha256sum <"$mnt/kept")"
pool_umount

# -- an image that was allocated in full stays so, unless it is said otherwise
rm -f "$work"/[01].img
fallocate -l 64M "$work/0.img" || die fallocate
"$MKFS" -q -f "$work/0.img" || die "mkfs.poolfs"
spec=$work/0.img
for option in commit=1 commit=1,discard; do
	pool_mount "$option"
	write_file big 40
	"$POOLFS" sync "$mnt"
	rm "$mnt/big"
	"$POOLFS" sync "$mnt"
	case $option in
	*discard) sinks $((40 * 1024)) "$work/0.img" || fail "discard: $(allocated "$work/0.img") KiB are allocated" ;;
	*)
		sleep 2
		[ "$(allocated "$work/0.img")" -ge $((64 * 1024)) ] || fail "an allocated image has shrunk: $(allocated "$work/0.img") KiB"
		;;
	esac
	pool_umount
done
pool_check

# -- a device: a loop device hands its discards on to the file; only when it is asked for
truncate -s 96M "$work/disk"
loops[0]=$(losetup -f --show "$work/disk") || skip "no loop devices here; all the rest is as it should be"
"$MKFS" -q -f "${loops[0]}" || die "mkfs.poolfs"
spec=${loops[0]}
fresh=$(allocated "$work/disk")
for option in commit=1 commit=1,discard; do
	pool_mount "$option"
	write_file big 60
	write_file kept 8
	sum=$(sha256sum <"$mnt/kept")
	"$POOLFS" sync "$mnt"
	full=$(allocated "$work/disk")
	[ "$full" -gt $((fresh + 60 * 1024)) ] || fail "device: $full KiB after 60 MiB were written"
	rm "$mnt/big"
	"$POOLFS" sync "$mnt"
	case $option in
	*discard) sinks $((fresh + 20 * 1024)) "$work/disk" || fail "device: $(allocated "$work/disk") KiB are allocated; $fresh at first" ;;
	*)
		sleep 2
		[ "$(allocated "$work/disk")" -gt $((fresh + 60 * 1024)) ] || fail "device: discarded without being asked"
		;;
	esac
	pool_umount
	pool_check
	pool_mount
	equal "device: the file that stayed" "$sum" "$(sha256sum <"$mnt/kept")"
	pool_umount
done
finish
