# SPDX-License-Identifier: Apache-2.0
"""What the interop programs share: TAP.

A case is a function of no arguments; it returns a list of findings, raises Skip, or fails by an exception.
"""
import sys
import traceback


class Skip(Exception):
    """The reason why a case can not be tried here."""


def outcome(case):
    try:
        return [str(f) for f in case() or []], None
    except Skip as reason:
        return [], str(reason)
    except Exception:  # a case that breaks is a finding, and the others go on
        return traceback.format_exc().splitlines(), None


def run(cases):
    bad = 0
    for number, case in enumerate(cases, 1):
        findings, reason = outcome(case)
        title = case.__name__.replace('_', ' ')
        for finding in findings[:40]:
            print('#', finding)
        print(f'{"not " if findings else ""}ok {number} - {title}{f" # SKIP {reason}" if reason else ""}')
        sys.stdout.flush()
        bad += bool(findings)
    print(f'1..{len(cases)}')
    sys.exit(1 if bad else 0)


def only(cases, names):
    """Those with these names, or all: PROGRAM [CASE...]."""
    run([c for c in cases if not names or c.__name__ in names])
