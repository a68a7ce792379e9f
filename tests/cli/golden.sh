#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The golden images: a pool of each released format version opens, checks clean, holds what it was given and can be emptied; as
# it is, and after an upgrade to the newest released version. They are never made again; a new version brings its own
# (tests/images/make_golden.sh).
. "$(dirname "$0")/functions.sh"
need xz
images=${top_srcdir:-.}/tests/images/released
GOLDEN=${GOLDEN:-${top_builddir:-.}/tests/images/golden}

for version in $(seq "$released"); do
	[ -e "$images/v$version-a.img.xz" ] || {
		fail "format version $version has no golden image"
		continue
	}
	for upgraded in no yes; do
		for member in a b; do
			xz -dc "$images/v$version-$member.img.xz" >$member.img || fail "cannot unpack member $member of $version"
		done
		if [ $upgraded = yes ]; then
			accepts "$POOLFS" upgrade a.img b.img
			accepts "$POOLFS" scrub a.img b.img
		fi
		accepts "$GOLDEN" check b.img a.img
		accepts "$FSCK" -n a.img b.img
	done
done
finish
