#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# poolfs dump and status show what mkfs and the engine made.
. "$(dirname "$0")/functions.sh"
uuid=01234567-89ab-cdef-0123-456789abcdef
pool_options=(-L lab -U "$uuid" --format-version 5)
pool a.img b.img
accepts "$POOLFS" dump a.img
expect_out 'version +5, '
expect_out 'incompat +0x1 data-csum$'
pool_options=(-L lab -U "$uuid" --format-version 6)
pool a.img b.img

# -- superblocks
accepts "$POOLFS" dump a.img
expect_out 'ring A slot [0-7] block [0-9]+ +valid, generation '
expect_out 'ring B slot [0-7] block [0-9]+ +valid, generation '
expect_out "pool +$uuid label \"lab\""
expect_out 'incompat +0x7 data-csum node-copies intent-log$'
expect_out 'ro_compat +0x1 reclaim'
accepts "$POOLFS" dump --super --json a.img b.img
json 'len(j["superblocks"]) == 2 and all(len(s["slots"]) == 16 for s in j["superblocks"])'
json "all(s['newest']['pool_uuid'] == '$uuid' and s['newest']['label'] == 'lab' for s in j['superblocks'])"
json '[s["newest"]["member_id"] for s in j["superblocks"]] == [0, 1] and j["damaged"] == 0'
json 'all(s["newest"]["clean"] and s["newest"]["version"] == 6 for s in j["superblocks"])'

# -- the tree
accepts "$FILL" a.img b.img -- mkdir /dir write /dir/file 3000000 xattr /dir user.colour blue rm /dir/file write /f2 5000
accepts "$POOLFS" dump --tree a.img
expect_out '(leaf|node) [01]:[0-9]+ [01]:[0-9]+ level 0 generation '
expect_out 'inode 1 .*: mode 040755'
expect_out '"user.colour" length 4 value 626c7565'
expect_out '"dir" inode [0-9]+ type 4'
accepts "$POOLFS" dump --tree --json a.img
json 'j["nodes"][0]["state"] == "valid" and j["damaged"] == 0'
json 'any("\"f2\"" in i["item"] for n in j["nodes"] for i in n.get("items", []))'

# -- one inode and one node
ino=$("$FILL" a.img b.img -- ino /f2)
accepts "$POOLFS" dump --inode "$ino" a.img
expect_out "^ +inode $ino .*size 5000 "
expect_out '^ +extent data [0-9]+ block 0 .*blocks 2 .*crc 0x'
accepts "$POOLFS" dump --inode 1 --json a.img
json 'any(i["key"].startswith("name dir 1") for i in j["inode_items"])'
run "$POOLFS" dump --inode 99999 a.img
expect_exit 8
expect_err 'inode 99999: does not exist'
"$POOLFS" dump --super --json a.img >.root
root=$(python3 -c 'import json; print(json.load(open(".root"))["superblocks"][0]["newest"]["root"])')
accepts "$POOLFS" dump --node "$root" a.img
expect_out "^(leaf|node) $root [01]:[0-9]+ level "
run "$POOLFS" dump --node 0:3000 a.img
expect_exit 4
run "$POOLFS" dump --node 0:1 a.img
expect_exit 8
expect_err 'outside the data area'

# -- maps
accepts "$POOLFS" dump --maps a.img
expect_out 'group 0 .*map valid'
accepts "$POOLFS" dump --maps --json a.img
json 'len(j["maps"]) == 2 and j["damaged"] == 0'
json 'all(g["free_blocks"] == g["map_free_blocks"] for m in j["maps"] for g in m["groups"])'
json 'all(g["free_quads"] == g["map_free_quads"] > 0 for m in j["maps"] for g in m["groups"])'

# -- several at once are one JSON object
accepts "$POOLFS" dump --super --tree --maps --inode 1 --json a.img
json 'set(j) == {"superblocks", "maps", "nodes", "inode_items", "damaged"}'

# -- damage is shown, and the exit code says so
cp --sparse=always a.img bad.img
cp --sparse=always b.img badb.img
block=${root#*:}
"$POKE" bad.img flip $((block * 4096 + 200))
[ "${root%%:*}" = 0 ] && {
	run "$POOLFS" dump --tree bad.img badb.img
	expect_exit 4
	expect_err "node $root: tree node: checksum mismatch; its other copy is good"
	expect_out "^leaf $root "
}
"$POKE" a.img zero-super A
accepts "$POOLFS" dump a.img
expect_out 'ring A slot 0 .*empty'

# -- status
accepts "$POOLFS" status b.img a.img
expect_out "^pool +$uuid"
expect_out '^label +lab$'
expect_out '^version +6 \(.*data-csum'
expect_out '^placement +file'
expect_out '^state +not mounted, clean'
expect_out '^size .*used .*free'
expect_out ' a.img$'
accepts "$POOLFS" status --json a.img b.img
json "j['pool'] == '$uuid' and j['clean'] and len(j['members']) == 2"
json 'j["free_bytes"] <= j["total_bytes"]'
accepts "$FILL" a.img b.img -- write /f3 100000 sync crash
accepts "$POOLFS" status a.img b.img
expect_out 'was not unmounted cleanly'
finish
