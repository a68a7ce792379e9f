#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What programs are promised by a filesystem whose daemon is killed.

promises.py load DIR NOTES SEED PID MS   processes, each with another kind of promise, work below DIR until the daemon PID, which
                                         is killed after MS milliseconds, is gone
promises.py check DIR NOTES SEED [OLDER] what these loads were promised is there
promises.py report NOTES                 how many promises of each kind all checks have looked at
promises.py remove DIR NOTES SEED        of a load that needs not be checked any more

Each promise is noted in the directory NOTES, outside of the pool: what is about to happen before it is asked for, and that it
was promised after the call has returned. SEED gives the kinds that take part, and all that they write.
"""
import collections
import ctypes
import json
import mmap
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time

BLOCK = 4096
poolfs = os.environ.get('POOLFS', 'poolfs')
libc = ctypes.CDLL(None, use_errno=True)
counts = collections.Counter()


class Broken(Exception):
    pass


def content(key, size):
    return random.Random(key).randbytes(size)


def block(key, version, index):
    """Each one says which it is, and is told from a mixture of two."""
    head = b'%s %d %d ' % (key.encode(), version, index)
    return (head * (BLOCK // len(head) + 1))[:BLOCK]


def aligned(data):
    """O_DIRECT wants it."""
    m = mmap.mmap(-1, max(len(data), BLOCK))
    m.write(data)
    return memoryview(m)[:len(data)]


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def write(path, data, flags=0):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | flags, 0o644)
    done = 0
    while done < len(data):
        done += os.write(fd, data[done:])
    return fd


def sync_dir(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


class Promise:
    """One kind: work() goes on until the pool is gone; check() gets the notes of one load, and raises Broken."""
    lasting = False  # its files are used by all loads

    def __init__(self, top, notes, seed):
        self.name = type(self).__name__.lower()
        self.seed = seed
        self.key = f'{self.name}-{seed}'
        self.dir = f'{top}/{self.name}' if self.lasting else f'{top}/{seed}.{self.name}'
        self.log = f'{notes}/{self.name if self.lasting else f"{seed}.{self.name}"}'
        self.random = random.Random(self.key)
        self.log_fd = -1

    def note(self, **what):
        if self.log_fd < 0:
            self.log_fd = os.open(self.log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
        os.write(self.log_fd, (json.dumps(what) + '\n').encode())

    def start(self):
        os.makedirs(self.dir, exist_ok=True)
        self.work()

    def notes(self):
        try:
            with open(self.log, encoding='ascii') as f:
                return [json.loads(line) for line in f]
        except FileNotFoundError:
            return []

    def kept(self, what, nr=1):
        counts[what] += nr


class Files(Promise):
    """A new file that was written and synced is there, whole, whatever was written after it."""

    def work(self):
        r, i, unsynced = self.random, 0, []
        while True:
            i += 1
            how, size = r.choice(('fsync', 'fdatasync', '', '')), r.choice((1, 100, 4096, 9999, 70000, 300000))
            path, key = f'{self.dir}/{i}', f'{self.key} {i}'
            fd = write(path, content(key, size))
            if how:
                getattr(os, how)(fd)
                self.note(path=path, key=key, size=size, how=how)
            else:
                unsynced.append(path)
            os.close(fd)
            if len(unsynced) > 15:
                os.unlink(unsynced.pop(0))

    def check(self, notes):
        for e in notes:
            if read(e['path']) != content(e['key'], e['size']):
                raise Broken(f"{e['path']}: not what was there at its {e['how']}")
            self.kept(f"a new file and its {e['how']}")


class Blocks(Promise):
    """Overwrites: each block is the one that was synced or a later one, whole. Subclasses say how it is written and synced."""
    nr_blocks, most = 64, 8
    torn = False  # what was not synced may be a mixture

    def put(self, first, versions):
        raise NotImplementedError

    def blocks(self, first, nr, version):
        return b''.join(block(self.key, version, i) for i in range(first, first + nr))

    def ranges(self):
        """(version, first, nr): all of it first, then at random."""
        version = 1
        yield version, 0, self.nr_blocks
        while True:
            version += 1
            nr = self.random.randrange(1, self.most + 1)
            yield version, self.random.randrange(self.nr_blocks - nr + 1), nr

    def check_blocks(self, path, notes, what, whole):
        """A note 'w' before each write, a note 'synced' when everything up to that version was promised."""
        writes = [e for e in notes if 'w' in e]
        synced = max([e['synced'] for e in notes if 'synced' in e], default=0)
        if not synced:
            return
        data = read(path)
        if len(data) != self.nr_blocks * BLOCK:
            raise Broken(f'{path}: {len(data)} bytes, {self.nr_blocks * BLOCK} were synced')
        allowed = [set() for _ in range(self.nr_blocks)]
        found = {}
        for e in writes:
            for i in range(e['w'], e['w'] + e['nr']):
                if e['v'] <= synced:
                    allowed[i] = set()
                allowed[i].add(e['v'])
        for i in range(self.nr_blocks):
            mine = data[i * BLOCK:(i + 1) * BLOCK]
            versions = {v: block(self.key, v, i) for v in allowed[i]}
            found[i] = next((v for v in versions if mine == versions[v]), 0)
            if not found[i] and not (self.torn and all(x in y for x, y in zip(mine, zip(*versions.values())))):
                raise Broken(f'{path}: block {i} is none of the versions {sorted(allowed[i])}, of which {synced} was synced: '
                             f'{mine[:60]!r} ... {mine[-60:]!r}')
        if whole:  # one request each: the later writes, in their order, are there or not
            point = max(found.values())
            then = {i: e['v'] for e in writes if e['v'] <= point for i in range(e['w'], e['w'] + e['nr'])}
            if found != then:
                raise Broken(f'{path}: parts of writes: version {point} has these versions of blocks: {then}, there are {found}')
        self.kept(what, len([e for e in notes if 'synced' in e]))


class Overwrites(Blocks):
    def work(self):
        fd = os.open(f'{self.dir}/f', os.O_CREAT | os.O_RDWR)
        for v, first, nr in self.ranges():
            self.note(w=first, nr=nr, v=v)
            os.pwrite(fd, self.blocks(first, nr, v), first * BLOCK)
            if v == 1 or self.random.randrange(4) == 0:
                (os.fsync if v & 1 else os.fdatasync)(fd)
                self.note(synced=v)

    def check(self, notes):
        self.check_blocks(f'{self.dir}/f', notes, 'overwritten blocks and their fsync', False)


class Mapped(Blocks):
    # the kernel may write a page back while somebody stores to it
    most, torn = 3, True

    def work(self):
        fd = os.open(f'{self.dir}/f', os.O_CREAT | os.O_RDWR)
        os.ftruncate(fd, self.nr_blocks * BLOCK)
        m = mmap.mmap(fd, self.nr_blocks * BLOCK)
        for v, first, nr in self.ranges():
            self.note(w=first, nr=nr, v=v)
            m[first * BLOCK:(first + nr) * BLOCK] = self.blocks(first, nr, v)
            if v == 1 or self.random.randrange(3) == 0:
                m.flush()
                self.note(synced=v)

    def check(self, notes):
        self.check_blocks(f'{self.dir}/f', notes, 'mapped pages and their msync', False)


class SyncWrites(Blocks):
    """Each write is promised by itself; of the last one nothing or, per block, all."""
    flags, direct = 0, False

    def work(self):
        fd = os.open(f'{self.dir}/f', os.O_CREAT | os.O_RDWR | self.flags | (os.O_DIRECT if self.direct else 0))
        for v, first, nr in self.ranges():
            self.note(w=first, nr=nr, v=v)
            if os.pwrite(fd, aligned(self.blocks(first, nr, v)), first * BLOCK) != nr * BLOCK:
                raise Broken(f'{self.dir}/f: a short write')
            self.note(synced=v)

    def check(self, notes):
        name = 'O_DSYNC' if self.flags == os.O_DSYNC else 'O_SYNC'
        self.check_blocks(f'{self.dir}/f', notes, f'a write, {name}{" | O_DIRECT" if self.direct else ""}', self.direct)


class Sync(SyncWrites):
    flags = os.O_SYNC


class DSync(SyncWrites):
    flags = os.O_DSYNC


class SyncDirect(SyncWrites):
    flags, direct = os.O_SYNC, True


class DSyncDirect(SyncWrites):
    flags, direct = os.O_DSYNC, True


class History(Promise):
    """Writes with O_DIRECT, truncations, holes: the file is at one point of its history, at or after the last fsync."""
    size = 64 * BLOCK

    def work(self):
        r, i = self.random, 0
        path = f'{self.dir}/f'
        fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_DIRECT)
        while True:
            i += 1
            what = r.choice(('write',) * 6 + ('truncate', 'punch', 'zero', 'extend'))
            nr = r.randrange(1, 9)
            first = r.randrange(65 - nr)
            op = [what, first * BLOCK, nr * BLOCK] if what != 'truncate' else [what, r.randrange(self.size), 0]
            self.note(op=op, i=i)
            if what == 'write':
                os.pwrite(fd, aligned(content(f'{self.key} {i}', op[2])), op[1])
            elif what == 'truncate':
                os.ftruncate(fd, op[1])
            else:
                # FALLOC_FL_ZERO_RANGE, PUNCH_HOLE | KEEP_SIZE
                flags = {'extend': 0, 'zero': 0x10, 'punch': 3}[what]
                if libc.fallocate(fd, flags, ctypes.c_int64(op[1]), ctypes.c_int64(op[2])):
                    err = ctypes.get_errno()
                    raise OSError(err, os.strerror(err))
            if r.randrange(5) == 0:
                (os.fsync if i & 1 else os.fdatasync)(fd)
                self.note(synced=i)

    @staticmethod
    def apply(data, op, key):
        what, off, size = op
        if what == 'truncate':
            return (data + bytes(max(0, off - len(data))))[:off]
        if what == 'punch':
            size = max(0, min(size, len(data) - off))
        elif len(data) < off + size:
            data = data + bytes(off + size - len(data))
        if what == 'extend' or not size:
            return data
        return data[:off] + (content(key, size) if what == 'write' else bytes(size)) + data[off + size:]

    def check(self, notes):
        synced = max([e['synced'] for e in notes if 'synced' in e], default=0)
        if not synced:
            return
        now, data = read(f'{self.dir}/f'), b''
        for e in notes:
            if 'op' in e:
                if e['i'] > synced and data == now:
                    break
                data = self.apply(data, e['op'], f"{self.key} {e['i']}")
        if data != now:
            raise Broken(f'{self.dir}/f: at no point of its history after operation {synced}, which was synced')
        self.kept('a file at one point of its history', len([e for e in notes if 'synced' in e]))


class Appends(Promise):
    """Up to the size at the last fdatasync everything is there; behind it there is nothing foreign."""

    def pattern(self, size):
        return b''.join(block(self.key, 0, i) for i in range(size // BLOCK + 1))[:size]

    def work(self):
        nr = 0
        while True:
            nr += 1
            path = f'{self.dir}/{nr}'
            fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            size, data = 0, self.pattern(1 << 20)
            while size < 800000:
                more = self.random.choice((10, 512, 512, 512, 4096, 5000, 40000))
                if os.write(fd, data[size:size + more]) != more:
                    raise Broken(f'{path}: a short write')
                size += more
                if self.random.randrange(3):
                    os.fdatasync(fd)
                    self.note(path=path, size=size)
            os.close(fd)

    def check(self, notes):
        sizes = {}
        for e in notes:
            sizes[e['path']] = e['size']
        for path, size in sizes.items():
            now = read(path)
            wanted = self.pattern(len(now))
            if len(now) < size or now[:size] != wanted[:size]:
                raise Broken(f'{path}: {len(now)} bytes; not the {size} that were synced')
            for i in range(size, len(now)):
                if now[i] not in (0, wanted[i]):
                    raise Broken(f'{path}: byte {i}, behind what was synced, is of something else')
        self.kept('an append and its fdatasync', len(notes))


class Names(Promise):
    """Names are a prefix of their history, with everything before the last fsync of a directory or a file."""

    def start(self):
        os.makedirs(f'{self.dir}/a')
        os.makedirs(f'{self.dir}/b')
        sync_dir(self.dir)
        self.note(begin=1)
        self.work()

    def choose(self, names, i):
        r = self.random
        new = [f"{r.choice('ab')}/{i}{r.choice(('', 'x' * 100))}"]
        old = [n for n in names]
        files = [n for n in old if names[n][0] != 'dir']
        what = r.choice(('file', 'node', 'symlink', 'dir', 'link', 'rename', 'over', 'remove', 'remove', 'mode'))
        if what in ('link', 'over', 'remove', 'mode', 'rename') and len(files) < 8:
            what = 'node'
        if what in ('file', 'node', 'symlink', 'dir'):
            return [what] + new
        if what == 'mode':
            return [what, r.choice([n for n in files if names[n][0] != 'symlink'] or files), r.randrange(0o1000)]
        if what == 'over':
            return [what] + r.sample(files, 2)
        if what == 'remove':
            return [what, r.choice(old if len(old) < 60 else files)]
        return [what, r.choice(files if what == 'link' else old)] + new

    @staticmethod
    def act(top, op, i):
        what, name = op[0], f'{top}/{op[1]}'
        if what == 'file':
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        elif what == 'node':
            os.mknod(name, 0o600 | stat.S_IFCHR, os.makedev(1, i))
        elif what == 'symlink':
            os.symlink(f'{i}', name)
        elif what == 'dir':
            os.mkdir(name, 0o700)
        elif what == 'link':
            os.link(name, f'{top}/{op[2]}', follow_symlinks=False)
        elif what in ('rename', 'over'):
            os.rename(name, f'{top}/{op[2]}')
        elif what == 'mode':
            if not os.path.islink(name):
                os.chmod(name, op[2])
        elif stat.S_ISDIR(os.lstat(name).st_mode):
            os.rmdir(name)
        else:
            os.unlink(name)

    @staticmethod
    def model(names, op, i):
        """names: name → [kind, number, mode], one list for all names of an inode."""
        what = op[0]
        if what in ('file', 'node', 'symlink', 'dir'):
            names[op[1]] = [what, i if what in ('node', 'symlink') else 0, {'symlink': 0o777, 'dir': 0o700}.get(what, 0o600)]
        elif what == 'link':
            names[op[2]] = names[op[1]]
        elif what in ('rename', 'over'):
            if what == 'rename' or names[op[1]] is not names[op[2]]:  # of two names of one inode nothing happens
                names[op[2]] = names.pop(op[1])
        elif what == 'mode':
            if names[op[1]][0] != 'symlink':
                names[op[1]][2] = op[2]
        else:
            del names[op[1]]

    def work(self):
        names, i = {}, 0
        while True:
            i += 1
            op = self.choose(names, i)
            self.note(op=op, i=i)
            self.act(self.dir, op, i)
            self.model(names, op, i)
            if self.random.randrange(6) == 0:
                sync_dir(self.random.choice((self.dir, f'{self.dir}/a', f'{self.dir}/b')))
                self.note(synced=i)

    def check(self, notes):
        if not notes:
            return
        now = {}
        for sub in 'ab':
            with os.scandir(f'{self.dir}/{sub}') as entries:
                for entry in entries:
                    st = entry.stat(follow_symlinks=False)
                    kind = {stat.S_IFREG: 'file', stat.S_IFCHR: 'node', stat.S_IFLNK: 'symlink', stat.S_IFDIR: 'dir'}[stat.S_IFMT(st.st_mode)]
                    number = os.minor(st.st_rdev) if kind == 'node' else int(os.readlink(entry.path)) if kind == 'symlink' else 0
                    now[f'{sub}/{entry.name}'] = (kind, number, stat.S_IMODE(st.st_mode), 0 if kind == 'dir' else st.st_nlink)
        synced, names, agreed, nearest = max([e['synced'] for e in notes if 'synced' in e], default=0), {}, False, None
        ops = [e for e in notes if 'op' in e]
        for at in range(len(ops) + 1):
            if at:
                self.model(names, ops[at - 1]['op'], ops[at - 1]['i'])
            if at >= synced:
                links = collections.Counter(id(x) for x in names.values())
                then = {n: (x[0], x[1], x[2], 0 if x[0] == 'dir' else links[id(x)]) for n, x in names.items()}
                agreed = agreed or then == now
                off = sorted(set(then.items()) ^ set(now.items()))
                if nearest is None or len(off) < len(nearest[1]):
                    nearest = at, off
        if not agreed:
            raise Broken(f'{self.dir}: the names are at no point of their history from operation {synced}, which was synced, to {len(ops)}; '
                         f'operation {nearest[0]} comes nearest: {nearest[1][:4]}')
        self.kept('names and the fsync of a directory', len([e for e in notes if 'synced' in e]))


class Attributes(Promise):
    """A small tree with links and attributes, of which file and directory were synced."""

    def work(self):
        i = 0
        while True:
            i += 1
            d, key, size = f'{self.dir}/{i}', f'{self.key} {i}', self.random.choice((0, 10, 5000))
            os.mkdir(d)
            os.symlink(key, f'{d}/s')
            fd = write(f'{d}/f', content(key, size))
            os.link(f'{d}/f', f'{d}/l')
            os.setxattr(f'{d}/f', 'user.key', key.encode())
            os.setxattr(d, 'user.long', content(key, 3000))
            os.utime(f'{d}/f', ns=(i, 10**18 + i))
            os.chown(f'{d}/f', i, i + 1)
            if self.random.randrange(3) == 0:
                os.fsync(fd)
                sync_dir(d)
                self.note(dir=d, key=key, size=size, i=i)
            os.close(fd)

    def check(self, notes):
        for e in notes:
            d, key, i = e['dir'], e['key'], e['i']
            st = os.stat(f'{d}/f')
            if sorted(os.listdir(d)) != ['f', 'l', 's'] or os.readlink(f'{d}/s') != key or read(f'{d}/l') != content(key, e['size']) or \
                    os.getxattr(f'{d}/f', 'user.key') != key.encode() or os.getxattr(d, 'user.long') != content(key, 3000) or \
                    (st.st_nlink, st.st_mtime_ns, st.st_uid, st.st_gid) != (2, 10**18 + i, i, i + 1):
                raise Broken(f'{d}: not what was synced: {os.listdir(d)}, {st}')
            self.kept('attributes and an fsync')


class Replaced(Promise):
    """A synced file is renamed over another: the old or the new one, whole; the new one when the directory was synced."""

    def work(self):
        i, tmp, path = 0, f'{self.dir}/tmp', f'{self.dir}/f'
        while True:
            i += 1
            key, size = f'{self.key} {i}', self.random.choice((1, 100, 4096, 10000, 70000, 200000))
            fd = write(tmp, content(key, size), os.O_TRUNC)
            os.fsync(fd)
            if i & 1:
                os.close(fd)
            self.note(maybe=key, size=size)
            os.rename(tmp, path)
            if self.random.randrange(3) == 0:
                sync_dir(self.dir)
                self.note(surely=key, size=size)
            if not i & 1:
                os.close(fd)

    def check(self, notes):
        allowed, nr_synced = [], 0
        for e in notes:
            if 'surely' in e:
                allowed = []
                nr_synced += 1
            allowed.append((e.get('maybe') or e['surely'], e['size']))
        if not allowed:
            return
        try:
            now = read(f'{self.dir}/f')
        except FileNotFoundError:
            if nr_synced:
                raise Broken(f'{self.dir}/f: gone, after it was synced') from None
            return
        if not any(now == content(*x) for x in allowed):
            raise Broken(f'{self.dir}/f: neither the old file nor a new one: {len(now)} bytes, of {allowed}')
        self.kept('a file that was replaced by rename', len([e for e in notes if 'maybe' in e]))
        self.kept('a rename and the fsync of its directory', nr_synced)


class Everything(Promise):
    """poolfs sync: all that was written before, open or closed."""

    def work(self):
        nr = 0
        while True:
            nr += 1
            d, r, still_open, sizes = f'{self.dir}/{nr}', self.random, [], []
            os.mkdir(d)
            for i in range(r.randrange(1, 12)):
                sizes.append(r.choice((0, 1, 4096, 30000, 150000)))
                fd = write(f'{d}/{i}', content(f'{self.key} {nr} {i}', sizes[-1]))
                if r.randrange(2):
                    still_open.append(fd)
                else:
                    os.close(fd)
            done = subprocess.run([poolfs, 'sync', d], stderr=subprocess.PIPE, check=False)
            if done.returncode:
                raise OSError(5, f'poolfs sync: exit {done.returncode}: {done.stderr}')
            self.note(nr=nr, sizes=sizes)
            for fd in still_open:
                os.close(fd)

    def check(self, notes):
        for e in notes:
            for i, size in enumerate(e['sizes']):
                if read(f"{self.dir}/{e['nr']}/{i}") != content(f"{self.key} {e['nr']} {i}", size):
                    raise Broken(f"{self.dir}/{e['nr']}/{i}: not what was there at 'poolfs sync'")
            self.kept("everything before a 'poolfs sync'")


class Database(Promise):
    """Transactions that sqlite has committed; the database is one and the same for all loads."""
    lasting = True
    pragmas = ()
    window = 150

    def open(self):
        db = sqlite3.connect(f'{self.dir}/db', isolation_level=None, timeout=20)
        for pragma in self.pragmas:
            db.execute(f'PRAGMA {pragma}').fetchall()
        return db

    def rows(self, nr):
        r = random.Random(f'{self.name} {nr}')
        return [(nr * 100 + i, nr, r.randbytes(r.choice((10, 300, 3000)))) for i in range(r.randrange(1, 8))]

    def work(self):
        db = self.open()
        db.execute('CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, nr INTEGER, data BLOB)')
        db.execute('CREATE INDEX IF NOT EXISTS i ON t (data)')
        db.execute('CREATE TABLE IF NOT EXISTS last (id INTEGER PRIMARY KEY, nr INTEGER)')
        db.execute('INSERT OR IGNORE INTO last VALUES (1, 0)')
        nr = db.execute('SELECT nr FROM last').fetchone()[0]
        self.note(committed=nr)
        while True:
            nr += 1
            self.note(begun=nr)
            db.execute('BEGIN IMMEDIATE')
            db.executemany('INSERT INTO t VALUES (?, ?, ?)', self.rows(nr))
            db.execute('DELETE FROM t WHERE nr = ?', (nr - self.window,))
            db.execute('UPDATE last SET nr = ?', (nr,))
            db.execute('COMMIT')
            # Where the directory of the journal cannot be opened to sync it, because the daemon was killed just then, sqlite
            # takes no notice: a commit counts when the daemon was there after it.
            try:
                os.statvfs(self.dir)
            except OSError:
                self.note(unsure=nr)
                raise
            self.note(committed=nr)

    def check(self, notes):
        committed = max([e['committed'] for e in notes if 'committed' in e], default=None)
        if committed is None:
            return
        begun = max([e['begun'] for e in notes if 'begun' in e], default=0)
        db = self.open()
        said = db.execute('PRAGMA integrity_check').fetchall()
        if said != [('ok',)]:
            raise Broken(f'{self.dir}/db: integrity_check says {said[:3]}')
        nr = db.execute('SELECT nr FROM last').fetchone()[0]
        if not committed <= nr <= max(begun, committed):
            raise Broken(f'{self.dir}/db: transaction {nr} is the last; {committed} was committed, {begun} begun')
        wanted = [row for n in range(max(1, nr - self.window + 1), nr + 1) for row in self.rows(n)]
        if db.execute('SELECT * FROM t ORDER BY id').fetchall() != wanted:
            raise Broken(f'{self.dir}/db: not the rows of the transactions up to {nr}')
        db.close()
        self.kept(f'a transaction of sqlite, {self.name}', len([e for e in notes if 'committed' in e]) - self.seen())
        with open(f'{self.log}.seen', 'w', encoding='ascii') as f:
            f.write(str(len([e for e in notes if 'committed' in e])))

    def seen(self):
        try:
            with open(f'{self.log}.seen', encoding='ascii') as f:
                return int(f.read())
        except FileNotFoundError:
            return 0


class Wal(Database):
    pragmas = ('journal_mode=WAL', 'synchronous=FULL', 'wal_autocheckpoint=40')


class Rollback(Database):
    # EXTRA: the directory of the journal is synced as well, without which a commit is no promise
    pragmas = ('journal_mode=DELETE', 'synchronous=EXTRA')


class Truncate(Database):
    pragmas = ('journal_mode=TRUNCATE', 'synchronous=EXTRA')


KINDS = (Files, Overwrites, Mapped, Sync, DSync, SyncDirect, DSyncDirect, History, Appends, Names, Attributes, Replaced, Everything,
         Wal, Rollback, Truncate)


def taking_part(seed):
    r = random.Random(f'kinds {seed}')
    share = r.choice((0.3, 0.6, 0.9))
    return [kind for kind in KINDS if r.random() < share] or [Files]


def is_dead(top):
    """What is under way fails a moment before the connection does."""
    for _ in range(100):
        try:
            os.listdir(top)
        except OSError as e:
            return e.errno in (103, 107)
        time.sleep(0.05)
    return False


def child(kind, top, notes, seed):
    try:
        kind(top, notes, seed).start()
    except (OSError, sqlite3.Error) as e:
        if is_dead(top):
            return 0
        print(f'{kind.__name__}: {e!r}', flush=True)
    except Broken as e:
        print(f'{kind.__name__}: {e}', flush=True)
    return 1


def load(top, notes, seed, daemon, delay_ms):
    children = {}
    for kind in taking_part(seed):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                status = child(kind, top, notes, seed)
            finally:
                os._exit(status)
        children[pid] = kind.__name__
    time.sleep(delay_ms / 1000)
    bad = 0
    # one that ended before is one too many
    pid, status = os.waitpid(-1, os.WNOHANG)
    if pid:
        print(f'{children.pop(pid)} ended early, status {status:#x}')
        bad = 1
    os.kill(daemon, signal.SIGKILL)
    limit = time.monotonic() + 60
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            name = children.pop(pid)
            # a page of a mapping that cannot be had any more
            if status and not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGBUS and name in ('Mapped', 'Wal')):
                print(f'{name}: status {status:#x}')
                bad = 1
        elif time.monotonic() > limit:
            print('still running, a minute after the daemon was killed:', ', '.join(children.values()))
            for pid in children:
                os.kill(pid, signal.SIGKILL)
            return 1
        else:
            time.sleep(0.01)
    return bad


def check(top, notes, seeds):
    bad, kept = 0, collections.Counter()
    for seed in seeds:
        for kind in KINDS:
            if kind.lasting and seed != seeds[0] or not kind.lasting and kind not in taking_part(seed):
                continue
            promise = kind(top, notes, seed)
            try:
                promise.check(promise.notes())
            except (Broken, OSError, sqlite3.Error) as e:
                print(f'{kind.__name__}, load {seed}: {e}')
                bad = 1
        kept = kept or counts.copy()  # the older loads were counted when they were the latest
    counts.clear()
    counts.update(kept)
    with open(f'{notes}/counts', 'a', encoding='ascii') as f:
        f.write(json.dumps(counts) + '\n')
    print(sum(counts.values()))
    return bad


def report(notes):
    with open(f'{notes}/counts', encoding='ascii') as f:
        for line in f:
            counts.update(json.loads(line))
    for what, nr in sorted(counts.items()):
        print(f'{nr:8d}  {what}')
    print(f'{sum(counts.values()):8d}  promises in all')
    return 0


def remove(top, notes, seed):
    for kind in taking_part(seed):
        promise = kind(top, notes, seed)
        if not kind.lasting:
            if os.path.exists(promise.dir):
                shutil.rmtree(promise.dir)
            if os.path.exists(promise.log):
                os.unlink(promise.log)
    return 0


def main():
    verb, args = sys.argv[1], sys.argv[2:]
    if verb == 'load':
        return load(args[0], args[1], args[2], int(args[3]), int(args[4]))
    if verb == 'check':
        return check(args[0], args[1], args[2:])
    return {'report': report, 'remove': remove}[verb](*args)


sys.exit(main())
