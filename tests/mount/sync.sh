#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# poolfs sync that cannot succeed: it says so, and what it does not know itself is in the daemon's log, every time: what, where and
# what to do.
. "$(dirname "$0")/functions.sh"
need losetup "$POOLFS"

# start SPEC: with a new log
start() {
	: >"$work/log"
	serve "$1" commit=3600
}
# stop CODE
stop() {
	"$UMOUNT" -f "$mnt" 2>/dev/null
	wait $daemon
	equal "exit code of the daemon" "$1" $?
}
# logged WORD...: since the last call
logged() {
	local word new
	new=$(tail -n "+$((lines + 1))" "$work/log")
	lines=$(wc -l <"$work/log")
	for word in "$@"; do
		[[ $new == *"$word"* ]] || fail "the log lacks '$word': $new"
	done
}
lines=0

# -- the filesystem that holds an image is full
mkdir "$work/host"
mount -t tmpfs -o size=40M tmpfs "$work/host" || skip "no tmpfs"
"$MKFS" -q --size 128M "$work/host/a.img" || die "mkfs"
start "$work/host/a.img"
fallocate -l "$(df --output=avail -B1 "$work/host" | tail -n 1)" "$work/host/fill"
echo small >"$mnt/before"
head -c 5M /dev/urandom >"$work/data"
# in memory of the daemon, not of the kernel
dd if="$work/data" of="$mnt/f" bs=4K count=100 oflag=direct status=none
for _ in 1 2 3; do
	exits 8 "$mnt: not everything could be made durable: No space left on device; the log of the daemon says why" "$POOLFS" sync "$mnt"
	logged "sync: no space" "the filesystem that holds an image member" "make room and sync again"
done
grep -q "$work/host/a.img: allocation.*failed: No space left on device; make room on the filesystem that holds it" "$work/log" ||
	grep -q "$work/host/a.img: write.*failed: No space left on device; make room on the filesystem that holds it" "$work/log" ||
	fail "the log does not name the member: $(cat "$work/log")"
rm "$work/host/fill"
exits 0 "" "$POOLFS" sync "$mnt"
cmp -n 409600 "$work/data" "$mnt/f" || fail "data after there was room again"
stop 0
umount "$work/host"

# -- the pool is full: the tool knows that by itself
make_pool 32M
lines=0
start "$spec"
head -c 60M /dev/zero 2>/dev/null | tr '\0' x >"$mnt/f" 2>/dev/null && fail "60M in a pool of 32M"
text=$("$POOLFS" sync "$mnt" 2>&1)
code=$?
if [ $code != 0 ]; then # the program that wrote may have heard of everything
	equal "exit code" 8 $code
	[[ $text == *"$mnt: what was written lately found no room"*"make room in the pool"* ]] || fail "poolfs sync says: $text"
fi
exits 0 "" "$POOLFS" sync "$mnt"
stop 0

# -- a device that lost its end
truncate -s 64M "$work/disk"
loop=$(losetup -f --show "$work/disk") || skip "no loop devices here"
loops+=("$loop")
"$MKFS" -q -f "$loop" || die "mkfs"
lines=0
start "$loop"
truncate -s 2M "$work/disk" && losetup -c "$loop"
cp "$work/data" "$mnt/f" 2>/dev/null
sync "$mnt/f" 2>/dev/null && fail "fsync on a device that lost its end"
text=$("$POOLFS" sync "$mnt" 2>&1)
[[ -z $text || $text == *"Input/output error; the log of the daemon says why"* ]] || fail "poolfs sync says: $text"
logged "$loop: write of" "behind its end, the member was truncated; check the disk"
# and then all of it
truncate -s 4096 "$work/disk" && losetup -c "$loop"
mkdir "$mnt/d"
exits 8 "$mnt: not everything could be made durable: Input/output error; the log of the daemon says why" "$POOLFS" sync "$mnt"
logged "$loop: " "takes no more changes" "run fsck.poolfs"
exits 8 "Input/output error" "$POOLFS" sync "$mnt"
logged "sync: the pool has taken no changes since" "check the members' disks, unmount and run fsck.poolfs"
stop 32
finish
