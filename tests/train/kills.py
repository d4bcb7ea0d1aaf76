# SPDX-License-Identifier: Apache-2.0
"""kill -9 at any moment, --resume, and in the end the same bits as a run that nobody disturbed.

`kills.py N` kills N times, shared among the kinds of jobs, and each kind at least once.
"""
import random
import sys
import time

import tap
from training import AHEAD, Home, differences

KINDS = {
    'plain': {},
    'accumulated': {'train__accumulate': 2, 'train__batch': 1},
    'adamw8': {'train__optimizer': 'adamw8'},
    'adafactor': {'train__optimizer': 'adafactor', 'train__scale_parameter': 'true'},
    'prodigy': {'train__optimizer': 'prodigy', 'train__lr': 1, 'train__dtype': 'bf16'},
    'dropout_and_average': {'model__dropout': 0.1, 'train__ema': 0.9},
    'f16': {'train__dtype': 'f16'},
    'bf16_rounded_by_chance': {'train__dtype': 'bf16', 'train__master': 'stochastic'},
    'lora_on_int8': {'lora__rank': 2, 'lora__dropout': 0.1, 'model__quantize': 'int8', 'train__ema': 0.9},
}
KILLS = int(sys.argv[1]) if len(sys.argv) > 1 else 20
SEED = 20261115


def disturbed(kind, keys, kills):
    chance = random.Random(f'{SEED} {kind}')
    steps = (AHEAD + 7) * kills + 1
    keys = {**keys, 'train__steps': steps, 'checkpoint__every': 3}
    with Home() as home:
        done = home.train('whole', **keys)
        if done.returncode:
            yield done.stderr
            return
        for n in range(kills):
            run = home.start('killed', '--resume', **keys)
            newest = max(home.steps('killed'), default=0)
            # In the middle of the start, of a step, of a save, or of the removal of an old one.  Before step 7 is told,
            # that of step 3 is whole, since that of step 6 has waited for it.
            ahead = chance.choice((0, 1, 2, 3, 4, 5, 6, 7)) if n else 7
            if ahead and not run.reach(newest + ahead):
                yield f'kill {n}: it ended before: {run.said()}'
            time.sleep(chance.random() * 0.02)
            run.kill()
        done = home.train('killed', '--resume', **keys)
        if done.returncode or 'is incomplete' in done.stderr or 'resuming from' not in done.stderr:
            yield f'exit {done.returncode}: {done.stderr}'
        yield from differences(home, 'killed', 'whole', steps)
        if home.losses('killed') != home.losses('whole'):
            yield 'the logs differ'


def case_of(kind, keys, kills):
    def case():
        return disturbed(kind, keys, kills)
    case.__name__ = f'{kind}_killed_{kills}_times'
    return case


SHARES = [max(1, KILLS // len(KINDS) + (i < KILLS % len(KINDS))) for i in range(len(KINDS))]
tap.run([case_of(kind, keys, share) for (kind, keys), share in zip(KINDS.items(), SHARES)])
