# SPDX-License-Identifier: Apache-2.0
"""What the tests of `cairn train` as a process share: a home with a text, tiny jobs, and a run that can be met at a step.

A run writes its steps into a pipe of one page, which is read without a buffer, so that it is at most AHEAD steps ahead of
who reads it, however slow that one is.
"""
import fcntl
import json
import os
import pty
import shutil
import signal
import subprocess
import tempfile
import time

import tap

CAIRN = os.environ['CAIRN']
PATIENCE = 120
F_SETPIPE_SZ = 1031
AHEAD = 40  # a line has over 102 bytes
FILES = ('model.safetensors', 'model-ema.safetensors', 'optimizer.safetensors') + \
    tuple(f'lora{expert}{average}.safetensors' for expert in ('', '_high_noise', '_low_noise') for average in ('', '-ema'))
TEXT = ' '.join(('stone', 'river', 'path', 'moss', 'wind', 'over', 'under')[i * i % 11 % 7] for i in range(700))
SMALL = {'data.path': 'text.txt', 'model.layers': 1, 'model.heads': 2, 'model.width': 16, 'model.context': 8,
         'train.batch': 2, 'train.device': 'cpu', 'train.warmup': 2, 'train.lr': 1e-2, 'eval.every': 0}


FAKE = os.path.join(os.path.dirname(CAIRN), 'tests/gpu/fake')


def fake(home, told=''):
    """The environment of an AMD GPU that is none."""
    if not os.path.exists(FAKE + '/libamdhip64.so.7'):
        raise tap.Skip('the fake HIP is not built')
    return {'LD_LIBRARY_PATH': FAKE, 'FAKE_GFX': 'gfx1100', 'CAIRN_FAKE_HIP': told, 'XDG_CACHE_HOME': home.path + '/cache'}


class Home:
    """A temporary folder; `with Home() as home`."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix='cairn-train-')
        with open(self.path + '/text.txt', 'w', encoding='utf-8') as f:
            f.write(TEXT)
        with open(self.path + '/job.yaml', 'w', encoding='utf-8') as f:
            f.write('run:\n  name: job\n')
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def command(self, run, *options, **keys):
        sets = {**SMALL, 'run.dir': run, **{k.replace('__', '.'): v for k, v in keys.items()}}
        return [CAIRN, 'train', 'job.yaml', *options] + [f'--set={k}={v}' for k, v in sets.items()]

    def environment(self, env):
        """The user's own would change the answers."""
        return {'PATH': '/usr/bin:/bin', 'LC_ALL': 'C.UTF-8', 'HOME': self.path,
                'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', ''), **(env or {})}

    def train(self, run, *options, env=None, **keys):
        """To its end; what it said is in .stderr."""
        return subprocess.run(self.command(run, *options, **keys), env=self.environment(env), cwd=self.path, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              errors='replace', timeout=PATIENCE, check=False)

    def on_terminal(self, run, *options, env=None, **keys):
        """To its end, with a terminal for what it says; returns that."""
        return self.terminal(self.command(run, *options, **keys), env)

    def terminal(self, command, env=None):
        """The same for any command."""
        master, slave = pty.openpty()
        said = b''
        with subprocess.Popen(command, env=self.environment(env), cwd=self.path,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=slave):
            os.close(slave)
            with os.fdopen(master, 'rb', buffering=0) as terminal:
                try:
                    while block := terminal.read(4096):
                        said += block
                except OSError:  # the other side is closed
                    pass
        return said.decode(errors='replace')

    def start(self, run, *options, env=None, **keys):
        return Started(self, self.environment(env), run, options, keys)

    def steps(self, run):
        """Of the checkpoints that are there."""
        try:
            names = os.listdir(f'{self.path}/{run}/checkpoints')
        except FileNotFoundError:
            return []
        return sorted(int(n[5:]) for n in names if n.startswith('step-'))

    def checkpoint(self, run, step):
        return f'{self.path}/{run}/checkpoints/step-{step}'

    def weights(self, run, step):
        """The bytes of a checkpoint's numbers."""
        found = {}
        for name in FILES:
            path = f'{self.checkpoint(run, step)}/{name}'
            if os.path.exists(path):
                with open(path, 'rb') as f:
                    found[name] = f.read()
        return found

    def log(self, run):
        with open(f'{self.path}/{run}/log.jsonl', encoding='utf-8') as f:
            return [json.loads(line) for line in f]

    def losses(self, run):
        return [line['loss'] for line in self.log(run) if 'loss' in line]


def tells_where_it_sleeps():
    """Of a process that waits for its input."""
    with subprocess.Popen(['cat'], stdin=subprocess.PIPE) as cat:
        time.sleep(0.5)
        with open(f'/proc/{cat.pid}/wchan', encoding='utf-8') as f:
            told = f.read()
        cat.stdin.close()
    return 'pipe' in told


def wait(condition, what):
    limit = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > limit:
            raise AssertionError(f'no {what}')
        time.sleep(0.02)


class Started:
    """A run that goes on while the test looks at it."""

    def __init__(self, home, env, run, options, keys):
        self.home, self.run = home, run
        self.out = tempfile.TemporaryFile()
        reader, writer = os.pipe()
        fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
        self.process = subprocess.Popen(
            home.command(run, f'--json-events=/dev/fd/{writer}', *options, **keys), env=env, cwd=home.path,
            pass_fds=(writer,), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.out)
        os.close(writer)
        self.events = os.fdopen(reader, 'rb', buffering=0)

    def reach(self, step):
        """Until it has done so many steps; False: it ended before."""
        return any(json.loads(line)['step'] >= step for line in self.events)

    def said(self):
        self.out.seek(0)
        return self.out.read().decode(errors='replace')

    def until(self, condition, what):
        """Its steps are read on meanwhile."""
        limit = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > limit or not self.events.readline():
                raise AssertionError(f'no {what}: {self.said()}')

    def until_stuck(self):
        """Until it sleeps in the pipe, which is full."""
        def is_stuck():
            with open(f'/proc/{self.process.pid}/wchan', encoding='utf-8') as f:
                return 'pipe' in f.read()
        if not tells_where_it_sleeps():
            raise tap.Skip('this kernel does not tell where a process sleeps')
        wait(is_stuck, 'full pipe')

    def wait_for(self, word):
        wait(lambda: word in self.said(), word)

    def end(self):
        """Its exit status."""
        for _ in self.events:
            pass
        status = self.process.wait(PATIENCE)
        self.events.close()
        return status

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        return self.end()


def differences(home, run, other, step):
    """Findings where the two runs are not the same bits."""
    got, want = home.weights(run, step), home.weights(other, step)
    if len(want) < 2:
        yield f'{other} has {list(want)} at step {step}, and checkpoints {home.steps(other)}'
    for name in want.keys() | got.keys():
        if got.get(name) != want.get(name):
            yield f'{run}: {name} at step {step} is not that of {other}'
