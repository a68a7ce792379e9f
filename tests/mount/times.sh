#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mtime and ctime: every kind of change moves them, and what stat(2) says stays so over a remount and, once synced, over a kill;
# also while the kernel sends the times of its own accord at any moment (sync(2) beside the changes; fs/ops.h I4).
. "$(dirname "$0")/functions.sh"
need "$POOLFS"

make_pool 256M
pool_mount
cat >"$work/change.py" <<'END'
import ctypes, mmap, os, struct, sys

rounds, directory = int(sys.argv[1]), sys.argv[2]
hasty = "hasty" in sys.argv  # changes within one step of the clock, which the kernel does not send then
libc = ctypes.CDLL(None, use_errno=True)
page = mmap.mmap(-1, 4096)
page[:4] = b"abcd"


def fallocate(fd, mode, off, length):
    if libc.fallocate(fd, mode, ctypes.c_long(off), ctypes.c_long(length)):
        raise OSError(ctypes.get_errno(), "fallocate")


def opened(name, flags, change):
    fd = os.open(name, flags)
    try:
        change(fd)
    finally:
        os.close(fd)


def by_user(change):
    os.setegid(65534)
    os.seteuid(65534)
    try:
        change()
    finally:
        os.seteuid(0)
        os.setegid(0)


def written(name):
    opened(name, os.O_WRONLY, lambda fd: os.write(fd, b"user"))


def mapped(fd):
    m = mmap.mmap(fd, 4096)
    m[5] = 65
    m.close()


def copied(fd):
    source = os.open(os.path.join(directory, "source"), os.O_RDONLY)
    os.copy_file_range(source, fd, 4096, 0, 4096)
    os.close(source)


DIRECT = os.O_RDWR | os.O_DIRECT
# what it changes: m mtime and ctime, c ctime only
changes = {
    "write": ("m", lambda f: opened(f, os.O_RDWR, lambda fd: os.write(fd, b"x"))),
    "append": ("m", lambda f: opened(f, os.O_RDWR | os.O_APPEND, lambda fd: os.write(fd, b"x"))),
    "direct": ("m", lambda f: opened(f, DIRECT, lambda fd: os.write(fd, page))),
    "direct-append": ("m", lambda f: opened(f, DIRECT | os.O_APPEND, lambda fd: os.write(fd, page))),
    "direct-sync": ("m", lambda f: opened(f, DIRECT | os.O_SYNC, lambda fd: os.write(fd, page))),
    "map": ("m", lambda f: opened(f, os.O_RDWR, mapped)),
    "allocate": ("m", lambda f: opened(f, os.O_RDWR, lambda fd: fallocate(fd, 0, 0, 65536))),
    "keep-size": ("m", lambda f: opened(f, os.O_RDWR, lambda fd: fallocate(fd, 1, 65536, 4096))),
    "punch": ("m", lambda f: opened(f, os.O_RDWR, lambda fd: fallocate(fd, 3, 0, 4096))),
    "zero": ("m", lambda f: opened(f, os.O_RDWR, lambda fd: fallocate(fd, 16, 0, 4096))),
    "copy": ("m", lambda f: opened(f, os.O_RDWR, copied)),
    "truncate": ("m", lambda f: os.truncate(f, 5000)),
    "truncate-same": ("", lambda f: os.truncate(f, 12288)),
    "truncate-same-by-user": ("", lambda f: by_user(lambda: os.truncate(f, 12288))),
    "open-truncate": ("m", lambda f: opened(f, os.O_WRONLY | os.O_TRUNC, lambda fd: None)),
    "set-gid": ("m", lambda f: by_user(lambda: written(f))),  # a lock mark: the bit stays
    "set-id": ("m", lambda f: by_user(lambda: written(f))),
    "set-id-allocate": ("m", lambda f: by_user(lambda: opened(f, os.O_RDWR, lambda fd: fallocate(fd, 0, 0, 65536)))),
    "set-id-copy": ("m", lambda f: by_user(lambda: opened(f, os.O_RDWR, copied))),
    "capability": ("m", written),
    "capability-allocate": ("m", lambda f: opened(f, os.O_RDWR, lambda fd: fallocate(fd, 0, 0, 65536))),
    "chmod": ("c", lambda f: os.chmod(f, 0o640)),
    "chown": ("c", lambda f: os.chown(f, 1000, 1000)),
    "link": ("c", lambda f: os.link(f, f + ".link")),
    "rename": ("c", lambda f: os.rename(f, f + ".new") or os.rename(f + ".new", f)),
    "setxattr": ("c", lambda f: os.setxattr(f, "user.a", b"1")),
}
modes = {"set-gid": 0o2666, "set-id": 0o6777, "set-id-allocate": 0o6777, "set-id-copy": 0o6777, "truncate-same-by-user": 0o2666}
capability = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)  # cap_net_bind_service=ep

