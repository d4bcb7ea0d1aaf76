# SPDX-License-Identifier: Apache-2.0
"""run.py BUILD-DIR PROGRAM [ARGUMENT…]: runs an interop program in a virtual environment with the packages it needs.

The environment is made once, in BUILD-DIR, by pip.  Where that is not possible the test is skipped and
the reason is told.  torch is not installed by itself; INTEROP_PYTHON=/path/to/python uses a Python that has it.
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
    None: ('interop-venv', ['safetensors>=0.5', 'numpy', 'ml_dtypes', 'tokenizers>=0.20']),
}


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


def environment(build, program):
    name, packages = ENVIRONMENTS.get(os.path.basename(program), ENVIRONMENTS[None])
    folder = os.path.join(build, name)
    python, mark = os.path.join(folder, 'bin', 'python'), os.path.join(folder, 'complete')
    if written(mark) == ' '.join(packages):
        return python
    trouble = quiet(sys.executable, '-m', 'venv', '--clear', folder)
    if trouble:
        skip(f'no virtual environment: {trouble}')
    trouble = quiet(python, '-m', 'pip', 'install', '--quiet', '--retries', '1', '--timeout', '20',
                    '--disable-pip-version-check', '--only-binary', ':all:', *packages)
    if trouble:
        skip(f'pip has no {" ".join(packages)}: {trouble}')
    with open(mark, 'w', encoding='utf-8') as f:
        f.write(' '.join(packages))
    return python


def preload(environ):
    """A library with the address sanitizer in it needs the sanitizer first; leaks of Python are not ours."""
    library = environ.get('INTEROP_PRELOAD')
    if library:
        environ['LD_PRELOAD'] = library
        environ['ASAN_OPTIONS'] = environ.get('ASAN_OPTIONS', '') + ':detect_leaks=0'
    return environ


def main(build, *program):
    python = os.environ.get('INTEROP_PYTHON') or environment(build, program[0])
    os.execve(python, [python, *program], preload(dict(os.environ)))


main(*sys.argv[1:])
