#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# User namespaces: an ordinary user is root in one of his own and mounts a pool there, without a helper; with a range of ids the owners in
# the pool are those of the namespace; and what was synced is there when the namespace ends without anybody unmounting.
# In a mount namespace of its own, where /dev/fuse is for everybody as udev makes it.
if [ -z "${POOLFS_IN_NAMESPACE:-}" ] && [ "$(id -u)" = 0 ]; then
	POOLFS_IN_NAMESPACE=1 exec unshare -m --propagation private bash "$0" "$@"
fi
. "$(dirname "$0")/functions.sh"
need setpriv unshare nsenter
as_user true || skip "no ordinary user here"
as_user unshare -Urm true 2>/dev/null || skip "no user namespaces for ordinary users here"
as_user test -w /dev/fuse || {
	mknod -m 666 "$work/fuse" c 10 229 && mount --bind "$work/fuse" /dev/fuse
	as_user test -w /dev/fuse || skip "/dev/fuse is for root only"
}
chown 65534:65534 "$work" "$mnt"
as_user truncate -s 32M "$work/0.img" "$work/1.img"
spec=$work/0.img:$work/1.img

# -- one id: root inside
as_user unshare -Urm bash -e -c '
	trap "umount \"\$3\"" ERR
	"$4" -q "${2%%:*}" "${2##*:}"
	"$1" "$2" "$3" -o allow_other
	cd "$3"
	echo mine >f
	mkdir d
	ln f d/g
	mkfifo fifo
	chmod 4755 f
	[ "$(stat -c %u:%g:%a f)" = 0:0:4755 ]
	! chown 5:5 d 2>/dev/null # an id that is not in the namespace
	! mknod null c 1 3 2>/dev/null
	cd /
	umount "$3"
' sh "$MOUNT" "$spec" "$mnt" "$MKFS" >"$work/out" 2>&1 || fail "root of a namespace with one id: $(cat "$work/out")"
mountpoint -q "$mnt" && fail "the mount is to be seen outside"
as_user "$FSCK" -n "$work/0.img" "$work/1.img" >"$work/out" 2>&1 || fail "not clean: $(cat "$work/out")"

# -- a range of ids: 0 to 9999 inside are 100000 to 109999 outside
mkfifo "$work/mapped"
as_user unshare -Um --keep-caps bash -e -c '
	read -r _ <"$4"
	exec setpriv --reuid=0 --regid=0 --clear-groups bash -e -c '"'"'
		trap "umount \"\$3\"" ERR
		"$1" "$2" "$3" -o allow_other
		cd "$3"
		[ "$(stat -c %u:%g f)" = 0:0 ]
		chown 5:6 d
		setpriv --reuid=7 --regid=7 --clear-groups sh -c "! echo x >f" 2>/dev/null
		chmod 777 . && setpriv --reuid=7 --regid=8 --clear-groups touch of-7
		[ "$(stat -c %u:%g d of-7 | tr "\n" " ")" = "5:6 7:8 " ]
		cd /
		umount "$3"
	'"'"' sh "$@"
' sh "$MOUNT" "$spec" "$mnt" "$work/mapped" >"$work/out" 2>&1 &
inside=$!
for _ in $(seq 100); do
	pid=$(pgrep -P $inside -x bash || echo $inside)
	[ "$(readlink "/proc/$pid/ns/user")" = "$(readlink /proc/self/ns/user)" ] || break
	sleep 0.05
done
# the members have to be those of somebody inside
chown 100000:100000 "$work/0.img" "$work/1.img" "$mnt"
echo "0 100000 10000" >"/proc/$pid/uid_map" && echo "0 100000 10000" >"/proc/$pid/gid_map" || fail "no map of ids"
echo go >"$work/mapped"
wait $inside || fail "root of a namespace with many ids: $(cat "$work/out")"
chown 65534:65534 "$work/0.img" "$work/1.img" "$mnt"

# -- what the pool has, seen by root of the machine
pool_mount
equal "owners" "0:0 5:6 7:8" "$(stat -c %u:%g "$mnt/f" "$mnt/d" "$mnt/of-7" | tr '\n' ' ' | sed 's/ $//')"
pool_umount
chown 65534:65534 "$work/0.img" "$work/1.img"

# -- the namespace ends, and the daemon with it: as after any crash, what was synced is there
as_user unshare -Urmpf --kill-child bash -e -c '
	"$1" "$2" "$3"
	echo left >"$3/left"
	"$4" sync "$3"
' sh "$MOUNT" "$spec" "$mnt" "$POOLFS" >"$work/out" 2>&1 || fail "a namespace that ends: $(cat "$work/out")"
mount_waiting() {
	for _ in $(seq 100); do
		"$MOUNT" "$spec" "$mnt" 2>"$work/out" && return
		sleep 0.1
	done
	die "after the end of a namespace: $(cat "$work/out")"
}
mount_waiting
equal "what was written last" left "$(cat "$mnt/left" 2>/dev/null)"
pool_umount
pool_check
finish
