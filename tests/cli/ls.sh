#!/bin/sh
# SPDX-License-Identifier: MIT
# usysv ls shows namespaces and objects, as text and as JSON.
. "$(dirname "$0")/lib.sh"

status 0 "$usysv" ls
status 0 "$usysv" ls --json
command -v python3 >/dev/null || skip 'needs python3 to read JSON'
json() { # EXPRESSION... on the document d
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
bad = [e for e in sys.argv[2:] if not eval(e)]
print(*bad, sep="\n")
sys.exit(1 if bad else 0)' "$work/out" "$@" >"$work/bad" ||
		fail "false: $(cat "$work/bad") of $(cat "$work/out")"
}
json 'd == {"namespaces": []}'

mkfifo "$work/in"
"$usysv" run -n first -- "$user" hold 0x1234 <"$work/in" >"$work/id" &
pid=$!
started $pid
exec 9>"$work/in"
until_true 10 one_line "$work/id"
id=$(cat "$work/id")
status 0 "$usysv" run -n second -- true
status 0 "$usysv" ls
[ "$(wc -l <"$work/out")" -eq 3 ] || fail "ls: $(cat "$work/out")"
status 0 "$usysv" ls --json
json '[n["name"] for n in d["namespaces"]] == ["first", "second"]' \
	'[n["users"] for n in d["namespaces"]] == [1, 0]' \
	'[n["sem"] for n in d["namespaces"]] == [1, 0]' \
	'[n["state"] for n in d["namespaces"]] == ["in use", "idle"]' \
	'd["namespaces"][0]["size"] > 0' \
	"d['namespaces'][0]['reaper'] == $pid" \
	'd["namespaces"][1]["reaper"] is None'

status 0 "$usysv" ls -n first
grep -q "^0x00001234 *$id rw------- " "$work/out" || fail "ls -n: $(cat "$work/out")"
status 0 "$usysv" ls -n first --json -o KEY,ID,NSEMS,OTIME,CTIME,UID
json 'len(d["semaphores"]) == 1' \
	"d['semaphores'][0]['id'] == $id and d['semaphores'][0]['nsems'] == 3" \
	"d['semaphores'][0]['uid'] == $(id -u)" \
	'd["semaphores"][0]["otime"] is None and d["semaphores"][0]["ctime"][:2] == "20"'
status 0 "$usysv" ls -n second --json
json 'd == {"queues": [], "semaphores": [], "segments": []}'
# What has nothing in it prints nothing; what has one kind, that one table.
for options in '' --raw --noheadings '-o ID,SIZE'; do
	# shellcheck disable=SC2086
	status 0 "$usysv" ls -n second $options
	[ -s "$work/out" ] && fail "ls of an empty namespace $options: $(cat -A "$work/out")"
	# shellcheck disable=SC2086
	status 0 "$usysv" ls -n first $options
	grep -q '^$' "$work/out" && fail "ls $options: $(cat -A "$work/out")"
done
status 0 "$usysv" run -n second -- "$user" segment
status 0 "$usysv" run -n second -- "$user" hold
status 0 "$usysv" ls second
[ "$(grep -c KEY "$work/out")" -eq 2 ] || fail "ls of two kinds: $(cat "$work/out")"
[ "$(grep -nc '^$' "$work/out")" -eq 1 ] || fail "ls of two kinds: $(cat -A "$work/out")"
for options in --json '--json --bytes' '-J -o ID,CTIME' '-J --noheadings'; do
	# shellcheck disable=SC2086
	status 0 "$usysv" ls second $options
	json 'sorted(d) == ["queues", "segments", "semaphores"]' \
		'[len(d[k]) for k in sorted(d)] == [0, 1, 1]' \
		'all(k.isidentifier() and k.islower() for t in d.values() for r in t for k in r)'
	# shellcheck disable=SC2086
	status 0 "$usysv" ls $options -o NAME,STATE,USERS
	json 'sorted(d["namespaces"][0]) == ["name", "state", "users"]'
done

