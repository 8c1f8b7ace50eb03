#!/bin/bash
# SPDX-License-Identifier: MIT
# busybox's own ipcs and ipcrm, which make the calls, beside what /proc shows. BUSYBOX names another
# one than that on the path. A static busybox is out of reach.
. "$(dirname "$0")/lib.sh"
busybox=${BUSYBOX:-busybox}
need "$busybox" ipcmk awk
need_family shm
"$busybox" ipcs >/dev/null 2>&1 || skip "this busybox has no ipcs"
if [ "$BACKEND" != kernel ] && ! grep -qz 'ld-linux\|ld-musl' "$(command -v "$busybox")"; then
	skip "this busybox is linked statically"
fi
for make in "-M 4000" "-S 3" "-Q"; do
	# shellcheck disable=SC2086  # an option and its value
	ipcmk $make >/dev/null || fail "ipcmk $make"
done
"$busybox" ipcs >list || fail "ipcs: status $?"
[ "$(grep -c '^0x' list)" = 3 ] || fail "ipcs: $(cat list)"
for file in msg sem shm; do
	id=$(awk 'NR == 2 { print $2 }' "/proc/sysvipc/$file")
	awk -v id="$id" '/^0x/ && $2 == id { n++ } END { exit !n }' list ||
		fail "/proc/sysvipc/$file has $id, ipcs has not: $(cat list)"
	"$busybox" ipcrm "-${file/msg/q}" "$id" 2>/dev/null ||
		"$busybox" ipcrm "$file" "$id" 2>/dev/null || fail "ipcrm $file $id"
	[ "$(wc -l <"/proc/sysvipc/$file")" = 1 ] || fail "still there: $(cat "/proc/sysvipc/$file")"
done
pass "lists and removes what ipcmk has made"
