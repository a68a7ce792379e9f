#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a user is told by mount.poolfs and by mount(8) when a pool cannot be mounted or made, and when it is full or read-only:
# what, where and what to do, with the exit codes of mount(8), and no byte of any member changed. (tests/cli does the same for
# the tools that need no mount.)
if [ -z "${POOLFS_IN_NAMESPACE:-}" ] && [ "$(id -u)" = 0 ]; then
	POOLFS_IN_NAMESPACE=1 exec unshare -m --propagation private bash "$0" "$@"
fi
. "$(dirname "$0")/functions.sh"
need losetup sfdisk partx mkfs.ext4 sha256sum
# Pools that others have mounted are not to live on in this namespace: their daemons would not end before it.
awk '$0 ~ / fuse.poolfs / { print $5 }' /proc/self/mountinfo | tac | while read -r dir; do
	umount -i -l "$dir"
done
POKE=${POKE:-$builddir/tests/cli/poke}
[ -x "$POKE" ] || skip "$POKE is not built"

# mount(8) finds the helper
sbin=$(readlink -f /sbin)
mkdir "$work/over"
ln -s "$(command -v "$MOUNT")" "$work/over/mount.poolfs"
mount -t overlay -o "lowerdir=$work/over:$sbin" overlay "$sbin" 2>"$work/err" || skip "no overlay on $sbin: $(cat "$work/err")"
trap 'umount -l "$sbin"; accept_cleanup' EXIT

cd "$work" || exit 99
mkdir pool other away
members=(pool/a.img pool/b.img pool/c.img)
"$MKFS" -q -L mine --size 24M "${members[@]}" || die "mkfs"
"$MKFS" -q -L other --size 24M other/x.img || die "mkfs"

