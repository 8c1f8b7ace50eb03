#!/bin/bash
# SPDX-License-Identifier: MIT
# stress-ng's System V message queue stressor, with receive by type with its own verification.
. "$(dirname "$0")/lib.sh"
need stress-ng
need_family msg
stress-ng --temp-path "$W" --verify --metrics-brief --timeout 20s \
	--msg 2 --msg-types 10 --msg-ops 20000 >log 2>&1 ||
	fail "status $?: $(tail -5 log)"
! grep -qE 'stress-ng: fail|unsuccessful|skipped' log || fail "$(grep -E 'fail|skipped' log)"
n=$(awk '/stress-ng: metrc/ && $4 == "msg" { print $5 }' log)
[ "${n:-0}" -ge 20000 ] || fail "only ${n:-0} of 20000 operations: $(cat log)"
pass "$n operations verified"
