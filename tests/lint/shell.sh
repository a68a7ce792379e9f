#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every shell script of the tree passes shellcheck.
set -u
cd "${top_srcdir:-.}" || exit 99
command -v shellcheck >/dev/null || {
	echo "shellcheck is not installed"
	exit 77
}
mapfile -t files < <(find quickstart .ci/run tests tools fs bench -type f 2>/dev/null | sort)
scripts=()
for file in "${files[@]}"; do
	head -c 64 "$file" | head -n 1 | tr -d '\0' | grep -qE '^#!.*\b(ba|da)?sh\b' && scripts+=("$file")
done
shellcheck -S warning -x -P SCRIPTDIR "${scripts[@]}"
