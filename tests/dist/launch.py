# SPDX-License-Identifier: Apache-2.0
"""What the tests of several ranks share: the launchers that are there, and jobs under them.

Open MPI and MPICH may both be installed; Debian gives each its own name.
"""
import os
import shutil
import subprocess

import tap
from training import CAIRN, PATIENCE

OPEN_MPI = shutil.which('mpirun.openmpi')
MPICH = shutil.which('mpiexec.hydra')
AS_ROOT = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}


def launcher(name):
    """What comes before `-n N`."""
    program = {'open_mpi': OPEN_MPI, 'mpich': MPICH}[name]
    if not program:
        raise tap.Skip(f'{name} is not installed')
    return [program] + (['--oversubscribe', '--bind-to', 'none'] if name == 'open_mpi' else [])


def any_launcher():
    return launcher('open_mpi' if OPEN_MPI else 'mpich')


def environment(home, env=None):
    """The libraries of MPI leave memory behind, which is not what a sanitizer is asked about here."""
    asan = os.environ.get('ASAN_OPTIONS', '') + ':detect_leaks=0'
    return home.environment({'ASAN_OPTIONS': asan, **AS_ROOT, 'XDG_CACHE_HOME': home.path + '/cache', 'XDG_STATE_HOME': home.path + '/state',
                             **(env or {})})


def finish(command, home, env=None):
    return subprocess.run(command, env=environment(home, env), cwd=home.path, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors='replace', timeout=PATIENCE, check=False)


def train(home, ranks, run, *options, by=None, env=None, **keys):
    """To its end: under a launcher, or alone where ranks is 1."""
    before = [*(by or any_launcher()), '-n', str(ranks)] if ranks > 1 else []
    return finish(before + home.command(run, *options, **keys), home, env)


def check(n, kind=None, by=None):
    """comm_check, a program for the calls alone."""
    program = os.path.join(os.path.dirname(CAIRN), 'tests/dist/comm_check')
    return [*(by or any_launcher()), '-n', str(n), program] + ([kind] if kind else [])
