#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# One flipped bit in a file's data: EIO for that block and right bytes for all others, by every way of reading, and scrub names
# the path, the member and the offset. Flipped bits in used metadata: never a wrong byte, a hang or a crash.
. "$(dirname "$0")/functions.sh"
need timeout pgrep

flips=$(scaled 500)
need_room 800
make_pool 64M 80M
pool_mount

# -- a small tree, and a list of all that is in it
cat >"$work/tree.py" <<'END'
# make DIR | list DIR >LIST | check DIR LIST: everything that can be read is as in the list; errors may be EIO only. Prints how
# many errors there were.
import errno, hashlib, json, os, random, stat, sys
verb, top = sys.argv[1], os.fsencode(sys.argv[2])

def make():
    r = random.Random(1)
    os.chdir(top)
    for i in range(300):
        d = f'd{i % 12}' + '/s' * (i % 5)
        os.makedirs(d, exist_ok=True)
        with open(f'{d}/file {i}', 'wb') as f:
            f.write(r.randbytes(r.choice((0, 10, 4096, 5000, 20000, 70000))))
        if i % 10 == 0:
            os.setxattr(f'{d}/file {i}', 'user.some', r.randbytes(i * 10))
        if i % 25 == 0:
            os.symlink('t' * (i * 10 + 1), f'{d}/symlink {i}')
            os.link(f'{d}/file {i}', f'{d}/link {i}')
    with open('large', 'wb') as f:
        f.write(r.randbytes(9_000_001))
    with open('holes', 'wb') as f:
        for i in range(200):
            f.seek(i * 16384)
            f.write(b'%d' % i * 50)
    os.mkdir('many')
    for i in range(2000):
        open(f'many/{i:04d}' + 'x' * (i % 90), 'wb').close()

def entry(path, name):
    """What is known of a name, piece by piece; a piece that cannot be read is an errno."""
    st = tried(os.lstat, path)
    if isinstance(st, int):
        return {'stat': st}
    e = {'stat': [st.st_mode, st.st_nlink, st.st_size, st.st_uid, st.st_mtime_ns]}
    if stat.S_ISLNK(st.st_mode):
        e['target'] = tried(lambda p: os.readlink(p).decode('latin-1'), path)
    elif stat.S_ISREG(st.st_mode):
        e['blocks'] = tried(contents, path)
        e['xattr'] = tried(lambda p: {n: hashlib.md5(os.getxattr(p, n)).hexdigest() for n in os.listxattr(p)}, path)
    elif stat.S_ISDIR(st.st_mode):
        e['names'] = tried(lambda p: sorted(os.fsdecode(n) for n in os.listdir(p)), path)
    return e

def tried(call, path):
    try:
        return call(path)
    except OSError as e:
        return e.errno

def contents(path):
    out = []
    with open(path, 'rb', buffering=0) as f:
        size = os.fstat(f.fileno()).st_size
        for at in range(0, size, 65536):
            piece = tried(lambda _: whole(f.fileno(), min(65536, size - at), at), path)
            out.append(piece if isinstance(piece, int) else hashlib.md5(piece).hexdigest())
    return out

def whole(fd, length, at):
    data = b''
    while len(data) < length:
        piece = os.pread(fd, length - len(data), at + len(data))
        if not piece:
            sys.exit('a file ended before its size')
        data += piece
    return data

def walk(known):
    todo = [b'']
    while todo:
        name = todo.pop()
        e = entry(top + b'/' + name, name)
        yield os.fsdecode(name), e
        # below a directory that cannot be listed its names are still tried
        names = e.get('names')
        if isinstance(names, int) and known:
            names = known[os.fsdecode(name)]['names']
        if isinstance(names, list):
            todo += [os.path.join(name, os.fsencode(n)) for n in names]

def compare(path, want, got):
    errors = 0
    if isinstance(got, int):
        if got != errno.EIO:
            sys.exit(f'{path}: {os.strerror(got)}')
        return 1
    if isinstance(want, dict):
        for key in got:
            errors += compare(path + ' ' + key, want.get(key), got[key])
    elif path.endswith('blocks') and isinstance(want, list):
        if len(want) != len(got):
            sys.exit(f'{path}: {len(got)} pieces instead of {len(want)}')
        for i in range(len(want)):
            errors += compare(f'{path} {i}', want[i], got[i])
    elif want != got:
        sys.exit(f'{path}: WRONG: {got} instead of {want}')
    return errors

if verb == 'make':
    make()
