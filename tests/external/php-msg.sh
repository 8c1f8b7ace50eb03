#!/bin/bash
# SPDX-License-Identifier: MIT
# PHP's sysvmsg extension: serialised values through a queue among forked processes.
. "$(dirname "$0")/lib.sh"
need_php sysvmsg
need_family msg
cat >t.php <<'P'
<?php
touch('key');
$key = ftok('key', 'm');
check(!msg_queue_exists($key), 'not there yet');
$q = msg_get_queue($key, 0600);
check($q !== false && msg_queue_exists($key), 'msg_get_queue');
check(msg_send($q, 7, ['a' => 1, 'b' => [2, 3]]), 'send');
check(msg_send($q, 3, 'raw', false), 'send raw');
check(msg_stat_queue($q)['msg_qnum'] == 2, 'msg_qnum');
check(msg_receive($q, 3, $type, 100, $text, false) && $type == 3 && $text === 'raw', 'by type');
check(msg_receive($q, 0, $type, 1000, $value) && $value === ['a' => 1, 'b' => [2, 3]], 'value');
check(!msg_receive($q, 0, $type, 100, $text, true, MSG_IPC_NOWAIT, $error) && $error == MSG_ENOMSG,
	'none');

// workers: each takes what comes, adds up, and answers
$workers = [];
for ($i = 0; $i < 3; $i++)
	$workers[] = child(function () use ($key) {
		$own = msg_get_queue($key);
		for (;;) {
			check(msg_receive($own, 1, $type, 4096, $job), 'job');
			if ($job === 'end')
				return;
			check(msg_send($own, 2, array_sum($job)), 'answer');
		}
	});
for ($n = 1; $n <= 300; $n++) {
	check(msg_send($q, 1, range(1, $n % 50 + 1)), 'send a job');
	check(msg_receive($q, 2, $type, 4096, $sum), 'receive an answer');
	check($sum === array_sum(range(1, $n % 50 + 1)), "sum $sum");
}
foreach ($workers as $pid)
	msg_send($q, 1, 'end');
foreach ($workers as $pid)
	check(status($pid) == 0, 'worker');

check(msg_set_queue($q, ['msg_qbytes' => 500]), 'msg_set_queue');
check(msg_send($q, 1, str_repeat('x', 400), false), 'nearly full');
check(!@msg_send($q, 1, str_repeat('x', 400), false, false, $error), 'full');
check($error == MSG_EAGAIN, 'EAGAIN');
check(msg_remove_queue($q) && !msg_queue_exists($key), 'removed');
echo "done\n";
P
says_done t.php
pass "values and raw text, 300 jobs for 3 workers, full queue"
