#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# poolfs-bench compare: pools of two versions and ext4, made, mounted, measured and taken away again.
# shellcheck source=tests/mount/functions.sh
. "$(dirname "${BASH_SOURCE[0]}")/functions.sh"
BENCH=${BENCH:-$builddir/poolfs-bench}
need "$BENCH"

tiny=(--size 4M --ops 50 --files 120 --workdir "$work")
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

"$BENCH" compare --versions 4,5 --rounds 5 "${tiny[@]}" --members 2 --placement stripe --json >"$work.json" ||
	fail "comparing two versions: exit $?"
json 'j["schema"] == 1 and j["rounds"] == 5 and not j["loop_devices"]'
json '[c["name"] for c in j["metrics"][0]["candidates"]] == ["v4", "v5"]'
json 'len(j["metrics"]) == 22'
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
fi

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
