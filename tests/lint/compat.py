#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A test may be left out on usysv only for a difference that doc/COMPAT.md lists by name: as a
heading, a list item or the first cell of a table row."""
import re
import sys

import lintlib

USE = re.compile(r'\bcompat_(?:skip|differs)\s*\(\s*"([^"]*)"')
SCRIPT_USE = re.compile(r'\bcompat_(?:skip|differs)[ (]+["\']?([a-z][a-z0-9-]*)')
ENTRY = re.compile(r'^\s*(?:#+|[-*]|\|)\s*`?([a-z][a-z0-9]*(?:-[a-z0-9]+)*)`?(?=\s|$|:|\|)', re.M)


def main(root):
    report = lintlib.Report()
    try:
        entries = set(ENTRY.findall(lintlib.read(root, 'doc/COMPAT.md')))
    except FileNotFoundError:
        entries = set()
    for path in lintlib.files(root, ('.c', '.h') + lintlib.SCRIPT_SUFFIXES, 'tests'):
        if path.startswith('tests/lint/'):
            continue
        use = USE if path.endswith(('.c', '.h')) else SCRIPT_USE
        for i, line in enumerate(lintlib.read(root, path).split('\n'), 1):
            for name in use.findall(line):
                if name not in entries:
                    report(path, i, f'doc/COMPAT.md has no entry "{name}"')
    report.exit()


main(sys.argv[1])
