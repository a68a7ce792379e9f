#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Pools that cannot be opened: every program says what, where and what to do, exits as fsck(8) has it, and changes no byte.
. "$(dirname "$0")/functions.sh"
need flock

# By every program and mode that opens members.
each_says() {
	local text=$1
	shift
	says 8 "$text" "$FSCK" -n "$@"
	says 8 "$text" "$FSCK" -p "$@"
	says 8 "$text" "$FSCK" -y "$@"
	says 8 "$text" "$FSCK" --json -n "$@"
	says 8 "$text" "$POOLFS" scrub "$@"
	says 8 "$text" "$POOLFS" scrub -n "$@"
	says 8 "$text" "$POOLFS" status "$@"
	says 8 "$text" "$POOLFS" dump --tree "$@"
	says 8 "$text" "$POOLFS" upgrade "$@"
}
each_refuses() {
	unchanged each_says "$@"
}
all_busy() {
	says 8 'pool/b.img: in use' "$FSCK" -n pool/a.img pool/b.img pool/c.img
	says 8 'pool/b.img: in use' "$FSCK" -p -f pool/a.img
	says 8 'pool/b.img: in use' "$FSCK" -y pool/a.img pool/b.img pool/c.img
	says 8 'pool/b.img: in use' "$POOLFS" scrub pool/a.img
	says 8 'pool/b.img: in use' "$POOLFS" upgrade pool/a.img
}

pool_size=16M
mkdir pool other
pool pool/a.img pool/b.img pool/c.img
pool_options=(-L other)
pool other/x.img

# -- no such member
each_refuses 'pool/no.img: no such member \(No such file or directory\); check the path' pool/a.img pool/no.img

# -- not a member
image plain.img 16M
each_refuses 'plain.img: not a poolfs member .*; check the path, or make a pool with mkfs.poolfs' plain.img
each_refuses 'plain.img: not a poolfs member' pool/a.img pool/b.img plain.img
: >empty.img
each_refuses 'empty.img: not a poolfs member' empty.img
mkdir dir
refuses 8 'dir: is a directory' "$FSCK" -n dir
refuses 8 '/dev/null: is a ' "$FSCK" -n /dev/null

# -- members of two pools
each_refuses 'members of two pools: .*other/x.img' pool/a.img pool/b.img other/x.img
# -- one missing, and nowhere to be found
mkdir away
mv pool/b.img away/b.img
each_refuses '1 of its 3 members is missing: ' pool/a.img
each_refuses '1 of its 3 members is missing: ' pool/a.img pool/c.img
mv away/b.img pool/b.img

# -- one twice: the same file by another name, and a copy
ln -s a.img pool/link.img
each_refuses 'pool/a.img and pool/link.img are the same file or device; name each member once' pool/a.img pool/link.img pool/b.img pool/c.img
rm pool/link.img
cp --sparse=always pool/a.img away/copy.img
each_refuses 'pool/a.img and away/copy.img are both member 1 of 3|away/copy.img and pool/a.img are both member 1 of 3' \
	pool/a.img away/copy.img pool/b.img pool/c.img
# Two that are equally new beside the named one: which is meant is for the user to say.
mv away/copy.img pool/copy.img
each_refuses 'are both member 1 of the pool: name the one that you mean' pool/b.img
rm pool/copy.img

# -- in use
(flock 9 && exec sleep 120) 9<pool/b.img &
pids+=($!)
until ! flock -n pool/b.img true; do sleep 0.05; done
unchanged all_busy
# What only looks may look all the same, and says so.
accepts "$POOLFS" status pool/a.img
expect_out 'in use'
accepts "$POOLFS" dump --tree pool/a.img
expect_err 'in use'
accepts "$POOLFS" dump --super pool/a.img
kill "${pids[0]}"
pids=()
until flock -n pool/b.img true; do sleep 0.05; done

# -- truncated
cp --sparse=always other/x.img short.img
truncate -s 15M short.img
each_refuses 'short.img: ' short.img
rm short.img

# -- damaged superblocks, all of them
cp --sparse=always other/x.img zeroed.img
"$POKE" zeroed.img zero-super A
"$POKE" zeroed.img zero-super B
each_refuses 'zeroed.img: not a poolfs member' zeroed.img

# -- unknown features, both named
cp --sparse=always other/x.img new.img
"$POKE" new.img super incompat=0x8001
each_refuses 'new.img: .*features that this program does not know: incompat bit 15; use a newer poolfs' new.img
"$POKE" new.img super incompat=1 ro_compat=0x10001
for command in "$FSCK -y" "$POOLFS scrub"; do
	# shellcheck disable=SC2086
	refuses 8 'new.img: .*can only read: ro-compat bit 16; use a newer poolfs, or only read it' $command new.img
done
accepts "$FSCK" -n new.img
accepts "$POOLFS" status new.img
accepts "$POOLFS" scrub -n new.img

# -- read-only (root is not stopped by permissions)
if [ "$(id -u)" -ne 0 ]; then
	chmod 444 other/x.img
	refuses 8 'cannot be written .*use -n' "$FSCK" -y other/x.img
	refuses 8 'cannot be written .*use -n' "$POOLFS" scrub other/x.img
	pool_options=(--format-version 4)
	pool away/old.img
	chmod 444 away/old.img
	refuses 8 'away/old.img: cannot be written' "$POOLFS" upgrade away/old.img
	accepts "$FSCK" -n other/x.img
	accepts "$POOLFS" scrub -n other/x.img
	chmod 600 other/x.img
fi

# -- and the good pool still opens, in any order, from one member
for order in 'a b c' 'c b a' 'b a c' 'a' 'b' 'c'; do
	# shellcheck disable=SC2046
	accepts "$FSCK" -n $(printf 'pool/%s.img ' $order)
done
finish
