#!/bin/sh
# SPDX-License-Identifier: MIT
# The first call of a program without a launcher starts usysvd, unnoticed; usysvd ends, and the
# namespace goes, when the program has ended.
. "$(dirname "$0")/lib.sh"

library=$(dirname "$usysv")/libusysv-preload.so
mkfifo "$work/in"
for mode in plain subreaper threads second; do
	: >"$work/log"
	exec 7<>"$work/in"
	USYSV_NAMESPACE=alone LD_PRELOAD=$library "$start" $mode \
		<"$work/in" >"$work/log" 2>&1 7>&- &
	pid=$!
	started $pid
	until_true 10 grep -q made "$work/log"
	in_office() {
		reaper=$(field alone REAPER)
		[ -n "$reaper" ]
	}
	until_true 10 in_office
	[ "$(cat "/proc/$reaper/comm")" = usysvd ] ||
		fail "the reaper is $(cat "/proc/$reaper/comm")"
	# shellcheck disable=SC2046 # the words are what is wanted
	set -- $(sed 's/.*) //' "/proc/$reaper/stat")
	[ "$2" != $pid ] || fail 'usysvd is a child of the program'
	echo >&7
	wait $pid || fail "$mode: $(cat "$work/log")"
	exec 7>&-
	until_true 20 nothing_left
	until_true 20 gone "$reaper"
done

# Whoever has left its pid namespace for its children makes the first of them itself.
USYSV_NAMESPACE=away LD_PRELOAD=$library "$start" forks-away >"$work/log" 2>&1
away=$?
[ $away -eq 0 ] || [ $away -eq 77 ] || fail "forks-away: status $away: $(cat "$work/log")"
"$usysv" rm away >/dev/null 2>&1

# With objects in it, a namespace that was made on a program's behalf stays.
USYSV_NAMESPACE=alone LD_PRELOAD=$library "$user" hold 0x5 </dev/null >/dev/null
no_reaper() {
	[ -z "$(field alone REAPER)" ]
}
until_true 20 no_reaper
[ "$(field alone SEM)" = 1 ] || fail 'its object has gone'

# usysvd by hand: it ends at once when somebody has the office.
usysvd=$(dirname "$usysv")/usysvd
[ -x "$usysvd" ] || usysvd=
if [ -n "$usysvd" ]; then
	status 0 "$usysvd" --namespace-path "$root/alone/"
	[ "$(field alone SEM)" = 1 ] || fail 'its object has gone'
	status 0 "$usysvd" --namespace-path "$root/none"
	status 1 "$usysvd" --namespace-path nonsense
	status 1 "$usysvd" extra
	status 0 "$usysvd" --help
	status 0 "$usysvd" --version
fi
status 0 "$usysv" rm alone "key:5"
status 0 "$usysv" rm alone
nothing_left || fail "something is left in $root"
