#!/bin/bash
# SPDX-License-Identifier: MIT
# deny-selftest.sh DENY: the filter bites, and only where it should.
set -u
deny=$(realpath "$1")
check='
	my %calls = (
		semget => [29 => 0, 1, 0600], semop => [65 => 0, 0, 0],
		semctl => [66 => 0, 0, 0, 0], semtimedop => [220 => 0, 0, 0, 0],
		msgget => [68 => 0, 0600], msgsnd => [69 => 0, 0, 0, 04000],
		msgrcv => [70 => 0, 0, 0, 0, 04000], msgctl => [71 => 0, 0, 0],
		shmget => [29 => 0, 4096, 0600], shmat => [30 => 0, 0, 0], shmdt => [67 => 0],
		shmctl => [31 => 0, 0, 0],
	);
	$calls{semget}[0] = 64;
	for (sort keys %calls) {
		my $r = syscall $calls{$_}[0], @{$calls{$_}}[1 .. $#{$calls{$_}}];
		print "$_\n" if $r == -1 && $!{EPERM};
	}'
case $(uname -m) in
x86_64) ;;
*)
	echo "SKIP: the numbers of the calls are known for x86-64 only"
	exit 77
	;;
esac
unshare=(unshare -i)
"${unshare[@]}" true 2>/dev/null || unshare=(unshare -U -r -i)
"${unshare[@]}" true 2>/dev/null || {
	echo "SKIP: no IPC namespace can be made here"
	exit 77
}
n=$("${unshare[@]}" perl -MErrno -e "$check" | wc -l)
[ "$n" = 0 ] || { echo "FAIL: $n calls were denied without the filter"; exit 1; }
n=$("${unshare[@]}" "$deny" perl -MErrno -e "$check" | wc -l)
[ "$n" = 12 ] || { echo "FAIL: $n of 12 calls were denied"; exit 1; }
"$deny" sh -c 'exit 5'
[ $? = 5 ] || { echo "FAIL: the status of the program was lost"; exit 1; }
echo "PASS"
