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
[ -n "$segment" ] && [ -n "$set" ] && [ -n "$queue" ] ||
	fail "ipcmk: '$segment' '$set' '$queue'"

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
grep -qx 'segments allocated 1' use && grep -qx 'used arrays = 1' use &&
	grep -qx 'allocated semaphores = 7' use && grep -qx 'allocated queues = 1' use ||
	fail "ipcs -u: $(cat use)"
ipcs -l >limits || fail "ipcs -l"
grep -qx 'max number of arrays = 32000' limits && grep -qx 'max queues system wide = 32000' limits &&
	grep -qx 'max number of segments = 4096' limits || fail "ipcs -l: $(cat limits)"

lsipc -m -i "$segment" | grep -q '12\.1K\|12345' || fail "lsipc -m -i"
lsipc -s -i "$set" | grep -q 'Semaphores\|NSEMS\|7' || fail "lsipc -s -i"
lsipc -s | awk -v id="$set" '$2 == id { n++ } END { exit n != 1 }' || fail "lsipc -s"
lsipc -q | awk -v id="$queue" '$2 == id { n++ } END { exit n != 1 }' || fail "lsipc -q"
lsipc -g | awk '$1 == "SEMMNI" && $(NF - 1) == 1 { n++ } END { exit n != 1 }' || fail "lsipc -g"

key=$(ipcs -m | awk -v id="$segment" '$2 == id { print $1 }')
ipcrm -M "$key" || fail "ipcrm by key"
ipcrm -s "$set" -q "$queue" || fail "ipcrm by id"
! ipcrm -m "$segment" 2>/dev/null || fail "removed twice"
! ipcrm -Q 0x7eadbee1 2>/dev/null || fail "removed a key that is not there"
ipcmk -S 2 >/dev/null && ipcmk -Q >/dev/null && ipcrm --all || fail "ipcrm --all"
left=$(for what in -m -s -q; do ipcs "$what"; done | grep -c '^0x')
[ "$left" = 0 ] || fail "still listed: $(ipcs)"
pass "made, listed in every way, removed"
