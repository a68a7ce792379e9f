#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A member vanishes while the pool is mounted: errors, but no hang and no wrong byte; and when the member is back, everything that was
# synced is there. Up to version 5 writing is over, and unmounting says that something is lost; from 6 on the pool goes on without it. The
# member lies on another pool, whose daemon is killed.
. "$(dirname "$0")/functions.sh"

mkdir "$work/outer"

# make_nested VERSION NUMBER MEMBER...: a pool with that many files; b.img, one of the members, is on another pool
make_nested() {
	local version=$1 i
	nr_files=$2
	shift 2
	make_pool 160M
	outer=$spec
	"$MOUNT" "$outer" "$work/outer" || die "mount of the outer pool"
	rm -f "$work"/[ac].img
	truncate -s 64M "$@"
	"$MKFS" -q --format-version "$version" "$@" || die "mkfs.poolfs"
	members=("$@")
	spec=$(IFS=: && echo "$*")
	pool_mount
	for i in $(seq "$nr_files"); do
		head -c 1M /dev/urandom >"$work/$i"
		cp "$work/$i" "$mnt/$i"
	done
	"$UMOUNT" "$mnt" && pool_mount
}

# The daemon of the outer pool is killed: each access to b.img is ENOTCONN from now on.
vanish() {
	sync
	kill -9 "$(daemon_pid "$work/outer")"
	echo 3 >/proc/sys/vm/drop_caches
}

read_without() {
	local good=0 i code
	for i in $(seq "$nr_files"); do
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
	echo "$good of $nr_files files can be read without b.img"
	timeout 20 stat -f "$mnt" >/dev/null || fail "statfs fails or hangs"
	timeout 30 ls "$mnt" >/dev/null
	[ $? != 124 ] || fail "listing hangs"
}

compare_all() {
	local i
	for i in "$@"; do
		cmp "$work/${i#new}" "$mnt/$i" || fail "file $i differs after the member has come back"
	done
}

# -- up to version 5
make_nested 5 40 "$work/a.img" "$work/outer/b.img"
vanish
read_without
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
compare_all $(seq 40)
pool_umount
pool_check
"$UMOUNT" "$work/outer"

# -- from version 6 on
# goes_on MEMBER...
goes_on() {
	local i code synced=()
	make_nested 6 20 "$@"
	vanish
	read_without
	for i in $(seq 12); do
		timeout 30 sh -c "cp '$work/$i' '$mnt/new$i' && sync '$mnt/new$i'" 2>/dev/null
		code=$?
		[ $code != 124 ] || fail "writing hangs"
		[ $code != 0 ] || synced+=("new$i")
	done
	echo "${#synced[@]} of 12 new files could be synced"
	[ "${synced[-1]-}" = new12 ] || fail "the pool did not go on without its member"
	# at the latest the checkpoint after the next notices
	for i in $(seq 15); do
		"$POOLFS" status "$mnt" | grep "b.img.*FAILED" >/dev/null && break
		sleep 1
	done
	timeout 20 "$POOLFS" status "$mnt" | grep "b.img.*FAILED: .*run fsck.poolfs" >/dev/null || fail "status does not show the failed member"
	[ "$("$POOLFS" status "$mnt" | grep -c FAILED)" = 1 ] || fail "status shows more than one failed member"
	rm "$mnt/1" || fail "removing a file failed"
	timeout 60 "$UMOUNT" "$mnt" 2>"$work/err" || fail "umount: exit $?: $(cat "$work/err")"
	mountpoint -q "$mnt" && fail "umount left it"

	"$UMOUNT" "$work/outer" || fail "umount of the dead outer pool"
	exits 32 "b.img" "$MOUNT" "$spec" "$mnt"
	"$MOUNT" "$outer" "$work/outer" || die "the outer pool does not come back"
	exits 32 "failed while the pool was in use" "$MOUNT" "$spec" "$mnt"
	pool_mount ro
	compare_all $(seq 2 20) "${synced[@]}"
	pool_umount
	exits 4 "" "$FSCK" -n "${members[@]}"
	exits 1 "" "$FSCK" -y "${members[@]}"
	pool_check
	pool_mount
	compare_all $(seq 2 20) "${synced[@]}"
	cp "$work/1" "$mnt/1" && sync "$mnt/1" || fail "writing after the repair failed"
	pool_umount
	pool_check
	"$UMOUNT" "$work/outer"
}
goes_on "$work/a.img" "$work/c.img" "$work/outer/b.img"
goes_on "$work/outer/b.img" "$work/a.img"
finish
