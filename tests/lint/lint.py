# SPDX-License-Identifier: Apache-2.0
"""What the lint programs share: the list of files, and TAP.

A lint is a list of (title, findings) pairs; a finding is a line of text that names the place.
"""
import os
import shutil
import subprocess
import sys

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))


def tracked():
    """Every file of the project, as a path from the top; what git ignores is left out."""
    return sorted(f for f in git_files() or walk() if f and os.path.isfile(os.path.join(TOP, f)))


def git_files():
    """Nothing if this is not a checkout, or there is no git, or it refuses a folder of another user."""
    command = ['git', '-C', TOP, 'ls-files', '-z', '--cached', '--others', '--exclude-standard']
    if not os.path.exists(os.path.join(TOP, '.git')) or not shutil.which('git'):
        return []
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.decode().split('\0') if done.returncode == 0 else []


def walk():
    for folder, below, files in os.walk(TOP):
        below[:] = [d for d in below if d not in ('build', '.git', '__pycache__') and not d.startswith('build-')]
        for name in files:
            yield os.path.relpath(os.path.join(folder, name), TOP)


def files(*ends, under=''):
    """Project files below a folder whose names have one of these ends; captured data is not ours to judge."""
    return [f for f in tracked() if f.startswith(under) and f.endswith(ends) and not f.startswith('tests/data/')]


def read(path):
    with open(os.path.join(TOP, path), encoding='utf-8', errors='replace') as f:
        return f.read()


def lines(path):
    """(number, line) pairs, counting from 1."""
    return enumerate(read(path).splitlines(), 1)


def run(*command, **options):
    """The finished process, with its output as text."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8',
                          errors='replace', cwd=TOP, **options)


def skip(reason):
    """Ends a program that cannot look at all."""
    print(f'1..0 # SKIP {reason}')
    sys.exit(0)


class Skip(str):
    """Stands for the findings of a check that cannot be made here: the reason."""


def report(*results):
    bad = 0
    for number, (title, findings) in enumerate(results, 1):
        if isinstance(findings, Skip):
            print(f'ok {number} - {title} # SKIP {findings}')
            continue
        findings = list(findings)
        for finding in findings:
            print(f'# {finding}')
        print(f'{"not " if findings else ""}ok {number} - {title}')
        bad += bool(findings)
    print(f'1..{len(results)}')
    sys.exit(1 if bad else 0)
