#!/bin/sh
# SPDX-License-Identifier: MIT
# on-kernel.sh PROGRAM [ARG...]: runs a behaviour test against the kernel's own System V IPC, in
# an IPC namespace of its own so that runs never meet. Exit status 77 (skipped) where no such
# namespace is to be had.
unset USYSV_BACKEND
if unshare -i true 2>/dev/null; then
	exec unshare -i -- "$@"
elif unshare -U -r -i true 2>/dev/null; then
	exec unshare -U -r -i -- "$@"
fi
echo "on-kernel.sh: no IPC namespace can be made here" >&2
exit 77
