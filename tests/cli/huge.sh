#!/bin/sh
# SPDX-License-Identifier: MIT
# Segments of huge pages, whose files lie outside the namespace's directory: they go with the
# segment and with the namespace, however their users ended. In tests/harness/on-huge.sh, which
# says where and looks whether something is left at the end.
. "$(dirname "$0")/lib.sh"
huge=$start

run_in() { # NAME PROGRAM...
	name=$1
	shift
	"$usysv" run -n "$name" -- "$@"
}

files() {
	find "$HUGE_MOUNT" -type f | wc -l
}

has_files() {
	[ "$(files)" -eq "$1" ]
}

# A segment's file is its user's alone; it goes with the segment.
id=$(run_in one "$huge" make) || fail 'no segment'
has_files 1 || fail "$(files) files instead of one"
file=$(find "$HUGE_MOUNT" -type f)
[ "$(stat -c %a "$file")" = 600 ] || fail "mode $(stat -c %a "$file")"
case $(basename "$file") in
usysv-$(id -u)-one-*) ;;
*) fail "its name is $file" ;;
esac
status 0 "$usysv" ls --bytes -n one
grep -Eq '\<5000\>' "$work/out" || fail "ls shows: $(cat "$work/out")"
status 0 "$usysv" rm one "shm:$id"
has_files 0 || fail "the file is left"

# With the namespace; with one that is in use, too.
run_in one "$huge" make 2 >/dev/null
has_files 2 || fail "$(files) files instead of two"
status 0 "$usysv" rm one
has_files 0 || fail "files are left by rm"
mkfifo "$work/in"
run_in one "$huge" hold <"$work/in" >"$work/id" &
started $!
exec 9>"$work/in"
until_true 10 one_line "$work/id"
status 0 "$usysv" rm --force one
has_files 0 || fail "files are left by rm --force"
exec 9>&-
wait $! || fail "the holder ended with $?"
until_true 10 nothing_left

# Two namespaces of one name, in different places.
id=$(run_in one "$huge" make)
mkdir "$work/other"
(
	USYSV_DIR=$work/other
	[ "$(run_in one "$huge" make)" = "$id" ] || fail 'another id'
	has_files 2 || fail "$(files) files instead of two"
	status 0 "$usysv" rm one
)
has_files 1 || fail "$(files) files instead of one"
status 0 "$usysv" rm one

# A private one, with all that its program left.
status 0 "$usysv" run -- "$huge" make 3
has_files 0 || fail "files are left by run"

# One that is damaged; what is in a link that is not ours stays.
run_in one "$huge" make >/dev/null
echo precious >"$work/precious"
ln -s "$work/precious" "$(echo "$root"/one/shm-*)/SYSV00000000-4711"
: >"$root/one/region"
status 0 "$usysv" rm --force one
has_files 0 || fail "files are left by rm of a damaged one"
[ -s "$work/precious" ] || fail 'a file of others was removed'

# Killed at any moment: a file that is left belongs to a segment that is left.
for i in 1 2 3 4 5 6 7 8; do
	run_in one "$huge" storm >"$work/pid" 2>"$work/storm" &
	storm=$!
	started $storm
	until_true 10 one_line "$work/pid"
	sleep "0.0$i" # any moment will do
	kill -KILL "$(cat "$work/pid")"
	wait $storm
	[ -s "$work/storm" ] && fail "$(cat "$work/storm")"
	segments=$(field one SHM)
	[ "$(files)" -le "$segments" ] || fail "$(files) files, but $segments segments"
	status 0 "$usysv" check -n one
	status 0 "$usysv" rm --force one
	has_files 0 || fail "$(files) files are left"
done
