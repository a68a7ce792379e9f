#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dpkg in a chroot that is an overlay with its upper and work directories in the pool, and lower layers in it too, as containers have them:
# packages installed, upgraded and purged, with the same result as in a plain directory; cold; and with the daemon killed in between.
if [ -z "${POOLFS_IN_NAMESPACE:-}" ] && [ "$(id -u)" = 0 ] && command -v unshare >/dev/null; then
	POOLFS_IN_NAMESPACE=1 exec unshare -m --propagation private bash "$0" "$@"
fi
. "$(dirname "$0")/functions.sh"
need unshare chroot timeout python3 dpkg dpkg-deb dpkg-divert dpkg-statoverride update-alternatives ldd
grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null || skip "this kernel has no overlay filesystem"
need_room "$(scaled 12000 1200)"
# Pools that others have mounted are not to live on in this namespace: their daemons would not end before it.
awk '$0 ~ / fuse.poolfs / { print $5 }' /proc/self/mountinfo | tac | while read -r dir; do
	umount -i -l "$dir"
done

# -- what is installed in what

# new_root DIR: the programs of this machine that dpkg and the scripts of packages call, with their libraries; no package is installed there
new_root() {
	local root=$1 program path library
	mkdir -p "$root"/{dev,etc,opt,tmp,root,usr/bin,usr/lib,usr/share,var/log,var/lib/dpkg/{info,updates,triggers,alternatives,parts}}
	chmod 1777 "$root/tmp"
	for program in bin sbin lib lib64; do
		ln -s "usr/$program" "$root/$program"
	done
	mkdir -p "$root/usr/sbin" "$root/usr/lib64"
	mknod -m 666 "$root/dev/null" c 1 3
	for program in sh bash dpkg dpkg-deb dpkg-query dpkg-divert dpkg-statoverride dpkg-split dpkg-trigger dpkg-maintscript-helper \
		update-alternatives start-stop-daemon ldconfig tar gzip diff cat chmod chown cp env find grep head ln ls mkdir mv rm rmdir sed sort \
		touch true xargs basename dirname readlink; do
		path=$(PATH=/usr/sbin:/usr/bin:/sbin:/bin type -P "$program") || skip "there is no $program here"
		cp -L "$path" "$root/usr/bin/$program" || die "cp $path"
		for library in $(ldd "$path" 2>/dev/null | grep -o '/[^ ]*'); do
			[ -e "$root$library" ] || { mkdir -p "$root${library%/*}" && cp -L "$library" "$root$library"; } || die "cp $library"
		done
	done
	cp -r /usr/share/dpkg "$root/usr/share/"
	printf 'root:x:0:0:root:/root:/bin/sh\n' >"$root/etc/passwd"
	printf 'root:x:0:\n' >"$root/etc/group"
	: >"$root/var/lib/dpkg/status"
}

# packages.py DIRECTORY COUNT: the trees of two packages in two versions, of COUNT files each and of every kind of file. The second one of each
# has files and directories removed, renamed, turned into something else.
cat >"$work/packages.py" <<'END'
import hashlib, os, random, shutil, stat, subprocess, sys
top, count = sys.argv[1], int(sys.argv[2])

