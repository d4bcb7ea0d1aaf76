# SPDX-License-Identifier: Apache-2.0
"""What the datasets of an ai-toolkit job say about their items: weights, regularisation sets, dropped captions, repeats, clean first frames."""
import os
import re
import shutil

import tap
from training import differences
from wanjobs import DATA, TI2V
from wanmedia import SIDE, UMT5, MediaHome, write_png

VAE_22 = f'{DATA}/vae/vae22_a.weights.safetensors'
CLIP = f'{DATA}/../media/clip.mp4'
STEPS = 6
JOB = """job: extension
config:
  name: j
  process:
  - type: sd_trainer
    datasets:
"""


class JobHome(MediaHome):
    """Folders `media`, with two pictures, and `others`, with one."""

    def __enter__(self):
        super().__enter__()
        os.mkdir(self.path + '/others')
        write_png(self.path + '/others/moss.png', SIDE, SIDE, 7)
        with open(self.path + '/others/moss.txt', 'w', encoding='utf-8') as f:
            f.write('moss')
        return self

    def job(self, name, **folders):
        """An ai-toolkit job; folders: {name: text of more keys}."""
        with open(f'{self.path}/{name}.yaml', 'w', encoding='utf-8') as f:
            f.write(JOB)
            for folder, keys in folders.items():
                size = '' if 'resolution' in keys else f', resolution: {SIDE}'
                f.write(f'    - {{folder_path: {folder}{size}{keys and ", " + keys}}}\n')
        return f'{name}.yaml'

    def on(self, name, folders, *options, **keys):
        """Trains on the datasets; the run and the job's file have the name."""
        sets = {k.replace('.', '__'): v for k, v in self.encoders().items() if k != 'data.resolution'}
        return self.train(name, *options, **{**sets, 'data__path': self.job(name, **folders), 'train__steps': STEPS, 'train__lr': 1e-9,
                                             'train__warmup': 0, **keys})

    def means(self, name, folders, **keys):
        done = self.on(name, folders, **keys)
        if done.returncode:
            raise AssertionError(f'{name}: exit {done.returncode}: {done.stderr}')
        return self.losses(name)


def close(a, b):
    return len(a) == len(b) and all(abs(x - y) < 1e-4 * abs(y) for x, y in zip(a, b))


def a_multiplier_scales_the_loss():
    with JobHome() as home:
        plain = home.means('plain', {'media': ''})
        half = home.means('half', {'media': 'loss_multiplier: 0.5'})
        if not close([2 * x for x in half], plain):
            yield f'{half} and {plain}'
        none = home.means('none', {'media': 'loss_multiplier: 0'})
        if any(none):
            yield f'{none}'


def each_dataset_has_its_multiplier():
    """Where one dataset counts for nothing, its steps have no loss."""
    with JobHome() as home:
        both = home.means('both', {'media': '', 'others': ''})
        one = home.means('one', {'media': '', 'others': 'loss_multiplier: 0'})
        zeros = [i for i, x in enumerate(one) if not x]
        if len(zeros) != STEPS // 3 or not close([x for x in one if x], [x for i, x in enumerate(both) if i not in zeros]):
            yield f'{one} and {both}'


