#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What tools ask a mounted pool (pool/control.h), and file handles, which outlive the kernel's caches.
. "$(dirname "$0")/functions.sh"

make_pool 64M 64M
pool_mount
echo data >"$mnt/f"
python3 - "$mnt" <<'END' || fail "see above"
import ctypes, errno, fcntl, json, os, struct, sys
mnt = sys.argv[1]
STATUS = 3 << 30 | (24 + 8192) << 16 | ord('p') << 8 | 0xf1
SYNC = ord('p') << 8 | 0xf0
INFO = 2 << 30 | 16 << 16 | ord('p') << 8 | 0xf2
bad = 0

def check(what, ok):
    global bad
    if not ok:
        print('FAIL:', what)
        bad += 1

def code(function, *args):
    try:
        function(*args)
        return 0
    except OSError as e:
        return e.errno

def piece(fd, serial, offset):
    buf = bytearray(24 + 8192)
    struct.pack_into('QI', buf, 0, serial, offset)
    fcntl.ioctl(fd, STATUS, buf)
    serial, offset, length, total = struct.unpack_from('QIII', buf)
    return serial, total, bytes(buf[24:24 + length])

def status(fd):
    serial, total, text = piece(fd, 0, 0)
    while len(text) < total:
        _, _, more = piece(fd, serial, len(text))
        text += more
    return text

for path in (mnt, mnt + '/f'):
    fd = os.open(path, os.O_RDONLY)
    s = json.loads(status(fd))
    check(f'status of {path} is an object', isinstance(s, dict) and s)
    check('sync', fcntl.ioctl(fd, SYNC) == 0)
    start, pid, flags = struct.unpack('QII', fcntl.ioctl(fd, INFO, bytes(16)))
    check('info', flags == 0 and str(start) == open(f'/proc/{pid}/stat').read().rsplit(')')[1].split()[19])
    check('unknown request', code(fcntl.ioctl, fd, ord('p') << 8 | 0xee) == errno.ENOTTY)
    check('past the end', piece(fd, piece(fd, 0, 0)[0], 1 << 30)[2] == b'')
    old = piece(fd, 0, 0)[0]
    piece(fd, 0, 0)
    check('an old picture', code(piece, fd, old, 0) == errno.EAGAIN)
    os.close(fd)
check('not on another filesystem', code(fcntl.ioctl, os.open('/', os.O_RDONLY), SYNC) == errno.ENOTTY)

# handles: of a file, of a directory, of one that is gone
libc = ctypes.CDLL(None, use_errno=True)
class Handle(ctypes.Structure):
    _fields_ = [('bytes', ctypes.c_uint), ('type', ctypes.c_int), ('data', ctypes.c_char * 128)]
def handle(path):
    h, mount = Handle(128, 0), ctypes.c_int()
    if libc.name_to_handle_at(-100, path.encode(), ctypes.byref(h), ctypes.byref(mount), 0):
        raise OSError(ctypes.get_errno(), 'name_to_handle_at')
    return h
def open_handle(h, flags):
    root = os.open(mnt, os.O_RDONLY)
    fd = libc.open_by_handle_at(root, ctypes.byref(h), flags)
    err = ctypes.get_errno()
    os.close(root)
    if fd < 0:
        raise OSError(err, 'open_by_handle_at')
    return fd
os.makedirs(mnt + '/a/b/c')
with open(mnt + '/a/b/c/file', 'w') as f:
    f.write('by handle')
with open(mnt + '/a/gone', 'w') as f:
    f.write('x')
file, directory, gone = handle(mnt + '/a/b/c/file'), handle(mnt + '/a/b'), handle(mnt + '/a/gone')
os.unlink(mnt + '/a/gone')
os.sync()
with open('/proc/sys/vm/drop_caches', 'w') as f:
    f.write('3')
fd = open_handle(file, os.O_RDONLY)
check('file by handle', os.read(fd, 100) == b'by handle')
os.close(fd)
fd = open_handle(directory, os.O_RDONLY | os.O_DIRECTORY)
check('directory by handle', os.listdir(fd) == ['c'])
check('its parent', os.stat('..', dir_fd=fd).st_ino == os.stat(mnt + '/a').st_ino)
os.close(fd)
check('handle of a removed file', code(open_handle, gone, os.O_RDONLY) == errno.ESTALE)
sys.exit(bad != 0)
END
if [ -x "$POOLFS" ]; then
	"$POOLFS" sync "$mnt" || fail "poolfs sync"
	"$POOLFS" status "$mnt" >"$work/out" || fail "poolfs status"
	[ -s "$work/out" ] || fail "poolfs status printed nothing"
	"$POOLFS" status --json "$mnt" | python3 -c 'import json, sys; json.load(sys.stdin)' || fail "poolfs status --json"
fi

# what sync promises: a crash right after it loses nothing
cp -r /usr/include/linux "$mnt/tree"
python3 -c "import fcntl, os; fd = os.open('$mnt', os.O_RDONLY); os.sync(); fcntl.ioctl(fd, ord('p') << 8 | 0xf0)"
kill -9 "$(daemon_pid "$mnt")"
pool_mount
diff -r /usr/include/linux "$mnt/tree" || fail "the tree that was synced differs after a crash"

# 5,000 files that are open and have no name: gone when they are closed, or when the daemon died
fresh=$(stat -f -c %f "$mnt")
python3 - "$mnt" <<'END' || fail "unlinked open files"
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (6000, 6000))
os.chdir(sys.argv[1])
fds = []
for i in range(5000):
    fds.append(os.open('u', os.O_CREAT | os.O_EXCL | os.O_RDWR))
    os.write(fds[-1], str(i).encode() * 100)
    os.unlink('u')
assert all(os.pread(fd, 3, 0)[:len(str(i))] == (str(i) * 3)[:3].encode()[:len(str(i))] for i, fd in enumerate(fds))
for fd in fds:
    os.close(fd)
END
pool_umount
pool_check
pool_mount
[ "$(stat -f -c %f "$mnt")" -ge "$fresh" ] || fail "unlinked files still hold space: $(stat -f -c %f "$mnt") of $fresh blocks are free"
pool_umount
finish
