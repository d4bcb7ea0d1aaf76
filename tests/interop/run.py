# SPDX-License-Identifier: Apache-2.0
"""run.py BUILD-DIR PROGRAM [ARGUMENT…]: runs an interop program in a virtual environment with the packages it needs.

The environment is made once, in BUILD-DIR, by pip.  Where that is not possible the test is skipped and
the reason is told.  INTEROP_PYTHON=/path/to/python uses another Python.

torch is large.  A program that makes use of it gets an environment with it only where INTEROP_TORCH is set, as `make test-interop` does, or
where there is one already; else it runs without, and is told why by INTEROP_WITHOUT.  The packages of CUDA are not needed: torch comes
from the index of its builds for the CPU, or from INTEROP_TORCH_INDEX.
"""
import os
import subprocess
import sys

# The folder of the environment and what is in it, for a program, or else for all others.
ENVIRONMENTS = {
    'board.py': ('interop-venv-board', ['tensorboard>=2.12', 'setuptools<81']),
    'text_clean.py': ('interop-venv-clean', ['ftfy>=6.3,<7']),
    'unigram.py': ('interop-venv-unigram', ['sentencepiece>=0.2.2', 'tokenizers>=0.23']),
    'media.py': ('interop-venv-media', ['pillow>=11.3', 'av>=13', 'numpy']),
    'resize.py': ('interop-venv-pictures', ['pillow>=10', 'opencv-python-headless>=4.8', 'numpy']),
    'schema.py': ('interop-venv-schema', ['schemathesis==4.32.5']),
    None: ('interop-venv', ['safetensors>=0.5', 'numpy', 'ml_dtypes', 'tokenizers>=0.20']),
}

# Programs that also make use of torch, and their environment then.
WITH_TORCH = 'wan_lora.py', 'adapters.py', 'gpt.py'
TORCH_ENVIRONMENT = 'interop-venv-torch', ['torch', 'diffusers>=0.35', 'peft>=0.17', 'safetensors>=0.5', 'numpy', 'ml_dtypes']
TORCH_INDEX = 'https://download.pytorch.org/whl/cpu'


def skip(reason):
    print(f'1..0 # SKIP {reason}')
    sys.exit(0)


def quiet(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8', errors='replace')
    return '' if done.returncode == 0 else (done.stdout.strip().splitlines() or ['it failed'])[-1]


def written(path):
    """What a file says; nothing if it is not there."""
    try:
        with open(path, encoding='utf-8') as f:
            return f.read()
    except FileNotFoundError:
        return ''


def place(build, name, packages):
    """The Python of an environment, the mark that it is complete, and whether it is."""
    folder = os.path.join(build, name)
    mark = os.path.join(folder, 'complete')
    return os.path.join(folder, 'bin', 'python'), mark, written(mark) == ' '.join(packages)


def make(build, name, *installs):
    """Why the environment with what each pip installs, (options, packages), cannot be made; '': it is there."""
    packages = [package for _, some in installs for package in some]
    python, mark, complete = place(build, name, packages)
    if complete:
        return ''
    trouble = quiet(sys.executable, '-m', 'venv', '--clear', os.path.join(build, name))
    if trouble:
        return f'no virtual environment: {trouble}'
    for options, some in installs:
        trouble = quiet(python, '-m', 'pip', 'install', '--quiet', '--retries', '1', '--timeout', '20',
                        '--disable-pip-version-check', '--only-binary', ':all:', *options, *some)
        if trouble:
            return f'pip has no {" ".join(some)}: {trouble}'
    with open(mark, 'w', encoding='utf-8') as f:
        f.write(' '.join(packages))
    return ''


def environment(build, program):
    name, packages = ENVIRONMENTS.get(program, ENVIRONMENTS[None])
    trouble = make(build, name, ([], packages))
    return skip(trouble) if trouble else place(build, name, packages)[0]


def with_torch(build, program):
    """The Python that has torch; None: there is none, and INTEROP_WITHOUT says why."""
    name, packages = TORCH_ENVIRONMENT
    python, _, complete = place(build, name, packages)
    if program not in WITH_TORCH:
        return None
    if complete:
        return python
    trouble = 'torch is large: make test-interop installs it'
    if os.environ.get('INTEROP_TORCH'):
        index = os.environ.get('INTEROP_TORCH_INDEX', TORCH_INDEX)
        trouble = make(build, name, (['--index-url', index], packages[:1]), ([], packages[1:]))
    os.environ['INTEROP_WITHOUT'] = trouble
    return None if trouble else python


def preload(environ):
    """A library with the address sanitizer in it needs the sanitizer first; leaks of Python are not ours."""
    library = environ.get('INTEROP_PRELOAD')
    if library:
        environ['LD_PRELOAD'] = library
        environ['ASAN_OPTIONS'] = environ.get('ASAN_OPTIONS', '') + ':detect_leaks=0'
    return environ


def main(build, *program):
    name = os.path.basename(program[0])
    python = os.environ.get('INTEROP_PYTHON') or with_torch(build, name) or environment(build, name)
    os.execve(python, [python, *program], preload(dict(os.environ)))


main(*sys.argv[1:])
