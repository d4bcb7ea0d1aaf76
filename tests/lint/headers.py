# SPDX-License-Identifier: Apache-2.0
"""Every header compiles alone, with the compiler of this build."""
import sys

import lint

build, compiler = sys.argv[1], sys.argv[2:]
FLAGS = ['-std=gnu11', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Wshadow', '-Werror', '-Wno-unused-function',
         '-Wno-unused-variable', '-Isrc', '-Itests', '-I' + build, '-fsyntax-only', '-x', 'c']


def findings(header):
    done = lint.run(*compiler, *FLAGS, header)
    return done.stdout.splitlines() if done.returncode else []


lint.report(*[(header, findings(header)) for header in lint.files('.h')])
