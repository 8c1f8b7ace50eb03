#!/bin/sh
# SPDX-License-Identifier: MIT
# Claims that nobody has made, and one that somebody has (claimed.c). Called as
# claimed.sh USYSV CLAIMED.
. "$(dirname "$0")/../cli/lib.sh"

for what in lock undo stopped; do
	timeout -s KILL 60 "$usysv" run --check -- "$user" $what \
		>"$work/out" 2>"$work/err" </dev/null
	got=$?
	if [ $got -ne 0 ]; then
		fail "$what: status $got"
		cat "$work/out" "$work/err"
	fi
	if grep -q 'is damaged' "$work/err"; then said=yes; else said=no; fi
	case $what,$said in
	lock,no | undo,no) fail "$what: the damage is not reported" ;;
	stopped,yes) fail "$what: a true claim is taken for damage" ;;
	esac
	nothing_left || fail "$what: something is left in $root"
done
