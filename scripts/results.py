#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""results.py TALLY NAME TESTLOG: adds what a run of `meson test` found to the file TALLY.

Programs that report their cases as cmocka does count case by case, others as one. A program that
failed without a failed case (it crashed or ran out of time) counts as one failed. What failed and
why, and why something was skipped, is printed. A line of TALLY is: passed failed skipped.
"""
import json
import re
import sys

CASE = re.compile(r'^\[ *(OK|SKIPPED|FAILED) *\] (\S+)$')
END_OF_GROUP = re.compile(r'^\[=+\] .* run\.$|^\[=+\] \S+: .* run\.$')
BEGIN_OF_GROUP = re.compile(r'^\[=+\] Running|^\[=+\] \S+: Running')
REASON = re.compile(r'^(?:skipped: |SKIP[:\s]|(?=known difference: ))\s*(.*)')


def cases(text):
    """(outcome, case, reason) of each case in the output of a cmocka program."""
    inside = False
    reason = ''
    for line in text.split('\n'):
        line = line.strip()
        if BEGIN_OF_GROUP.match(line):
            inside = True
        elif END_OF_GROUP.match(line):
            inside = False
        match = REASON.match(line)
        if match:
            reason = match.group(1)
        match = CASE.match(line)
        if inside and match:
            yield match.group(1), match.group(2), reason
            reason = ''


def tail(text, lines=25):
    return '\n'.join('      | ' + line for line in text.rstrip().split('\n')[-lines:])


def main(tally, name, testlog):
    passed = failed = skipped = 0
    with open(testlog, encoding='utf-8', errors='replace') as f:
        tests = [json.loads(line) for line in f if line.strip()]
    for test in tests:
        title = f'{name}: {test["name"]}'
        output = test.get('stdout') or ''
        errors = test.get('stderr') or ''
        found = list(cases(output + '\n' + errors))
        if test['result'] in ('OK', 'EXPECTEDFAIL'):
            passed += sum(outcome == 'OK' for outcome, _, _ in found) or (0 if found else 1)
            for outcome, case, reason in found:
                if outcome == 'SKIPPED':
                    skipped += 1
                    print(f'  skipped  {title}: {case}: {reason or "no reason given"}')
        elif test['result'] == 'SKIP':
            skipped += 1
            last = ([''] + (output + '\n' + errors).strip().split('\n'))[-1]
            match = REASON.match(last)
            print(f'  skipped  {title}: {match.group(1) if match else last or "no reason given"}')
        else:
            passed += sum(outcome == 'OK' for outcome, _, _ in found)
            bad = [case for outcome, case, _ in found if outcome == 'FAILED']
            failed += len(bad) or 1
            print(f'  FAILED   {title} ({test["result"]}, status {test.get("returncode")})'
                  f'{": " + " ".join(bad) if bad else ""}')
            print(tail(output + '\n' + errors))
    if not tests:
        failed += 1
        print(f'  FAILED   {name}: ran no test')
    print(f'  {name}: {passed} passed, {failed} failed, {skipped} skipped')
    with open(tally, 'a', encoding='utf-8') as f:
        f.write(f'{passed} {failed} {skipped}\n')


main(*sys.argv[1:])