# Who sleeps on it, owes it something, has it attached; not who was killed.
mkfifo "$work/go"
# shellcheck disable=SC2016 # for the inner shell
tell='echo $$ >"$1"; shift; exec "$@"'
"$usysv" run -n third -- sh -c "$tell" sh "$work/owner" "$user" removed <"$work/go" >"$work/ready" &
started $!
exec 8>"$work/go"
until_true 10 one_line "$work/ready"
for k in 1 2; do
	"$usysv" run -n third -- sh -c "$tell" sh "$work/receiver$k" "$user" receive 0 >/dev/null &
	started $!
done
"$usysv" run -n third -- sh -c "$tell" sh "$work/taker" "$user" sleep 0 >/dev/null & # it need not
started $!
for name in receiver1 receiver2 taker; do
	until_true 10 one_line "$work/$name"
done
who() { # TABLE COLUMN PID...: these and no others, in any order
	"$usysv" ls third --json -o ID,SLEEPERS,UNDO,ATTACHED | python3 -c 'import json, sys
table, column, *pids = sys.argv[1:]
shown = json.load(sys.stdin)[table][0][column]
sys.exit(sorted((shown or "").split(",")) != sorted(pids or [""]))' "$@"
}
until_true 10 who queues sleepers "$(cat "$work/receiver1")" "$(cat "$work/receiver2")"
until_true 10 who semaphores sleepers
who semaphores undo "$(cat "$work/owner")" || fail "undo: $("$usysv" ls third)"
who segments attached "$(cat "$work/owner")" || fail "attached: $("$usysv" ls third)"
"$usysv" run -n third -- sh -c "$tell" sh "$work/sleeper" "$user" sleep 0 >/dev/null &
started $!
until_true 10 one_line "$work/sleeper"
until_true 10 who semaphores sleepers "$(cat "$work/sleeper")"
kill -KILL "$(cat "$work/sleeper")" "$(cat "$work/receiver1")"
until_true 10 who semaphores sleepers
until_true 10 who queues sleepers "$(cat "$work/receiver2")"
kill -KILL "$(cat "$work/owner")"
until_true 10 who semaphores undo
until_true 10 who segments attached
exec 8>&-
status 0 "$usysv" rm --force third

# A namespace is an argument, or -n.
status 0 "$usysv" ls first
grep -q "^0x00001234 *$id rw------- " "$work/out" || fail "ls first: $(cat "$work/out")"
status 0 "$usysv" check first
status 1 "$usysv" ls -n first second
says "unexpected argument 'second'"
status 1 "$usysv" check first second
says "unexpected argument 'second'"

status 1 "$usysv" ls -n none
says "namespace 'none' does not exist"
status 1 "$usysv" ls -o NAME,NONE
says "no column 'NONE'"
status 1 "$usysv" ls extra
says "namespace 'extra' does not exist"

# What the environment says wrongly is repeated.
USYSV_NAMESPACE='a b' status 1 "$usysv" check
says "namespace 'a b': a name has"
USYSV_NAMESPACE='a b' status 0 "$usysv" ls
grep -q '^first ' "$work/out" || fail "ls: $(cat "$work/out")"
USYSV_DIR=relative/dir status 1 "$usysv" check name
says "namespace 'name' .relative/dir.: USYSV_DIR must be an absolute path"
library=$(dirname "$usysv")/libusysv-preload.so
USYSV_NAMESPACE=../up LD_PRELOAD=$library status 1 "$user" hold
says "usysv: cannot use namespace '../up': invalid: a name has"
USYSV_NAMESPACE=first USYSV_REGION=first:/nowhere LD_PRELOAD=$library status 1 "$user" hold
says "usysv: cannot use namespace 'first' .*/nowhere.*: invalid: the path"
status 1 "$usysv" ls --json --raw
status 0 "$usysv" check -n first
exec 9>&-
wait $pid || fail "status $?"
status 0 "$usysv" check -n first
status 0 "$usysv" rm first
status 0 "$usysv" rm second
nothing_left || fail "something is left in $root"

# What cannot be written is a failure, said.
if [ -c /dev/full ]; then
	"$usysv" --help >/dev/full 2>"$work/err" && fail 'lost output is no failure'
	says 'write error'
	status 0 sh -c '"$1" --help | true' sh "$usysv"
fi
