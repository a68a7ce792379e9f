#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a pool does not do, it refuses with the error that the table in poolfs(5) names; each row of the table is tried here.
. "$(dirname "$0")/functions.sh"
need mkswap

make_pool 64M
pool_mount
cat >"$work/refusals.py" <<'END'
import ctypes, errno, fcntl, os, re, struct, sys

top, page = sys.argv[1], sys.argv[2]
libc = ctypes.CDLL(None, use_errno=True)
os.chdir(top)


def called(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")


def opened(name, flags, use):
    fd = os.open(name, flags)
    try:
        return use(fd)
    finally:
        os.close(fd)


def fallocate(mode):
    return lambda: opened("f", os.O_RDWR, lambda fd: called(libc.fallocate(fd, mode, ctypes.c_long(4096), ctypes.c_long(4096))))


def ioctl(cmd, arg, name="f", flags=os.O_RDWR):
    return lambda: opened(name, flags, lambda fd: fcntl.ioctl(fd, cmd, arg))


def two_files(use):
    return lambda: opened("f", os.O_RDWR, lambda a: opened("g", os.O_RDWR, lambda b: use(a, b)))


def dedupe(a, b):
    answer = fcntl.ioctl(a, 0xC0189436, struct.pack("QQHHIqQQiI", 0, 4096, 1, 0, 0, b, 0, 0, 0, 0))
    status = struct.unpack_from("<i", answer, 48)[0]
    if status < 0:
        raise OSError(-status, "")


def fanotify():
    fd = libc.fanotify_init(0x200, 0)
    called(fd)
    try:
        called(libc.fanotify_mark(fd, 0x101, ctypes.c_ulong(0x100), -100, top.encode()))
    finally:
        os.close(fd)


def read_nowait(fd):
    os.preadv(fd, [bytearray(4096)], 0, os.RWF_NOWAIT)


def past_the_end(fd):
    os.pwrite(fd, b"x", 2**63 - 2)
    os.fsync(fd)


def at_close():
    opened("late", os.O_RDWR | os.O_CREAT, lambda fd: os.pwrite(fd, b"x", 2**63 - 2))


for name in "f", "g":
    with open(name, "wb") as new:
        new.write(b"x" * 65536)
os.mkdir("dir")
os.system("dd if=/dev/zero of=swap bs=64k count=4 status=none && chmod 600 swap && mkswap swap >/dev/null")

# row of the table: what is tried; and whether it is the kernel who refuses, and might not for ever
rows = {
    "FALLOC_FL_COLLAPSE_RANGE": (fallocate(8), True),
    "FALLOC_FL_INSERT_RANGE": (fallocate(0x20), True),
    "FALLOC_FL_UNSHARE_RANGE": (fallocate(0x40), True),
    "FICLONE": (two_files(lambda a, b: fcntl.ioctl(a, 0x40049409, b)), True),
    "FICLONERANGE": (two_files(lambda a, b: fcntl.ioctl(a, 0x4020940D, struct.pack("qQQQ", b, 0, 4096, 0))), True),
    "FIDEDUPERANGE": (two_files(dedupe), True),
    "FS_IOC_FIEMAP": (ioctl(0xC020660B, struct.pack("QQIIII", 0, 1 << 40, 0, 0, 0, 0)), True),
    "FS_IOC_GETFLAGS": (ioctl(0x80086601, bytes(8)), False),
    "FS_IOC_SETFLAGS": (ioctl(0x40086602, struct.pack("q", 0x20)), False),
    "FS_IOC_FSGETXATTR": (ioctl(0x801C581F, bytes(28)), False),
    "FS_IOC_FSSETXATTR": (ioctl(0x401C5820, bytes(28)), False),
    "FS_IOC_SET_ENCRYPTION_POLICY": (ioctl(0x800C6613, bytes(12), "dir", os.O_RDONLY), False),
    "FS_IOC_ENABLE_VERITY": (ioctl(0x40806685, struct.pack("III", 1, 1, 4096) + bytes(116), "f", os.O_RDONLY), False),
    "FS_IOC_GETFSLABEL": (ioctl(0x81009431, bytes(256), "dir", os.O_RDONLY), False),
    "FS_IOC_SETFSLABEL": (ioctl(0x41009432, b"a" + bytes(255), "dir", os.O_RDONLY), False),
    "FIFREEZE": (ioctl(0xC0045877, bytes(4), ".", os.O_RDONLY), True),
    "quotactl_fd(2)": (lambda: opened(".", os.O_RDONLY, lambda fd: called(libc.syscall(443, fd, 0x80000700, 0, bytes(200)))), True),
    "swapon(2)": (lambda: called(libc.swapon(os.path.join(top, "swap").encode(), 0)), True),
    "RWF_NOWAIT": (lambda: opened("f", os.O_RDONLY, read_nowait), True),
    "RWF_ATOMIC": (lambda: opened("f", os.O_RDWR, lambda fd: os.pwritev(fd, [b"a" * 4096], 0, 0x40)), True),
    "fanotify(7)": (fanotify, True),
    "F_ADD_SEALS": (lambda: opened("f", os.O_RDWR, lambda fd: fcntl.fcntl(fd, 1033, 1)), True),
    "other.name": (lambda: os.setxattr("f", "other.name", b"1"), False),
    "65537": (lambda: os.setxattr("f", "user.large", bytes(65537)), True),
    "256": (lambda: os.mkdir("n" * 256), True),
    "4096": (lambda: os.symlink("s" * 4096, "long"), True),
    "truncate(2)": (lambda: os.truncate("g", 2**63 - 1), False),
    "fsync(2)": (lambda: opened("g", os.O_RDWR, past_the_end), False),
    "close(2)": (at_close, False),
}

# the table: rows of "what:...:answer", where what may name several things
with open(page) as f:
    table = re.search(r"\.TS\n.*?\.\n(.*?)\.TE", f.read(), re.S).group(1)
told = {}
for line in table.splitlines():
    what, *_, answer = line.replace("\\-", "-").split("@")
    for key in re.findall(r"[A-Za-z0-9_.]+(?:\(\d\))?", what):
        told.setdefault(key, answer.strip())

wrong = 0
for key, (attempt, by_kernel) in rows.items():
    try:
        attempt()
        got = "success"
    except OSError as e:
        got = errno.errorcode[e.errno].replace("ENOTSUP", "EOPNOTSUPP")
    # a kernel that does not know the call at all
    if got == "success" and by_kernel or got == "ENOSYS" and "(2)" in key:
        continue
    if told.get(key) != got:
        wrong += 1
        print("%s: %s, poolfs(5) says %s" % (key, got, told.get(key)))
for line in table.splitlines():
    if not any(key in line.replace("\\-", "-") for key in rows):
        wrong += 1
        print("a row of poolfs(5) that nobody tried: %s" % line)
sys.exit(wrong > 0)
END
python3 "$work/refusals.py" "$mnt" "${top_srcdir:-$(dirname "$0")/../..}/docs/man/poolfs.5" || fail "a refusal is not what the manual says"
equal "what the refused truncate left" 65536 "$(stat -c %s "$mnt/f")"
pool_umount
pool_check
finish
