#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The daemon is killed at random moments under load, and now and then the next one as well, while it recovers. A new mount in the
# same place works, all that was promised is there (promises.py knows the kinds of promises), and fsck finds nothing.
#
# ACCEPT_ROUNDS kills (20, or 200 with POOLFS_TEST_LONG): a tenth in format version 5 with three members, the others in version 6, half
# of them with one member, half with two. ACCEPT_SEED repeats the choice of times and loads; ACCEPT_ONLY="VERSION MEMBERS" does one kind of pool.
. "$(dirname "$0")/functions.sh"
need timeout
need_room 2000

rounds=${ACCEPT_ROUNDS:-$([ "$percent" -ge 100 ] && echo 200 || echo 20)}
seed=${ACCEPT_SEED:-$RANDOM}
export POOLFS
promises=$(dirname "$0")/promises.py
total=0

# A daemon that is killed at any moment of its start, of replay and the checkpoint after it.
kill_recovery() {
	local child
	"$MOUNT" "$spec" "$mnt" -o foreground 2>"$work/err" &
	child=$!
	sleep "0.$(printf %03d $((RANDOM % 120)))"
	kill -9 $child 2>/dev/null || die "$what: the daemon ended by itself: $(cat "$work/err")"
	wait $child 2>/dev/null
}

# one_round: $what, $load; the pool is mounted before and after
one_round() {
	local pid delay=$((30 + RANDOM % 1500)) again=$((RANDOM % 3)) nr options="commit=$((1 + RANDOM % 3))"
	[ $((RANDOM % 3)) != 0 ] || options=$options,cache=16M
	pool_mount "$options"
	pid=$(daemon_pid "$mnt")
	timeout 200 python3 "$promises" load "$mnt" "$notes" "$load" "$pid" $delay >"$work/out" 2>&1 ||
		fail "$what: the load: exit $?: $(tail -n 5 "$work/out")"
	wait_gone "$pid" || die "$what: SIGKILL?"
	# on the dead mount point, or after unmounting that
	if [ $((RANDOM % 3)) = 0 ]; then
		"$UMOUNT" "$mnt" || fail "$what: umount of a dead mount"
	fi
	pool_check
	while [ $again = 0 ]; do
		kill_recovery
		recoveries=$((recoveries + 1)) again=$((RANDOM % 2))
	done
	other_order
	mount_again commit=1
	nr=$(timeout 200 python3 "$promises" check "$mnt" "$notes" "$load" ${last:+"$last"} 2>&1) || fail "$what: $nr"
	find "$mnt" -type f -exec cat {} + >/dev/null || fail "$what: not every file can be read"
	[[ $nr != *[!0-9]* ]] && total=$((total + nr))
	[ -z "${last:-}" ] || python3 "$promises" remove "$mnt" "$notes" "$last" || fail "$what: removing an older load"
	last=$load
	pool_umount
	pool_check
}

# try VERSION ROUNDS SIZE...
try() {
	local version=$1 nr_rounds=$2 round what load last='' recoveries=0 notes fresh
	shift 2
	[ "${ACCEPT_ONLY:-$version $#}" = "$version $#" ] || return 0
	notes=$work/notes.$version.$#
	mkdir "$notes"
	mkfs_options=(--format-version "$version")
	[ $# = 1 ] || mkfs_options+=(--placement "$([ $((seed % 2)) = 0 ] && echo file || echo stripe)")
	make_pool "$@"
	pool_mount
	fresh=$(df_bytes "$mnt")
	pool_umount
	lap
	for ((round = 1; round <= nr_rounds; round++)); do
		load=$((seed * 100000 + version * 10000 + $# * 1000 + round))
		RANDOM=$load
		what="seed $seed, version $version, $# members, round $round"
		one_round
		[ "$failures" = 0 ] || die "$what: no more rounds after a failure; repeat with ACCEPT_SEED=$seed ACCEPT_ONLY='$version $#'"
		[ $((round % 10)) != 0 ] || pool_scrub >/dev/null
	done
	what="seed $seed: version $version, $# members: $nr_rounds kills under load, $recoveries while recovering"
	pool_scrub >/dev/null
	pool_mount
	rm -rf "${mnt:?}"/* || fail "$what: rm -rf"
	wait_for_free "$fresh"
	pool_umount
	pool_check
	lap "$what"
	python3 "$promises" report "$notes" | sed 's/^/	/'
}

try 6 $((rounds * 9 / 20)) 640M
try 6 $((rounds * 9 / 20)) 400M 320M
try 5 $((rounds / 10)) 320M 320M 320M
[ $total -gt $((rounds * 10)) ] || fail "only $total promises were looked at: this proves little"
finish
