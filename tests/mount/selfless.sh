#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The daemon never waits for itself (fs/child.h): killed at any moment while it starts and while it unmounts, it is gone. And nobody waits
# for a daemon whose pool is not his.
. "$(dirname "$0")/functions.sh"

# gone PID: dead, or a zombie of ours with no thread left
gone() {
	local i
	for ((i = 0; i < 100; i++)); do
		case $(sed -nE 's/^State:\s+(.).*/\1/p' "/proc/$1/status" 2>/dev/null) in
		'') return 0 ;;
		Z) [ "$(find "/proc/$1/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)" -le 1 ] && return 0 ;;
		esac
		sleep 0.05
	done
	return 1
}
# start: in the foreground; comes back when it is mounted
start() {
	local i
	"$MOUNT" "$spec" "$mnt" -o foreground 2>"$work/log" &
	daemon=$!
	for ((i = 0; i < 5000; i++)); do
		grep -q " $mnt " /proc/self/mountinfo && return
		kill -0 $daemon 2>/dev/null || break
	done
	die "mount.poolfs: $(cat "$work/log")"
}
# Lets what hangs go, so that the test ends too.
free_mount() {
	umount -f "$mnt" 2>/dev/null
	umount -l "$mnt" 2>/dev/null
}

make_pool 64M
rounds=${POOLFS_TEST_LONG:+200}
for ((round = 0; round < ${rounds:-30}; round++)); do
	start
	[ $((round % 3)) = 0 ] || sleep "0.00$((round % 10))"
	kill -KILL $daemon
	gone $daemon || {
		fail "round $round: killed while it started, it hangs"
		free_mount
	}
	wait $daemon 2>/dev/null
done
pool_mount
pool_umount
pool_check

# while it unmounts: with pages to be written back, and a user
dd if=/dev/urandom of="$work/data" bs=1M count=12 status=none
for ((round = 0; round < ${rounds:-15}; round++)); do
	start
	cp "$work/data" "$mnt/data" || fail "cp"
	exec 9>"$mnt/open"
	cat "$work/data" >&9
	kill -TERM $daemon
	sleep "0.0$((round % 5))$((round % 10))"
	kill -KILL $daemon 2>/dev/null
	gone $daemon || {
		fail "round $round: killed while it unmounted, it hangs"
		free_mount
	}
	exec 9>&-
	wait $daemon 2>/dev/null
	free_mount
done
pool_mount
pool_umount
pool_check

# -- a daemon that does not answer, beside a pool that is in use
pool_mount
stopped=$(daemon_pid "$mnt")
other=$work/other
mkdir "$other" "$work/second"
"$MKFS" -q --size 64M "$work/other.img" || die "mkfs.poolfs"
"$MOUNT" "$work/other.img" "$other" || die "mount.poolfs"
kill -STOP "$stopped"
before=$SECONDS
exits 32 "other.img: in use: its pool is mounted on $other" timeout 30 "$MOUNT" "$work/other.img" "$work/second"
[ $((SECONDS - before)) -le 10 ] || fail "it took $((SECONDS - before)) s to see that a pool is mounted, beside a daemon that hangs"
kill -CONT "$stopped"
"$UMOUNT" "$other"
pool_umount
pool_check
finish
