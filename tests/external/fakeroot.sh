#!/bin/bash
# SPDX-License-Identifier: MIT
# as: nobody
# fakeroot-sysv builds a Debian package: its library in every program talks to its daemon through
# two message queues and a semaphore.
. "$(dirname "$0")/lib.sh"
need fakeroot-sysv dpkg-deb tar
need_family sem
need_family msg
mkdir -p pkg/DEBIAN pkg/usr/bin pkg/etc pkg/var/lib/trial
cat >pkg/DEBIAN/control <<'C'
Package: trial
Version: 1
Architecture: all
Maintainer: nobody <nobody@localhost>
Description: trial
C
echo data >pkg/etc/trial.conf
echo '#!/bin/sh' >pkg/usr/bin/trial
cat >build.sh <<'B'
set -eu
[ "$(id -u)" = 0 ]
chown -R 0:0 pkg
chown 33:33 pkg/var/lib/trial
chown 0:4 pkg/etc/trial.conf
chmod 4755 pkg/usr/bin/trial
# many at once, each must see its own
for j in 1 2 3 4; do
	(
		for i in 1 2 3 4 5 6 7 8; do
			f=pkg/usr/bin/f$j.$i
			: >"$f"
			chown $((1000 + i)):$((2000 + j)) "$f"
			[ "$(stat -c %u:%g "$f")" = $((1000 + i)):$((2000 + j)) ] ||
				echo "$f" >>wrong
		done
	) &
done
wait
dpkg-deb -b pkg trial.deb
B
fakeroot-sysv -s state sh build.sh >log 2>&1 || fail "status $?: $(cat log)"
[ ! -e wrong ] || fail "wrong owners: $(cat wrong)"
dpkg-deb -c trial.deb >list || fail "no package"
dpkg-deb --fsys-tarfile trial.deb | tar --numeric-owner -tvf - >list
expect() { grep -qE "$1" list || fail "no line $1 in: $(cat list)"; }
expect '^-rwsr-xr-x 0/0 .* \./usr/bin/trial$'
expect '^-rw-r--r-- 0/4 .* \./etc/trial.conf$'
expect '^drwxr-xr-x 33/33 .* \./var/lib/trial/$'
expect ' 1003/2002 .* \./usr/bin/f2\.3$'
[ "$(grep -cE ' 100[1-8]/200[1-4] ' list)" = 32 ] || fail "owners of 32 files: $(cat list)"
# the saved state, in a second session
owner=$(fakeroot-sysv -i state stat -c %u:%g pkg/usr/bin/f4.8 2>&1) || fail "second session: $owner"
[ "$owner" = 1008:2004 ] || fail "the second session sees $owner"
# the daemon removes its objects when its last client is gone; run.sh sees to that
pass "a package with 32 owners, setuid and saved state"
