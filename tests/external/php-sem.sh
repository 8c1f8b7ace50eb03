#!/bin/bash
# SPDX-License-Identifier: MIT
# PHP's sysvsem extension: a loadable module, three semaphores with SEM_UNDO behind each sem_get.
. "$(dirname "$0")/lib.sh"
need_php sysvsem
need_family sem
cat >t.php <<'P'
<?php
touch('key');
$key = ftok('key', 's');
check($key != -1, 'ftok');
$sem = sem_get($key, 1, 0600, false);
check($sem !== false, 'sem_get');

// a lock among processes
file_put_contents('count', '0');
$kids = [];
for ($i = 0; $i < 4; $i++)
	$kids[] = child(function () use ($key) {
		$own = sem_get($key, 1, 0600, true);
		for ($k = 0; $k < 300; $k++) {
			check(sem_acquire($own), 'acquire');
			file_put_contents('count', file_get_contents('count') + 1);
			check(sem_release($own), 'release');
		}
	});
foreach ($kids as $pid)
	check(status($pid) == 0, 'counter');
check(file_get_contents('count') === '1200', 'counted ' . file_get_contents('count'));

// held by another: not to be had without waiting; back when the holder is killed
[$here, $there] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
$holder = child(function () use ($key, $there) {
	$own = sem_get($key, 1, 0600, false);
	sem_acquire($own);
	fwrite($there, 'x');
	pause:
	sleep(60);
	goto pause;
});
check(fread($here, 1) === 'x', 'held');
check(sem_acquire($sem, true) === false, 'not to be had');
$heir = child(function () use ($key) {
	$own = sem_get($key, 1, 0600, false);
	check(sem_acquire($own), 'inherit');
});
posix_kill($holder, SIGKILL);
check(pcntl_wifsignaled(status($holder)), 'killed');
check(status($heir) == 0, 'heir');

// auto_release at the end of a process that still holds it
check(status(child(function () use ($key) {
	$own = sem_get($key, 1, 0600, true);
	sem_acquire($own);
})) == 0, 'ends holding it');
check(sem_acquire($sem, true), 'free again');
check(sem_release($sem), 'release');

// max_acquire 3
$three = sem_get($key + 1, 3);
$kids = 0;
for ($i = 0; $i < 3; $i++)
	check(sem_acquire($three, true), "acquire $i of 3");
check(!sem_acquire($three, true), 'a fourth');
check(sem_remove($three), 'remove');
check(sem_remove($sem), 'remove');
check(@sem_acquire($sem) === false, 'gone');
echo "done\n";
P
says_done t.php
pass "sem_get, sem_acquire, sem_release: lock among 4 processes, killed holder, auto_release"
