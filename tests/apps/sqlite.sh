#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SQLite, with every kind of journal and with mapped memory, several processes in each database: transfers between accounts, copies and VACUUM
# beside them, a client killed, cold, the daemon killed. Every transaction that was acknowledged is there, and every byte is what it should be.
. "$(dirname "$0")/functions.sh"
need sqlite3 python3 timeout
need_room "$(scaled 12000 1200)"

# bank.py COMMAND DATABASE [ARGUMENT...]. All that a transaction does follows from who did it and its number; rows hold bytes that follow from
# how many transactions have changed them. So the table of transactions says what must be in the others.
cat >"$work/bank.py" <<'END'
import os, random, sqlite3, sys, time

command, path, args = sys.argv[1], sys.argv[2], sys.argv[3:]
accounts = 100
# (DELETE syncs the directory after a commit only with EXTRA)
journal, synchronous, mapped = {
    'delete': ('DELETE', 'EXTRA', 0), 'truncate': ('TRUNCATE', 'FULL', 0), 'persist': ('PERSIST', 'FULL', 0),
    'wal': ('WAL', 'FULL', 0), 'mapped': ('WAL', 'FULL', 256 << 20)}[os.path.basename(path).split('.')[0]]

def connect(path):
    db = sqlite3.connect(path, timeout=120, isolation_level=None)
    for pragma in (f'synchronous={synchronous}', f'mmap_size={mapped}', 'cache_size=30', 'wal_autocheckpoint=200'):
        db.execute('PRAGMA ' + pragma).fetchall()
    if db.execute(f'PRAGMA journal_mode={journal}').fetchone()[0] != journal.lower():
        sys.exit(f'{path}: journal_mode={journal} is not taken')
    return db

def content(row, version):
    r = random.Random(row << 32 | version)
    return r.randbytes(r.randrange(100, 3000))

# The last is how many rows it changes; with many, pages go to disk before the commit.
def transfer(who, serial, rows):
    r = random.Random(who << 32 | serial)
    count = 60 if serial % 15 == 0 else 1
    return (*r.sample(range(accounts), 2), r.randrange(1, 1000), r.randrange(rows - count), count)

def make(rows):
    db = connect(path)
    db.execute('CREATE TABLE account(id INTEGER PRIMARY KEY, balance INT)')
    db.execute('CREATE TABLE done(who INT, serial INT, payer INT, receiver INT, amount INT, first INT, count INT, PRIMARY KEY (who, serial))')
    db.execute('CREATE TABLE row(id INTEGER PRIMARY KEY, version INT, content BLOB)')
    db.execute('CREATE INDEX payers ON done(payer, amount)')
    db.execute('CREATE INDEX contents ON row(content)') if rows < 10000 else None
    db.execute('BEGIN')
    db.executemany('INSERT INTO account VALUES (?, 0)', ((i,) for i in range(accounts)))
    db.executemany('INSERT INTO row VALUES (?, 0, ?)', ((i, content(i, 0)) for i in range(rows)))
    db.execute('COMMIT')

def write(who, record, stop):
    db = connect(path)
    record = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    rows = db.execute('SELECT count(*) FROM row').fetchone()[0]
    serial = db.execute('SELECT coalesce(max(serial), 0) FROM done WHERE who = ?', (who,)).fetchone()[0]
    while not os.path.exists(stop):
        # who waits for a lock asks for it now and then only
        time.sleep(random.random() / 100)
        serial += 1
        payer, receiver, amount, first, count = transfer(who, serial, rows)
        # every tenth is taken back before it is done
        for end in ('ROLLBACK', 'COMMIT') if serial % 10 == 0 else ('COMMIT',):
            db.execute('BEGIN IMMEDIATE')
            db.execute('UPDATE account SET balance = balance - ? WHERE id = ?', (amount, payer))
            for row in range(first, first + count):
                version = db.execute('SELECT version FROM row WHERE id = ?', (row,)).fetchone()[0] + 1
                db.execute('UPDATE row SET version = ?, content = ? WHERE id = ?', (version, content(row, version), row))
            db.execute('INSERT INTO done VALUES (?, ?, ?, ?, ?, ?, ?)', (who, serial, payer, receiver, amount, first, count))
            db.execute('UPDATE account SET balance = balance + ? WHERE id = ?', (amount, receiver))
            db.execute(end)
        os.write(record, f'{serial}\n'.encode())

def read(stop):
    db = connect(path)
    rows = db.execute('SELECT count(*) FROM row').fetchone()[0]
    while not os.path.exists(stop):
        db.execute('BEGIN')
        if db.execute('SELECT sum(balance) FROM account').fetchone()[0]:
            sys.exit(f'{path}: balances add up to something')
        if rows < 10000 and db.execute('SELECT (SELECT sum(version) FROM row) - (SELECT coalesce(sum(count), 0) FROM done)').fetchone()[0]:
            sys.exit(f'{path}: a transaction is seen in part')
        for row in random.sample(range(rows), 50):
            version, got = db.execute('SELECT version, content FROM row WHERE id = ?', (row,)).fetchone()
            if got != content(row, version):
                sys.exit(f'{path}: row {row} has other bytes than were written as its version {version}')
        db.execute('COMMIT')
        time.sleep(random.random() / 20)

