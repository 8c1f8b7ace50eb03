#!/bin/bash
# SPDX-License-Identifier: MIT
# PostgreSQL with its shared buffers in one segment (shared_memory_type=sysv) and what its parallel
# workers share in others (dynamic_shared_memory_type=sysv). After a crash it relies on three
# things: nattch is exact, an id tells whether its segment is still in use, and a removed segment
# ends with its users.
# as: postgres
# limit: 400
. "$(dirname "$0")/lib.sh"
bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
for program in initdb postgres psql pgbench; do
	[ -x "$bin/$program" ] || skip "needs $program of PostgreSQL, which is not installed"
done
[ "$(id -u)" != 0 ] ||
	skip "PostgreSQL refuses to run as root, and the user postgres cannot be had here"
need perl ps
need_family shm
[ ${#W} -lt 80 ] || skip "the name of $W is too long for a socket"
server=
stopped=

trouble() {
	tail -n 40 log out 2>/dev/null
	segments
	fail "$*"
}

# The other processes of the server end with it.
trap '[ -z "$server$stopped" ] || kill -KILL $server $stopped 2>/dev/null' EXIT

sql() { "$bin/psql" -h "$W" -U pg -d postgres -XAtq -v ON_ERROR_STOP=1 "$@"; }
ask() { sql -c "$1"; }
answers() { [ "$(ask 'select 1' 2>>out)" = 1 ]; }
ended() { ! kill -0 "$1" 2>/dev/null; }

# start NAME=VALUE...: with these settings; the database answers afterwards.
start() {
	local settings=() s
	for s; do
		settings+=(-c "$s")
	done
	"$bin/postgres" -D data "${settings[@]}" >>log 2>&1 &
	server=$!
	until_true 60 answers || trouble "does not answer after its start"
}

stop() {
	kill -INT "$server"
	wait "$server" || trouble "stopped with status $?"
	server=
	until_true 10 no_segments || trouble "segments are left after it was stopped"
}

# The one segment of the shared buffers: id, or nattch.
buffers() { segments | awk -v f="$1" '$2 > 30000000 { print $f }'; }
count() { segments | wc -l; }
count_is() { [ "$(count)" = "$1" ]; }
more_than() { [ "$(count)" -gt "$1" ]; }
gone() { ! segments | awk '{ print $1 }' | grep -qx "$1"; }
attached() { [ "$(segments | awk -v id="$1" '$1 == id { print $3 }')" = "$2" ]; }
# Everybody has the buffers attached: the server and its children.
everybody() {
	local children
	children=$(ps -o pid= --ppid "$server" | wc -l)
	[ "$children" -ge 5 ] && [ "$(buffers 3)" = $((children + 1)) ]
}

# backend TEXT: the process that performs a query of this text for a client, or works for one that
# does.
backend() {
	ask "select pid from pg_stat_activity where query like '%$1%' and state = 'active'
		and backend_type = '${2:-client backend}' and pid <> pg_backend_pid() limit 1"
}
there_is() { [ -n "$(backend "$@")" ]; }

# The books of pgbench: all four sums are the same.
balanced() {
	ask 'select (select sum(abalance) from pgbench_accounts)
			= (select sum(delta) from pgbench_history)
		and (select sum(tbalance) from pgbench_tellers)
			= (select sum(delta) from pgbench_history)
		and (select sum(bbalance) from pgbench_branches)
			= (select sum(delta) from pgbench_history)'
}
check_books() {
	[ "$(balanced)" = t ] || trouble "the books do not balance $1"
	n=$(ask 'select count(*) from pgbench_history')
	[ "$n" -ge "$transactions" ] || trouble "$n of $transactions transactions are there $1"
}

# bench COUNT: 4 clients
transactions=0
bench() {
	"$bin/pgbench" -h "$W" -U pg -n -c 4 -j 2 -t "$1" postgres >bench 2>&1 || {
		cat bench
		trouble "pgbench failed"
	}
	grep -qx "number of transactions actually processed: $((4 * $1))/$((4 * $1))" bench ||
		trouble "pgbench: $(cat bench)"
	transactions=$((transactions + 4 * $1))
}

"$bin/initdb" -D data -A trust -U pg -N --locale=C -E UTF8 >out 2>&1 || trouble "initdb"
until_true 10 no_segments || trouble "segments are left after initdb"
cat >>data/postgresql.conf <<C
listen_addresses = ''
unix_socket_directories = '$W'
shared_memory_type = sysv
dynamic_shared_memory_type = sysv
shared_buffers = 32MB
max_connections = 30
fsync = off
max_parallel_workers_per_gather = 4
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
C
start
[ "$(ask 'show shared_memory_type') $(ask 'show dynamic_shared_memory_type')" = "sysv sysv" ] ||
	trouble "it does not use System V shared memory"
[ "$(buffers 1 | wc -l)" = 1 ] || trouble "its buffers are not in one segment"
until_true 20 everybody || trouble "nattch is $(buffers 3): $(ps -o pid=,args= --ppid "$server")"
base=$(count)

# Clients that write, and the same data by several processes at once
"$bin/pgbench" -h "$W" -U pg -n -q -i -s 1 postgres >out 2>&1 || trouble "pgbench -i"
bench 50
check_books "after pgbench"
ask 'create table t as select g as a, g % 7 as b from generate_series(1, 100000) g' ||
	trouble "create"
ask 'analyze t; alter table t set (parallel_workers = 4)' || trouble "analyze"
query='select count(*), sum(a), sum(b) from t where b <> 3'
serial=$(sql -c 'set max_parallel_workers_per_gather = 0' -c "$query") || trouble "serial query"
ask "explain (analyze, costs off, timing off) $query" >plan || trouble "explain"
grep -q 'Workers Launched: [1-4]' plan || trouble "no parallel workers: $(cat plan)"
for n in 1 2 3 4 5; do
	parallel=$(ask "$query") || trouble "parallel query"
	[ "$parallel" = "$serial" ] || trouble "parallel $parallel, serial $serial"
done
until_true 20 count_is "$base" || trouble "a parallel query leaves $(count) segments, not $base"

# A parallel worker is killed while it shares a segment with its leader: everything starts anew
old=$(buffers 1)
slow='select count(pg_sleep(0.01)) from t'
ask "$slow" >out 2>&1 &
until_true 30 there_is "$slow" 'parallel worker' || trouble "no parallel worker"
more_than "$base" || trouble "no segment for the parallel query"
kill -KILL "$(backend "$slow" 'parallel worker')" || trouble "kill"
wait $! && trouble "the query outlived its worker"
until_true 60 answers || trouble "no recovery after a worker was killed"
until_true 20 gone "$old" || trouble "the buffers of the crashed server are still there"
until_true 20 count_is "$base" || trouble "$(count) segments after the crash, not $base"
grep -q 'was terminated by signal 9' log || trouble "nobody was killed"
check_books "after a worker was killed"

# The same for a client's process
old=$(buffers 1)
ask 'select pg_sleep(1000)' >out 2>&1 &
until_true 30 there_is 'pg_sleep(1000)' || trouble "no backend"
kill -KILL "$(backend 'pg_sleep(1000)')" || trouble "kill"
wait $! && trouble "the client did not notice"
until_true 60 answers || trouble "no recovery after a backend was killed"
until_true 20 gone "$old" || trouble "the buffers of the crashed server are still there"
until_true 20 everybody || trouble "nattch after the crash is $(buffers 3)"
bench 10
check_books "after a backend was killed"

# The server is killed while one of its processes is stopped and so lives on: no other server may
# have the data, neither one that finds the lock file nor one that finds the key alone.
old=$(buffers 1)
ask 'select pg_sleep(1000)' >out 2>&1 &
client=$!
until_true 30 there_is 'pg_sleep(1000)' || trouble "no backend"
stopped=$(backend 'pg_sleep(1000)')
kill -STOP "$stopped"
kill -KILL "$server"
wait "$server" 2>/dev/null
until_true 30 attached "$old" 1 || trouble "nattch with one process left is not 1"
for lock in found missing; do
	[ $lock = found ] || rm data/postmaster.pid
	: >log
	timeout 30 "$bin/postgres" -D data >>log 2>&1
	status=$?
	[ $status != 0 ] && grep -q 'pre-existing shared memory block .* is still in use' log ||
		trouble "status $status: a second server was not refused (lock file $lock)"
	attached "$old" 1 || trouble "the refused server has changed the old segment"
done
kill -KILL "$stopped"
wait $client && trouble "the client did not notice"
until_true 30 attached "$old" 0 || trouble "nattch with nobody left is not 0"
stopped=
start huge_pages=off
[ "$(ask 'show huge_pages')" = off ] || trouble "huge_pages"
gone "$old" || trouble "the buffers of the killed server are still there"
until_true 20 everybody || trouble "nattch after the restart is $(buffers 3)"
count_is "$base" || trouble "$(count) segments after the restart, not $base"
[ "$(ask "$query")" = "$serial" ] || trouble "the parallel query after the restart"
bench 10
check_books "after the restart"
stop
pass "$transactions transactions, parallel queries, 3 kinds of crash, no second server"
