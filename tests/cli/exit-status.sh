#!/bin/sh
# SPDX-License-Identifier: MIT
# usysv run ends as its program ends, and says clearly why it cannot start one.
. "$(dirname "$0")/lib.sh"

status 0 "$usysv" run -- true && silent
status 1 "$usysv" run -- false && silent
status 77 "$usysv" run sh -c 'exit 77' && silent
status 143 "$usysv" run -- sh -c 'kill -TERM $$'
status 137 "$usysv" run -- sh -c 'kill -KILL $$'

status 127 "$usysv" run -- "$work/no-such-program"
says 'no-such-program: No such file'
status 127 "$usysv" run -- no-such-program-in-path
says 'no-such-program-in-path'
status 127 "$usysv" run -- ''
echo 'true' >"$work/plain"
status 126 "$usysv" run -- "$work/plain"
says 'plain: Permission denied'
status 126 "$usysv" run -- "$work"
mkdir "$work/bin"
cp "$work/plain" "$work/bin/only-here"
PATH=$work/bin:$PATH status 126 "$usysv" run -- only-here
chmod 755 "$work/plain"
status 0 "$usysv" run -- "$work/plain" # a script without #!, as execvp has it
printf '#!/no/such/interpreter\n' >"$work/script"
chmod 755 "$work/script"
status 127 "$usysv" run -- "$work/script"

status 125 "$usysv" run
says 'no program given'
status 125 "$usysv" run --no-such-option
says "Try 'usysv run --help'"
status 125 "$usysv" run -n ../up -- true
says "namespace '../up': a name has"
status 125 "$usysv" run -n .hidden -- true
status 125 "$usysv" run -n 'a b' -- true
status 125 "$usysv" run -n '' -- true
status 125 "$usysv" run -n "$(printf %065d 0)" -- true
nothing_left || fail "something is left in $root"

status 0 "$usysv" run --help && grep -q '^ usysv run \[options\]' "$work/out" ||
	fail 'no help on standard output'
status 0 "$usysv" --help
for command in run ls rm check; do
	status 0 "$usysv" $command --help
	status 0 "$usysv" $command --version && grep -q '^usysv [0-9]' "$work/out" ||
		fail "no version of $command"
done
status 1 "$usysv"
status 1 "$usysv" no-such-command
says "'no-such-command' is not a command"

# What the program finds in its environment.
status 0 "$usysv" run -n envtest -- sh -c 'echo "$USYSV_NAMESPACE $USYSV_REGION"'
grep -qx "envtest envtest:$root/envtest/region" "$work/out" ||
	fail "environment: $(cat "$work/out")"
status 0 "$usysv" run -- "$usysv" run -- sh -c 'echo "$LD_PRELOAD"'
[ "$(tr ': ' '\n\n' <"$work/out" | grep -c usysv-preload)" -eq 1 ] ||
	fail "preloaded twice: $(cat "$work/out")"
