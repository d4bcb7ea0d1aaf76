# SPDX-License-Identifier: Apache-2.0
"""A LoRA for Wan: kill -9 at any moment, --resume, and in the end the same bits as a run that nobody disturbed."""
import os
import random
import time

import tap
from training import differences, fake
from wanjobs import WanHome, write_model

STEPS = 24  # a line has over 300 bytes, and a run is at most 14 of them ahead
KINDS = {
    'plain': {},
    'accumulated': {'train__accumulate': 2, 'train__batch': 2, 'train__timestep_buckets': 4, 'data__val_split': 0.3, 'eval__every': 5},
    'dropout_and_average': {'lora__dropout': 0.1, 'train__ema': 0.9},
    'adamw8': {'train__optimizer': 'adamw8', 'model__quantize': 'int8'},
    'adafactor': {'train__optimizer': 'adafactor', 'model__quantize': 'fp8'},
    'prodigy': {'train__optimizer': 'prodigy', 'train__lr': 1},
    'a_lora_for_each_expert': {'lora__experts': 'two', 'train__optimizer': 'adamw8', 'train__ema': 0.9},
    'a_lora_for_both_experts': {'lora__experts': 'one', 'train__switch_every': 2, 'train__recipe': 'ai-toolkit'},
    'f16': {'train__dtype': 'f16'},
    'bf16': {'train__dtype': 'bf16', 'train__recompute': 'none', 'train__master': 'none', 'lora__plus': 4},
    'bf16_rounded_by_chance': {'train__dtype': 'bf16', 'train__master': 'stochastic', 'save__dtype': 'f16'},
}
SEED = 20261116


def disturbed(kind, keys):
    chance = random.Random(f'{SEED} {kind}')
    keys = {**keys, 'train__steps': STEPS, 'checkpoint__every': 2}
    with WanHome() as home:
        model = write_model(home.path + '/model.safetensors')
        keys = {'model__path': model, 'model__heads': 2, **keys, **(home.experts(model) if 'lora__experts' in keys else {})}
        done = home.train('whole', **keys)
        if done.returncode:
            yield done.stderr
            return
        # In the middle of the start, of a step or of a save.
        for moment in (chance.choice((4, 5, 6, 7, 8)), 0):
            run = home.start('killed', '--resume', **keys)
            if moment and not run.reach(moment):
                yield f'it ended before step {moment}: {run.said()}'
            wait_for(home.path + '/killed/checkpoints/latest')  # a slow disk may still be writing the first one
            time.sleep(chance.random() * 0.02)
            run.kill()
        done = home.train('killed', '--resume', **keys)
        if done.returncode or 'is incomplete' in done.stderr or 'resuming from' not in done.stderr:
            yield f'exit {done.returncode}: {done.stderr}'
        yield from differences(home, 'killed', 'whole', STEPS)
        for what in 'loss', 'val_loss', 'val_loss_q1', 'val_loss_q4':
            logs = [[line[what] for line in home.log(run) if what in line] for run in ('killed', 'whole')]
            if logs[0] != logs[1] or bool(logs[0]) != (what == 'loss' or 'eval__every' in keys):
                yield f'{what}: {logs}'


def wait_for(path):
    end = time.monotonic() + 20
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.002)


def blocks_on_the_host_killed_once():
    keys = {'train__steps': 4, 'checkpoint__every': 1, 'train__device': 'hip:0', 'memory__blocks': 'host', 'train__dtype': 'f32',
            'model__heads': 2}
    with WanHome() as home:
        keys['model__path'] = write_model(home.path + '/model.safetensors')
        home.train('near', **{**keys, 'train__device': 'cpu', 'memory__blocks': 'auto'})
        run = home.start('killed', env=fake(home), **keys)
        run.reach(2)
        wait_for(home.path + '/killed/checkpoints/latest')
        run.kill()
        done = home.train('killed', '--resume', env=fake(home), **keys)
        if done.returncode or 'resuming from' not in done.stderr:
            yield f'exit {done.returncode}: {done.stderr}'
        if any(abs(a - b) > 1e-5 * b for a, b in zip(home.losses('killed'), home.losses('near'), strict=True)):
            yield f'{home.losses("killed")}, on the CPU {home.losses("near")}'


def case_of(kind, keys):
    def case():
        return disturbed(kind, keys)
    case.__name__ = kind + '_killed_twice'
    return case


tap.run([case_of(kind, keys) for kind, keys in KINDS.items()] + [blocks_on_the_host_killed_once])