def write(path, data, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as f:
        f.write(data)
    os.chmod(path, mode)

def tree(name, version, root):
    lib, etc = f'{root}/usr/lib/{name}', f'{root}/etc/{name}'
    for i in range(count):
        r = random.Random(f'{name} {i} {version if i % 3 == 0 else 0}')
        data = r.randbytes(int(2 ** r.uniform(0, 17)))
        directory, file = i % 12, f'file{i}'
        if version == 2:
            if i % 11 == 0 or directory == 4:
                continue
            if i % 7 == 0:
                file = f'renamed{i}'
            if directory == 3:
                directory = '3 under another name'
        write(f'{lib}/d{directory}/{file}', data, r.choice((0o644, 0o755, 0o600, 0o444)))
    write(f'{lib}/large', random.Random(f'{name} {version}').randbytes(count * 5000))
    for link in ('a', 'b', 'c') if version == 1 else ('a', 'b', 'd', 'e'):
        write(f'{lib}/hard/first', b'hard link %d' % version)
        os.link(f'{lib}/hard/first', f'{lib}/hard/{link}')
    os.symlink('no such file', f'{lib}/dangling')
    os.symlink(f'/usr/lib/{name}/d1', f'{lib}/to-directory')
    os.symlink(f'd{version}/..', f'{lib}/changes')
    write(f'{lib}/set-uid', b'#!' * 1000, 0o4755)
    write(f'{lib}/set-gid', b'#!' * 1000, 0o2751)
    os.chown(f'{lib}/set-gid', 12345, 54321)
    os.chmod(f'{lib}/set-gid', 0o2751)
    for mode in 0o1777, 0o2770, 0o700:
        os.mkdir(f'{lib}/empty-{mode:o}')
        os.chmod(f'{lib}/empty-{mode:o}', mode)
    os.mkfifo(f'{lib}/fifo')
    os.mknod(f'{lib}/null', stat.S_IFCHR | 0o666, os.makedev(1, 3))
    write(f'{lib}/{"n" * 90}/{"m" * 90}', b'long')
    write(f'{lib}/\u00e4 \u4e2d/x y', b'words')
    write(f'{lib}/{"deep/" * 40}end', b'deep')
    # one becomes the other
    if version == 1:
        write(f'{lib}/file-or-directory', b'file')
        write(f'{lib}/file-or-link', b'file')
        os.symlink('large', f'{lib}/link-or-file')
        write(f'{lib}/doc/x', b'a directory')
    else:
        write(f'{lib}/file-or-directory/x', b'directory')
        os.symlink('large', f'{lib}/file-or-link')
        write(f'{lib}/link-or-file', b'file')
        write(f'{lib}/docs/x', b'a directory')
        os.symlink('docs', f'{lib}/doc')
    for conf in ('same', 'new', 'mine') + (('old',) if version == 1 else ('more',)):
        write(f'{etc}/{conf}.conf', f'{name} {conf} {version if conf != "same" else ""}\n'.encode())
    if name == 'pool-extra':
        write(f'{root}/usr/lib/pool-base/large', b'in the place of what was diverted')

def control(name, version, root):
    debian = f'{root}/DEBIAN'
    os.makedirs(debian)
    sums, conffiles = '', ''
    for where, dirs, files in os.walk(root):
        dirs[:] = sorted(d for d in dirs if d != 'DEBIAN')
        for file in sorted(files):
            path = os.path.join(where, file)
            inside = os.path.relpath(path, root)
            if not stat.S_ISREG(os.lstat(path).st_mode):
                continue
            if inside.startswith('etc/'):
                conffiles += f'/{inside}\n'
            else:
                with open(path, 'rb') as f:
                    sums += f'{hashlib.md5(f.read()).hexdigest()}  {inside}\n'
    write(f'{debian}/md5sums', sums.encode())
    write(f'{debian}/conffiles', conffiles.encode())
    write(f'{debian}/control', f'Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\n'
          f'Description: {name} for a test\n'.encode())
    helper = f'dpkg-maintscript-helper dir_to_symlink /usr/lib/{name}/doc docs 1~ -- "$@"\n' if version == 2 else ''
    divert = f'--package {name} --rename --divert /usr/lib/pool-base/large.diverted'
    state = f'/var/lib/{name}'
    special = {
        'postinst': f'mkdir -p {state}/sub\nseq=0\nwhile [ $seq -lt 20 ]; do seq=$((seq + 1)); echo {version} $seq >{state}/sub/$seq; done\n'
                    f'mv -T {state}/sub {state}/v{version} 2>/dev/null || rm -r {state}/sub\n'
                    f'ln -sfn v{version} {state}/current\n'
                    f'update-alternatives --quiet --install /usr/bin/pool-tool pool-tool /usr/lib/{name}/set-uid {len(name)}\n',
        'prerm': f'[ "$1" != remove ] || update-alternatives --quiet --remove pool-tool /usr/lib/{name}/set-uid\n',
        'postrm': f'[ "$1" != purge ] || rm -r {state}\n',
    }
    if name == 'pool-extra':
        special['preinst'] = f'[ "$1" != install ] || dpkg-divert --quiet {divert} --add /usr/lib/pool-base/large\n'
        special['postrm'] += f'[ "$1" != remove ] || dpkg-divert --quiet {divert} --remove /usr/lib/pool-base/large\n'
    for script in 'preinst', 'postinst', 'prerm', 'postrm':
        write(f'{debian}/{script}', (f'#!/bin/sh\nset -e\necho "{name} {version} {script} $*" >>/var/log/scripts\n' +
              (helper if script != 'prerm' else '') + special.get(script, '')).encode(), 0o755)

for name in 'pool-base', 'pool-extra':
    for version in 1, 2:
        root = f'{top}/{name}_{version}'
        tree(name, version, root)
        control(name, version, root)
        for where, dirs, files in os.walk(root, topdown=False):
            for path in [os.path.join(where, file) for file in files] + [where]:
                os.utime(path, (10**9 + version, 10**9 + version), follow_symlinks=False)
        subprocess.run(['dpkg-deb', '-Zgzip', '-z1', '--build', root, f'{root}.deb'], check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(root)
END

# manifest.py ROOT: everything below it. Not in it: what is new with each run, and when directories were changed.
cat >"$work/manifest.py" <<'END'
import hashlib, os, stat, sys
root = os.fsencode(sys.argv[1])
raw = len(sys.argv) > 2
first = {}
for where, dirs, files in os.walk(root):
    dirs.sort()
    for name in sorted(dirs + files):
        path = os.path.join(where, name)
        inside = os.path.relpath(path, root)
        if not raw and (inside.startswith((b'var/lib/dpkg/lock', b'var/lib/dpkg/triggers/Lock', b'var/log/', b'packages', b'var/lib/dpkg/updates/')) or
                        inside.endswith(b'-old') and inside.startswith(b'var/lib/dpkg')):
            continue
        st = os.lstat(path)
        line = [repr(inside)[2:-1], oct(st.st_mode), st.st_uid, st.st_gid]
        if stat.S_ISREG(st.st_mode):
            with open(path, 'rb') as f:
                line += [st.st_size, hashlib.sha256(f.read()).hexdigest()]
        if stat.S_ISLNK(st.st_mode):
            line.append(os.fsencode(os.readlink(path)))
        if stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
            line.append(st.st_rdev)
        if not stat.S_ISDIR(st.st_mode):
            if raw or inside.startswith((b'usr/', b'opt/')) and not (stat.S_ISLNK(st.st_mode) and b'pool-tool' in inside):
                line.append(st.st_mtime_ns)
            if st.st_nlink > 1:
                line.append(b'links: %d, first: %s' % (st.st_nlink, first.setdefault((st.st_dev, st.st_ino), inside)))
        for name in sorted(os.listxattr(path, follow_symlinks=False)):
            line.append(f'{name}={os.getxattr(path, name, follow_symlinks=False)}')
        print(*line)
END

# enter ROOT COMMAND...: in the chroot
enter() {
	local root=$1
	shift
	timeout 900 env -i PATH=/usr/sbin:/usr/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive chroot "$root" "$@" </dev/null
}
# do_step STEP ROOT: what happens there in one layer
do_step() {
	local dpkg="dpkg --force-confold"
	# what is not on the way to the pool need not wait for its disk
	case $2 in "$work"/root | "$work"/plain) dpkg="$dpkg --force-unsafe-io" ;; esac
	case $1 in
	base)
		enter "$2" $dpkg -i /packages/pool-base_1.deb
		;;
	upgrade)
		enter "$2" sh -e -c "
			for name in same new mine; do echo of the administrator >>/etc/pool-base/\$name.conf; done
			dpkg-statoverride --add --update '#12345' '#54321' 2710 /usr/lib/pool-base/d1/file1
			$dpkg -i /packages/pool-base_2.deb /packages/pool-extra_1.deb
			touch -d @1000000007 /usr/lib/pool-base/d1/file1"
		;;
	change)
		# the administrator's: below what dpkg knows, of a lower layer and of this one
		enter "$2" sh -e -c "
			cd /usr/lib/pool-base
			mv d5 /opt/d5
			rm -r d6; mkdir d6; echo new >d6/new
			mv d7 /opt/d7; mv d8 d7; mv /opt/d7 d8
			chmod 700 d0/file12
			cp -a d9 /opt/d9; rm -r d9; mv /opt/d9 d9
			touch -d @1000000009 d6/new
			$dpkg -i /packages/pool-extra_2.deb"
		;;
	purge)
		enter "$2" sh -e -c "
			$dpkg --remove pool-extra
			$dpkg --purge pool-extra
			$dpkg --purge pool-base
			rm -r /opt/d5"
		;;
	esac >"$work/out" 2>&1 || die "${variant:-a plain directory}, $1: exit $?: $(tail -n 5 "$work/out")"
}
# note ROOT NAME: its manifest, what dpkg finds changed in it and what the scripts of the packages said, as $work/NAME.*
note() {
	python3 "$work/manifest.py" "$1" >"$work/$2.manifest" || die "${variant:-a plain directory}: a manifest: $1"
	enter "$1" sh -c 'dpkg -l; dpkg --verify; dpkg --audit; dpkg-divert --list; dpkg-statoverride --list; update-alternatives --query pool-tool' \
		>"$work/$2.dpkg" 2>&1
	[ "${3:-}" = killed ] || cp "$1/var/log/scripts" "$work/$2.scripts"
}
# same WHEN STEP ROOT [killed]: it is as a plain directory was after that step
same() {
	local file
	rm -f "$work"/is.*
	note "$3" is "${4:-}"
	for file in "$work"/is.*; do
		cmp -s "$file" "$work/$2.${file##*.}" ||
			fail "$variant, $1: another ${file##*.} than in a plain directory: $(diff "$work/$2.${file##*.}" "$file" | cut -c1-300 | head -n 6)"
	done
}

# -- layers

merged=$work/merged
mkdir "$merged"
# layer NAME LOWER...: an overlay with that directory of the pool on top, and names of the pool or paths below it
layer() {
	local lower=() directory
	for directory in "${@:2}"; do
		case $directory in /*) lower+=("$directory") ;; *) lower+=("$mnt/$directory/upper") ;; esac
	done
	mkdir -p "$mnt/$1/upper" "$mnt/$1/work"
	mount -t overlay -o "lowerdir=$(IFS=: && echo "${lower[*]}"),upperdir=$mnt/$1/upper,workdir=$mnt/$1/work,$features" overlay "$merged" ||
		die "$variant: the overlay cannot be mounted: $(dmesg 2>/dev/null | tail -n 2)"
	mount --bind "$work/packages" "$merged/packages" || die "mount --bind"
}
unlayer() {
	umount "$merged/packages" && umount "$merged" || die "$variant: the overlay cannot be unmounted"
}
# recooled LAYER LOWER...: the same one, with nothing of it in memory
recooled() {
	unlayer
	python3 "$work/manifest.py" "$mnt/$1/upper" raw >"$work/before"
	cold
	python3 "$work/manifest.py" "$mnt/$1/upper" raw >"$work/after"
	cmp -s "$work/before" "$work/after" || fail "$variant, cold: the upper directory differs: $(diff "$work/before" "$work/after" | head -n 6)"
	layer "$@"
}
# has PATTERN WHAT: the upper directory of which recooled has told last
has() {
	grep -qE "$1" "$work/after" || fail "$variant: the upper directory has no $2: nothing is tested of them"
}

killed_overlay() {
	wait "$installing"
	installed=$?
	umount -l "$merged/packages"
	umount -l "$merged"
}

chroot_() {
	local round files
	# what an overlay can do with a filesystem that has everything, and what it does with less. Not index=on, which keeps hard links
	# together: a filesystem of FUSE has no UUID that the kernel knows, and without that overlayfs switches it off.
	features=redirect_dir=on,index=off,metacopy=on
	[[ $variant == *file ]] || features=redirect_dir=off,index=off,metacopy=off

	layer one "$work/root"
	do_step upgrade "$merged"
	same "installed" upgrade "$merged"
	recooled one "$work/root"
	same "installed, cold" upgrade "$merged"
	has ' 0o20000 0 0 0 ' whiteouts
	has "trusted.overlay.opaque=b'y'" "opaque directories"
	unlayer
	layer two one "$work/root"
	do_step change "$merged"
	same "changed" change "$merged"
	recooled two one "$work/root"
	same "changed, cold" change "$merged"
	[[ $variant != *file ]] || has "trusted.overlay.redirect=" redirects
	do_step purge "$merged"
	same "purged" purge "$merged"
	recooled two one "$work/root"
	same "purged, cold" purge "$merged"
	unlayer
	lap "$variant: installed, changed, upgraded, purged"

	# each time the daemon is killed when a bit more has been unpacked
	layer killed "$work/root"
	enter "$merged" sh -c 'for name in same new mine; do echo of the administrator >>/etc/pool-base/$name.conf; done
		dpkg-statoverride --add --update "#12345" "#54321" 2710 /usr/lib/pool-base/d1/file1' || die "$variant: dpkg-statoverride"
	sync -f "$merged" && "$POOLFS" sync "$mnt" || die "$variant: poolfs sync"
	for ((round = 1; round <= $(sized 12 1); round++)); do
		enter "$merged" dpkg --force-confold -i /packages/pool-base_2.deb /packages/pool-extra_1.deb >"$work/install" 2>&1 &
		installing=$!
		files=$((count * (round % 4) / 4))
		for _ in $(seq 2000); do
			[ "$(find "$mnt/killed/upper/usr/lib" -name 'file*' 2>/dev/null | wc -l)" -lt "$files" ] || break
			kill -0 "$installing" 2>/dev/null || break
			sleep 0.01
		done
		kill_daemon killed_overlay
		[ "$installed" != 0 ] || figure "$variant: dpkg was done before SIGKILL of the daemon"
		layer killed "$work/root"
		enter "$merged" dpkg --force-confold --configure -a >"$work/out" 2>&1 || figure "$variant: dpkg --configure -a: $(tail -n 1 "$work/out")"
	done
	enter "$merged" sh -e -c 'dpkg --force-confold -i /packages/pool-base_2.deb /packages/pool-extra_1.deb
		touch -d @1000000007 /usr/lib/pool-base/d1/file1' >"$work/out" 2>&1 ||
		fail "$variant: dpkg after SIGKILL of the daemon: $(tail -n 5 "$work/out")"
	same "installed after SIGKILL of the daemon" upgrade "$merged" killed
	recooled killed "$work/root"
	same "installed after SIGKILL of the daemon, cold" upgrade "$merged" killed
	unlayer
	lap "$variant: SIGKILL of the daemon while dpkg is at work"
	rm -r "$mnt/one" "$mnt/two" "$mnt/killed" || fail "$variant: rm -r of the layers"
}

count=$(scaled 4000 150)
mkdir "$work/packages"
python3 "$work/packages.py" "$work/packages" "$count" || die "the packages cannot be made"
new_root "$work/root"
mkdir "$work/root/packages"
mount --bind "$work/packages" "$work/root/packages" || die "mount --bind"
do_step base "$work/root"
umount "$work/root/packages"
cp -a "$work/root" "$work/plain" || die "cp -a"
mount --bind "$work/packages" "$work/plain/packages" || die "mount --bind"
for step in upgrade change purge; do
	do_step "$step" "$work/plain"
	note "$work/plain" "$step"
done
umount "$work/plain/packages"
lap "two packages of $count files in a plain directory"
over_pools chroot_ "$(scaled 4000 600)"
finish
