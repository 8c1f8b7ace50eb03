#!/bin/sh
# SPDX-License-Identifier: MIT
# A vfork child killed in the middle of the library (vfork_killed.c). Called as
# vfork_killed.sh USYSV VFORK-KILLED.
. "$(dirname "$0")/../cli/lib.sh"

last=$(($("$user") - 1))
killed=0
for n in $(seq 0 $last); do
	# By force: while it waits for a lock, all signals are blocked.
	timeout -s KILL 20 "$usysv" run --check -- "$user" "$n" \
		>"$work/out" 2>"$work/err" </dev/null
	got=$?
	[ $got -eq 77 ] && skip 'seccomp cannot be had here'
	if [ $got -ne 0 ]; then
		fail "case $n: status $got"
		cat "$work/out" "$work/err"
	fi
	grep -q killed "$work/out" && killed=$((killed + 1))
	nothing_left || fail "case $n: something is left in $root"
done
echo "$((last + 1)) cases, in $killed of them the child was killed"
[ $killed -ge 8 ] || fail 'hardly a child was killed'
