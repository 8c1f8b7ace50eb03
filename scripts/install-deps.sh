#!/bin/bash
# SPDX-License-Identifier: MIT
# install-deps.sh [--try] SET...: installs the Debian packages that are missing of the sets
#
#   build  what usysv is built with
#   demo   what `make run` shows
#   check  what `make check` needs in addition
#
# Asks for nothing and does nothing when all is there. Without root it uses sudo. With --try it never
# fails: what is missing then shows as skipped tests.
set -u
cd "$(dirname "$0")/.." || exit 1

try=
[ "${1:-}" = --try ] && { try=yes; shift; }

declare -A sets=(
	[build]='gcc libc6-dev make meson ninja-build pkg-config libsmartcols-dev scdoc'
	[demo]='perl python3 python3-sysv-ipc util-linux procps fakeroot dpkg tar'
	[check]='clang clang-tidy clang-format shellcheck python3 perl git libcmocka-dev util-linux
		procps gdb perl-modules-5.36 python3-sysv-ipc php8.2-cli apache2-bin stress-ng rt-tests
		fakeroot dpkg tar strace valgrind spin busybox libipc-sharelite-perl postgresql-15 xvfb x11-apps
		x11-utils x11-xserver-utils libx11-dev libxext-dev'
)

wanted=()
for set in "$@"; do
	[ -n "${sets[$set]:-}" ] || { echo "install-deps.sh: no set $set" >&2; exit 2; }
	read -r -d '' -a packages <<<"${sets[$set]}"
	wanted+=("${packages[@]}")
done

missing=()
for package in $(printf '%s\n' "${wanted[@]}" | sort -u); do
	status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)
	[ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

give_up() {
	echo "install-deps.sh: $*; missing: ${missing[*]}" >&2
	[ -n "$try" ] && exit 0
	exit 1
}

command -v apt-get >/dev/null || give_up "this is no Debian, install the counterparts by hand"
as_root=()
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || give_up "neither root nor sudo"
	as_root=(sudo)
	# in a run that nobody watches do not wait for a password
	[ -t 0 ] || as_root=(sudo -n)
fi
as_root+=(env DEBIAN_FRONTEND=noninteractive)

echo "installing: ${missing[*]}"
"${as_root[@]}" apt-get update -q >/dev/null || echo "apt-get update failed, going on" >&2
if "${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}" </dev/null; then
	exit 0
fi
# One package that this release lacks should not keep out the others.
for package in "${missing[@]}"; do
	"${as_root[@]}" apt-get install -q -y --no-install-recommends "$package" </dev/null >/dev/null ||
		echo "could not install $package" >&2
done
missing_still=()
for package in "${missing[@]}"; do
	dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
		missing_still+=("$package")
done
[ ${#missing_still[@]} = 0 ] && exit 0
missing=("${missing_still[@]}")
give_up "apt-get failed"
