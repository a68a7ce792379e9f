#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A member does not answer any more while the pool is mounted: after silence= seconds what is on it gives errors, and nothing hangs:
# other files, new ones, status, sync and umount go on, and no byte is wrong. Before that a pause does no harm. The member lies on
# another pool, whose daemon is stopped, so that the kernel waits for it and cannot be interrupted.
. "$(dirname "$0")/functions.sh"

mkdir "$work/outer"
outer_pid=
silence=4
limit=$((silence + 12)) # seconds; a checkpoint and its waits may come on top

# A stopped daemon would keep everything else waiting for ever.
trap '[ -z "$outer_pid" ] || kill -CONT "$outer_pid" 2>/dev/null; cleanup' EXIT

stop_outer() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	kill -STOP "$outer_pid" || die "the outer daemon is gone"
}

# make_nested VERSION NR_FILES OPTION MEMBER...: b.img, one of the members, is on another pool
make_nested() {
	local version=$1 option=$3 i
	nr_files=$2
	shift 3
	make_pool 160M
	outer=$spec
	"$MOUNT" "$outer" "$work/outer" || die "mount of the outer pool"
	outer_pid=$(daemon_pid "$work/outer")
	rm -f "$work"/[ac].img
	truncate -s 64M "$@"
	"$MKFS" -q --format-version "$version" "$@" || die "mkfs.poolfs"
	members=("$@")
	spec=$(IFS=: && echo "$*")
	pool_mount "$option"
	for i in $(seq "$nr_files"); do
		head -c 1M /dev/urandom >"$work/$i"
		cp "$work/$i" "$mnt/$i"
	done
	"$UMOUNT" "$mnt" && pool_mount "$option"
	inner_pid=$(daemon_pid "$mnt")
}

# within SECONDS COMMAND...: its exit code; a hang is a failure
within() {
	local code
	timeout -s KILL "$@"
	code=$?
	[ $code != 137 ] || fail "hangs: $*"
	return $code
}

# Reads each file: an error, or the right bytes. Sets $good.
read_all() {
	local i
	good=0
	for i in $(seq "$nr_files"); do
		if within "$limit" cat "$mnt/$i" >"$work/got" 2>/dev/null; then
			cmp -s "$work/got" "$work/$i" || fail "file $i was read without an error, and is wrong"
			good=$((good + 1))
		else
			head -c "$(stat -c %s "$work/got")" "$work/$i" | cmp -s - "$work/got" || fail "file $i: wrong bytes before the error"
		fi
	done
}

# A process that cannot end is mentioned.
says_what_is_left() {
	wait_gone "$inner_pid" || grep "daemon, process $inner_pid, ends only when" "$work/err" >/dev/null ||
		fail "umount does not say what is left: $(cat "$work/err")"
}

# The outer daemon goes on, and with it what waits for it in the kernel: the inner daemon can end.
go_on() {
	kill -CONT "$outer_pid"
	wait_gone "$inner_pid" || fail "the daemon does not end although its member answers again"
	# the kernel lets go of the image some time after the process that had it open
	for _ in $(seq 50); do
		"$UMOUNT" "$work/outer" 2>/dev/null && break
		sleep 0.1
	done
	mountpoint -q "$work/outer" && fail "umount of the outer pool"
	outer_pid=
	"$MOUNT" "$outer" "$work/outer" || die "the outer pool does not come back"
}

# -- a pause that is shorter than the limit
make_nested 6 8 "silence=30" "$work/a.img" "$work/c.img" "$work/outer/b.img"
stop_outer
(
	sleep 5
	kill -CONT "$outer_pid"
) &
read_all
wait
equal "files that can be read after a pause" 8 "$good"
"$POOLFS" status "$mnt" | grep -q FAILED && fail "a member was given up for a pause"
pool_umount
pool_check
"$UMOUNT" "$work/outer"

