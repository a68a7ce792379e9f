#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What mkfs.poolfs refuses: it says what, where and what to do, exits 1, and has changed no byte.
. "$(dirname "$0")/functions.sh"
need flock

# -- what "no byte" rests on
before=$(fingerprint)
printf '\0\0' >probe
[ "$before" != "$(fingerprint)" ] || fail "a new file is not seen"
before=$(fingerprint)
printf 'x' | dd of=probe conv=notrunc status=none
[ "$before" != "$(fingerprint)" ] || fail "a changed byte is not seen"
rm probe

# -- the command line
refuses 1 'no member given' "$MKFS"
refuses 1 'Try .mkfs.poolfs --help' "$MKFS" --no-such-option a.img
refuses 1 '"x" is not a size' "$MKFS" --size x a.img
refuses 1 'too small; a member needs at least 16 MiB' "$MKFS" --size 15M a.img
refuses 1 'format version "99": must be 1 to ' "$MKFS" --format-version 99 --size 32M a.img
refuses 1 'format version "0"' "$MKFS" --format-version 0 --size 32M a.img
refuses 1 'placement "x": must be file or stripe' "$MKFS" --placement x --size 32M a.img
refuses 1 'is not a UUID' "$MKFS" -U 123 --size 32M a.img
refuses 1 'must be 1 to 64 bytes' "$MKFS" -L "$(printf '%065d' 0)" --size 32M a.img
refuses 1 'must be 1 to 64 bytes' "$MKFS" -L '' --size 32M a.img
refuses 1 'control character' "$MKFS" -L $'a\nb' --size 32M a.img
refuses 1 'looks like a UUID' "$MKFS" -L 01234567-89ab-cdef-0123-456789abcdef --size 32M a.img
refuses 1 'not among the members' "$MKFS" --meta c.img --size 32M a.img b.img
refuses 1 'at most 3 members' "$MKFS" --meta a --meta b --meta c --meta d --size 32M a b c d
# shellcheck disable=SC2046
refuses 1 '33 members given; a pool has at most 32' "$MKFS" --size 32M $(seq -f 'm%g.img' 33)

# -- no such member, or something that cannot be one
refuses 1 'a.img: no such file or device; .*--size' "$MKFS" a.img
refuses 1 'nowhere/a.img: cannot create' "$MKFS" --size 32M nowhere/a.img
mkdir dir
refuses 1 'dir: is a directory; a member is a block device or an image file' "$MKFS" dir
refuses 1 '/dev/null: is neither' "$MKFS" /dev/null
mkfifo fifo
refuses 1 'fifo: is neither' "$MKFS" -f fifo

# -- the same one twice, by any name
image a.img
ln -s a.img link.img
ln a.img hard.img
refuses 1 'a.img is the same file as a.img: each member can be given only once' "$MKFS" a.img a.img
refuses 1 'link.img is the same file as a.img' "$MKFS" a.img link.img
refuses 1 'hard.img is the same file as ./a.img' "$MKFS" -f ./a.img hard.img
refuses 1 './new.img is the same file as new.img' "$MKFS" --size 32M new.img ./new.img
refuses 1 'dir/../new.img is the same file as new.img' "$MKFS" --size 32M new.img dir/../new.img
rm hard.img link.img

# -- too small: says how large it is and what is needed
image small.img 15M
refuses 1 'small.img is too small: 15728640 bytes; a member has at least .*16 MiB' "$MKFS" small.img
refuses 1 'small.img is too small: 15728640 bytes; a member has at least .*16 MiB' "$MKFS" -f a.img small.img
: >empty.img
refuses 1 'empty.img' "$MKFS" empty.img

# -- sizes and kinds that the format version does not admit
image b.img 48M
refuses 1 'equal size' "$MKFS" --format-version 1 a.img b.img
refuses 1 'equal size' "$MKFS" --format-version 2 -f a.img b.img

# -- it exists already
refuses 1 'a.img: exists already and has 32 MiB; .*-f' "$MKFS" --size 64M a.img
refuses 1 'a.img: exists already' "$MKFS" --size 64M new.img a.img

# -- what libblkid knows
if command -v mkfs.ext4 >/dev/null; then
	image ext4.img
	mkfs.ext4 -q -F -L photos ext4.img
	refuses 1 'ext4.img: contains an existing filesystem \(ext4, label "photos"\); nothing was changed. Use -f' \
		"$MKFS" ext4.img
	refuses 1 'ext4.img: contains' "$MKFS" -n ext4.img
	# The good ones beside it stay as they are, too, and what was to be created is not.
	refuses 1 'ext4.img: contains' "$MKFS" --size 32M new.img a.img ext4.img
	# Even with -f nothing is overwritten when the pool cannot be made.
	refuses 1 'small.img' "$MKFS" -f ext4.img small.img
	refuses 1 'equal size' "$MKFS" -f --format-version 1 ext4.img b.img
fi
if command -v mkswap >/dev/null; then
	image swap.img
	mkswap swap.img >/dev/null 2>&1
	refuses 1 'swap.img: contains a swap area' "$MKFS" swap.img
fi
# A partition table of one entry, by hand: type 83, from sector 2048 on.
image dos.img
printf '\0\0\0\0\203\0\0\0\0\010\0\0\0\100\0\0' | dd of=dos.img bs=1 seek=446 conv=notrunc status=none
printf '\125\252' | dd of=dos.img bs=1 seek=510 conv=notrunc status=none
refuses 1 'dos.img: contains a partition table \(dos\)' "$MKFS" dos.img
if command -v sgdisk >/dev/null; then
	image gpt.img
	sgdisk -n 1:0:0 gpt.img >/dev/null
	refuses 1 'gpt.img: contains a partition table \(gpt\)' "$MKFS" gpt.img
fi

# -- our own
pool_options=(-L home -U 01234567-89ab-cdef-0123-456789abcdef)
pool ours.img ours2.img
refuses 1 'ours2.img: contains member 2 of 2 of the poolfs pool "home" 01234567-89ab-cdef-0123-456789abcdef, last written 20.*-f' \
	"$MKFS" ours2.img
# By the backup ring alone, and when nothing of it verifies any more.
cp --sparse=always ours.img back.img
dd if=/dev/zero of=back.img bs=64K seek=1 count=8 conv=notrunc status=none
refuses 1 'back.img: contains member 1 of 2 of the poolfs pool' "$MKFS" back.img

# -- in use, also with -f
(flock 9 && exec sleep 60) 9<a.img &
pids+=($!)
until ! flock -n a.img true; do sleep 0.05; done
refuses 1 'a.img: in use: .*-f does not overwrite' "$MKFS" a.img
refuses 1 'a.img: in use' "$MKFS" -f b.img a.img

# -- read-only
if [ "$(id -u)" -ne 0 ]; then
	chmod 444 b.img
	refuses 1 'b.img.*read-only' "$MKFS" -f b.img
fi
finish
