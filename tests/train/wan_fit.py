# SPDX-License-Identifier: Apache-2.0
"""The configurations in configs/ fit into the memory they are for, and --fit chooses what fits a device."""
import glob
import json
import os
import subprocess

import tap
from training import CAIRN
from wanjobs import CACHES, WanHome

CONFIGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../configs')
# The least that such a machine leaves: GiB of the GPU, and of the host (of both, where they share it).
MACHINES = {
    'wan22-strix-halo-128gb': ('gfx1151', 96, 96),
    'wan22-strix-halo-64gb': ('gfx1151', 46, 46),
    'wan22-24gb': ('gfx1100', 23, 56),
    'wan22-16gb': ('gfx1201', 15, 26),
    'wan22-8gb': ('gfx1102', 7.5, 26),
}
GIB = 1 << 30
JOB = 'model: {kind: wan, task: t2v-A14B}\ndata: {size: 832x480x33}\ntrain: {optimizer: adamw8}\n'


def plan(config, *options):
    done = subprocess.run([CAIRN, 'plan', config, '--json', *options], capture_output=True, text=True)
    return done, json.loads(done.stdout) if done.stdout.startswith('{') else {}


def every_configuration_fits():
    if sorted(MACHINES) != sorted(os.path.basename(f)[:-5] for f in glob.glob(f'{CONFIGS}/wan22-*.yaml')):
        yield 'a configuration has no machine here'
    for name, (gfx, device, host) in MACHINES.items():
        done, p = plan(f'{CONFIGS}/{name}.yaml', '--gfx', gfx, '--memory', str(device))
        if done.returncode or not p.get('fits') or p['host_bytes'] > host * GIB:
            yield f'{name}: exit {done.returncode}, {p.get("host_bytes")} bytes of the host: {done.stderr}'
        elif any('expert' in text or 'optimizer' in text for text in p['given_way']):
            yield f'{name}: {p["given_way"]}'


def bytes_of_a_weight(p):
    weights = next(part for part in p['parts'] if part['name'] == 'weights')
    return round(sum(o['device_bytes'] + o['host_bytes'] for o in weights['of'] if 'expert' in o['name']) / p['parameters'])


def what_costs_least_is_chosen():
    # GiB: bytes of a weight, recomputed, streamed, fits
    want = {('gfx1151', 240): (2, False, False, True), ('gfx1151', 96): (2, True, False, True), ('gfx1151', 48): (1, True, False, True),
            ('gfx1201', 16): (1, True, True, True), ('gfx1102', 4): (1, True, True, False)}
    with WanHome() as home:
        with open(f'{home.path}/job.yaml', 'w') as f:
            f.write(JOB)
        for (gfx, memory), expected in want.items():
            done, p = plan(f'{home.path}/job.yaml', '--fit', '--gfx', gfx, '--memory', str(memory))
            got = (bytes_of_a_weight(p), p['recompute'], p['blocks_streamed'] > 0, p['fits'])
            if got[3] != expected[3] or (got[3] and got != expected) or (done.returncode == 0) != got[3]:
                yield f'{gfx}, {memory} GiB: {got}, exit {done.returncode}'


def the_users_keys_stay():
    with WanHome() as home:
        with open(f'{home.path}/job.yaml', 'w') as f:
            f.write(JOB)
        _, p = plan(f'{home.path}/job.yaml', '--fit', '--gfx', 'gfx1100', '--memory', '24', '--set', 'model.quantize=none')
        if bytes_of_a_weight(p) != 2:
            yield f'{p["parts"]}'


def kept(home, run):
    with open(f'{home.path}/{run}/config.yaml') as f:
        lines = [line.split('#')[0].strip() for line in f]
    return [line for line in lines if line.startswith(('quantize:', 'recompute:', 'idle:'))]


def trained_and_resumed():
    """What was chosen is in the run's configuration, and a resumed run keeps it with any memory."""
    with WanHome() as home:
        keys = {'data__path': CACHES, 'train__steps': 4, 'checkpoint__every': 2}
        done = home.train('run', '--fit', '--steps', '2', **keys)
        if done.returncode:
            yield f'exit {done.returncode}: {done.stderr}'
            return
        first = kept(home, 'run')
        if 'recompute: none' not in first or 'quantize: none' not in first:
            yield f'{first}'
        again = home.train('run', '--fit', '--resume', memory__limit=0.006, **keys)
        if again.returncode or kept(home, 'run') != first:
            yield f'resumed: exit {again.returncode}, {kept(home, "run")}: {again.stderr}'


tap.run([every_configuration_fits, what_costs_least_is_chosen, the_users_keys_stay, trained_and_resumed])
