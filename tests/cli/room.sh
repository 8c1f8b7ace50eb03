#!/bin/sh
# SPDX-License-Identifier: MIT
# Segments that do not fit into the file system together are refused by shmget, also when they are
# made at the same moment: what shmget grants can be written. And they leave room for those who come
# later to use the sets and queues that are there.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" -eq 0 ] || skip 'mounting needs root'
unshare -m true 2>/dev/null || skip 'no mount namespace to be had'
mkdir "$work/small"
cat >"$work/inside" <<'EOF'
usysv=$1 small=$2 user=$3
shift 3
USYSV_DIR=$small
export USYSV_DIR
mount -t tmpfs -o size=16m room "$small" || exit 99
"$usysv" run --check -- "$user" "$@"
status=$?
umount "$small"
exit $status
EOF
status 0 unshare -m sh "$work/inside" "$usysv" "$work/small" "$user" room 9000000
status 0 unshare -m sh "$work/inside" "$usysv" "$work/small" "$user" fill 100
