#!/bin/bash
# SPDX-License-Identifier: MIT
# Perl's IPC::SharedMem and its own shmread and shmwrite, which attach for each call;
# IPC::ShareLite, which chains segments and locks them with semaphores.
. "$(dirname "$0")/lib.sh"
need_family shm
need_family sem
cat >t.pl <<'P'
use strict;
use warnings;
use Common;
use Errno;
use IPC::Semaphore;
use IPC::SharedMem;
use IPC::SysV qw(IPC_CREAT IPC_EXCL IPC_PRIVATE IPC_RMID IPC_SET IPC_STAT SEM_UNDO SHM_RDONLY ftok
	memread memwrite shmat shmdt);
use POSIX ();

open my $file, '>', 'key' or die;
my $key = ftok('key', 1);
my $size = 70000;
my $m = IPC::SharedMem->new($key, $size, IPC_CREAT | IPC_EXCL | 0600);
check($m, 'create');
check(!IPC::SharedMem->new($key, $size, IPC_CREAT | IPC_EXCL | 0600) && $!{EEXIST}, 'EEXIST');
check(!IPC::SharedMem->new($key, $size + 1, 0) && $!{EINVAL}, 'larger than it is');
check(IPC::SharedMem->new($key, 1, 0)->id == $m->id, 'found by its key');
my $stat = $m->stat;
check($stat->segsz == $size && $stat->nattch == 0 && $stat->cpid == $$ && $stat->lpid == 0, 'stat');
check($stat->atime == 0 && $stat->dtime == 0 && abs($stat->ctime - time) < 60, 'times');
check($stat->uid == $> && ($stat->mode & 0777) == 0600, 'owner and mode');

# contents, the last byte too
check($m->read(0, $size) eq "\0" x $size, 'new memory is 0');
check($m->write('end', $size - 3, 3) && $m->read($size - 3, 3) eq 'end', 'the last bytes');
check($m->write('x', 10, 5) && $m->read(9, 7) eq "\0x\0\0\0\0\0", 'padded');
check($m->attach, 'attach');
$stat = $m->stat;
check($stat->nattch == 1 && $stat->lpid == $$ && abs($stat->atime - time) < 60, 'attached');
check($m->write('here', 4096, 4) && $m->read(4096, 4) eq 'here', 'through the attach');

# children inherit the attach; who is killed loses it
done(child {
	check($m->stat->nattch == 2, 'inherited');
	check($m->write('child', 8192, 5), 'written by the child');
}, 'heir');
check($m->read(8192, 5) eq 'child' && $m->stat->nattch == 1, 'seen by the parent');
my @kids = map { child { sleep 60 while 1 } } 1 .. 5;
poll_until { $m->stat->nattch == 6 } 'nattch 6';
kill KILL => @kids;
waitpid $_, 0 for @kids;
check($m->stat->nattch == 1, 'nattch after 5 were killed: ' . $m->stat->nattch);

# read-only
my $other = IPC::SharedMem->new($key, 0, 0);
check($other->attach(SHM_RDONLY) && $m->stat->nattch == 2, 'attach twice');
check($other->read($size - 3, 3) eq 'end', 'read through the other');
my $pid = child { $other->write('x', 0, 1) };
waitpid $pid, 0;
check(($? & 127) == 11, "a write to a read-only attach is SIGSEGV: $?");
check($other->detach && $m->stat->nattch == 1, 'detach');

# exec ends attaches
pipe my $here, my $there or die;
$pid = fork // die;
if (!$pid) {
	open STDOUT, '>&', $there;
	exec 'sh', '-c', 'echo here; exec sleep 60' or POSIX::_exit(1);
}
check(scalar(<$here>) eq "here\n", 'exec');
poll_until { $m->stat->nattch == 1 } 'exec detaches';
kill KILL => $pid;
waitpid $pid, 0;

# a counter that is shared and locked
my $lock = IPC::Semaphore->new(IPC_PRIVATE, 1, IPC_CREAT | 0600);
$lock->setval(0, 1);
$m->write(pack('Q', 0), 0, 8);
@kids = map {
	child {
		for (1 .. 150) {
			check($lock->op(0, -1, SEM_UNDO), 'lock');
			# one through the attach that it has, one that attaches for each call
			$m->write(pack('Q', 1 + unpack 'Q', $m->read(0, 8)), 0, 8);
			my $n;
			shmread($m->id, $n, 0, 8) or check(0, 'shmread');
			shmwrite($m->id, pack('Q', 1 + unpack 'Q', $n), 0, 8)
				or check(0, 'shmwrite');
			check($lock->op(0, 1, SEM_UNDO), 'unlock');
		}
	}
} 1 .. 4;
done($_, 'counter') for @kids;
my $n = unpack 'Q', $m->read(0, 8);
check($n == 1200, "counted $n");
check($lock->remove, 'remove the lock');

