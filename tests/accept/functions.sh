# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the acceptance tests share, beside the helpers of the mount tests: their size, loop devices and partitions, a real tree,
# and what df says. Each of these tests is one point of what a user can expect, on real mounts, and prints what it measured.
#
# They are scaled to $percent of the full size: 100 with POOLFS_TEST_LONG, otherwise 5, or ACCEPT_PERCENT.
. "$(dirname "${BASH_SOURCE[0]}")/../mount/functions.sh"

percent=${ACCEPT_PERCENT:-$([ -n "${POOLFS_TEST_LONG:-}" ] && echo 100 || echo 5)}
# scaled FULL [LEAST]
scaled() {
	local n=$(($1 * percent / 100))
	[ $n -ge "${2:-1}" ] || n=${2:-1}
	echo $n
}
# What was measured, for the log.
figure() {
	printf '%-16s %s\n' "$(basename "$0" .sh):" "$*"
}
# lap [TEXT]: prints it with the seconds since the last call
lap_begin=$(date +%s%N)
lap() {
	local now
	now=$(date +%s%N)
	[ -z "${1:-}" ] || figure "$1: $(((now - lap_begin) / 1000000000)).$(((now - lap_begin) / 100000000 % 10)) s"
	lap_begin=$now
}
need_room() {
	local mib
	mib=$(df -m --output=avail "$work" | tail -n 1)
	[ "$mib" -gt "$1" ] || skip "needs $1 MiB in ${TMPDIR:-/tmp}, where $mib are free"
}

