#!/bin/sh
# SPDX-License-Identifier: MIT
# usysv rm removes objects and namespaces; one in use only by force, and then everybody is told.
. "$(dirname "$0")/lib.sh"

run_in() { # NAME PROGRAM...
	name=$1
	shift
	"$usysv" run -n "$name" -- "$@"
}

# Objects: by id, by key.
id=$(run_in objects "$user" hold 0x77 </dev/null)
status 0 run_in objects "$user" get 0x77
status 0 "$usysv" rm objects "sem:$id"
status 1 run_in objects "$user" get 0x77
grep -qx ENOENT "$work/out" || fail "after rm: $(cat "$work/out")"
status 1 "$usysv" rm objects "sem:$id"
says 'no such object'
run_in objects "$user" hold 0x78 </dev/null >/dev/null
status 0 "$usysv" rm objects key:0x78
status 1 "$usysv" rm objects key:0x78
says 'nothing has this key'
for bad in key:0 key:x sem:x sem: nonsense file:1; do
	status 1 "$usysv" rm objects $bad
done
run_in objects "$user" hold 0x79 </dev/null >/dev/null
status 1 "$usysv" rm objects sem:99999 key:0x79 # the second is removed all the same
status 1 run_in objects "$user" get 0x79
status 0 "$usysv" rm objects
missing "$root/objects" || fail 'it is still there'
status 1 "$usysv" rm objects
says 'does not exist'
status 1 "$usysv" rm
status 1 "$usysv" rm ../up

# In use.
mkfifo "$work/in"
run_in busy "$user" hold 0x99 <"$work/in" >"$work/id" &
holder=$!
started $holder
exec 9>"$work/in"
until_true 10 one_line "$work/id"
run_in busy "$user" sleep "$(cat "$work/id")" >"$work/sleeper" &
sleeper=$!
started $sleeper
until_true 10 one_line "$work/sleeper"
until_true 10 has_users busy 2
status 1 "$usysv" rm busy
says 'in use by 2 processes'
status 0 "$usysv" check -n busy
status 0 "$usysv" rm --force busy
missing "$root/busy" || fail 'it is still there'
wait $sleeper
grep -Eqx 'EIDRM|EINVAL' "$work/sleeper" || fail "the sleeper got $(tail -n 1 "$work/sleeper")"
exec 9>&-
wait $holder || fail "the holder ended with $?"
until_true 10 nothing_left

# Who is in it is told so by each call, in a child too; what it has attached stays.
run_in told "$user" removed <"$work/in" >"$work/told" &
holder=$!
started $holder
exec 9>"$work/in"
until_true 10 one_line "$work/told"
status 0 "$usysv" rm --force told
silent
echo >&9
wait $holder || fail "the holder ended with $?"
exec 9>&-
for who in child parent; do
	echo $who
	for call in msgsnd msgrcv msgctl semop semop semctl; do echo $call EINVAL; done
	echo shmctl 0
	for call in shmat msgget semget shmget msgget semget shmget; do echo $call EIDRM; done
	printf '%s\n' 'has text' 'shmdt 0' 'shmdt EINVAL'
done >"$work/expected"
sed 1d "$work/told" | diff "$work/expected" - >"$work/differ" || fail "$(cat "$work/differ")"
until_true 10 nothing_left

# Its name can be used again at once, also while the old users are there.
exec 8<&0
run_in again "$user" hold 0x99 <"$work/in" >"$work/id" &
holder=$!
started $holder
exec 9>"$work/in"
until_true 10 has_users again 1
status 0 "$usysv" rm -f again
status 1 run_in again "$user" get 0x99
status 0 "$usysv" rm again
exec 9>&-
wait $holder
until_true 10 nothing_left
