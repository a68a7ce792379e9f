#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Extended attributes: sizes, flags, namespaces, who sees what.
. "$(dirname "$0")/functions.sh"
user_python

make_pool 64M
pool_mount
chmod 777 "$mnt"
cat >"$work/test.py" <<'END'
import errno, os, sys, time
os.chdir(sys.argv[1])
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

open('f', 'w').close(); os.mkdir('d'); os.symlink('f', 'l')
for name in ('user.a', 'trusted.a', 'security.a'):
    check(name, code(os.setxattr, 'f', name, b'v') == 0 and os.getxattr('f', name) == b'v')
check('on a directory', code(os.setxattr, 'd', 'user.a', b'v') == 0 and os.listxattr('d') == ['user.a'])
check('trusted on a symlink', code(lambda: os.setxattr('l', 'trusted.a', b'v', follow_symlinks=False)) == 0)
check('user on a symlink', code(lambda: os.setxattr('l', 'user.a', b'v', follow_symlinks=False)) == errno.EPERM)
for name in ('system.other', 'foo.bar', 'user.', 'nodot'):
    check('set ' + name, code(os.setxattr, 'f', name, b'v') in (errno.EOPNOTSUPP, errno.EINVAL))
    check('get ' + name, code(os.getxattr, 'f', name) in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENODATA))
for space in 'user.', 'trusted.', 'security.':
    check('no name in ' + space, code(os.setxattr, 'f', space, b'v') == code(os.getxattr, 'f', space) == code(os.removexattr, 'f', space) == errno.EINVAL)
check('missing', code(os.getxattr, 'f', 'user.none') == errno.ENODATA)
check('remove missing', code(os.removexattr, 'f', 'user.none') == errno.ENODATA)
check('CREATE of one that is there', code(os.setxattr, 'f', 'user.a', b'w', os.XATTR_CREATE) == errno.EEXIST)
check('REPLACE of none', code(os.setxattr, 'f', 'user.none', b'w', os.XATTR_REPLACE) == errno.ENODATA)
check('REPLACE', code(os.setxattr, 'f', 'user.a', b'replaced', os.XATTR_REPLACE) == 0
      and os.getxattr('f', 'user.a') == b'replaced')
for size in (0, 1, 100, 3999, 4000, 4001, 16384, 65535, 65536):
    value = os.urandom(size)
    check(f'{size} bytes', code(os.setxattr, 'f', 'user.size', value) == 0 and os.getxattr('f', 'user.size') == value)
check('too large', code(os.setxattr, 'f', 'user.size', b'x' * 65537) == errno.E2BIG)
long = 'user.' + 'n' * 250
check('name of 255 bytes', code(os.setxattr, 'f', long, b'v') == 0 and os.getxattr('f', long) == b'v')
check('name of 256 bytes', code(os.setxattr, 'f', long + 'n', b'v') == errno.ERANGE)
os.removexattr('f', long); os.removexattr('f', 'user.size')
for i in range(300):
    os.setxattr('f', f'user.many{i}', str(i).encode())
names = os.listxattr('f')
check('300 names', sorted(n for n in names if 'many' in n) == sorted(f'user.many{i}' for i in range(300)))
check('300 values', all(os.getxattr('f', f'user.many{i}') == str(i).encode() for i in range(300)))
for i in range(0, 300, 2):
    os.removexattr('f', f'user.many{i}')
check('150 names left', len([n for n in os.listxattr('f') if 'many' in n]) == 150)
before = os.stat('f').st_ctime_ns; time.sleep(0.02)
os.setxattr('f', 'user.time', b'')
check('ctime changes', os.stat('f').st_ctime_ns > before)
check('trusted is listed to root', 'trusted.a' in os.listxattr('f'))
os.chmod('f', 0o666)
sys.exit(bad != 0)
END
python3 "$work/test.py" "$mnt" || fail "see above"
cat >"$work/user.py" <<'END'
import errno, os, sys, time
os.chdir(sys.argv[1])
names = os.listxattr('f')
assert 'user.a' in names and 'security.a' in names, names
assert not [n for n in names if n.startswith('trusted.')], 'trusted.* is listed to everybody'
for call in (lambda: os.getxattr('f', 'trusted.a'), lambda: os.setxattr('f', 'trusted.b', b'v'),
             lambda: os.setxattr('f', 'security.b', b'v')):
    try:
        call()
        sys.exit('a user used an attribute of root')
    except OSError as e:
        assert e.errno in (errno.EPERM, errno.ENODATA), e
os.setxattr('f', 'user.b', b'mine')
END
chmod 644 "$work/user.py"
as_user "$python" "$work/user.py" "$mnt" || fail "as a user: see above"
(cd "$mnt" && getfattr -d -m - -h f d l) >"$work/before" 2>&1
pool_umount
pool_mount
(cd "$mnt" && getfattr -d -m - -h f d l) 2>&1 | diff "$work/before" - >/dev/null || fail "attributes differ after a remount"
pool_umount
pool_check
finish