# -- from version 6 on the pool goes on without it
# goes_on MEMBER...
goes_on() {
	local i code begin synced=()
	make_nested 6 20 "silence=$silence" "$@"
	stop_outer
	begin=$SECONDS
	read_all
	echo "$good of 20 files can be read without b.img, after $((SECONDS - begin)) s"
	((good > 0 && good < 20)) || fail "$good of 20 files can be read"
	((SECONDS - begin <= limit)) || fail "reading took $((SECONDS - begin)) s"
	for i in $(seq 12); do
		within "$limit" sh -c "cp '$work/$i' '$mnt/new$i' && sync '$mnt/new$i'" 2>/dev/null && synced+=("new$i")
	done
	echo "${#synced[@]} of 12 new files could be synced"
	[ "${synced[-1]-}" = new12 ] || fail "the pool did not go on without its member"
	within 5 "$POOLFS" status "$mnt" >"$work/status" || fail "status fails"
	grep "b.img.*FAILED: .*did not answer" "$work/status" >/dev/null || fail "status does not show the silent member: $(cat "$work/status")"
	equal "failed members in status" 1 "$(grep -c FAILED "$work/status")"
	within 5 stat -f "$mnt" >/dev/null || fail "statfs fails"
	within 5 ls -l "$mnt" >/dev/null || fail "listing fails"
	within "$limit" "$POOLFS" sync "$mnt" 2>/dev/null
	within "$limit" rm "$mnt/1" || fail "removing a file failed"
	within 60 "$UMOUNT" "$mnt" 2>"$work/err" || fail "umount: exit $?: $(cat "$work/err")"
	mountpoint -q "$mnt" && fail "umount left it"
	says_what_is_left
	go_on
	exits 32 "failed while the pool was in use" "$MOUNT" "$spec" "$mnt"
	exits 1 "" "$FSCK" -y "${members[@]}"
	pool_check
	pool_mount
	for i in $(seq 2 20) "${synced[@]}"; do
		cmp "$work/${i#new}" "$mnt/$i" || fail "file $i differs after the member has come back"
	done
	pool_umount
	pool_check
	"$UMOUNT" "$work/outer"
}
goes_on "$work/a.img" "$work/c.img" "$work/outer/b.img"
goes_on "$work/outer/b.img" "$work/a.img"

# -- it answers again while the pool is in use: that changes nothing but that the daemon can end
make_nested 6 10 "silence=$silence" "$work/a.img" "$work/outer/b.img"
stop_outer
read_all
within "$limit" sh -c "echo new >'$mnt/new' && sync '$mnt/new'" || fail "the pool did not go on without its member"
kill -CONT "$outer_pid"
sleep 2
before=$good
read_all
equal "files that can be read after the member has come back" "$before" "$good"
within 60 "$UMOUNT" "$mnt" 2>"$work/err" || fail "umount: exit $?: $(cat "$work/err")"
grep "ends only when" "$work/err" >/dev/null && fail "umount says that something is left: $(cat "$work/err")"
exits 1 "" "$FSCK" -y "${members[@]}"
pool_mount
read_all
equal "files that can be read after the repair" 10 "$good"
pool_umount
pool_check
"$UMOUNT" "$work/outer"

