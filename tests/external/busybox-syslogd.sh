#!/bin/bash
# SPDX-License-Identifier: MIT
# busybox syslogd -C and logread: the log is a ring in a segment with a well-known key, and two
# semaphores with SEM_UNDO keep reader and writer apart. Readers are killed, one of them while it
# keeps the writer out.
. "$(dirname "$0")/lib.sh"
need busybox perl
for applet in syslogd logread logger; do
	busybox --list | grep -qx $applet || skip "busybox lacks $applet"
done
grep -q 'ld-\(linux\|musl\)' "$(command -v busybox)" || [ "$BACKEND" = kernel ] ||
	skip "busybox is static, which a preloaded library does not reach"
need_family sem
need_family shm
daemon=
follower=
trap '[ -z "$daemon$follower" ] || kill -KILL $daemon $follower 2>/dev/null' EXIT

trouble() {
	cat out 2>/dev/null
	segments
	fail "$*"
}

# A folder /dev of its own, so that its socket /dev/log is nobody else's
mkdir -p dev/shm
for node in null zero full random urandom; do
	touch dev/$node
	mount --bind /dev/$node dev/$node 2>out || skip "nothing can be mounted here: $(cat out)"
done
{ mount --bind /dev/shm dev/shm && mount --rbind dev /dev; } || trouble "mount"

# say FIRST LAST TEXT: numbered lines for the log
cat >say.pl <<'P'
use strict;
use warnings;
use IO::Socket::UNIX;
my ($first, $last, $text) = @ARGV;
my $s = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Peer => '/dev/log') or die "/dev/log: $!\n";
for ($first .. $last) {
	defined $s->send("<13>trial: $text number $_") or die "send: $!\n";
}
P
say() { perl say.pl "$@" >out 2>&1 || trouble "say $*"; }
logged() { busybox logread | grep -q "$1\$"; }
followed() { grep -q "$1\$" follow; }
attached_by() { [ "$(segments | awk '{ print $3 }')" = "$1" ]; }
lines() { busybox logread >now || trouble "logread: status $?"; grep -c "$1" now; }

# reader.pl: locks the ring as logread does, says so, and says how many wait for the end of that.
cat >reader.pl <<'P'
use strict;
use warnings;
use IPC::SysV qw(SEM_UNDO);
$| = 1;
my $id = semget 0x414e4547, 0, 0;
defined $id or die "semget: $!\n";
semop $id, pack 's!6', 1, 0, 0, 0, 1, SEM_UNDO or die "semop: $!\n";
print "locked\n";
my $before = -1;
for (my $end = time + 60; time < $end; select undef, undef, undef, 0.02) {
	my $waiting = semctl $id, 0, 15, 0;
	print "waiting ", $waiting + 0, "\n" if $waiting != $before;
	$before = $waiting;
}
P

busybox syslogd -n -C16 -S >out 2>&1 &
daemon=$!
until_true 20 test -S /dev/log || trouble "no /dev/log"
! busybox logread 2>/dev/null | grep -q trial || trouble "the log is not new"
until_true 10 attached_by 1 || trouble "the ring should be attached by the daemon alone"
[ "$(sem_sets | wc -l)" = 1 ] || trouble "semaphore sets: $(sem_sets)"

say 1 19 first
busybox logger -t trial "first number 20"
until_true 20 logged 'first number 20' || trouble "the last message is not in the log"
n=$(lines 'first number')
[ "$n" = 20 ] || trouble "$n of 20 messages are in the log"
grep -o 'first number [0-9]*' now | cut -d' ' -f3 >numbers
seq 1 20 | cmp -s - numbers || trouble "not in order: $(cat numbers)"

# Who follows gets what is logged meanwhile
busybox logread -F >follow 2>&1 &
follower=$!
until_true 20 followed 'first number 20' || trouble "logread -F: $(cat follow)"
attached_by 2 || trouble "the ring should be attached by daemon and follower"
say 1 5 second
until_true 20 followed 'second number 5' || trouble "logread -F missed a message: $(cat follow)"
[ "$(grep -c 'second number' follow)" = 5 ] || trouble "logread -F: $(cat follow)"

# Readers that are killed, and one that has locked the writer out: that one's lock goes with it
for n in 1 2 3 4 5 6 7 8; do
	busybox logread >/dev/null &
	kill -KILL $!
	wait $! 2>/dev/null
done
perl reader.pl >locked 2>&1 &
reader=$!
until_true 20 grep -q locked locked || trouble "lock: $(cat locked)"
say 1 3 third
until_true 20 grep -q 'waiting 1' locked ||
	trouble "the daemon does not wait for a reader: $(cat locked)"
! logged 'third number 1' || trouble "logged into a locked ring"
kill -KILL $reader
wait $reader 2>/dev/null
until_true 20 logged 'third number 3' || trouble "the daemon waits for a dead reader"
[ "$(lines 'third number')" = 3 ] || trouble "messages were lost: $(cat now)"

# Twice round the ring
say 1 600 "a longer text that fills the ring"
until_true 30 logged 'number 600' || trouble "the last message is not in the ring"
n=$(lines 'fills the ring number')
{ [ "$n" -ge 150 ] && [ "$n" -lt 500 ]; } || trouble "$n messages are in the ring"
! grep -q 'third number' now || trouble "old messages are in the ring"
grep -o 'ring number [0-9]*$' now | cut -d' ' -f3 | tail -n 150 >numbers
seq 451 600 | cmp -s - numbers || trouble "not in order: $(cat numbers)"

kill "$follower"
wait "$follower" 2>/dev/null
follower=
until_true 10 attached_by 1 || trouble "the follower has the ring attached"
kill -TERM "$daemon"
wait "$daemon" 2>/dev/null
daemon=
until_true 10 no_segments || trouble "the ring is left"
[ -z "$(sem_sets)" ] || trouble "the semaphores are left"
! busybox logread >out 2>&1 || trouble "logread without a log"
pass "20 messages in order, follower, killed readers, a full ring"
