#!/bin/bash
# SPDX-License-Identifier: MIT
# Perl's IPC::Msg: order, receive by type, sleepers, limits and errors.
. "$(dirname "$0")/lib.sh"
need_family msg
cat >t.pl <<'P'
use strict;
use warnings;
use Common;
use Errno;
use IPC::Msg;
use IPC::SysV qw(IPC_CREAT IPC_EXCL IPC_NOWAIT MSG_NOERROR ftok);

open my $file, '>', 'key' or die;
my $key = ftok('key', 1);
my $q = IPC::Msg->new($key, IPC_CREAT | IPC_EXCL | 0600);
check($q, 'create');
check(!IPC::Msg->new($key, IPC_CREAT | IPC_EXCL | 0600) && $!{EEXIST}, 'EEXIST');

# order and types
my $text;
$q->snd($_, "text of $_") or check(0, "send $_") for 5, 3, 3, 8, 1;
check($q->stat->qnum == 5, 'qnum');
check($q->rcv($text, 100, 3) == 3 && $text eq 'text of 3', 'by type');
check($q->rcv($text, 100, -3) == 1 && $text eq 'text of 1', 'the lowest');
check($q->rcv($text, 100, 0) == 5 && $text eq 'text of 5', 'the first');
check(!$q->rcv($text, 2, 8, IPC_NOWAIT) && $!{E2BIG}, 'E2BIG');
check($q->rcv($text, 4, 8, MSG_NOERROR) == 8 && $text eq 'text', 'cut off');
check(!$q->rcv($text, 100, 77, IPC_NOWAIT) && $!{ENOMSG}, 'ENOMSG');
check($q->rcv($text, 100) == 3 && $q->stat->qnum == 0, 'empty');
check($q->stat->lspid == $$ && $q->stat->lrpid == $$, 'pids');

# sleepers of several types, each gets its own
my @kids = map {
	my $type = $_;
	child {
		check($q->rcv($text, 100, $type) == $type && $text eq "for $type", "receive $type");
		check($q->snd(100 + $type, 'thanks'), 'answer');
	}
} 11 .. 14;
$q->snd($_, "for $_") for 14, 12, 11, 13;
$q->rcv($text, 100, 100 + $_) == 100 + $_ or check(0, "answer $_") for 11 .. 14;
done($_, 'receiver') for @kids;

# a full queue: the sender sleeps until there is room
$q->set(qbytes => 2000) or check(0, 'IPC_SET');
check($q->snd(1, 'x' x 1500), 'first');
check(!$q->snd(1, 'y' x 1000, IPC_NOWAIT) && $!{EAGAIN}, 'EAGAIN');
my $sender = child { check($q->snd(2, 'z' x 1000), 'sleeping sender') };
check($q->rcv($text, 4000, 1) == 1 && length $text == 1500, 'make room');
check($q->rcv($text, 4000, 2) == 2 && $text eq 'z' x 1000, 'let in');
done($sender, 'sender');

# many to one
@kids = map {
	my $n = $_;
	child { $q->snd($n, "$n $_") or check(0, "send $_") for 1 .. 500 }
} 1 .. 4;
my @last = (0) x 5;
for (1 .. 2000) {
	my $type = $q->rcv($text, 100, 0);
	check($type && $text eq $type . ' ' . ++$last[$type], "in order from $type: $text");
}
done($_, 'one of many') for @kids;

my $waiter = child { check(!$q->rcv($text, 100, 1) && ($!{EIDRM} || $!{EINVAL}), 'EIDRM') };
check($q->remove, 'remove');
done($waiter, 'receiver on a removed queue');
check(!IPC::Msg->new($key, 0) && $!{ENOENT}, 'ENOENT');
print "done\n";
P
says_done t.pl
pass "order, types, sleepers, full queue, 4 to 1"
