#!/bin/bash
# SPDX-License-Identifier: MIT
# PHP's sysvshm extension (variables in a segment) and shmop (its bytes), under sysvsem's lock.
. "$(dirname "$0")/lib.sh"
need_php sysvshm shmop sysvsem
need_family shm
need_family sem
cat >t.php <<'P'
<?php
// The value without the warning that comes with it, and whether there was one.
function quietly($code) {
	global $warned;
	$warned = false;
	set_error_handler(function () {
		global $warned;
		return $warned = true;
	});
	$value = $code();
	restore_error_handler();
	return $value;
}

touch('key');
$key = ftok('key', 'v');
$v = shm_attach($key, 20000, 0600);
check($v !== false, 'shm_attach');
check(!shm_has_var($v, 1), 'empty');
$value = ['list' => range(1, 50), 'text' => str_repeat('ab', 100), 'none' => null, 'float' => 0.25];
check(shm_put_var($v, 1, $value) && shm_put_var($v, 2, 'second'), 'shm_put_var');
check(shm_get_var($v, 1) === $value && shm_get_var($v, 2) === 'second', 'shm_get_var');
check(quietly(fn() => shm_put_var($v, 3, str_repeat('x', 30000))) === false && $warned, 'too much');
check(!shm_has_var($v, 3) && shm_get_var($v, 1) === $value, 'nothing was spoilt');
check(shm_put_var($v, 1, 'shorter') && shm_get_var($v, 1) === 'shorter', 'replaced');
check(shm_get_var($v, 2) === 'second', 'the other one moved');
check(shm_remove_var($v, 2) && !shm_has_var($v, 2), 'shm_remove_var');

// several processes, each attaches by the key
shm_put_var($v, 10, 0);
shm_put_var($v, 11, []);
$kids = [];
for ($i = 0; $i < 4; $i++)
	$kids[] = child(function () use ($key, $i) {
		$own = shm_attach($key);
		$lock = sem_get($key, 1, 0600);
		for ($k = 0; $k < 250; $k++) {
			check(sem_acquire($lock), 'lock');
			$n = shm_get_var($own, 10);
			check(shm_put_var($own, 10, $n + 1), 'put');
			if ($k % 50 == 0)
				shm_put_var($own, 11, [...shm_get_var($own, 11), "$i-$k"]);
			check(sem_release($lock), 'unlock');
		}
		check(shm_detach($own), 'shm_detach');
	});
foreach ($kids as $pid)
	check(status($pid) == 0, 'counter');
check(shm_get_var($v, 10) === 1000, 'counted ' . shm_get_var($v, 10));
$list = shm_get_var($v, 11);
sort($list);
check(count($list) == 20 && count(array_unique($list)) == 20 && $list[0] === '0-0', 'entries');
check(sem_remove(sem_get($key, 1, 0600)), 'sem_remove');

// one that is killed with its attach; the segment lives until the last one has gone
[$here, $there] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
$victim = child(function () use ($key, $there) {
	$own = shm_attach($key);
	shm_put_var($own, 20, 'from the dead');
	fwrite($there, 'x');
	while (true)
		sleep(60);
});
check(fread($here, 1) === 'x', 'attached');
check(shm_remove($v), 'shm_remove');
posix_kill($victim, SIGKILL);
check(pcntl_wifsignaled(status($victim)), 'killed');
check(shm_get_var($v, 20) === 'from the dead', 'what the dead wrote');
check(shm_put_var($v, 21, 1) && shm_get_var($v, 21) === 1, 'writable after the removal');
check(shm_detach($v), 'detach');
$v = shm_attach($key, 20000, 0600);
check(!shm_has_var($v, 20), 'a new one under that key is empty');
check(shm_remove($v) && shm_detach($v), 'remove that');

// shmop
check(quietly(fn() => shmop_open($key, 'a', 0, 0)) === false && $warned, 'not there');
$s = shmop_open($key, 'n', 0600, 5000);
check($s !== false && shmop_size($s) === 5000, 'new');
check(quietly(fn() => shmop_open($key, 'n', 0600, 5000)) === false && $warned, 'there already');
check(shmop_read($s, 0, 5000) === str_repeat("\0", 5000), 'new memory is 0');
check(shmop_write($s, 'hello', 4995) === 5, 'shmop_write');
check(shmop_read($s, 4994, 6) === "\0hello", 'the last bytes');
$r = shmop_open($key, 'a', 0, 0);
check(shmop_size($r) === 5000 && shmop_read($r, 4995, 5) === 'hello', 'by another attach');
try {
	shmop_write($r, 'x', 0);
	check(false, 'write to a read-only one');
} catch (Error $e) {
}
try {
	shmop_read($r, 4996, 5);
	check(false, 'beyond the end');
} catch (ValueError $e) {
}
check(status(child(function () use ($key) {
	$own = shmop_open($key, 'w', 0, 0);
	check(shmop_write($own, 'child', 100) === 5, 'write by a child');
})) == 0, 'child');
check(shmop_read($r, 100, 5) === 'child', 'seen by both');
check(shmop_delete($s), 'delete');
check(shmop_read($r, 100, 5) === 'child', 'still there for those who have it');
unset($s, $r);
check(quietly(fn() => shmop_open($key, 'a', 0, 0)) === false && $warned, 'gone');
$s = shmop_open($key, 'c', 0600, 10);
check(shmop_read($s, 0, 10) === str_repeat("\0", 10) && shmop_delete($s), 'another');
echo "done\n";
P
says_done t.php
no_segments || fail "segments are left: $(segments)"
pass "variables, a counter of 4 processes, the attach of a killed one, shmop"
