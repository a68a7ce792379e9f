#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# probes.sh PROBES [FILESYSTEM...]: runs a script of probes (called with a directory; prints "ID RESULT detail" for each) on pools and on other
# filesystems of 700 MiB, three times each, and prints a table in Markdown for docs/PROBES.md: what is not "ok" in every run. As root, with
# the programs of a build first in PATH. What is not installed is left out.
set -u
probes=$(realpath "${1:?probes.sh PROBES [FILESYSTEM...]}") || exit 2
shift
[ $# -gt 0 ] || set -- poolfs "poolfs, 3 members" ext4 xfs btrfs mergerfs bindfs ntfs-3g fuse2fs
work=$(mktemp -d "${TMPDIR:-/tmp}/poolfs-probes.XXXXXX") || exit 1
chmod 711 "$work" && mkdir "$work/mnt" "$work/below"
loop=
down() {
	cd /
	for dir in mnt below; do
		mountpoint -q "$work/$dir" && { umount "$work/$dir" || umount -l "$work/$dir"; }
	done
	[ -z "$loop" ] || losetup -d "$loop"
	loop=
	rm -f "$work"/*.img
}
trap 'down; rm -rf "$work"' EXIT

# up FILESYSTEM: mounted at $work/mnt
up() {
	local size=730M below=
	case $1 in
	xfs | btrfs) size=860M ;;
	ext4 | ntfs-3g | fuse2fs) size=800M ;;
	mergerfs | bindfs) size=800M below=ext4 ;;
	esac
	truncate -s "$size" "$work/a.img"
	case ${below:-$1} in
	"poolfs, 3 members")
		truncate -s 350M "$work/a.img" && truncate -s 250M "$work/b.img" && truncate -s 150M "$work/c.img" &&
			mkfs.poolfs -q "$work"/[abc].img && mount.poolfs "$work/a.img:$work/b.img:$work/c.img" "$work/mnt"
		return
		;;
	poolfs)
		mkfs.poolfs -q "$work/a.img" && mount.poolfs "$work/a.img" "$work/mnt"
		return
		;;
	esac
	loop=$(losetup -f --show "$work/a.img") || return
	case ${below:-$1} in
	ext4) mkfs.ext4 -q -F -m 0 "$loop" ;;
	xfs) mkfs.xfs -q -f "$loop" ;;
	btrfs) mkfs.btrfs -q -f "$loop" ;;
	ntfs-3g) mkfs.ntfs -q -f -F "$loop" ;;
	fuse2fs) mkfs.ext4 -q -F -m 0 -O ^has_journal "$loop" ;;
	*) return 1 ;;
	esac >/dev/null 2>&1 || return
	case $1 in
	mergerfs) mount "$loop" "$work/below" && mergerfs -o allow_other,xattr=passthrough,minfreespace=0 "$work/below" "$work/mnt" ;;
	bindfs) mount "$loop" "$work/below" && bindfs "$work/below" "$work/mnt" ;;
	ntfs-3g) ntfs-3g -o acl,streams_interface=xattr "$loop" "$work/mnt" ;;
	fuse2fs) fuse2fs -o fakeroot,allow_other "$loop" "$work/mnt" ;;
	*) mount -t "$1" "$loop" "$work/mnt" ;;
	esac >/dev/null 2>&1
}

printf '| filesystem | ok | not ok, or not in each of three runs |\n|---|---:|---|\n'
for fs; do
	program=${fs%%,*}
	case $program in ext4 | xfs | btrfs) program=mkfs.$program ;; poolfs) program=mkfs.poolfs ;; esac
	command -v "$program" >/dev/null || continue
	if ! up "$fs"; then
		printf '| %s | | could not be mounted here |\n' "$fs"
		down
		continue
	fi
	: >"$work/results"
	for _ in 1 2 3; do
		timeout 1200 python3 "$probes" "$work/mnt" >>"$work/results" 2>&1
	done
	# a refusal inside of a line is not ok either
	awk -v fs="$fs" '
		$2 != "ok" && $2 != "FAULT" && $2 != "unsup" && $2 != "skip" { next }
		{ all[$1] = 1 }
		$2 != "ok" || /EOPNOTSUPP|unsup/ { id = $1; $1 = ""; bad[id] = substr($0, 2) }
		END {
			for (i in all) { n++; if (!(i in bad)) good++ }
			printf "| %s | %d of %d |", fs, good, n
			for (i in bad) { gsub(/\|/, "/", bad[i]); printf "%s %s: %s", sep, i, substr(bad[i], 1, 90); sep = ";" }
			print " |"
		}' "$work/results"
	down
done
