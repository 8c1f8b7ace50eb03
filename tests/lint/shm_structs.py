#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No pointer enters a shared structure, nor a type whose size differs between processes: the
layout is shared by programs of other word sizes and C libraries."""
import re
import sys

import lintlib

STRUCT = re.compile(r'\b(?:struct|union)\s+(\w+_shm)\s*\{')
TYPEDEF = re.compile(r'\btypedef\b([^;{}]*?)\b(\w+_shm)\s*;')
UNFIT = re.compile(
    r'\b(?:size_t|ssize_t|long|short|int|unsigned|signed|float|double|bool|_Bool|time_t|pid_t|'
    r'uid_t|gid_t|key_t|off_t|mode_t|uintptr_t|intptr_t|ptrdiff_t|wchar_t|enum|pthread_\w+|'
    r'sem_t|sigset_t|atomic_\w+)\b')


def main(root):
    report = lintlib.Report()
    seen = 0
    for path in lintlib.files(root, ('.c', '.h'), 'src'):
        code = '\n'.join(lintlib.Source(lintlib.read(root, path)).code)
        for match in TYPEDEF.finditer(code):
            line = code.count('\n', 0, match.start(2)) + 1
            if '*' in match.group(1) or UNFIT.search(match.group(1)):
                report(path, line, f'{match.group(2)} is no type of fixed width')
        for match in STRUCT.finditer(code):
            seen += 1
            depth = 1
            end = match.end()
            while depth and end < len(code):
                depth += {'{': 1, '}': -1}.get(code[end], 0)
                end += 1
            at = match.end()
            for member in code[match.end():end - 1].split(';'):
                line = code.count('\n', 0, at) + 1
                line += member[:len(member) - len(member.lstrip())].count('\n')
                at += len(member) + 1
                # what stands in brackets and parentheses is arithmetic
                plain = re.sub(r'\[[^]]*\]|_Alignas\s*\([^)]*\)', '', member)
                unfit = UNFIT.search(plain)
                if '*' in plain:
                    report(path, line, f'pointer in struct {match.group(1)}')
                elif unfit:
                    report(path, line, f'{unfit.group()} in struct {match.group(1)} has no '
                                       'fixed width')
    if not seen:
        report('src', 1, 'no shared structure found: is the suffix still _shm?')
    report.exit()


main(sys.argv[1])
