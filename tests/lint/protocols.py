#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every ordered atomic access names its protocol, every protocol has a card, every card says what
a death does; every relaxed access has a reason.

A site is labelled by `NAME_Pn/E` in a comment on its statement or directly above (also above a
group of atomic accesses without a blank line in between), or by a function whose head comment
cites the card. E is A, R or AR: which end of the pairing the site is; a head comment may leave it
out. A word that no other process sees says "private" instead. A card is a comment block that begins
with `NAME_Pn  title` and has rows word, writers, order and death; doc/PROTOCOLS.md lists all of
them with their files. Tests that a card names exist.

    protocols.py ROOT          check
    protocols.py ROOT --index  print the table for doc/PROTOCOLS.md
"""
import os
import re
import sys

import lintlib

FOLDERS = ('src/core', 'src/ipc', 'src/client', 'src/reaper')
ORDERED = ('load_acquire', 'store_release', 'exchange', 'cas', 'fetch_or', 'fetch_add',
           'fence_acquire')
RELAXED = ('load_relaxed', 'store_relaxed')
CRASH = 'store_crash'  # a release for recovery; labelled where a card speaks of it
ACCESS = re.compile(r'\b(' + '|'.join(ORDERED + RELAXED + (CRASH,)) + r')\s*\(')
PRIVATE = re.compile(r'\bprivate\b')
BARE = re.compile(r'\b(__atomic_\w+|__sync_\w+|atomic_\w+_explicit)\s*\(')
VOLATILE = re.compile(r'(?<!asm )(?<!__asm__ )\bvolatile\b')
NAME = r'[A-Z][A-Z0-9]*_[A-Z][0-9]+'
LABEL = re.compile(r'\b(' + NAME + r')(?:/([AR]{1,2}))?(?![A-Za-z0-9_])')
CARD = re.compile(r'^ *(' + NAME + r')  +(\S.*)$')
ROW = re.compile(r'^ *([a-z][a-z-]*)  +(\S.*)$')
TEST = re.compile(r'\b([a-z]+/[a-z0-9_.-]*[a-z0-9_])')
ROWS = ('word', 'writers', 'order', 'death')
ONLY_END = {'load_acquire': 'A', 'fence_acquire': 'A', 'store_release': 'R'}


def cards_of(source):
    """(line, label, title, rows) of each card in the comments of a file."""
    card = None
    row = None
    for i, text in lintlib.comment_lines(source):
        match = CARD.match(text) if text is not None else None
        if match or not text:
            if card:
                yield card
            card = (i + 1, match.group(1), match.group(2), {}) if match else None
            row = None
        elif card:
            match = ROW.match(text)
            row = match.group(1) if match else row
            card[3][row] = card[3].get(row, '') + ' ' + (match.group(2) if match else text)
    if card:
        yield card


def comment_of_site(source, i):
    """The comments that speak of the statement on line i, and of its group of accesses."""
    start = source.statement_start(i)
    end = source.statement_end(i)
    own = ' '.join(source.comment[j] or '' for j in range(start, end + 1)
                   if not source.only_comment(j))
    while True:
        above = source.comment_above(start)
        if above or start == 0 or not ACCESS.search(source.code[start - 1]):
            return own + '\n' + above
        start = source.statement_start(start - 1)


def main(root, index):
    report = lintlib.Report()
    cards = {}
    ends = {}
    used = {}

    def labels_in(text):
        # Words that only look like a label (SIZE_U32) are neither cards nor of the usual form.
        return [(label, end) for label, end in LABEL.findall(text)
                if label in cards or end or re.search('_P[0-9]+$', label)]

    def cite(path, line, label, end):
        used.setdefault(label, (path, line))
        ends.setdefault(label, set()).update(end or 'AR')

    paths = [p for p in lintlib.files(root, ('.c', '.h'), 'src')]
    sources = {p: lintlib.Source(lintlib.read(root, p)) for p in paths}
    for path, source in sources.items():
        for line, label, title, rows in cards_of(source):
            if label in cards:
                report(path, line, f'{label} has a card in {cards[label][0]} already')
            cards[label] = (path, title)
            for row in ROWS:
                if row not in rows:
                    report(path, line, f'card {label} has no row "{row}"')
            for test in TEST.findall(rows.get('tests', '')):
                if not any(os.path.exists(os.path.join(root, p, t + s))
                           for p in ('', 'tests', 'doc') for s in ('', '.c', '.sh', '.py')
                           for t in (test, test.replace('-', '_'))):
                    report(path, line, f'card {label} names the test {test}, which is not there')
    if index:
        print('| card | protocol | file |\n|---|---|---|')
        for label in sorted(cards):
            print(f'| {label} | {cards[label][1]} | {cards[label][0]} |')
        return

    for path, source in sources.items():
        if not path.startswith(tuple(f + '/' for f in FOLDERS)):
            continue
        head = {}
        for first, brace, end in source.functions():
            text = source.comment_above(first)
            for i in range(first, end + 1):
                head[i] = text
        for i, code in enumerate(source.code):
            if code.lstrip().startswith('#define') and ACCESS.search(code) is None:
                continue
            bare = BARE.search(code)
            if bare:
                report(path, i + 1, f'{bare.group(1)}: use the names of base/atomic.h')
            if VOLATILE.search(code):
                report(path, i + 1, 'volatile orders nothing')
            for match in ACCESS.finditer(code):
                name = match.group(1)
                text = comment_of_site(source, i)
                if name in RELAXED:
                    if not re.search(r'[A-Za-z]{3}', text) and \
                            'relaxed' not in head.get(i, '').lower():
                        report(path, i + 1, f'{name} without a reason')
                    continue
                labels = labels_in(text)
                if not labels and (name == CRASH or PRIVATE.search(text)):
                    continue
                if not labels:
                    labels = labels_in(head.get(i, ''))
                    if not labels:
                        report(path, i + 1, f'{name} without a protocol label')
                        continue
                else:
                    need = ONLY_END.get(name, '')
                    given = ''.join(end for _, end in labels)
                    if given and need not in given:
                        report(path, i + 1, f'{name} is labelled /{given}, but is an end {need}')
                for label, end in labels:
                    cite(path, i + 1, label, end)

    for label, (path, line) in sorted(used.items()):
        if label not in cards:
            report(path, line, f'{label} has no card')
        elif ends[label] < {'A', 'R'}:
            report(path, line, f'{label} has only the end {"".join(ends[label])}')

    try:
        page = lintlib.read(root, 'doc/PROTOCOLS.md')
    except FileNotFoundError:
        page = ''
    listed = {}
    for i, line in enumerate(page.split('\n'), 1):
        match = re.match(r'\|\s*`?(' + NAME + r')`?\s*\|', line)
        if match:
            listed[match.group(1)] = (i, line)
    for label, (path, _) in sorted(cards.items()):
        if label not in listed:
            report('doc/PROTOCOLS.md', 1, f'does not list {label} of {path}')
        elif path not in listed[label][1]:
            report('doc/PROTOCOLS.md', listed[label][0], f'{label} lies in {path}')
    for label, (i, _) in listed.items():
        if label not in cards:
            report('doc/PROTOCOLS.md', i, f'lists {label}, which has no card')
    report.exit()


main(sys.argv[1], '--index' in sys.argv[2:])
