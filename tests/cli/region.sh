#!/bin/sh
# SPDX-License-Identifier: MIT
# A region that is truncated, foreign, of another version or damaged is told apart and never used;
# usysv rm takes it away only when told to. Limits of the process are named.
. "$(dirname "$0")/lib.sh"

make() {
	status 0 "$usysv" run -n spoilt -- true
}
patch() { # OFFSET
	printf '\252\252' | dd of="$root/spoilt/region" bs=1 seek="$1" conv=notrunc 2>/dev/null
}
refused() { # PATTERN
	status 125 "$usysv" run -n spoilt -- true && says "$1"
	status 1 "$usysv" ls -n spoilt && says "$1"
	status 1 "$usysv" check -n spoilt && says "$1"
	status 0 "$usysv" ls --raw -o NAME,STATE
	grep -q "^spoilt " "$work/out" || fail "ls does not show it: $(cat "$work/out")"
	status 1 "$usysv" rm spoilt && says "$1" && says '--force'
	status 0 "$usysv" rm --force spoilt
	nothing_left || fail "something is left in $root"
}

make
: >"$root/spoilt/region"
refused empty
make
truncate -s 100 "$root/spoilt/region"
refused truncated
make
truncate -s 1M "$root/spoilt/region"
refused truncated
make
patch 0
refused 'not a region'
make
patch 8
refused 'another version'

# The file size limit is looked at before it can send SIGXFSZ.
status 125 sh -c 'ulimit -f 1000; exec "$@"' sh "$usysv" run -- true
says 'size of files is limited'
nothing_left || fail "something is left in $root"
make
status 0 sh -c 'ulimit -f 1000; exec "$@"' sh "$usysv" run -n spoilt -- true # it is there
status 0 "$usysv" rm spoilt
status 125 sh -c 'ulimit -v 1000000; exec "$@"' sh "$usysv" run -- true
says 'address space'
nothing_left || fail "something is left in $root"
