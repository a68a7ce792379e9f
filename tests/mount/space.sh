#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# df, the full pool, and that every error of a write reaches the program that wrote.
. "$(dirname "$0")/functions.sh"

make_pool 64M 96M
pool_mount
avail() {
	stat -f -c '%a %S' "$mnt" | awk '{ print $1 * $2 }'
}
free() {
	stat -f -c '%f' "$mnt"
}
fresh=$(free)
size=$(stat -f -c '%b %S' "$mnt" | awk '{ print $1 * $2 }')
[ "$size" -gt $((120 << 20)) ] && [ "$size" -lt $((160 << 20)) ] || fail "df calls the size $size"
[ "$(stat -f -c %l "$mnt")" = 255 ] || fail "the longest name by statfs is $(stat -f -c %l "$mnt")"

# -- what df calls available can be written, to within 1 %
before=$(avail)
dd if=/dev/urandom of="$mnt/big" bs=1M oflag=direct status=none 2>"$work/err"
grep -q 'No space left' "$work/err" || fail "filling the pool ended with: $(cat "$work/err")"
written=$(stat -c %s "$mnt/big")
[ $((written * 100)) -ge $((before * 99)) ] && [ $((written * 100)) -le $((before * 101)) ] ||
	fail "df promised $before, $written could be written"
[ "$(avail)" -lt $((2 << 20)) ] || fail "the full pool has $(avail) bytes available"

# -- buffered: the error comes with write, fsync or close, never with nothing
python3 - "$mnt" <<'END' || fail "see above"
import errno, os, sys
os.chdir(sys.argv[1])
silent = []
for kind in ('close', 'fsync'):
    fd = os.open('full-' + kind, os.O_CREAT | os.O_WRONLY)
    errors = []
    for call in (lambda: os.write(fd, b'x' * (8 << 20)), lambda: os.fsync(fd) if kind == 'fsync' else None,
                 lambda: os.close(fd)):
        try:
            call()
        except OSError as e:
            errors.append(e.errno)
    if errno.ENOSPC not in errors:
        silent.append((kind, errors))
if silent:
    sys.exit(f'no ENOSPC by {silent}')
END
cp "$mnt/big" "$mnt/copy" 2>/dev/null && fail "cp onto a full pool succeeded"

# -- a writer that neither syncs nor closes hears of it too, and soon: not after it has written many times what there is
python3 - "$mnt" <<'END' || fail "see above"
import errno, os, sys, time
os.chdir(sys.argv[1])
def fill(fd):
    written, end = 0, time.monotonic() + 60
    while time.monotonic() < end:
        try:
            written += os.write(fd, bytes(1 << 20))
        except OSError as e:
            return e.errno, written
    return 0, written
fd = os.open('endless', os.O_CREAT | os.O_RDWR)
error, written = fill(fd)
if error != errno.ENOSPC or written > 4 << 30:
    sys.exit(f'an endless writer got error {error} after {written} bytes')
os.ftruncate(fd, 0)
os.unlink('big')
# room was made: what failed before is no reason any more
time.sleep(0.5)
os.write(fd, bytes(1 << 20))
try:
    os.fsync(fd)
except OSError:
    pass # of the pages that failed before
os.pwrite(fd, bytes(1 << 20), 0)
os.fsync(fd)
os.close(fd)
os.unlink('endless')
END

# -- the blocks of an open file: at once with the first fsync, and soon while it grows
python3 - "$mnt" <<'END' || fail "see above"
import os, sys, time
os.chdir(sys.argv[1])
fd = os.open('growing', os.O_CREAT | os.O_RDWR)
os.write(fd, bytes(1 << 20))
os.fstat(fd)
os.fsync(fd)
if os.fstat(fd).st_blocks != 2048:
    sys.exit(f'{os.fstat(fd).st_blocks} blocks after the first fsync of an open file')
os.write(fd, bytes(1 << 20))
os.fsync(fd)
end = time.monotonic() + 10
while os.fstat(fd).st_blocks != 4096:
    if time.monotonic() > end:
        sys.exit(f'{os.fstat(fd).st_blocks} blocks long after an fsync of an open file')
    time.sleep(0.1)
os.close(fd)
os.unlink('growing')
END
dd if=/dev/urandom of="$mnt/big" bs=1M oflag=direct status=none 2>/dev/null

# -- a full pool can be read, overwritten and emptied
sum=$(sha256sum <"$mnt/big")
printf overwritten | dd of="$mnt/big" bs=4096 seek=3 conv=notrunc,fsync status=none || fail "overwriting on a full pool"
[ "$(dd if="$mnt/big" bs=4096 skip=3 count=1 status=none | head -c 11)" = overwritten ] || fail "the overwrite is lost"
[ "$sum" != "$(sha256sum <"$mnt/big")" ] || fail "the overwrite changed nothing"
rm -f "$mnt"/* || fail "rm on a full pool"
sync -f "$mnt" 2>/dev/null # tells of the failed writes once more
for _ in $(seq 50); do
	[ "$(free)" -ge "$fresh" ] && break
	sleep 0.2
done
equal "free blocks when everything is deleted" "$fresh" "$(free)"

# -- and filled again, with files
for i in $(seq 20); do
	cp -r /usr/include/linux "$mnt/$i" 2>/dev/null || break
done
rm -rf "${mnt:?}"/* || fail "rm -rf"
pool_umount
pool_check
pool_mount
equal "free blocks after a remount" "$fresh" "$(free)"
pool_umount
pool_check
finish
