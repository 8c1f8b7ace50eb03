#!/bin/sh
# SPDX-License-Identifier: MIT
# on-huge.sh COMMAND [ARG...]: runs a command where huge pages are to be had: eight more of them on
# demand, in a hugetlbfs of its own, $HUGE_MOUNT, that must be empty again at the end. How many
# there may be is the machine's: that takes root, one such run at a time, and is set back however
# the run ends. Exit status 77 (skipped) where it cannot be.
limit=/proc/sys/vm/nr_overcommit_hugepages
more=8

skip() {
	echo "on-huge.sh: $*" >&2
	exit 77
}

if [ "${1:-}" = --inside ]; then
	shift
	# others, which a program would find first
	while read -r _ where type _; do
		[ "$type" = hugetlbfs ] && umount "$where"
	done </proc/mounts
	mount -t hugetlbfs hugetlbfs "$HUGE_MOUNT" || skip "no hugetlbfs"
	"$@"
	status=$?
	left=$(ls -A "$HUGE_MOUNT")
	if [ -n "$left" ]; then
		echo "on-huge.sh: left in the hugetlbfs: $left" >&2
		exit 1
	fi
	exit $status
fi

[ "$(id -u)" -eq 0 ] || skip "not root"
[ -w $limit ] || skip "no huge pages"
unshare -m true 2>/dev/null || skip "no mount namespace can be made here"
exec 9<$limit
flock 9 || skip "no lock"
old=$(cat $limit)
HUGE_MOUNT=$(mktemp -d) || exit 1
export HUGE_MOUNT
trap 'echo "$old" >$limit; rmdir "$HUGE_MOUNT"' EXIT
trap 'exit 1' HUP INT TERM
echo $((old + more)) 2>/dev/null >$limit || skip "the number of huge pages cannot be changed"
unshare -m -- "$0" --inside "$@" 9<&-
