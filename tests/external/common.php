<?php
// SPDX-License-Identifier: MIT
// What the programs in PHP share: checks, and children that do not run for ever.
function check($true, $what) {
	if (!$true) {
		echo "false: $what\n";
		posix_kill(posix_getpid(), SIGABRT);
	}
}

function child($code) {
	$pid = pcntl_fork();
	if ($pid)
		return $pid;
	pcntl_alarm(60);
	$code();
	exit(0);
}

function status($pid) {
	pcntl_waitpid($pid, $status);
	return $status;
}
