#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# poolfs upgrade: one version at a time and all at once; refused when it cannot be, with nothing changed.
. "$(dirname "$0")/functions.sh"
pool_options=(--format-version 1)
pool a.img b.img
accepts "$FILL" a.img b.img -- mkdir /d write /d/f 1500000 write /d/gone 2000000 rm /d/gone
mkdir old
cp --sparse=always a.img b.img old

# -- nothing is written by -n
before=$(fingerprint)
accepts "$POOLFS" upgrade -n a.img
expect_out "would be upgraded from format version 1 to $released"
[ "$before" = "$(fingerprint)" ] || fail "-n wrote something"

# -- one at a time
for version in $(seq 2 "$newest"); do
	accepts "$POOLFS" upgrade --to "$version" b.img
	expect_out "upgraded from format version $((version - 1)) to $version"
	if [ "$version" -le "$released" ]; then
		expect_silent
	else
		expect_err "warning: format version $version is not released; later builds may not be able to read this pool"
	fi
	accepts "$POOLFS" status --json a.img
	json "j['version'] == $version and j['clean']"
	accepts "$FSCK" -n a.img b.img
	accepts "$FILL" a.img b.img -- write "/d/at-$version" 70000
	accepts "$FSCK" -n a.img b.img
	if [ "$version" -ge "$released" ]; then # where the default leads, or beyond
		accepts "$POOLFS" upgrade a.img
		expect_out "has format version $version already"
		expect_silent
	fi
done
refuses 8 "has format version $newest; it cannot go back to 4" "$POOLFS" upgrade --to 4 a.img

# -- all at once; the space of what was deleted before version 4 comes back
cp --sparse=always old/*.img .
accepts "$POOLFS" status --json a.img
used_before=$(python3 -c 'import json; j = json.load(open(".out")); print(j["total_bytes"] - j["free_bytes"])')
accepts "$POOLFS" upgrade -q a.img b.img
[ ! -s .out ] || fail "-q prints something"
expect_silent
accepts "$POOLFS" status --json a.img
json "j['version'] == $released"
json "j['total_bytes'] - j['free_bytes'] <= $used_before - 1900000"
accepts "$FSCK" -n a.img
accepts "$POOLFS" scrub a.img
expect_out 'filled in'

# -- to two copies of metadata, which need room on both members
cp --sparse=always old/*.img .
accepts "$POOLFS" upgrade --to 6 a.img b.img
expect_out 'upgraded from format version 1 to 6'
accepts "$POOLFS" dump --tree a.img b.img
expect_out '^leaf 0:[0-9]* 1:[0-9]* level 0'
accepts "$FSCK" -n --json a.img
json 'j["problems"] == 0 and j["single_nodes"] == 0'
accepts "$POOLFS" upgrade --to 6 a.img
expect_out 'has format version 6 already'
pool_options=(--format-version 5)
pool one.img
accepts "$POOLFS" upgrade --to 6 one.img
accepts "$FSCK" -n one.img

# -- interrupted when it had the version and no copies yet: the same command goes on
pool two.img three.img
accepts "$FILL" two.img three.img -- mkdir /d write /d/f 1500000
for i in two three; do "$POKE" $i.img super version=6 compat=3 ro_compat=1 incompat=7 || fail 'cannot poke the superblocks'; done
accepts "$FSCK" -n two.img
expect_out "^1 tree nodes have one copy only, as an upgrade was interrupted: 'poolfs upgrade --to 6' completes it"
before=$(fingerprint)
accepts "$POOLFS" upgrade -n two.img
expect_out 'some tree nodes would get their second copy: an upgrade was interrupted'
[ "$before" = "$(fingerprint)" ] || fail "-n wrote something"
accepts "$POOLFS" upgrade --to 6 two.img
expect_out 'an interrupted upgrade has been completed'
accepts "$FSCK" -n --json two.img
json 'j["problems"] == 0 and j["single_nodes"] == 0'
accepts "$POOLFS" upgrade --to 6 two.img
expect_out 'has format version 6 already'
pool_options=(--format-version 1)

# -- not clean
cp --sparse=always old/*.img .
accepts "$FILL" a.img b.img -- write /d/h 4096 sync crash
refuses 8 'was not unmounted cleanly; nothing was changed. Check it first: fsck.poolfs' "$POOLFS" upgrade a.img
accepts "$FSCK" -p a.img
accepts "$POOLFS" upgrade a.img
finish
