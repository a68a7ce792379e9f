# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the tests of applications share: pools of three unequal members, in both placements, with a second client that is at work all the time.
. "$(dirname "${BASH_SOURCE[0]}")/../accept/functions.sh"

# over_pools FUNCTION MIB: FUNCTION runs on a fresh mounted pool of about MIB, of the newest version; and small, of version 5, whose fsync is a
# checkpoint; in full each in both placements. Within it $variant says which, and $share is the percentage of its full size that it should have.
over_pools() {
	local pools=("$newest file" "5 stripe") version placement
	[ "$percent" -lt 100 ] || pools+=("$newest stripe" "5 file")
	for variant in "${pools[@]}"; do
		read -r version placement <<<"$variant"
		share=$percent
		[ "$version" = "$newest" ] || share=2
		variant="version $version, placement $placement"
		mkfs_options=(--format-version "$version" --placement "$placement")
		make_pool "$(($2 / 2))M" "$(($2 / 3))M" "$(($2 / 5))M"
		pool_mount
		second_client_begins
		"$1"
		second_client_ends
		pool_umount
		pool_check
	done
}
# sized FULL [LEAST]: for the pool at hand
sized() {
	local percent=$share
	scaled "$@"
}

# A database server and its clients do not run as root: with "${as_db[@]}" before a command. run_as_db USER: as that user, if there is one.
run_as_db() {
	[ "$(id -u)" = 0 ] || skip "the server runs as another user, which needs root"
	db_user=$(id -u "$1" 2>/dev/null || echo 65534)
	chmod 711 "$work"
	mkdir "$work/run" && chown "$db_user" "$work/run"
	as_db=(setpriv --reuid="$db_user" --regid="$db_user" --clear-groups -- env HOME="$work/run" LC_ALL=C)
}

# Somebody else makes, reads, syncs, renames and removes files beside the application, and tells when what he reads is not what he wrote.
second_client_begins() {
	[ -d "$mnt/beside" ] || mkdir "$mnt/beside"
	python3 - "$mnt/beside" <<-'END' >"$work/beside" 2>&1 &
		import os, random, sys
		os.chdir(sys.argv[1])
		try:
		    for i in range(1 << 30):
		        seed = random.randrange(1 << 30)
		        data = random.Random(seed).randbytes(random.randrange(200000))
		        name = f'f{i % 50}'
		        with open('new', 'wb') as f:
		            f.write(data)
		            if i % 4 == 0:
		                os.fsync(f.fileno())
		        os.rename('new', name)
		        with open(name, 'rb') as f:
		            if f.read() != data:
		                print(f'{name}, seed {seed}: other bytes than written'); break
		        if i % 7 == 0:
		            os.unlink(name)
		except OSError as e:
		    print(e)
	END
	second_client=$!
}
second_client_ends() {
	kill "$second_client" 2>/dev/null && wait "$second_client" 2>/dev/null
	[ ! -s "$work/beside" ] || fail "$variant: the second client: $(head -n 3 "$work/beside")"
}

# The pool is unmounted and mounted again by another member: nothing of it is in memory.
cold() {
	second_client_ends
	pool_umount
	other_order
	pool_mount
	second_client_begins
}
# kill_daemon COMMAND...: the daemon is killed while everybody is at work, the command ends who has files open in the pool, which is mounted again.
kill_daemon() {
	pool_kill
	"$@"
	wait "$second_client" 2>/dev/null
	umount -l -i "$mnt" 2>/dev/null
	mount_again
	second_client_begins
}
