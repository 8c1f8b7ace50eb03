#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""again.py BUILD MULTIPLIER: runs the few tests that failed once more, each alone.

On a small and busy machine a test may meet a deadline because of its neighbours. One that passes
alone is counted as passed, and said so; one that fails again has failed. More than a handful of
failures is no accident: then nothing is run again.
"""
import json
import os
import subprocess
import sys

FEW = 5


def load(path):
    with open(path, encoding='utf-8') as f:
        return [json.loads(line) for line in f if line.strip()]


def main(build, multiplier):
    log = os.path.join(build, 'meson-logs', 'testlog.json')
    results = load(log)
    failed = [i for i, r in enumerate(results) if r['result'] in ('FAIL', 'TIMEOUT', 'ERROR')]
    if not failed or len(failed) > FEW:
        return
    for i in failed:
        suite, name = results[i]['name'].split(' / ', 1)
        suite = suite.split(':', 1)[-1].split('+', 1)[0]
        again = os.path.join(build, 'meson-logs', 'again.json')
        if os.path.exists(again):
            os.unlink(again)
        subprocess.run(['meson', 'test', '-C', build, '--no-rebuild', '-t', multiplier,
                        '--num-processes', '1', '--logbase', 'again', '--suite', suite, name],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        for r in load(again) if os.path.exists(again) else []:
            if r['name'] == results[i]['name'] and r['result'] == 'OK':
                print(f'  again    {r["name"]}: failed among others, passed alone')
                results[i] = r
    with open(log, 'w', encoding='utf-8') as f:
        for r in results:
            f.write(json.dumps(r) + '\n')


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2])
