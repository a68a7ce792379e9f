#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Access control lists: enforced, in step with the mode, inherited instead of the umask.
. "$(dirname "$0")/functions.sh"
need setfacl getfacl setpriv

make_pool 64M
pool_mount
chmod 755 "$mnt"
cd "$mnt" || exit 99
acl() {
	getfacl -cpn "$1" | tr '\n' ' ' | sed 's/[[:space:]]*#effective:[^ ]*//g; s/ *$//'
}

# -- an access list and the mode
echo text >f && chmod 640 f
as_user cat f 2>/dev/null && fail "mode 640 let a stranger read"
setfacl -m u:65534:rw f
equal "list" "user::rw- user:65534:rw- group::r-- mask::rw- other::---" "$(acl f)"
equal "mode shows the mask" 660 "$(stat -c %a f)"
as_user sh -c 'cat f >/dev/null && echo more >>f' || fail "the named user could not read and write"
chmod 600 f
equal "chmod sets the mask" "user::rw- user:65534:rw- group::r-- mask::--- other::---" "$(acl f)"
as_user cat f 2>/dev/null && fail "the mask did not limit the named user"
chmod 4750 f
equal "chmod 4750" "user::rwx user:65534:rw- group::r-- mask::r-x other::---" "$(acl f)"
equal "chmod keeps set-id" 4750 "$(stat -c %a f)"
setfacl -b f
equal "without list: the mode is what is left" "user::rwx group::r-- other::---" "$(acl f)"
equal "no list is stored" "" "$(getfattr -d -m system --absolute-names f 2>/dev/null)"
setfacl -m u::rw,g::r,o::- f
equal "a minimal list is a chmod" 4640 "$(stat -c %a f)"
equal "a minimal list is not stored" "" "$(getfattr -d -m system --absolute-names f 2>/dev/null)"
setfacl -d -m u:1:r f 2>/dev/null && fail "a file took a default list"
[[ $(ls -l f) =~ ^[^\ ]*\+ ]] && fail "ls shows a list that is gone"
# set-gid, for who is not of the group: lost by setting a list
chown 65534:0 f && chmod 2755 f
as_user setfacl -m u:1:r f
equal "set-gid after the owner set a list" 755 "$(stat -c %a f | sed 's/^0*//')"
setfacl -m u:1:r f && chmod 2755 f && setfacl -m u:2:r f
equal "set-gid after root set a list" 2755 "$(stat -c %a f)"

# -- default lists against the umask
mkdir d && chmod 750 d
setfacl -d -m u::rwx,u:65534:rwx,g::r-x,o::- d
(umask 077 && : >d/file && mkdir d/dir && mknod d/pipe p && ln -s x d/link && install -m 755 /bin/true d/prog)
equal "file by default list" "user::rw- user:65534:rwx group::r-x mask::rw- other::---" "$(acl d/file)"
equal "its mode" 660 "$(stat -c %a d/file)"
equal "directory by default list" \
	"user::rwx user:65534:rwx group::r-x mask::rwx other::--- default:user::rwx default:user:65534:rwx default:group::r-x default:mask::rwx default:other::---" \
	"$(acl d/dir)"
equal "pipe by default list" "user::rw- user:65534:rwx group::r-x mask::rw- other::---" "$(acl d/pipe)"
equal "an explicit chmod" 755 "$(stat -c %a d/prog)"
mkdir d/dir/deeper
equal "inherited twice" "$(acl d/dir)" "$(acl d/dir/deeper)"
python3 - <<-'END' || fail "O_TMPFILE with a default list"
	import os
	fd = os.open('d', os.O_TMPFILE | os.O_RDWR, 0o640)
	assert os.fstat(fd).st_mode & 0o777 == 0o640, oct(os.fstat(fd).st_mode)
	assert b'\x02' in os.getxattr(fd, 'system.posix_acl_access')
END
# a default list that says no more than a mode replaces the umask all the same
mkdir e && setfacl -d -m u::rwx,g::rwx,o::r e
(umask 077 && : >e/file)
equal "minimal default list" "664 user::rw- group::rw- other::r--" "$(stat -c %a e/file) $(acl e/file)"
setfacl -k d && (umask 077 && : >d/later)
equal "umask without default list" 600 "$(stat -c %a d/later)"
# set-gid and default list together
mkdir g && chown 0:1234 g && chmod 2775 g && setfacl -d -m u:1:rwx g && mkdir g/sub && : >g/file
equal "set-gid with default list" "2775 1234 1234" "$(stat -c '%a %g' g/sub) $(stat -c %g g/file)"

# -- after a remount
getfacl -Rpn . >"$work/before"
cd / && pool_umount && pool_mount && cd "$mnt" || exit 99
getfacl -Rpn . | diff "$work/before" - || fail "lists differ after a remount"
cd / && pool_umount && pool_check
finish
