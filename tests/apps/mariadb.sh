#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# MariaDB, InnoDB with O_DIRECT and a flush for each commit: sysbench's OLTP, CHECK TABLE EXTENDED, cold; and with the daemon killed in the
# middle of transfers between accounts, of which every one that was acknowledged is there, whole.
. "$(dirname "$0")/functions.sh"
need setpriv timeout mariadbd mariadb-install-db mariadb mariadb-check sysbench
need_room "$(scaled 12000 2500)"
run_as_db mysql
socket=$work/run/socket

options=(--no-defaults --datadir="$mnt/db" --socket="$socket" --pid-file="$work/run/pid" --skip-networking --skip-grant-tables
	--innodb-flush-log-at-trx-commit=1 --innodb-flush-method=O_DIRECT --innodb-buffer-pool-size=64M --innodb-log-file-size=96M
	--innodb-doublewrite=1 --sync-binlog=1 --log-bin="$mnt/db/binlog" --log-error="$work/run/errors")
server_up() {
	"${as_db[@]}" mariadbd "${options[@]}" >>"$work/run/out" 2>&1 &
	server=$!
	for _ in $(seq 600); do
		"${as_db[@]}" mariadb --no-defaults -S "$socket" -e 'SELECT 1' >/dev/null 2>&1 && return
		kill -0 "$server" 2>/dev/null || break
		sleep 0.1
	done
	die "$variant: the server does not start: $(tail -n 5 "$work/run/errors" "$work/run/out")"
}
server_down() {
	kill "$server"
	wait "$server" || fail "$variant: the server ended with exit $?: $(tail -n 3 "$work/run/errors")"
}
server_gone() {
	kill -9 "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	wait "$load" 2>/dev/null
}
query() {
	"${as_db[@]}" mariadb --no-defaults -S "$socket" -N -B test -e "$1" || fail "$variant: mariadb: $1"
}
bench() {
	timeout 900 sysbench oltp_read_write --db-driver=mysql --mysql-socket="$socket" --mysql-user=root --mysql-db=test --tables=4 \
		--table-size="$(sized 200000 5000)" --threads=4 "$@" >"$work/out" 2>&1 || fail "$variant: sysbench $*: $(tail -n 3 "$work/out")"
}
whole() {
	local table
	for table in sbtest1 sbtest2 sbtest3 sbtest4 accounts journal; do
		equal "$variant, $1: CHECK TABLE $table EXTENDED" OK "$(query "CHECK TABLE $table EXTENDED" | awk '{ print $NF }' | sort -u)"
	done
	equal "$variant, $1: the sum of all accounts" 0 "$(query 'SELECT sum(balance) FROM accounts')"
	equal "$variant, $1: what the journal says of them" "" "$(query 'SELECT id FROM accounts WHERE balance <> (SELECT coalesce(sum(amount), 0)
		FROM journal WHERE receiver = id) - (SELECT coalesce(sum(amount), 0) FROM journal WHERE payer = id) LIMIT 3' | tr '\n' ' ')"
}
# Number of each transfer that was acknowledged, in $work/run/done
transfers() {
	local i
	for ((i = 1; i <= 200000; i++)); do
		printf 'BEGIN; UPDATE accounts SET balance = balance - %d WHERE id = %d; UPDATE accounts SET balance = balance + %d WHERE id = %d;
			INSERT INTO journal VALUES (%d, %d, %d, %d); COMMIT; SELECT %d;\n' \
			$((i % 97)) $((i % 50)) $((i % 97)) $((50 + i % 50)) $i $((i % 50)) $((50 + i % 50)) $((i % 97)) $i
	done | "${as_db[@]}" mariadb --no-defaults -S "$socket" -N -B -n test >"$work/run/done" 2>/dev/null
}

mariadb_() {
	local seconds last
	seconds=$(sized 120 6)
	mkdir "$mnt/db" && chown "$db_user" "$mnt/db"
	"${as_db[@]}" mariadb-install-db --no-defaults --datadir="$mnt/db" --auth-root-authentication-method=normal >"$work/out" 2>&1 ||
		die "$variant: mariadb-install-db: $(tail -n 5 "$work/out")"
	server_up
	"${as_db[@]}" mariadb --no-defaults -S "$socket" -e 'CREATE DATABASE IF NOT EXISTS test' || die "$variant: CREATE DATABASE"
	query 'CREATE TABLE accounts (id INT PRIMARY KEY, balance INT NOT NULL) ENGINE=InnoDB; CREATE TABLE journal (nr INT PRIMARY KEY, payer INT,
		receiver INT, amount INT, KEY (payer), KEY (receiver)) ENGINE=InnoDB; INSERT INTO accounts SELECT seq, 0 FROM seq_0_to_99'
	bench prepare
	bench --time="$seconds" run
	whole "after sysbench"
	server_down
	cold
	server_up
	whole cold

	transfers &
	load=$!
	sleep "$seconds"
	kill_daemon server_gone
	server_up
	last=$(tail -n 1 "$work/run/done")
	[ "${last:-0}" -gt 0 ] || fail "$variant: no transfer before the kill"
	equal "$variant: acknowledged transfers in the journal" "$last" "$(query "SELECT count(*) FROM journal WHERE nr <= $last")"
	whole "after SIGKILL of the daemon"
	bench --time=2 run
	whole "and after more work"
	server_down
	lap "$variant: $last transfers before SIGKILL"
}

over_pools mariadb_ "$(scaled 6000 1500)"
finish
