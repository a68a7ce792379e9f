#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fsck.poolfs: modes, exit codes of fsck(8), progress, JSON. What it finds and repairs is tested in tests/unit and images.
. "$(dirname "$0")/functions.sh"
pool a.img b.img
accepts "$FILL" a.img b.img -- mkdir /d write /d/f 2000000 write /d/g 100

# -- a clean pool
for mode in -n -p -a -y '-p -f' '-n -f -v' '' '-y --json' '-a -C0' '-a -C 0' '-a -C' '-n -C0'; do
	# shellcheck disable=SC2086
	accepts "$FSCK" $mode a.img b.img
	expect_silent
done
accepts "$FSCK" -a a.img
expect_out 'clean \(not checked'
accepts "$FSCK" -a -f a.img
expect_not_out 'not checked'
accepts "$FSCK" -v -n a.img
expect_out 'inodes, 2 directories'
accepts "$FSCK" --json -n a.img
json 'j["problems"] == 0 and j["checked"] and j["exit"] == 0 and j["problem_list"] == [] and j["inodes"] == 4'
accepts "$FSCK" --json -p a.img
json 'not j["checked"] and j["exit"] == 0'
accepts "$FSCK" -n -C3 a.img 3>progress
grep -qE '^[0-9]+ [0-9]+ [0-9]+ a.img$' progress || fail "no progress on descriptor 3: $(head -n 3 progress)"

# -- not unmounted cleanly: that alone is no problem
accepts "$FILL" a.img b.img -- write /d/h 4096 sync crash
accepts "$FSCK" -n a.img b.img
accepts "$POOLFS" status --json a.img
json 'not j["clean"]'
accepts "$FSCK" -p a.img b.img
expect_not_out 'not checked'
accepts "$POOLFS" status --json a.img
json 'j["clean"]'
accepts "$FSCK" -p a.img b.img
expect_out 'not checked'

# -- something that is safe to repair: a wrong count in the superblock
accepts "$FSCK" -y a.img b.img
for image in a.img b.img; do "$POKE" $image super nr_inodes=99; done
mkdir before && cp --sparse=always a.img b.img before
run "$FSCK" -n a.img b.img
expect_exit 4
expect_out '^PF0508: .*: not repaired$'
expect_out 'Run fsck.poolfs -p'
cmp -s a.img before/a.img && cmp -s b.img before/b.img || fail "-n changed something"
# Without a terminal there are no questions.
run "$FSCK" a.img b.img
expect_exit 4
cmp -s a.img before/a.img || fail "without a terminal something was changed"
run "$FSCK" -n --json a.img b.img
expect_exit 4
json 'j["exit"] == 4 and j["left"] == j["problems"] > 0 and j["repaired"] == 0'
json 'any(p["id"] == "PF0508" and p["repair"] == "safe" and not p["repairing"] for p in j["problem_list"])'
# The clean flag is trusted by -p alone, as by every fsck at boot; -f looks.
run "$FSCK" -p -f a.img b.img
expect_exit 1
expect_out '^PF0508: .*: repairing$'
accepts "$FSCK" -n a.img b.img
for mode in -y '-a -f'; do
	cp --sparse=always before/*.img .
	# shellcheck disable=SC2086
	run "$FSCK" $mode b.img
	expect_exit 1
	accepts "$FSCK" -n a.img b.img
done
# A question on a terminal.
if command -v script >/dev/null; then
	for answer in n:4 y:1; do
		cp --sparse=always before/*.img .
		printf '%s\n' "${answer%:*}" "${answer%:*}" "${answer%:*}" >.answers
		timeout -k 10 60 script -qec "$FSCK a.img b.img" .typescript <.answers >.out 2>.err
		status=$?
		last="fsck.poolfs on a terminal, answer ${answer%:*}"
		expect_exit "${answer#*:}"
		expect_out 'Repair \(y\)es, \(n\)o, \(a\)ll'
	done
fi

# -- one ring of superblocks gone: repaired from the other
"$FSCK" -y a.img b.img >/dev/null
"$POKE" a.img zero-super A
run "$FSCK" -n a.img b.img
expect_exit 4
expect_out '^PF010'
run "$FSCK" -p -f a.img b.img
expect_exit 1
accepts "$FSCK" -n a.img b.img

# -- damage that cannot be repaired: a flipped bit in the root of the tree; where it has two copies, in both
for version in 5 6; do
	pool_options=(--format-version "$version")
	pool a.img b.img
	accepts "$FILL" a.img b.img -- mkdir /d write /d/f 5000
	"$POOLFS" dump --super --json a.img b.img >.root
	roots=$(python3 -c 'import json; s = json.load(open(".root"))["superblocks"][0]["newest"]; print(s["root"], s.get("root_copy") or "")')
	[ "$(wc -w <<<"$roots")" = $((version - 4)) ] || fail "version $version has the root at $roots"
	for root in $roots; do
		image=a.img
		[ "${root%%:*}" = 0 ] || image=b.img
		"$POKE" $image flip $((${root#*:} * 4096 + 300))
	done
	for mode in -n -y '-p -f'; do
		# shellcheck disable=SC2086
		run "$FSCK" $mode a.img b.img
		expect_exit 4
		expect_sane
		expect_out '^PF0201'
	done
done
finish
