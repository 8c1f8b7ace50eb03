#!/bin/sh
# SPDX-License-Identifier: MIT
# What shmat and shmdt leave alone (detach.c). Called as detach.sh USYSV DETACH.
. "$(dirname "$0")/../cli/lib.sh"

for what in larger-at-first larger-later no-proc other-file other-file-second no-maps; do
	timeout -s KILL 60 "$usysv" run -- "$user" $what >"$work/out" 2>"$work/err" </dev/null
	got=$?
	[ $got -eq 77 ] && skip 'seccomp cannot be had here'
	if [ $got -ne 0 ]; then
		fail "$what: status $got"
		cat "$work/out" "$work/err"
	fi
	case $what in
	larger-*)
		grep -q 'is damaged' "$work/err" || fail "$what: the damage is not reported"
		;;
	esac
	nothing_left || fail "$what: something is left in $root"
done
