#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# poolfs-bench run: the JSON is complete and valid, nothing stays behind, nothing of others is touched; wrong calls.
# shellcheck source=tests/cli/functions.sh
. "${top_srcdir:-.}/tests/cli/functions.sh"
BENCH=${BENCH:-poolfs-bench}
command -v "$BENCH" >/dev/null || { echo "$BENCH is not built"; exit 99; }
tiny=(--size 2M --ops 20 --files 150 --seconds 1)

mkdir dir
echo mine >dir/file
before=$(fingerprint)

accepts "$BENCH" run "${tiny[@]}" --json dir
json 'j["schema"] == 1 and j["mode"] == "run" and j["config"]["file_bytes"] == 2 << 20'
json 'len(j["metrics"]) == 31 and set(j["metrics"]) == set(j["details"])'
# The prototype's seven, by its names.
for key in seq_write_mib_s seq_read_mib_s small_write_ms_mean clean_flush_ms_mean overwrite_read_ms_median create_ms_mean \
	delete_ms_mean; do
	json "'$key' in j['metrics'] and (j['metrics']['$key'] or 0) > 0 or not j['direct']"
done
json 'isinstance(j["direct"], bool) and (j["direct"] or j["direct_why"])'
json 'all(d["state"] in ("done", "skipped") for d in j["details"].values())'
json 'all(d["state"] == "done" or d["note"] for d in j["details"].values())'
json 'j["details"]["create_ms_mean"]["latency_ms"]["count"] == 40'
json 'j["details"]["file_create_per_s"]["latency_ms"]["count"] == 150'
# A quarter as many when they are synchronous; a multiple of 8 by 8 threads. Mean in microseconds, as of the single calls.
json 'all(j["details"][k]["latency_ms"]["count"] == 5 for k in ("sync_write_us", "sync_append_us", "osync_write_us"))'
json 'abs(j["metrics"]["sync_write_us"] / 1000 / j["details"]["sync_write_us"]["latency_ms"]["mean"] - 1) < 1e-6'
json 'j["details"]["sync_parallel8_per_s"]["latency_ms"]["count"] == 8'
json 'j["details"]["sync_write_amplification"]["state"] == "skipped" and "loop" in j["details"]["sync_write_amplification"]["note"]'
json 'not j["direct"] or 1 <= j["details"]["mixed_create_us"]["latency_ms"]["count"] <= 200'
json 'not j["direct"] or j["details"]["mixed_read_us"]["latency_ms"]["count"] > j["details"]["mixed_write_us"]["latency_ms"]["count"] > 0'
json 'all(l["p50"] <= l["p95"] <= l["p99"] <= l["p99.9"] <= l["p99.99"] <= l["max"]
	for l in (d["latency_ms"] for d in j["details"].values() if "latency_ms" in d))'
json 'all(d["acknowledged"] >= j["metrics"][k] * 0.999 for k, d in j["details"].items() if "acknowledged" in d)'
[ "$before" = "$(fingerprint)" ] || fail "something was left behind or changed: $(find dir)"

accepts "$BENCH" run "${tiny[@]}" --metrics seq_write_mib_s,file_stat_per_s --json dir
json 'set(j["metrics"]) == {"seq_write_mib_s", "file_stat_per_s"}'
accepts "$BENCH" run "${tiny[@]}" --metrics delete_ms_mean dir
expect_out '^delete_ms_mean +[0-9.]+ ms '
expect_not_out create_ms
[ "$before" = "$(fingerprint)" ] || fail "something was left behind or changed: $(find dir)"

# Interrupted: what was made is removed.
"$BENCH" run --size 8M --ops 10000000 --metrics random dir >/dev/null 2>&1 &
pids+=($!)
sleep 0.5
kill -INT $! && wait $!
status=$?
[ $status -eq 3 ] || fail "interrupted: exit $status instead of 3"
[ "$before" = "$(fingerprint)" ] || fail "an interrupted run left something behind: $(find dir)"

refuses 2 'no mode given' "$BENCH"
refuses 2 '"walk" is not a mode' "$BENCH" walk
refuses 2 'no directory given' "$BENCH" run
refuses 2 'one directory at a time' "$BENCH" run dir dir
refuses 2 '"fast" is neither a metric nor a group' "$BENCH" run --metrics fast dir
refuses 2 'at least 1M' "$BENCH" run --size 4K dir
refuses 2 'from 1 to' "$BENCH" run --ops 0 dir
refuses 1 'nonesuch: No such file or directory' "$BENCH" run nonesuch
refuses 2 'nothing to compare' "$BENCH" compare
refuses 2 '"99" is not a format version' "$BENCH" compare --versions 99
refuses 2 '"6x99" is not a format version' "$BENCH" compare --versions 5,6x99
refuses 2 '"reiserfs" is not a filesystem' "$BENCH" compare --peer reiserfs
refuses 2 'from 1 to 600' "$BENCH" run --seconds 0 dir
refuses 2 'is not an option' "$BENCH" mount dir
refuses 2 'at least 16M' "$BENCH" mount --member-size 1M
refuses 2 'from 0 to 16' "$BENCH" mount --sparse-members 17
run "$BENCH" --help
expect_exit 0
expect_out '^  seq_write_mib_s '

finish
