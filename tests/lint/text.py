#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What must hold for every file: size, columns, line ends, licence line, no notes to self, no
mention of a page or folder that is not the project's."""
import os
import re
import sys

import lintlib

LINES_MAX = 800
COLUMNS_MAX = 100
C_SUFFIXES = ('.c', '.h', '.S')
# in pieces, so that this file does not trip itself
UNFINISHED = re.compile(r'\b(?:TO' 'DO|FIX' 'ME|X' 'XX)\\b')
PAGE = re.compile(r'(?<![\w/.-])((?:[\w.-]+/)*[A-Z][\w-]*\.md)\b')
FOREIGN = re.compile(r'(?<![\w/.])/(?:ho' r'me|wo' r'rk|ro' r'ot)/[\w.]')
SPDX = 'SPDX-License-Identifier: MIT'


def main(root):
    report = lintlib.Report()
    suffixes = lintlib.SOURCE_SUFFIXES + lintlib.SCRIPT_SUFFIXES
    for path in lintlib.files(root, suffixes + lintlib.TEXT_SUFFIXES + lintlib.PLAIN_NAMES):
        try:
            text = lintlib.read(root, path)
        except UnicodeDecodeError:
            report(path, 1, 'is not UTF-8')
            continue
        lines = text.split('\n')
        source = path.endswith(suffixes)
        if source or path.endswith('meson.build') or path == 'Makefile':
            if not any(SPDX in line for line in lines[:3]):
                report(path, 1, f'no line "{SPDX}"')
        if source and len(lines) - 1 > LINES_MAX:
            report(path, LINES_MAX, f'{len(lines) - 1} lines, {LINES_MAX} is the most')
        if text and not text.endswith('\n'):
            report(path, len(lines), 'no newline at the end')
        if text.endswith('\n\n'):
            report(path, len(lines) - 1, 'blank lines at the end')
        for i, line in enumerate(lines, 1):
            columns = len(line.expandtabs(8))
            if path.endswith(C_SUFFIXES) and columns > COLUMNS_MAX:
                report(path, i, f'{columns} columns, {COLUMNS_MAX} is the most')
            if line.endswith('\r'):
                report(path, i, 'CRLF')
            elif line != line.rstrip():
                report(path, i, 'trailing blanks')
            match = UNFINISHED.search(line)
            if match:
                report(path, i, f'{match.group()}: finish it, or file it')
            match = FOREIGN.search(line)
            if match and path != 'LICENSE':
                report(path, i, f'{match.group()}... is a place on somebody\'s machine')
            for page in sorted(set(PAGE.findall(line))):
                if not any(os.path.exists(os.path.join(root, d, page)) for d in ('', 'doc')):
                    report(path, i, f'{page} is no page of this project')
    report.exit()


main(sys.argv[1])
