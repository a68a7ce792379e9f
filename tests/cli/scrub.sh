#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# poolfs scrub: a clean pool, damaged files by name, place and member; nothing is written with -n.
. "$(dirname "$0")/functions.sh"
need python3
pool a.img b.img
accepts "$FILL" a.img b.img -- mkdir /d write /d/file 3000000 write /d/other 50000 write $'/d/odd\377\n' 8192

accepts "$POOLFS" scrub a.img b.img
expect_out '^read .* of data and .* of metadata: clean$'
accepts "$POOLFS" scrub -q a.img
[ ! -s .out ] || fail "-q prints something"
before=$(fingerprint)
accepts "$POOLFS" scrub -n --rate 100M a.img
[ "$before" = "$(fingerprint)" ] || fail "-n wrote something"
accepts "$POOLFS" scrub --json a.img
json 'j["complete"] and j["errors"] == 0 and j["damage"] == [] and j["data_bytes"] >= 3000000 and j["metadata_bytes"] > 0'
accepts "$FSCK" -n a.img

# place PATH: member and byte offset on it of the first block of the file, of its first extent.
place() {
	local ino
	ino=$("$FILL" a.img b.img -- ino "$1")
	"$POOLFS" dump --inode "$ino" --json a.img | python3 -c '
import json, re, sys
for i in json.load(sys.stdin)["inode_items"]:
    m = re.search(r"at (\d+):(\d+)", i["item"])
    if i["key"].startswith("extent") and i["key"].endswith(" block 0") and m:
        print("a.img" if m[1] == "0" else "b.img", int(m[2]) * 4096)'
}

# -- one bit, two blocks in a row, another file with an odd name
read -r member at < <(place /d/file)
"$POKE" "$member" flip $((at + 5 * 4096 + 17)) $((at + 6 * 4096))
before=$(fingerprint)
run "$POOLFS" scrub -n a.img b.img
expect_exit 4
expect_out "^damaged: /d/file at offset 20480, 8192 bytes, on $member at offset $((at + 20480)): data block: checksum mismatch\$"
expect_out '2 damaged blocks, 1 damaged files'
[ "$before" = "$(fingerprint)" ] || fail "-n wrote something"
read -r odd_member odd_at < <(place $'/d/odd\377\n')
"$POKE" "$odd_member" flip "$odd_at"
run "$POOLFS" scrub a.img b.img
expect_exit 4
expect_out '^damaged: /d/odd\\377\\012 at offset 0, 4096 bytes'
run "$POOLFS" scrub --json b.img
expect_exit 4
json 'j["errors"] == 3 and j["damaged_files"] == 2 and len(j["damage"]) == 2'
json "any(d['path'] == '/d/file' and d['file_offset'] == 20480 and d['length'] == 8192 and d['member'].removeprefix('./') == '$member' and d['member_offset'] == $((at + 20480)) for d in j['damage'])"
json 'any(d.get("path_hex") == b"/d/odd\xff\n".hex() for d in j["damage"])'
run "$POOLFS" scrub -q a.img
expect_exit 4
[ "$(wc -l <.out)" -eq 2 ] || fail "-q does not print the damage, one line each"

# -- metadata
"$POOLFS" dump --super --json a.img b.img >.root
root=$(python3 -c 'import json; print(json.load(open(".root"))["superblocks"][0]["newest"]["root"])')
image=a.img
[ "${root%%:*}" = 0 ] || image=b.img
cp --sparse=always a.img save-a.img
cp --sparse=always b.img save-b.img
"$POKE" $image flip $((${root#*:} * 4096 + 300))
run "$POOLFS" scrub -n a.img b.img
expect_exit 4
expect_sane
mv save-a.img a.img
mv save-b.img b.img

# -- metadata in two copies: one is bad, and nothing is lost
pool_options=(--format-version 6)
pool c.img d.img
accepts "$FILL" c.img d.img -- mkdir /d write /d/file 300000
accepts "$POOLFS" dump --tree c.img d.img
expect_out '^leaf 0:[0-9]* 1:[0-9]* level 0'
accepts "$POOLFS" dump --super --json c.img d.img
cp .out .root
root=$(python3 -c 'import json; print(json.load(open(".root"))["superblocks"][0]["newest"]["root"])')
copy=$(python3 -c 'import json; print(json.load(open(".root"))["superblocks"][0]["newest"]["root_copy"])')
[ "${root%%:*}${copy%%:*}" = 01 ] || fail "root at $root and $copy"
accepts "$POOLFS" dump --node "$copy" c.img d.img
expect_out "^leaf $copy $root "
"$POKE" d.img flip $((${copy#*:} * 4096 + 300))
before=$(fingerprint)
run "$POOLFS" scrub -n c.img d.img
expect_exit 4
expect_out "^damaged: metadata on d.img at offset $((${copy#*:} * 4096)): .*; another copy is good: 'fsck.poolfs -p -f' writes this one anew\$"
expect_out '1 damaged blocks, 0 damaged files'
run "$POOLFS" scrub -n --json c.img d.img
expect_exit 4
json 'j["errors"] == 1 and j["damage"][0]["metadata"] and j["damage"][0]["good_copy"]'
run "$POOLFS" dump --tree c.img d.img
expect_sane
[ "$before" = "$(fingerprint)" ] || fail "looking wrote something"
run "$FSCK" -n c.img d.img
expect_exit 4
expect_out "PF0213.*d.img.*the copy at .*c.img.* is good"
run "$FSCK" -p -f c.img d.img
expect_exit 1
accepts "$FSCK" -n c.img d.img
accepts "$POOLFS" scrub c.img d.img
expect_out ': clean$'
accepts "$FILL" c.img d.img -- ino /d/file

# -- a pool without checksums reads, and says what it cannot promise
pool_options=(--format-version 4)
pool old.img
accepts "$FILL" old.img -- write /f 100000
accepts "$POOLFS" scrub old.img
expect_out 'have no checksum and could only be read'
accepts "$POOLFS" upgrade old.img
accepts "$POOLFS" scrub -n old.img
expect_out 'have no checksum'
accepts "$POOLFS" scrub old.img
expect_out '^checksums filled in for '
accepts "$POOLFS" scrub old.img
expect_not_out 'have no checksum'
accepts "$FSCK" -n old.img
finish
