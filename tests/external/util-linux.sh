#!/bin/bash
# SPDX-License-Identifier: MIT
# ipcmk, ipcs, ipcrm and lsipc of util-linux, and busybox's where it has them, on objects that are
# in use: they read /proc/sysvipc and /proc/sys/kernel first and make the calls only where those
# files are missing.
# limit: 300
. "$(dirname "$0")/lib.sh"
need ipcmk ipcs ipcrm lsipc awk perl
need_family shm
need_family sem
need_family msg
user=
trap '[ -z "$user" ] || kill -KILL $user 2>/dev/null' EXIT
owner=$(id -un)

id_of() {
	awk '{ print $NF }'
}

# fields COMMAND... ID FIELD=VALUE...: the one line of the output that has ID in field $column has
# these.
column=1
fields() {
	local command=() field line
	while [[ $1 != [0-9]* ]]; do
		command+=("$1")
		shift
	done
	"${command[@]}" >list || fail "${command[*]}: status $?"
	line=$(awk -v c="$column" -v id="$1" '$c == id' list)
	{ [ -n "$line" ] && [ "$(wc -l <<<"$line")" = 1 ]; } ||
		fail "${command[*]} has not one $1: $(cat list)"
	shift
	for field; do
		[ "$(awk -v n="${field%%=*}" '{ print $n }' <<<"$line")" = "${field#*=}" ] ||
			fail "${command[*]}: not $field: $line"
	done
}

# has TEXT COMMAND...: a line of the output is this, blanks apart
has() {
	local text=$1
	shift
	"$@" >list || fail "$*: status $?"
	sed 's/[[:blank:]]\+/ /g; s/^ //; s/ $//' list | grep -qxF -- "$text" ||
		fail "$* has no '$text': $(cat list)"
}

segment=$(ipcmk -M 12345 -p 0640 | id_of)
set=$(ipcmk -S 7 -p 0604 | id_of)
queue=$(ipcmk -Q | id_of)
for id in "$segment" "$set" "$queue"; do
	[ -n "$id" ] || fail "ipcmk: '$segment' '$set' '$queue'"
done

# ---- new objects ----

column=2
fields ipcs -m "$segment" 3="$owner" 4=640 5=12345 6=0 7=
fields ipcs -s "$set" 3="$owner" 4=604 5=7
fields ipcs -q "$queue" 3="$owner" 4=644 5=0 6=0
column=1
fields ipcs -m -t "$segment" 3=Not 5=Not
fields ipcs -s -t "$set" 3=Not
fields ipcs -q -t "$queue" 3=Not 5=Not
fields ipcs -m -c "$segment" 2=640 3="$owner" 5="$owner"
fields ipcs -s -c "$set" 2=604 3="$owner" 5="$owner"
fields ipcs -q -c "$queue" 2=644 3="$owner" 5="$owner"

# ---- in use: a process has the segment attached twice, waits for a semaphore, and has sent ----

cat >user.pl <<'P'
use strict;
use warnings;
use IPC::SysV qw(shmat memwrite);
my ($segment, $set, $queue) = @ARGV;
my @at = map { shmat $segment, undef, 0 or die "shmat: $!\n" } 1, 2;
memwrite $at[0], 'x' x 12345, 0, 12345;
msgsnd $queue, pack('l! a*', 3, $_), 0 or die "msgsnd: $!\n" for 'hello', 'you';
semop $set, pack('s!3', 2, 5, 0) or die "semop: $!\n";
semop $set, pack('s!3', 4, -1, 0);
P
perl user.pl "$segment" "$set" "$queue" >out 2>&1 &
user=$!
# of the semaphore's line that says how many wait
waits() { ipcs -s -i "$set" | awk '$1 == 4 && $3 == 1 { n++ } END { exit n != 1 }'; }
until_true 20 waits || fail "the process that uses them does not wait: $(cat out)"
me=$(awk -v id="$segment" '$2 == id { print $5 }' /proc/sysvipc/shm)

column=2
fields ipcs -m "$segment" 6=2
fields ipcs -q "$queue" 5=8 6=2
column=1
fields ipcs -m -p "$segment" 3="$me" 4="$user"
fields ipcs -q -p "$queue" 3="$user" 4=0
! ipcs -m -t | awk -v id="$segment" '$1 == id && $3 == "Not" { n++ } END { exit n != 1 }' ||
	fail "ipcs -m -t"
! ipcs -s -t | awk -v id="$set" '$1 == id && $3 == "Not" { n++ } END { exit n != 1 }' ||
	fail "ipcs -s -t"
