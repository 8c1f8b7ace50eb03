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
json 'd["semaphores"] == []'

status 1 "$usysv" ls -n none
says "namespace 'none' does not exist"
status 1 "$usysv" ls -o NAME,NONE
says "no column 'NONE'"
status 1 "$usysv" ls extra
status 1 "$usysv" ls --json --raw
status 0 "$usysv" check -n first
exec 9>&-
wait $pid || fail "status $?"
status 0 "$usysv" check -n first
status 0 "$usysv" rm first
status 0 "$usysv" rm second
nothing_left || fail "something is left in $root"
