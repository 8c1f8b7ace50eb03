#!/bin/sh
# SPDX-License-Identifier: MIT
# Signals sent to usysv run reach the program; its stops are imitated; the program has the signal
# mask and the actions that usysv run was started with.
. "$(dirname "$0")/lib.sh"

for signal in TERM HUP INT QUIT USR1 USR2 ALRM WINCH PIPE TSTP RTMIN; do
	: >"$work/log" # what the last one said must not be taken for this one's
	"$usysv" run -- sh -c "trap 'echo got; exit 5' $signal; echo ready
		while :; do sleep 0.02; done" >"$work/log" 2>&1 &
	pid=$!
	started $pid
	until_true 10 grep -q ready "$work/log"
	# A shell's background job ignores SIGINT and SIGQUIT, and then a trap is impossible.
	case $signal in
	INT | QUIT) kill -s TERM $pid; wait $pid; continue ;;
	esac
	kill -s $signal $pid
	wait $pid
	got=$?
	[ $got -eq 5 ] && grep -q got "$work/log" || fail "SIG$signal: status $got"
done

# A signal that kills the program gives the shell's status.
: >"$work/log"
"$usysv" run -- sh -c 'echo ready; exec sleep 1000' >"$work/log" &
pid=$!
started $pid
until_true 10 grep -q ready "$work/log"
kill -TERM $pid
wait $pid
[ $? -eq 143 ] || fail 'TERM is not passed through'

# The program stops and goes on; SIGCONT sent to usysv run reaches it.
: >"$work/log"
"$usysv" run -- sh -c 'echo $$; exec sleep 1000' >"$work/log" &
pid=$!
started $pid
until_true 10 one_line "$work/log"
program=$(cat "$work/log")
state() {
	sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null
}
in_state() {
	[ "$(state "$1")" = "$2" ]
}
kill -STOP "$program"
until_true 10 in_state "$program" T
kill -CONT $pid
until_true 10 in_state "$program" S
kill -TERM $pid
wait $pid
[ $? -eq 143 ] || fail 'status after stop and continue'

# Mask and ignored signals are inherited as they were.
masks() {
	grep -E '^Sig(Blk|Ign):' "/proc/$1/status"
}
(
	trap '' USR1
	grep -E '^Sig(Blk|Ign):' /proc/self/status >"$work/without"
	"$usysv" run -- grep -E '^Sig(Blk|Ign):' /proc/self/status >"$work/with"
)
cmp -s "$work/without" "$work/with" || fail "signal mask or actions differ:
$(cat "$work/without" "$work/with")"

# An ignored SIGCHLD does not hide the end of the program.
status 3 env --ignore-signal=CHLD "$usysv" run -- sh -c 'exit 3'

# A timer of alarm(2) set by a wrapper is meant for the program.
if command -v perl >/dev/null; then
	status 142 perl -e 'alarm 1; exec @ARGV' "$usysv" run -- sleep 1000
fi
until_true 10 nothing_left
