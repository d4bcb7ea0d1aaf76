# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the page's scripts with Node, where it is installed."""
import os
import re
import shutil
import subprocess
import sys

HOME = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', 'js')
CASE = re.compile(r'^\s*(not )?ok \d+ - (.*?)(?: # .*)?$')


def skip(reason):
    print(f'1..0 # SKIP {reason}')
    sys.exit(0)


def main():
    node = shutil.which('node')
    if not node:
        skip('Node is not installed; the page itself needs none')
    files = sorted(os.path.join(HOME, name) for name in os.listdir(HOME) if name.endswith('.test.mjs'))
    bad = number = 0
    for path in files:
        # One file at a time as a plain program: what that prints is the same in all versions of Node.
        done = subprocess.run([node, '--test-reporter=tap', path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8', errors='replace')
        cases = [(found.group(2), bool(found.group(1))) for found in map(CASE.match, done.stdout.splitlines()) if found]
        if not cases:
            cases = [(f'{os.path.basename(path)} runs', True)]
        if done.returncode and not any(failed for _, failed in cases):
            cases.append((f'{os.path.basename(path)} ends well', True))
        if any(failed for _, failed in cases):
            print('\n'.join(f'# {line}' for line in done.stdout.splitlines()))
        for name, failed in cases:
            number += 1
            bad += failed
            print(f'{"not " if failed else ""}ok {number} - {name}')
    print(f'1..{number}')
    sys.exit(1 if bad else 0)


main()
