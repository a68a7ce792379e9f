#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# PostgreSQL, with fsync and checksums: pgbench's TPC-B; cold; the daemon killed in the middle of it. Every transaction that was acknowledged
# is in the history, balances agree, indexes and pages are whole.
. "$(dirname "$0")/functions.sh"
need setpriv timeout python3
for bin in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V); do
	[ -x "$bin/postgres" ] && [ -x "$bin/pgbench" ] && PATH=$bin:$PATH
done
need postgres initdb pg_ctl pgbench pg_amcheck pg_checksums psql
need_room "$(scaled 12000 2500)"
run_as_db postgres
mkdir "$work/logs" && chown "$db_user" "$work/logs"
export PGHOST=$work/run PGUSER=postgres PGDATABASE=postgres

server_up() {
	"${as_db[@]}" pg_ctl -s -w -t 300 -D "$mnt/db" -l "$work/logs/server" start || die "$variant: the server does not start: $(tail -n 5 "$work/logs/server")"
}
server_down() {
	"${as_db[@]}" pg_ctl -s -w -t 300 -m fast -D "$mnt/db" stop || die "$variant: the server does not stop"
}
server_gone() {
	local pid
	pid=$(head -n 1 "$work/logs/pid")
	kill -QUIT "$pid" 2>/dev/null
	wait_gone "$pid" || kill -9 "$pid"
	wait_gone "$pid" || die "$variant: the server does not end"
	wait "$load" 2>/dev/null
}
query() {
	"${as_db[@]}" psql -qAtX -v ON_ERROR_STOP=1 -c "$1" || fail "$variant: psql: $1"
}
# load SECONDS: acknowledged transactions are lines of $work/logs/t*
load() {
	rm -f "$work"/logs/t.*
	(cd "$work/logs" && exec timeout 600 "${as_db[@]}" \
		pgbench -n -c 8 -j 2 -T "$1" -l --log-prefix=t >"$work/logs/pgbench" 2>&1)
}
acknowledged() {
	cat "$work"/logs/t.* 2>/dev/null | wc -l
}
whole() {
	local sums
	sums=$(query "SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers),
		(SELECT sum(bbalance) FROM pgbench_branches), (SELECT coalesce(sum(delta), 0) FROM pgbench_history)")
	[ "$(tr '|' '\n' <<<"$sums" | sort -u | wc -l)" = 1 ] || fail "$variant, $1: balances differ: $sums"
	"${as_db[@]}" pg_amcheck --install-missing --heapallindexed >"$work/out" 2>&1 ||
		fail "$variant, $1: pg_amcheck: $(head -n 3 "$work/out")"
}

postgresql() {
	local before after seconds
	seconds=$(sized 120 6)
	mkdir "$mnt/db" && chown "$db_user" "$mnt/db" && chmod 700 "$mnt/db"
	"${as_db[@]}" initdb -D "$mnt/db" -U postgres --data-checksums --auth=trust --no-sync >"$work/out" 2>&1 || die "$variant: initdb: $(tail -n 3 "$work/out")"
	cat >>"$mnt/db/postgresql.conf" <<-END
		listen_addresses = ''
		unix_socket_directories = '$work/run'
		fsync = on
		synchronous_commit = on
		full_page_writes = on
		shared_buffers = 64MB
		max_wal_size = 256MB
		checkpoint_timeout = 30s
	END
	server_up
	"${as_db[@]}" pgbench -i -q -s "$(sized 100 3)" >"$work/out" 2>&1 || die "$variant: pgbench -i: $(tail -n 3 "$work/out")"
	load "$seconds" || fail "$variant: pgbench: $(tail -n 3 "$work/logs/pgbench")"
	equal "$variant: transactions in the history" "$(acknowledged)" "$(query "SELECT count(*) FROM pgbench_history")"
	whole "after $(acknowledged) transactions"
	server_down

	cold
	"${as_db[@]}" pg_checksums -c -D "$mnt/db" >"$work/out" 2>&1 || fail "$variant, cold: pg_checksums: $(tail -n 3 "$work/out")"
	server_up
	whole cold

	before=$(query "SELECT count(*) FROM pgbench_history")
	head -n 1 "$mnt/db/postmaster.pid" >"$work/logs/pid"
	load 600 &
	load=$!
	sleep "$seconds"
	kill_daemon server_gone
	rm "$mnt/db/postmaster.pid" # it is gone, as after a power cut
	server_up
	after=$(query "SELECT count(*) FROM pgbench_history")
	[ "$(acknowledged)" -gt 0 ] || fail "$variant: no transaction before the kill"
	[ "$after" -ge $((before + $(acknowledged))) ] ||
		fail "$variant: $(acknowledged) transactions were acknowledged before the daemon was killed, $((after - before)) are there"
	whole "after SIGKILL of the daemon"
	server_down
	"${as_db[@]}" pg_checksums -c -D "$mnt/db" >"$work/out" 2>&1 || fail "$variant, after SIGKILL: pg_checksums: $(tail -n 3 "$work/out")"
	lap "$variant: $((after)) transactions, $(acknowledged) of them before SIGKILL"
}

over_pools postgresql "$(scaled 6000 1200)"
finish
