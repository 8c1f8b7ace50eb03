#!/bin/bash
# SPDX-License-Identifier: MIT
# demo.sh [BUILD]: real programs on usysv, watched from outside. What `make run` shows.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$(realpath "${1:-build}")
usysv=$build/usysv
[ -x "$usysv" ] || { echo "demo.sh: $usysv is not there, run make first" >&2; exit 1; }

# An IPC namespace of its own shows the kernel's side empty, whatever else runs on this machine.
if [ -z "${DEMO_ENCLOSED:-}" ]; then
	export DEMO_ENCLOSED=yes
	for enclosure in "unshare -i" "unshare -U -r -i"; do
		# shellcheck disable=SC2086  # words are meant to be split
		$enclosure true 2>/dev/null && exec $enclosure "$0" "$build"
	done
fi

work=$(mktemp -d) || exit 1
space=demo-$$
program=
cleanup() {
	[ -z "$program" ] || kill "$program" 2>/dev/null
	"$usysv" rm --force "$space" >/dev/null 2>&1
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

title() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || title() { printf '\n%s\n' "$*"; }
fail() { echo "demo: $*" >&2; exit 1; }
kernel_objects() { cat /proc/sysvipc/{msg,sem,shm} | grep -cv key; }

before=$(kernel_objects)

title "1. A Perl program (IPC::Semaphore), started with: usysv run -n $space -- perl demo.pl desk"
"$usysv" run -n "$space" -- perl scripts/demo.pl desk "$work/go" >"$work/desk" 2>&1 &
program=$!
for ((i = 0; i < 400; i++)); do
	grep -q asleep "$work/desk" && break
	kill -0 "$program" 2>/dev/null || break
	sleep 0.05
done
sed 's/^/   the program: /' "$work/desk"
grep -q asleep "$work/desk" || fail "the program did not get there"

title "   What usysv ls -n $space says meanwhile:"
"$usysv" ls -n "$space" | tee "$work/ls"
[ -s "$work/ls" ] || fail "usysv ls shows nothing"
title "   What the kernel has (ipcs -s):"
ipcs -s
[ "$(kernel_objects)" = "$before" ] || fail "the kernel has new objects"
touch "$work/go"
wait "$program" || fail "the program failed: $(cat "$work/desk")"
program=
sed -n '2,$s/^/   the program: /p' "$work/desk"

title "2. Two processes hand a ball to each other by semaphores"
"$usysv" run -- perl scripts/demo.pl ball || fail "they failed"

title "3. A process dies holding a semaphore"
"$usysv" run -- perl scripts/demo.pl dead || fail "it stayed taken"

title "4. fakeroot-sysv builds a Debian package with owners it could not give: two message queues and a"
echo "   semaphore between its library, in every program, and its daemon"
if command -v fakeroot-sysv >/dev/null && command -v dpkg-deb >/dev/null; then
	mkdir -p "$work/pkg/DEBIAN" "$work/pkg/var/lib/demo"
	printf 'Package: demo\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\nDescription: demo\n' \
		>"$work/pkg/DEBIAN/control"
	echo data >"$work/pkg/var/lib/demo/data"
	cat >"$work/build.sh" <<-'B'
		set -e
		chown -R 0:0 pkg
		chown 33:33 pkg/var/lib/demo/data
		dpkg-deb -b pkg demo.deb >/dev/null
	B
	(cd "$work" && "$usysv" run -- fakeroot-sysv sh build.sh) || fail "fakeroot failed"
	dpkg-deb --fsys-tarfile "$work/demo.deb" | tar --numeric-owner -tvf - >"$work/list"
	sed 's/^/   in the package: /' "$work/list"
	grep -q '33/33.*var/lib/demo/data' "$work/list" || fail "the owner did not get into the package"
	stat -c '   outside fakeroot data belongs to %u/%g' "$work/pkg/var/lib/demo/data"
else
	echo "   (needs the packages fakeroot and dpkg)"
fi

if command -v stress-ng >/dev/null; then
	title "5. stress-ng, verifying: usysv run -- stress-ng --sem-sysv 2 --verify"
	"$usysv" run -- stress-ng --temp-path "$work" --verify --metrics-brief --timeout 20s \
		--sem-sysv 2 --sem-sysv-ops 20000 >"$work/stress" 2>&1 ||
		fail "stress-ng failed: $(cat "$work/stress")"
	grep -E 'metrc.* sem-sysv|successful' "$work/stress" | sed 's/^/   /'
fi

title "Speed: the same program on the kernel and on usysv, nanoseconds, medians"
cc -O2 -D_GNU_SOURCE -o "$work/speed" scripts/demo-speed.c || fail "cannot compile"
timeout 100 "$work/speed" >"$work/kernel" || fail "on the kernel: $(cat "$work/kernel")"
timeout 100 "$usysv" run -- "$work/speed" >"$work/usysv" || fail "on usysv: $(cat "$work/usysv")"
printf '   %-30s %9s %9s %8s\n' '' kernel usysv ratio
paste -d '|' "$work/kernel" "$work/usysv" | awk -F '|' '{
	name = $1
	sub(/^[0-9]+ /, "", name)
	k = $1 + 0
	u = $2 + 0
	printf "   %-30s %9d %9d %7.1fx\n", name, k, u, u ? k / u : 0
}'
[ "$(kernel_objects)" = "$before" ] || fail "the kernel has new objects"
printf '\nTry your own: %s run -- PROGRAM\n' "${usysv#"$PWD"/}"