# check(RECORD...): prints what is wrong; the records name what was acknowledged
def check(*records):
    db = connect(path)
    said = db.execute('PRAGMA integrity_check').fetchone()[0]
    if said != 'ok':
        sys.exit(f'integrity_check: {said}')
    rows = db.execute('SELECT count(*) FROM row').fetchone()[0]
    balance, version, last = [0] * accounts, [0] * rows, {}
    for who, serial, *what in db.execute('SELECT * FROM done ORDER BY who, serial'):
        if serial != last.get(who, 0) + 1:
            sys.exit(f'client {who}: transaction {serial} follows {last.get(who, 0)}')
        if tuple(what) != transfer(who, serial, rows):
            sys.exit(f'client {who}: transaction {serial} is {what}')
        last[who] = serial
        payer, receiver, amount, first, count = what
        balance[payer] -= amount
        balance[receiver] += amount
        for row in range(first, first + count):
            version[row] += 1
    if balance != [b for b, in db.execute('SELECT balance FROM account ORDER BY id')]:
        sys.exit('other balances than the transactions say')
    for row, has, got in db.execute('SELECT * FROM row'):
        if has != version[row] or got != content(row, version[row]):
            sys.exit(f'row {row} is not as it was written: version {has}, of {version[row]}')
    for record in records:
        who = int(record.rsplit('.', 1)[1])
        with open(record) as f:
            acknowledged = int(f.read().split()[-1])
        if last.get(who, 0) < acknowledged:
            sys.exit(f'client {who}: transaction {acknowledged} was acknowledged, the last one there is {last.get(who, 0)}')
    print(sum(last.values()))

# while others write: all of the database in one transaction
def copy(to):
    there = sqlite3.connect(to)
    connect(path).backup(there, pages=-1)

{'make': lambda: make(int(args[0])), 'write': lambda: write(int(args[0]), *args[1:]), 'read': lambda: read(*args),
 'check': lambda: check(*args), 'copy': lambda: copy(*args)}[command]()
END

# run_clients: two that write and one that reads, in each database
run_clients() {
	local name who
	rm -f "$work/stop" "$work"/said.*
	clients=()
	for name in $databases; do
		for who in 1 2; do
			writer "$name" "$who"
		done
		python3 "$work/bank.py" read "$mnt/$name" "$work/stop" >>"$work/said.$name" 2>&1 &
		clients+=($!)
	done
}
writer() {
	python3 "$work/bank.py" write "$mnt/$1" "$2" "$work/record.$1.$2" "$work/stop" >>"$work/said.$1" 2>&1 &
	clients+=($!)
	newest_writer[$1]=$!
}
declare -A newest_writer
clients_said() {
	local name
	for name in $databases; do
		[ ! -s "$work/said.$name" ] || fail "$variant: clients of '$name': $(tail -n 3 "$work/said.$name")"
	done
}
clients_end() {
	touch "$work/stop"
	wait "${clients[@]}"
	clients_said
}
clients_gone() {
	kill -9 "${clients[@]}"
	wait "${clients[@]}" 2>/dev/null
}
sql() {
	timeout 600 sqlite3 -bail "$mnt/$1" ".timeout 120000" "$2" >"$work/out" 2>&1 || fail "$variant: $1: $2: $(tail -n 3 "$work/out")"
}
# whole WHEN: sets $transactions
whole() {
	local name checks=()
	transactions=0
	for name in $databases; do
		python3 "$work/bank.py" check "$mnt/$name" "$work/record.$name."* >"$work/check.$name" 2>&1 &
		checks+=($!)
	done
	for name in $databases; do
		if wait "${checks[0]}"; then
			transactions=$((transactions + $(cat "$work/check.$name")))
		else
			fail "$variant, $1, '$name': $(tail -n 3 "$work/check.$name")"
		fi
		checks=("${checks[@]:1}")
	done
}

sqlite() {
	local name seconds rows before
	seconds=$(sized 30)
	databases="delete mapped"
	[ "$share" -lt 5 ] || databases="delete truncate persist wal mapped"
	rm -f "$work"/record.*
	for name in $databases; do
		rows=$(sized 12000 200)
		# more than the memory that is mapped
		[ $name != mapped ] || [ "$share" -lt 100 ] || rows=250000
		python3 "$work/bank.py" make "$mnt/$name" "$rows" || die "$variant: a database cannot be made"
	done

	run_clients
	sleep "$seconds"
	for name in $databases; do
		kill -9 "${newest_writer[$name]}"
		wait "${newest_writer[$name]}" 2>/dev/null
		writer "$name" 2
	done
	for name in $databases; do
		python3 "$work/bank.py" copy "$mnt/$name" "$mnt/$name.copy" || fail "$variant: a copy of '$name' while others write"
		sql "$name" "VACUUM INTO '$mnt/$name.into'"
		sql "$name" "VACUUM"
	done
	sleep "$seconds"
	clients_end
	whole "after the end of a client"
	for name in $databases; do
		sql "$name" ".backup $mnt/$name.backup"
		for copy in copy into backup; do
			text=$(python3 "$work/bank.py" check "$mnt/$name.$copy" 2>&1) || fail "$variant, '$name.$copy': $text"
			rm "$mnt/$name.$copy"
		done
	done
	lap "$variant: $transactions transactions"

	cold
	whole cold
	before=$transactions
	run_clients
	sleep $((seconds * 2))
	clients_said
	kill_daemon clients_gone 2>/dev/null # (they tell of a bus error)
	whole "after SIGKILL of the daemon"
	[ "$transactions" -gt "$before" ] || fail "$variant: no transaction before SIGKILL of the daemon"
	lap "$variant: $((transactions - before)) transactions before SIGKILL of the daemon"
	run_clients
	sleep 1
	clients_end
	for name in $databases; do
		sql "$name" VACUUM
	done
	whole "after work that followed SIGKILL of the daemon"
	lap "$variant: and more of them"
}

over_pools sqlite "$(scaled 6000 600)"
finish
