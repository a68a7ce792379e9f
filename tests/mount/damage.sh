#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# One flipped bit in a file's data: an error for that block, right bytes for all others, however it is read; the log says which
# file.
. "$(dirname "$0")/functions.sh"

make_pool 64M
pool_mount
python3 - "$mnt/f" "$work/f" <<'END'
import sys
# each block says which it is, so that it can be found in the image
data = b''.join((b'block %06d of the file ' % i * 200)[:4096] for i in range(1000))
for path in sys.argv[1:]:
    with open(path, 'wb') as f:
        f.write(data)
END
cp "$work/f" "$mnt/whole"
pool_umount
python3 - "$work/0.img" <<'END' || die "block 700 was not found in the image"
import sys
with open(sys.argv[1], 'r+b') as f:
    image = f.read()
    # both files hold it: the first copy is the one to damage
    at = image.index(b'block 000700 of the file ')
    assert at % 4096 == 0
    f.seek(at + 1234)
    f.write(bytes([image[at + 1234] ^ 4]))
END

"$MOUNT" "$spec" "$mnt" -o foreground 2>"$work/log" &
child=$!
for _ in $(seq 100); do
	mountpoint -q "$mnt" && break
	sleep 0.1
done
python3 - "$mnt" "$work/f" <<'END' || fail "see above"
import errno, mmap, os, sys
mnt, good = sys.argv[1], open(sys.argv[2], 'rb').read()
bad = 0

def check(what, ok):
    global bad
    if not ok:
        print('FAIL:', what)
        bad += 1

def drop():
    with open('/proc/sys/vm/drop_caches', 'w') as f:
        f.write('1')

def blocks(path, flags, order):
    fd = os.open(path, os.O_RDONLY | flags)
    page = mmap.mmap(-1, 4096)
    out = {}
    for i in order:
        try:
            n = os.preadv(fd, [page], i * 4096)
            if page[:n] != good[i * 4096:i * 4096 + n] or n != 4096:
                out[i] = 'wrong'
        except OSError as e:
            out[i] = errno.errorcode[e.errno]
    os.close(fd)
    return out

damaged = next(p for p in ('f', 'whole') if blocks(f'{mnt}/{p}', os.O_DIRECT, range(1000)))
other = {'f': 'whole', 'whole': 'f'}[damaged]
print('damaged:', damaged)
for name, flags, order in (('direct', os.O_DIRECT, range(1000)), ('buffered', 0, range(1000)),
                           ('buffered, backwards', 0, range(999, -1, -1))):
    drop()
    got = blocks(f'{mnt}/{damaged}', flags, order)
    check(f'{name}: {got}', got == {700: 'EIO'})
drop()
check('the other file', blocks(f'{mnt}/{other}', 0, range(1000)) == {})
# overwritten, the block is whole again
fd = os.open(f'{mnt}/{damaged}', os.O_WRONLY)
os.pwrite(fd, good[700 * 4096:701 * 4096], 700 * 4096)
os.close(fd)
drop()
check('after it was overwritten', blocks(f'{mnt}/{damaged}', 0, range(1000)) == {})
open(f'{mnt}/name', 'w').write(damaged)
sys.exit(bad != 0)
END
name=$(cat "$mnt/name")
grep -q "$name" "$work/log" || fail "the log does not name '$name': $(head -n 3 "$work/log")"
[ "$(wc -l <"$work/log")" -lt 100 ] || fail "the log has $(wc -l <"$work/log") lines"
kill $child
wait $child || fail "the daemon ended with $?"
pool_check
finish
