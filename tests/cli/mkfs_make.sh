#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What mkfs.poolfs makes: images of the size asked for, the geometry it prints, what is left of what was there before.
. "$(dirname "$0")/functions.sh"

# -- sizes
check_size() {
	accepts "$MKFS" -q -f --size "$1" size.img
	[ "$(stat -c %s size.img)" = "$2" ] || fail "--size $1 gives $(stat -c %s size.img) bytes"
	rm -f size.img
}
check_size 16777216 16777216
check_size 16M 16777216
check_size 16MiB 16777216
check_size 20MB 20000000
check_size 32768K 33554432
check_size 0.5G 536870912
check_size 1g 1073741824

# -- created: private, sparse
accepts "$MKFS" -L 'my pool' -U 01234567-89ab-cdef-0123-456789abcdef --size 256M a.img b.img
expect_silent
expect_out '^pool "my pool" 01234567-89ab-cdef-0123-456789abcdef$'
expect_out "^format version $released, placement file"
expect_out '^ +0 +256 MiB +4 +4 MiB .* a.img$'
expect_out '^ +1 +256 MiB .* b.img$'
expect_out '^usable: .* of 512 MiB$'
[ "$(stat -c %a a.img)" = 600 ] || fail "the image is not private"
[ "$(du -k a.img | cut -f1)" -lt 40000 ] || fail "the image is not sparse"
accepts "$FSCK" -n a.img b.img

# -- the same again is refused, and -f does it
refuses 1 'contains member 1 of 2' "$MKFS" a.img b.img
accepts "$MKFS" -f --placement stripe b.img a.img
expect_err 'a.img: overwriting member 1 of 2 of the poolfs pool "my pool"'
expect_out 'placement stripe'
accepts "$FSCK" -n a.img
# The old pool is gone from both: a member alone does not bring it back.
accepts "$MKFS" -q -f a.img
accepts "$POOLFS" status --json a.img
json 'len(j["members"]) == 1'
refuses 8 'missing' "$FSCK" -n b.img

# -- quiet, verbose, JSON, dry run
accepts "$MKFS" -q -f a.img b.img
[ ! -s .out ] || fail "-q prints something"
accepts "$MKFS" -v -f a.img b.img
expect_out 'superblocks 16 to 143 and '
accepts "$MKFS" --json -f -L 'a"\b' a.img b.img
json 'j["label"] == "a\"\\b" and j["version"] == '"$released"' and j["written"] and len(j["members"]) == 2'
json 'j["usable_bytes"] < j["size_bytes"] == 2 * 256 * 1024 * 1024'
json 'j["members"][1]["path"] == "b.img" and j["members"][0]["groups"] == 4'
before=$(fingerprint)
accepts "$MKFS" -n -f --size 64M a.img new1.img
[ "$before" = "$(fingerprint)" ] || fail "a dry run changed something"
expect_out 'dry run: nothing was written'
accepts "$MKFS" -n --json --size 1T --format-version 3 big1.img big2.img
json 'not j["written"] and j["version"] == 3 and j["members"][1]["size_bytes"] == 1 << 40'
[ ! -e big1.img ] || fail "a dry run created a file"

# -- resizing with -f, both ways; an empty file without
accepts "$MKFS" -q -f --size 32M a.img
[ "$(stat -c %s a.img)" = 33554432 ] || fail "not shrunk"
accepts "$FSCK" -n a.img
accepts "$MKFS" -q -f --size 64M a.img
accepts "$FSCK" -n a.img
: >empty.img
accepts "$MKFS" -q --size 32M empty.img
accepts "$FSCK" -n empty.img

# -- metadata members
accepts "$MKFS" --json -f --size 64M m1.img m2.img m3.img m4.img
json 'sum(m["metadata"] for m in j["members"]) == 2'
accepts "$MKFS" --json -f --meta ./m4.img --meta m2.img --meta m3.img m1.img m2.img m3.img m4.img
json '[m["metadata"] for m in j["members"]] == [False, True, True, True]'
accepts "$MKFS" --json -f --meta m3.img m1.img m2.img m3.img m4.img
json '[m["share_bytes"] > 0 for m in j["members"]] == [False, False, True, False]'
accepts "$FSCK" -n m1.img

# -- names that are not friendly
odd=$'odd\377 "name\\\n.img'
accepts "$MKFS" --json --size 16M "$odd"
json 'j["members"][0]["path_hex"] == b"odd\xff \"name\\\n.img".hex() and "\ufffd" in j["members"][0]["path"]'
accepts "$MKFS" -f "$odd"
expect_out 'odd\\377 "name\\134\\012.img$'
rm "$odd"

# -- every version, one member and several
for version in $(seq "$newest"); do
	accepts "$MKFS" -q -f --format-version "$version" --size 32M v.img w.img
	expect_silent
	[ ! -s .out ] || fail "-q prints something"
	accepts "$FSCK" -n v.img w.img
	accepts "$POOLFS" status --json v.img
	json "j['version'] == $version"
	accepts "$MKFS" -q -f --format-version "$version" --size 16M v.img
	accepts "$FSCK" -n v.img
done
image uneven.img 48M
accepts "$MKFS" -q -f --format-version 3 v.img uneven.img
accepts "$FSCK" -n uneven.img

# -- 32 members
# shellcheck disable=SC2046
accepts "$MKFS" -q --size 16M $(seq -f 'n%g.img' 32)
accepts "$FSCK" -n n7.img
rm -f n*.img

# -- what was there before is not found any more
check_gone() {
	accepts "$MKFS" -q -f "$1"
	command -v blkid >/dev/null || return
	[ -z "$(blkid -p "$1")" ] || fail "blkid still finds: $(blkid -p "$1")"
}
if command -v mkfs.ext4 >/dev/null; then
	image old.img 64M
	mkfs.ext4 -q -F old.img
	check_gone old.img
fi
if command -v mkfs.btrfs >/dev/null; then
	image old.img 128M
	mkfs.btrfs -q -f old.img 2>.err
	check_gone old.img
fi
if command -v mkswap >/dev/null; then
	mkswap old.img >/dev/null 2>&1
	check_gone old.img
fi
if command -v sgdisk >/dev/null; then
	sgdisk -Z -n 1:0:0 old.img >/dev/null 2>&1
	check_gone old.img
fi

# -- a host that is full: the message says so, and the images are gone again
if [ "$(id -u)" -eq 0 ] && mkdir tiny && mount -t tmpfs -o size=8M tmpfs tiny 2>/dev/null; then
	run "$MKFS" --size 1G tiny/a.img
	expect_exit 1
	expect_err 'tiny/a.img.*(No space|full)'
	[ ! -e tiny/a.img ] || fail "the image is still there"
	umount tiny
fi
# -- metadata twice: the smaller of two members says how much there can be
truncate -s 20G big.img
truncate -s 64M small.img
accepts "$MKFS" -n --format-version 6 big.img small.img
expect_out '^note: metadata is kept twice, and small.img is sure to have room for that of .* of large files only; nominate others by --meta'
accepts "$MKFS" -n --format-version 5 big.img small.img
expect_not_out '^note:'
accepts "$MKFS" -n --format-version 6 --meta big.img big.img small.img
expect_not_out '^note:'
truncate -s 1G small.img
accepts "$MKFS" -n --format-version 6 big.img small.img
expect_not_out '^note:'
finish
