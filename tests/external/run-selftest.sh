#!/bin/bash
# SPDX-License-Identifier: MIT
# run-selftest.sh USYSV PRELOAD DENY: run.sh notices what it is there to notice.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

# expect STATUS TEXT BACKEND: the script on standard input, run on BACKEND, ends with STATUS and
# TEXT
expect() {
	local out status
	{
		echo ". '$here/lib.sh'"
		cat
	} >"$work/planted.sh"
	out=$(EXTERNAL_LIMIT=${limit:-30} EXTERNAL_SETTLE=1 bash "$here/run.sh" "$3" \
		"$work/planted.sh" "$usysv" "$preload" "$deny" 2>&1)
	status=$?
	if [ $status = 77 ] && [ "$1" != 77 ]; then
		echo "$out"
		exit 77
	fi
	if [ "$status" != "$1" ] || ! grep -q "$2" <<<"$out"; then
		echo "FAIL: expected status $1 and '$2', got $status and: $out"
		failures=$((failures + 1))
	fi
}
usysv=$1
preload=$2
deny=$3

expect 0 'PASS planted on kernel' kernel <<<'pass'
expect 77 'SKIP planted on kernel: because' kernel <<<'skip because'
expect 1 'FAIL planted on kernel: because' kernel <<<'fail because'
expect 77 'needs no-such-program' kernel <<<'need no-such-program'
expect 1 'left over.*kernel' kernel <<<'ipcmk -S 1 >/dev/null; pass'
expect 1 'kernel sem: ' kernel <<<'ipcmk -S 1 >/dev/null; pass'
expect 1 'file: /dev/shm/left' kernel <<<'touch /dev/shm/left; pass'
expect 1 'process: .* sleep 60' kernel <<<'setsid sleep 60 >/dev/null 2>&1 & pass'
limit=8 expect 124 'not finished within' kernel <<<'sleep 60; pass'
expect 0 'PASS planted on usysv' usysv \
	<<<'need_family sem; [ "$(sem_sets | wc -l)" = 0 ] && pass; fail sets'
# around the library: the kernel sees it on usysv, and refuses it on no-kernel
around='env -i USYSV_INHERIT=0 PATH="$PATH" bash -c "LD_PRELOAD= exec ipcmk -S 1" >/dev/null'
expect 1 'kernel sem: ' usysv <<<"unset LD_PRELOAD; export USYSV_INHERIT=0; $around; pass"
expect 1 'FAIL planted on no-kernel: refused' no-kernel \
	<<<"unset LD_PRELOAD; $around || fail refused; pass"
[ $failures = 0 ] && echo "PASS"
exit $((failures > 0))
