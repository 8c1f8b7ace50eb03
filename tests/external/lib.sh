# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the scripts of real programs share; run.sh starts them. W is a folder for their files, empty
# at first and removed afterwards; BACKEND says on what they run. A script ends by pass, fail or
# skip.
set -u
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 1
# shellcheck disable=SC2154  # W comes from run.sh
cd "$W" || exit 1
NAME=$(basename "$0" .sh)

fail() {
	echo "FAIL $NAME on $BACKEND: $*"
	exit 1
}

skip() {
	echo "SKIP $NAME on $BACKEND: $*"
	exit 77
}

pass() {
	echo "PASS $NAME on $BACKEND: $*"
	exit 0
}

need() {
	local program
	for program in "$@"; do
		command -v "$program" >/dev/null || skip "needs $program, which is not installed"
	done
}

# need_python MODULE PACKAGE: of Debian's own interpreter, which has the modules of its packages.
need_python() {
	need /usr/bin/python3
	/usr/bin/python3 -c "import $1" 2>/dev/null || skip "needs $2, which is not installed"
}

# need_php EXTENSION...: these, and those of common.php.
need_php() {
	local pattern
	need php
	set -- "$@" pcntl posix
	pattern=$(IFS='|' && echo "$*")
	[ "$(php -m | grep -cxE "$pattern")" = $# ] || skip "php lacks one of: $*"
}

# says_done FILE: the program, in Python, PHP or Perl by its name, prints this one word. It has
# what is in common.py, common.php and Common.pm.
says_done() {
	local out run
	local -x PYTHONPATH=$HERE PYTHONDONTWRITEBYTECODE=1
	case $1 in
	*.py) run=(/usr/bin/python3) ;;
	*.php) run=(php -d display_errors=stderr -d "auto_prepend_file=$HERE/common.php") ;;
	*.pl) run=(perl -I "$HERE") ;;
	*) fail "no interpreter for $1" ;;
	esac
	out=$("${run[@]}" "$1" 2>&1) || fail "$1: $out"
	[ "$out" = "done" ] || fail "$1 printed: $out"
}

# need_family sem|msg|shm: the calls exist (they answer ENOSYS while usysv lacks a family).
need_family() {
	local out
	need perl
	out=$(perl -MErrno=ENOSYS -MIPC::SysV=IPC_PRIVATE,IPC_RMID -e '
		my %get = (sem => sub { semget IPC_PRIVATE, 1, 0600 },
			   msg => sub { msgget IPC_PRIVATE, 0600 },
			   shm => sub { shmget IPC_PRIVATE, 4096, 0600 });
		my %remove = (sem => sub { semctl $_[0], 0, IPC_RMID, 0 },
			      msg => sub { msgctl $_[0], IPC_RMID, 0 },
			      shm => sub { shmctl $_[0], IPC_RMID, 0 });
		my $id = $get{$ARGV[0]}->();
		if (!defined $id) {
			print $!{ENOSYS} ? "lacking" : "$!";
			exit;
		}
		$remove{$ARGV[0]}->($id) or print "remove: $!";
	' "$1" 2>ask.log) || fail "cannot ask for the family $1: $out $(cat ask.log)"
	[ "$out" != lacking ] || skip "the calls of family $1 answer ENOSYS"
	[ -z "$out" ] || fail "creating an object of family $1: $out"
}

# until_true SECONDS COMMAND...: polls; false at the deadline.
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -le $end ] || return 1
		sleep 0.05
	done
}

# The ids of all semaphore sets there are, as a program sees them.
sem_sets() {
	perl -MIPC::SysV -e '
		use constant { SEM_STAT => 18, SEM_INFO => 19 };
		my $info = "\0" x 256;
		my $highest = semctl 0, 0, SEM_INFO, unpack "J", pack "P", $info;
		die "SEM_INFO: $!\n" unless defined $highest;
		for my $index (0 .. $highest) {
			my $ds = "\0" x 256;
			my $id = semctl $index, 0, SEM_STAT, unpack "J", pack "P", $ds;
			print $id + 0, "\n" if defined $id;
		}'
}

# segments: a line "id size nattch cpid mode" for each segment there is, as a program sees it (the
# mode in octal, with SHM_DEST).
segments() {
	perl -MIPC::SysV -e '
		use constant { SHM_STAT => 13, SHM_INFO => 14 };
		my $info = "\0" x 256;
		my $highest = shmctl 0, SHM_INFO, unpack "J", pack "P", $info;
		die "SHM_INFO: $!\n" unless defined $highest;
		for my $index (0 .. $highest) {
			my $ds = "\0" x 256;
			my $id = shmctl $index, SHM_STAT, unpack "J", pack "P", $ds;
			next unless defined $id;
			my ($mode, $size, $cpid, $nattch) = unpack "x20 S x26 J x24 l x4 J", $ds;
			printf "%d %d %d %d %o\n", $id, $size, $nattch, $cpid, $mode;
		}'
}
no_segments() { [ -z "$(segments)" ]; }
