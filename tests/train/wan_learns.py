# SPDX-License-Identifier: Apache-2.0
"""A LoRA learns its training set, from clips to a loss that falls, over the small models of the demo."""
import os
import random
import sys

import tap
from training import CAIRN
from wanjobs import WanHome

DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../demo')
sys.path.insert(0, DEMO)
import shapes

FACTOR = 0.4  # 200 steps leave at most this share of the loss; 0.19 was measured
KEYS = {'model.path': f'{DEMO}/models/wan.safetensors', 'model.heads': 4, 'model.vae_path': f'{DEMO}/models/vae.safetensors',
        'model.text_encoder_path': f'{DEMO}/models/text_encoder.safetensors', 'model.tokenizer_path': f'{DEMO}/models/tokenizer.json',
        'data.path': 'clips', 'data.resolution': 96, 'data.frames': 9, 'data.val_split': 0.5, 'lora.rank': 16, 'train.batch': 1,
        'train.warmup': 0, 'train.recompute': 'none'}


class Learner(WanHome):
    def clips(self):
        """One clip of a star, which the model does not know, under several names: what is held out is what is trained on."""
        for name in 'abcd':
            shapes.write_clip(self.path + '/clips', name, 'star', 'red', 'left', random.Random(1))

    def loss_after(self, run, steps, rate):
        """On fixed noise and timesteps."""
        done = self.train(run, **{k.replace('.', '__'): v for k, v in KEYS.items()}, train__steps=steps, train__lr=rate, eval__every=steps)
        if done.returncode:
            raise AssertionError(f'exit {done.returncode}: {done.stderr}')
        return [line['val_loss'] for line in self.log(run) if 'val_loss' in line][-1]


def the_loss_on_the_training_set_falls():
    if not os.path.exists(os.path.dirname(CAIRN) + '/cairn-media'):
        raise tap.Skip('cairn-media is not built')
    with Learner() as home:
        home.clips()
        before, after = home.loss_after('before', 1, 1e-12), home.loss_after('after', 200, 2e-3)
        print(f'# {before:.4f}, then {after:.4f}')
        if not after < FACTOR * before:
            yield f'{before} before, {after} after 200 steps'


def models_are_small():
    size = sum(os.path.getsize(f'{DEMO}/models/{name}') for name in os.listdir(f'{DEMO}/models'))
    if size > 4000000:
        yield f'{size} bytes'


tap.run([the_loss_on_the_training_set_falls, models_are_small])
