# SPDX-License-Identifier: MIT
"""What the programs in Python share: checks, and children that do not run for ever."""
import os
import signal
import time


def check(true, what):
    if not true:
        print("false:", what, flush=True)
        os._exit(1)


def raises(error, call):
    try:
        call()
    except error:
        return True
    return False


def poll_until(condition, what):
    end = time.monotonic() + 20
    while not condition():
        check(time.monotonic() < end, what)
        time.sleep(0.01)


def child(code):
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(60)
    try:
        code()
    except BaseException as e:
        print("child:", repr(e), flush=True)
        os._exit(1)
    os._exit(0)


def status(pid):
    return os.waitpid(pid, 0)[1]
