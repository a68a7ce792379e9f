# SPDX-License-Identifier: MIT
# Sourced by the tests of the command line programs: a directory of its own, programs by variables, expectations.
# shellcheck shell=bash
set -u
export LC_ALL=C.UTF-8 TZ=UTC

MKFS=${MKFS:-mkfs.poolfs}
FSCK=${FSCK:-fsck.poolfs}
POOLFS=${POOLFS:-poolfs}
POKE=${POKE:-${top_builddir:-.}/tests/cli/poke}
FILL=${FILL:-${top_builddir:-.}/tests/cli/fill}
for helper in POKE FILL; do
	case ${!helper} in
	/*) ;;
	*/*) printf -v "$helper" '%s/%s' "$PWD" "${!helper}" ;;
	esac
done

for helper in "$MKFS" "$FSCK" "$POOLFS" "$POKE" "$FILL"; do
	command -v "$helper" >/dev/null || {
		printf '%s is not built\n' "$helper"
		exit 99
	}
done

# Format versions: there are 1 to $newest; up to $released, the default, they are released.
read -r newest released < <("$MKFS" --version | sed -nE 's/.*versions 1 to ([0-9]+), default ([0-9]+).*/\1 \2/p')

work=$(mktemp -d "${TMPDIR:-/tmp}/poolfs-cli.XXXXXX") || exit 99
loops=()
pids=()
nr_failed=0

cleanup() {
	local thing
	cd / || true
	for thing in "${pids[@]}"; do kill "$thing" 2>/dev/null; done
	for thing in "${loops[@]}"; do losetup -d "$thing" 2>/dev/null; done
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 99' INT TERM HUP
cd "$work" || exit 99

skip() {
	printf 'skipped: %s\n' "$*"
	exit 77
}
need() {
	local program
	for program; do command -v "$program" >/dev/null || skip "$program is not installed"; done
}
need_root() {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
}

# attach FILE [OPTION...]: a loop device over it, in $loop; detached at the end.
attach() {
	local file=$1
	shift
	loop=$(losetup -f --show "$@" "$file" 2>/dev/null) || skip "no loop devices here"
	loops+=("$loop")
}
detach() {
	losetup -d "$1"
}

fail() {
	local frame=0
	while [ "${BASH_SOURCE[frame]}" = "${BASH_SOURCE[0]}" ]; do frame=$((frame + 1)); done
	printf '%s:%s: %s\n' "${BASH_SOURCE[frame]}" "${BASH_LINENO[frame - 1]}" "$*"
	if [ -e "$work/.out" ]; then
		printf '  command: %s\n  exit: %s\n' "${last:-}" "${status:-}"
		sed 's/^/  out: /' "$work/.out"
		sed 's/^/  err: /' "$work/.err"
	fi
	nr_failed=$((nr_failed + 1))
}

# run COMMAND...: its exit code in $status, its output for the expectations.
run() {
	last="$*"
	timeout -k 10 "${POOLFS_TEST_TIMEOUT:-120}" "$@" >"$work/.out" 2>"$work/.err" </dev/null
	status=$?
}
expect_exit() {
	[ "$status" -eq "$1" ] || fail "exit $status instead of $1"
}
expect_out() {
	grep -qE -- "$1" "$work/.out" || fail "standard output lacks: $1"
}
expect_err() {
	grep -qE -- "$1" "$work/.err" || fail "standard error lacks: $1"
}
expect_not_out() {
	! grep -qE -- "$1" "$work/.out" || fail "standard output has: $1"
}
expect_silent() {
	[ ! -s "$work/.err" ] || fail "standard error is not empty"
}
# Nothing of a sanitizer, nothing of an assertion.
expect_sane() {
	! grep -qE 'Sanitizer|runtime error|Assertion' "$work/.err" || fail "the program broke"
}

# says CODE TEXT COMMAND...: exits with CODE and TEXT on standard error.
says() {
	local code=$1 text=$2
	shift 2
	run "$@"
	expect_exit "$code"
	expect_err "$text"
	expect_sane
}
# unchanged FUNCTION...: runs it; no byte of a file in this directory may change, and none may appear.
unchanged() {
	local before after
	before=$(fingerprint)
	"$@"
	after=$(fingerprint)
	[ "$before" = "$after" ] || fail "a refused command changed something: $(diff <(echo "$before") <(echo "$after"))"
}
# refuses CODE TEXT COMMAND...: both.
refuses() {
	unchanged says "$@"
}
# Size and content of every file here (the helper's own begin with a dot). Of content only what the filesystem has stored: images
# are large and mostly holes.
fingerprint() {
	python3 -IS - <<'PYTHON'
import errno, os, zlib
def content(path):
    sum = 0
    with open(path, 'rb', 0) as f:
        at, size = 0, os.fstat(f.fileno()).st_size
        while at < size:
            try:
                at = os.lseek(f.fileno(), at, os.SEEK_DATA)
            except OSError as e:
                if e.errno == errno.ENXIO:
                    break
                raise
            piece = os.pread(f.fileno(), 1 << 20, at)
            if piece.strip(b'\0'):
                sum = zlib.crc32(b'%d' % at + piece, sum)
            at += len(piece)
    return size, sum
lines = []
for where, dirs, files in os.walk('.'):
    dirs[:] = [d for d in dirs if not d.startswith('.')]
    for name in dirs + files:
        path = os.path.join(where, name)
        if name.startswith('.'):
            continue
        regular = os.path.isfile(path) and not os.path.islink(path)
        lines.append(repr((path, content(path) if regular else os.lstat(path).st_mode)))
print('\n'.join(sorted(lines)))
PYTHON
}

accepts() {
	run "$@"
	expect_exit 0
	expect_sane
}

# json EXPRESSION: a Python expression over the standard output parsed as 'j' that must be true.
json() {
	need python3
	python3 - "$1" "$work/.out" <<'PYTHON' || fail "not true of the JSON: $1"
import json, sys
try:
    with open(sys.argv[2], encoding="utf-8") as f:
        j = json.load(f)
    sys.exit(0 if eval(sys.argv[1]) else 1)
except Exception as e:
    sys.exit(repr(e))
PYTHON
}

# image NAME [SIZE]: an image file of zeros.
image() {
	truncate -s "${2:-32M}" "$1"
}
# pool IMAGE...: makes a small pool of them (options in $pool_options).
pool_options=()
pool() {
	"$MKFS" -q -f --size "${pool_size:-32M}" "${pool_options[@]}" "$@" || fail "cannot make the pool of $*"
}

finish() {
	[ "$nr_failed" -eq 0 ] || {
		printf '%s failures\n' "$nr_failed"
		exit 1
	}
	exit 0
}