def regularisation_sets_have_every_other_step():
    with JobHome() as home:
        got = home.means('reg', {'media': 'loss_multiplier: 0', 'others': 'is_reg: true, loss_multiplier: 0.5'})
        if [bool(x) for x in got] != [True, False] * (STEPS // 2):
            yield f'{got}'
        done = home.on('only', {'media': 'is_reg: true'})
        if done.returncode != 2 or 'is_reg' not in done.stderr:
            yield f'exit {done.returncode}: {done.stderr}'


def repeats_are_of_a_dataset():
    with JobHome() as home:
        got = home.means('repeats', {'media': 'loss_multiplier: 0', 'others': 'num_repeats: 4'})
        if sum(not x for x in got) != 2:  # two of six samples of an epoch
            yield f'{got}'


def captions_are_dropped_by_dataset():
    """Without its captions, a dataset does not change with them."""
    with JobHome() as home:
        folders = {'media': 'caption_dropout_rate: 1', 'others': 'loss_multiplier: 0'}
        first, kept = home.means('first', folders), home.means('kept', {'media': '', 'others': 'loss_multiplier: 0'})
        for name in 'stone', 'river':
            with open(f'{home.path}/media/{name}.txt', 'w', encoding='utf-8') as f:
                f.write('something else')
        second = home.means('second', folders)
        if first != second or first == kept:
            yield f'{first}, {second} and with captions {kept}'
        done = home.on('third', {'media': 'caption_dropout_rate: 1.5'})
        if done.returncode != 1 or 'caption_dropout_rate' not in done.stderr:
            yield f'a share above 1: exit {done.returncode}: {done.stderr}'


def clean_first_frames_are_of_a_dataset():
    with JobHome() as home:
        for folder in 'media', 'others':
            shutil.rmtree(f'{home.path}/{folder}')
            os.mkdir(f'{home.path}/{folder}')
            shutil.copy(CLIP, f'{home.path}/{folder}/{folder}.mp4')
            with open(f'{home.path}/{folder}/{folder}.txt', 'w', encoding='utf-8') as f:
                f.write('wind')
        keys = {'model__path': TI2V, 'model__vae_path': VAE_22, 'model__text_encoder_path': UMT5, 'train__batch': 2}
        size = 'num_frames: 9, resolution: 64'
        runs = {name: home.means(name, {'media': f'{size}, do_i2v: {one}', 'others': f'{size}, do_i2v: {two}'}, **keys)
                for name, one, two in (('neither', 'false', 'false'), ('first', 'true', 'false'), ('both', 'true', 'true'))}
        key = home.means('key', {'media': size, 'others': size}, **keys, train__clean_first_frame='true')
        if runs['both'] != key or runs['both'] == runs['neither'] or runs['first'] in (runs['both'], runs['neither']):
            yield f'{runs}, with the key {key}'


def what_cannot_be_honoured():
    with JobHome() as home:
        shutil.copytree(home.path + '/media', home.path + '/masks')
        for code, keys, name in ((2, 'network_weight: 0.5', 'network_weight'), (2, 'mask_path: masks', 'mask_path'),
                                 (2, 'mask_path: nowhere', 'mask_path'), (2, 'alpha_mask: true', 'alpha_mask'),
                                 (1, 'loss_multiplier: -1', 'loss_multiplier')):
            for options in (), ('--dry-run',):
                done = home.on('refused', {'media': keys}, *options)
                if done.returncode != code or not re.search(rf'refused.yaml:7:\d+: {name}:', done.stderr):
                    yield f'{name} {options}: exit {done.returncode}: {done.stderr}'


def a_resumed_run_has_the_same_bits():
    with JobHome() as home:
        folders = {'media': 'loss_multiplier: 0.7, caption_dropout_rate: 0.5', 'others': 'is_reg: true, num_repeats: 3, loss_multiplier: 0.3'}
        keys = {'train__lr': 1e-3, 'checkpoint__every': 1, 'train__batch': 2}
        home.on('whole', folders, **keys)
        home.on('parts', folders, **{**keys, 'train__steps': 3})
        done = home.on('parts', folders, '--resume', **keys)
        if done.returncode or 'resuming from' not in done.stderr:
            yield f'exit {done.returncode}: {done.stderr}'
        yield from differences(home, 'parts', 'whole', STEPS)


tap.run([a_multiplier_scales_the_loss, each_dataset_has_its_multiplier, regularisation_sets_have_every_other_step, repeats_are_of_a_dataset,
         captions_are_dropped_by_dataset, clean_first_frames_are_of_a_dataset, what_cannot_be_honoured, a_resumed_run_has_the_same_bits])
