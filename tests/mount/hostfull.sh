#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Large image files on a small disk: they can be made; when the disk is full, writers hear of it, what was synced stays, deleting
# works and gives room back, also after the daemon was killed; and all goes on when somebody makes room.
. "$(dirname "$0")/functions.sh"
need sha256sum mount fallocate

disk=$work/disk
mkdir "$disk"
host_room() {
	df -m --output=avail "$disk" | tail -n 1 | tr -d ' '
}
# host MIB: a disk of that size, in memory
host() {
	local free
	free=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
	[ "$free" -gt $(($1 + 500)) ] || skip "needs $1 MiB of memory"
	mount -t tmpfs -o "size=$1m" none "$disk" || skip "cannot mount a tmpfs"
}
# make SIZE MEMBERS VERSION: sets $spec
make() {
	local i images=()
	for ((i = 0; i < $2; i++)); do
		truncate -s "$1" "$disk/$i.img" || die "truncate"
		images+=("$disk/$i.img")
	done
	"$MKFS" -q --format-version "$3" "${images[@]}" 2>"$work/err" || die "mkfs.poolfs of $2 x $1 on $(host_room) MiB: $(cat "$work/err")"
	spec=$(IFS=: && echo "${images[*]}")
}
end_host() {
	umount "$disk" || die "umount of the host"
}

# -- up to 2 TiB in 1,500 MiB
for try in "2T 1 6" "200G 2 6" "2T 1 5"; do
	read -r size members version <<<"$try"
	what="$members x $size, version $version"
	host 1500
	make "$size" "$members" "$version"
	pool_mount commit=1
	head -c 20M /dev/urandom >"$mnt/kept"
	cp -a /usr/include/linux "$mnt/tree" || fail "$what: cp -a"
	"$POOLFS" sync "$mnt" || fail "$what: poolfs sync"
	sum=$(sha256sum <"$mnt/kept")
	fresh=$(host_room)
	[ "$fresh" -gt 200 ] || fail "$what: $fresh MiB left on the host at the beginning"
	# the host gets full by somebody else, all but some MiB
	fallocate -l "$((fresh - 30))M" "$disk/other" || die "fallocate"
	dd if=/dev/urandom of="$mnt/big" bs=1M count=200 conv=fsync status=none 2>"$work/err" && fail "$what: 200 MiB went into 30"
	grep -q 'No space left' "$work/err" || fail "$what: on a full host dd says: $(cat "$work/err")"
	# names find room, or hear that there is none
	i=0
	while [ $i -lt 3000 ] && { : >"$mnt/name$i"; } 2>"$work/err"; do
		i=$((i + 1))
	done
	[ $i = 3000 ] || grep -q 'No space left' "$work/err" || fail "$what: a name on a full host: $(cat "$work/err")"
	"$POOLFS" sync "$mnt" 2>"$work/err" || grep -q 'No space' "$work/err" || fail "$what: poolfs sync on a full host: $(cat "$work/err")"
	equal "$what: on a full host, the file that was synced" "$sum" "$(sha256sum <"$mnt/kept")"
	# deleting works, and makes room
	rm "$mnt/big" || fail "$what: rm on a full host"
	rm -f "$mnt"/name* || fail "$what: rm of names on a full host"
	"$POOLFS" sync "$mnt" || fail "$what: poolfs sync after rm on a full host"
	dd if=/dev/urandom of="$mnt/again" bs=1M count=8 conv=fsync status=none || fail "$what: there is no room after rm: $(host_room) MiB"
	# full again, and the daemon is killed
	dd if=/dev/urandom of="$mnt/big" bs=1M count=200 conv=fsync status=none 2>/dev/null
	again=$(sha256sum <"$mnt/again")
	pid=$(daemon_pid "$mnt")
	kill -9 "$pid"
	wait_gone "$pid"
	pool_mount commit=1
	equal "$what: after a kill on a full host" "$sum $again" "$(sha256sum <"$mnt/kept") $(sha256sum <"$mnt/again")"
	rm -f "$mnt/big" && rm "$mnt/again" || fail "$what: rm after a kill on a full host"
	diff -r /usr/include/linux "$mnt/tree" || fail "$what: the tree is another"
	# somebody makes room
	rm "$disk/other"
	dd if=/dev/urandom of="$mnt/big" bs=1M count=100 conv=fsync status=none || fail "$what: no room after the host has some: $(host_room) MiB"
	pool_umount
	pool_check
	pool_mount
	equal "$what: at the end" "$sum" "$(sha256sum <"$mnt/kept")"
	rm -rf "$mnt/tree" "$mnt/big" "$mnt/kept" || fail "$what: rm -rf"
	pool_umount
	pool_check
	end_host
done

# -- one that is too small for a pool
host 100
truncate -s 2T "$disk/0.img"
exits 1 "No space left" "$MKFS" -q "$disk/0.img"
end_host
finish
