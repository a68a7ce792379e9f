#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The daemon ends in every way there is: SIGTERM with and without users, SIGKILL, with the next mount on the dead one.
. "$(dirname "$0")/functions.sh"

make_pool 64M 64M
pool_mount
pid=$(daemon_pid "$mnt")

# -- SIGTERM: unmounted, clean, nothing lost that the kernel still had
dd if=/dev/urandom of="$work/data" bs=1M count=8 status=none
for signal in TERM INT HUP; do
	cp "$work/data" "$mnt/$signal"
	kill -$signal "$pid"
	wait_gone "$pid" || die "the daemon survived SIG$signal"
	mountpoint -q "$mnt" && fail "still mounted after SIG$signal"
	pool_check
	pool_mount
	pid=$(daemon_pid "$mnt")
	cmp "$work/data" "$mnt/$signal" || fail "data of before SIG$signal"
done
# with a file open and dirty
exec 9>"$mnt/open"
cat "$work/data" >&9
kill "$pid"
wait_gone "$pid" || die "the daemon survived SIGTERM while a file was open"
mountpoint -q "$mnt" && fail "still mounted after SIGTERM with an open file"
{ echo late >&9 && sync /dev/fd/9; } 2>/dev/null && fail "a write after the end was accepted"
exec 9>&-
pool_check
pool_mount
cmp "$work/data" "$mnt/open" || fail "what was written before SIGTERM is lost"

# -- a lock is waited for when its daemon is ending, and not when its pool is mounted
for how in "kill $(daemon_pid "$mnt")" "umount -i $mnt"; do
	cp "$work/data" "$mnt/ending"
	$how || fail "$how"
	pool_mount
	cmp "$work/data" "$mnt/ending" || fail "data of before '$how', with the next mount at once"
done
mkdir "$work/second"
for options in rw ro; do
	before=$(date +%s%N)
	exits 32 "0.img: in use: its pool is mounted on $mnt; unmount it there first" "$MOUNT" "$spec" "$work/second" -o $options
	took=$((($(date +%s%N) - before) / 1000000))
	[ "$took" -lt 4000 ] || fail "it took $took ms to see that the pool is mounted"
done
pool_umount
pool_mount ro
"$MOUNT" "$spec" "$work/second" -o ro || fail "a second mount for reading"
pool_umount
exits 32 "in use: its pool is mounted on $work/second" "$MOUNT" "$spec" "$mnt"
"$UMOUNT" "$work/second"
pool_mount
cmp "$work/data" "$mnt/ending" || fail "data after mounts for reading"

# -- SIGKILL: what was synced is there; the dead mount is in nobody's way
pid=$(daemon_pid "$mnt")
cp "$work/data" "$mnt/synced" && touch -d 2001-02-03T04:05:06.789 "$mnt/synced" && sync "$mnt/synced"
printf written >"$mnt/time" && sync "$mnt/time"
time=$(stat -c %y "$mnt/time")
mkdir "$mnt/later" && cp "$work/data" "$mnt/later/"
kill -9 "$pid"
wait_gone "$pid" || die "SIGKILL?"
stat "$mnt" 2>"$work/err" && fail "the dead mount answers"
grep -q "not connected" "$work/err" || fail "the dead mount says: $(cat "$work/err")"
pool_mount
equal "mounts on $mnt" 1 "$(grep -c " $mnt " /proc/self/mountinfo)"
cmp "$work/data" "$mnt/synced" || fail "synced data is lost after SIGKILL"
equal "time that was set, synced" 2001-02-03T04:05:06.789 "$(date -r "$mnt/synced" +%FT%T.%3N)"
equal "time of a write, synced" "$time" "$(stat -c %y "$mnt/time")"
ls -lR "$mnt" >/dev/null || fail "cannot list after SIGKILL"
pool_umount
pool_check
# again and again under load, each time with what was synced
pool_mount
for round in 1 2 3 4 5; do
	pid=$(daemon_pid "$mnt")
	(
		exec 2>/dev/null
		i=0
		while mkdir "$mnt/$round.$i" && echo "$i" >"$mnt/$round.$i/f" && mv "$mnt/$round.$i/f" "$mnt/$round.$i/g"; do
			if [ $((i % 10)) = 0 ]; then
				sync "$mnt/$round.$i/g" && echo "$i" >"$work/synced"
			fi
			i=$((i + 1))
		done
	) &
	load=$!
	sleep 0.5
	kill -9 "$pid"
	wait $load
	pool_mount
	for i in $(seq 0 10 "$(cat "$work/synced")"); do
		[ "$(cat "$mnt/$round.$i/g" 2>/dev/null)" = "$i" ] || fail "round $round: synced file $i is not there"
	done
done
pool_umount
pool_check

# -- a dead mount is unmounted by the helper, and does not come back
pool_mount
kill -9 "$(daemon_pid "$mnt")"
sleep 0.2
"$UMOUNT" "$mnt" || fail "umount of a dead mount"
mountpoint -q "$mnt" && fail "the dead mount is still there"
# one under another is not ours to remove when it is alive
pool_mount
pid=$(daemon_pid "$mnt")
exits 32 "in use" "$MOUNT" "$spec" "$mnt"
equal "the mount that was there" "$pid" "$(daemon_pid "$mnt")"
pool_umount

# -- in the foreground: messages on standard error, the exit code is that of the end
"$MOUNT" "$spec" "$mnt" -o foreground 2>"$work/err" &
child=$!
for _ in $(seq 100); do
	mountpoint -q "$mnt" && break
	sleep 0.1
done
equal "process in the foreground" "$child" "$(daemon_pid "$mnt")"
kill $child
wait $child
equal "exit code after SIGTERM" 0 $?
mountpoint -q "$mnt" && fail "still mounted"
equal "messages" "" "$(cat "$work/err")"
# a signal while it starts: exit 8, nothing mounted
truncate -s 32M "$work/lock.img" && "$MKFS" -q "$work/lock.img" || die "mkfs"
exec 9<>"$work/lock.img"
flock 9
"$MOUNT" "$work/lock.img" "$mnt" 2>"$work/err" &
child=$!
sleep 0.5
kill -INT $child
flock -u 9
wait $child
equal "exit code of an interrupted start" 8 $?
grep -q "interrupted" "$work/err" || fail "interrupted, it says: $(cat "$work/err")"
mountpoint -q "$mnt" && fail "interrupted, but mounted"
# and the lock of a daemon that is just ending is waited for
flock 9
(sleep 2 && flock -u 9) &
"$MOUNT" "$work/lock.img" "$mnt" || fail "did not wait for the lock"
"$UMOUNT" "$mnt" || fail "umount"
pool_check
finish
