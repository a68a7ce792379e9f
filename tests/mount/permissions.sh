#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Modes, owners, set-id bits and capabilities: cleared and inherited as on any Linux filesystem.
. "$(dirname "$0")/functions.sh"
need setpriv setcap getcap
user_python

make_pool 64M
pool_mount
cd "$mnt" || exit 99
mode() {
	stat -c %a "$1"
}

# -- umask, set-gid directories, sticky directories
(umask 027 && : >a && mkdir b && mkfifo c)
equal "file, umask 027" 640 "$(mode a)"
equal "directory, umask 027" 750 "$(mode b)"
equal "fifo, umask 027" 640 "$(mode c)"
mkdir shared && chown 0:1234 shared && chmod 2775 shared
mkdir shared/d && : >shared/f
equal "directory in a set-gid directory" "2755 1234" "$(stat -c '%a %g' shared/d)"
equal "file in a set-gid directory" "644 1234" "$(stat -c '%a %g' shared/f)"
mkdir sticky && chmod 1777 sticky && : >sticky/f
as_user rm -f sticky/f 2>/dev/null && fail "another user's file was removed from a sticky directory"
: >secret && chmod 600 secret
as_user cat secret 2>/dev/null && fail "a file of mode 600 was read by another user"
as_user chown 65534 a 2>/dev/null && fail "a user gave himself a file"

# -- set-id bits: cleared by what an unprivileged user does, and by chown of anybody
chmod 777 . && : >s
for bits in 6777 4755 2775; do
	printf abc >s && chown 0:0 s && chmod 777 s && chmod "$bits" s
	plain=$((0$bits & 0777))
	chmod o+w s
	as_user "$python" -c 'import os; fd = os.open("s", os.O_WRONLY); os.write(fd, b"x"); os.close(fd)'
	equal "mode $bits after a user's write" "$(printf '%o' $((plain | 2)))" "$(mode s)"
	chmod "$bits" s && chmod o+w s
	as_user truncate -s 1 s
	equal "mode $bits after a user's truncate" "$(printf '%o' $((plain | 2)))" "$(mode s)"
	chmod "$bits" s && chmod o+w s
	as_user "$python" -c 'import os, mmap
fd = os.open("s", os.O_RDWR); os.pwrite(fd, b"y", 0); os.fsync(fd)'
	equal "mode $bits after a user's write and fsync" "$(printf '%o' $((plain | 2)))" "$(mode s)"
	chmod "$bits" s
	printf root >s
	equal "mode $bits after root's write" "$bits" "$(mode s)"
	chown 1000:1000 s
	equal "mode $bits after chown" "$(printf '%o' $plain)" "$(mode s)"
	chmod "$bits" s
	python3 -c 'import os; os.chown("s", -1, -1)'
	equal "mode $bits after chown of nothing" "$(printf '%o' $plain)" "$(mode s)"
done
# a set-gid bit without execute permission of the group is a lock mark, not a privilege
printf abc >l && chmod 2666 l
as_user sh -c 'printf x >>l'
equal "mode 2666 after a user's write" 2666 "$(mode l)"
# through O_DIRECT and through a map too
printf abc >s && chmod 6777 s && truncate -s 8192 s && chmod 6777 s
as_user "$python" -c 'import os, mmap
m = mmap.mmap(-1, 4096); m[:4] = b"abcd"
fd = os.open("s", os.O_WRONLY | os.O_DIRECT); os.pwrite(fd, m, 0); os.close(fd)'
equal "mode 6777 after a user's O_DIRECT write" 777 "$(mode s)"
chmod 6777 s
as_user fallocate -l 16384 s
equal "mode 6777 after a user's fallocate" 777 "$(mode s)"

# -- capabilities go with every change of the bytes, also by root
has_cap() {
	[ -n "$(getcap "$1")" ]
}
cp /bin/true cap
for change in 'printf x >>cap' 'truncate -s 100 cap' 'chown 1000 cap' \
	'python3 -c "import mmap; f = open(\"cap\", \"r+b\"); m = mmap.mmap(f.fileno(), 0); m[0] = 65; m.flush()"' \
	'dd if=/dev/zero of=cap bs=4096 count=1 oflag=direct conv=notrunc status=none'; do
	setcap cap_net_bind_service=ep cap || die "setcap failed"
	has_cap cap || fail "setcap left no capability"
	eval "$change"
	has_cap cap && fail "the capability survived: $change"
done
setcap cap_net_bind_service=ep cap && chmod 755 cap && touch cap && cat cap >/dev/null
has_cap cap || fail "chmod, touch or read removed the capability"

# -- all of it is still so after a remount
find . -printf '%p %M %n %U:%G %s %T+ %C+ %i\n' | sort >"$work/before"
cd / && pool_umount && pool_mount && cd "$mnt" || exit 99
find . -printf '%p %M %n %U:%G %s %T+ %C+ %i\n' | sort >"$work/after"
diff "$work/before" "$work/after" || fail "modes, owners or times differ after a remount"
has_cap cap || fail "the capability is gone after a remount"
cd / && pool_umount && pool_check
finish
