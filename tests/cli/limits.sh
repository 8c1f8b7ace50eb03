#!/bin/sh
# SPDX-License-Identifier: MIT
# --limit sets the limits of a namespace, also of one that exists.
. "$(dirname "$0")/lib.sh"

status 0 "$usysv" run -l semmsl=11 -l semmns=22 -l semopm=33 --limit semmni=44 -- "$user" limits
[ "$(cat "$work/out")" = '11 22 33 44' ] || fail "limits are $(cat "$work/out")"
status 0 "$usysv" run -n kept -l semmsl=0x10 -- "$user" limits
status 0 "$usysv" run -n kept -l semmns=5 -- "$user" limits
case $(cat "$work/out") in
'16 5 '*) ;;
*) fail "limits of an existing namespace are $(cat "$work/out")" ;;
esac
status 0 "$usysv" rm kept
for bad in semmni=32769 msgmni=32769 shmmni=99999 semmsl=2147483648 semmsl=-1 semmsl= semmsl \
	semmsl=1x none=1 =1 shmmax=18446744073709551616; do
	status 125 "$usysv" run --limit $bad -- true
	says "limit '$bad'"
done
status 0 "$usysv" run -l shmmax=18446744073709551615 -l msgmni=32768 -- true
nothing_left || fail "something is left in $root"
