# SPDX-License-Identifier: Apache-2.0
"""`cairn run` plans for the PyTorch of the command that it starts, and says which that is.

The PyTorches are trees of mktree.py; their bin/python3 is the system's, so that the stand-in trainers really run.
"""
import json
import os
import subprocess
import sys

import tap
from supervised import DATA, Home

MKTREE = os.path.join(DATA, '../tools/mktree.py')
HALO = os.path.join(DATA, 'sysfs/gfx1151-strixhalo-aurora-112g-gtt')
NAMES = ('HSA_OVERRIDE_GFX_VERSION', 'AMD_SERIALIZE_KERNEL', 'PYTORCH_NO_HIP_MEMORY_CACHING', 'LD_LIBRARY_PATH')
TELL = f'''
import json, os
print(json.dumps({{n: os.environ[n] for n in {NAMES!r} if n in os.environ}}))
'''
OLD = ('--torch', '2.9.1+rocm6.4', '--hip', '6.4.43484', '--targets', 'gfx1030,gfx1100')
NEW = ('--torch', '2.10.0+rocm7.0', '--hip', '7.0.51831', '--targets', 'gfx1030,gfx1031,gfx1100')


def tree(home, name, options):
    subprocess.run([sys.executable, '-B', MKTREE, os.path.join(home.path, name), *options], check=True)
    return os.path.join(home.path, name, 'venv')


def script(home, name, text):
    path = home.file(name, text)
    os.chmod(path, 0o755)
    return path


def told(done):
    """What the trainer saw: the last line of its output."""
    return json.loads(done.stdout.splitlines()[-1])


def plans_for_the_interpreter_that_is_named():
    with Home() as home:
        venv = tree(home, 'old', OLD)
        home.file('tell.py', TELL)
        script(home, 'old/venv/bin/accelerate', f'#!{venv}/bin/python3\nexec(open("tell.py").read())\n')
        script(home, 'start.sh', '#!/bin/bash\nsource old/venv/bin/activate 2>/dev/null\npython3 tell.py "$@"\n')
        home.file('old/venv/bin/activate', f'PATH="{venv}/bin:$PATH"\n')
        for command in (['old/venv/bin/python3', 'tell.py'], ['old/venv/bin/accelerate', 'launch'], ['./start.sh', 'x'],
                        ['bash', '-c', '. old/venv/bin/activate && python3 tell.py'],
                        ['env', 'A=b', 'nice', f'{venv}/bin/python3', 'tell.py']):
            done = home.run('--gfx', 'gfx1031', '--no-preflight', '--', *command)
            torch = home.verdict()['torch']
            if done.returncode or told(done).get('HSA_OVERRIDE_GFX_VERSION') != '10.3.0':
                yield f'{command}: {done}'
            if not torch or not torch['dir'].startswith(venv) or torch['version'] != '2.9.1+rocm6.4' or not torch['sure']:
                yield f'{command}: {torch}'
            if home.events()[0]['torch'] != torch:
                yield f'{command}: {home.events()[0]}'


def another_environment_beside_it_does_not_count():
    """./venv has a PyTorch that carries the chip; the command's has not."""
    with Home() as home:
        tree(home, 'old', OLD)
        os.rename(tree(home, 'new', NEW), os.path.join(home.path, 'venv'))
        home.file('tell.py', TELL)
        done = home.run('--gfx', 'gfx1031', '--no-preflight', '--', 'old/venv/bin/python3', 'tell.py',
                        env={'HSA_OVERRIDE_GFX_VERSION': '10.3.0'})
        if told(done).get('HSA_OVERRIDE_GFX_VERSION') != '10.3.0':
            yield done
        done = home.run('--gfx', 'gfx1031', '--no-preflight', '--', 'venv/bin/python3', 'tell.py',
                        env={'HSA_OVERRIDE_GFX_VERSION': '10.3.0'})
        if 'HSA_OVERRIDE_GFX_VERSION' in told(done):
            yield done
        done = home.run('--gfx', 'gfx1031', '--no-preflight', '--torch', 'old/venv', '--', 'venv/bin/python3', 'tell.py')
        if told(done).get('HSA_OVERRIDE_GFX_VERSION') != '10.3.0' or home.verdict()['torch']['how'] != '--torch':
            yield f'--torch does not win: {done}'


def a_guess_removes_nothing():
    """Nobody can tell what the command starts: what only ./venv speaks against stays."""
    with Home() as home:
        os.rename(tree(home, 'new', NEW), os.path.join(home.path, 'venv'))
        home.file('tell.py', TELL)
        script(home, 'start.sh', '#!/bin/bash\nP=$(cat choice)\n"$P" tell.py\n')
        home.file('choice', sys.executable + '\n')
        mine = {'HSA_OVERRIDE_GFX_VERSION': '10.3.0', 'LD_LIBRARY_PATH': '/opt/rocm/lib', 'AMD_SERIALIZE_KERNEL': '3'}
        done = home.run('--gfx', 'gfx1031', '--no-preflight', '--', './start.sh', env=mine)
        saw = told(done)
        if saw.get('HSA_OVERRIDE_GFX_VERSION') != '10.3.0' or saw.get('LD_LIBRARY_PATH') != '/opt/rocm/lib':
            yield done
        if 'AMD_SERIALIZE_KERNEL' in saw:
            yield f'harms with any PyTorch: {saw}'
        if home.verdict()['torch']['sure'] or b'HSA_OVERRIDE_GFX_VERSION=10.3.0' not in done.stderr:
            yield done
        done = home.run('--gfx', 'gfx1031', '--no-preflight', '--', 'venv/bin/python3', 'tell.py', env=mine)
        if 'HSA_OVERRIDE_GFX_VERSION' in told(done) or not home.verdict()['torch']['sure']:
            yield f'no guess: {done}'


def a_python_without_torch_is_named():
    with Home() as home:
        done = home.run('--gfx', 'gfx1031', '--', '/usr/bin/python3', '-c', 'pass', env={'PYTHONNOUSERSITE': '1'})
        if b'/usr/bin/python3' not in done.stderr or home.verdict()['torch'] is not None:
            if not os.path.exists('/usr/lib/python3/dist-packages/torch'):
                yield done


def the_command_shows_the_trainer():
    """Its notes come without --trainer."""
    with Home() as home:
        os.mkdir(os.path.join(home.path, 'ai-toolkit'))
        home.file('ai-toolkit/run.py', 'pass\n')
        done = home.run('--root', HALO, '--', 'python3', 'ai-toolkit/run.py', 'wan22.yaml')
        named = home.run('--root', HALO, '--trainer', 'ai-toolkit', '--', 'python3', 'ai-toolkit/run.py', 'wan22.yaml')
        other = home.run('--root', HALO, '--', 'python3', '-c', 'pass')
        if b'--with-smi' not in done.stderr or b'--with-smi' not in named.stderr or b'--with-smi' in other.stderr:
            yield done


tap.run([
    plans_for_the_interpreter_that_is_named,
    another_environment_beside_it_does_not_count,
    a_guess_removes_nothing,
    a_python_without_torch_is_named,
    the_command_shows_the_trainer,
])
