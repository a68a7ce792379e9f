#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The filesystem that holds the image files is full. Pages that the kernel writes back in vain: whoever asks is told, by every call and
# after the kernel has dropped everything, until they are written again or truncated away, or the pool is mounted anew. What is refused
# at once has changed nothing. When there is room again all goes on without a new mount.
. "$(dirname "$0")/functions.sh"
need fallocate

cat >"$work/lib.py" <<'END'
import ctypes, errno, mmap, os, sys, time
mnt, host = sys.argv[1:3]
M = 1 << 20
bad = 0
def fail(*what):
    global bad
    bad += 1
    print('FAIL: writeback.sh, line %d of its Python:' % sys._getframe(1).f_lineno, *what)
def result(f, *args):
    try:
        return f(*args)
    except OSError as e:
        return errno.errorcode[e.errno]
def want(what, wanted, f, *args):
    got = result(f, *args)
    if got != wanted:
        global bad
        bad += 1
        print('FAIL: writeback.sh, line %d of its Python: %s: wanted %.40r, got %.40r' % (sys._getframe(1).f_lineno, what, wanted, got))
def room(there):
    if there:
        os.unlink(host + '/fill')
        return
    fd = os.open(host + '/fill', os.O_CREAT | os.O_WRONLY)
    s = os.statvfs(host)
    os.posix_fallocate(fd, 0, s.f_bavail * s.f_frsize)
    os.close(fd)
def drop():
    open('/proc/sys/vm/drop_caches', 'w').write('3')
def nr_drops():
    for line in open('/proc/vmstat'):
        if line.startswith('drop_pagecache '):
            return int(line.split()[1])
def data(c, n):
    return c * n
def make(name, n=4 * M):
    path = mnt + '/' + name
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    os.pwrite(fd, data(b'A', n), 0)
    os.fsync(fd)
    return path, fd
def until(f, wanted):
    for _ in range(100):
        if result(f) == wanted:
            return True
        time.sleep(0.05)
    return False
END

# start: what is freed makes no room on the host
start() {
	serve "$spec" commit=3600,nodiscard
}
stop() {
	"$UMOUNT" "$mnt" || fail "umount"
	wait $daemon || fail "exit code of the daemon: $?"
}
py() {
	cat "$work/lib.py" - >"$work/run.py"
	python3 "$work/run.py" "$mnt" "$work/host" || failures=$((failures + 1))
}

