# SPDX-License-Identifier: Apache-2.0
"""Files are opened, renamed and removed in src/os alone, which knows the rules of links and ownership."""
import re

import lint

CALLS = '''
open openat openat2 creat fopen freopen rename renameat renameat2 unlink unlinkat remove rmdir opendir fdopendir scandir
scandirat mkdir mkdirat mkdtemp mkstemp mkostemp symlink symlinkat link linkat readlink readlinkat flock mmap munmap
memfd_create
'''
RAW = re.compile(r'(?<![\w.>])(' + '|'.join(CALLS.split()) + r')\s*\(')
TEXT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)

# src/preload lives in other processes and includes nothing.
APART = ('src/os/', 'src/preload/')
# What is still to move.
ALLOWED = {
    'src/run/attempt.c': 'open'.split(),
    'src/run/calls.c': 'open unlink'.split(),
    'src/run/calls_file.c': 'open'.split(),
    'src/run/evidence.c': 'fopen open opendir readlinkat'.split(),
    'src/run/guardian.c': 'open'.split(),
    'src/run/journal.c': 'fdopendir fopen open openat unlinkat'.split(),
    'src/run/known_good.c': 'flock'.split(),
    'src/run/launch.c': 'open'.split(),
    'src/run/observe.c': 'fopen'.split(),
    'src/run/outputs.c': 'opendir'.split(),
    'src/run/preload.c': 'flock mkdtemp open opendir readlink rmdir'.split(),
    'src/run/recorder.c': 'open rename'.split(),
    'src/run/resume.c': 'opendir'.split(),
    'src/run/smi_link.c': 'open readlink rmdir symlink unlinkat'.split(),
    'src/run/stale.c': 'fdopendir mkdirat open openat rename renameat'.split(),
    'src/run/terminal.c': 'open'.split(),
    'src/run/tree.c': 'fopen open opendir readlink readlinkat'.split(),
}


def raw_calls(path):
    text = TEXT.sub(lambda found: '\n' * found.group().count('\n'), lint.read(path))
    for number, line in enumerate(text.splitlines(), 1):
        for call in RAW.findall(line):
            yield number, call


def findings(sources):
    for path in sources:
        for number, call in raw_calls(path):
            if call not in ALLOWED.get(path, ()):
                yield f'{path}:{number}: {call}() belongs to src/os'


def idle_permits(sources):
    for path, calls in ALLOWED.items():
        used = {call for _, call in raw_calls(path)} if path in sources else set()
        for call in sorted(set(calls) - used):
            yield f'tests/lint/os.py permits {path} a {call}() that it no longer has'


sources = [path for path in lint.files('.c', '.h', under='src/') if not path.startswith(APART)]
lint.report(
    ('files are opened, renamed and removed by src/os', findings(sources)),
    ('each permit is used', idle_permits(sources)),
    ('there are sources to look at', [] if sources else ['no file below src/']),
)
