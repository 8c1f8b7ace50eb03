#!/bin/sh
# SPDX-License-Identifier: MIT
# A full file system is an error with a name, not SIGBUS, and leaves nothing behind.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" -eq 0 ] || skip 'mounting needs root'
unshare -m true 2>/dev/null || skip 'no mount namespace to be had'
mkdir "$work/small"
cat >"$work/inside" <<'EOF'
usysv=$1 small=$2
USYSV_DIR=$small
export USYSV_DIR
mount -t tmpfs -o "size=$3,nr_inodes=$4" full "$small" || exit 99
"$usysv" run -- true
status=$?
echo "left: $(ls -A "$small")"
umount "$small"
exit $status
EOF
for options in '16k 100' '1m 2' '1m 3'; do
	# shellcheck disable=SC2086
	status 125 unshare -m sh "$work/inside" "$usysv" "$work/small" $options
	says 'file system is full'
	grep -qx 'left: ' "$work/out" || fail "with $options: $(cat "$work/out")"
done
status 0 unshare -m sh "$work/inside" "$usysv" "$work/small" 1m 100
