#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs that a preload cannot reach are run with a warning.
. "$(dirname "$0")/lib.sh"

status 0 "$usysv" run -- true && silent
cc=${CC:-cc}
printf 'int main(void) { return 4; }\n' >"$work/four.c"
if $cc -static -o "$work/four" "$work/four.c" 2>/dev/null; then
	status 4 "$usysv" run -- "$work/four"
	says 'warning: .*/four is statically linked'
	printf '#!%s\n' "$work/four" >"$work/script"
	chmod 755 "$work/script"
	status 4 "$usysv" run -- "$work/script"
	says 'statically linked'
fi
if $cc -o "$work/dynamic" "$work/four.c" 2>/dev/null; then
	status 4 "$usysv" run -- "$work/dynamic" && silent
	if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
		chmod 711 "$work"
		chmod 777 "$USYSV_DIR"
		chmod 4755 "$work/dynamic"
		mkdir "$work/lib"
		if setpriv --reuid 65534 --clear-groups test -x "$usysv"; then
			status 4 setpriv --reuid 65534 --clear-groups "$usysv" run -- \
				"$work/dynamic"
			says 'more rights than yours'
		fi
		# Setuid to the user who runs it anyway is nothing special.
		status 4 "$usysv" run -- "$work/dynamic" && silent
	fi
fi
if $cc -m32 -o "$work/small" "$work/four.c" 2>/dev/null; then
	status 4 "$usysv" run -- "$work/small"
	says '32-bit'
fi
if musl-gcc -o "$work/musl" "$work/four.c" 2>/dev/null; then
	status 4 "$usysv" run -- "$work/musl"
	says 'linked with musl'
fi
# A first call does not ask for more stack than small ones of handlers have.
status 0 "$usysv" run -- "$user" small
nothing_left || fail "something is left in $root"
