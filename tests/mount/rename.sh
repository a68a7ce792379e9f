#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rename and renameat2, link and unlink of open files, names that are too long: what POSIX says, while others look.
. "$(dirname "$0")/functions.sh"

make_pool 64M
pool_mount
python3 - "$mnt" <<'END' || fail "see above"
import ctypes, errno, os, stat, sys, threading
os.chdir(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
bad = 0

def check(what, ok):
    global bad
    if not ok:
        print('FAIL:', what)
        bad += 1

def code(function, *args, **kw):
    try:
        function(*args, **kw)
        return 0
    except OSError as e:
        return e.errno

def rename2(a, b, flags):
    return ctypes.get_errno() if libc.renameat2(-100, a.encode(), -100, b.encode(), flags) else 0

def put(name, text):
    with open(name, 'w') as f:
        f.write(text)

def get(name):
    with open(name) as f:
        return f.read()

put('a', 'A'); put('b', 'B')
check('NOREPLACE onto a name', rename2('a', 'b', 1) == errno.EEXIST and get('a') == 'A' and get('b') == 'B')
check('NOREPLACE onto none', rename2('a', 'c', 1) == 0 and get('c') == 'A' and not os.path.exists('a'))
check('EXCHANGE', rename2('b', 'c', 2) == 0 and get('b') == 'A' and get('c') == 'B')
check('EXCHANGE with none', rename2('b', 'none', 2) == errno.ENOENT)
os.mkdir('d'); os.mkdir('d/sub'); put('d/sub/x', 'X')
check('EXCHANGE of file and directory', rename2('b', 'd', 2) == 0 and get('d') == 'A' and get('b/sub/x') == 'X')
check('links of a directory', os.stat('b').st_nlink == 3 and os.stat('.').st_nlink == 3)
check('EXCHANGE|NOREPLACE', rename2('b', 'd', 3) == errno.EINVAL)
check('EXCHANGE|WHITEOUT', rename2('b', 'd', 6) == errno.EINVAL)
def is_whiteout(name):
    s = os.lstat(name)
    return s.st_mode == stat.S_IFCHR and s.st_rdev == 0 and s.st_nlink == 1
put('w', 'W'); put('w2', 'W2')
check('WHITEOUT|NOREPLACE onto a name', rename2('w', 'w2', 5) == errno.EEXIST and get('w') == 'W' and get('w2') == 'W2')
check('WHITEOUT', rename2('w', 'w3', 4) == 0 and get('w3') == 'W' and is_whiteout('w') and 'w' in os.listdir('.'))
check('WHITEOUT over a name', rename2('w3', 'w2', 4) == 0 and get('w2') == 'W' and is_whiteout('w3'))
os.mkdir('wd'); put('wd/x', 'X')
links = os.stat('.').st_nlink
check('WHITEOUT of a directory', rename2('wd', 'b/wd', 4) == 0 and get('b/wd/x') == 'X' and is_whiteout('wd')
      and os.stat('.').st_nlink == links - 1)
check('a whiteout can be replaced', rename2('w2', 'w', 0) == 0 and get('w') == 'W')
for name in 'w', 'w3', 'wd':
    os.unlink(name)
os.rename('b/wd', 'wd2'); os.unlink('wd2/x'); os.rmdir('wd2')
check('replace', code(os.rename, 'c', 'd') == 0 and get('d') == 'B' and not os.path.exists('c'))

os.mkdir('e'); os.mkdir('e/inner')
check('into itself', code(os.rename, 'e', 'e/inner/f') == errno.EINVAL)
check('onto a full directory', code(os.rename, 'e', 'b') in (errno.ENOTEMPTY, errno.EEXIST))
check('directory onto file', code(os.rename, 'e', 'd') == errno.ENOTDIR)
check('file onto directory', code(os.rename, 'd', 'e') == errno.EISDIR)
os.mkdir('empty')
check('onto an empty directory', code(os.rename, 'e', 'empty') == 0 and os.listdir('empty') == ['inner'])
check('parent of a moved directory', code(os.rename, 'empty/inner', 'b/sub/moved') == 0
      and os.stat('b/sub/moved/..').st_ino == os.stat('b/sub').st_ino)
check('onto itself by another link', code(os.link, 'd', 'd2') == 0 and code(os.rename, 'd', 'd2') == 0
      and os.path.exists('d') and os.stat('d2').st_nlink == 2)

# an open file outlives its name, its replacement and its directory
os.mkdir('gone'); put('gone/f', 'open')
f = open('gone/f', 'r+')
os.unlink('gone/f'); os.rmdir('gone')
f.write('OPEN, written after unlink'); f.flush(); f.seek(0)
check('unlinked but open', f.read() == 'OPEN, written after unlink' and os.fstat(f.fileno()).st_nlink == 0)
f.close()
put('old', 'old'); put('new', 'new')
f = open('old')
os.rename('new', 'old')
check('replaced but open', f.read() == 'old' and get('old') == 'new')
f.close()
os.mkdir('cwd'); fd = os.open('cwd', os.O_RDONLY); os.rmdir('cwd')
check('create in a removed directory', code(lambda: os.open('x', os.O_CREAT | os.O_WRONLY, dir_fd=fd)) == errno.ENOENT)
check('list a removed directory', os.listdir(fd) == [])
os.close(fd)

# names
long = 'n' * 255
put(long, 'x')
check('255 bytes', get(long) == 'x')
too = 'n' * 256
for what, call in (('open', lambda: open(too)), ('create', lambda: open(too, 'w')), ('mkdir', lambda: os.mkdir(too)),
                   ('symlink', lambda: os.symlink('x', too)), ('link', lambda: os.link('d', too)),
                   ('rename', lambda: os.rename('d', too)), ('rename from', lambda: os.rename(too, 'q')),
                   ('unlink', lambda: os.unlink(too)), ('rmdir', lambda: os.rmdir(too)), ('stat', lambda: os.stat(too)),
                   ('mknod', lambda: os.mknod(too)), ('readlink', lambda: os.readlink(too))):
    check('256 bytes: ' + what, code(call) == errno.ENAMETOOLONG)
check('symlink of 4095 bytes', code(os.symlink, 's' * 4095, 'sl') == 0 and os.readlink('sl') == 's' * 4095)
check('unlink of a directory', code(os.unlink, 'b') in (errno.EISDIR, errno.EPERM))
check('rmdir of a file', code(os.rmdir, 'd') == errno.ENOTDIR)
check('rmdir of a full directory', code(os.rmdir, 'b') == errno.ENOTEMPTY)
check('link of a directory', code(os.link, 'b', 'b2') == errno.EPERM)
os.remove(long); check('a name may come again', not os.path.exists(long) and code(put, long, 'y') == 0 and get(long) == 'y')

# a name that is replaced is never missing
put('target', '0'); stop = False; misses = []
def look():
    while not stop:
        try:
            get('target')
        except OSError as e:
            misses.append(e.errno)
threads = [threading.Thread(target=look) for _ in range(3)]
for t in threads: t.start()
for i in range(1500):
    put('next', str(i)); os.rename('next', 'target')
stop = True
for t in threads: t.join()
check(f'open while it is replaced: {len(misses)} misses {misses[:3]}', not misses)

# O_TMPFILE
fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o600)
os.write(fd, b'unnamed')
check('O_TMPFILE has no link', os.fstat(fd).st_nlink == 0)
check('O_TMPFILE gets a name', libc.linkat(-100, f'/proc/self/fd/{fd}'.encode(), -100, b'named', 0x400) == 0
      and get('named') == 'unnamed' and os.stat('named').st_nlink == 1)
os.close(fd)
fd = os.open('.', os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600)
check('O_TMPFILE|O_EXCL gets none', libc.linkat(-100, f'/proc/self/fd/{fd}'.encode(), -100, b'never', 0x400) == -1)
os.close(fd)
sys.exit(bad != 0)
END
(cd "$mnt" && find . -ls | awk '{ $1 = $2 = ""; print }' | sort) >"$work/before"
pool_umount
pool_mount
(cd "$mnt" && find . -ls | awk '{ $1 = $2 = ""; print }' | sort) | diff "$work/before" - || fail "the tree differs after a remount"
pool_umount
pool_check
finish
