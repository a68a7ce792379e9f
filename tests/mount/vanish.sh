#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A member vanishes while the pool is mounted: errors, but no hang and no wrong byte; unmounting says that something is lost; and
# when the member is back, everything that was synced is there. The member lies on another pool, whose daemon is killed.
. "$(dirname "$0")/functions.sh"

make_pool 128M
outer=$spec
mkdir "$work/outer"
"$MOUNT" "$outer" "$work/outer" || die "mount of the outer pool"
truncate -s 64M "$work/outer/b.img" "$work/a.img"
"$MKFS" -q "$work/a.img" "$work/outer/b.img" || die "mkfs.poolfs"
spec=$work/a.img:$work/outer/b.img
pool_mount
for i in $(seq 40); do
	head -c 1M /dev/urandom >"$work/$i"
	cp "$work/$i" "$mnt/$i"
done
"$UMOUNT" "$mnt" && pool_mount
# the daemon of the outer pool is killed: each access to b.img is ENOTCONN from now on
sync
kill -9 "$(daemon_pid "$work/outer")"
echo 3 >/proc/sys/vm/drop_caches

good=0
for i in $(seq 40); do
	timeout 20 cat "$mnt/$i" >"$work/got" 2>/dev/null
	code=$?
	[ $code != 124 ] || die "reading hangs"
	if [ $code = 0 ]; then
		cmp -s "$work/got" "$work/$i" || fail "file $i was read without an error, and is wrong"
		good=$((good + 1))
	else
		head -c "$(stat -c %s "$work/got")" "$work/$i" | cmp -s - "$work/got" || fail "file $i: wrong bytes before the error"
	fi
done
echo "$good of 40 files can be read without b.img"
timeout 20 stat -f "$mnt" >/dev/null || fail "statfs fails or hangs"
timeout 30 ls "$mnt" >/dev/null
[ $? != 124 ] || fail "listing hangs"
timeout 60 sh -c "for i in 1 2 3 4 5 6 7 8; do cp '$work/'\$i '$mnt/new'\$i; sync '$mnt/new'\$i; done" 2>/dev/null
code=$?
[ $code != 124 ] || fail "writing hangs"
[ $code != 0 ] || fail "writing and syncing succeeded on a pool of which half is missing"

timeout 60 "$UMOUNT" "$mnt" 2>"$work/err"
code=$?
equal "exit code of umount" 32 $code
grep -q "cannot be written" "$work/err" || fail "umount says: $(cat "$work/err")"
mountpoint -q "$mnt" || fail "it was unmounted although not everything could be written"
timeout 60 "$UMOUNT" -f "$mnt" 2>/dev/null
[ $? != 124 ] || fail "umount -f hangs"
mountpoint -q "$mnt" && fail "umount -f left it"

"$UMOUNT" "$work/outer" || fail "umount of the dead outer pool"
exits 32 "b.img" "$MOUNT" "$spec" "$mnt"
"$MOUNT" "$outer" "$work/outer" || die "the outer pool does not come back"
pool_mount
for i in $(seq 40); do
	cmp "$work/$i" "$mnt/$i" || fail "file $i differs after the member has come back"
done
pool_umount
pool_check
"$UMOUNT" "$work/outer"
finish