# loop_device MIB: sets $device
partitioned=()
loop_device() {
	local file
	file=$(mktemp "$work/loop.XXXXXX")
	truncate -s "$1M" "$file"
	device=$(losetup -f --show "$file" 2>/dev/null) || skip "no loop devices here"
	loops+=("$device")
}
# loop_partition MIB: a loop device with a GPT and one partition of exactly this size; sets $device to the partition.
# The kernel may have no parser for this table, then partx must tell it.
loop_partition() {
	loop_device $(($1 + 2))
	printf 'label: gpt\nstart=2048, size=%d\n' $(($1 * 2048)) | sfdisk -q "$device" 2>/dev/null || die "sfdisk"
	# partitions that an earlier owner of the loop device left have the wrong size
	partx -d "$device" 2>/dev/null
	partx -a "$device" || skip "no partitions of loop devices here"
	partitioned+=("$device")
	device=${device}p1
	[ -b "$device" ] || skip "no partitions of loop devices here"
	equal "size of the partition" $(($1 << 20)) "$(blockdev --getsize64 "$device")"
}
accept_cleanup() {
	local dir disk
	cd /
	# The partitions can go when the daemon has let go of them, and must before their device.
	if [ ${#partitioned[@]} -gt 0 ]; then
		awk -v w="$work/" 'index($5, w) == 1 { print $5 }' /proc/self/mountinfo | tac | while read -r dir; do
			umount -i "$dir" 2>/dev/null || umount -l -i "$dir"
		done
		for disk in "${partitioned[@]}"; do
			for _ in $(seq 100); do
				partx -d "$disk" 2>/dev/null && break
				sleep 0.1
			done
		done
	fi
	cleanup
}
trap accept_cleanup EXIT

# new_pool MEMBER...: makes one of them with $mkfs_options; sets $spec
new_pool() {
	local member
	spec=
	for member; do
		spec=$spec${spec:+:}$member
	done
	"$MKFS" -q -f ${mkfs_options[@]+"${mkfs_options[@]}"} "$@" || die "mkfs.poolfs failed"
}
# The members of $spec, in $members
split_spec() {
	IFS=: read -r -a members <<<"$spec"
}
# other_order: the members of $spec the other way round
other_order() {
	split_spec
	local i
	spec=
	for ((i = ${#members[@]} - 1; i >= 0; i--)); do
		spec=$spec${spec:+:}${members[i]}
	done
}
pool_scrub() {
	local text
	split_spec
	text=$("$POOLFS" scrub "${members[@]}" 2>&1) || die "poolfs scrub: exit $?: $text"
	[[ $text == *clean* ]] || fail "poolfs scrub does not say clean: $text"
	printf '%s\n' "$text" | tail -n 1
}

# mount_again [OPTION,...]: after a crash. It may say which fsyncs had not returned, and nothing else.
mount_again() {
	local text
	text=$("$MOUNT" "$spec" "$mnt" ${1:+-o "$1"} 2>&1) || die "mount.poolfs $spec: $text"
	text=$(grep -v ': an fsync that was under way at the crash did not complete; the file is as it was before$' <<<"$text")
	[ -z "$text" ] || fail "mount.poolfs printed: $text"
}

# df_bytes DIR: free and available bytes, as df has them
df_bytes() {
	stat -f -c '%f %a %S' "$1" | awk '{ printf "%.0f %.0f\n", $1 * $3, $2 * $3 }'
}
# wait_for_free WANTED: what was deleted is returned in the background, within a minute at most.
wait_for_free() {
	local begin=$SECONDS
	while [ "$(df_bytes "$mnt")" != "$1" ] && [ $((SECONDS - begin)) -lt 60 ]; do
		sleep 0.2
	done
	equal "free and available bytes when everything is deleted" "$1" "$(df_bytes "$mnt")"
}
# KiB of a line of the daemon's /proc/PID/status: memory_of PID VmRSS
memory_of() {
	awk -v field="$2:" '$1 == field { print $2 }' "/proc/$1/status"
}

# real_tree DIR MIB FILES: a tree of at least that size and number of files, copied from /usr, and beside it what such
# trees seldom have.
real_tree() {
	local from i=0 bytes=0 files=0 size count
	mkdir "$1" || return 1
	while [ $bytes -lt $(($2 << 20)) ] || [ $files -lt "$3" ]; do
		[ $i -lt 1000 ] || return 1
		while read -r size count from; do
			cp -a "$from" "$1/$i.${from##*/}" || return 1
			i=$((i + 1)) bytes=$((bytes + size)) files=$((files + count))
		done < <(pick_trees $(($2 << 20)) "$3")
	done
	mkdir "$1/special" && special_files "$1/special"
	figure "a tree of $((bytes >> 20)) MiB, $files files from $i directories of /usr"
}
pick_trees() {
	python3 - "$1" "$2" <<-'END'
		import os, sys
		want_bytes, want_files = int(sys.argv[1]), int(sys.argv[2])
		nr_bytes = nr_files = 0
		for top in ('/usr/share', '/usr/include', '/usr/lib', '/usr'):
		    for entry in sorted(os.scandir(top), key=lambda e: e.name):
		        if not entry.is_dir(follow_symlinks=False) or entry.path in ('/usr/share', '/usr/lib', '/usr/local'):
		            continue
		        size = count = 0
		        for where, dirs, files in os.walk(entry.path):
		            for name in files:
		                st = os.lstat(os.path.join(where, name))
		                size, count = size + st.st_size, count + 1
		            if size > want_bytes:
		                break
		        # not what exceeds the target by half
		        if count and nr_bytes + size <= want_bytes * 3 // 2:
		            print(size, count, entry.path)
		            nr_bytes, nr_files = nr_bytes + size, nr_files + count
		            if nr_bytes >= want_bytes and nr_files >= want_files:
		                sys.exit()
	END
}
special_files() {
	python3 - "$1" <<-'END'
		import os, socket, sys
		os.chdir(sys.argv[1])
		def write(name, data, mode=0o644):
		    with open(name, 'wb') as f:
		        f.write(data)
		    os.chmod(name, mode)
		write('empty', b'')
		write('one', b'1')
		write('set-uid', b'#!' * 3000, 0o6755)
		write(b'name \xff\n\t\\ \'"', b'odd')
		write('n' * 255, b'long')
		write('old', b'old'); os.utime('old', ns=(1, 1))
		write('early', b'early'); os.utime('early', ns=(-10**18 + 123, -10**18 + 123))
		write('late', b'late'); os.utime('late', ns=(2**33 * 10**9 + 1, 2**33 * 10**9 + 999999999))
		os.mkdir('links')
		for i in range(300):
		    os.link('one', f'links/{i}')
		os.symlink('no such file', 'dangling'); os.symlink('x' * 4000, 'long-symlink')
		os.mkfifo('fifo'); os.mknod('null', 0o20666, os.makedev(1, 3)); os.mknod('disk', 0o60600, os.makedev(259, 70000))
		s = socket.socket(socket.AF_UNIX); s.bind('socket'); s.close()
		os.mkdir('sticky'); os.chmod('sticky', 0o1777)
		os.chown('empty', 12345, 4000000000); os.chown('sticky', 1, 2)
		with open('sparse', 'wb') as f:
		    for i in range(0, 400, 7):
		        f.seek(i * 20000 + i); f.write(bytes([i % 251]) * (i * 13 + 1))
		    f.truncate(20 << 20)
		for i in range(5):
		    os.setxattr('one', f'user.test.{i}', bytes([i]) * (1 << (2 * i)))
		os.setxattr('set-uid', 'trusted.t', b'\0' * 100)
		os.setxattr('links', 'user.on-a-directory', b'')
		where = '.'
		for i in range(100):
		    where += '/deep'
		    os.mkdir(where)
		write(where + '/end', b'end')
	END
	if command -v setfacl >/dev/null; then
		setfacl -m u:12345:rw,g:77:r "$1/one" && setfacl -d -m u:4:rwx "$1/sticky"
	fi
}