fingerprint() {
	find pool other away ./*.img -type f -exec cksum {} + 2>/dev/null | sort
}
nr_said=0
# said CODE COMMAND...: nothing changes, the exit code is CODE and standard error has every line of $words; $words is what, where
# and what to do. Nothing is mounted.
said() {
	local want=$1 code text before word
	shift
	before=$(fingerprint)
	text=$(timeout 60 "$@" 2>&1 >/dev/null)
	code=$?
	equal "$*: exit code ($text)" "$want" $code
	while read -r word; do
		[[ $text == *"$word"* ]] || fail "$*: the message lacks '$word': $text"
	done <<<"$words"
	[ "$before" = "$(fingerprint)" ] || fail "$*: something was changed"
	mountpoint -q "$mnt" && {
		fail "$*: mounted"
		umount "$mnt"
	}
	[ "$(wc -l <<<"$text")" -le 3 ] || fail "$*: the message is long: $text"
	nr_said=$((nr_said + 1))
	[ "$text" = "${last_text:-}" ] || figure "$text"
	last_text=$text
}
# refused SPEC WORD...: by the helper, also read-only and faked, and by mount(8)
refused() {
	local spec=$1
	shift
	words=$(printf '%s\n' "$@")
	said 32 "$MOUNT" "$spec" "$mnt"
	said 32 "$MOUNT" "$spec" "$mnt" -o ro
	said 32 "$MOUNT" -f "$spec" "$mnt"
	said 32 mount -t poolfs "$spec" "$mnt"
}

# -- no such member, not a member
refused pool/no.img pool/no.img "no such member" "check the path"
refused pool/a.img:pool/no.img pool/no.img "no such member"
truncate -s 24M zeros.img
refused zeros.img zeros.img "not a poolfs member" mkfs.poolfs
refused pool/a.img:pool/b.img:zeros.img zeros.img "not a poolfs member"
truncate -s 24M ext4.img
mkfs.ext4 -q ext4.img
refused ext4.img ext4.img "not a poolfs member" ext4
refused pool pool "is a directory"
refused pool=nobody nobody

# -- members of two pools, one missing, one twice
refused pool/a.img:pool/b.img:other/x.img "two pools" other/x.img
mv pool/b.img away/
refused pool/a.img:pool/c.img "1 of its 3 members is missing: member 2" "name it too"
mv away/b.img pool/
refused pool/a.img:pool/a.img:pool/b.img:pool/c.img "same file" "once"
ln -s a.img pool/link.img
refused pool/a.img:pool/link.img:pool/b.img:pool/c.img "same file" "pool/a.img and pool/link.img"
rm pool/link.img
cp pool/a.img away/copy.img
refused pool/a.img:away/copy.img:pool/b.img:pool/c.img away/copy.img pool/a.img "member 1 of 3"
rm away/copy.img

# -- an older copy of a member, and one used elsewhere meanwhile
cp pool/c.img away/c.img
"$MOUNT" pool/a.img "$mnt" && head -c 3M /dev/urandom >"$mnt/f" && "$UMOUNT" "$mnt" || die "mount"
mv pool/c.img away/now.img
cp away/c.img pool/c.img
refused pool/a.img:pool/b.img:pool/c.img pool/c.img
mv away/now.img pool/c.img
rm away/c.img
"$FSCK" -n "${members[@]}" >/dev/null || fail "the pool is not clean after being refused"

# -- truncated
cp other/x.img short.img
truncate -s 23M short.img
refused short.img short.img
rm short.img

# -- in use: by a mount, and what mkfs and the other tools say of that
mkdir second
spec=pool/a.img:pool/b.img:pool/c.img
"$MOUNT" "$spec" "$mnt" || die "mount"
for command in "$MOUNT $spec second" "$MOUNT -o ro $spec second" "mount -t poolfs $spec second"; do
	# shellcheck disable=SC2086
	exits 32 "in use" $command
done
exits 8 "in use" "$FSCK" -p -f "${members[@]}"
exits 8 "in use" "$POOLFS" scrub "${members[@]}"
exits 8 "in use" "$POOLFS" upgrade pool/a.img
exits 1 "in use" "$MKFS" pool/b.img
exits 1 "in use" "$MKFS" -f pool/b.img
exits 1 "in use" "$MKFS" -f --size 24M new.img pool/c.img
[ ! -e new.img ] || fail "mkfs created a member of a pool that it refused"
cmp -s <(head -c 3M "$mnt/f") "$mnt/f" || fail "reading while others are refused"
"$UMOUNT" "$mnt" || fail "umount"
"$FSCK" -n "${members[@]}" >/dev/null || fail "the pool is not clean after mkfs -f was refused"

# -- in use and existing filesystems: devices
loop_device 40
loop=$device
mkfs.ext4 -q "$loop"
mkdir ext4
sum=$(sha256sum <"$loop")
exits 1 "ext4" "$MKFS" "$loop"
exits 1 "$loop" "$MKFS" "$loop"
equal "an ext4 that mkfs.poolfs refused" "$sum" "$(sha256sum <"$loop")"
mount "$loop" ext4 || die "mount ext4"
for options in '' -f; do
	# shellcheck disable=SC2086
	exits 1 "mounted" "$MKFS" $options "$loop"
	exits 32 "$loop" "$MOUNT" "$loop" "$mnt"
done
umount ext4
loop_partition 32
part=$device
disk=${partitioned[0]}
exits 1 "partition table" "$MKFS" "$disk"
exits 1 "$disk" "$MKFS" "$disk"
"$MKFS" -q "$part" || fail "mkfs on a partition"
"$MOUNT" "$part" "$mnt" || die "mount of a partition"
exits 1 "$part" "$MKFS" -f "$part"
exits 1 "$disk" "$MKFS" -f "$disk"
exits 32 "in use" "$MOUNT" "$part" second
"$UMOUNT" "$mnt"
loop_device 8
exits 1 "too small" "$MKFS" "$device"
exits 1 "16 MiB" "$MKFS" "$device"

# -- read-only members: devices, as the permissions of files do not stop root
cp other/x.img ro.img
ro=$(losetup -r -f --show ro.img) && loops+=("$ro") || skip "no loop devices here"
words=$(printf '%s\n' "$ro" "read-only" "-o ro")
said 32 "$MOUNT" "$ro" "$mnt"
exits 8 "$ro" "$FSCK" -y "$ro"
exits 1 "read-only" "$MKFS" -f "$ro"
"$FSCK" -n "$ro" >/dev/null || fail "fsck -n of a read-only member"
"$POOLFS" scrub -n "$ro" >/dev/null || fail "scrub -n of a read-only member"
text=$("$MOUNT" "$ro" "$mnt" -o ro 2>&1) || fail "mount -o ro of a read-only member: $text"
touch "$mnt/new" 2>"$work/err" && fail "writing to a pool of a read-only member"
grep -q "Read-only file system" "$work/err" || fail "writing to a read-only pool says: $(cat "$work/err")"
"$UMOUNT" "$mnt"
# mount(8) tries again with ro when the device is write-protected, and says so
text=$(mount -t poolfs "$ro" "$mnt" 2>&1)
code=$?
figure "mount(8) of a write-protected device: exit $code: $text"
if [ $code = 0 ]; then
	grep -q "^[^ ]* $mnt [^ ]* ro" /proc/mounts || fail "mounted read-write from a write-protected device"
	"$UMOUNT" "$mnt"
fi
equal "the read-only member" "$(sha256sum <other/x.img)" "$(sha256sum <ro.img)"

# -- feature bits of the future
cp other/x.img future.img
"$POKE" future.img super incompat=0x8001
refused future.img future.img "incompat bit 15" "newer poolfs"
"$POKE" future.img super incompat=1 ro_compat=0x10001
before=$(fingerprint)
for command in "$MOUNT future.img $mnt" "$MOUNT future.img $mnt -o rw" "mount -t poolfs -o rw future.img $mnt"; do
	text=$($command 2>&1) || fail "a pool with an unknown ro-compat bit is not mounted: $text"
	figure "a pool with an unknown ro-compat bit: $text"
	[[ $text == *future.img*"ro-compat bit 16"*"newer poolfs"*"mounting it read-only"* ]] ||
		fail "it is not said why the pool is read-only: '$text'"
	grep -q "^[^ ]* $mnt [^ ]* ro" /proc/mounts || fail "a pool with an unknown ro-compat bit is mounted read-write"
	touch "$mnt/new" 2>/dev/null && fail "written to"
	mount -i -o remount,rw "$mnt" 2>/dev/null && touch "$mnt/new" 2>/dev/null && fail "written to after a remount"
	"$UMOUNT" "$mnt"
done
text=$("$MOUNT" future.img "$mnt" -o ro 2>&1) || fail "mount -o ro with an unknown ro-compat bit"
[ -z "$text" ] || fail "mount -o ro, which asks for nothing more, says: $text"
"$UMOUNT" "$mnt"
equal "a pool with an unknown ro-compat bit" "$before" "$(fingerprint)"

# -- a full pool
"$MOUNT" other/x.img "$mnt" || die "mount"
text=$(dd if=/dev/zero of="$mnt/full" bs=64K oflag=direct 2>&1) && fail "dd never ended"
[[ $text == *"No space left on device"* ]] || fail "a full pool says: $text"
head -c 3M /dev/urandom >"$work/random"
text=$(cp "$work/random" "$mnt/more" 2>&1) && fail "cp to a full pool succeeded"
[[ $text == *"No space left on device"* ]] || fail "a full pool says: $text"
rm "$mnt/more" "$mnt/full" || fail "rm on a full pool"
text=$("$UMOUNT" "$mnt" 2>&1) || fail "umount after a failed cp: $text"
"$FSCK" -n other/x.img >/dev/null || fail "the pool that was full is not clean"

# -- wrong calls
words=$(printf '%s\n' "unknown option" nonsense)
said 1 "$MOUNT" other/x.img "$mnt" -o nonsense
words=$work/nowhere
said 32 "$MOUNT" other/x.img "$work/nowhere"
words=$(printf '%s\n' "SPEC and DIR")
said 1 "$MOUNT"
figure "$nr_said messages"
finish
