#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The command line: accepted options, refusals, exit codes of mount(8), and that a refusal changes nothing.
. "$(dirname "$0")/functions.sh"

make_pool 32M 48M
IFS=: read -r a b <<<"$spec"
sums=$(sha256sum "$a" "$b")
not_mounted() {
	! mountpoint -q "$mnt" || {
		fail "$1: something is mounted"
		umount -l "$mnt"
	}
}

# -- usage: exit 1
exits 1 "SPEC and DIR are needed" "$MOUNT"
exits 1 "SPEC and DIR are needed" "$MOUNT" "$spec"
exits 1 "more than SPEC and DIR" "$MOUNT" "$spec" "$mnt" x
exits 1 "unknown option 'wrong'" "$MOUNT" "$spec" "$mnt" -o rw,wrong
exits 1 "unknown option 'wrong'" "$MOUNT" "$spec" "$mnt" -o wrong=7
exits 1 "unknown option '-q'" "$MOUNT" "$spec" "$mnt" -q
exits 1 "'cache=x': not a size" "$MOUNT" "$spec" "$mnt" -o cache=x
exits 1 "'commit=0': not a number" "$MOUNT" "$spec" "$mnt" -o commit=0
exits 1 "needs a value" "$MOUNT" "$spec" "$mnt" -o search
exits 1 "takes no value" "$MOUNT" "$spec" "$mnt" -o ro=1
exits 1 "empty member name" "$MOUNT" "$a::$b" "$mnt"
exits 1 "empty member name" "$MOUNT" "$a:" "$mnt"
exits 1 "missing" "$MOUNT" "pool=" "$mnt"
exits 0 "" "$MOUNT" --help
exits 0 "" "$MOUNT" --version
exits 1 "Usage" "$UMOUNT"

# -- what cannot be mounted: exit 32, with what, where and what to do
exits 32 "$work/none.img" "$MOUNT" "$work/none.img" "$mnt"
exits 32 "$work/none" "$MOUNT" "$spec" "$work/none"
: >"$work/file"
exits 32 "not a directory" "$MOUNT" "$spec" "$work/file"
truncate -s 32M "$work/blank.img"
exits 32 "$work/blank.img" "$MOUNT" "$work/blank.img" "$mnt"
exits 32 "" "$MOUNT" "$work" "$mnt"
exits 32 "$a" "$MOUNT" "$a:$a:$b" "$mnt"
ln -s 0.img "$work/link"
exits 32 "$a and $work/link are the same file or device; name each member once" "$MOUNT" "$a:$work/link:$b" "$mnt"
exits 32 "0.img and ./link are the same file" env -C "$work" "$(readlink -f "$MOUNT")" "0.img:./link:1.img" "$mnt"
rm "$work/link"
exits 32 "$work/blank.img" "$MOUNT" "$spec:$work/blank.img" "$mnt"
exits 32 "no pool with the label or UUID 'nobody'" "$MOUNT" pool=nobody "$mnt"
exits 32 "image files are found with -o search=DIR" "$MOUNT" pool=nobody "$mnt"
exits 32 "in the directories given" "$MOUNT" pool=nobody "$mnt" -o "search=$work"
exits 32 "name its members instead" "$MOUNT" pool=nobody "$mnt" -o "search=$work"
[[ $("$MOUNT" pool=nobody "$mnt" 2>&1) == *"as root"* ]] && fail "root is told to become root"
exits 32 "" "$MOUNT" pool=nobody "$mnt" -o "search=$work/nowhere"
mkdir "$work/elsewhere" && mv "$b" "$work/elsewhere/b.img"
exits 32 "" "$MOUNT" "$a" "$mnt"
"$MOUNT" -f "$a" "$mnt" -o "search=$work/elsewhere" || fail "the second member was not found in the directory given"
mv "$work/elsewhere/b.img" "$b"
cp "$b" "$work/copy.img"
exits 32 "both member 2 of the pool: name the one that you mean" "$MOUNT" "$a" "$mnt"
"$MOUNT" -f "$a:$b" "$mnt" || fail "a copy beside the members that are named was in the way"
rm "$work/copy.img"
exits 32 "no poolfs is mounted" "$UMOUNT" "$mnt"
exits 32 "no poolfs is mounted" "$UMOUNT" "$work/none"
exits 32 "no poolfs is mounted" "$MOUNT" "$spec" "$mnt" -o remount,ro
not_mounted "refusals"
equal "bytes of the members after all refusals" "$sums" "$(sha256sum "$a" "$b")"

