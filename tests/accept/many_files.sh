#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# 100,000 files of 1 KiB to 64 KiB are created, listed, read back after a cold mount and removed; so is a directory of 200,000
# entries. The daemon's memory stays within cache= and a constant, by default and with cache=64M.
. "$(dirname "$0")/functions.sh"

# What the daemon takes beside its cache, at most, as mount.poolfs(8) says: buffers, inodes that the kernel knows, threads, io_uring.
constant_kib=$((128 * 1024))
files=$(scaled 100000) entries=$(scaled 200000)
need_room "$(scaled 4600 700)"

cat >"$work/files.py" <<'END'
import os, random, sys, time
verb, top, nr, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
os.chdir(top)
r = random.Random(seed)
pattern = random.Random(0).randbytes(1 << 20)

def data(i):
    # every file another stretch of a pattern, with its number in front
    s = random.Random(seed * 1000003 + i)
    at = s.randrange(len(pattern) - 65536)
    return (b'%12d' % i + pattern[at:at + s.randrange(1024, 65537)])[:s.randrange(1024, 65537)]

def name(i):
    return f'd{i % 97}/{i // 97 % 13}/f{i}'

def make():
    for a in range(97):
        for b in range(13):
            os.makedirs(f'd{a}/{b}', exist_ok=True)
    total = 0
    for i in range(nr):
        with open(name(i), 'wb', buffering=0) as f:
            total += f.write(data(i))
    return f'{nr} files, {total >> 20} MiB'

def check():
    order = list(range(nr))
    r.shuffle(order)
    for i in order:
        with open(name(i), 'rb', buffering=0) as f:
            if f.read(70000) != data(i):
                sys.exit(f'{name(i)}: wrong bytes')
    return f'{nr} files read in random order'

def tree():
    found = sum(len(files) for _, _, files in os.walk('.'))
    if found != nr:
        sys.exit(f'{found} files are listed instead of {nr}')
    return f'{found} files listed'

def remove():
    for i in range(nr):
        os.unlink(name(i))
    for a in range(97):
        for b in range(13):
            os.rmdir(f'd{a}/{b}')
        os.rmdir(f'd{a}')
    return f'{nr} files removed'

def entries():
    for i in range(nr):
        os.close(os.open(f'entry-{i:08x}', os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    return f'{nr} entries created'

def lookups():
    for _ in range(min(nr, 20000)):
        os.stat(f'entry-{r.randrange(nr):08x}')
        try:
            os.stat(f'missing-{r.randrange(nr):08x}')
            sys.exit('a missing name was found')
        except FileNotFoundError:
            pass
    return f'{min(nr, 20000)} random names looked up, and as many missing ones'

def unlink():
    names = [f'entry-{i:08x}' for i in range(nr)]
    r.shuffle(names)
    for n in names:
        os.unlink(n)
    if os.listdir('.'):
        sys.exit('the directory is not empty')
    return f'{nr} entries removed in random order'

begin = time.monotonic()
text = {'make': make, 'check': check, 'tree': tree, 'remove': remove, 'entries': entries, 'lookups': lookups, 'unlink': unlink}[verb]()
seconds = time.monotonic() - begin
print(f'{text}: {seconds:.1f} s, {nr / seconds:.0f}/s')
END

# step WHAT COMMAND...: and what memory the daemon takes after it
step() {
	local what=$1 text
	shift
	text=$("$@" 2>&1) || fail "$what: $text"
	figure "$what: $(tail -n 1 <<<"$text"); VmRSS $(memory_of "$pid" VmRSS) KiB, VmHWM $(memory_of "$pid" VmHWM) KiB"
}
# remount: cold for the kernel and for the daemon
remount() {
	judge
	pool_umount
	pool_mount "$options"
	pid=$(daemon_pid "$mnt")
}
judge() {
	local peak
	peak=$(memory_of "$pid" VmHWM)
	[ "$peak" -le $((cache_kib + constant_kib)) ] ||
		fail "$options: the daemon took $peak KiB, more than cache ($cache_kib KiB) and $constant_kib KiB"
	[ $((peak - cache_kib)) -le "$beyond" ] || beyond=$((peak - cache_kib))
}

try() {
	local fresh
	options=$1 cache_kib=$2 beyond=-999999999
	make_pool "$(scaled 2400 320)M" "$(scaled 2000 260)M"
	pool_mount "$options"
	pid=$(daemon_pid "$mnt")
	fresh=$(df_bytes "$mnt")
	figure "$options: after the mount VmRSS $(memory_of "$pid" VmRSS) KiB"

	step "$options: create" python3 "$work/files.py" make "$mnt" "$files" 1
	step "$options: list" python3 "$work/files.py" tree "$mnt" "$files" 1
	remount
	step "$options: cold list" python3 "$work/files.py" tree "$mnt" "$files" 1
	step "$options: read" python3 "$work/files.py" check "$mnt" "$files" 1
	remount # cold for lookups too
	step "$options: cold read" python3 "$work/files.py" check "$mnt" "$files" 1
	step "$options: remove" python3 "$work/files.py" remove "$mnt" "$files" 1
	wait_for_free "$fresh"

	mkdir "$mnt/big"
	step "$options: directory" python3 "$work/files.py" entries "$mnt/big" "$entries" 2
	equal "$options: names by ls -f" $((entries + 2)) "$(ls -f "$mnt/big" | wc -l)"
	step "$options: ls -l" sh -c 'ls -l "$1" | wc -l' sh "$mnt/big"
	remount
	lap
	equal "$options: names by a cold ls -f" $((entries + 2)) "$(ls -f "$mnt/big" | wc -l)"
	lap "$options: cold ls -f"
	remount
	lap
	equal "$options: lines of a cold ls -l" $((entries + 1)) "$(ls -l "$mnt/big" | wc -l)"
	lap "$options: cold ls -l"
	step "$options: lookups" python3 "$work/files.py" lookups "$mnt/big" "$entries" 3
	remount
	step "$options: cold lookups" python3 "$work/files.py" lookups "$mnt/big" "$entries" 3
	step "$options: unlink" python3 "$work/files.py" unlink "$mnt/big" "$entries" 4
	rmdir "$mnt/big" || fail "$options: rmdir"
	wait_for_free "$fresh"

	# large files, several at a time: staged data and buffers of reads
	lap
	# shellcheck disable=SC2016
	seq 4 | xargs -P 4 -I {} sh -c 'head -c "$1M" /dev/urandom >"$2/{}" && sha256sum <"$2/{}" >"$3/{}.sum"' sh \
		"$(scaled 500 40)" "$mnt" "$work" || fail "$options: writing four files"
	lap "$options: four files of $(scaled 500 40) MiB at the same time"
	remount
	# shellcheck disable=SC2016
	seq 4 | xargs -P 4 -I {} sh -c 'sha256sum <"$1/{}" | cmp - "$2/{}.sum"' sh "$mnt" "$work" || fail "$options: reading four files"
	judge
	figure "$options: at most $beyond KiB beyond cache="
	pool_umount
	pool_check
}

try cache=64M $((64 * 1024))
try cache=256M $((256 * 1024)) # the default
finish
