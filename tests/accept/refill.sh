#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A pool is filled and emptied twenty times: each time df says exactly what it said of the fresh pool, before and after a new
# mount, and fsck finds nothing. One file written in 1 MiB pieces fills what df calls available to within 1 %.
. "$(dirname "$0")/functions.sh"

sizes=("$(scaled 480)" "$(scaled 320)" "$(scaled 220)")
[ "$percent" -ge 10 ] || sizes=(48 32 22) # as small as it goes
need_room $((sizes[0] + sizes[1] + sizes[2] + 64))

# fill HOW DIR: writes until there is no room left; prints the bytes that are surely in the pool.
cat >"$work/fill.py" <<'END'
import errno, mmap, os, random, sys
how, top, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
r = random.Random(seed)
os.chdir(top)
piece = mmap.mmap(-1, 1 << 20)
piece.write(r.randbytes(1 << 20))
done = 0

def one_file(flags, every):
    global done
    fd, written = os.open('one', os.O_CREAT | os.O_WRONLY | flags), 0
    try:
        while True:
            n = os.write(fd, piece)
            written += n
            if not every or n < 1 << 20 or written % every == 0:
                if every:
                    os.fsync(fd)
                done = written
    finally:
        try:
            os.close(fd)
        except OSError:
            pass

def small_files():
    global done
    i = 0
    while True:
        if i % 100 == 0:
            os.mkdir(f'd{i}')
        data = r.randbytes(r.randrange(1, 50000))
        with open(f'd{i // 100 * 100}/f{i}', 'wb', buffering=0) as f:
            f.write(data)
        done += -(-len(data) // 4096) * 4096
        i += 1

def fragments():
    fds = [os.open(f'frag{i}', os.O_CREAT | os.O_RDWR) for i in range(7)]
    i = 0
    while True:
        fd = fds[i % 7]
        os.pwrite(fd, r.randbytes(4096 * r.randrange(1, 9)), i // 7 * 32768)
        if i % 50 == 0:
            os.fsync(fd)
        if i % 10 == 9: # overwrite, in whatever pieces
            os.pwrite(fd, r.randbytes(10000), r.randrange(0, i // 7 * 32768 + 1))
        i += 1

try:
    {'direct': lambda: one_file(os.O_DIRECT, 0), 'buffered': lambda: one_file(0, 1 << 20),
     'small': small_files, 'fragments': fragments}[how]()
except OSError as e:
    if e.errno != errno.ENOSPC:
        raise
print(done)
END

# try VERSION PLACEMENT ROUNDS
try() {
	local what="version $1, $2" rounds=$3 fresh avail written round how left
	mkfs_options=(--format-version "$1" --placement "$2")
	make_pool "${sizes[0]}M" "${sizes[1]}M" "${sizes[2]}M"
	pool_mount
	fresh=$(df_bytes "$mnt")
	avail=${fresh#* }
	figure "$what: fresh pool of $((sizes[0] + sizes[1] + sizes[2])) MiB: free, available: $fresh bytes"
	lap
	for ((round = 1; round <= rounds; round++)); do
		case $((round % 4)) in
		1) how=direct ;;
		2) how=small ;;
		3) how=buffered ;;
		0) how=fragments ;;
		esac
		written=$(timeout 600 python3 "$work/fill.py" $how "$mnt" $round 2>"$work/err") ||
			die "$what: round $round, $how: $(tail -n 3 "$work/err")"
		left=$(df_bytes "$mnt")
		left=${left#* }
		[ $how != fragments ] || written=$((avail - left))
		figure "$what: round $round, $how: $written bytes, $(awk "BEGIN { printf \"%.2f\", 100 * $written / $avail }") % of what was available; $left left"
		case $how in
		direct | buffered)
			[ $((written * 100)) -ge $((avail * 99)) ] && [ $((written * 100)) -le $((avail * 101)) ] ||
				fail "$what: df promised $avail, $written could be written ($how)"
			;;
		small)
			[ "$left" -le $((avail / 50)) ] || fail "$what: no more small files fit while $left of $avail bytes are available"
			;;
		esac
		# A full pool is a whole pool.
		if [ $round -le 4 ]; then
			[ $how = direct ] || [ $how = buffered ] || "$POOLFS" sync "$mnt" 2>"$work/err" || grep -q 'No space' "$work/err" ||
				fail "$what: poolfs sync on a full pool: $(cat "$work/err")"
		fi
		rm -rf "${mnt:?}"/* || fail "$what: round $round: rm -rf on a full pool"
		wait_for_free "$fresh"
		if [ $((round % 5)) = 0 ]; then
			pool_umount
			pool_check
			pool_mount
			equal "$what: round $round: free and available bytes after a remount" "$fresh" "$(df_bytes "$mnt")"
		fi
	done
	lap "$what: $rounds rounds"
	# Full at the time of the unmount: everything is there afterwards.
	written=$(timeout 600 python3 "$work/fill.py" direct "$mnt" 99)
	cp "$mnt/one" "$work/one" && pool_umount && pool_check && pool_scrub >/dev/null
	other_order
	pool_mount
	equal "$what: size after the remount of a full pool" "$written" "$(stat -c %s "$mnt/one")"
	cmp "$work/one" "$mnt/one" || fail "$what: the contents of a full pool changed"
	rm "$mnt/one" "$work/one"
	wait_for_free "$fresh"
	pool_umount
	pool_check
}

try 5 file 20
try 4 file "$(scaled 20 8)"
try 5 stripe "$(scaled 20 8)"
try 6 file "$(scaled 20 8)"
finish
