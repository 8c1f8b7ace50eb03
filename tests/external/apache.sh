#!/bin/bash
# SPDX-License-Identifier: MIT
# Apache httpd, children accepting in turn under a System V semaphore (Mutex sysvsem, SEM_UNDO),
# each of them killed -9: whoever held the semaphore, the server goes on serving.
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin
need apache2 perl
modules=/usr/lib/apache2/modules
[ -e $modules/mod_mpm_prefork.so ] || skip "apache2 has no mod_mpm_prefork"
{ [ "$(id -u)" = 0 ] && id www-data >/dev/null 2>&1 && grep -q 4294967295 /proc/self/uid_map; } ||
	skip "needs root, to give its children to www-data"
need_family sem
# the accept mutex is needed for two sockets, not for one
read -r port_a port_b < <(perl -MIO::Socket::INET -e '
	print join(" ", map { $_->sockport } map {
		push @keep, IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1");
		$keep[-1] } 1, 2)')
mkdir htdocs run
echo "page of $$" >htdocs/page
cat >conf <<C
ServerRoot $W
ServerName localhost
PidFile $W/run/pid
ErrorLog $W/error.log
LogLevel warn
Listen 127.0.0.1:$port_a
Listen 127.0.0.1:$port_b
LoadModule mpm_prefork_module $modules/mod_mpm_prefork.so
LoadModule authz_core_module $modules/mod_authz_core.so
Mutex sysvsem default
StartServers 4
MinSpareServers 4
MaxSpareServers 4
ServerLimit 4
MaxRequestWorkers 4
User www-data
Group www-data
DocumentRoot $W/htdocs
<Directory $W/htdocs>
	Require all granted
</Directory>
C
trouble() {
	cat "$W/error.log" "$W/out" 2>/dev/null
	fail "$*"
}
setsid apache2 -f "$W/conf" -DFOREGROUND >out 2>&1 &
until_true 20 test -s run/pid || trouble "did not start"
server=$(cat run/pid)
trap 'kill -KILL -- -$server 2>/dev/null' EXIT

# pages COUNT: asks both ports that often, prints the number of right answers. A client that waits
# for too long gives up.
cat >pages.pl <<'P'
use strict;
use warnings;
use IO::Socket::INET;
my ($count, $text, @ports) = @ARGV;
my $right = 0;
for my $port ((@ports) x $count) {
	alarm 15;
	my $s = IO::Socket::INET->new("127.0.0.1:$port") or next;
	print $s "GET /page HTTP/1.0\r\n\r\n";
	my ($head, $body) = split /\r\n\r\n/, join('', <$s>), 2;
	$right++ if $head && $head =~ / 200 / && $body eq "$text\n";
}
print "$right\n";
P
pages() { perl pages.pl "$1" "page of $$" "$port_a" "$port_b"; }
both() { [ "$(pages 1)" = 2 ]; }
children() { ps -o pid= --ppid "$server"; }
all_there() { [ "$(children | wc -l)" -ge 4 ]; }
stopped() { ! kill -0 "$server"; }

until_true 20 both || trouble "does not answer"
sets=$(sem_sets | wc -l)
[ "$sets" -ge 1 ] || trouble "has no semaphore set: $sets"
n=$(pages 20)
[ "$n" = 40 ] || trouble "$n of 40 requests were answered"

killed=0
for round in 1 2; do
	until_true 30 all_there || trouble "round $round: children were not replaced"
	for child in $(children); do
		kill -KILL "$child" || continue
		killed=$((killed + 1))
		both || trouble "no answer after child $child was killed"
	done
done
[ $killed -ge 8 ] || trouble "only $killed children were killed"

until_true 30 all_there || trouble "children were not replaced at the end"
clients=
for client in 1 2 3 4; do
	pages 25 >"answers.$client" &
	clients+=" $!"
done
# shellcheck disable=SC2086  # a list of numbers
wait $clients
n=$(cat answers.*)
[ "$n" = "$(printf '50\n50\n50\n50')" ] ||
	trouble "of 4 times 50 concurrent requests were answered: ${n//$'\n'/, }"

kill -TERM "$server"
until_true 20 stopped || trouble "does not stop"
trap - EXIT
[ "$(sem_sets | wc -l)" = 0 ] || fail "semaphore sets are left"
pass "served on through $killed killed children"
