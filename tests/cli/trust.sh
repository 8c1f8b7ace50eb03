#!/bin/sh
# SPDX-License-Identifier: MIT
# A directory or file that somebody else could have put there, or could write to, is refused with a
# clear word, and nothing is left behind.
. "$(dirname "$0")/lib.sh"

mkdir "$work/elsewhere"
ln -s "$work/elsewhere" "$root"
status 125 "$usysv" run -- true
says 'symbolic link'
rm "$root"

echo >"$root"
status 125 "$usysv" run -- true
says 'a file is in the place'
rm "$root"

mkdir -m 777 "$root"
status 125 "$usysv" run -- true
says 'writable by others'
status 1 "$usysv" ls
chmod 700 "$root"
ln -s "$work/elsewhere" "$root/linked"
status 125 "$usysv" run -n linked -- true
says 'symbolic link'
rm "$root/linked"
mkdir "$root/open"
chmod 770 "$root/open"
status 125 "$usysv" run -n open -- true
says 'writable by others'
rmdir "$root/open"

mkdir -m 700 "$root/region"
ln -s "$work/elsewhere/file" "$root/region/region"
status 125 "$usysv" run -n region -- true
says 'symbolic link'
rm "$root/region/region"
mkfifo "$root/region/region"
status 125 "$usysv" run -n region -- true
says 'not a regular file'
rm -r "$root/region"
rmdir "$root"

if [ "$(id -u)" -eq 0 ]; then
	mkdir -m 700 "$root"
	chown 65534 "$root"
	status 125 "$usysv" run -- true
	says 'belongs to another user'
	rmdir "$root"
	status 0 "$usysv" run -n owned -- true
	chown 65534 "$root/owned/region"
	status 125 "$usysv" run -n owned -- true
	says 'belongs to another user'
	chown 0 "$root/owned/region"
	status 0 "$usysv" rm owned
	# A program that has become another user is not taken to that user's own namespace.
	if command -v setpriv >/dev/null; then
		chmod 711 "$work"
		chmod 755 "$USYSV_DIR"
		status 0 "$usysv" run -n mine -- true
		USYSV_NAMESPACE=mine USYSV_REGION=mine:$root/mine/region status 1 setpriv \
			--reuid 65534 --clear-groups "$usysv" check
		says 'another user|permission'
		missing "$USYSV_DIR/usysv-65534" || fail 'another user got a directory'
		status 0 "$usysv" rm mine
	fi
fi
nothing_left || fail "something is left in $root"

USYSV_DIR=$work/missing status 125 "$usysv" run -- true
says 'base directory does not exist'
USYSV_DIR=relative status 125 "$usysv" run -- true
says 'absolute'

# A mask that takes rights from the owner.
(umask 0777 && status 0 "$usysv" run -n masked -- true; exit $failures) ||
	failures=$((failures + 1))
status 0 "$usysv" run -n masked -- true
status 0 "$usysv" rm masked

# A directory on a disk: with a warning, for the user chose it.
disk=$(mktemp -d "${TMPDIR:-/tmp}/usysv-disk-XXXXXX")
if [ "$(stat -f -c %T "$disk")" != tmpfs ]; then
	USYSV_DIR=$disk status 0 "$usysv" run -- true && says 'not on a tmpfs'
fi
rmdir "$disk" || fail "something is left in $disk"
