#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Directories that are read while they change, and large ones. POOLFS_TEST_ENTRIES: entries of the large one.
. "$(dirname "$0")/functions.sh"

entries=${POOLFS_TEST_ENTRIES:-${POOLFS_TEST_LONG:+200000}}
entries=${entries:-20000}
make_pool 128M 128M
pool_mount
python3 - "$mnt" "$entries" <<'END' || fail "see above"
import os, random, sys, threading, time
os.chdir(sys.argv[1])
entries = int(sys.argv[2])
bad = 0

def check(what, ok):
    global bad
    if not ok:
        print('FAIL:', what)
        bad += 1

def make(path):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))

# what stays is seen exactly once, whatever else comes and goes
os.mkdir('busy')
stay = {f'stay{i}' for i in range(3000)}
for name in stay:
    make('busy/' + name)
stop = False
def churn(seed):
    rng = random.Random(seed)
    n = 0
    while not stop:
        name = f'busy/{seed}.{n % 500}'
        try:
            if rng.random() < 0.5:
                make(name)
            elif rng.random() < 0.5:
                os.unlink(name)
            else:
                os.rename(name, name + 'r')
                os.unlink(name + 'r')
        except OSError:
            pass
        n += 1
threads = [threading.Thread(target=churn, args=(i,)) for i in range(2)]
for t in threads:
    t.start()
for round in range(20):
    seen = [e.name for e in os.scandir('busy')]
    here = [n for n in seen if n in stay]
    check(f'round {round}: {len(here)} of {len(stay)} seen, {len(set(here))} different',
          len(here) == len(stay) and set(here) == stay)
    check(f'round {round}: a name twice', len(seen) == len(set(seen)))
stop = True
for t in threads:
    t.join()

# removed while iterating
seen = 0
with os.scandir('busy') as it:
    for e in it:
        os.unlink(e.path)
        seen += 1
check('all are gone after unlinking while listing', os.listdir('busy') == [])
os.rmdir('busy')

# a large one
os.mkdir('large')
start = time.time()
for i in range(entries):
    make(f'large/file number {i}')
made = time.time()
names = os.listdir('large')
check(f'{len(names)} names of {entries}', sorted(names) == sorted(f'file number {i}' for i in range(entries)))
check('types', all(e.is_file(follow_symlinks=False) for e in os.scandir('large')))
check('inode numbers', len({e.inode() for e in os.scandir('large')}) == entries)
listed = time.time()
print(f'{entries} entries: made {entries / (made - start):.0f}/s, listed three times in {listed - made:.2f} s')
END
before=$(stat -c '%h %s' "$mnt" "$mnt/large" | tr '\n' ' ')
pool_umount
pool_mount
equal "names after a remount" "$entries" "$(find "$mnt/large" -type f -name 'file number *' | wc -l)"
equal "stat of cold names" "$entries" "$(find "$mnt/large" -type f -size 0 | wc -l)"
equal "links and size of the directory" "$before" "$(stat -c '%h %s' "$mnt" "$mnt/large" | tr '\n' ' ')"
# each name can be found, and no other
for i in 0 1 $((entries / 2)) $((entries - 1)); do
	[ -f "$mnt/large/file number $i" ] || fail "file number $i is not found"
done
[ -e "$mnt/large/file number $entries" ] && fail "a name is found that was never made"
rm -rf "$mnt/large" || fail "rm -rf"
pool_umount
pool_check
finish
