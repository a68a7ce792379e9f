#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Block devices: mounted, held, given twice, read-only, with partitions. Needs root and loop devices.
. "$(dirname "$0")/functions.sh"
need_root
need losetup mkfs.ext4 mount umount

image disk.img 64M
attach disk.img
disk=$loop

# -- a loop device and the file behind it are one thing
refuses 1 "$disk is the loop device of disk.img" "$MKFS" -f disk.img "$disk"
refuses 1 "disk.img is the file behind $disk" "$MKFS" -f "$disk" disk.img
refuses 1 "disk.img: in use: attached to $disk" "$MKFS" -f disk.img
ln -s "$disk" link
refuses 1 "link is the same device as $disk" "$MKFS" -f "$disk" link

# -- mounted: not even with -f
mkfs.ext4 -q "$disk"
mkdir mnt
if mount "$disk" mnt 2>/dev/null; then
	run "$MKFS" -f "$disk"
	expect_exit 1
	expect_err "$disk: in use: mounted on $work/mnt; nothing was changed"
	umount mnt
	e2fsck -fn "$disk" >/dev/null 2>&1 || fail "mkfs damaged a mounted filesystem"
fi
refuses 1 "$disk: contains an existing filesystem \\(ext4\\)" "$MKFS" "$disk"

# -- read-only
image ro.img
attach ro.img -r
refuses 1 "$loop.*read-only" "$MKFS" -f "$loop"

# -- version 1 admits image files only
image one.img 64M
refuses 1 "$disk.*(image file|version 1)" "$MKFS" -f --format-version 1 one.img "$disk"

# -- a pool on a device: the old signature is gone, and a second mkfs knows ours
accepts "$MKFS" -f -L dev "$disk"
expect_err "overwriting an existing filesystem \\(ext4\\)"
[ -z "$(blkid -p -o value -s TYPE "$disk")" ] || fail "the ext4 signature is still there"
refuses 1 "$disk: contains member 1 of 1 of the poolfs pool \"dev\"" "$MKFS" "$disk"
accepts "$FSCK" -n "$disk"
accepts "$POOLFS" status --json "$disk"
json 'j["members"][0]["kind"] == "device"'

# -- partitions: one that is mounted keeps the whole disk, and the disk cannot be given with its partition
if command -v partx >/dev/null && command -v sgdisk >/dev/null; then
	image parts.img 128M
	sgdisk -n 1:2048:+48M -n 2:0:0 parts.img >/dev/null
	attach parts.img
	whole=$loop
	partx -d "$whole" 2>/dev/null
	if partx -a "$whole" 2>/dev/null && [ -b "${whole}p1" ]; then
		refuses 1 "${whole}p1 is a partition of $whole" "$MKFS" -f "$whole" "${whole}p1"
		refuses 1 "$whole: contains a partition table \\(gpt\\)" "$MKFS" "$whole"
		mkfs.ext4 -q "${whole}p1"
		if mount "${whole}p1" mnt 2>/dev/null; then
			run "$MKFS" -f "$whole"
			expect_exit 1
			expect_err "$whole: in use: mounted on $work/mnt"
			umount mnt
		fi
		accepts "$MKFS" -q "${whole}p2" "$disk" -f
		accepts "$FSCK" -n "$disk" "${whole}p2"
		partx -d "$whole"
		accepts "$MKFS" -q -f "$whole"
		[ -z "$(blkid -p -o value -s PTTYPE "$whole")" ] || fail "a partition table is still there"
	fi
fi
finish
