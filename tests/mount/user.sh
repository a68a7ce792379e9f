#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An ordinary user mounts a pool of image files of his own through fusermount3; and uses one that root has mounted.
# In a mount namespace of its own, where /dev/fuse is for everybody as udev makes it.
if [ -z "${POOLFS_IN_NAMESPACE:-}" ] && [ "$(id -u)" = 0 ]; then
	POOLFS_IN_NAMESPACE=1 exec unshare -m --propagation private bash "$0" "$@"
fi
. "$(dirname "$0")/functions.sh"
need setpriv fusermount3
user_python

chown 65534:65534 "$work" "$mnt"
as_user truncate -s 32M "$work/0.img" "$work/1.img"
as_user "$MKFS" -q "$work/0.img" "$work/1.img" || die "mkfs as a user"
spec=$work/0.img:$work/1.img
as_user test -w /dev/fuse || {
	mknod -m 666 "$work/fuse" c 10 229 && mount --bind "$work/fuse" /dev/fuse
	as_user test -w /dev/fuse || skip "/dev/fuse is for root only"
}
as_user "$MOUNT" "$spec" "$mnt" 2>"$work/err" || die "mount as a user: $(cat "$work/err")"
line=$(grep " $mnt " /proc/self/mountinfo)
[[ $line == *nosuid*nodev*" fuse.poolfs "*user_id=65534* ]] || fail "mounted as: $line"
[[ $line == *allow_other* ]] && fail "allow_other without being asked"
as_user "$python" - "$mnt" <<-'END' || fail "a user cannot use his pool"
	import os, sys
	os.chdir(sys.argv[1])
	os.mkdir('d')
	with open('d/f', 'w') as f:
	    f.write('mine')
	assert open('d/f').read() == 'mine'
	assert os.stat('d/f').st_uid == 65534
	os.setxattr('d/f', 'user.a', b'v')
	fd = os.open('d/f', os.O_RDWR)
	os.ftruncate(fd, 1 << 20)
	assert os.lseek(fd, 100000, os.SEEK_HOLE) == 100000
	os.statvfs('.')
END
ls "$mnt" 2>/dev/null && fail "root sees into a user's mount"
as_user "$UMOUNT" "$mnt" || fail "umount as a user"
mountpoint -q "$mnt" && fail "still mounted"
as_user "$FSCK" -n "$work/0.img" "$work/1.img" >/dev/null || fail "not clean"

# a dead mount of his own
as_user "$MOUNT" "$spec" "$mnt" || fail "second mount as a user"
kill -9 "$(pgrep -U 65534 -f "$MOUNT $spec $mnt")"
sleep 0.3
as_user "$MOUNT" "$spec" "$mnt" || fail "mount on a user's dead mount"
equal "mounts on $mnt" 1 "$(grep -c " $mnt " /proc/self/mountinfo)"
kill "$(pgrep -U 65534 -f "$MOUNT $spec $mnt")"
for _ in $(seq 50); do
	mountpoint -q "$mnt" || break
	sleep 0.1
done
mountpoint -q "$mnt" && fail "SIGTERM did not unmount a user's pool"
sleep 0.3
pool_check

# a pool of root's, for everybody
pool_mount
chmod 1777 "$mnt"
as_user sh -c "echo mine >'$mnt/f' && cat '$mnt/f' >/dev/null && mkdir '$mnt/theirs'" || fail "a user cannot use the pool that root mounted"
equal "owner" 65534 "$(stat -c %u "$mnt/f")"
as_user "$UMOUNT" "$mnt" 2>/dev/null && fail "a user unmounted root's pool"
mountpoint -q "$mnt" || fail "it is gone"
pool_umount
pool_check
finish
