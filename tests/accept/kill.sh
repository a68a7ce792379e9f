#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The daemon is killed at random moments under load. A new mount in the same place works, what was synced is there with the right
# contents, a file replaced by rename is the old one or the new one, whole, and fsck finds nothing.
. "$(dirname "$0")/functions.sh"
need timeout

rounds=$(scaled 50 6)
make_pool 160M 96M 128M
seed=${ACCEPT_SEED:-$RANDOM}
RANDOM=$seed

cat >"$work/load.py" <<'END'
# load DIR LOG SEED: four processes change things and note in LOG, outside of the pool, what has been synced.
# check DIR LOG: everything in LOG is there.
import json, os, random, sys, time
verb, top, log_path = sys.argv[1:4]

def content(key, size):
    return random.Random(key).randbytes(size)

def synced(fd):
    os.fsync(fd)

def is_dead():
    # what is under way fails a moment before the connection does
    for _ in range(50):
        try:
            os.listdir(top)
        except OSError as e:
            return e.errno in (103, 107)
        time.sleep(0.1)
    return False

def load(worker, seed):
    r = random.Random(seed * 10 + worker)
    log = os.open(log_path + f'.{worker}', os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    def note(**what):
        os.write(log, (json.dumps(what) + '\n').encode())
    d = f'{top}/w{seed}.{worker}'
    os.mkdir(d)
    rename_nr, i = 0, 0
    while True:
        i += 1
        size = r.choice((1, 100, 4096, 10000, 70000, 300000))
        key = f'{seed} {worker} {i}'
        if worker == 0: # whole files, synced
            path = f'{d}/{i}'
            fd = os.open(path, os.O_CREAT | os.O_WRONLY)
            os.write(fd, content(key, size))
            if i % 5 == 0:
                synced(fd)
                note(path=path, key=key, size=size)
            os.close(fd)
            if i > 40:
                victim = f'{d}/{i - 40}'
                if (i - 40) % 5:
                    os.unlink(victim)
        elif worker == 1: # replaced by rename: note before that a new one may be there, and after the sync that it is
            rename_nr += 1
            tmp, path = f'{d}/tmp', f'{d}/replaced'
            fd = os.open(tmp, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
            os.write(fd, content(key, size))
            synced(fd)
            os.close(fd)
            note(maybe=path, key=key, size=size)
            os.rename(tmp, path)
            if i % 4 == 0:
                dir_fd = os.open(d, os.O_RDONLY)
                os.fsync(dir_fd)
                os.close(dir_fd)
                note(surely=path, key=key, size=size)
        elif worker == 2: # one file, appended to, synced now and then: all that was synced is there
            path = f'{d}/appended'
            fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            os.write(fd, b'%08d' % i * (size // 8 + 1))
            if i % 7 == 0:
                synced(fd)
                note(append=path, size=os.fstat(fd).st_size)
            os.close(fd)
            if os.stat(path).st_size > 8 << 20:
                os.rename(path, path + '.old')
                note(moved=path)
        else: # names: directories, links, symlinks, attributes; and the reader of what others write
            os.mkdir(f'{d}/d{i}')
            os.symlink(key, f'{d}/d{i}/s')
            with open(f'{d}/d{i}/f', 'wb') as f:
                f.write(content(key, size))
            os.link(f'{d}/d{i}/f', f'{d}/d{i}/l')
            os.setxattr(f'{d}/d{i}/f', 'user.key', key.encode())
            if i % 6 == 0:
                dir_fd = os.open(f'{d}/d{i}', os.O_RDONLY)
                fd = os.open(f'{d}/d{i}/f', os.O_RDONLY)
                synced(fd)
                os.fsync(dir_fd)
                os.close(fd)
                os.close(dir_fd)
                note(names=f'{d}/d{i}', key=key, size=size)
            if i > 20 and (i - 20) % 6:
                old = f'{d}/d{i - 20}'
                for n in ('s', 'f', 'l'):
                    os.unlink(f'{old}/{n}')
                os.rmdir(old)

def read(path):
    with open(path, 'rb') as f:
        return f.read()

def check_worker(lines):
    nr, maybe, surely, appended = 0, [], None, 0
    for line in lines:
        e = json.loads(line)
        if 'path' in e:
            if read(e['path']) != content(e['key'], e['size']):
                sys.exit(f"{e['path']}: not what was synced")
        elif 'maybe' in e:
            maybe.append(e)
        elif 'surely' in e:
            maybe = [e]
            surely = e
        elif 'append' in e:
            appended, append_path = e['size'], e['append']
        elif 'moved' in e:
            appended = 0
        elif 'names' in e:
            d = e['names']
            if sorted(os.listdir(d)) != ['f', 'l', 's'] or os.readlink(f'{d}/s') != e['key'] or \
                    read(f'{d}/l') != content(e['key'], e['size']) or os.stat(f'{d}/f').st_nlink != 2 or \
                    os.getxattr(f'{d}/f', 'user.key') != e['key'].encode():
                sys.exit(f'{d}: not what was synced')
        nr += 1
    if maybe:
        path = maybe[0].get('maybe') or maybe[0].get('surely')
        try:
            now = read(path)
        except FileNotFoundError:
            now = None
        if now is None and surely:
            sys.exit(f'{path}: gone, after it was synced')
        if now is not None and not any(now == content(e['key'], e['size']) for e in maybe):
            sys.exit(f'{path}: neither the old file nor a new one: {len(now)} bytes')
    if appended:
        size = max(os.stat(p).st_size for p in (append_path, append_path + '.old') if os.path.exists(p))
        if size < appended:
            sys.exit(f'{append_path}: {size} bytes, {appended} were synced')
        # whole numbers in order, up to the last synced byte
        data = read(append_path if os.stat(append_path).st_size >= appended else append_path + '.old')[:appended]
        numbers = [int(data[i:i + 8]) for i in range(0, len(data) - 7, 8)]
        if any(b - a not in (0, 1) for a, b in zip(numbers, numbers[1:])):
            sys.exit(f'{append_path}: not what was appended')
    return nr

if verb == 'load':
    for worker in range(4):
        if os.fork() == 0:
            try:
                load(worker, int(sys.argv[4]))
            except OSError as e:
                # what was not yet written when the daemon died is an EIO of fsync or close
                os._exit(0 if e.errno in (107, 103) or e.errno == 5 and is_dead() else print(f'worker {worker}: {e}', flush=True) or 1)
    bad = 0
    for _ in range(4):
        bad |= os.wait()[1]
    sys.exit(1 if bad else 0)
nr = 0
for worker in range(4):
    if os.path.exists(log_path + f'.{worker}'):
        with open(log_path + f'.{worker}') as f:
            nr += check_worker([line for line in f if line.endswith('\n')])
print(nr)
END

total=0
pool_mount "commit=1"
for ((round = 1; round <= rounds; round++)); do
	what="seed $seed, round $round"
	pid=$(daemon_pid "$mnt")
	timeout 120 python3 "$work/load.py" load "$mnt" "$work/log" $round >"$work/out" 2>&1 &
	load=$!
	sleep "$((RANDOM % 4)).$((RANDOM % 10))$((RANDOM % 10))"
	kill -9 "$pid" || die "$what: the daemon was gone before: $(cat "$work/out")"
	wait $load || fail "$what: the load: exit $?: $(tail -n 5 "$work/out")"
	wait_gone "$pid" || die "$what: SIGKILL?"
	# on the dead mount point, or after unmounting that
	if [ $((round % 3)) = 0 ]; then
		"$UMOUNT" "$mnt" || fail "$what: umount of a dead mount"
		pool_check
	fi
	other_order
	pool_mount "commit=1"
	nr=$(timeout 120 python3 "$work/load.py" check "$mnt" "$work/log" 2>&1) || fail "$what: $nr"
	total=$((total + nr))
	ls -lR "$mnt" >/dev/null || fail "$what: ls -lR"
	find "$mnt" -type f -exec cat {} + >/dev/null || fail "$what: not every file can be read"
	figure "$what: $nr synced things are there"
	rm -f "$work"/log.*
	rm -rf "${mnt:?}"/w$((round - 1)).* || fail "$what: rm -rf"
	pool_umount
	pool_check
	[ $((round % 10)) != 0 ] || pool_scrub >/dev/null
	pool_mount "commit=1"
done
pool_umount
pool_check
figure "$rounds kills, $total synced things looked for, seed $seed; $(pool_scrub)"
[ $total -gt $((rounds * 10)) ] || fail "only $total things were synced: this proves little"
finish
