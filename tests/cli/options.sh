#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Help, version and wrong command lines of every program.
. "$(dirname "$0")/functions.sh"

for program in "$MKFS" "$FSCK" "$POOLFS" "$POOLFS status" "$POOLFS scrub" "$POOLFS dump" "$POOLFS sync" "$POOLFS upgrade"; do
	case $program in
	*mkfs*) usage=1 ;;
	*) usage=16 ;;
	esac
	# shellcheck disable=SC2086
	{
		accepts $program --help
		expect_out '^Usage: .*(poolfs)'
		expect_out '--version'
		expect_out '--help'
		expect_silent
		accepts $program -h
		accepts $program --version
		expect_out 'poolfs.* [0-9]+\.[0-9]+\.[0-9]+ \(format versions 1 to [0-9]+, default [0-9]+\)'
		accepts $program -V
		refuses $usage 'poolfs' $program
		refuses $usage '(is not an option|is not a verb)' $program --no-such-option
	}
done
accepts "$POOLFS" help
expect_out 'scrub'
refuses 16 '"no-such-verb" is not a verb' "$POOLFS" no-such-verb
refuses 16 'needs an argument' "$POOLFS" scrub --rate
refuses 16 '"x" is not a size' "$POOLFS" scrub --rate x a.img
refuses 16 '"0" is not a size' "$POOLFS" scrub --rate 0 a.img
refuses 16 'takes no argument' "$POOLFS" status --json=1 a.img
refuses 16 'not an inode number' "$POOLFS" dump --inode x a.img
refuses 16 'write MEMBER:BLOCK' "$POOLFS" dump --node 7 a.img
refuses 16 'write MEMBER:BLOCK' "$POOLFS" dump --node 99:7 a.img
refuses 16 'format version "6?": must be 1 to ' "$POOLFS" upgrade --to '' a.img
refuses 16 'only one of -n, -p' "$FSCK" -n -y a.img
refuses 16 'only one of -n, -p' "$FSCK" -p -n a.img
refuses 16 'not the number of a file descriptor' "$FSCK" -Cx a.img
# shellcheck disable=SC2046
refuses 16 '33 members given' "$FSCK" $(seq 33)
# shellcheck disable=SC2046
refuses 16 '33 members given' "$POOLFS" status $(seq 33)

# Results that cannot be printed are a failure.
if [ -e /dev/full ]; then
	"$MKFS" --help >/dev/full 2>.err
	[ $? -eq 1 ] || fail "mkfs.poolfs --help to a full disk does not fail"
	"$POOLFS" --help >/dev/full 2>.err
	[ $? -eq 8 ] || fail "poolfs --help to a full disk does not fail"
fi

refuses 8 "/proc: is not on a mounted poolfs" "$POOLFS" sync /proc
refuses 8 "/proc: is not on a mounted poolfs" "$POOLFS" status /proc
refuses 8 "nowhere: No such file or directory" "$POOLFS" sync nowhere
refuses 16 "no directory given" "$POOLFS" sync
finish
