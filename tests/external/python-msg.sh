#!/bin/bash
# SPDX-License-Identifier: MIT
# The Python module sysv_ipc: its MessageQueue class among forked processes.
. "$(dirname "$0")/lib.sh"
need_python sysv_ipc python3-sysv-ipc
need_family msg
cat >t.py <<'P'
import os

import sysv_ipc as ipc
from common import check, child, raises, status


q = ipc.MessageQueue(None, ipc.IPC_CREX, mode=0o600)
check(raises(ipc.ExistentialError, lambda: ipc.MessageQueue(q.key, ipc.IPC_CREX)), "exists")
check(ipc.MessageQueue(q.key).id == q.id, "found by its key")
for kind in (4, 2, 9, 2):
    q.send(b"text %d" % kind, type=kind)
check(q.current_messages == 4 and q.last_send_pid == os.getpid(), "attributes")
check(q.receive(type=9) == (b"text 9", 9), "by type")
check(q.receive(type=-3) == (b"text 2", 2), "the lowest")
check(q.receive() == (b"text 4", 4) and q.receive() == (b"text 2", 2), "in order")
check(raises(ipc.BusyError, lambda: q.receive(block=False)), "none")
check(raises(ValueError, lambda: q.send(b"x", type=0)), "no type 0")

# every byte arrives: requests and answers of growing size
server = child(lambda: [q.send(bytes(reversed(q.receive(type=1)[0])), type=2)
                        for _ in range(200)])
for n in range(200):
    text = bytes((n * 7 + i) & 255 for i in range(n * 10))
    q.send(text, type=1)
    check(q.receive(type=2) == (bytes(reversed(text)), 2), "answer of %d bytes" % len(text))
check(status(server) == 0, "server")

# a queue that is full
q.max_size = 1000
q.send(b"a" * 900)
check(raises(ipc.BusyError, lambda: q.send(b"b" * 200, block=False)), "full")
sender = child(lambda: q.send(b"b" * 200, type=5))
check(q.receive(type=1)[0] == b"a" * 900, "make room")
check(q.receive(type=5)[0] == b"b" * 200 and status(sender) == 0, "let in")

receiver = child(lambda: check(raises(ipc.ExistentialError, q.receive), "removed under a sleeper"))
q.remove()
check(status(receiver) == 0, "told of the removal")
check(raises(ipc.ExistentialError, lambda: ipc.MessageQueue(q.key)), "gone")
print("done")
P
says_done t.py
pass "MessageQueue: types, 200 requests and answers, full queue, removal"
