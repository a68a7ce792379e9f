#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What --help names, the man page explains, and the other way round. Long options only; they are the names.
set -u
cd "${top_srcdir:-.}" || exit 99
bad=0
seen=0

options_of() {
	grep -oE -- '(^|[^-[:alnum:]])--[a-z][-a-z]*' | grep -oE -- '--[a-z][-a-z]*' | sort -u
}

for page in docs/man/*.[18]; do
	[ -e "$page" ] || continue
	program=$(basename "${page%.*}")
	[ -x "${top_builddir:-.}/$program" ] || continue
	seen=1
	help=$("${top_builddir:-.}/$program" --help 2>&1 | options_of)
	# Macros and escapes of the page stripped: \- is a minus sign, \fB and the like set the font.
	text=$(sed -E 's/\\-/-/g; s/\\f[BIRP]|\\f\(..|\\&//g' "$page" | options_of)
	diff <(printf '%s\n' "$help") <(printf '%s\n' "$text") >/tmp/poolfs-man.$$ || {
		printf '%s: --help (<) and %s (>) name different options:\n' "$program" "$page"
		grep '^[<>]' /tmp/poolfs-man.$$
		bad=1
	}
	rm -f /tmp/poolfs-man.$$
	if command -v man >/dev/null; then
		warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=100 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
		[ -z "$warnings" ] || {
			printf '%s: %s\n' "$page" "$warnings"
			bad=1
		}
	fi
done
[ $seen -eq 1 ] || exit 77
exit $bad
