#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# A program that knows nothing of usysv: four processes share one desk, and two processes hand a
# ball to each other, by way of Perl's IPC::Semaphore. For scripts/demo.sh.
#
#   demo.pl desk GO    sleeps with three waiting for the desk until the file GO is there
#   demo.pl ball       twelve throws
#   demo.pl dead       the holder of a semaphore is killed -9
use strict;
use warnings;
use IPC::Semaphore;
use IPC::SysV qw(IPC_CREAT IPC_PRIVATE SEM_UNDO);
use Time::HiRes qw(sleep time);
$| = 1;

my ($what, $go) = @ARGV;
my $set = IPC::Semaphore->new(IPC_PRIVATE, 2, IPC_CREAT | 0600) or die "semget: $!\n";
END { $set->remove if $set && !$ENV{DEMO_CHILD} }

sub child(&) {
	my $code = shift;
	my $pid = fork // die "fork: $!\n";
	return $pid if $pid;
	$ENV{DEMO_CHILD} = 1;
	alarm 60;
	$code->();
	exit 0;
}

sub poll_until(&) {
	my $condition = shift;
	my $end = time + 20;
	until ($condition->()) {
		die "waited in vain\n" if time > $end;
		sleep 0.02;
	}
}

if ($what eq 'desk') {
	my @kids = map {
		child {
			$set->op(0, -1, SEM_UNDO) or die "semop: $!\n";
			$set->op(0, 1, SEM_UNDO) or die "semop: $!\n";
		}
	} 1 .. 3;
	poll_until { $set->getncnt(0) == 3 };
	print "set ", $set->id, ": value ", $set->getval(0), ", ", $set->getncnt(0),
		" processes asleep on it\n";
	poll_until { -e $go };
	$set->setval(0, 1);
	for (@kids) {
		waitpid $_, 0;
		die "a child failed\n" if $?;
	}
	print "all three had their turn\n";
} elsif ($what eq 'ball') {
	my $other = child {
		for (1 .. 6) {
			$set->op(0, -1, 0) or die "semop: $!\n";
			print "    $$ has the ball\n";
			$set->op(1, 1, 0) or die "semop: $!\n";
		}
	};
	for (1 .. 6) {
		print "$$ has the ball\n";
		$set->op(0, 1, 0, 1, 0, 0) or die "semop: $!\n";
		$set->op(1, -1, 0) or die "semop: $!\n";
	}
	waitpid $other, 0;
	die "the other failed\n" if $?;
} else {
	$set->setval(0, 1);
	my $holder = child {
		$set->op(0, -1, SEM_UNDO);
		kill KILL => $$;
	};
	waitpid $holder, 0;
	my $value = $set->getval(0);
	print "process $holder took the semaphore and was killed -9; its value now: $value\n";
	die "not given back\n" unless $value == 1;
}
