#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Members on block devices, found by a scan of the machine; mixed with an image file; held against others while mounted.
. "$(dirname "$0")/functions.sh"
need losetup

label=poolfs-test-$$
for i in 0 1; do
	truncate -s $((64 + 32 * i))M "$work/disk$i"
	loops[i]=$(losetup -f --show "$work/disk$i") || skip "no loop devices here"
done
truncate -s 48M "$work/2.img"
"$MKFS" -q -f -L "$label" "${loops[0]}" "$work/2.img" "${loops[1]}" || die "mkfs.poolfs"

all=${loops[1]}:$work/2.img:${loops[0]}
for spec in "$all" "$work/2.img" "${loops[0]}:$work/2.img" "pool=$label" "poolfs:$label"; do
	# neither a label nor a device says where image files are
	case $spec in
	*/2.img*) options= ;;
	*) options=search=$work ;;
	esac
	# the images behind the loop devices are members too: for a scan of $work they are the same ones a second time
	mkdir -p "$work/behind" && mv "$work"/disk? "$work/behind" 2>/dev/null
	pool_mount $options
	[ "$spec" != "$all" ] || cp -r /usr/include/linux "$mnt/tree"
	diff -r /usr/include/linux "$mnt/tree" || fail "$spec: the tree differs"
	python3 - "${loops[0]}" <<-'END' || fail "$spec: the device can be opened exclusively while it is mounted"
		import errno, os, sys
		try:
		    os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL)
		    sys.exit(1)
		except OSError as e:
		    sys.exit(e.errno != errno.EBUSY)
	END
	pool_umount
done
# the file behind a device is no second member, and no question: the device is taken
exits 32 "${loops[0]} and $work/behind/disk0 are the same file or device" "$MOUNT" "${loops[0]}:$work/behind/disk0:${loops[1]}" "$mnt"
mkdir "$work/behind/1" && mv "$work/behind/disk1" "$work/behind/1"
spec=$work/2.img
pool_mount "search=$work/behind"
[[ $("$POOLFS" status "$mnt") == *"${loops[0]}"* ]] || fail "the file behind ${loops[0]} was taken: $("$POOLFS" status "$mnt")"
pool_umount
# a loop device and its file lock each other out: by either name the pool is in use while the other is mounted
rm -rf "$work/one" && mkdir "$work/one" "$work/second"
truncate -s 32M "$work/one/file"
loops[2]=$(losetup -f --show "$work/one/file") || skip "no loop devices here"
"$MKFS" -q -f "${loops[2]}" || die "mkfs.poolfs"
spec=${loops[2]}
pool_mount
exits 32 "in use" "$MOUNT" "$work/one/file" "$work/second"
exits 32 "in use" "$MOUNT" "$work/one/file" "$work/second" -o ro
exits 8 "in use" "$FSCK" -y "$work/one/file"
pool_umount
spec=$work/one/file
pool_mount
exits 32 "in use" "$MOUNT" "${loops[2]}" "$work/second"
exits 32 "in use" "$MOUNT" "${loops[2]}" "$work/second" -o ro
exits 8 "in use" "$FSCK" -y "${loops[2]}"
pool_umount
pool_mount ro
"$MOUNT" "${loops[2]}" "$work/second" -o ro || fail "a second reader, by the other name"
"$UMOUNT" "$work/second" || fail "umount"
pool_umount
pool_check
exits 32 "no pool with the label or UUID '$label-none'" "$MOUNT" "pool=$label-none" "$mnt"

# a second pool of the same label: both are named, none is mounted
for i in 3 4; do
	truncate -s 32M "$work/$i.img"
	"$MKFS" -q -f -L "$label" "$work/$i.img" || die "mkfs.poolfs"
done
exits 32 "two pools have the label" "$MOUNT" "pool=$label" "$mnt" -o "search=$work"
mountpoint -q "$mnt" && fail "one of two pools was mounted"
text=$("$FSCK" -n "${loops[@]:0:2}" "$work/2.img" 2>&1) || fail "fsck.poolfs -n: $text"
finish
