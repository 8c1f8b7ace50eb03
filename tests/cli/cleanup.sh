#!/bin/sh
# SPDX-License-Identifier: MIT
# A private namespace is gone with the last process that uses it, whoever dies in which order; a
# lasting one stays.
. "$(dirname "$0")/lib.sh"

# Nobody uses it.
status 0 "$usysv" run -- true
nothing_left || fail "something is left in $root"

# The program uses it, and leaves objects.
status 0 "$usysv" run -- "$user" hold
until_true 10 nothing_left

# The program ends; a process that it left in the background does later.
mkfifo "$work/in"
exec 7<>"$work/in"
status 0 "$usysv" run -- sh -c '"$1" hold <"$2" >"$3" 7>&- &
	while ! [ -s "$3" ]; do sleep 0.02; done' sh "$user" "$work/in" "$work/id"
[ -e "$root" ] || fail 'the namespace has gone with a user in it'
name=$(ls "$root")
until_true 10 has_users "$name" 1
reaper() {
	[ -n "$(field "$name" REAPER)" ]
}
until_true 10 reaper
usysvd=$(field "$name" REAPER)
[ "$(cat "/proc/$usysvd/comm")" = usysvd ] || fail "the reaper is $(cat "/proc/$usysvd/comm")"
# shellcheck disable=SC2046 # the words are what is wanted
set -- $(sed 's/.*) //' "/proc/$usysvd/stat")
[ "$4" != "$(ps -o sid= -p $$ | tr -d ' ')" ] || fail 'usysvd is in our session'
[ "$5" = 0 ] || fail 'usysvd has a terminal'
[ "$(readlink "/proc/$usysvd/cwd")" = / ] || fail "usysvd is in $(readlink "/proc/$usysvd/cwd")"
for fd in "/proc/$usysvd/fd"/*; do
	case $(readlink "$fd") in
	/dev/null | anon_inode:* | "$root"/*) ;;
	*) fail "usysvd holds $(readlink "$fd")" ;;
	esac
done
grep -q '^SigBlk:	0*$' "/proc/$usysvd/status" || fail 'usysvd has signals blocked'
exec 7>&-
until_true 20 nothing_left
until_true 20 gone "$usysvd"

# usysv run is killed; what it ran goes on, and ends later.
exec 7<>"$work/in"
rm -f "$work/id"
"$usysv" run -- sh -c '"$1" hold <"$2" >"$3" 7>&-' sh "$user" "$work/in" "$work/id" 7>&- &
pid=$!
started $pid
until_true 10 one_line "$work/id"
kill -KILL $pid
wait $pid 2>/dev/null
[ -e "$root" ] || fail 'the namespace has gone with a user in it'
exec 7>&-
# The last one who leaves sees to it that somebody removes the namespace.
until_true 20 nothing_left

# All are killed at one moment, as by the end of a job: the next run finds it and has it removed.
for round in 1 2; do
	rm -f "$work/id$round"
	setsid sh -c 'echo $$ >"$4"; exec "$0" run -- "$1" hold <"$2" >"$3"' \
		"$usysv" "$user" "$work/in" "$work/id$round" "$work/group$round" &
done
exec 7<>"$work/in"
for round in 1 2; do
	until_true 10 one_line "$work/group$round"
	until_true 10 one_line "$work/id$round"
done
for round in 1 2; do
	env kill -KILL -- "-$(cat "$work/group$round")"
done
wait
exec 7>&-
missing "$root" && fail 'nothing was left that could be found'
status 0 "$usysv" run -- true
until_true 20 nothing_left

# A lasting namespace.
id=$("$usysv" run -n kept -- "$user" hold 0x55 </dev/null)
status 0 "$usysv" run -n kept -- "$user" get 0x55
[ "$(cat "$work/out")" = "$id" ] || fail "another set: $(cat "$work/out")"
# Two at once: the second takes the office when the first has gone.
exec 7<>"$work/in"
"$usysv" run -n kept -- sh -c 'read x <"$1"' sh "$work/in" 7>&- &
first=$!
started $first
is_reaper() {
	[ "$(field kept REAPER)" = "$1" ]
}
until_true 10 is_reaper $first
mkfifo "$work/in2"
"$usysv" run -n kept -- sh -c 'read x <"$1"' sh "$work/in2" 7>&- &
second=$!
started $second
exec 6<>"$work/in2"
kill -KILL $first
wait $first 2>/dev/null
until_true 10 is_reaper $second
echo >&6
wait $second || fail "status $?"
exec 6>&- 7>&-
status 0 "$usysv" rm kept
nothing_left || fail "something is left in $root"

# Process 1 of a pid namespace takes along what is left there, and the namespace with it.
if unshare -pmf --mount-proc true 2>/dev/null; then
	exec 7<>"$work/in"
	for name in '' inside; do
		rm -f "$work/id"
		# shellcheck disable=SC2086 # an option or nothing
		status 0 unshare -pmf --mount-proc "$usysv" run ${name:+-n $name} -- sh -c '
			"$1" hold <"$2" >"$3" 7>&- &
			while ! [ -s "$3" ]; do sleep 0.02; done' sh "$user" "$work/in" "$work/id"
		silent
		[ -n "$name" ] || nothing_left || fail "something is left in $root"
	done
	has_users inside 0 || fail 'a user is left in a namespace that is made by name'
	# Not those of others.
	rm -f "$work/id"
	"$usysv" run -n inside -- "$user" hold <"$work/in" >"$work/id" 7>&- &
	started $!
	until_true 10 one_line "$work/id"
	status 0 unshare -pmf --mount-proc "$usysv" run -n inside -- "$user" hold
	silent
	has_users inside 1 || fail 'the user outside is not there'
	exec 7>&-
	wait
	status 0 "$usysv" rm inside
fi
nothing_left || fail "something is left in $root"
