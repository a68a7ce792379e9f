#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Large numbers: a directory of 1,000,000 entries is listed in time that grows with it; 1,000,000 files are walked three times and the daemon
# takes no more than cache= and 64 MiB, nor keeps it when the kernel forgets; a sparse file of the largest size; 10,000 extended
# attributes of one file; a file of 1,000,000 extents, written, read, punched and truncated; 20,000 open files without a name.
. "$(dirname "$0")/functions.sh"

cache_kib=$((64 * 1024)) beside_kib=$((64 * 1024))
files=$(scaled 1000000)
[ "$percent" -ge 100 ] || files=20000
need_room "$(scaled 16000 1500)"

cat >"$work/scale.py" <<'END'
import errno, os, random, sys, time

verb, top, nr = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.chdir(top)
r = random.Random(nr)


def entries():
    for i in range(nr):
        os.close(os.open('entry-%08x' % i, os.O_CREAT | os.O_EXCL | os.O_WRONLY))


def tree():
    for i in range(nr):
        if i % 1000 == 0:
            os.makedirs('%d/%d' % (i // 100000, i // 1000))
        os.close(os.open('%d/%d/%d' % (i // 100000, i // 1000, i), os.O_CREAT | os.O_EXCL | os.O_WRONLY))


def walk():
    found = 0
    for where, dirs, names in os.walk('.'):
        for name in names:
            found += os.lstat(os.path.join(where, name)).st_mode > 0
    if found != nr:
        sys.exit('%d files are found instead of %d' % (found, nr))


def listed():
    # several times, for a small directory takes no time to speak of
    for _ in range(3):
        names = os.listdir('.')
        if len(names) != nr or len(set(names)) != nr:
            sys.exit('%d names are listed, %d of them different, instead of %d' % (len(names), len(set(names)), nr))


def largest():
    most = 2**63 - 4096
    with open('largest', 'w+b', buffering=0) as f:
        os.truncate(f.fileno(), most)
        for off in 0, 2**40 + 5, most - 4096, most - 1:
            if os.pwrite(f.fileno(), b'x' * min(5000, most - off), off) <= 0:
                sys.exit('nothing was written at %d' % off)
        os.fsync(f.fileno())
        if os.fstat(f.fileno()).st_size != most or os.fstat(f.fileno()).st_blocks > 100:
            sys.exit('size %d, %d blocks' % (os.fstat(f.fileno()).st_size, os.fstat(f.fileno()).st_blocks))
        try:
            os.truncate(f.fileno(), most + 1)
            sys.exit('a file may be larger than the largest')
        except OSError as e:
            if e.errno != errno.EFBIG:
                raise


def largest_again():
    most = 2**63 - 4096
    with open('largest', 'rb', buffering=0) as f:
        if os.fstat(f.fileno()).st_size != most:
            sys.exit('the size is %d' % os.fstat(f.fileno()).st_size)
        data = [os.lseek(f.fileno(), off, os.SEEK_DATA) for off in (0, 2**40 - 2**30, 2**41)]
        if data != [0, 2**40, most - 4096]:
            sys.exit('data lies at %s' % data)
        for off, want in (2**40, b'\0' * 5 + b'x'), (most - 3, b'xxx'), (2**50, b'\0' * 4096):
            if os.pread(f.fileno(), len(want), off) != want:
                sys.exit('wrong bytes at %d' % off)
    os.unlink('largest')


def attributes():
    open('many', 'w').close()
    for i in range(nr):
        os.setxattr('many', 'user.%x' % (i * 7919), b'%d' % i * (1 + i % 60))


def attributes_again():
    # more names than one listxattr(2) can give
    for i in range(nr):
        if os.getxattr('many', 'user.%x' % (i * 7919)) != b'%d' % i * (1 + i % 60):
            sys.exit('attribute %d has another value' % i)
    try:
        names = os.listxattr('many')
        if len(names) != nr:
            sys.exit('%d names are listed' % len(names))
    except OSError as e:
        if e.errno != errno.E2BIG or nr * 10 < 65536:
            raise
    for i in range(nr):
        os.removexattr('many', 'user.%x' % (i * 7919))
    if os.listxattr('many'):
        sys.exit('attributes are left')


def page(i):
    return b'%012d' % i * 341 + b'abcd'


def extents():
    with open('extents', 'wb', buffering=0) as f:
        # every other block, so that none lies beside another in the file
        for i in range(nr):
            os.pwrite(f.fileno(), page(i), i * 8192)


def extents_again():
    with open('extents', 'r+b', buffering=0) as f:
        for i in list(range(0, nr, 101)) + [r.randrange(nr) for _ in range(2000)] + [nr - 1]:
            if os.pread(f.fileno(), 4096, i * 8192) != page(i):
                sys.exit('block %d reads wrong' % i)
            if i + 1 < nr and os.pread(f.fileno(), 4096, i * 8192 + 4096) != b'\0' * 4096:
                sys.exit('the hole after block %d has bytes' % i)
        n = off = 0
        while n < 20000:
            try:
                off = os.lseek(f.fileno(), off, os.SEEK_DATA)
            except OSError:
                break
            if off != n * 8192:
                sys.exit('extent %d is at %d' % (n, off))
            off = os.lseek(f.fileno(), off, os.SEEK_HOLE)
            n += 1
        if n != min(nr, 20000):
            sys.exit('%d extents are found' % n)
        os.truncate(f.fileno(), nr * 4096 + 100)
    os.unlink('extents')


def nameless():
    fds = []
    for i in range(nr):
        fds.append(os.open('nameless', os.O_CREAT | os.O_EXCL | os.O_RDWR))
        os.write(fds[-1], b'%d' % i)
        os.unlink('nameless')
    for i, fd in enumerate(fds):
        if os.pread(fd, 100, 0) != b'%d' % i or os.fstat(fd).st_nlink:
            sys.exit('file %d without a name reads wrong' % i)


begin = time.monotonic()
globals()[verb]()
print('%.3f' % (time.monotonic() - begin))
END

# step WHAT VERB DIR NR: sets $seconds
step() {
	seconds=$(python3 "$work/scale.py" "$2" "$3" "$4" 2>&1) || fail "$1: $seconds"
	[ $failures = 0 ] || die "what follows builds on it"
	figure "$1: $seconds s; VmRSS $(memory_of "$pid" VmRSS) KiB"
}
# beside WHAT KIB: what the daemon takes beside its cache is not more
beside() {
	local rss
	rss=$(memory_of "$pid" VmRSS)
	[ "$rss" -le $((cache_kib + $2)) ] || fail "$1: the daemon takes $rss KiB, more than cache=64M and $2 KiB"
}
# remount: cold
remount() {
	pool_umount
	pool_mount cache=64M
	pid=$(daemon_pid "$mnt")
}

ulimit -n "$(ulimit -Hn)"
make_pool "$(scaled 8000 1200)M" "$(scaled 5000 300)M"
pool_mount cache=64M
pid=$(daemon_pid "$mnt")
fresh=$(df_bytes "$mnt")

mkdir "$mnt/quarter" "$mnt/full"
step "$((files / 4)) entries in a directory" entries "$mnt/quarter" $((files / 4))
step "$files entries in a directory" entries "$mnt/full" "$files"
beside "after making them" $beside_kib
remount
step "listing $((files / 4))" listed "$mnt/quarter" $((files / 4))
quarter=$seconds
step "listing $files" listed "$mnt/full" "$files"
# linear is 4 times; where it would grow with the square it were 16
python3 -c "import sys; sys.exit($seconds > 8 * max($quarter, 0.05))" ||
	fail "listing $files entries takes $seconds s, a quarter of them $quarter s"
beside "after listing them" $beside_kib
rm -r "$mnt/quarter" "$mnt/full"

mkdir "$mnt/tree"
step "$files files" tree "$mnt/tree" "$files"
for round in first second third; do
	step "$round walk over $files files" walk "$mnt/tree" "$files"
	beside "after the $round walk" $beside_kib
done
remount
for round in first second third; do
	step "$round walk over $files files, cold at first" walk "$mnt/tree" "$files"
	beside "after the $round walk from a cold start" $beside_kib
done
# the kernel forgets, and so does the daemon: at once, and malloc() within some seconds of rest
echo 3 >/proc/sys/vm/drop_caches
for _ in $(seq 40); do
	[ "$(memory_of "$pid" VmRSS)" -gt $((cache_kib + 16 * 1024)) ] || break
	sleep 0.5
done
figure "when the kernel has forgotten them: VmRSS $(memory_of "$pid" VmRSS) KiB"
beside "after the kernel has dropped its caches" $((16 * 1024))
rm -r "$mnt/tree"

step "the largest file" largest "$mnt" 1
step "$(scaled 10000 2000) attributes" attributes "$mnt" "$(scaled 10000 2000)"
step "$files extents" extents "$mnt" "$files"
remount
step "the largest file, cold" largest_again "$mnt" 1
step "attributes, cold" attributes_again "$mnt" "$(scaled 10000 2000)"
step "extents, cold" extents_again "$mnt" "$files"
rm "$mnt/many"
# as many as this process may have
nameless=$(scaled 20000 2000) most=$(($(ulimit -Hn) - 200))
[ "$nameless" -le "$most" ] || nameless=$most
step "$nameless open files without a name" nameless "$mnt" "$nameless"
wait_for_free "$fresh"
pool_umount
pool_check
finish
