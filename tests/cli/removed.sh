# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# A namespace whose files are removed by other means (rm -r) under running programs: who enters from
# then on makes a new one; who merely sees another tree (chroot) stays where it is.
. "$(dirname "$0")/lib.sh"
command -v perl >/dev/null || skip 'needs perl'
cat >"$work/program" <<'P'
use IPC::SysV qw(IPC_PRIVATE IPC_CREAT);
use strict;
use warnings;
$| = 1;
my $old = semget 0x55, 1, IPC_CREAT | 0600;
defined $old or die "semget: $!\n";
semop $old, pack "s!3", 0, 1, 0 or die "semop: $!\n";
print "made\n";
<STDIN>;
# A child enters the namespace anew ...
my $pid = fork;
if (!$pid) {
	my $new = semget 0x55, 1, 0600;
	defined $new and die "the removed set is there\n" if $ARGV[0] eq "new";
	defined $new or die "the set is not there: $!\n" if $ARGV[0] eq "same";
	defined semget 0x56, 1, IPC_CREAT | 0600 or die "semget: $!\n";
	exit 0;
}
waitpid $pid, 0;
exit 1 if $?;
# ... its parent, which is in it, goes on.
defined semctl $old, 0, 12, 0 or die "GETVAL: $!\n";
P
preload=$(dirname "$usysv")/libusysv-preload.so

# run WHAT: starts the program; its standard input is descriptor 7.
run() {
	rm -f "$work/in" "$work/out"
	mkfifo "$work/in"
	exec 7<>"$work/in"
	USYSV_NAMESPACE=lost LD_PRELOAD=$preload perl "$work/program" "$1" \
		<"$work/in" >"$work/out" 2>"$work/err" 7>&- &
	pid=$!
	started $pid
	until_true 20 one_line "$work/out"
}

run same
echo >&7
wait $pid || fail "in place: $(cat "$work/err")"
exec 7>&-
status 0 "$usysv" rm --force lost

run new
rm -r "$root/lost"
echo >&7
wait $pid || fail "removed: $(cat "$work/err")"
exec 7>&-
USYSV_NAMESPACE=lost LD_PRELOAD=$preload status 0 "$user" get 0x56
[ -e "$root/lost/region" ] || fail 'nobody made a new namespace'
USYSV_NAMESPACE=lost LD_PRELOAD=$preload "$user" get 0x55 | grep -q ENOENT ||
	fail 'the removed set is in the new namespace'
status 0 "$usysv" rm --force lost

# chroot: only for root.
if [ "$(id -u)" = 0 ]; then
	sed -i "s/^<STDIN>;/<STDIN>; chroot '\/proc' or die;/" "$work/program"
	run same
	echo >&7
	wait $pid || fail "chroot: $(cat "$work/err")"
	exec 7>&-
	status 0 "$usysv" rm --force lost
fi
# A child that inherits an attach stays where it is written down, and can detach it.
cat >"$work/program" <<'P'
use IPC::SysV qw(IPC_PRIVATE shmat shmdt);
use strict;
use warnings;
$| = 1;
my $old = shmget IPC_PRIVATE, 4096, 0600;
my $at = defined $old ? shmat($old, undef, 0) : undef;
defined $at or die "shmat: $!\n";
print "made\n";
<STDIN>;
my $pid = fork;
if ($pid) {
	waitpid $pid, 0;
	exit 1 if $?;
}
my $who = $pid ? "parent" : "child";
defined shmdt $at or die "$who: shmdt: $!\n";
defined shmdt $at and die "$who: it can be detached twice\n";
P
run shm
rm -r "$root/lost"
echo >&7
wait $pid || fail "shm: $(cat "$work/err")"
exec 7>&-
rmdir "$root" || fail "there is a new namespace: $(ls "$root")"
