#!/bin/sh
# SPDX-License-Identifier: MIT
# A program that locks its memory finds it locked as on the kernel, and does not fill the file
# system with the region. Called as memlock.sh USYSV USER MEMLOCK.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" -eq 0 ] || skip 'mounting needs root'
unshare -m -i true 2>/dev/null || skip 'no namespaces to be had'
mkdir "$work/small"
cat >"$work/inside" <<'EOF'
usysv=$1 small=$2 program=$3
shift 3
USYSV_DIR=$small
export USYSV_DIR small
mount -t tmpfs -o size=64m locked "$small" || exit 99
"$usysv" run --check -- sh -c '"$@"; echo "status $?"; df -k --output=used "$small" >&2' \
	sh "$program" "$@"
status=$?
umount "$small"
exit $status
EOF

# how HOW KIB WHEN: the same on both; *used: what lies in the file system then, in KiB.
how() {
	unshare -i "$start" "$@" >"$work/kernel" 2>&1
	echo "status $?" >>"$work/kernel"
	status 0 unshare -m -i sh "$work/inside" "$usysv" "$work/small" "$start" "$@"
	cmp -s "$work/kernel" "$work/out" || fail "memlock $*: $(diff "$work/kernel" "$work/out")"
	used=$(tail -n 1 "$work/err")
	[ "${used:-99999}" -lt 8192 ] || fail "memlock $*: $used KiB are in use"
}
for limit in 0 8000; do
	for way in current future both onfault cleared syscall dlsym; do
		how $way $limit between
	done
done
for way in current both onfault; do
	how $way 0 first
done
grep -q '^mapped before: all' "$work/kernel" && fail 'locking on fault makes pages real'
how both 0 between
grep -q '^mapped after: all' "$work/kernel" || fail "locking has no effect: $(cat "$work/kernel")"
how both 100 between # less than it has
grep -q '^mlockall: Cannot' "$work/kernel" || fail "the limit has no effect: $(cat "$work/kernel")"

# Who locks what comes and may not lock much cannot enter a namespace, and says so.
LD_PRELOAD=$(dirname "$usysv")/libusysv-preload.so USYSV_NAMESPACE=late \
	status 0 "$start" both 8000 first
says "cannot use namespace 'late' .*: mlockall.MCL_FUTURE. locks all of it"
grep -q '^semop: Cannot allocate memory' "$work/out" || fail "there is room: $(cat "$work/out")"
sed '1,/^munlockall/d' "$work/out" | grep -q '^semop: done' ||
	fail "it stays out: $(cat "$work/out")"
