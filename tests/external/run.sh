#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh BACKEND SCRIPT USYSV PRELOAD DENY: runs one of the scripts beside this file, that is a real
# program, on BACKEND:
#
#   kernel     the kernel's System V IPC
#   usysv      usysv run SCRIPT
#   named      the preloaded library alone, in a namespace with a name: usysvd serves it
#   no-kernel  as usysv, while the kernel's own calls fail (deny-ipc.c): nothing slips past
#
# Everything happens in namespaces of its own (IPC, processes, mounts with a new /dev/shm), so that
# runs never meet, a deadline ends all there is, and whatever is left over at the end is the run's:
# an object in the kernel, a file in /dev/shm, a process. Exit status 0, 77 for skipped, else
# failed.
set -u
SETTLE=${EXTERNAL_SETTLE:-10} # seconds for what cleans up in the background

if [ "$1" != --inside ]; then
	here=$(cd "$(dirname "$0")" && pwd)
	backend=$1
	script=$(realpath "$2")
	usysv=$(realpath -m "${3:-none}")
	preload=$(realpath -m "${4:-none}")
	deny=$(realpath -m "${5:-none}")
	# A script that takes long says so: "# limit: SECONDS".
	LIMIT=${EXTERNAL_LIMIT:-$(sed -n 's/^# limit: //p' "$script" | head -n 1)}
	LIMIT=${LIMIT:-150}
	enclosure=()
	for try in "unshare" "unshare -U -r"; do
		try="$try -i -m -p -f --mount-proc --kill-child=KILL"
		# shellcheck disable=SC2086  # words are meant to be split
		if $try true 2>/dev/null; then
			read -ra enclosure <<<"$try"
			break
		fi
	done
	if [ ${#enclosure[@]} = 0 ]; then
		echo "SKIP $(basename "$script" .sh): namespaces cannot be made here (unshare)"
		exit 77
	fi
	W=$(mktemp -d "${TMPDIR:-/tmp}/usysv-external.XXXXXX") || exit 1
	trap 'rm -rf "$W"' EXIT
	trap 'exit 130' INT TERM
	chmod 1777 "$W"
	export W
	timeout -k 5 "$LIMIT" "${enclosure[@]}" bash "$here/run.sh" --inside \
		"$backend" "$script" "$usysv" "$preload" "$deny" </dev/null
	status=$?
	[ $status != 124 ] || echo "FAIL $(basename "$script" .sh): not finished within $LIMIT s"
	exit $status
fi

shift
backend=$1
script=$2
usysv=$3
preload=$4
deny=$5
name=$(basename "$script" .sh)

mount -t tmpfs -o mode=1777,size=2g tmpfs /dev/shm || {
	echo "SKIP $name: no new /dev/shm can be mounted"
	exit 77
}
unset LD_PRELOAD "${!USYSV_@}"
export BACKEND=$backend
mkdir -m 1777 "$W/tmp"
export TMPDIR=$W/tmp

# A script that says "# as: USER" runs as that user, where this is possible: there are other users
# here than root, and that one can get at the programs. So programs and namespace have one user.
as=()
user=$(sed -n 's/^# as: //p' "$script" | head -n 1)
if [ -n "$user" ] && [ "$(id -u)" = 0 ] && grep -q 4294967295 /proc/self/uid_map &&
	id "$user" >/dev/null 2>&1; then
	as=(setpriv "--reuid=$(id -u "$user")" "--regid=$(id -g "$user")" --clear-groups)
	if ! "${as[@]}" test -r "$script" -a -x "$W"; then
		as=()
	elif [ "$backend" != kernel ] && ! "${as[@]}" test -x "$usysv" -a -r "$preload"; then
		as=()
	fi
fi

case $backend in
kernel) run=("${as[@]}" bash "$script") ;;
usysv) run=("${as[@]}" "$usysv" run -- bash "$script") ;;
named) run=("${as[@]}" env "LD_PRELOAD=$preload" USYSV_NAMESPACE=external bash "$script") ;;
no-kernel) run=("$deny" "${as[@]}" "$usysv" run -- bash "$script") ;;
*)
	echo "run.sh: no backend $backend" >&2
	exit 2
	;;
esac

# What is left over: objects in the kernel, files, processes (this shell is the first of them all).
leftovers() {
	local p
	for f in msg sem shm; do
		tail -n +2 "/proc/sysvipc/$f" | sed "s/^/kernel $f: /"
	done
	find /dev/shm -mindepth 1 ! -regex '/dev/shm/usysv-[0-9]+' | sed 's/^/file: /'
	for p in /proc/[0-9]*; do
		[ "$p" = /proc/$$ ] || [ "$p" = "/proc/$BASHPID" ] || [ ! -r "$p/cmdline" ] ||
			ps -o pid=,stat=,args= -p "${p#/proc/}" |
			grep -v "run.sh --inside\|ps -o pid" | sed 's/^/process: /'
	done
}

"${run[@]}"
status=$?

left=
for ((i = 0; i < SETTLE * 10; i++)); do
	left=$(leftovers)
	[ -n "$left" ] || break
	sleep 0.1
done
if [ -n "$left" ]; then
	echo "FAIL $name: left over after the run on $backend:"
	echo "$left"
	exit 1
fi
exit $status
