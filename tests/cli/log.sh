#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a crash leaves in the intent log: shown by dump, counted by fsck -n, redone by the next mount or by fsck -p, and given up from
# damage on by fsck -y.
. "$(dirname "$0")/functions.sh"
pool_options=(--format-version 6)

# crashed: a.img and b.img as a crash leaves them after three fsyncs
crashed() {
	pool a.img b.img
	accepts "$FILL" a.img b.img -- mkdir /dir write /dir/one 5000 fsync /dir/one write /two 100000 fsync /two \
		xattr /two user.x y write /lost 4096 fsync /two crash
}
# holds NAME...: the pool, mounted as the next mount would be, has these files in its root
holds() {
	local name
	for name; do
		"$FILL" a.img b.img -- ino "$name" >/dev/null 2>&1 || fail "$name is not there"
	done
}

# -- nothing to redo
pool a.img b.img
accepts "$POOLFS" dump --log a.img b.img
expect_out 'intent log: not used yet'
accepts "$FILL" a.img b.img -- write /one 5000
accepts "$POOLFS" dump --log a.img b.img
expect_out 'unmounted cleanly'
accepts "$FSCK" -n a.img b.img
refuse_log() {
	if grep -q 'intent log' .out; then fail "fsck speaks of a log that has nothing"; fi
}
refuse_log

# -- looking
crashed
accepts "$POOLFS" dump --log a.img b.img
expect_out 'intent log: ring of [0-9]+ blocks on member 0, member 1'
expect_out 'promised +create '
expect_out 'promised +file '
expect_out 'blocks \[0, 2\) at '
accepts "$POOLFS" dump --log --json a.img b.img
json 'len(j["log"]["records"]) > 5 and j["damaged"] == 0 and j["log"]["members"] == [0, 1]'
json 'sum("create" in r["record"] for r in j["log"]["records"]) == 4'
sums=$(md5sum a.img b.img)
accepts "$FSCK" -n a.img b.img
expect_out 'intent log holds [0-9]+ records'
accepts "$FSCK" -n --json a.img b.img
json 'j["log_records"] > 5 and j["problems"] == 0 and j["inodes"] == 1'
[ "$sums" = "$(md5sum a.img b.img)" ] || fail "looking has changed the members"

# -- fsck -p redoes it
accepts "$FSCK" -p a.img b.img
accepts "$FSCK" -n --json a.img b.img
json 'j["log_records"] == 0 and j["problems"] == 0 and j["inodes"] == 5'
holds /dir/one /two /lost

# -- so does opening it
crashed
holds /dir/one /two /lost
accepts "$FSCK" -n a.img b.img
refuse_log

# -- the whole ring of one member gone: the other has it
crashed
read -r ring_a ring_b < <("$POOLFS" dump --log --json a.img b.img | python3 -c '
import json, sys
j = json.load(sys.stdin)["log"]
print(j["start"] % j["ring_blocks"], j["ring_blocks"])')
log_block=$(python3 - a.img "$ring_a" <<'END'
# where block START of the ring lies: by the magic of log blocks
import sys
data = open(sys.argv[1], 'rb').read(8 << 20)
print(next(b for b in range(len(data) // 4096) if data[b * 4096:b * 4096 + 8] == b'PLFS_LOG') - int(sys.argv[2]))
END
)
dd if=/dev/zero of=a.img bs=4096 seek="$log_block" count="$ring_b" conv=notrunc status=none
holds /dir/one /two /lost
accepts "$FSCK" -n a.img b.img

# -- a block that was promised, gone on both: no mount, and what came before it is kept if the user wants that
crashed
for image in a.img b.img; do
	at=$(python3 - "$image" <<'END'
import sys
data = open(sys.argv[1], 'rb').read(8 << 20)
blocks = [b for b in range(len(data) // 4096) if data[b * 4096:b * 4096 + 8] == b'PLFS_LOG']
print(blocks[1] * 4096 + 2000)
END
	)
	"$POKE" "$image" flip "$at"
done
run "$FILL" a.img b.img -- ino /two
[ "$status" != 0 ] || fail "a pool with a damaged log opened"
expect_err 'intent log is damaged'
run "$FSCK" -n a.img b.img
expect_exit 4
expect_out 'PF0701.*damaged'
run "$FSCK" -p a.img b.img
expect_exit 4
run "$FSCK" -y a.img b.img
expect_exit 1
accepts "$FSCK" -n a.img b.img
holds /dir/one
finish
