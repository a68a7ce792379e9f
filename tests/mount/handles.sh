#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# File handles, which file servers hold for days: of every kind of file, over dropped caches, a remount, a crash and another mount for reading;
# of what was renamed, of what is open without a name; ESTALE for what is gone and for handles that never were.
. "$(dirname "$0")/functions.sh"

# handles.py DIRECTORY WORK COMMAND: 'make' a tree and notes handles of it; 'check' them; 'change' the tree; 'gone' is what was removed
cat >"$work/handles.py" <<'END'
import ctypes, errno, os, pickle, random, socket, stat, struct, sys

top, notes, command = sys.argv[1], sys.argv[2] + '/notes', sys.argv[3]
libc = ctypes.CDLL(None, use_errno=True)
EMPTY_PATH, CONNECTABLE = 0x1000, 2
bad = 0

def check(what, wanted, got):
    global bad
    if wanted != got:
        print(f'FAIL: {what}: wanted {wanted!r}, got {got!r}')
        bad += 1

class Handle(ctypes.Structure):
    _fields_ = [('bytes', ctypes.c_uint), ('type', ctypes.c_int), ('data', ctypes.c_ubyte * 128)]

# A handle is its type and its bytes.
def handle(path, flags=0, at=-100):
    h, mount = Handle(128, 0), ctypes.c_int()
    if libc.name_to_handle_at(at, os.fsencode(path), ctypes.byref(h), ctypes.byref(mount), flags):
        raise OSError(ctypes.get_errno(), 'name_to_handle_at')
    return h.type, bytes(h.data[:h.bytes])

def open_handle(h, flags=os.O_RDONLY):
    root = os.open(top, os.O_RDONLY)
    fd = libc.open_by_handle_at(root, ctypes.byref(Handle(len(h[1]), h[0], (ctypes.c_ubyte * 128)(*h[1]))), flags)
    err = ctypes.get_errno()
    os.close(root)
    if fd < 0:
        raise OSError(err, 'open_by_handle_at')
    return fd

def code(h, flags=os.O_PATH):
    try:
        os.close(open_handle(h, flags))
        return 0
    except OSError as e:
        return errno.errorcode[e.errno]

def drop_caches():
    fd = os.open(top, os.O_RDONLY)
    libc.syncfs(fd)
    os.close(fd)
    with open('/proc/sys/vm/drop_caches', 'w') as f:
        f.write('2')

def content(path):
    return random.Random(os.path.basename(path)).randbytes(len(path) * 100)

def write(path):
    with open(path, 'wb') as f:
        f.write(content(path))

# look(path as it is now, handle, content if it is a file)
def look(path, h, data):
    real = os.path.normpath(f'{top}/{path}')
    st = os.lstat(real)
    fd = open_handle(h, os.O_PATH)
    check(f'{path}: what fstat says of its handle', st, os.fstat(fd))
    if stat.S_ISLNK(st.st_mode):
        check(f'{path}: target', os.readlink(real), os.readlink('', dir_fd=fd))
    os.close(fd)
    check(f'{path}: the handle that it has', h, handle(real))
    if data is not None:
        fd = open_handle(h)
        check(f'{path}: bytes', True, os.read(fd, 1 << 20) == data)
        os.close(fd)
    if stat.S_ISDIR(st.st_mode):
        fd = open_handle(h, os.O_RDONLY | os.O_DIRECTORY)
        check(f'{path}: where the handle leads', real, os.readlink(f'/proc/self/fd/{fd}'))
        check(f'{path}: names', sorted(os.listdir(real)), sorted(os.listdir(fd)))
        check(f'{path}: its parent', os.stat(os.path.dirname(real)).st_ino, os.stat('..', dir_fd=fd).st_ino)
        os.close(fd)

# Directories from the innermost on, so that the way to the root is not yet known.
def look_at_all(noted):
    for path, (h, data) in sorted(noted.items(), key=lambda entry: -entry[0].count('/')):
        drop = random.random() < 0.02
        if drop:
            drop_caches()
        try:
            look(path, h, data)
        except OSError as e:
            check(f'{path}{", caches dropped" if drop else ""}', None, e)

def load():
    with open(notes, 'rb') as f:
        return pickle.load(f)

def store(*what):
    with open(notes, 'wb') as f:
        pickle.dump(what, f)

def make():
    where = ''
    paths = ['.']
    for i in range(12):
        where += f'd{i}/'
        os.mkdir(f'{top}/{where}')
        paths.append(where.rstrip('/'))
        for j in range(20):
            write(f'{top}/{where}f{i}.{j}')
            paths.append(f'{where}f{i}.{j}')
    os.symlink('no such', f'{top}/d0/link')
    os.mkfifo(f'{top}/d0/fifo')
    os.mknod(f'{top}/d0/null', stat.S_IFCHR | 0o666, os.makedev(1, 3))
    with socket.socket(socket.AF_UNIX) as s:
        os.chdir(f'{top}/d0')
        s.bind('socket')
    paths += ['d0/link', 'd0/fifo', 'd0/null', 'd0/socket']
    noted = {path: (handle(f'{top}/{path}'), content(f'{top}/{path}') if '/f' in path and not path.endswith('fifo') else None) for path in paths}
    check('different handles', len(noted), len({h for h, data in noted.values()}))
    look_at_all(noted)

    # by another name and through a descriptor it is the same handle
    os.link(f'{top}/d0/d1/f1.7', f'{top}/d0/second')
    check('the handle of a second name', noted['d0/d1/f1.7'][0], handle(f'{top}/d0/second'))
    fd = os.open(f'{top}/d0/d1', os.O_RDONLY)
    check('the handle through a descriptor', noted['d0/d1'][0], handle('', EMPTY_PATH, fd))
    os.close(fd)
    # written through a handle
    fd = open_handle(noted['d0/f0.3'][0], os.O_RDWR | os.O_TRUNC)
    os.write(fd, b'written by handle')
    os.fsync(fd)
    os.close(fd)
    noted['d0/f0.3'] = noted['d0/f0.3'][0], b'written by handle'
    # with the parent in it, if this kernel has that
    try:
        connectable = handle(f'{top}/d0/d1/d2/f2.5', CONNECTABLE)
    except OSError:
        connectable = None
    store(noted, [], connectable)

