#!/bin/sh
# SPDX-License-Identifier: MIT
# usysv check finds what is wrong, and nothing in a namespace that is merely in use; --repair
# finishes what a killed process left, which nobody else was there to do.
. "$(dirname "$0")/lib.sh"

status 0 "$usysv" run -n looked -- true
status 0 "$usysv" check -n looked
[ -s "$work/out" ] && fail "a good namespace: $(cat "$work/out")"
status 0 "$usysv" check -n looked --repair
grep -q 'no process had to be buried' "$work/out" || fail "--repair says: $(cat "$work/out")"
status 1 "$usysv" check -n missing && says 'does not exist'
status 1 "$usysv" check -n missing --repair && says 'does not exist'
status 1 "$usysv" check -n looked nonsense && says 'unexpected'

# In use: processes come and go, and make sets.
: >"$work/busy"
"$usysv" run -n looked -- sh -c 'while [ -e "$2" ]; do "$1" hold </dev/null; done' \
	sh "$user" "$work/busy" >/dev/null &
busy=$!
started $busy
for _ in 1 2 3; do
	status 0 "$usysv" check -n looked
done
rm "$work/busy"
wait $busy || fail 'a process in the namespace failed'

# A process is killed, and its reaper with it.
mkfifo "$work/in"
exec 7<>"$work/in"
"$usysv" run -n orphaned -- sh -c 'echo $$ >"$4"; exec "$1" hold <"$2" >"$3" 7>&-' sh "$user" \
	"$work/in" "$work/id" "$work/pid" 7>&- &
launcher=$!
started $launcher
until_true 10 one_line "$work/id"
kill -STOP $launcher
started "$(cat "$work/pid")"
kill -KILL "$(cat "$work/pid")"
kill -KILL $launcher
wait $launcher 2>/dev/null
exec 7>&-
status 0 "$usysv" check -n orphaned --repair
grep -Eq '^orphaned: (1 process|no process)' "$work/out" || fail "--repair says: $(cat "$work/out")"
until_true 10 has_users orphaned 0
status 0 "$usysv" rm orphaned

# One byte of the tables is wrong: the free process slot 3 has undo records.
status 0 "$usysv" run -n spoilt -- true
printf '\001' | dd of="$root/spoilt/region" bs=1 seek=$((1048576 + 3 * 128 + 28)) conv=notrunc \
	2>/dev/null
status 2 "$usysv" check -n spoilt
grep -q 'process slot 3' "$work/out" || fail "the damage is not told: $(cat "$work/out")"
grep -q 'inconsistenc' "$work/out" || fail "the sum is missing: $(cat "$work/out")"
status 2 "$usysv" check -n spoilt --repair
status 0 "$usysv" rm spoilt

# Files of segments that are gone: told of, removed by --repair and by a reaper. Those of segments
# that are there stay.
status 0 "$usysv" run -n files -- "$user" segment
id=$(cat "$work/out")
file=$(echo "$root"/files/shm-*/SYSV00000000-"$id")
[ -e "$file" ] || fail "the segment has no file $file"
at=$(dirname "$file")
status 0 "$usysv" check -n files
for name in SYSV00000000-$((id + 98304)) SYSV00000001-"$id" gone-SYSV00000000-7; do
	echo left >"$at/$name"
done
status 2 "$usysv" check -n files
[ "$(grep -c 'is of no segment' "$work/out")" -eq 3 ] || fail "check says: $(cat "$work/out")"
status 0 "$usysv" check -n files --repair
grep -q '3 files of segments that are gone' "$work/out" || fail "--repair says: $(cat "$work/out")"
[ "$(ls "$at")" = "$(basename "$file")" ] || fail "left: $(ls "$at")"
: >"$work/busy"
"$usysv" run -n files -- sh -c 'while [ -e "$1" ]; do sleep 0.1; done' sh "$work/busy" &
busy=$!
started $busy
echo left >"$at/SYSV00000000-$((id + 98304))"
until_true 20 [ ! -e "$at/SYSV00000000-$((id + 98304))" ]
[ -e "$file" ] || fail 'the reaper has removed the file of a segment'
rm "$work/busy"
wait $busy

# What is left under the name of a new segment is none of its contents.
status 0 "$usysv" run -n files -- sh -c 'cp "$2" "${2%-*}-$((${2##*-} + 1))" && exec "$1" segment' \
	sh "$user" "$file"
[ "$(cat "$work/out")" = $((id + 1)) ] || fail "the next id is not $((id + 1)): $(cat "$work/out")"
status 0 "$usysv" rm files
