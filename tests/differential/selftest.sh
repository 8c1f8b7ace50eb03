#!/bin/sh
# SPDX-License-Identifier: MIT
# selftest.sh DIFFERENTIAL: the differential test, tested. The kernel against itself shows no
# difference; with a fault planted in one of the two the difference is found, made small, and the
# small script shows it again, but shows nothing without the fault.
program=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
	echo "FAILED: $*"
	failures=$((failures + 1))
}

"$program" --b kernel --seed 1 --steps 6000 >"$folder/log"
status=$?
tail -n 1 "$folder/log"
if [ $status -eq 77 ]; then
	exit 77
elif [ $status -ne 0 ]; then
	cat "$folder/log"
	fail 'the kernel differs from itself'
fi

# find_fault FAMILY FAULT STEPS TRIES: the fault is found, and shrunk to at most so many steps.
# Limits are numbers, not seconds: a slow machine finds the same.
find_fault() {
	"$program" --b kernel --fault "$2" --family "$1" --seed 1 --sequences 400 --length 80 \
		--shrink 10000 --tries "$4" --deadline 5000 --keep "$folder/script" >"$folder/log"
	status=$?
	if [ $status -ne 1 ]; then
		fail "fault $2 was not found"
		return
	fi
	steps=$(grep -c '^w' "$folder/script")
	echo "fault $2: shrunk to $steps steps"
	[ "$steps" -le "$3" ] || fail "fault $2: $steps steps are more than $3"
	"$program" --b kernel --fault "$2" --deadline 5000 --replay "$folder/script" \
		>"$folder/log" &&
		fail "fault $2 does not show in a replay"
	"$program" --b kernel --replay "$folder/script" >"$folder/log" || {
		cat "$folder/log"
		fail "the script of fault $2 shows a difference without it"
	}
}

find_fault sem ncnt 16 120
find_fault sem order 16 120
find_fault sem undo 16 120
find_fault sem errno 16 120
find_fault sem crash 16 120
find_fault msg message 16 120
find_fault shm nattch 16 120

# Trouble takes its deadline at every try: found is enough.
find_fault sem hang 80 0

[ $failures -eq 0 ]