elif verb == 'list':
    json.dump(dict(walk(None)), sys.stdout)
else:
    with open(sys.argv[3]) as f:
        known = json.load(f)
    print(sum(compare(path, known.get(path), e) for path, e in walk(known)))
END
python3 "$work/tree.py" make "$mnt" || die "making the tree"
pool_umount
pool_mount
python3 "$work/tree.py" list "$mnt" >"$work/list" || die "listing the tree"
equal "errors in an undamaged pool" 0 "$(python3 "$work/tree.py" check "$mnt" "$work/list")"
cp "$mnt/large" "$work/large"
ino=$(stat -c %i "$mnt/large")
pool_umount
pool_check
split_spec
for i in 0 1; do
	cp --sparse=always "${members[i]}" "$work/good.$i"
done
restore() {
	for i in 0 1; do
		cp --sparse=always "$work/good.$i" "${members[i]}"
	done
}
# flip MEMBER OFFSET BIT
flip() {
	python3 - "$@" <<-'END'
		import sys
		with open(sys.argv[1], 'r+b') as f:
		    f.seek(int(sys.argv[2]))
		    byte = f.read(1)[0]
		    f.seek(int(sys.argv[2]))
		    f.write(bytes([byte ^ 1 << int(sys.argv[3])]))
	END
}

# -- data
# place BLOCK: member and byte offset on it of a block of the large file
place() {
	"$POOLFS" dump --inode "$ino" --json "${members[@]}" | python3 -c '
import json, re, sys
want = int(sys.argv[1])
for i in json.load(sys.stdin)["inode_items"]:
    k = re.fullmatch(r"extent data \d+ block (\d+)", i["key"])
    m = re.match(r"blocks (\d+) .*\bat (\d+):(\d+)", i["item"])
    if k and m and int(k[1]) <= want < int(k[1]) + int(m[1]):
        print(m[2], (int(m[3]) + want - int(k[1])) * 4096)' "$1"
}
cat >"$work/read.py" <<'END'
# Reads FILE in every way and compares with GOOD: EIO for block BAD, all other bytes right.
import errno, mmap, os, sys
path, good, bad = sys.argv[1], open(sys.argv[2], 'rb').read(), int(sys.argv[3])
size = len(good)

def judge(way, at, length, call):
    covers = at <= bad * 4096 < at + length
    try:
        got = bytes(call())
    except OSError as e:
        if e.errno != errno.EIO or not covers:
            sys.exit(f'{way}: {length} bytes at {at}: {e}')
        return 1
    # a short read may end before the bad block, and never in it
    end = min(at + length, size)
    if covers and bad * 4096 == at:
        sys.exit(f'{way}: block {bad} could be read')
    if got != good[at:at + len(got)]:
        sys.exit(f'{way}: wrong bytes at {at}')
    if len(got) != (bad * 4096 if covers else end) - at:
        sys.exit(f'{way}: {len(got)} bytes at {at}')
    return 0

def drop(fd):
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)

def each(way, flags, step, order):
    fd = os.open(path, os.O_RDONLY | flags)
    drop(fd)
    buf, eio = mmap.mmap(-1, step), 0
    for at in order(range(0, size, step)):
        def call():
            n = os.preadv(fd, [buf], at)
            return buf[:n]
        eio += judge(way, at, step, call)
    os.close(fd)
    if step == 4096 and eio != 1:
        sys.exit(f'{way}: {eio} blocks with an error')

for flags, name in ((0, 'buffered'), (os.O_DIRECT, 'O_DIRECT')):
    each(f'{name}, forwards', flags, 4096, list)
    each(f'{name}, backwards', flags, 4096, lambda r: reversed(list(r)))
each('buffered, 64 KiB', 0, 65536, list)
each('buffered, 1 MiB', 0, 1 << 20, list)
each('O_DIRECT, 1 MiB', os.O_DIRECT, 1 << 20, list)

