#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Images of virtual machines: qcow2 and raw, written by qemu with O_DIRECT (cache=none) as a guest would, by native AIO and io_uring; sparse,
# preallocated, with snapshots and discards; cold; and with the daemon killed after a guest's flush.
. "$(dirname "$0")/functions.sh"
need qemu-img qemu-io python3 timeout
need_room "$(scaled 12000 2000)"

# patterns SEED COUNT MIB: commands that write COUNT patterns into an image of that size, in $work/write, and that read back what is there
# in the end, in $work/read
patterns() {
	python3 - "$1" "$2" "$3" "$work" <<-'END'
		import random, sys
		seed, count, mib, work = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
		r = random.Random(seed)
		block = 4096
		blocks = [0] * (mib * 1024 * 1024 // block)
		with open(work + '/write', 'w') as f:
		    for i in range(count):
		        n = r.choice((1, 1, 2, 16, 32, 256))
		        at = r.randrange(len(blocks) - n)
		        p = r.randrange(1, 256)
		        kind = r.random()
		        if kind < 0.1:
		            p = 0
		            f.write(f'write -z {"-u " if kind < 0.05 else ""}{at * block} {n * block}\n')
		        else:
		            f.write(f'{r.choice(("write", "write", "aio_write"))} -P {p} {at * block} {n * block}\n')
		        # an asynchronous one is over before anything else is written where it may be
		        f.write('aio_flush\n')
		        if i % 20 == 0:
		            f.write('flush\n')
		        blocks[at:at + n] = [p] * n
		    f.write('flush\n')
		with open(work + '/read', 'w') as f:
		    at = 0
		    while at < len(blocks):
		        end = at
		        while end < len(blocks) and blocks[end] == blocks[at] and end - at < 512:
		            end += 1
		        f.write(f'read -P {blocks[at]} {at * block} {(end - at) * block}\n')
		        at = end
	END
}
# script IMAGE FORMAT AIO COMMANDS WHEN: the commands in $work/COMMANDS; each must say nothing but what it did
script() {
	timeout 900 qemu-io -f "$2" -t none -i "$3" -d unmap "$1" <"$work/$4" >"$work/out" 2>&1 ||
		fail "$variant: qemu-io $3 on ${1##*/}: exit $?: $(tail -n 3 "$work/out")"
	! grep -q "Pattern verification failed\|failed:" "$work/out" || fail "$variant, $5: ${1##*/}, $3: $(grep -m 1 "failed" "$work/out")"
}
check_images() {
	qemu-img check -q "$mnt/disk.qcow2" >"$work/out" 2>&1 || fail "$variant, $1: qemu-img check: $(tail -n 3 "$work/out")"
	for image in disk.qcow2:qcow2:native plain.raw:raw:io_uring full.raw:raw:native; do
		IFS=: read -r file format aio <<<"$image"
		cp "$work/read.$file" "$work/read"
		script "$mnt/$file" "$format" "$aio" read "$1"
	done
}

guest_gone() {
	kill -9 "$guest" 2>/dev/null
	wait "$guest" 2>/dev/null
}

qemu() {
	local mib count image file format aio options i flushed seed=1
	mib=$(sized 1024 64)
	count=$(sized 6000 200)
	for image in disk.qcow2:qcow2:native:cluster_size=64k plain.raw:raw:io_uring: full.raw:raw:native:preallocation=falloc; do
		IFS=: read -r file format aio options <<<"$image"
		qemu-img create -q -f "$format" ${options:+-o "$options"} "$mnt/$file" "${mib}M" || die "$variant: qemu-img create $file"
		seed=$((seed + 1))
		patterns "$seed" "$count" "$mib"
		script "$mnt/$file" "$format" "$aio" write "while writing"
		cp "$work/read" "$work/read.$file"
	done
	check_images "at once"
	lap "$variant: $count requests to each of three images of $mib MiB"

	cold
	check_images cold
	qemu-img snapshot -c one "$mnt/disk.qcow2" || fail "$variant: a snapshot"
	printf 'write -P 238 0 1M\nflush\n' >"$work/write"
	script "$mnt/disk.qcow2" qcow2 native write "after a snapshot"
	qemu-img snapshot -a one "$mnt/disk.qcow2" || fail "$variant: back to the snapshot"
	qemu-img convert -q -t none -T none -O raw "$mnt/disk.qcow2" "$mnt/converted.raw" || fail "$variant: qemu-img convert"
	qemu-img compare -q -T none -f qcow2 -F raw "$mnt/disk.qcow2" "$mnt/converted.raw" || fail "$variant: the converted image differs"
	check_images "after a snapshot"
	lap "$variant: cold, snapshot, conversion"

	# what a guest has flushed is there: each write that was followed by another one
	qemu-img create -q -f raw "$mnt/flushed.raw" 64M
	for ((i = 0; i < 16384; i++)); do
		printf 'write -P %d %dk 4k\nflush\n' $((i % 255 + 1)) $((i * 4))
	done >"$work/guest"
	qemu-io -f raw -t none -i native "$mnt/flushed.raw" <"$work/guest" >"$work/wrote" 2>&1 &
	guest=$!
	sleep "$(sized 20 1)"
	kill_daemon guest_gone
	flushed=$(($(grep -c 'wrote 4096/4096' "$work/wrote") - 1))
	[ $flushed -gt 0 ] || fail "$variant: no flush before SIGKILL of the daemon"
	for ((i = 0; i < flushed; i++)); do
		printf 'read -P %d %dk 4k\n' $((i % 255 + 1)) $((i * 4))
	done >"$work/read"
	script "$mnt/flushed.raw" raw native read "of $flushed flushes before SIGKILL of the daemon"
	check_images "after SIGKILL of the daemon"
	lap "$variant: SIGKILL of the daemon after $flushed flushes"
	rm -f "$mnt"/*.raw "$mnt"/*.qcow2
}

over_pools qemu "$(scaled 6000 900)"
finish