os.chdir(directory)
with open("source", "wb") as source:
    source.write(b"s" * 12288)
wrong = 0
for i in range(rounds):
    # what the daemon sets, then the kernel, then the daemon, then the kernel: no time is before the one before it
    born = "born.%d" % i
    with open(born, "wb") as new:
        new.write(b"n")
    steps = [os.stat(born).st_mtime_ns]
    os.rename(born, born + ".new")
    steps.append(os.stat(born + ".new").st_ctime_ns)
    os.chmod(born + ".new", 0o600)
    steps.append(os.stat(born + ".new").st_ctime_ns)
    with open("after", "wb"):
        pass
    os.unlink("after")
    steps.append(os.stat(".").st_mtime_ns)
    os.utime(born + ".new")
    steps.append(os.stat(born + ".new").st_mtime_ns)
    if steps != sorted(steps):
        wrong += 1
        print("times go back: %s" % steps)
    for name, (what, change) in changes.items():
        f = "%s.%d" % (name, i)
        with open(f, "wb") as new:
            new.write(b"n" * 12288)
        os.chmod(f, modes.get(name, 0o644))
        if name.startswith("capability"):
            os.setxattr(f, "security.capability", capability)
        if hasty:
            change(f)
            continue
        os.utime(f, (1, 1))
        before = os.stat(f).st_ctime_ns
        while True:  # the clock of the kernel's times moves in steps
            os.chmod(f, modes.get(name, 0o644))
            if os.stat(f).st_ctime_ns > before:
                break
        before = os.stat(f).st_ctime_ns
        while True:
            with open("clock", "wb"):
                pass
            os.utime("clock")
            if os.stat("clock").st_ctime_ns > before:
                break
        change(f)
        after = os.stat(f)
        moved = ("m" if after.st_mtime_ns != 10**9 else "") or ("c" if after.st_ctime_ns > before else "")
        if moved != what or (what == "m" and after.st_ctime_ns <= before):
            wrong += 1
            print("%s: mtime %d, ctime %d, before it %d" % (f, after.st_mtime_ns, after.st_ctime_ns, before))
sys.exit(wrong > 0)
END
times() {
	(cd "$mnt" && find . -printf '%p %M %n %U:%G %s %T+ %C+ %i\n' | sort)
}
# same WHAT: the times are those in $work/before
same() {
	times >"$work/after"
	diff "$work/before" "$work/after" >"$work/diff" && return
	fail "$1: $(grep -c '^<' "$work/diff") of $(wc -l <"$work/before") differ:"
	head -n 10 "$work/diff"
}

(while :; do sync -f "$mnt"; done) &
syncing=$!
mkdir "$mnt/storm" "$mnt/calm" "$mnt/haste"
python3 "$work/change.py" 60 "$mnt/storm" || fail "a change of files did not set the times, beside sync(2)"
kill "$syncing"
wait "$syncing" 2>/dev/null
python3 "$work/change.py" 3 "$mnt/calm" || fail "a change of files did not set the times"
python3 "$work/change.py" 40 "$mnt/haste" hasty || fail "a change of files failed"
times >"$work/before"
(cd "$mnt" && find . -type f -printf '%p %B@ %C@\n') | awk '$2 > $3 { print }' >"$work/unborn"
[ ! -s "$work/unborn" ] || fail "$(wc -l <"$work/unborn") files were changed before they were born: $(head -n 1 "$work/unborn")"
pool_umount
pool_mount
same "after a remount"

mkdir "$mnt/kill"
python3 "$work/change.py" 3 "$mnt/kill" || fail "a change of files did not set the times"
"$POOLFS" sync "$mnt" || fail "poolfs sync"
times >"$work/before"
daemon=$(daemon_pid "$mnt")
kill -KILL "$daemon" && wait_gone "$daemon"
pool_mount
same "after a kill"
pool_umount
pool_check
finish
