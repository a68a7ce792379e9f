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
	expect_silent
	accepts "$POOLFS" status --json a.img
	json "j['version'] == $version and j['clean']"
	accepts "$FSCK" -n a.img b.img
	accepts "$FILL" a.img b.img -- write "/d/at-$version" 70000
	accepts "$FSCK" -n a.img b.img
done
accepts "$POOLFS" upgrade a.img
expect_out "has format version $newest already"
expect_silent
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

# -- to two copies of metadata, where there are two members
pool_options=(--format-version 5)
for from in 1 5; do
	if [ $from = 1 ]; then
		cp --sparse=always old/*.img .
	else
		pool a.img b.img
		accepts "$FILL" a.img b.img -- mkdir /d write /d/f 1500000
	fi
	accepts "$POOLFS" upgrade --to 6 a.img b.img
	expect_out "upgraded from format version $from to 6"
	accepts "$POOLFS" dump --tree a.img b.img
	expect_out '^leaf [01]:[0-9]* [01]:[0-9]* level 0'
	expect_not_out '^(leaf|node) [01]:[0-9]+ level'
	accepts "$FSCK" -n --json a.img
	json 'j["problems"] == 0 and j["single_nodes"] == 0'
	accepts "$POOLFS" upgrade --to 6 a.img
	expect_out 'has format version 6 already'
	# from now on an fsync is a record in the log, and a crash leaves it there
	accepts "$FILL" a.img b.img -- write /d/late 5000 fsync /d/late crash
	accepts "$FSCK" -n --json a.img
	json 'j["log_records"] > 0 and j["problems"] == 0'
	accepts "$FSCK" -p a.img
	accepts "$FILL" a.img b.img -- ino /d/late
done
pool one.img
accepts "$FILL" one.img -- write /f 100000
accepts "$POOLFS" upgrade one.img
expect_out "upgraded from format version 5 to $newest"
expect_silent
accepts "$POOLFS" dump --tree one.img
expect_out '^leaf 0:[0-9]+ level 0'
accepts "$POOLFS" scrub one.img
accepts "$FSCK" -n one.img

# -- which need room on both: without, the version stays
truncate -s 96M large.img
truncate -s 16M small.img
accepts "$MKFS" -q --format-version 5 large.img small.img
value=$(head -c 60000 /dev/zero | tr '\0' v)
for file in $(seq 12); do
	words=(write "/$file" 1)
	for name in $(seq 18); do words+=(xattr "/$file" "user.$name" "$value"); done
	accepts "$FILL" large.img small.img -- "${words[@]}"
done
says 8 'two copies of each tree node need [0-9]+ MiB on each of two metadata members, and ./small.img has [0-9]+ MiB for them; delete something first; the format version stays 5' \
	"$POOLFS" upgrade large.img
accepts "$POOLFS" status --json large.img
json 'j["version"] == 5 and j["clean"]'
accepts "$FSCK" -n large.img
for file in $(seq 12); do accepts "$FILL" large.img small.img -- rm "/$file"; done
accepts "$POOLFS" upgrade large.img
accepts "$FSCK" -n large.img
rm large.img small.img

# -- a pool full of data, in which metadata has its share all the same
pool full.img fuller.img
for file in $(seq 100); do
	"$FILL" full.img fuller.img -- write "/$file" 1000000 2>.err && continue
	grep -q 'No space left' .err || fail "filling the pool: $(cat .err)"
	break
done
[ "$file" -lt 100 ] || fail "the pool did not get full"
accepts "$FSCK" -p full.img # fill does not close a pool after an error
accepts "$POOLFS" upgrade full.img
expect_out "upgraded from format version 5 to $newest"
accepts "$POOLFS" scrub full.img
accepts "$FSCK" -n full.img
accepts "$FILL" full.img fuller.img -- rm /1 write /1 500000
accepts "$FSCK" -n full.img

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

# -- not clean
for from in 1 5; do
	pool_options=(--format-version "$from")
	pool a.img b.img
	accepts "$FILL" a.img b.img -- mkdir /d write /d/h 4096 sync crash
	refuses 8 'was not unmounted cleanly; nothing was changed. Check it first: fsck.poolfs' "$POOLFS" upgrade a.img
	accepts "$FSCK" -p a.img
	accepts "$POOLFS" upgrade a.img
	accepts "$FSCK" -n a.img
done
finish
