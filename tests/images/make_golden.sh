#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# make_golden.sh VERSION GOLDEN-PROGRAM: the golden images of a format version, once, when it is released. Run in the source tree.
set -eu
version=$1 program=$2
to=$(dirname "$0")/released
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ ! -e "$to/v$version-a.img.xz" ] || {
	echo "format version $version is released: its golden images stay as they are" >&2
	exit 1
}
# one_pool COMMAND NAME
one_pool() {
	local member
	rm -f "$work"/*.img
	truncate -s 16M "$work/a.img"
	# versions 1 and 2 take members of equal size only
	if [ "$version" -ge 3 ]; then truncate -s 20M "$work/b.img"; else truncate -s 16M "$work/b.img"; fi
	"$program" "$1" "$version" "$work/a.img" "$work/b.img"
	for member in a b; do
		xz -9e <"$work/$member.img" >"$to/$2-$member.img.xz"
	done
}
mkdir -p "$to"
one_pool make "v$version"
[ "$version" -lt 6 ] || one_pool crash "v$version-log"
