#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mount(8), umount(8) and fstab find the helpers and get from them what they expect. In a mount namespace of its own, where the
# helpers are laid over /sbin: the system is not touched.
if [ -z "${POOLFS_IN_NAMESPACE:-}" ] && [ "$(id -u)" = 0 ]; then
	POOLFS_IN_NAMESPACE=1 exec unshare -m --propagation private bash "$0" "$@"
fi
. "$(dirname "$0")/functions.sh"

sbin=$(readlink -f /sbin)
mkdir "$work/over"
ln -s "$(command -v "$MOUNT")" "$work/over/mount.poolfs"
ln -s mount.poolfs "$work/over/mount.fuse.poolfs"
ln -s "$(command -v "$UMOUNT")" "$work/over/umount.fuse.poolfs"
mount -t overlay -o "lowerdir=$work/over:$sbin" overlay "$sbin" 2>"$work/err" || skip "no overlay on $sbin: $(cat "$work/err")"
trap 'cleanup; umount -l "$sbin"' EXIT

mkfs_options=(-L pool8)
make_pool 32M 32M
IFS=: read -r a b <<<"$spec"
quiet() {
	local text
	text=$("$@" 2>&1) || die "$*: exit $?: $text"
	[ -z "$text" ] || fail "$*: printed: $text"
}
# The members are clean and free as soon as umount(8) has returned: nobody has to wait.
clean() {
	"$FSCK" -n "$a" "$b" >"$work/out" 2>&1 || fail "$1: the pool is not clean right after umount: $(cat "$work/out")"
}

# -- by hand, all ways of naming the pool and of unmounting
quiet mount -t poolfs "$spec" "$mnt"
mountpoint -q "$mnt" || die "mount(8) returned before the mount was there"
line=$(grep " $mnt " /proc/self/mountinfo)
[[ $line == *" fuse.poolfs $spec "* ]] || fail "mounted as: $line"
[[ $line == *nodev* || $line == *nosuid* ]] && fail "nodev or nosuid without being asked: $line"
equal "findmnt" "$spec" "$(findmnt -n -o SOURCE "$mnt")"
dd if=/dev/urandom of="$mnt/data" bs=1M count=20 status=none
sum=$(sha256sum <"$mnt/data")
quiet umount "$mnt"
clean "umount DIR"
quiet mount -t poolfs "$a" "$mnt"
equal "data by one member" "$sum" "$(sha256sum <"$mnt/data")"
quiet umount "$a"
clean "umount SPEC"
quiet mount -t poolfs -o "search=$work" pool=pool8 "$mnt"
equal "data by label" "$sum" "$(sha256sum <"$mnt/data")"
quiet umount -t fuse.poolfs "$mnt"
clean "umount -t"
uuid=$("$FSCK" -v -n "$a" "$b" 2>&1 | grep -oiE '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}' | head -n 1)
if [ -n "$uuid" ]; then
	quiet mount -t poolfs -o "search=$work" "poolfs:$uuid" "$mnt"
	quiet umount "$mnt"
fi
# a mount that was made without mount(8)
"$MOUNT" "$spec" "$mnt" || fail "mount.poolfs"
quiet umount "$mnt"
clean "umount of a mount made by hand"

# -- fstab
printf '%s %s poolfs nofail,_netdev,x-systemd.device-timeout=5,noatime 0 0\n' "$spec" "$mnt" >"$work/fstab"
quiet mount -T "$work/fstab" "$mnt"
equal "data by fstab" "$sum" "$(sha256sum <"$mnt/data")"
quiet mount -T "$work/fstab" -a -t poolfs
equal "mount -a mounts once" 1 "$(grep -c " $mnt " /proc/self/mountinfo)"
quiet umount "$mnt"
clean "umount of an fstab entry"

# -- remount: no second daemon, the kernel does it
quiet mount -t poolfs "$spec" "$mnt"
pid=$(daemon_pid "$mnt")
quiet mount -o remount,ro "$mnt"
{ : >"$mnt/new"; } 2>/dev/null && fail "writable after remount,ro"
quiet mount -o remount,rw,noatime "$mnt"
: >"$mnt/new" || fail "not writable after remount,rw"
equal "daemon after two remounts" "$pid" "$(daemon_pid "$mnt")"
equal "mounts after two remounts" 1 "$(grep -c " $mnt " /proc/self/mountinfo)"

# -- in use: stays mounted, with umount(8)'s exit code
exec 9<"$mnt/data"
umount "$mnt" 2>"$work/err" && fail "umount of a filesystem in use"
grep -q "in use" "$work/err" || fail "umount said: $(cat "$work/err")"
mountpoint -q "$mnt" || fail "the refused umount took the mount away"
quiet umount -l "$mnt"
mountpoint -q "$mnt" && fail "umount -l left it"
equal "data through an open file after umount -l" "$sum" "$(sha256sum <&9)"
exec 9<&-
wait_gone "$pid" || fail "the daemon stays after the last user of a lazily unmounted pool has gone"
clean "umount -l"

# -- refusals keep their exit codes through mount(8)
mount -t poolfs "$work/none" "$mnt" 2>"$work/err"
equal "mount of nothing" 32 $?
grep -q "$work/none" "$work/err" || fail "mount said: $(cat "$work/err")"
mount -t poolfs -o wrong "$spec" "$mnt" 2>"$work/err"
equal "mount with a wrong option" 1 $?
quiet mount -f -t poolfs "$spec" "$mnt"
mountpoint -q "$mnt" && fail "mount -f mounted"

# -- -N: mount in another namespace
unshare -m --propagation private sleep 60 &
other=$!
for _ in $(seq 50); do
	[ "$(readlink /proc/$other/ns/mnt)" != "$(readlink /proc/$$/ns/mnt)" ] && break
	sleep 0.1
done
quiet "$MOUNT" "$spec" "$mnt" -N "$other"
mountpoint -q "$mnt" && fail "-N mounted here too"
grep -q " $mnt " "/proc/$other/mountinfo" || fail "-N mounted nothing there"
equal "data over there" "$sum" "$(nsenter -t $other -m sha256sum "$mnt/data" | sed "s|$mnt/data|-|")"
quiet "$UMOUNT" -N "$other" "$mnt"
grep -q " $mnt " "/proc/$other/mountinfo" && fail "umount -N left it"
kill $other
clean "umount in another namespace"
finish
