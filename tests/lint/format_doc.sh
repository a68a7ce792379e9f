#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# docs/FORMAT.md says the same as the headers: the compiler is asked, field by field.
#
# What the document must look like for this: a structure begins with a line '**`struct pf_disk_x`**, N bytes'; the rows of
# its table are '| offset | size | `field` | ...'; a size '…' is that of an open end. Constants are rows
# '| `PF_NAME` | number | ...'. A table's fields must leave no gap, so a forgotten field is found.
set -u
cd "${top_srcdir:-.}" || exit 99
doc=docs/FORMAT.md
bad=0

complain() {
	printf '%s\n' "$*"
	bad=1
}

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

{
	printf '#include "ondisk/ondisk_record.h"\n#include "ondisk/version.h"\n'
	awk -F'|' '
	function trim(s) { gsub(/^[ `]+|[ `]+$/, "", s); return s }
	function claim(what, text) { printf "static_assert(%s, \"FORMAT.md line %d: %s\");\n", what, NR, text }
	function finish() {
		if (name != "" && !open)
			claim(end " == sizeof(struct " name ")", name ": the table does not reach the end of the structure")
		name = ""
	}
	/^\*\*`struct pf_disk_[a-z_]+`\*\*, [0-9]+ bytes/ {
		finish()
		match($0, /pf_disk_[a-z_]+/); name = substr($0, RSTART, RLENGTH)
		match($0, /, [0-9]+ bytes/); size = substr($0, RSTART + 2, RLENGTH - 8)
		claim("sizeof(struct " name ") == " size, name ": size")
		end = 0; open = 0
		next
	}
	/^#/ { finish() }
	name != "" && trim($2) ~ /^[0-9]+$/ {
		at = trim($2); size = trim($3); field = trim($4)
		claim(at " == " end, name "." field ": gap or overlap before this field")
		claim("offsetof(struct " name ", " field ") == " at, name "." field ": offset")
		if (size == "…") { open = 1; end = at; next }
		claim("sizeof(((struct " name " *)0)->" field ") == " size, name "." field ": size")
		end = at + size
	}
	trim($2) ~ /^PF_[A-Z0-9_]+$/ && trim($3) ~ /^(0x)?[0-9A-Fa-f]+$/ {
		claim("(unsigned long long)" trim($2) " == " trim($3) "ull", trim($2) ": value")
	}
	END { finish(); print "int main(void) { return 0; }" }' $doc
} >"$work/claims.c"
${CC:-cc} -std=gnu11 -Iformat -fsyntax-only "$work/claims.c" 2>"$work/errors" || {
	grep -oE 'FORMAT.md line [0-9]+: [^"]*' "$work/errors" | sort -u | grep . || cat "$work/errors"
	bad=1
}

# Nothing forgotten: every structure, every magic, every value of an enum that lies on disk.
while read -r name; do
	grep -qE "^\*\*\`struct $name\`\*\*, [0-9]+ bytes" $doc || complain "$doc: struct $name is missing"
done < <(sed -nE 's/^struct (pf_disk_[a-z_]+) \{.*/\1/p' format/ondisk/*.h)
while read -r name; do
	case $name in
	PF_*_SHIFT | PF_ADDR_BLOCK_BITS | PF_KEY_MIN | PF_KEY_MAX | PF_NODE_BLOCKS) continue ;; # follow from others
	esac
	grep -qE "^\| \`$name\` \|" $doc || complain "$doc: $name is missing"
done < <(grep -hoE '^#define PF_[A-Z0-9_]+ |\bPF_[A-Z0-9_]+ = ' format/ondisk/ondisk*.h | sed 's/^#define //; s/ .*//')

# Versions and features: the rows of version.def.
sed -nE 's/^FEATURE\([A-Z_]+, ([A-Z_]+), ([0-9]+), ([0-9]+), "([^"]+)", "([^"]+)"\).*/\1|\2|\3|\4|\5/p' format/ondisk/version.def |
	tr -d '\r' | while IFS='|' read -r class bit since name sentence; do
	class=$(tr 'A-Z_' 'a-z-' <<<"$class")
	grep -qF "| \`$name\` | $class | $bit | $since | $sentence |" $doc ||
		echo "$doc: no row | \`$name\` | $class | $bit | $since | $sentence |"
done >"$work/rows"
sed -nE 's/^VERSION\(([0-9]+), "([^"]+)"\).*/\1|\2/p' format/ondisk/version.def |
	while IFS='|' read -r number sentence; do
		grep -qF "| $number | $sentence |" $doc || printf '%s: no row "| %s | %s |"\n' "$doc" "$number" "$sentence"
	done >>"$work/rows"
[ ! -s "$work/rows" ] || {
	cat "$work/rows"
	bad=1
}
exit $bad
