#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every source file is in its folder's local.mk, so that a release has it and 'make check' runs it.
set -u
cd "${top_srcdir:-.}" || exit 99
bad=0

# A file is listed when the word stands in one of the pieces; a test program when its name without .c does.
words=$(cat Makefile.am ./*/local.mk | tr -s '[:space:]\134' '\n')
while read -r file; do
	case $file in
	tests/*.c)
		grep -qxF -e "$file" -e "${file%.c}" <<<"$words" && continue
		;;
	*)
		grep -qxF -e "$file" <<<"$words" && continue
		;;
	esac
	printf '%s is in no local.mk\n' "$file"
	bad=1
done < <(find format fs tools tests bench docs -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.sh' -o -name '*.py' -o -name '*.[1-9]' \
	-o -name '*.md' -o -name '*.xz' -o -name '*.expect' \) 2>/dev/null | sort)
exit $bad