has "bytes=12345 lpid=$user cpid=$me nattch=2" ipcs -m -i "$segment"
has "mode=0640 access_perms=0640" ipcs -m -i "$segment"
has "det_time=Not set" ipcs -m -i "$segment"
has "cbytes=8 qbytes=$(cat /proc/sys/kernel/msgmnb) qnum=2 lspid=$user lrpid=0" ipcs -q -i "$queue"
has "nsems = 7" ipcs -s -i "$set"
has "2 5 0 0 $user" ipcs -s -i "$set"
has "4 0 1 0 0" ipcs -s -i "$set"
has "segments allocated 1" ipcs -u
has "pages allocated $((12345 / $(getconf PAGESIZE) + 1))" ipcs -u
has "pages resident $((12345 / $(getconf PAGESIZE) + 1))" ipcs -u
has "used arrays = 1" ipcs -u
has "allocated semaphores = 7" ipcs -u
has "allocated queues = 1" ipcs -u
has "used headers = 2" ipcs -u
has "used space = 8 bytes" ipcs -u

fields lsipc -m --raw --noheadings -b -o ID,PERMS,OWNER,SIZE,NATTCH,CPID,LPID,CUID,UID "$segment" \
	2=rw-r----- 3="$owner" 4=12345 5=2 6="$me" 7="$user" 8="$(id -u)" 9="$(id -u)"
fields lsipc -s --raw --noheadings -o ID,PERMS,OWNER,NSEMS "$set" 2=rw----r-- 3="$owner" 4=7
fields lsipc -q --raw --noheadings -b -o ID,PERMS,OWNER,USEDBYTES,MSGS,LSPID,LRPID "$queue" \
	2=rw-r--r-- 3="$owner" 4=8 5=2 6="$user" 7=0
has "Segment size: 12345" lsipc -b -m -i "$segment"
has "Attached processes: 2" lsipc -m -i "$segment"
has "Last user PID: $user" lsipc -m -i "$segment"
has "Semaphores: 7" lsipc -s -i "$set"
has "Messages: 2" lsipc -q -i "$queue"
lsipc -g >list || fail "lsipc -g"
for line in MSGMNI=1 SHMMNI=1 SEMMNI=1 SEMMNS=7; do
	awk -v r="${line%=*}" -v n="${line#*=}" \
		'$1 == r && $(NF - 1) == n { k++ } END { exit k != 1 }' list ||
		fail "lsipc -g: not $line: $(cat list)"
done
lsipc -m -J | perl -MJSON::PP -e 'local $/; my $all = decode_json(<STDIN>)->{sharedmemory};
	exit(@$all != 1 || $all->[0]{id} != $ARGV[0] || $all->[0]{nattch} != 2)' "$segment" ||
		fail "lsipc -J"

# the files themselves: each has its header and the one line
for line in "shm shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap" \
	"sem semid perms nsems uid gid cuid cgid otime ctime" \
	"msg msqid perms cbytes qnum lspid lrpid uid gid cuid cgid stime rtime ctime"; do
	file=/proc/sysvipc/${line%% *}
	[ "$(head -n 1 "$file" | xargs)" = "key ${line#* }" ] || fail "$file: $(cat "$file")"
	[ "$(wc -l <"$file")" = 2 ] || fail "$file: $(cat "$file")"
done

# ---- limits: as in the files, set there, and in force ----

