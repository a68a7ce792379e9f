#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# poolfs trim of a pool that is not mounted: free space goes back to the host, nothing else does, and what can go wrong.
. "$(dirname "$0")/functions.sh"
need python3 fallocate

allocated() {
	du -k -c a.img b.img | tail -1 | cut -f1
}
dd if=/dev/zero of=probe bs=1M count=4 status=none
fallocate -p -o 0 -l 4M probe 2>/dev/null && [ "$(du -k probe | cut -f1)" -lt 1024 ] || skip "no holes in files here"
rm -f probe

pool a.img b.img
fresh=$(allocated)
accepts "$FILL" a.img b.img -- mkdir /d write /d/kept 3000000 write /big 20000000 write /d/small 5000
full=$(allocated)
[ "$full" -gt $((fresh + 20000)) ] || fail "only $full KiB are allocated"
accepts "$POOLFS" trim a.img
still=$(allocated)
[ "$still" -gt $((fresh + 20000)) ] || fail "trim of a pool without free space that was used: $still of $full KiB"
accepts "$FILL" a.img b.img -- rm /big sync
[ "$(allocated)" -gt $((fresh + 19000)) ] || fail "nobody asked for it"
accepts "$POOLFS" trim --minimum 1T a.img b.img
expect_out '^0 bytes of free space given back$'
accepts "$POOLFS" trim --json b.img
json 'j["complete"] and j["trimmed_bytes"] >= 19 * 10**6 and j["unable"] == [] and j["failed"] == []'
[ "$(allocated)" -lt $((fresh + 6000)) ] || fail "$(allocated) KiB are still allocated; $fresh at first"
accepts "$FSCK" -n a.img b.img
accepts "$POOLFS" scrub a.img b.img
expect_out 'clean$'
accepts "$POOLFS" trim -q --unused a.img
[ ! -s .out ] || fail "-q prints something"
accepts "$POOLFS" scrub a.img b.img
expect_out 'clean$'
# what mkfs had the host allocate is not touched
[ "$(allocated)" -ge "$fresh" ] || fail "$(allocated) KiB are less than the $fresh of mkfs"
# after a crash the log is redone first, and what it names stays
accepts "$FILL" a.img b.img -- write /d/after 3000000 fsync /d/after crash
accepts "$POOLFS" trim --unused --minimum 4K a.img b.img
accepts "$POOLFS" scrub a.img b.img
expect_out 'clean$'
accepts "$FSCK" -n a.img b.img

refuses 16 'no member given' "$POOLFS" trim
refuses 16 'is not a size' "$POOLFS" trim --minimum much a.img
refuses 8 'not on a mounted poolfs' "$POOLFS" trim .
refuses 8 'nothing.img' "$POOLFS" trim nothing.img
finish
