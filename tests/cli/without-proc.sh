# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Where /proc is not mounted: the commands and the library find each other, by whatever name they were
# called, and programs work. Called as without-proc.sh USYSV USER START.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" -eq 0 ] || skip 'mounting needs root'
unshare -m true 2>/dev/null || skip 'no namespaces to be had'
build=$(dirname "$usysv")
mkfifo "$work/in"
ln -s "$usysv" "$work/link"
cat >"$work/inside" <<'END'
umount -l /proc || exit 99
[ ! -e /proc/self ] || exit 99
exec "$@"
END

# away COMMAND...: with status 0 and nothing on standard error, without /proc.
away() {
	status 0 unshare -m sh "$work/inside" "$@"
	silent
}

away "$usysv" run --check -- true
away "$work/link" run -- true
away env PATH="$build:$PATH" usysv run -- true
# shellcheck disable=SC2016 # for the inner shell
away sh -c 'cd "$1" && ./usysv run -- true' sh "$build"

# The calls of all families, in a process and in its child.
away sh -c 'echo go | "$@"' sh "$usysv" run --check -- "$user" removed
for who in child parent; do
	echo $who
	for call in msgsnd msgrcv msgctl semop semop semctl shmctl shmat msgget semget shmget \
		msgget semget shmget; do
		echo $call 0
	done
	printf '%s\n' 'has text' 'shmdt 0' 'shmdt EINVAL'
done >"$work/expected"
sed 1d "$work/out" | diff "$work/expected" - >"$work/differ" || fail "$(cat "$work/differ")"

# usysvd is found: by usysv run that leaves a program behind, and by a program without usysv run.
exec 7<>"$work/in"
# shellcheck disable=SC2016
away "$usysv" run -n left -- sh -c '"$1" hold <"$2" >"$3" 2>/dev/null 7>&- &
	until [ -s "$3" ]; do sleep 0.02; done' sh "$user" "$work/in" "$work/id"
# shellcheck disable=SC2016
away env USYSV_NAMESPACE=alone LD_PRELOAD="$build/libusysv-preload.so" sh -c \
	'"$1" hold <"$2" >"$3" 2>/dev/null 7>&- &
	until [ -s "$3" ]; do sleep 0.02; done' sh "$user" "$work/in" "$work/id2"
has_reaper() {
	[ -n "$(field "$1" REAPER)" ]
}
until_true 10 has_reaper left
until_true 10 has_reaper alone
exec 7>&-
for name in left alone; do
	until_true 20 has_users $name 0
	status 0 "$usysv" rm --force $name
done
until_true 20 nothing_left
