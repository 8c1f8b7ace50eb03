#!/bin/sh
# SPDX-License-Identifier: MIT
# on-usysv.sh USYSV PROGRAM [ARG...]: runs a behaviour test against usysv, in a namespace that
# lives as long as the program. USYSV is the path of the usysv command; the environment variable
# USYSV_BIN, where set, replaces it. Where possible the kernel's namespace is a fresh one as well:
# a call that slips past usysv then hits nothing that matters. The checker has the last word.
usysv=${USYSV_BIN:-$1}
shift
USYSV_BACKEND=usysv
export USYSV_BACKEND
if unshare -i true 2>/dev/null; then
	exec unshare -i -- "$usysv" run --check -- "$@"
fi
exec "$usysv" run --check -- "$@"
