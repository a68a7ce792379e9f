#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What every file keeps to: licence line, length, the opening of headers, nothing left unfinished; and what the engine never
# does: print, exit, keep global state.
set -u
cd "${top_srcdir:-.}" || exit 99
bad=0

complain() {
	printf '%s\n' "$*"
	bad=1
}

mapfile -t files < <(find format fs tools tests bench -name '*.[ch]' -o -name '*.def' -o -name '*.sh' -o -name '*.py' -o -name '*.mk' \
	2>/dev/null | sort)
for file in "${files[@]}"; do
	head -n 2 "$file" | grep -q 'SPDX-License-Identifier: MIT' || complain "$file: the SPDX line is missing at the top"
	lines=$(wc -l <"$file")
	case $file in
	*.h)
		[ "$lines" -le 200 ] || complain "$file: $lines lines, a header has at most 200"
		if [[ $file == format/* && $file != format/poolfs.h ]]; then
			for word in Purpose Invariants Uses; do
				head -n 60 "$file" | grep -qE "^ \\*.*\\b$word\\b" || complain "$file: its opening comment lacks '$word'"
			done
		fi
		;;
	*.c)
		[ "$lines" -le 800 ] || complain "$file: $lines lines, a .c file has at most 800"
		;;
	esac
	case $file in
	*.[ch] | *.def)
		grep -nE '\b(TODO|FIXME|XXX)\b' "$file" && complain "$file: unfinished"
		;;
	esac
done

# From the compiled library, so that no spelling gets past.
library=${top_builddir:-.}/libpoolfs.a
if [ -f "$library" ] && command -v nm >/dev/null; then
	symbols=$(nm -A "$library" 2>/dev/null)
	grep -E ' U (_?_?v?printf(_chk)?|puts|putchar|perror|stdout|stderr|exit|_exit|v?syslog)$' \
		<<<"$symbols" && complain "the engine prints or exits: see above"
	# Sanitizers and coverage put data of their own into these sections.
	if ! grep -qE ' U __(asan|tsan|ubsan|gcov)_' <<<"$symbols" && command -v objdump >/dev/null; then
		objdump -t "$library" | awk '/file format/ { file = $1 } $0 ~ / O \.(data|bss|tdata|tbss)(\.|[[:space:]])/ && !/\.data\.rel\.ro/ { print file, $NF; bad = 1 }
			END { exit bad }' || complain "the engine has writable global state: see above"
	fi
fi
exit $bad
