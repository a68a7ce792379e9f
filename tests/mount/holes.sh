#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Holes: fallocate in its modes, SEEK_DATA and SEEK_HOLE also over what is not written back yet, copies, maps, direct I/O.
. "$(dirname "$0")/functions.sh"

make_pool 256M
pool_mount
cat >"$work/test.py" <<'END'
import ctypes, errno, mmap, os, random, sys
os.chdir(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
bad = 0
K = 1024

def check(what, ok):
    global bad
    if not ok:
        print('FAIL:', what)
        bad += 1

def fallocate(fd, mode, off, length):
    return ctypes.get_errno() if libc.fallocate(fd, mode, ctypes.c_long(off), ctypes.c_long(length)) else 0

def extents(fd):
    out, pos = [], 0
    while True:
        try:
            start = os.lseek(fd, pos, os.SEEK_DATA)
        except OSError as e:
            assert e.errno == errno.ENXIO
            return out
        pos = os.lseek(fd, start, os.SEEK_HOLE)
        out.append((start, pos))

def new(name, data=b''):
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.write(fd, data)
    return fd

pattern = bytes(range(256)) * 256  # 64 KiB
KEEP, PUNCH, COLLAPSE, ZERO, INSERT = 1, 2, 8, 16, 32

# modes; with the data still in the kernel's cache, and written back
for sync in (False, True):
    for name, mode, off, length, want in (
            ('allocate', 0, 8 * K, 128 * K, pattern + bytes(72 * K)),
            ('keep size', KEEP, 8 * K, 128 * K, pattern),
            ('punch', PUNCH | KEEP, 8 * K, 8 * K, pattern[:8 * K] + bytes(8 * K) + pattern[16 * K:]),
            ('punch odd', PUNCH | KEEP, 5000, 10000, pattern[:5000] + bytes(10000) + pattern[15000:]),
            ('punch over the end', PUNCH | KEEP, 60 * K, 100 * K, pattern[:60 * K] + bytes(4 * K)),
            ('zero', ZERO, 8 * K, 8 * K, pattern[:8 * K] + bytes(8 * K) + pattern[16 * K:]),
            ('zero odd', ZERO, 5000, 10000, pattern[:5000] + bytes(10000) + pattern[15000:]),
            ('zero over the end', ZERO, 60 * K, 10 * K, pattern[:60 * K] + bytes(10 * K)),
            ('zero, keep size', ZERO | KEEP, 60 * K, 10 * K, pattern[:60 * K] + bytes(4 * K))):
        fd = new('f', pattern)
        if sync:
            os.fsync(fd)
        err = fallocate(fd, mode, off, length)
        check(f'{name}: error {err}', err == 0)
        check(f'{name}: size', os.fstat(fd).st_size == len(want))
        check(f'{name}: content', os.pread(fd, 1 << 20, 0) == want)
        os.close(fd)
        with open('f', 'rb') as f:
            check(f'{name}: content after close', f.read() == want)
fd = new('f', pattern)
for name, mode in (('collapse', COLLAPSE), ('insert', INSERT), ('punch without keep', PUNCH)):
    check(name + ' is refused', fallocate(fd, mode, 8 * K, 8 * K) in (errno.EOPNOTSUPP, errno.EINVAL))
check('more than there is', fallocate(fd, 0, 0, 1 << 42) in (errno.ENOSPC, errno.EFBIG))
check('and changed nothing', os.fstat(fd).st_size == 64 * K and os.pread(fd, 64 * K, 0) == pattern)
os.close(fd)

# space: allocated, given back
fd = new('f')
check('allocate', fallocate(fd, 0, 0, 8 << 20) == 0 and os.fstat(fd).st_blocks * 512 >= 8 << 20)
check('unwritten reads as zeros', os.pread(fd, 1 << 20, 1 << 20) == bytes(1 << 20))
check('punch gives back', fallocate(fd, PUNCH | KEEP, 0, 8 << 20) == 0 and os.fstat(fd).st_blocks == 0)
os.close(fd)

# what is not written back yet is data, wherever it lies
fd = new('s')
os.ftruncate(fd, 16 << 20)
for off in (1 << 20, 8 << 20):
    os.pwrite(fd, pattern, off)
os.fsync(fd)
os.pwrite(fd, b'fresh', 4 << 20)
os.pwrite(fd, b'at the end', (16 << 20) + 5)
ranges = extents(fd)
for off in (1 << 20, 4 << 20, 8 << 20, (16 << 20) + 5):
    check(f'SEEK_DATA finds {off}', any(a <= off < b for a, b in ranges))
check(f'holes are found: {ranges}', sum(b - a for a, b in ranges) < 1 << 20)
check('SEEK_HOLE stops at the end', os.lseek(fd, 16 << 20, os.SEEK_HOLE) == (16 << 20) + 15)
for whence in (os.SEEK_DATA, os.SEEK_HOLE):
    try:
        os.lseek(fd, 17 << 20, whence)
        check('past the end', False)
    except OSError as e:
        check('past the end', e.errno == errno.ENXIO)
m = mmap.mmap(fd, 16 << 20)
m[10 << 20] = 65
check('a page written through a map', os.lseek(fd, 9 << 20, os.SEEK_DATA) == 10 << 20)
os.system('cp --sparse=always s copy')
with open('s', 'rb') as a, open('copy', 'rb') as b:
    check('cp of a file that is still dirty', a.read() == b.read())
m.close()
os.close(fd)

# many that ask at the same time, each over pages of his own that are not written yet
import threading
def seeker(i):
    mine = new(f'seek{i}')
    for k in range(20):
        os.ftruncate(mine, 0)
        os.ftruncate(mine, 1 << 20)
        os.pwrite(mine, b'here', 500000 + k)
        check('one of many', os.lseek(mine, 0, os.SEEK_DATA) == 499712)
    os.close(mine)
threads = [threading.Thread(target=seeker, args=(i,)) for i in range(48)]
for t in threads: t.start()
for t in threads: t.join()

# direct writes tell the time
fd = new('time', bytes(4096)); os.fsync(fd)
before = os.fstat(fd).st_mtime_ns
import time
time.sleep(0.05)
direct = os.open('time', os.O_WRONLY | os.O_DIRECT)
os.pwrite(direct, mmap.mmap(-1, 4096), 0)
check('mtime after a direct write', os.fstat(fd).st_mtime_ns > before)
os.close(direct); os.close(fd)

# copy_file_range within the mount
src, dst = new('src', os.urandom(3 << 20)), new('dst', b'before' * 1000)
n = 0
while n < 3 << 20:
    step = os.copy_file_range(src, dst, (3 << 20) - n, n, n)
    assert step > 0
    n += step
check('copy_file_range', os.pread(src, 3 << 20, 0) == os.pread(dst, 3 << 20, 0))
check('copy with offsets', os.copy_file_range(src, dst, 5000, 1234, 777) == 5000
      and os.pread(dst, 5000, 777) == os.pread(src, 5000, 1234))
os.close(src); os.close(dst)

# random writes of all kinds against the same in memory
random.seed(int(os.environ.get('SEED', '1')))
size = 2 << 20
model = bytearray(size)
fd = new('r'); os.ftruncate(fd, size)
direct = os.open('r', os.O_RDWR | os.O_DIRECT)
page = mmap.mmap(-1, 64 * K)
m = mmap.mmap(fd, size)
for i in range(1500):
    op = random.randrange(7)
    off = random.randrange(size - 64 * K)
    length = random.randrange(1, 64 * K)
    data = random.randbytes(length)
    if op <= 1:
        os.pwrite(fd, data, off)
        model[off:off + length] = data
    elif op == 2:
        off &= ~4095; length = max(4096, length & ~4095)
        page[:length] = random.randbytes(length)
        os.pwrite(direct, memoryview(page)[:length], off)
        model[off:off + length] = page[:length]
    elif op == 3:
        m[off:off + length] = data
        model[off:off + length] = data
    elif op == 4:
        mode = random.choice((PUNCH | KEEP, ZERO | KEEP))
        check('fallocate', fallocate(fd, mode, off, length) == 0)
        model[off:off + length] = bytes(length)
    elif op == 5:
        check(f'read at {off}', os.pread(fd, length, off) == model[off:off + length])
    else:
        off &= ~4095; length = max(4096, length & ~4095)
        got = os.preadv(direct, [memoryview(page)[:length]], off)
        check(f'direct read at {off}', page[:got] == model[off:off + length])
    if i % 200 == 0:
        os.fsync(fd)
m.close()
check('all of it', os.pread(fd, size, 0) == model)
with open(sys.argv[2], 'wb') as f:
    f.write(model)
sys.exit(bad != 0)
END
python3 "$work/test.py" "$mnt" "$work/model" || fail "see above"
cmp "$work/model" "$mnt/r" || fail "the random file differs"
pool_umount
pool_mount
cmp "$work/model" "$mnt/r" || fail "the random file differs after a remount"
pool_umount
pool_check
finish
