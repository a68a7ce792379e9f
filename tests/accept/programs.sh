#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real programs on a real mount: git, sqlite, rsync, tar, fio with verification, a compiler, stressors. Afterwards the pool is
# clean.
. "$(dirname "$0")/functions.sh"
need git sqlite3 rsync tar fio gcc make sha256sum timeout

need_room "$(scaled 6000 900)"
make_pool "$(scaled 3000 400)M" "$(scaled 1500 250)M" "$(scaled 1000 150)M"
other_order
pool_mount
real_tree "$work/tree" "$(scaled 300 15)" "$(scaled 20000 500)" || die "cannot gather a tree from /usr"
export HOME=$work GIT_CONFIG_NOSYSTEM=1
lap

# run WHAT COMMAND...: with a limit
run() {
	local what=$1
	shift
	timeout 1800 "$@" >"$work/out" 2>&1 || fail "$what: exit $?: $(tail -n 8 "$work/out")"
}
cold() {
	pool_umount
	other_order
	pool_mount
}

# -- git
git config --global user.name accept && git config --global user.email accept@localhost
git config --global safe.directory '*' && git config --global gc.autoDetach false
cp -a "$work/tree" "$mnt/git" || fail "cp -a"
rm -rf "$mnt/git/special"
run "git init" git -C "$mnt/git" init -q
run "git add" git -C "$mnt/git" add -A -f
run "git commit" git -C "$mnt/git" commit -q -m all
cold
run "git fsck" git -C "$mnt/git" fsck --strict --no-progress
run "git status" git -C "$mnt/git" diff --exit-code --stat HEAD
run "git clone" git clone -q "$mnt/git" "$mnt/clone"
run "git clone --no-local" git clone -q --no-local "$mnt/git" "$mnt/clone2"
run "git gc" git -C "$mnt/git" gc -q
run "git fsck" git -C "$mnt/git" fsck --strict --no-progress
run "compare the clone" diff -r --no-dereference --exclude=.git "$mnt/clone" "$mnt/clone2"
run "git checkout" sh -c 'cd "$1" && git rm -q -r --cached . && git reset -q --hard HEAD && git status --porcelain' sh "$mnt/clone"
[ ! -s "$work/out" ] || fail "git status after a reset: $(head -n 3 "$work/out")"
# (git has no empty directories)
run "compare with the source" rsync -rlcn --prune-empty-dirs --existing --itemize-changes --exclude=/special "$work/tree/" "$mnt/clone/"
[ ! -s "$work/out" ] || fail "the clone differs from the source: $(head -n 5 "$work/out")"
equal "files in the clone" "$(find "$work/tree" -path "$work/tree/special" -prune -o ! -type d -print | wc -l)" \
	"$(find "$mnt/clone" -path "$mnt/clone/.git" -prune -o ! -type d -print | wc -l)"
rm -rf "$mnt/git" "$mnt/clone" "$mnt/clone2" || fail "rm -rf of the repositories"
lap "git: add, commit, clone, gc, fsck"

# -- sqlite
for mode in delete wal; do
	db=$mnt/$mode.db
	run "sqlite $mode" sqlite3 "$db" "PRAGMA journal_mode=$mode; CREATE TABLE t(id INTEGER PRIMARY KEY, v BLOB, w TEXT);
		CREATE INDEX i ON t(w);"
	for ((i = 0; i < $(scaled 200 25); i++)); do
		printf 'BEGIN; WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<50)
			INSERT INTO t(v, w) SELECT randomblob(200 + x), hex(randomblob(8)) FROM n;
			DELETE FROM t WHERE id %% 7 = 3 AND id < %d; UPDATE t SET w = w || id WHERE id %% 11 = 5; COMMIT;\n' $((i * 20))
	done >"$work/sql"
	run "sqlite $mode: transactions" sqlite3 "$db" ".read $work/sql"
	run "sqlite $mode: rollback" sqlite3 "$db" "BEGIN; DELETE FROM t; ROLLBACK; VACUUM;"
	sqlite3 "$db" "SELECT count(*), sum(length(v)), min(w), max(w) FROM t" >"$work/$mode.before"
done
cold
for mode in delete wal; do
	equal "sqlite $mode: integrity" ok "$(sqlite3 "$mnt/$mode.db" 'PRAGMA integrity_check')"
	sqlite3 "$mnt/$mode.db" "SELECT count(*), sum(length(v)), min(w), max(w) FROM t" | cmp - "$work/$mode.before" ||
		fail "sqlite $mode: other contents after a remount"
done
lap "sqlite: transactions in modes delete and wal, integrity_check"

# -- rsync, the second time with nothing to do
mkdir "$mnt/rsync"
run "rsync" rsync -aHAX "$work/tree/" "$mnt/rsync/"
run "rsync again" rsync -aHAX --itemize-changes "$work/tree/" "$mnt/rsync/"
[ ! -s "$work/out" ] || fail "rsync finds something to do the second time: $(head -n 5 "$work/out")"
cold
run "rsync cold" rsync -aHAX --checksum --delete --itemize-changes "$work/tree/" "$mnt/rsync/"
[ ! -s "$work/out" ] || fail "rsync finds something to do after a remount: $(head -n 5 "$work/out")"
lap "rsync of a tree, again, and by checksum after a remount"

