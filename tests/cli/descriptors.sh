#!/bin/sh
# SPDX-License-Identifier: MIT
# Few descriptors: `usysv run` works or says that they are too few, and leaves nothing behind.
. "$(dirname "$0")/lib.sh"

# The program's limit is the one that was set, not what the launcher needs for itself.
# shellcheck disable=SC2016
echo 'ulimit -S -n' >"$work/inside"
for n in 3 4 5 6 7 8 9 10 12 14 16 18 20 22 24 30; do
	# The hard limit: it cannot be passed over.
	# shellcheck disable=SC3045
	(ulimit -n $n && "$usysv" run -- true) >"$work/out" 2>"$work/err" </dev/null
	got=$?
	case $got in
	0) ;;
	125) grep -q 'too few files may be open' "$work/err" || fail "$n: $(cat "$work/err")" ;;
	127) [ $n -lt 5 ] || fail "$n: $(cat "$work/err")" ;; # the loader's
	*) fail "$n: status $got: $(cat "$work/err")" ;;
	esac
	nothing_left || fail "$n: something is left in $root"
	[ $n -lt 30 ] || [ $got -eq 0 ] || fail "30 descriptors are not enough"

	# The soft limit: the launcher passes over it. A shell needs some itself.
	[ $n -ge 12 ] || continue
	# shellcheck disable=SC3045
	(ulimit -S -n $n && "$usysv" run -- sh "$work/inside") >"$work/out" 2>"$work/err" </dev/null
	got=$?
	[ $got -eq 0 ] || fail "soft $n: status $got: $(cat "$work/err")"
	grep -qx $n "$work/out" || fail "soft $n: the program has $(cat "$work/out")"
	nothing_left || fail "soft $n: something is left in $root"
done
