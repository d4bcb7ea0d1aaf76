# SPDX-License-Identifier: Apache-2.0
"""`cairn sample` when memory is short: it plans and offloads as training does, and the bits are the same."""
import hashlib
import json

import tap
from training import CAIRN, fake
from wanjobs import write_model
from wanmedia import MediaHome

LAYERS = 8
FEW = ('--prompt=a stone --f 1', '--size=16x16x1', '--steps=2', '--cfg=1', '--set=sample.shift=1')  # a step of each expert
DIRECT = {'CAIRN_POOL': 'direct'}  # each piece by itself


class ExpertsHome(MediaHome):
    """With a run of two experts that have several blocks."""

    def __enter__(self):
        super().__enter__()
        for name in 'low', 'high':
            write_model(f'{self.path}/{name}_noise.safetensors', width=64, layers=LAYERS)
        done = self.job('run', {'train.steps': 2, 'train.switch_every': 1, 'train.recipe': 'ai-toolkit'})
        if done.returncode:
            raise AssertionError(done.stderr)
        done, self.whole = self.sample('whole')
        if not self.whole:
            raise AssertionError(done.stderr)
        return self

    def job(self, run, keys, env=None):
        sets = {**self.encoders(), 'model.path': 'low_noise.safetensors', 'model.high_noise_path': 'high_noise.safetensors',
                'model.task': 't2v-A14B', 'model.heads': 2, **keys}
        return self.train(run, env=env, **{k.replace('.', '__'): v for k, v in sets.items()})

    def sample(self, out, *options, run='run', device='hip:0', told=''):
        """What it said, and the hash of the picture."""
        env = {**fake(self, told), **DIRECT} if device != 'cpu' else None
        done = self.process([CAIRN, 'sample', run, f'--device={device}', '--json', f'--out={out}', *FEW, *options], env)
        if done.returncode:
            return done, None
        file = json.loads(done.stdout)['samples'][0]['file']
        with open(f'{self.path}/{out}/{file}', 'rb') as f:
            return done, hashlib.sha256(f.read()).hexdigest()


HOME = ExpertsHome()


def limit(bytes_):
    return f'--set=memory.limit={bytes_ / 2**30}'


def what_the_configuration_asks_for():
    for name, options in (('some', ('memory.blocks=3', 'memory.idle=host')), ('all', ('memory.blocks=host', 'memory.idle=file'))):
        done, got = HOME.sample(name, *(f'--set={o}' for o in options))
        if not got or got != HOME.whole:
            yield f'{name}: {got}, not {HOME.whole}: {done.stderr}'


def a_small_budget_is_enough():
    """Down to the smallest one, below which it says what to do."""
    said = set()
    for kib in 2400, 1500:
        done, got = HOME.sample(f'kib-{kib}', limit(kib * 1024))
        said |= {word for word in ('expert that is not in use in host memory', 'blocks to host memory') if word in done.stderr}
        if not got or got != HOME.whole:
            yield f'{kib} KiB: {got}, not {HOME.whole}: {done.stderr}'
    if len(said) != 2:
        yield f'{said}'
    done, _ = HOME.sample('little', limit(100 * 1024))
    if done.returncode != 1 or 'try a smaller --size' not in done.stderr:
        yield f'exit {done.returncode}: {done.stderr}'


def a_budget_that_trains_also_samples():
    keys = {'train.steps': 1, 'train.warmup': 0, 'train.device': 'hip:0', 'memory.limit': 2400 / 2**20}
    trained = HOME.job('tight', keys, {**fake(HOME), **DIRECT})
    done, got = HOME.sample('of-tight', run='tight')
    if trained.returncode or 'offloading the optimizer' not in trained.stderr or not got or '2.3 MiB available' not in done.stderr:
        yield f'{trained.stderr} {done.stderr}'


def memory_runs_out():
    """Something is offloaded, and the sample is made."""
    noticed = 0
    for n in 9, 23:  # of the weights, of the sample
        done, got = HOME.sample(f'at-{n}', told=f'fail=hipMalloc:{n}:2')
        noticed += 'out of memory (' in done.stderr
        if not got or got != HOME.whole:
            yield f'allocation {n}: {got}, exit {done.returncode}: {done.stderr}'
    if noticed < 2:
        yield f'only {noticed} were noticed'


def the_cpu_reads_an_expert_again():
    done, whole = HOME.sample('cpu', device='cpu')
    again, got = HOME.sample('cpu-small', limit(5000 * 1024), device='cpu')
    if not whole or got != whole or 'dropping the weights of the expert' not in again.stderr:
        yield f'{got}, not {whole}: {done.stderr} {again.stderr}'


with HOME:
    tap.run([what_the_configuration_asks_for, a_small_budget_is_enough, a_budget_that_trains_also_samples, memory_runs_out,
             the_cpu_reads_an_expert_again])
