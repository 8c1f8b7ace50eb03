# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Common to the tests of the commands; read with `.`. Called as TEST USYSV USER: the usysv command
# and the program user.c. Each test has a base directory of its own, on a tmpfs; at its end, however
# it ends, the processes that it started are gone and the directory is removed.
set -u
absolute() {
	case $1 in
	/*) echo "$1" ;;
	*) echo "$PWD/$1" ;;
	esac
}
usysv=$(absolute "$1")
user=$(absolute "$2")
start=$(absolute "${3:-}")
if [ ! -x "$usysv" ] || [ ! -x "$user" ]; then
	echo "usage: TEST USYSV USER"
	exit 2
fi
failures=0
pids=

memory=/dev/shm
[ -d "$memory" ] && [ -w "$memory" ] || memory=${XDG_RUNTIME_DIR:-/tmp}
work=$(mktemp -d "$memory/usysv-cli-XXXXXX") || exit 1
USYSV_DIR=$work/base
mkdir "$USYSV_DIR"
export USYSV_DIR
unset USYSV_NAMESPACE USYSV_REGION
unset LD_PRELOAD
root=$USYSV_DIR/usysv-$(id -u)

finish() {
	status=$?
	trap - EXIT
	for pid in $pids; do
		kill -KILL "$pid" 2>/dev/null
	done
	wait 2>/dev/null
	for name in "$root"/*/; do
		[ -d "$name" ] && "$usysv" rm --force "$(basename "$name")" >/dev/null 2>&1
	done
	rm -rf "$work"
	if [ $status -eq 0 ] && [ $failures -gt 0 ]; then
		status=1
	fi
	exit $status
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

fail() {
	echo "FAILED: $*"
	failures=$((failures + 1))
}

skip() {
	echo "skipped: $*"
	[ $failures -gt 0 ] && exit 1
	exit 77
}

# Notes a process to be ended with the test.
started() {
	pids="$pids $1"
}

# status N COMMAND...: it ends with this status. Its output is in $work/out and $work/err.
status() {
	want=$1
	shift
	"$@" >"$work/out" 2>"$work/err" </dev/null
	got=$?
	[ $got -eq "$want" ] && return 0
	fail "status $got instead of $want: $*"
	sed 's/^/    /' "$work/out" "$work/err"
	return 1
}

# says PATTERN: the last command of status() wrote this to standard error.
says() {
	grep -Eq -- "$1" "$work/err" && return 0
	fail "standard error says nothing like '$1':"
	sed 's/^/    /' "$work/err"
}

silent() {
	[ -s "$work/err" ] || return 0
	fail "standard error is not empty:"
	sed 's/^/    /' "$work/err"
}

# until_true SECONDS COMMAND...: polls until the command succeeds.
until_true() {
	rounds=$(($1 * 50))
	shift
	while ! "$@" >/dev/null 2>&1; do
		rounds=$((rounds - 1))
		if [ $rounds -le 0 ]; then
			fail "did not come true: $*"
			return 1
		fi
		sleep 0.02
	done
}

missing() {
	[ ! -e "$1" ]
}

gone() {
	! kill -0 "$1" 2>/dev/null
}

# Nothing of any namespace is left.
nothing_left() {
	[ ! -e "$root" ]
}

# one_line FILE: it has a whole line.
one_line() {
	[ "$(wc -l <"$1" 2>/dev/null || echo 0)" -ge 1 ]
}

# field NAMESPACE COLUMN
field() {
	"$usysv" ls --raw --noheadings --bytes -o "NAME,$2" 2>/dev/null |
		sed -n "s/^$1 //p"
}

has_users() {
	[ "$(field "$1" USERS)" = "$2" ]
}
