#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The golden images: a pool of each released format version opens, checks clean, holds what it was given and can be emptied; as
# it is, and after an upgrade to the newest released version. One with an intent log also as a crash left it: the log is redone by
# whoever opens it, or by fsck. They are never made again; a new version brings its own (tests/images/make_golden.sh).
. "$(dirname "$0")/functions.sh"
need xz
images=${top_srcdir:-.}/tests/images/released
GOLDEN=${GOLDEN:-${top_builddir:-.}/tests/images/golden}

# unpack NAME: as a.img and b.img
unpack() {
	local member
	for member in a b; do
		xz -dc "$images/$1-$member.img.xz" >$member.img || fail "cannot unpack member $member of $1"
	done
}

for version in $(seq "$released"); do
	[ -e "$images/v$version-a.img.xz" ] || {
		fail "format version $version has no golden image"
		continue
	}
	for upgraded in no yes; do
		unpack "v$version"
		accepts "$POOLFS" status --json a.img
		json "j['version'] == $version and j['clean']"
		if [ $upgraded = yes ]; then
			accepts "$POOLFS" upgrade a.img b.img
			accepts "$POOLFS" scrub a.img b.img
		fi
		if [ $upgraded = yes ] || [ "$version" -ge 6 ]; then # metadata on both
			accepts "$POOLFS" dump --tree a.img b.img
			expect_out '^leaf [01]:[0-9]+ [01]:[0-9]+ level 0'
			expect_not_out '^(leaf|node) [01]:[0-9]+ level'
		fi
		accepts "$GOLDEN" check b.img a.img
		accepts "$FSCK" -n a.img b.img
	done
done

for version in $(seq 6 "$released"); do
	[ -e "$images/v$version-log-a.img.xz" ] || {
		fail "format version $version has no golden image with a log"
		continue
	}
	unpack "v$version-log"
	accepts "$POOLFS" dump --log a.img b.img
	for record in create link remove rename setattr xattr file; do
		expect_out "^  block [0-9]+ .* $record "
	done
	refuses 8 'was not unmounted cleanly' "$POOLFS" upgrade --to "$released" a.img
	accepts "$GOLDEN" replay b.img a.img
	accepts "$FSCK" -n a.img b.img

	unpack "v$version-log"
	accepts "$FSCK" -p a.img b.img
	accepts "$GOLDEN" replayed b.img a.img
	accepts "$FSCK" -n a.img b.img
done
finish