# -- each way in which pages are written back
lost_pages() {
	py <<'END'
libc = ctypes.CDLL(None, use_errno=True)
room(False)
other = os.open(mnt + '/other', os.O_RDWR)
TAIL = M + 100100 # what is appended: more than the daemon keeps in memory, and not whole pages
END1 = 4 * M + TAIL
def look(how, fd):
    want(how + ' size', END1, lambda: os.fstat(fd).st_size)
    want(how + ' read', data(b'A', M), os.pread, fd, M, 0)
    want(how + ' read', data(b'A', M), os.pread, fd, M, 2 * M)
    for at in M, 2 * M - 4096, 4 * M, 5 * M - 4096:
        want(how + ' read', 'EIO', os.pread, fd, 4096, at)
    want(how + ' SEEK_DATA', 4 * M + 5, os.lseek, fd, 4 * M + 5, os.SEEK_DATA)
# nothing that the pool had frees blocks in here, for those could be written again
maps = []
drops = nr_drops()
for how in 'fsync', 'close', 'msync', 'sync', 'alone':
    path = mnt + '/' + how
    fd, second = os.open(path, os.O_RDWR), os.open(path, os.O_RDWR)
    if how == 'msync':
        os.ftruncate(fd, END1)
        m = mmap.mmap(fd, END1)
        m[M:2 * M] = data(b'B', M)
        m[4 * M:] = data(b'B', TAIL)
        want(how, 'ENOSPC', m.flush)
        maps.append(m)
    else:
        os.pwrite(fd, data(b'B', M), M)
        os.pwrite(fd, data(b'B', TAIL), 4 * M)
        if how == 'fsync':
            want(how, 'ENOSPC', os.fsync, fd)
        elif how == 'close':
            want(how, 'ENOSPC', os.close, os.dup(fd))
        elif how == 'sync':
            os.sync()
        else: # as the kernel does after a while
            libc.sync_file_range(fd, ctypes.c_long(0), ctypes.c_long(0), 2)
    for at in M, 5 * M - 4096:
        if not until(lambda: os.pread(fd, 4096, at), 'EIO'):
            fail(how, 'lost pages can be read')
    look(how, fd)
    result(os.fsync, fd) # the kernel's own memory of it
    result(os.fsync, second)
    third = os.open(path, os.O_RDONLY)
    for f in fd, second, third, fd:
        want(how + ' fsync', 'ENOSPC', os.fsync, f)
    for f in fd, second, third:
        os.close(f)
    want('another file', None, os.fsync, other)
for m in maps:
    m.close()

# the last page, which the file ends in, is still there: the same can be written once more
room(True)
fd = os.open(mnt + '/close', os.O_RDWR)
want('write', M, os.pwrite, fd, data(b'C', M), M)
want('fsync', 'ENOSPC', os.fsync, fd)
if result(os.pwrite, fd, data(b'C', TAIL), 4 * M) != TAIL:
    if nr_drops() == drops: # and nobody else on this machine has dropped the cache
        fail('what was lost cannot be written once more')
    os.ftruncate(fd, 5 * M)
    want('write', TAIL, os.pwrite, fd, data(b'C', TAIL), 4 * M)
want('fsync', None, os.fsync, fd)
os.close(fd)

drop()
for how in 'fsync', 'msync', 'sync', 'alone':
    fd = os.open(mnt + '/' + how, os.O_RDWR)
    look(how, fd)
    want(how + ' read', 'EIO', os.pread, fd, 4, END1 - 4)
    want(how + ' fsync', 'ENOSPC', os.fsync, fd)
    if how != 'sync': # which is for the mount anew
        want(how + ' write', M, os.pwrite, fd, data(b'C', M), M)
        want(how + ' fsync', 'ENOSPC', os.fsync, fd)
        os.ftruncate(fd, 5 * M)
        want(how + ' write', TAIL, os.pwrite, fd, data(b'C', TAIL), 4 * M)
        want(how + ' fsync', None, os.fsync, fd)
    os.close(fd)
drop()
for how in 'fsync', 'close', 'msync', 'alone':
    fd = os.open(mnt + '/' + how, os.O_RDONLY)
    want(how, b'A' * M + b'C' * M + b'A' * 2 * M + b'C' * TAIL, os.pread, fd, 8 * M, 0)
sys.exit(bad != 0)
END
}

# -- what is refused at once
refused() {
	py <<'END'
path, fd = make('refused')
source, from_fd = make('source', 8 * M)
d = os.open(path, os.O_RDWR | os.O_DIRECT)
buf = mmap.mmap(-1, M)
buf[:] = b'D' * M
room(False)
def same(n=4 * M):
    want('size', n, lambda: os.fstat(fd).st_size)
    want('bytes', data(b'A', n), os.pread, fd, 8 * M, 0)
want('direct write', 'ENOSPC', os.pwritev, d, [buf], M)
want('direct append', 'ENOSPC', os.pwritev, d, [buf], 4 * M)
same()
for f in fd, d:
    want('fsync', None, os.fsync, f)
want('copy_file_range', 'ENOSPC', os.copy_file_range, from_fd, fd, 4 * M, 0, 2 * M)
same()
want('fsync', None, os.fsync, fd)
drop()
same()
room(True)
want('direct write', M, os.pwritev, d, [buf], M)
want('direct append', M, os.pwritev, d, [buf], 4 * M)
want('copy_file_range', 2 * M, os.copy_file_range, from_fd, fd, 2 * M, 0, 2 * M)
want('fsync', None, os.fsync, fd)
want('bytes', b'A' * M + b'D' * M + b'A' * 2 * M + b'D' * M, os.pread, fd, 8 * M, 0)
sys.exit(bad != 0)
END
}

