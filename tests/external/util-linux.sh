#!/bin/bash
# SPDX-License-Identifier: MIT
# ipcmk, ipcs, ipcrm and lsipc of util-linux: they read /proc/sysvipc and /proc/sys/kernel first and
# make the calls only where those files are missing.
. "$(dirname "$0")/lib.sh"
need ipcmk ipcs ipcrm lsipc awk
need_family shm

id_of() {
	awk '{ print $NF }'
}

# listed OPTION ID [FIELD=VALUE]...: ipcs lists this object, with these fields.
listed() {
	local option=$1 id=$2 field
	ipcs "$option" >list || fail "ipcs $option: status $?"
	line=$(awk -v id="$id" '$2 == id' list)
	[ -n "$line" ] || fail "ipcs $option does not list $id: $(cat list)"
	shift 2
	for field in "$@"; do
		[ "$(awk -v n="${field%%=*}" '{ print $n }' <<<"$line")" = "${field#*=}" ] ||
			fail "ipcs $option: field $field: $line"
	done
}

segment=$(ipcmk -M 12345 -p 0640 | id_of)
set=$(ipcmk -S 7 -p 0604 | id_of)
queue=$(ipcmk -Q | id_of)
for id in "$segment" "$set" "$queue"; do
	[ -n "$id" ] || fail "ipcmk: '$segment' '$set' '$queue'"
done

listed -m "$segment" 4=640 5=12345 6=0
listed -s "$set" 4=604 5=7
listed -q "$queue" 4=644 5=0 6=0
ipcs -m -i "$segment" | grep -q 'bytes=12345' || fail "ipcs -m -i"
ipcs -s -i "$set" | grep -q 'nsems = 7' || fail "ipcs -s -i"
ipcs -q -i "$queue" | grep -q 'qnum=0' || fail "ipcs -q -i"
ipcs -m -p | awk -v id="$segment" '$1 == id { n++ } END { exit n != 1 }' || fail "ipcs -m -p"
ipcs -s -t | awk -v id="$set" '$1 == id && /Not set/ { n++ } END { exit n != 1 }' ||
	fail "ipcs -s -t"
ipcs -q -c | awk -v id="$queue" '$1 == id { n++ } END { exit n != 1 }' || fail "ipcs -q -c"
ipcs -u >use || fail "ipcs -u"
for line in 'segments allocated 1' 'used arrays = 1' 'allocated semaphores = 7' \
	'allocated queues = 1'; do
	grep -qx "$line" use || fail "ipcs -u has no '$line': $(cat use)"
done
ipcs -l >limits || fail "ipcs -l"
for line in 'max number of arrays = 32000' 'max queues system wide = 32000' \
	'max number of segments = 4096'; do
	grep -qx "$line" limits || fail "ipcs -l has no '$line': $(cat limits)"
done

lsipc -m -i "$segment" | grep -q '12\.1K\|12345' || fail "lsipc -m -i"
lsipc -s -i "$set" | awk '/^Semaphores:/ && $NF == 7 { n++ } END { exit n != 1 }' ||
	fail "lsipc -s -i: $(lsipc -s -i "$set")"
lsipc -s | awk -v id="$set" '$2 == id { n++ } END { exit n != 1 }' || fail "lsipc -s"
lsipc -q | awk -v id="$queue" '$2 == id { n++ } END { exit n != 1 }' || fail "lsipc -q"
lsipc -g | awk '$1 == "SEMMNI" && $(NF - 1) == 1 { n++ } END { exit n != 1 }' || fail "lsipc -g"

key=$(ipcs -m | awk -v id="$segment" '$2 == id { print $1 }')
ipcrm -M "$key" || fail "ipcrm by key"
ipcrm -s "$set" -q "$queue" || fail "ipcrm by id"
! ipcrm -m "$segment" 2>/dev/null || fail "removed twice"
! ipcrm -Q 0x7eadbee1 2>/dev/null || fail "removed a key that is not there"
ipcmk -S 2 >/dev/null || fail "ipcmk"
ipcmk -Q >/dev/null || fail "ipcmk"
ipcrm --all || fail "ipcrm --all"
left=$(for what in -m -s -q; do ipcs "$what"; done | grep -c '^0x')
[ "$left" = 0 ] || fail "still listed: $(ipcs)"
pass "made, listed in every way, removed"
