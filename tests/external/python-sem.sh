#!/bin/bash
# SPDX-License-Identifier: MIT
# The Python module sysv_ipc: its Semaphore class among forked processes.
. "$(dirname "$0")/lib.sh"
need_python sysv_ipc python3-sysv-ipc
need_family sem
cat >t.py <<'P'
import os
import signal
import time

import sysv_ipc as ipc
from common import check, child, poll_until, raises, status


sem = ipc.Semaphore(None, ipc.IPC_CREX, mode=0o600, initial_value=2)
check(raises(ipc.ExistentialError, lambda: ipc.Semaphore(sem.key, ipc.IPC_CREX)), "exists")
check(ipc.Semaphore(sem.key).id == sem.id, "found by its key")
check(sem.value == 2 and sem.mode == 0o600 and sem.uid == os.geteuid(), "attributes")
sem.acquire()
sem.acquire()
check(sem.value == 0 and sem.last_pid == os.getpid(), "taken twice")
check(raises(ipc.BusyError, lambda: sem.acquire(0)), "busy at once")
begin = time.monotonic()
check(raises(ipc.BusyError, lambda: sem.acquire(0.2)), "busy after a time-out")
check(time.monotonic() - begin >= 0.2, "not before the time")
sem.Z(0)

# waiting and being woken
pid = child(lambda: sem.acquire(delta=3))
poll_until(lambda: sem.waiting_for_nonzero == 1, "one waits")
sem.release(3)
check(status(pid) == 0 and sem.value == 0 and sem.last_pid == pid, "woken with its due")
sem.release()
pid = child(lambda: sem.Z())
poll_until(lambda: sem.waiting_for_zero == 1, "one waits for zero")
sem.acquire()
check(status(pid) == 0, "woken at zero")

# undo
sem.value = 1


def take_and_die():
    mine = ipc.Semaphore(sem.key)
    mine.undo = True
    mine.acquire()
    os.kill(os.getpid(), signal.SIGKILL)


check(status(child(take_and_die)) == signal.SIGKILL, "killed")
check(sem.value == 1, "given back at once")


# a lock, as a context manager
def count():
    mine = ipc.Semaphore(sem.key)
    for _ in range(500):
        with mine:
            with open("count", encoding="ascii") as f:
                n = int(f.read())
            with open("count", "w", encoding="ascii") as f:
                f.write(str(n + 1))


with open("count", "w", encoding="ascii") as f:
    f.write("0")
kids = [child(count) for _ in range(4)]
for pid in kids:
    check(status(pid) == 0, "counter")
with open("count", encoding="ascii") as f:
    check(f.read() == "2000", "2000 counted")

# removal under a sleeper
sem.value = 0
pid = child(lambda: check(raises(ipc.ExistentialError, sem.acquire), "removed under a sleeper"))
poll_until(lambda: sem.waiting_for_nonzero == 1, "the last one waits")
sem.remove()
check(status(pid) == 0, "told of the removal")
check(raises(ipc.ExistentialError, lambda: ipc.Semaphore(sem.key)), "gone")
print("done")
P
says_done t.py
pass "Semaphore: time-outs, wake-ups, undo, context manager among 4 processes"
