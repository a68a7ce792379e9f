#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# umount of a pool that another mount namespace still has, and of one that is bound to a second directory.
. "$(dirname "$0")/functions.sh"
need unshare nsenter

make_pool 32M
# hold NAME: a process with a copy of all present mounts; its pid in $holder
hold() {
	unshare -m --propagation private bash -c "exec -a $1 sleep 300" &
	holder=$!
	for _ in $(seq 100); do
		[ "$(readlink /proc/$holder/ns/mnt)" != "$(readlink /proc/$$/ns/mnt)" ] && [ "$(cat /proc/$holder/comm)" = sleep ] && return
		sleep 0.05
	done
	die "no mount namespace"
}
seconds() {
	python3 -c "import time; print(int(time.monotonic() * 10))"
}

# -- it waits, says for what after a while, and ends with the last namespace
pool_mount
echo data >"$mnt/f"
daemon=$(daemon_pid "$mnt")
hold one
first=$holder
hold two
"$UMOUNT" "$mnt" 2>"$work/err" &
helper=$!
sleep 1.5
[ ! -s "$work/err" ] || fail "said something at once: $(cat "$work/err")"
sleep 3.5
text=$(cat "$work/err")
for word in "$mnt is unmounted here" "process $daemon," "process $first (sleep) on $mnt" "process $holder (sleep) on $mnt" "nsenter -t" \
	"umount $mnt"; do
	[[ $text == *"$word"* ]] || fail "the message lacks '$word': $text"
done
[[ $text != *"process $$ "* ]] || fail "our own namespace is named: $text"
equal "lines of the message" 1 "$(wc -l <"$work/err")"
kill -0 $helper 2>/dev/null || fail "umount did not wait"
mountpoint -q "$mnt" && fail "still mounted here"
kill "$first"
sleep 0.5
kill -0 $helper 2>/dev/null || fail "umount did not wait for the second namespace"
# by the very command that it has told
command=$(grep -o 'nsenter -t [0-9]* -m umount [^)]*' "$work/err" | sed "s/-t [0-9]*/-t $holder/")
$command || fail "$command"
wait $helper
equal "exit code after waiting" 0 $?
kill "$holder"
equal "lines of the message" 1 "$(wc -l <"$work/err")"
pool_check

# -- an ordinary wait says nothing; a bind mount in the same namespace is not waited for
pool_mount
mkdir "$work/second"
mount --bind "$mnt" "$work/second"
before=$(seconds)
pool_umount
[ $(($(seconds) - before)) -lt 25 ] || fail "umount waited for a bind mount"
equal "data through the second mount" data "$(cat "$work/second/f")"
text=$("$UMOUNT" "$work/second" 2>&1) || fail "umount of the last one: $text"
[ -z "$text" ] || fail "umount of the last one says: $text"
pool_check

# -- it does not wait for ever (a minute: only when there is time)
if [ -n "${POOLFS_TEST_LONG:-}" ]; then
	pool_mount
	hold three
	exits 32 "gave up waiting after 60 s" "$UMOUNT" "$mnt"
	mountpoint -q "$mnt" && fail "still mounted here"
	kill "$holder"
	"$MOUNT" "$spec" "$mnt" || fail "mount after the namespace has gone"
	pool_umount
fi
finish