# removed while attached: its memory stays, its key is free
my $stayer = child {
	$m->write('I', 100, 1);
	poll_until { $m->read(101, 1) eq 'Y' } 'told to go on';
	check($m->read($size - 3, 3) eq 'end', 'contents after the removal');
};
poll_until { $m->read(100, 1) eq 'I' } 'there is another';
check($m->remove, 'remove');
check(!IPC::SharedMem->new($key, 0, 0) && $!{ENOENT}, 'the key is free');
check(($m->stat->mode & 01000) && $m->stat->nattch == 2, 'marked');
my $again = IPC::SharedMem->new($key, 100, IPC_CREAT | IPC_EXCL | 0600);
check($again && $again->id != $m->id, 'another with that key');
check($again->read(0, 100) eq "\0" x 100, 'with memory of its own');
check($again->remove, 'remove that');
$m->write('Y', 101, 1);
done($stayer, 'who stayed');
check($m->stat->nattch == 1, 'the last one');
check($m->detach, 'the last detach');
check(!$m->stat && ($!{EINVAL} || $!{EIDRM}), 'gone');

# the functions without an object
my $id = shmget IPC_PRIVATE, 5000, 0600;
check(defined $id, 'shmget');
my $text;
check(shmwrite($id, 'text', 4990, 10) && shmread($id, $text, 4988, 8), 'shmwrite, shmread');
check($text eq "\0\0text\0\0", 'what shmread has read');
check(!shmread($id, $text, 4999, 2) && !shmwrite($id, 'xx', 4999, 2), 'beyond the end');
my $address = shmat $id, undef, 0;
check(memwrite($address, 'mem', 1, 3) && memread($address, $text, 0, 5), 'memwrite, memread');
check($text eq "\0mem\0", 'what memread has read');
my $ds = '';
check(shmctl($id, IPC_STAT, $ds) && unpack('x88 J', $ds) == 1, 'nattch of IPC_STAT');
substr $ds, 20, 2, pack 'S', 0640;
check(shmctl($id, IPC_SET, $ds) && shmctl($id, IPC_STAT, $ds), 'IPC_SET');
check(unpack('x20 S', $ds) == 0640, 'the mode that was set');
check(defined shmdt($address) && shmctl($id, IPC_RMID, 0), 'remove');
check(!defined shmctl($id, IPC_STAT, $ds) && ($!{EINVAL} || $!{EIDRM}), 'gone');
check(!defined shmget($key, 100, 0) && $!{ENOENT}, 'ENOENT');
check(!defined shmget(IPC_PRIVATE, 0, 0600) && $!{EINVAL}, 'size 0');
print "done\n";
P
says_done t.pl
no_segments || fail "segments are left: $(segments)"
lite=
if perl -MIPC::ShareLite -e 1 2>/dev/null; then
	cat >lite.pl <<'P'
use strict;
use warnings;
use IPC::ShareLite qw(:lock);
use POSIX ();
alarm 60;
my @share = (-key => 0x75737976, -size => 4096);
my $share = IPC::ShareLite->new(@share, -create => 'yes', -exclusive => 'yes', -destroy => 'yes',
	-mode => 0600) or die "create: $!\n";
# longer than a segment: a chain of them
my $long = join ',', 1 .. 20000;
$share->store($long);
$share->num_segments > 20 or die 'segments: ', $share->num_segments, "\n";
my $pid = fork // die;
if (!$pid) {
	alarm 60;
	my $own = IPC::ShareLite->new(@share, -create => 'no') or die "open: $!\n";
	$own->fetch eq $long or die "fetch\n";
	$own->store('short');
	POSIX::_exit(0);
}
waitpid $pid, 0;
$? == 0 or die "child: $?\n";
$share->fetch eq 'short' or die "fetch of the short one\n";
$share->store(0);
for (1 .. 4) {
	next if fork // die;
	alarm 60;
	my $own = IPC::ShareLite->new(@share, -create => 'no') or die "open: $!\n";
	for (1 .. 200) {
		$own->lock(LOCK_EX) or die "lock: $!\n";
		$own->store($own->fetch + 1);
		$own->unlock or die "unlock: $!\n";
	}
	POSIX::_exit(0);
}
for (1 .. 4) {
	wait;
	$? == 0 or die "counter: $?\n";
}
$share->fetch == 800 or die 'counted ', $share->fetch, "\n";
undef $share;
print "done\n";
P
	says_done lite.pl
	no_segments || fail "IPC::ShareLite leaves segments: $(segments)"
	[ -z "$(sem_sets)" ] || fail "IPC::ShareLite leaves semaphores"
	lite=", IPC::ShareLite"
fi
pass "contents, attaches of the dead, a counter of 4 processes, removal$lite"
