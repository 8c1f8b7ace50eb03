#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Includes point down only, by the table of layers; core and ipc stay free of what would make
them allocate, log or take a lock of the C library."""
import re
import sys

import lintlib

# A folder may include itself and these.
MAY_INCLUDE = {
    'base': (),
    'core': ('base',),
    'ipc': ('base', 'core'),
    'client': ('base', 'core', 'ipc'),
    'preload': ('base', 'core', 'ipc', 'client'),
    'reaper': ('base', 'core', 'ipc', 'client'),
    'bench': ('base', 'core', 'ipc', 'client'),
    'cli': ('base', 'core', 'ipc', 'client', 'reaper', 'bench'),
}
ENGINE = ('core', 'ipc')
NOT_FOR_THE_ENGINE = {
    'stdio.h': 'does not log', 'syslog.h': 'does not log', 'stdlib.h': 'allocates nothing',
    'malloc.h': 'allocates nothing', 'pthread.h': 'takes no lock of the C library',
    'semaphore.h': 'takes no lock of the C library', 'threads.h': 'takes no lock of the C library',
    'linux/futex.h': 'never sleeps',
}
# The checker formats what it finds, for tests and a command; it runs in no host program.
ALLOWED = {('src/ipc/check.c', 'stdio.h')}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def main(root):
    report = lintlib.Report()
    paths = lintlib.files(root, lintlib.SOURCE_SUFFIXES, 'src')
    headers = {p[len('src/'):] for p in paths}
    for path in paths:
        parts = path.split('/')
        layer = parts[1] if len(parts) > 2 else None
        if layer not in MAY_INCLUDE:
            report(path, 1, 'lies in no layer that tests/lint/layers.py knows')
            continue
        for i, line in enumerate(lintlib.read(root, path).split('\n'), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            own, system = match.groups()
            if system is not None:
                if layer in ENGINE and system in NOT_FOR_THE_ENGINE and \
                        (path, system) not in ALLOWED:
                    report(path, i, f'<{system}>: the engine {NOT_FOR_THE_ENGINE[system]}')
                continue
            if own not in headers:
                report(path, i, f'"{own}" is no file below src/ (write "folder/name.h")')
                continue
            target = own.split('/')[0]
            if target != layer and target not in MAY_INCLUDE[layer]:
                report(path, i, f'{layer} may not include {target} ("{own}")')
    report.exit()


main(sys.argv[1])
