#!/bin/bash
# SPDX-License-Identifier: MIT
# Perl's IPC::Semaphore: values, sleeping and waking, undo at death, errors, a lock among processes.
. "$(dirname "$0")/lib.sh"
need_family sem
cat >t.pl <<'P'
use strict;
use warnings;
use Common;
use Errno;
use IPC::Semaphore;
use IPC::SysV qw(IPC_CREAT IPC_EXCL IPC_NOWAIT IPC_PRIVATE SEM_UNDO ftok);

open my $file, '>', 'key' or die;
my $key = ftok('key', 1);
check(defined $key, 'ftok');
my $set = IPC::Semaphore->new($key, 6, IPC_CREAT | IPC_EXCL | 0600);
check($set, 'create');
check(!IPC::Semaphore->new($key, 6, IPC_CREAT | IPC_EXCL | 0600) && $!{EEXIST}, 'EEXIST');
check(IPC::Semaphore->new($key, 0, 0)->id == $set->id, 'found by its key');
check(!IPC::Semaphore->new($key, 7, 0) && $!{EINVAL}, 'too many asked for');

# values
check($set->setall(0, 1, 2, 3, 4, 32767), 'setall');
check(join(' ', $set->getall) eq '0 1 2 3 4 32767', 'getall');
check($set->setval(5, 9) && $set->getval(5) == 9, 'setval, getval');
check(!defined $set->setval(5, 32768) && $!{ERANGE}, 'ERANGE');
check($set->op(1, -1, 0, 2, 3, 0), 'two operations at once');
check($set->getval(1) == 0 && $set->getval(2) == 5, 'both done');
check(!$set->op(3, -3, IPC_NOWAIT, 0, -1, IPC_NOWAIT) && $!{EAGAIN}, 'EAGAIN');
check($set->getval(3) == 3, 'none done when one would block');
check($set->getpid(2) == $$, 'sempid');
my $stat = $set->stat;
check($stat->nsems == 6 && $stat->uid == $> && ($stat->mode & 0777) == 0600, 'stat');
check(abs($stat->otime - time) < 60 && abs($stat->ctime - time) < 60, 'times');
check(defined $set->set(mode => 0640) && ($set->stat->mode & 0777) == 0640, 'IPC_SET');

# sleepers
$set->setall((0) x 6);
my $waiter = child { check($set->op(0, -2, 0), 'sleep for a value') };
poll_until { $set->getncnt(0) == 1 } 'semncnt 1';
check($set->op(0, 1, 0), 'not enough');
check($set->getncnt(0) == 1, 'still asleep');
$set->op(0, 1, 0);
done($waiter, 'waiter for a value');
check($set->getval(0) == 0 && $set->getpid(0) == $waiter, 'the waiter took it');
$set->setval(0, 2);
$waiter = child { check($set->op(0, 0, 0), 'sleep for zero') };
poll_until { $set->getzcnt(0) == 1 } 'semzcnt 1';
$set->setval(0, 0);
done($waiter, 'waiter for zero');
$waiter = child {
	local $SIG{USR1} = sub { };
	check(!$set->op(0, -1, 0) && $!{EINTR}, 'EINTR');
};
poll_until { $set->getncnt(0) == 1 } 'semncnt 1 again';
kill USR1 => $waiter;
done($waiter, 'interrupted waiter');
check($set->getncnt(0) == 0, 'nobody waits any more');

# undo, seen by the parent no later than the death
$set->setall(5, 5, 5, 5, 5, 5);
my $pid = child {
	$set->op(0, -1, SEM_UNDO, 1, 2, SEM_UNDO);
	$set->op(0, -1, SEM_UNDO);
	$set->op(2, -1, 0);
	kill KILL => $$;
};
waitpid $pid, 0;
check(($? & 127) == 9, 'killed');
check(join(' ', $set->getall) eq '5 5 4 5 5 5', 'undone: ' . join ' ', $set->getall);

# a lock among processes
my ($kids, $rounds) = (4, 500);
open my $count, '+>', 'count' or die;
syswrite $count, sprintf '%08d', 0;
$set->setval(0, 1);
my @kids = map {
	child {
		open my $own, '+<', 'count' or die;
		for (1 .. $rounds) {
			check($set->op(0, -1, SEM_UNDO), 'lock');
			sysseek $own, 0, 0;
			sysread $own, my $n, 8;
			sysseek $own, 0, 0;
			syswrite $own, sprintf '%08d', $n + 1;
			check($set->op(0, 1, SEM_UNDO), 'unlock');
		}
	}
} 1 .. $kids;
done($_, 'locker') for @kids;
sysseek $count, 0, 0;
sysread $count, my $n, 8;
check($n == $kids * $rounds, "counted $n");

# handed to and fro
$set->setall(0, 0, 0, 0, 0, 0);
my $echo = child {
	for (1 .. 1000) {
		check($set->op(0, -1, 0) && $set->op(1, 1, 0), 'echo');
	}
};
for (1 .. 1000) {
	check($set->op(0, 1, 0) && $set->op(1, -1, 0), 'call');
}
done($echo, 'echo');

# removal
$waiter = child { check(!$set->op(0, -1, 0) && $!{EIDRM}, 'EIDRM') };
poll_until { $set->getncnt(0) == 1 } 'semncnt 1 for the last time';
check($set->remove, 'remove');
done($waiter, 'waiter on a removed set');
check(!defined $set->getval(0) && ($!{EINVAL} || $!{EIDRM}), 'gone');
check(!IPC::Semaphore->new($key, 0, 0) && $!{ENOENT}, 'ENOENT');
print "done\n";
P
says_done t.pl
pass "values, sleepers, undo, lock among 4 processes, hand-over"