# mapped: SIGBUS for that page only
fd = os.open(path, os.O_RDONLY)
drop(fd)
m = mmap.mmap(fd, size, prot=mmap.PROT_READ)
for block in range(max(0, bad - 3), min(-(-size // 4096), bad + 4)):
    pid = os.fork()
    if pid == 0:
        ok = m[block * 4096:(block + 1) * 4096] == good[block * 4096:(block + 1) * 4096]
        os._exit(0 if ok else 1)
    status = os.waitpid(pid, 0)[1]
    if block == bad and not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == 7) or block != bad and status != 0:
        sys.exit(f'mapped: block {block}: status {status}')
END

last=$((9000001 / 4096))
blocks=(0 256 777 "$last")
[ "$percent" -lt 50 ] || blocks+=(1 255 1023 "$((last - 1))")
for block in "${blocks[@]}"; do
	read -r member at < <(place $block) || die "the place of block $block is not in the dump"
	bit=$((RANDOM % 8)) byte=$((RANDOM % (block == last ? 9000001 % 4096 : 4096)))
	flip "${members[member]}" $((at + byte)) $bit
	case="block $block, member $member, byte $((at + byte)), bit $bit"

	"$MOUNT" "$spec" "$mnt" -o foreground 2>"$work/log" &
	for _ in $(seq 100); do
		mountpoint -q "$mnt" && break
		sleep 0.1
	done
	text=$(timeout 120 python3 "$work/read.py" "$mnt/large" "$work/large" $block 2>&1) || fail "$case: $text"
	timeout 60 cp "$mnt/large" "$work/copy" 2>/dev/null && fail "$case: cp succeeded"
	# all others
	text=$(timeout 120 python3 "$work/tree.py" check "$mnt" "$work/list" 2>&1) || fail "$case: $text"
	equal "$case: errors in the tree" 1 "$text"
	pool_umount
	wait $!
	grep -q "large" "$work/log" || fail "$case: the log does not name the file: $(cat "$work/log")"

	pool_check
	text=$("$POOLFS" scrub --json "${members[@]}")
	equal "$case: exit code of scrub" 4 $?
	python3 -c '
import json, sys
j = json.loads(sys.argv[1])
want = [{"path": "/large", "file_offset": int(sys.argv[2]), "length": 4096, "member": sys.argv[3], "member_offset": int(sys.argv[4])}]
got = [{k: d.get(k) for k in want[0]} for d in j["damage"]]
sys.exit(0 if got == want and j["errors"] == 1 and j["damaged_files"] == 1 else f"{j}")' \
		"$text" $((block * 4096)) "${members[member]}" "$at" || fail "$case: scrub does not name it"
	text=$("$POOLFS" scrub -q "${members[@]}" 2>&1)
	equal "$case: what scrub prints" "damaged: /large at offset $((block * 4096)), 4096 bytes, on ${members[member]} at offset $at: data block: checksum mismatch" "$text"

	# A part of the block cannot be written, the whole block can, and is good again.
	pool_mount
	if [ $block != $last ]; then
		printf x | dd of="$mnt/large" bs=1 seek=$((block * 4096 + 5)) conv=notrunc,fsync status=none 2>/dev/null &&
			fail "$case: one byte could be written into the damaged block"
		dd if="$work/large" of="$mnt/large" bs=4096 skip=$block seek=$block count=1 conv=notrunc,fsync status=none ||
			fail "$case: the damaged block cannot be overwritten"
		cmp "$work/large" "$mnt/large" || fail "$case: the file is not whole after overwriting the block"
	else
		rm "$mnt/large" || fail "$case: a damaged file cannot be removed"
	fi
	pool_umount
	pool_check
	pool_scrub >/dev/null
	restore
done
figure "data: ${#blocks[@]} places, by 4 KiB, 64 KiB, 1 MiB, mapped and direct reads"

# -- metadata
# Every place that is in use: nodes, tables, maps, superblocks. Lines: kind, member, first byte, length.
"$POOLFS" dump --tree --json "${members[@]}" >"$work/nodes.json" || die "dump --tree"
"$POOLFS" dump --super "${members[@]}" >"$work/super.txt" || die "dump --super"
python3 - "$work/nodes.json" "$work/super.txt" >"$work/places" <<'END'
import json, re, sys
for n in json.load(open(sys.argv[1]))['nodes']:
    member, block = n['addr'].split(':')
    print('node', member, int(block) * 4096, 16384)
member = -1
for line in open(sys.argv[2]):
    if re.match(r'\S.*: \d+ bytes$', line):
        member += 1
    m = re.match(r'\s+ring . slot \d+ block (\d+)\s+valid', line)
    if m:
        print('superblock', member, int(m[1]) * 4096, 4096)
END
"$POOLFS" dump --maps "${members[@]}" >"$work/maps.txt" || die "dump --maps"
# Table root, tables and maps are shadow pairs at fixed places (mkfs -v shows them): both of each.
"$MKFS" -f -n -v "${members[@]}" 2>/dev/null | python3 -c '
import re, sys
for member, m in enumerate(re.finditer(r"table root (\d+), tables (\d+), maps (\d+),\s+log (\d+)", sys.stdin.read())):
    root, tables, maps, log = map(int, m.groups())
    print("table-root", member, root * 4096, (tables - root) * 4096)
    print("table", member, tables * 4096, (maps - tables) * 4096)
    print("map", member, maps * 4096, (log - maps) * 4096)' >>"$work/places"
[ "$(grep -c '^node' "$work/places")" -ge 30 ] && [ "$(grep -c '^superblock' "$work/places")" -ge 8 ] &&
	[ "$(grep -c '^map' "$work/places")" = 2 ] || die "places of metadata: $(sort "$work/places" | cut -d' ' -f1 | uniq -c)"

seed=${ACCEPT_SEED:-$RANDOM}
python3 - "$work/places" "$flips" "$seed" >"$work/flips" <<'END'
import random, sys
r = random.Random(int(sys.argv[3]))
places = {}
for line in open(sys.argv[1]):
    kind, member, first, length = line.split()
    places.setdefault(kind, []).append((member, int(first), int(length)))
for _ in range(int(sys.argv[2])):
    kind = r.choices(['node', 'superblock', 'table-root', 'table', 'map'], [70, 12, 6, 6, 6])[0]
    member, first, length = r.choice(places[kind])
    print(kind, member, first + r.randrange(length), r.randrange(8))
END

declare -A count=()
tally() {
	count[$1]=$((${count[$1]:-0} + 1))
}
nr=0
while read -r kind member at bit <&3; do
	nr=$((nr + 1))
	case="seed $seed, flip $nr: $kind, member $member, byte $at, bit $bit"
	flip "${members[member]}" "$at" "$bit"
	timeout 60 "$FSCK" -n "${members[@]}" >"$work/out" 2>&1
	code=$?
	tally "$kind: fsck exit $code"
	case $code in
	4 | 8) ;;
	0) [ "$kind" != node ] || fail "$case: fsck finds nothing" ;;
	*) fail "$case: fsck exit $code: $(tail -n 3 "$work/out")" ;;
	esac
	mode=$([ $((nr % 2)) = 0 ] && echo ro || echo rw)
	timeout 60 "$MOUNT" "$spec" "$mnt" -o $mode >"$work/out" 2>&1
	code=$?
	if [ $code != 0 ]; then
		[ $code = 32 ] && [ -s "$work/out" ] || fail "$case: mount exit $code: $(cat "$work/out")"
		mountpoint -q "$mnt" && fail "$case: mount failed, and is mounted"
		tally "$kind: mount refused"
		restore
		continue
	fi
	pid=$(pgrep -f -- "$spec") # the root may be unreadable
	timeout 120 ls -lR "$mnt" >/dev/null 2>&1
	[ $? != 124 ] || fail "$case: ls -lR hangs"
	text=$(timeout 120 python3 "$work/tree.py" check "$mnt" "$work/list" 2>&1) || fail "$case: exit $?: $text"
	[ "$text" = 0 ] && tally "$kind: mounted, all right" || tally "$kind: mounted, with errors"
	if [ $mode = rw ]; then
		# whatever becomes of it
		timeout 60 sh -c 'cp "$1" "$2/new"; rm -rf "$2/d3" "$2/many"; mv "$2/d1" "$2/d2/"; echo more >>"$2/large"' sh "$work/list" "$mnt" \
			>/dev/null 2>&1
		[ $? != 124 ] || fail "$case: changing things hangs"
		timeout 60 "$POOLFS" sync "$mnt" >/dev/null 2>&1
		[ $? != 124 ] || fail "$case: sync hangs"
		if [ -e "$mnt/new" ]; then
			cmp -s "$work/list" "$mnt/new" || fail "$case: a new file has wrong bytes"
		fi
	fi
	kill -0 "$pid" 2>/dev/null || fail "$case: the daemon is gone"
	timeout 60 "$UMOUNT" "$mnt" >"$work/out" 2>&1 || {
		code=$?
		[ $code != 124 ] || fail "$case: umount hangs"
		tally "$kind: umount exit $code"
		umount -f "$mnt" 2>/dev/null || umount -l -i "$mnt"
	}
	wait_gone "$pid" || {
		fail "$case: the daemon does not end"
		kill -9 "$pid"
	}
	restore
done 3<"$work/flips"
for text in "${!count[@]}"; do
	figure "metadata: ${count[$text]} x $text"
done | sort
figure "metadata: $nr flips, seed $seed"
equal "flips tried" "$flips" $nr
finish
