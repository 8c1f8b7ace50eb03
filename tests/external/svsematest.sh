#!/bin/bash
# SPDX-License-Identifier: MIT
# svsematest of rt-tests: latency of waking through a semaphore, between threads and between
# processes. It locks all memory (mlockall), present and future.
. "$(dirname "$0")/lib.sh"
need svsematest
need_family sem
measure() {
	local what=$1 samples
	shift
	timeout -k 2 40 svsematest "$@" -l 300 -i 500 --json="$W/$what.json" >"$what.log" 2>&1 ||
		fail "$what: status $?: $(tail -c 400 "$what.log")"
	samples=$(grep -oE '"samples": [0-9]+' "$what.json" | grep -oE '[0-9]+' | sort -n | head -1)
	[ "${samples:-0}" -ge 300 ] || fail "$what: ${samples:-0} of 300 samples"
	grep -q '"return_code": 0' "$what.json" || fail "$what: $(cat "$what.json")"
}
measure threads -t 1
measure processes -f
pass "300 wake-ups each between threads and between processes"
