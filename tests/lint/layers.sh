#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Who may include whom: format/ folders only themselves and lower ones; fs and tools only poolfs.h and their own headers;
# libfuse only in fs/ (and in bench/, for the empty filesystem it compares with).
set -u
cd "${top_srcdir:-.}" || exit 99
bad=0

complain() {
	printf '%s\n' "$*"
	bad=1
}

order=(base ondisk member log space tree block object commit pool check)
rank_of() {
	local i
	for i in "${!order[@]}"; do
		[ "${order[i]}" != "$1" ] || {
			echo "$i"
			return
		}
	done
}

# Lines "file:line:name" of each #include with quotes.
quoted_includes() {
	grep -nHoE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"[^"]+"' "$@" | sed -E 's/#.*"([^"]+)"/\1/; s/[[:space:]]//g'
}

while IFS=: read -r file line name; do
	folder=${file#format/}
	[ "$folder" != poolfs.h ] || continue
	folder=${folder%%/*}
	target=${name%%/*}
	if [ "$target" = "$name" ] || [ ! -e "format/$name" ]; then
		complain "$file:$line: \"$name\": includes are relative to format/ (folder/file.h)"
	elif [ -z "$(rank_of "$folder")" ]; then
		complain "$file: folder format/$folder is not in the order of the layers (${order[*]})"
	elif [ -z "$(rank_of "$target")" ] || [ "$(rank_of "$target")" -gt "$(rank_of "$folder")" ]; then
		complain "$file:$line: \"$name\": $folder may include only itself and what is below it (${order[*]})"
	fi
done < <(quoted_includes format/*.h format/*/*.[ch])

for folder in fs tools; do
	ls $folder/*.[ch] >/dev/null 2>&1 || continue
	while IFS=: read -r file line name; do
		[ "$name" = poolfs.h ] || [ -e "$folder/$name" ] ||
			complain "$file:$line: \"$name\": $folder/ may include poolfs.h and its own headers only"
	done < <(quoted_includes $folder/*.[ch])
done

while IFS=: read -r file line _; do
	case $file in
	fs/* | bench/*) ;;
	*) complain "$file:$line: libfuse may be included in fs/ and bench/ only" ;;
	esac
done < <(grep -rnE --include='*.[ch]' '#[[:space:]]*include[[:space:]]*<fuse' format fs tools tests bench 2>/dev/null)

exit $bad
