#!/bin/sh
# SPDX-License-Identifier: MIT
# A program under the tools of valgrind: it works, and Memcheck finds nothing wrong with it or the
# library. Called as valgrind.sh USYSV USER PROGRAM.
. "$(dirname "$0")/lib.sh"

command -v valgrind >/dev/null 2>&1 || skip 'no valgrind'
cd "$work" || exit 1 # what massif and callgrind write
for tool in none callgrind massif helgrind drd memcheck; do
	set --
	[ $tool = memcheck ] && set -- --leak-check=full --errors-for-leak-kinds=definite
	status 143 "$usysv" run --check -n watched -- \
		valgrind --tool=$tool "$@" --log-file="$work/log.%p" "$start"
	[ "$(cat "$work/out")" = 'done' ] || fail "$tool: it does not reach its end"
	silent
	if [ $tool = memcheck ] && grep -v ' 0 errors' "$work"/log.* | grep -q 'ERROR SUMMARY'; then
		fail "Memcheck complains: $(cat "$work"/log.*)"
	fi
	rm -f "$work"/log.*
done
# Who looks for leaks in the region would make all of it real.
used=$(du -k "$root/watched/region" | cut -f 1)
[ "$used" -lt 8192 ] || fail "$used KiB are in use"
