# SPDX-License-Identifier: Apache-2.0
"""`cairn run` plans for the PyTorch of the command that it starts, and says which that is.

The PyTorches are trees of mktree.py; their bin/python3 is the system's, so that the stand-in trainers really run.
"""
import json
import os
import subprocess
import sys

import tap
from supervised import CAIRN, DATA, Home

MKTREE = os.path.join(DATA, '../tools/mktree.py')
HALO = os.path.join(DATA, 'sysfs/gfx1151-strixhalo-aurora-112g-gtt')
NAMES = ('HSA_OVERRIDE_GFX_VERSION', 'AMD_SERIALIZE_KERNEL', 'PYTORCH_NO_HIP_MEMORY_CACHING', 'LD_LIBRARY_PATH')
TELL = f'''
import json, os
print(json.dumps({{n: os.environ[n] for n in {NAMES!r} if n in os.environ}}))
'''
# Waits until cairn has written so many events of a kind; a trainer that is still there is seen in any case.
WAIT = '''
import json, os, sys, time
def wait_for(kind, n):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with open(os.environ["CAIRN_RUN"] + "/events.jsonl") as f:
            if sum(json.loads(line).get("event") == kind for line in f if line.endswith("\\n")) >= n:
                return
        time.sleep(0.05)
'''
# Loads a PyTorch, as far as /proc can tell.
LOAD = WAIT + '''
import mmap
with open("real/venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so", "rb") as f:
    loaded = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
wait_for("torch", 1)
if os.environ.get("TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL") != "1":
    sys.exit("RuntimeError: HIP error: invalid device function")
'''
OLD = ('--torch', '2.9.1+rocm6.4', '--hip', '6.4.43484', '--targets', 'gfx1030,gfx1100')
HALO_TORCH = ('--torch', '2.10.0+rocm7.0', '--hip', '7.0.51831', '--targets', 'gfx1100,gfx1151')
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


def a_guess_stops_nothing():
    """./venv has a CPU build, and nobody can tell whether the command imports it: --strict does not refuse for that."""
    with Home() as home:
        os.rename(tree(home, 'cpu', ('--torch', '2.9.1+cpu', '--hip', 'none')), os.path.join(home.path, 'venv'))
        script(home, 'start.sh', '#!/bin/bash\nP=$(cat choice)\n"$P" -c pass\n')
        home.file('choice', sys.executable + '\n')
        home.file('tell.py', TELL)
        lines = {}
        for name, command in (('guess', ['./start.sh']), ('sure', ['venv/bin/python3', 'tell.py'])):
            done = home.run('--gfx', 'gfx1031', '--strict', '--', *command)
            lines[name] = {line.split()[2] for line in done.stderr.decode().splitlines() if line.startswith('cairn: FAIL ')}
        if 'torch-build:' in lines['guess'] or 'torch-build:' not in lines['sure']:
            yield f'{lines}: {done}'


def a_python_without_torch_is_named():
    with Home() as home:
        done = home.run('--gfx', 'gfx1031', '--', '/usr/bin/python3', '-c', 'pass', env={'PYTHONNOUSERSITE': '1'})
        if b'/usr/bin/python3' not in done.stderr or home.verdict()['torch'] is not None:
            if not os.path.exists('/usr/lib/python3/dist-packages/torch'):
                yield done


def the_command_shows_the_trainer():
    """Its notes come without --trainer."""
    for command, has_notes in ((['python3', 'ai-toolkit/run.py', 'wan22.yaml'], True), (['./start.sh', 'wan22.yaml'], True),
                               (['python3', '-c', 'pass'], False)):
        with Home() as home:
            os.mkdir(os.path.join(home.path, 'ai-toolkit'))
            home.file('ai-toolkit/run.py', 'pass\n')
            script(home, 'start.sh', '#!/bin/bash\ncd ai-toolkit\nexec python3 run.py "$@"\n')
            done = home.run('--root', HALO, '--', *command)
            if (b'--with-smi' in done.stderr) != has_notes:
                yield done


UNDOES = '''#!/bin/bash
export HF_TOKEN=hf_secret123
export HSA_OVERRIDE_GFX_VERSION=11.0.0
export AMD_SERIALIZE_KERNEL=3 PYTORCH_NO_HIP_MEMORY_CACHING=1
export LD_LIBRARY_PATH=/opt/rocm/lib
export TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=0
real/venv/bin/python3 train.py "$@"
'''


def of_kind(home, kind):
    return [e for e in home.events() if e['event'] == kind]


