# SPDX-License-Identifier: Apache-2.0
"""Shell scripts pass shellcheck; completions are read by their shells where those are installed."""
import re
import shutil

import lint


def scripts():
    for path in lint.files(''):
        first = lint.read(path).split('\n', 1)[0] if not path.endswith(('.c', '.h', '.md', '.json')) else ''
        if re.match(r'#!.*\b(sh|bash)\b', first) or path.endswith(('.sh', '.bash')):
            yield path


def findings():
    for path in scripts():
        done = lint.run('shellcheck', path)
        if done.returncode:
            yield from [f'{path}:'] + done.stdout.splitlines()


if not shutil.which('shellcheck'):
    lint.skip('no shellcheck')
lint.report(('scripts pass shellcheck', findings()))
