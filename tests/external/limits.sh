#!/bin/bash
# SPDX-License-Identifier: MIT
# The ways in which programs read and set limits in /proc/sys/kernel. Each sets another value and
# says so when a value is refused.
. "$(dirname "$0")/lib.sh"
need_family msg
file=/proc/sys/kernel/msgmax
(echo 8192 >$file) 2>/dev/null || skip "limits cannot be changed here"
next=1000
done=

# sets NAME COMMAND...: with the arguments FILE VALUE added, it writes the value.
sets() {
	local name=$1
	shift
	command -v "$1" >/dev/null || return 0
	next=$((next + 1))
	"$@" $file $next >out 2>&1 || fail "$name: status $?: $(cat out)"
	[ "$(cat $file)" = $next ] || fail "$name: $next was written, there is $(cat $file)"
	! "$@" $file none >out 2>&1 || fail "$name: a bad value was taken"
	[ "$(cat $file)" = $next ] || fail "$name: a bad value was taken: $(cat $file)"
	done="$done $name"
}

for shell in bash dash busybox; do
	option=-c
	[ $shell != busybox ] || option='sh -c'
	# shellcheck disable=SC2086,SC2016  # words; expanded by that shell
	{
		sets $shell $shell $option 'echo "$2" >"$1"' $shell
		sets $shell-printf $shell $option 'printf %s "$2" >>"$1"' $shell
		sets $shell-descriptor $shell $option 'exec 3>"$1" && echo "$2" >&3' $shell
		sets $shell-program $shell $option 'env echo "$2" >"$1"' $shell
		sets $shell-block $shell $option '{ :; env printf "%s\n" "$2"; } >"$1"' $shell
	}
done
# shellcheck disable=SC2016
sets tee bash -c 'set -o pipefail; echo "$2" | tee "$1"' tee
# shellcheck disable=SC2016
sets sysctl bash -c 'sysctl -q -w kernel.msgmax="$2"' sysctl
sets python /usr/bin/python3 -c 'import sys
with open(sys.argv[1], "w") as f: f.write(sys.argv[2] + "\n")'
sets python-child /usr/bin/python3 -c 'import subprocess, sys
with open(sys.argv[1], "w") as f: subprocess.run(["/bin/echo", sys.argv[2]], stdout=f, check=True)'
# shellcheck disable=SC2016
sets perl perl -e 'open my $f, ">", $ARGV[0] or die; print $f $ARGV[1]; close $f or die "$!\n"'
# shellcheck disable=SC2016
sets dd bash -c 'echo "$2" | dd of="$1" status=none' dd
! command -v sysctl >/dev/null || [ "$(sysctl -n kernel.msgmax)" = "$(cat $file)" ] ||
	fail "sysctl -n"
echo "3000 40000 50 60" >/proc/sys/kernel/sem || fail "kernel.sem"
[ "$(tr '\t' ' ' </proc/sys/kernel/sem)" = "3000 40000 50 60" ] ||
	fail "$(cat /proc/sys/kernel/sem)"
pass "set by$done"