def what_a_script_undoes_is_told(failing=''):
    with Home() as home:
        tree(home, 'real', HALO_TORCH)
        script(home, 'start.sh', UNDOES)
        home.file('train.py', WAIT + 'wait_for("environment", 5)\n' + failing)
        done = home.run('--root', HALO, '--', './start.sh', 'train')
        events = {e['name']: e for e in of_kind(home, 'environment')}
        want = {'HSA_OVERRIDE_GFX_VERSION': 3, 'AMD_SERIALIZE_KERNEL': 4, 'PYTORCH_NO_HIP_MEMORY_CACHING': 4,
                'LD_LIBRARY_PATH': 5, 'TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL': 6}
        if set(events) != set(want):
            yield f'{set(events)}: {done}'
        for name, line in want.items():
            if name in events and f'line {line}' not in events[name]['where']:
                yield f'{name}: {events[name]}'
            if done.stderr.count(b'with %s=' % name.encode()) < 1:
                yield f'{name} is not told: {done}'
        if {e['name'] for e in home.verdict()['environment']} != set(want):
            yield home.verdict()['environment']
        for name in os.listdir(home.runs()[-1]):
            with open(os.path.join(home.runs()[-1], name), 'rb') as f:
                if b'hf_secret123' in f.read():
                    yield f'{name} has a secret'
        if failing:
            attempts = home.verdict()['attempts']
            if len(attempts) != 1 or attempts[0]['class'] != 'hsa-override-bad' or done.returncode != 1:
                yield f'{attempts}'
        elif done.returncode:
            yield done


def what_a_script_undoes_counts_in_the_diagnosis():
    """The override is the script's, so no retry can take it out."""
    yield from what_a_script_undoes_is_told('sys.exit("RuntimeError: HIP error: invalid device function")\n')


def what_was_kept_is_not_told():
    with Home() as home:
        tree(home, 'real', HALO_TORCH)
        home.file('train.py', 'import time\ntime.sleep(0.5)\n')
        mine = {'AMD_SERIALIZE_KERNEL': '3'}
        for options in (['--keep', 'AMD_SERIALIZE_KERNEL'], ['--no-env'], ['--with', 'AMD_SERIALIZE_KERNEL=3']):
            home.run('--root', HALO, *options, '--', 'real/venv/bin/python3', 'train.py', env=mine)
            if of_kind(home, 'environment'):
                yield f'{options}: {home.events()}'


def a_run_inside_has_its_own_plan():
    with Home() as home:
        tree(home, 'real', HALO_TORCH)
        home.file('train.py', 'import time\ntime.sleep(0.5)\n')
        done = home.run('--root', HALO, '--', CAIRN, 'run', '--no-env', '--with', 'AMD_SERIALIZE_KERNEL=3', '--',
                        'real/venv/bin/python3', 'train.py')
        for run in home.runs():
            with open(run + '/events.jsonl', encoding='utf-8') as f:
                if any(json.loads(line)['event'] == 'environment' for line in f):
                    yield f'{done}'


def the_torch_that_is_loaded_is_planned_for():
    """Nothing told which PyTorch the command imports; the first attempt shows it, and the second one has its plan."""
    with Home() as home:
        tree(home, 'real', HALO_TORCH)
        home.file('train.py', LOAD)
        script(home, 'start.sh', '#!/bin/bash\nP=$(cat choice)\n"$P" train.py\n')
        home.file('choice', sys.executable + '\n')
        done = home.run('--root', HALO, '--', './start.sh')
        verdict = home.verdict()
        if done.returncode or len(verdict['attempts']) != 2:
            yield f'{done}'
        if not verdict['torch_loaded'].startswith(os.path.join(home.path, 'real')):
            yield verdict['torch_loaded']
        seen = of_kind(home, 'torch')
        if not seen or seen[0]['version'] != '2.10.0+rocm7.0' or seen[0]['planned'] is not None:
            yield seen


def a_wrong_plan_is_told():
    """--torch named another one than the trainer loads."""
    with Home() as home:
        tree(home, 'real', HALO_TORCH)
        tree(home, 'old', OLD)
        home.file('train.py', LOAD)
        done = home.run('--root', HALO, '--torch', 'old/venv', '--retries', '0', '--', 'real/venv/bin/python3', 'train.py')
        seen = of_kind(home, 'torch')
        if len(seen) != 1 or '/old/' not in seen[0]['planned'] or '/real/' not in seen[0]['dir']:
            yield f'{seen}: {done}'
        home.file('train.py', LOAD.replace('wait_for("torch", 1)', 'time.sleep(3)'))  # looks are a second apart
        home.run('--root', HALO, '--', 'real/venv/bin/python3', 'train.py')
        if of_kind(home, 'torch') or not home.verdict()['torch_loaded']:
            yield f'it was planned for: {home.events()}'


tap.run([
    plans_for_the_interpreter_that_is_named,
    another_environment_beside_it_does_not_count,
    a_guess_removes_nothing,
    a_guess_stops_nothing,
    a_python_without_torch_is_named,
    the_command_shows_the_trainer,
    what_a_script_undoes_is_told,
    what_a_script_undoes_counts_in_the_diagnosis,
    what_was_kept_is_not_told,
    a_run_inside_has_its_own_plan,
    the_torch_that_is_loaded_is_planned_for,
    a_wrong_plan_is_told,
])