def connected(connectable, path):
    if connectable:
        drop_caches()
        try:
            fd = open_handle(connectable)
            check('where a connectable handle leads', f'{top}/{path}', os.readlink(f'/proc/self/fd/{fd}'))
            os.close(fd)
        except OSError as e:
            check('a connectable handle', None, e)

def change():
    noted, gone, connectable = load()
    # to another name and directory, with all that is below
    os.rename(f'{top}/d0/f0.1', f'{top}/d0/d1/moved')
    noted['d0/d1/moved'] = noted.pop('d0/f0.1')
    os.rename(f'{top}/d0/d1/d2', f'{top}/there')
    for path in [path for path in noted if path.startswith('d0/d1/d2')]:
        noted['there' + path[len('d0/d1/d2'):]] = noted.pop(path)
    # replaced, unlinked, one of two names unlinked, removed with all that was in it
    os.rename(f'{top}/d0/f0.2', f'{top}/d0/f0.4')
    gone.append(noted.pop('d0/f0.4')[0])
    noted['d0/f0.4'] = noted.pop('d0/f0.2')
    for i in range(5, 10):
        os.unlink(f'{top}/d0/f0.{i}')
        gone.append(noted.pop(f'd0/f0.{i}')[0])
    os.unlink(f'{top}/d0/d1/f1.7')
    noted['d0/second'] = noted.pop('d0/d1/f1.7')
    last = [path for path in noted if 'd10/d11' in path]
    for path in sorted(last, key=lambda path: -len(path)):
        (os.rmdir if path.endswith('d11') else os.unlink)(f'{top}/{path}')
        gone.append(noted.pop(path)[0])

    # without a name, but open
    fd = os.open(f'{top}/d0/f0.10', os.O_RDWR)
    os.unlink(f'{top}/d0/f0.10')
    unlinked, data = noted.pop('d0/f0.10')
    fd2 = os.open(top, os.O_TMPFILE | os.O_RDWR)
    os.write(fd2, b'never had one')
    for what, h, wanted in ('unlinked', unlinked, data), ('an O_TMPFILE', handle('', EMPTY_PATH, fd2), b'never had one'):
        for _ in 'still cached', 'dropped':
            try:
                again = open_handle(h, os.O_RDONLY)
                check(f'{what}, but open: bytes', wanted, os.read(again, 1 << 20))
                check(f'{what}, but open: names', 0, os.fstat(again).st_nlink)
                os.close(again)
            except OSError as e:
                check(f'{what}, but open', None, e)
            drop_caches()
        gone.append(h)
    os.close(fd)
    os.close(fd2)

    # a name that is given to somebody else, and more files than were removed: their handles are others
    for i in range(5, 10):
        write(f'{top}/d0/f0.{i}')
        noted[f'd0/f0.{i}'] = handle(f'{top}/d0/f0.{i}'), content(f'{top}/d0/f0.{i}')
    for i in range(300):
        write(f'{top}/new{i}')
        noted[f'new{i}'] = handle(f'{top}/new{i}'), content(f'{top}/new{i}')
    store(noted, gone, connectable)
    all_right()

def all_right():
    noted, gone, connectable = load()
    for dropped in False, True:
        for h in gone:
            check('the handle of what is gone', 'ESTALE', code(h))
            check('the handle of what is gone', 'ESTALE', code(h, os.O_RDONLY))
        drop_caches()
    look_at_all(noted)
    connected(connectable, 'there/f2.5' if 'there' in noted else 'd0/d1/d2/f2.5')
    # what no one was given: other bytes, another number, another generation
    kind, h = noted['.'][0]
    r = random.Random(1)
    known = {h for h, data in noted.values()}
    for i in range(300):
        forged = bytearray(h)
        if i % 3 == 0:
            forged = bytearray(r.randbytes(len(h)))
        elif i % 3 == 1:
            struct.pack_into('<I', forged, r.choice((0, 4)), r.choice((0, 1 << 31, 0xffffffff, r.randrange(1 << 20, 1 << 32))))
        else:
            forged[8] ^= r.randrange(1, 256)
        if (kind, bytes(forged)) not in known:
            check(f'a handle that never was, {forged.hex()}', 'ESTALE', code((kind, bytes(forged))))

{'make': make, 'change': change, 'check': all_right}[command]()
sys.exit(bad != 0)
END
handles() {
	python3 "$work/handles.py" "$mnt" "$work" "$1" || fail "version $version, $2: see above"
}

for version in 1 "$newest"; do
	mkfs_options=(--format-version "$version")
	make_pool 64M 64M
	pool_mount
	handles make "at once"
	handles check "caches dropped"
	pool_umount
	pool_mount
	handles check "after a remount"
	handles change "renamed and removed"
	pool_umount
	pool_mount ro
	handles check "on a mount for reading"
	pool_umount
	pool_mount
	handles check "removed, after a remount"
	"$POOLFS" sync "$mnt" || fail "poolfs sync"
	pool_kill
	pool_mount
	handles check "after a crash"
	pool_umount
	pool_check
done
finish