# -- data in the daemon's memory, the log and checkpoints go on
recovers() {
	py <<'END'
os.mkdir(mnt + '/d')
path, fd = make('staged')
room(False)
d = os.open(path, os.O_RDWR | os.O_DIRECT)
buf = mmap.mmap(-1, 4096)
buf[:] = b'S' * 4096
for k in range(100):
    want('small write', 4096, os.pwritev, d, [buf], 8 * k * 4096)
for k in range(15000): # names: more than the log and the nodes have room for that is theirs already
    open(mnt + '/d/%d' % k, 'x').close()
dir = os.open(mnt + '/d', os.O_RDONLY)
for f in fd, dir, fd, dir:
    got = result(os.fsync, f)
    if got not in (None, 'ENOSPC'):
        fail('fsync on a full host gives', got)
want('read', b'S' * 4096, os.pread, fd, 4096, 8 * 4096)
room(True)
want('fsync', None, os.fsync, fd)
for k in range(100):
    want('read', b'S' * 4096, os.pread, fd, 4096, 8 * k * 4096)
want('mkdir', None, os.mkdir, mnt + '/later')
want('fsync', None, os.fsync, dir)
sys.exit(bad != 0)
END
	exits 0 "" "$POOLFS" sync "$mnt"
}

status() {
	"$POOLFS" status "$mnt" >"$work/status" || fail "poolfs status"
	grep -q '^state  *mounted, generation' "$work/status" || fail "status: $(cat "$work/status")"
	! grep -q FAILED "$work/status" || fail "status: $(cat "$work/status")"
	equal "lost files" "$1" "$(sed -nE 's/^lost .* to ([0-9]+) files? .*/\1/p' "$work/status")"
}

for version in 5 "$newest"; do
	for members in 1 2; do
		: >"$work/log"
		mkdir -p "$work/host"
		mount -t tmpfs -o size=128M tmpfs "$work/host" || skip "no tmpfs"
		images=("$work/host/a.img")
		[ $members = 1 ] || images+=("$work/host/b.img")
		"$MKFS" -q --format-version "$version" --size 256M "${images[@]}" || die "mkfs"
		spec=$(IFS=: && echo "${images[*]}")
		start
		for name in fsync close msync sync alone other; do
			head -c 4M /dev/zero | tr '\0' A >"$mnt/$name"
		done
		exits 0 "" "$POOLFS" sync "$mnt"
		lost_pages
		for name in fsync close msync sync alone; do
			grep -q "/$name: .* bytes at byte .* could not be written when the system wanted them written back: No space left on device" \
				"$work/log" || fail "the log does not name $name: $(cat "$work/log")"
		done
		"$POOLFS" sync "$mnt" 2>/dev/null # the kernel's memory of it
		status 1
		refused
		stop
		for image in "${images[@]}"; do # as backup programs do: what mkfs set aside on the host is not any more
			cp --sparse=always "$image" "$work/host/copy" && mv "$work/host/copy" "$image" || die "cp"
		done
		start
		status ""
		equal "size after a new mount" $((4 << 20)) "$(stat -c %s "$mnt/sync")"
		sync "$mnt/sync" || fail "fsync after a new mount"
		equal "content after a new mount" AAAAAAAA "$(tail -c 8 "$mnt/sync")"
		rm "$mnt/sync" || fail "rm"
		recovers
		status ""
		stop
		start
		equal "names" 15000 "$(find "$mnt/d" -type f | wc -l)"
		stop
		pool_check
		umount "$work/host"
	done
done
finish
