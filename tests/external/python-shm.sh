#!/bin/bash
# SPDX-License-Identifier: MIT
# The Python module sysv_ipc: its SharedMemory class among forked processes.
. "$(dirname "$0")/lib.sh"
need_python sysv_ipc python3-sysv-ipc
need_family shm
need_family sem
cat >t.py <<'P'
import os
import signal
import struct
import time

import sysv_ipc as ipc
from common import check, child, poll_until, raises, status

SIZE = 100000


# create, find, attributes
m = ipc.SharedMemory(None, ipc.IPC_CREX, 0o640, SIZE, b"#")
check(raises(ipc.ExistentialError, lambda: ipc.SharedMemory(m.key, ipc.IPC_CREX, size=1)), "exists")
check(m.size == SIZE and m.mode == 0o640 and m.uid == os.geteuid(), "attributes")
check(m.attached and m.number_attached == 1 and m.creator_pid == os.getpid(), "attached")
check(abs(m.last_attach_time - time.time()) < 60 and m.last_detach_time == 0, "times")
check(m.read(SIZE) == b"#" * SIZE, "filled")
same = ipc.SharedMemory(m.key)
check(same.id == m.id and m.number_attached == 2, "found by its key and attached again")
same.write(b"there", SIZE - 5)
check(m.read(5, SIZE - 5) == b"there" and same.address != m.address, "two addresses, one memory")
check(raises(ValueError, lambda: m.write(b"123456", SIZE - 5)), "beyond the end")
same.detach()
check(m.number_attached == 1 and raises(ipc.NotAttachedError, lambda: same.read(1)), "detached")
m.mode = 0o600
check(m.mode == 0o600 and abs(m.last_change_time - time.time()) < 60, "IPC_SET")


# at an address of ours, which may not be taken
view = ipc.attach(m.id)
where = view.address
view.detach()
view = ipc.attach(m.id, where)
check(view.address == where and view.read(5, SIZE - 5) == b"there", "at an address")
check(raises((ValueError, ipc.Error, OSError), lambda: ipc.attach(m.id, where)), "that is taken")
view.detach()
check(raises((ValueError, ipc.Error, OSError), lambda: ipc.attach(m.id, where + 1)),
      "no multiple of SHMLBA")
view = ipc.attach(m.id, where + 4001, ipc.SHM_RND)
check(view.address == where + 4001 - (where + 4001) % 4096, "rounded")
view.detach()
check(m.number_attached == 1, "attached once again")

# a child inherits it, another attaches by itself; killed ones count no more
def inherit():
    check(m.number_attached == 2, "inherited")
    own = ipc.attach(m.id)
    check(m.number_attached == 3 and own.read(5, SIZE - 5) == b"there", "and attached")
    own.write(b"child", 5000)


check(status(child(inherit)) == 0 and m.read(5, 5000) == b"child", "written by a child")
check(m.number_attached == 1 and m.last_pid != os.getpid(), "ended")


def keep():
    own = [ipc.attach(m.id) for _ in range(5)]
    while own:
        signal.pause()


kids = [child(keep) for _ in range(4)]
poll_until(lambda: m.number_attached == 1 + 4 * 6, "all attached")
for pid in kids:
    os.kill(pid, signal.SIGKILL)
for pid in kids:
    check(status(pid) == signal.SIGKILL, "killed")
check(m.number_attached == 1, "%d attached after kills" % m.number_attached)

# read-only
view = ipc.attach(m.id, None, ipc.SHM_RDONLY)
check(view.read(5, 5000) == b"child", "read-only read")
check(raises((OSError, ipc.Error), lambda: view.write(b"x")), "read-only write")
buffer = memoryview(view)


def write_into_it():
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    import ctypes
    ctypes.memset(where, 0, 1)


where = view.address
check(len(buffer) == SIZE and bytes(buffer[5000:5005]) == b"child", "memoryview")
check(status(child(write_into_it)) & 127 == signal.SIGSEGV, "a write into it is SIGSEGV")
buffer.release()
view.detach()

# producer and consumer, a ring of 8 blocks under two semaphores
free = ipc.Semaphore(None, ipc.IPC_CREX, initial_value=8)
full = ipc.Semaphore(None, ipc.IPC_CREX, initial_value=0)


def produce():
    for n in range(1500):
        free.acquire()
        m.write(struct.pack("QQ", n, n * n) * 256, n % 8 * 4096)
        full.release()


producer = child(produce)
for n in range(1500):
    full.acquire()
    block = m.read(4096, n % 8 * 4096)
    check(block == struct.pack("QQ", n, n * n) * 256, "block %d" % n)
    free.release()
check(status(producer) == 0, "producer")
free.remove()
full.remove()

# removed while somebody has it
there, here = os.pipe()


def stay():
    own = ipc.SharedMemory(m.key)
    m.detach()
    os.write(here, b"x")
    poll_until(lambda: own.read(3) == b"end", "told to go")
    own.write(b"bye", 3)


stayer = child(stay)
os.read(there, 1)
m.remove()
check(m.number_attached == 2 and m.mode & 0o777 == 0o600, "attached after the removal")
check(raises(ipc.ExistentialError, lambda: ipc.SharedMemory(m.key)), "no more to be found")
m.write(b"end")
check(status(stayer) == 0 and m.read(6) == b"endbye", "the last words")
m.detach()
check(raises(ipc.ExistentialError, lambda: m.number_attached), "gone with the last one")
check(raises((ipc.ExistentialError, ValueError), lambda: ipc.attach(m.id)), "gone")
print("done")
P
says_done t.py
no_segments || fail "segments are left: $(segments)"
pass "SharedMemory: addresses, attaches of the dead, 1500 blocks through a ring, removal"
