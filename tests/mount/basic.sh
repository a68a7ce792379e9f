#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A real tree goes in and comes out the same: over a remount with the members in another order, with one member named, by label.
. "$(dirname "$0")/functions.sh"
need rsync

mkfs_options=(-L "home pool")
make_pool 192M 256M 128M
pool_mount

# some thousands of real files, and what a copy of /usr seldom holds
tree=$work/tree
mkdir "$tree"
for dir in /usr/include /usr/share/perl /usr/share/doc /usr/lib/python3; do
	[ -d "$dir" ] && cp -a "$dir" "$tree/" 2>/dev/null
	[ "$(du -sm "$tree" | cut -f1)" -lt 100 ] || break
done
(
	cd "$tree" || exit 99
	mkdir odd && cd odd || exit 99
	mkfifo fifo && mknod null c 1 3 && mknod disk b 7 300 && ln -s 'no where' dangling && mkdir -p a/b/c/d
	: >"$(printf '%255s' '' | tr ' ' n)"
	: >$'new\nline' && : >' ' && : >$'\xff\xfe'
	echo one >hard1 && ln hard1 hard2
	truncate -s 400M sparse && echo end >>sparse
	touch -d '1969-07-20 20:17:40.123456789 UTC' moon && touch -d '2200-01-01' future
	chmod 4755 hard1 && chown 12345:54321 moon && setfattr -n user.note -v "some text" moon
	setfacl -m u:1234:r moon
	ln -s "$(printf '%4000s' '' | tr ' ' x)" long
)
echo "$(find "$tree" | wc -l) files, $(du -sm "$tree" | cut -f1) MiB"
cp -a "$tree/." "$mnt/" || fail "cp -a"
differences() {
	rsync -aHAXSn --delete --checksum --itemize-changes "$tree/" "$mnt/" 2>&1 | head -20
}
equal "differences before the remount" "" "$(differences)"
equal "files" "$(cd "$tree" && find . | wc -l)" "$(cd "$mnt" && find . | wc -l)"
pool_umount
pool_check

IFS=: read -r -a images <<<"$spec"
for spec in "${images[2]}:${images[0]}:${images[1]}" "${images[1]}"; do
	pool_mount
	equal "source of the mount" "$spec" "$(awk -v m="$mnt" '$5 == m { print $(NF - 1) }' /proc/self/mountinfo)"
	equal "differences after mount of $spec" "" "$(differences)"
	equal "sparse file, in sectors" 8 "$(stat -c %b "$mnt/odd/sparse")"
	pool_umount
done
# by name; a relative path and the working directory of the caller
spec="pool=home pool"
pool_mount "search=$work"
equal "differences after mount by label" "" "$(differences)"
equal "read-ahead" 1024 "$(cat "/sys/class/bdi/$(mountpoint -d "$mnt")/read_ahead_kb")"
pool_umount
cd "$work" || exit 99
spec="0.img"
pool_mount
[ -e "$mnt/odd" ] || fail "mount by a relative path"
rm -rf "${mnt:?}"/* || fail "rm -rf"
equal "names left" "" "$(ls -A "$mnt")"
pool_umount
spec=$(IFS=: && echo "${images[*]}")
pool_check
finish
