# SPDX-License-Identifier: MIT
# What the programs in Perl share: checks, and children that do not run for ever.
package Common;
use strict;
use warnings;
use Exporter qw(import);
use IO::Handle;
use POSIX ();
use Time::HiRes qw(time sleep);

our @EXPORT = qw(check child done poll_until);

sub check {
	my ($true, $what) = @_;
	return if $true;
	STDOUT->printflush("false: $what ($!)\n");
	POSIX::_exit(1);
}

sub poll_until(&$) {
	my ($condition, $what) = @_;
	my $end = time + 20;
	while (!$condition->()) {
		check(time < $end, "$what in the end");
		sleep 0.01;
	}
}

sub child(&) {
	my $code = shift;
	my $pid = fork // die "fork: $!";
	return $pid if $pid;
	alarm 60;
	$code->();
	POSIX::_exit(0);
}

sub done {
	my ($pid, $what) = @_;
	waitpid $pid, 0;
	check($? == 0, "$what: status $?");
}

1;