# -- writes wait in the kernel where not even a signal ends that: the filesystem on which the image lies is frozen
freeze() {
	local loop
	truncate -s 200M "$work/host.img"
	mkfs.ext4 -q "$work/host.img" && loop=$(losetup -f --show "$work/host.img" 2>/dev/null) || return 1
	loops+=("$loop")
	mkdir -p "$work/host"
	mount "$loop" "$work/host" && fsfreeze -f "$work/host" && fsfreeze -u "$work/host"
}
if command -v fsfreeze mkfs.ext4 losetup >/dev/null && freeze; then
	trap 'fsfreeze -u "$work/host" 2>/dev/null; cleanup' EXIT
	rm -f "$work"/[ac].img
	members=("$work/a.img" "$work/c.img" "$work/host/b.img")
	truncate -s 64M "${members[@]}"
	"$MKFS" -q --format-version 6 "${members[@]}" || die "mkfs.poolfs"
	spec=$(IFS=: && echo "${members[*]}")
	pool_mount "silence=$silence"
	inner_pid=$(daemon_pid "$mnt")
	nr_files=12
	for i in $(seq "$nr_files"); do
		cp "$work/$i" "$mnt/$i"
	done
	"$POOLFS" sync "$mnt"
	fsfreeze -f "$work/host"
	nr_synced=0
	for i in $(seq "$nr_files"); do
		within "$limit" sh -c "cp '$work/$i' '$mnt/new$i' && sync '$mnt/new$i'" 2>/dev/null && nr_synced=$((nr_synced + 1))
	done
	echo "$nr_synced of $nr_files new files could be synced while b.img was frozen"
	((nr_synced > 5)) || fail "the pool did not go on without its frozen member"
	read_all
	echo "$good of $nr_files files can be read without b.img"
	within 5 "$POOLFS" status "$mnt" | grep "b.img.*FAILED: .*did not answer" >/dev/null || fail "status does not show the frozen member"
	within 60 "$UMOUNT" "$mnt" 2>"$work/err" || fail "umount: exit $?: $(cat "$work/err")"
	mountpoint -q "$mnt" && fail "umount left it"
	kill -0 "$inner_pid" 2>/dev/null || fail "this does not test what it is meant to: the daemon could end"
	says_what_is_left
	fsfreeze -u "$work/host"
	wait_gone "$inner_pid" || fail "the daemon does not end although its member answers again"
	exits 1 "" "$FSCK" -y "${members[@]}"
	pool_check
	pool_mount
	read_all
	equal "files that can be read after the repair" "$nr_files" "$good"
	pool_umount
	umount "$work/host"
	trap '[ -z "$outer_pid" ] || kill -CONT "$outer_pid" 2>/dev/null; cleanup' EXIT
else
	echo "no filesystem can be frozen here: left out"
fi

# -- up to version 5 writing is over, and what can be read can be read
make_nested 5 20 "silence=$silence" "$work/a.img" "$work/outer/b.img"
stop_outer
read_all
echo "version 5: $good of 20 files can be read without b.img"
((good > 0)) || fail "no file can be read without b.img"
for i in $(seq 12); do
	within "$limit" sh -c "cp '$work/$i' '$mnt/new$i' && sync '$mnt/new$i'" 2>/dev/null
	code=$?
done
[ "$code" != 0 ] || fail "writing and syncing succeeded on a pool of which half is silent"
within 5 "$POOLFS" status "$mnt" | grep "b.img.*FAILED: .*did not answer" >/dev/null || fail "status does not show the silent member"
within 60 "$UMOUNT" "$mnt" 2>"$work/err"
equal "exit code of umount" 32 $?
within 60 "$UMOUNT" -f "$mnt" 2>/dev/null
mountpoint -q "$mnt" && fail "umount -f left it"
go_on
pool_mount
read_all
equal "files of version 5 that can be read in the end" 20 "$good"
pool_umount
pool_check
"$UMOUNT" "$work/outer"
# -- a pool of one member, if that was asked for: everything gives errors, and the pool can be unmounted
make_nested 6 3 "silence=$silence" "$work/outer/b.img"
stop_outer
read_all
equal "files of a silent pool that can be read" 0 "$good"
within "$limit" sh -c "cp '$work/1' '$mnt/new' && sync '$mnt/new'" 2>/dev/null && fail "a file was synced on a silent pool"
within 5 "$POOLFS" status "$mnt" | grep "b.img.*FAILED: .*did not answer" >/dev/null || fail "status does not show the silent member"
within 60 "$UMOUNT" -f "$mnt" 2>/dev/null
mountpoint -q "$mnt" && fail "umount -f left it"
go_on
pool_mount
read_all
equal "files that can be read in the end" 3 "$good"
pool_umount
pool_check
"$UMOUNT" "$work/outer"
finish
