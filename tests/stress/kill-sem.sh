#!/bin/sh
# SPDX-License-Identifier: MIT
# kill-sem.sh USYSV PROGRAM SECONDS: real processes killed in a namespace of their own, which must
# be sound afterwards.
usysv=$1
program=$2
seconds=$3
# shellcheck disable=SC2016
exec "$usysv" run -- sh -c '"$1" "$2" || exit
	# What the last of the dead left is buried within a moment.
	tries=0
	while ! "$0" check >/dev/null && [ $tries -lt 100 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	"$0" check' "$usysv" "$program" "$seconds"