# -- fake: checks, mounts nothing, writes nothing
exits 0 "" "$MOUNT" -f "$spec" "$mnt"
exits 32 "" "$MOUNT" -f "$a:$work/blank.img" "$mnt"
not_mounted "fake"
equal "bytes of the members after a fake mount" "$sums" "$(sha256sum "$a" "$b")"

# -- accepted
all=rw,defaults,nofail,_netdev,auto,user,x-systemd.automount,X-foo=bar,comment=some\ text,noatime,relatime,async,dev,suid,exec
all+=,cache=64M,commit=2,threads=3,max_background=32,default_permissions,allow_other,nodiratime,iversion
pool_mount "$all"
exits 32 "in use" "$MOUNT" "$spec" "$work/elsewhere"
exits 32 "in use" "$MOUNT" -f "$spec" "$work/elsewhere"
[ ! -x "$POOLFS" ] || [[ $("$POOLFS" status "$mnt") == *"$a"* ]] || fail "the status does not name $a"
line=$(grep " $mnt " /proc/self/mountinfo)
[[ $line == *noatime*" fuse.poolfs $spec "*default_permissions*allow_other* ]] || fail "mounted as: $line"
[[ $line == *nodev* || $line == *nosuid* ]] && fail "nodev or nosuid without being asked: $line"
pool_umount
"$MOUNT" -s "$spec" "$mnt" -o wrong,nosuch=1 || fail "-s does not tolerate unknown options"
pool_umount
"$MOUNT" -n -v -t poolfs "$spec" "$mnt" -o nodev,nosuid,noexec -o sync,dirsync -o fsname=my,fsname='a\,name' ||
	fail "-n -v -t -o -o"
line=$(grep " $mnt " /proc/self/mountinfo)
[[ $line == *nosuid*nodev*noexec*" a,name "* ]] || fail "mounted as: $line"
pool_umount

# -- a colon in a path
mkdir "$work/pci-0:1" && mv "$a" "$b" "$work/pci-0:1"
spec="$work/pci-0\\:1/0.img:$work/pci-0\\:1/1.img"
pool_mount
equal "source" "${spec//\\/\\134}" "$(awk -v m="$mnt" '$5 == m { print $(NF - 1) }' /proc/self/mountinfo)"
echo data >"$mnt/f"
pool_umount

# -- read-only: nothing is written, nothing can be
sums=$(sha256sum "$work/pci-0:1"/*)
pool_mount ro
equal "read" data "$(cat "$mnt/f")"
{ : >"$mnt/new"; } 2>/dev/null && fail "a file was made on a read-only mount"
{ echo more >>"$mnt/f"; } 2>/dev/null && fail "a file was written on a read-only mount"
exits 32 "unmount it and mount it again" "$MOUNT" "$spec" "$mnt" -o remount,rw
pool_umount
equal "bytes of the members after a read-only mount" "$sums" "$(sha256sum "$work/pci-0:1"/*)"

# -- members that may only be read
chmod 444 "$work/pci-0:1"/*
need setpriv
exits 32 "" as_user "$MOUNT" "$spec" "$mnt"
chmod 600 "$work/blank.img"
exits 32 "could not be read, try as root" as_user "$MOUNT" pool=nobody "$mnt" -o "search=$work"
finish