limits_agree() {
	local limit file line
	ipcs -l >list || fail "ipcs -l"
	for limit in "msgmni=max queues system wide" "msgmax=max size of message (bytes)" \
		"msgmnb=default max size of queue (bytes)" "shmmni=max number of segments"; do
		file=/proc/sys/kernel/${limit%%=*}
		grep -qxF "${limit#*=} = $(cat "$file")" list ||
			fail "ipcs -l, $file $(cat "$file"): $(cat list)"
	done
	read -ra line </proc/sys/kernel/sem
	for limit in "3=max number of arrays" "0=max semaphores per array" \
		"1=max semaphores system wide" "2=max ops per semop call"; do
		grep -qxF "${limit#*=} = ${line[${limit%%=*}]}" list ||
			fail "ipcs -l, ${line[*]}: $(cat list)"
	done
	for limit in MSGMNI=msgmni SHMMNI=shmmni; do
		lsipc -g --raw --noheadings -o RESOURCE,LIMIT |
			grep -qx "${limit%%=*} $(cat "/proc/sys/kernel/${limit#*=}")" ||
				fail "lsipc -g: $limit"
	done
}
limits_agree
lowered=
if (echo 0 >/proc/sys/kernel/shm_rmid_forced) 2>/dev/null; then
	lowered=", limits"
	for name in shmmax shmall shmmni sem msgmax msgmnb msgmni; do
		cat /proc/sys/kernel/$name >"was.$name"
	done
	# lower NAME VALUE COMMAND...: with this limit, the command fails; it succeeds as it was
	# before
	lower() {
		local file=/proc/sys/kernel/$1 was=was.$1
		echo "$2" >"$file" || fail "$file"
		[ "$(xargs <"$file")" = "$2" ] || fail "$file: wrote $2, there is $(cat "$file")"
		limits_agree
		shift 2
		! "$@" >out 2>&1 || fail "$*: beyond the limit $file, $(xargs <"$file"): $(cat out)"
		cat "$was" >"$file"
		"$@" >out 2>&1 || fail "$*: within the limit: $(cat out)"
	}
	lower shmmax 20000 ipcmk -M 20001
	lower shmall 15 ipcmk -M 60000
	lower shmmni 3 ipcmk -M 1
	lower sem "6 32000 500 100" ipcmk -S 8
	lower sem "250 20 500 100" ipcmk -S 8
	lower sem "250 32000 500 3" ipcmk -S 1
	lower msgmni 1 ipcmk -Q
	lower msgmax 10 perl -e 'msgsnd $ARGV[0], pack("l! a*", 1, "x" x 11), 0 or exit 1' "$queue"
	echo 300 >/proc/sys/kernel/msgmnb
	id=$(ipcmk -Q | id_of)
	has "cbytes=0 qbytes=300 qnum=0 lspid=0 lrpid=0" ipcs -q -i "$id"
	cat was.msgmnb >/proc/sys/kernel/msgmnb
	limits_agree
fi

# ---- removal ----

key=$(ipcs -m | awk -v id="$segment" '$2 == id { print $1 }')
ipcrm -M "$key" || fail "ipcrm by key"
column=2
fields ipcs -m "$segment" 1=0x00000000 4=640 6=2 7=dest
column=1
fields lsipc -m --raw --noheadings -o ID,STATUS,NATTCH "$segment" 2=dest 3=2
! ipcrm -M "$key" 2>/dev/null || fail "removed by a key that is free"
# who waits for the set ends, and so does the segment
ipcrm -s "$set" -q "$queue" || fail "ipcrm by id"
wait "$user"
user=
gone() { ! ipcs -m | awk '{ print $2 }' | grep -qx "$segment"; }
until_true 10 gone || fail "a removed segment is left: $(ipcs -m)"
! ipcrm -m "$segment" 2>/dev/null || fail "removed twice"
! ipcrm -Q 0x7eadbee1 2>/dev/null || fail "removed a key that is not there"
ipcmk -S 2 >/dev/null || fail "ipcmk"
ipcmk -Q >/dev/null || fail "ipcmk"
ipcmk -M 1 >/dev/null || fail "ipcmk"
listed() { ipcs "$1" | grep -c '^0x'; }
sets=$(listed -s)
queues=$(listed -q)
ipcrm --all=shm || fail "ipcrm --all=shm"
[ "$(listed -m) $(listed -s) $(listed -q)" = "0 $sets $queues" ] || fail "ipcrm --all=shm: $(ipcs)"
{ [ "$sets" -ge 1 ] && [ "$queues" -ge 1 ]; } || fail "there should be others: $(ipcs)"
ipcrm --all || fail "ipcrm --all"
[ "$(listed -m) $(listed -s) $(listed -q)" = "0 0 0" ] || fail "still listed: $(ipcs)"

# ---- busybox ----

box=
if command -v busybox >/dev/null && [ "$(busybox --list | grep -cxE 'ipcs|ipcrm')" = 2 ]; then
	box=", busybox"
	segment=$(ipcmk -M 4321 | id_of)
	set=$(ipcmk -S 3 | id_of)
	queue=$(ipcmk -Q | id_of)
	column=2
	fields busybox ipcs -m "$segment" 5=4321 6=0
	fields busybox ipcs -s "$set" 5=3
	fields busybox ipcs -q "$queue" 5=0 6=0
	busybox ipcrm -m "$segment" -s "$set" -q "$queue" || fail "busybox ipcrm"
	[ "$(listed -m) $(listed -s) $(listed -q)" = "0 0 0" ] || fail "busybox ipcrm: $(ipcs)"
fi
pass "made, listed in every way while in use, removed$lowered$box"
