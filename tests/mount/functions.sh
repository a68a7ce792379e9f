# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the mount tests share. A test sources this first; it then has a scratch directory $work that vanishes at its end with
# every mount below it, and an empty directory $mnt to mount on. Skips (77) without root or /dev/fuse.
#
# The programs come from the build directory, or from the environment: MKFS, MOUNT, UMOUNT, FSCK, POOLFS.
set -u

builddir=$(cd "${top_builddir:-$(dirname "${BASH_SOURCE[0]}")/../..}" && pwd)
MKFS=${MKFS:-$builddir/mkfs.poolfs}
MOUNT=${MOUNT:-$builddir/mount.poolfs}
UMOUNT=${UMOUNT:-$builddir/umount.fuse.poolfs}
FSCK=${FSCK:-$builddir/fsck.poolfs}
POOLFS=${POOLFS:-$builddir/poolfs}

skip() {
	echo "skipped: $*"
	exit 77
}
need() {
	local program
	for program in "$@"; do
		command -v "$program" >/dev/null || skip "$program is not installed"
	done
}
[ "$(id -u)" = 0 ] || skip "needs root"
[ -c /dev/fuse ] || skip "there is no /dev/fuse"
need python3 "$MKFS" "$MOUNT" "$UMOUNT"

# Format versions: there are 1 to $newest.
newest=$("$MKFS" --version | sed -nE 's/.*versions 1 to ([0-9]+), .*/\1/p')

work=$(mktemp -d "${TMPDIR:-/tmp}/poolfs-mount.XXXXXX") || exit 99
chmod 755 "$work"
mnt=$work/mnt
mkdir "$mnt"
loops=()

cleanup() {
	local dir loop pid
	cd /
	# innermost first; a mount that is dead or in use goes too
	awk -v w="$work/" 'index($5, w) == 1 { print $5 }' /proc/self/mountinfo | tac | while read -r dir; do
		pid=$(daemon_pid "$dir" 2>/dev/null)
		umount -l -i "$dir" 2>/dev/null
		[ -z "$pid" ] || kill "$pid" 2>/dev/null
	done
	for loop in ${loops[@]+"${loops[@]}"}; do
		losetup -d "$loop"
	done
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 99' INT TERM HUP

failures=0
fail() {
	echo "FAIL: ${0##*/}, line ${BASH_LINENO[0]}: $*"
	failures=$((failures + 1))
}
# For what the rest of the test builds on.
die() {
	echo "FAIL: ${0##*/}, line ${BASH_LINENO[0]}: $*"
	exit 1
}
finish() {
	[ "$failures" = 0 ] || {
		echo "$failures failures"
		exit 1
	}
	exit 0
}
# equal WHAT WANTED GOT
equal() {
	[ "$2" = "$3" ] || {
		echo "FAIL: ${0##*/}, line ${BASH_LINENO[0]}: $1: wanted '$2', got '$3'"
		failures=$((failures + 1))
	}
}
# exits WITH PATTERN COMMAND...: the exit code, and what standard error must contain
exits() {
	local want=$1 pattern=$2 code text
	shift 2
	text=$("$@" 2>&1 >/dev/null)
	code=$?
	[ "$code" = "$want" ] && [[ $text == *$pattern* ]] || {
		echo "FAIL: ${0##*/}, line ${BASH_LINENO[0]}: $*: wanted exit $want and '$pattern', got $code and '$text'"
		failures=$((failures + 1))
	}
}

# make_pool SIZE...: one image per size as $work/0.img, 1.img, ...; sets $spec to all of them
make_pool() {
	local i=0 size images=()
	for size in "$@"; do
		rm -f "$work/$i.img"
		truncate -s "$size" "$work/$i.img"
		images+=("$work/$i.img")
		i=$((i + 1))
	done
	"$MKFS" -q -f ${mkfs_options[@]+"${mkfs_options[@]}"} "${images[@]}" || die "mkfs.poolfs failed"
	spec=$(IFS=: && echo "${images[*]}")
}
mkfs_options=()

# pool_mount [OPTION,...]; prints nothing, or it is a failure
pool_mount() {
	local text
	text=$("$MOUNT" "$spec" "$mnt" ${1:+-o "$1"} 2>&1) || die "mount.poolfs $spec: $text"
	[ -z "$text" ] || fail "mount.poolfs printed: $text"
}
# serve SPEC OPTION,...: a daemon in the foreground, a child of ours: $daemon; its messages are appended to $work/log
serve() {
	"$MOUNT" "$1" "$mnt" -o "foreground,$2" 2>>"$work/log" &
	daemon=$!
	for _ in $(seq 100); do
		mountpoint -q "$mnt" && return
		sleep 0.1
	done
	die "mount.poolfs: $(cat "$work/log")"
}
pool_umount() {
	local text
	text=$("$UMOUNT" "$mnt" 2>&1) || die "umount.fuse.poolfs $mnt: $text"
	[ -z "$text" ] || fail "umount.fuse.poolfs printed: $text"
}
# The pool is unmounted, and nothing is wrong with it.
pool_check() {
	local images text
	IFS=: read -r -a images <<<"$spec"
	text=$("$FSCK" -n "${images[@]}" 2>&1) || die "fsck.poolfs -n: exit $?: $text"
}

# daemon_pid DIR: the process that serves a mount
daemon_pid() {
	python3 - "$1" <<-'END'
		import fcntl, os, struct, sys
		fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)
		info = fcntl.ioctl(fd, 0x801070f2, bytes(16))
		print(struct.unpack('QII', info)[1])
	END
}
# waits at most 10 s until a process, not a child of ours, is gone
wait_gone() {
	local i
	for ((i = 0; i < 100; i++)); do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.1
	done
	return 1
}
# The daemon of $mnt ends as in a power cut.
pool_kill() {
	local pid
	pid=$(daemon_pid "$mnt")
	kill -9 "$pid"
	wait_gone "$pid" || die "SIGKILL?"
}
as_user() {
	setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"
}
# user_python: a Python that the user of as_user can run, in $python
user_python() {
	need setpriv
	for python in $(type -ap python3) /usr/bin/python3; do
		as_user "$python" -c pass 2>/dev/null && return
	done
	skip "ordinary users have no Python here"
}