# -- tar, out of the pool and into it
run "tar c" tar -C "$mnt/rsync" --xattrs --acls --numeric-owner --sparse -cf "$mnt/tree.tar" .
mkdir "$mnt/tar"
run "tar x" tar -C "$mnt/tar" --xattrs --xattrs-include='*' --acls --numeric-owner -xpf "$mnt/tree.tar"
run "tar d" tar -C "$mnt/tar" --numeric-owner -df "$mnt/tree.tar"
# sockets do not go into an archive
run "compare what tar extracted" rsync -aHAXn --checksum --itemize-changes --exclude=/special/socket "$work/tree/" "$mnt/tar/"
# (their directory was changed after it got its time)
grep -v '^\.d..t...... special/$' "$work/out" && fail "tar x differs: $(head -n 5 "$work/out")"
rm -rf "$mnt/tar" "$mnt/rsync" "$mnt/tree.tar" || fail "rm -rf of the trees"
lap "tar: archive, extract, compare"

# -- fio: written at random, verified cold
for engine in psync libaio; do
	for direct in 0 1; do
		cat >"$work/fio" <<-END
			[global]
			directory=$mnt
			filename=fio-$engine-$direct
			size=$(scaled 400 32)m
			ioengine=$engine
			iodepth=8
			direct=$direct
			bsrange=4k-128k
			blockalign=4k
			verify=crc32c
			verify_fatal=1
			verify_state_save=0
			randseed=$RANDOM
			[job]
			rw=randwrite
			fsync=64
			end_fsync=1
		END
		run "fio $engine direct=$direct" fio --do_verify=0 "$work/fio"
		cp "$work/fio" "$work/fio-$engine-$direct"
	done
done
# appending and overwriting threads, each in a file of its own
run "fio mixed" fio --name=mixed --directory="$mnt" --size="$(scaled 100 8)m" --numjobs=4 --rw=randrw --rwmixread=30 --bs=8k --verify=crc32c \
	--verify_fatal=1 --verify_state_save=0 --group_reporting --ioengine=psync
# mapped memory
run "fio mmap" fio --name=mapped --directory="$mnt" --size="$(scaled 100 8)m" --rw=randwrite --bs=4k --ioengine=mmap --verify=crc32c --verify_fatal=1 --verify_state_save=0
cold
for job in "$work"/fio-*; do
	run "fio cold verify ${job##*/}" fio --verify_only "$job"
done
rm -f "$mnt"/fio-* "$mnt"/mixed.* "$mnt"/mapped.* || fail "rm of the files of fio"
lap "fio: random writes buffered and direct, mapped, verified after a remount"

# -- a program built in the pool
mkdir "$mnt/build"
for ((i = 0; i < $(scaled 200 30); i++)); do
	printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint f%d(int x) { char b[64]; snprintf(b, sizeof b, "%%d", x + %d); return atoi(b); }\n' $i $i >"$mnt/build/f$i.c"
done
{
	printf 'int main(void) { int s = 0;\n'
	for ((i = 0; i < $(scaled 200 30); i++)); do
		printf '{ int f%d(int); s += f%d(1); }\n' $i $i
	done
	printf 'return s == %d ? 0 : 1; }\n' $(($(scaled 200 30) * ($(scaled 200 30) + 1) / 2))
} >"$mnt/build/main.c"
cat >"$mnt/build/Makefile" <<'END'
objects = $(patsubst %.c,%.o,$(wildcard *.c))
program: libf.a main.o
	$(CC) -o $@ main.o libf.a
libf.a: $(filter-out main.o,$(objects))
	$(AR) rcs $@ $^
%.o: %.c
	$(CC) -O1 -MD -c -o $@ $<
-include *.d
END
run "make" make -C "$mnt/build" -j2
run "the program built" "$mnt/build/program"
run "make again" make -C "$mnt/build" -q program
cold
run "make after a remount" make -C "$mnt/build" -q program
run "the program after a remount" "$mnt/build/program"
touch "$mnt/build/f3.c"
make -C "$mnt/build" -q program >/dev/null 2>&1 && fail "make does not notice a changed source"
run "make of what changed" make -C "$mnt/build"
lap "gcc and make"

# -- stressors
if command -v stress-ng >/dev/null; then
	mkdir "$mnt/stress"
	every=$([ "$percent" -ge 50 ] && echo 1 || echo 4) nr=0
	for stressor in access chmod chown copy-file dentry dir dirdeep dirmany dup fallocate filename flock fstat getdent hdd iomix \
		link mknod open readahead rename seek symlink sync-file touch truncate unlink utime xattr; do
		nr=$((nr + 1))
		[ $((nr % every)) = 0 ] || continue
		stress-ng --help 2>/dev/null | grep -q -- "--$stressor N" || continue
		run "stress-ng $stressor" stress-ng --temp-path "$mnt/stress" --$stressor 2 --timeout "$(scaled 10 1)" --verify \
			--fallocate-bytes 64M --hdd-bytes 64M --copy-file-bytes 128M --iomix-bytes 64M --seek-size 16M --readahead-bytes 64M --sync-file-bytes 16M
	done
	rm -rf "$mnt/stress" || fail "rm -rf of what stressors left"
	lap "stress-ng"
else
	figure "stress-ng is not installed"
fi

pool_umount
pool_check
figure "scrub: $(pool_scrub)"
finish
