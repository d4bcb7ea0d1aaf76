# SPDX-License-Identifier: Apache-2.0
"""The C sources are as .clang-format 14 would write them; other versions differ, so they are not asked."""
import shutil

import lint


def formatter():
    for name in ('clang-format-14', 'clang-format'):
        if shutil.which(name) and 'version 14.' in lint.run(name, '--version').stdout:
            return name
    lint.skip('no clang-format 14')


def findings(name):
    for path in lint.files('.c', '.h'):
        done = lint.run(name, '--dry-run', '-Werror', path)
        if done.returncode:
            yield f'{path}: {done.stdout.count("error:")} places; run: {name} -i {path}'


lint.report(('C sources are formatted', findings(formatter())))
