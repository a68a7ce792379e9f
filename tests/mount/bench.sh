#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# poolfs-bench compare: pools of two versions and ext4, made, mounted, measured and taken away again.
# shellcheck source=tests/mount/functions.sh
. "$(dirname "${BASH_SOURCE[0]}")/functions.sh"
BENCH=${BENCH:-$builddir/poolfs-bench}
need "$BENCH"

tiny=(--size 4M --ops 50 --files 120 --seconds 1 --workdir "$work")
before=$(ls "$work")

# nothing_left WHAT
nothing_left() {
	equal "what is left in the directory after $1" "$before" "$(ls "$work")"
	! grep -qF "$work/poolfs-bench" /proc/self/mountinfo || fail "$1 left a mount behind"
	! losetup -a | grep -qF "$work/poolfs-bench" || fail "$1 left a loop device behind"
}
# json EXPRESSION: over the output parsed as j
json() {
	python3 -c 'import json, sys; j = json.load(open(sys.argv[2])); sys.exit(not eval(sys.argv[1]))' "$1" "$work.json" ||
		fail "not true of the JSON: $1"
}

"$BENCH" compare --versions 4,5 --rounds 5 "${tiny[@]}" --metrics prototype,sequential,random,files,sync --members 2 --placement stripe --json >"$work.json" ||
	fail "comparing two versions: exit $?"
json 'j["schema"] == 1 and j["rounds"] == 5 and not j["loop_devices"]'
json '[c["name"] for c in j["metrics"][0]["candidates"]] == ["v4", "v5"]'
json 'len(j["metrics"]) == 26'
json 'all(len(c["values"]) == 5 and None not in c["values"] for m in j["metrics"] for c in m["candidates"])'
json 'all(0 < m["candidates"][1]["low"] <= m["candidates"][1]["ratio"] <= m["candidates"][1]["high"] for m in j["metrics"])'
json 'all(m["candidates"][1]["verdict"] in ("faster", "slower", "no difference shown") for m in j["metrics"])'
nothing_left "a comparison of versions"

if command -v mkfs.ext4 >/dev/null && [ -e /dev/loop-control ]; then
	"$BENCH" compare --peer ext4 --versions 5 --rounds 1 "${tiny[@]}" --metrics prototype --json >"$work.json" ||
		fail "comparing with ext4: exit $?"
	json 'j["loop_devices"] and [c["name"] for c in j["metrics"][0]["candidates"]] == ["ext4", "v5"]'
	json '[m["key"] for m in j["metrics"]][0] == "seq_write_mib_s" and len(j["metrics"]) == 7'
	json 'all(c["median"] > 0 for m in j["metrics"] for c in m["candidates"])'
	json 'all(m["candidates"][1]["verdict"] == "too few rounds" for m in j["metrics"])'
	nothing_left "a comparison with ext4"

	# A member without a filesystem: each byte is written once, and what needs names is left out. Pools with other members
	# than the rest; targets.
	"$BENCH" compare --peer rawloop,raw,empty,fuseraw,fuseloop --versions 5,5x2,5i,"$newest","$newest"x2,3 --rounds 1 "${tiny[@]}" --metrics device,sync \
		--targets --json >"$work.json" || fail "comparing with raw members: exit $?"
	cat >"$work.py" <<-'END'
		import json, sys
		j = json.load(open(sys.argv[1]))
		m = {m["key"]: {c["name"]: c for c in m["candidates"]} for m in j["metrics"]}
		newest = "v" + sys.argv[2]
		bytes, append = m["sync_write_amplification"], m["append_amplification_kib"]
		for name in "rawloop", "fuseloop":
		    assert 1 <= bytes[name]["median"] < 1.01, bytes[name]
		for name in "raw", "fuseraw", "v5i", "v3":
		    assert "median" not in bytes[name] and bytes[name]["note"], bytes[name]
		for name in "v5", "v5x2", newest, newest + "x2":
		    assert bytes[name]["median"] >= 2 and append[name]["median"] >= 4, (bytes[name], append[name])
		# The log is on both members.
		assert bytes[newest + "x2"]["median"] > bytes[newest]["median"], bytes
		assert "no filesystem" in m["sync_append_us"]["raw"]["note"], m["sync_append_us"]["raw"]
		for name in "raw", "rawloop", "empty", "fuseraw", "fuseloop", "v5", "v5x2", "v5i", "v3", newest:
		    assert m["osync_write_us"][name]["median"] > 0 and m["osync_write_us"][name]["latency_ms"]["count"] == 12
		assert [bytes[n]["members"] for n in ("v5", "v5x2", "raw")] == [1, 2, 1]
		assert [bytes[n]["loop_devices"] for n in ("v5", "v5i", "raw", "rawloop")] == [True, False, False, True]
		assert all(x["better"] == ("more" if x["key"].endswith("per_s") else "less") and x["pooled"] for x in j["metrics"])
		assert {(t["key"], t["candidate"]) for t in j["targets"]} >= {
		    ("sync_write_amplification", newest), ("sync_write_amplification", newest + "x2"), ("append_amplification_kib", newest)}
		assert all(t["verdict"] == "too few rounds" for t in j["targets"])
	END
	python3 "$work.py" "$work.json" "$newest" || fail "raw members and pools of two: see above"
	rm -f "$work.py"
	nothing_left "a comparison with raw members"

	"$BENCH" compare --peer ext4 --versions "$newest" --rounds 2 "${tiny[@]}" --metrics mixed >"$work.txt" ||
		fail "mixed load: exit $?"
	equal "rows of mixed load" 3 "$(grep -cE '^ +v[0-9]+ +[0-9.]+ us .*a second; the longest' "$work.txt")"
	grep -q 'above 1 is better than ext4, also where less' "$work.txt" || fail "what a ratio means is not said"
	rm -f "$work.txt"
	nothing_left "mixed load"
fi

# A full log is recovered, and compared; many members.
"$BENCH" mount --workdir "$work" --member-size 32M --rounds 2 --sparse-members 3 --sparse-size 64M --json >"$work.json" ||
	fail "mounting: exit $?"
json 'j["version"] >= 6 and set(j["metrics"]) == {"recovery_s", "recovery_create_s", "mount_sparse_s"}'
json 'all(len(j["metrics"][k]["values"]) == 2 and 0 < j["metrics"][k]["median"] <= j["metrics"][k]["max"]
	for k in ("recovery_s", "recovery_create_s"))'
json 'j["metrics"]["recovery_s"]["operations"] > 30 and j["metrics"]["recovery_create_s"]["operations"] > 1000'
json '"note" in j["metrics"]["mount_sparse_s"] or 1 << 20 < j["metrics"]["mount_sparse_s"]["rss_bytes"] < 256 << 20'
nothing_left "mode mount"
"$BENCH" mount --workdir "$work" --format-version 5 --sparse-members 0 --json >"$work.json" || fail "mounting version 5: exit $?"
json 'j["metrics"]["recovery_s"]["note"] == "this version has no log" and not j["metrics"]["recovery_s"]["values"]'
nothing_left "mode mount of version 5"

# What cannot be made, and an interruption, leave nothing behind either.
exits 1 'placement "nonsense"' "$BENCH" compare --versions 5 --placement nonsense --rounds 1 "${tiny[@]}"
nothing_left "a refused comparison"
"$BENCH" compare --versions 5 --rounds 1000 "${tiny[@]}" >/dev/null 2>&1 &
pid=$!
sleep 2
kill -INT $pid
wait $pid
equal "exit code after an interruption" 3 $?
nothing_left "an interrupted comparison"
rm -f "$work.json"
finish
