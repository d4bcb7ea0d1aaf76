# SPDX-License-Identifier: Apache-2.0
"""The C sources are as .clang-format 14 would write them; other versions differ, so they are not asked."""
import collections
import re
import shutil

import lint


def formatter():
    for name in ('clang-format-14', 'clang-format'):
        if shutil.which(name) and 'version 14.' in lint.run(name, '--version').stdout:
            return name
    lint.skip('no clang-format 14')


def findings(name):
    """One call for all files: most of a call is its start."""
    done = lint.run(name, '--dry-run', '-Werror', *lint.files('.c', '.h'))
    places = collections.Counter(re.findall(r'^(\S+?):\d+:\d+: error:', done.stdout, re.M))
    for path, count in sorted(places.items()):
        yield f'{path}: {count} places; run: {name} -i {path}'
    if done.returncode and not places:
        yield done.stdout


lint.report(('C sources are formatted', findings(formatter())))
