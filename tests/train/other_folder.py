# SPDX-License-Identifier: Apache-2.0
"""A run's relative paths hold from every folder: --resume=RUN and `cairn sample RUN` from elsewhere, with the same bits."""
import json
import os
import shutil
import subprocess

import tap
from training import CAIRN, PATIENCE, Home, differences
from wanjobs import T2V, TI2V, DATA
from wanmedia import VAE, MediaHome, write_png

GPT = {'checkpoint__every': 2, 'sample__every': 2, 'sample__tokens': 4, 'sample__prompts': '[st]'}


def at(home, folder, *command):
    """A command in another folder of the home."""
    os.makedirs(f'{home.path}/{folder}', exist_ok=True)
    return subprocess.run([CAIRN, *command], env=home.environment(None), cwd=f'{home.path}/{folder}', text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors='replace', timeout=PATIENCE, check=False)


def said(done):
    return f'exit {done.returncode}: {done.stderr[-1500:]}'


def config(home, run):
    with open(f'{home.path}/{run}/config.yaml', encoding='utf-8') as f:
        return [line for line in f if not line.startswith('  dir:')]


def run_json(home, run):
    with open(f'{home.path}/{run}/run.json', encoding='utf-8') as f:
        return json.load(f)


def text_goes_on():
    with Home() as home:
        home.train('whole', train__steps=4, **GPT)
        shutil.copytree(f'{home.path}/whole', f'{home.path}/parts', symlinks=True)
        shutil.rmtree(home.checkpoint('parts', 4))
        before = config(home, 'parts')
        done = at(home, 'far/away', 'train', '--resume=../../parts')
        if done.returncode or 'another configuration' in done.stderr:
            yield said(done)
        yield from differences(home, 'parts', 'whole', 4)
        if config(home, 'parts') != before:
            yield f'{before} became {config(home, "parts")}'
        if run_json(home, 'parts')['folder'] != home.path or run_json(home, 'parts')['config_hash'] != run_json(home, 'whole')['config_hash']:
            yield f'{run_json(home, "parts")}'
        done = at(home, 'far', 'sample', '../parts', '--device=cpu')
        with open(f'{home.path}/parts/samples/step-4.txt', encoding='utf-8', errors='replace') as f:
            if done.returncode or done.stdout != f.read():
                yield said(done)


def a_lora_goes_on():
    """Its base is a run that was named by a relative path; so is the tokenizer of the base."""
    with Home() as home:
        home.train('base', train__steps=2, data__tokenizer='bpe', data__vocab=270, checkpoint__every=2)
        keys = {'model__path': 'base', 'lora__rank': 2, 'data__tokenizer': 'base/tokenizer.json', **GPT}
        home.train('whole', train__steps=4, **keys)
        home.train('parts', train__steps=2, **keys)
        done = at(home, 'far', 'train', '--resume=../parts', '--steps=4')
        if done.returncode:
            yield said(done)
        yield from differences(home, 'parts', 'whole', 4)
        names = [f'{home.checkpoint(run, 4)}/adapter_config.json' for run in ('parts', 'whole')]
        if os.path.exists(names[0]) and open(names[0], encoding='utf-8').read() != open(names[1], encoding='utf-8').read():
            yield f'{names} differ'


class VideoHome(MediaHome):
    """All files have relative names."""

    def __enter__(self):
        super().__enter__()
        os.mkdir(f'{self.path}/models')
        for name, file in ('t2v', T2V), ('ti2v', TI2V), ('vae', VAE), ('vae22', f'{DATA}/vae/vae22_a.weights.safetensors'), \
                ('umt5', f'{DATA}/t5/umt5_a.weights_hf.safetensors'):
            os.symlink(os.path.abspath(file), f'{self.path}/models/{name}.safetensors')
        write_png(f'{self.path}/first.png', 64, 64, 3)
        return self

    def job(self, run, **more):
        keys = {**self.encoders(), 'model.path': 'models/t2v.safetensors', 'model.vae_path': 'models/vae.safetensors',
                'model.text_encoder_path': 'models/umt5.safetensors', 'checkpoint.every': 2, 'sample.every': 2, 'sample.steps': 2,
                'sample.prompts': "['a stone --f 1']", 'sample.size': '16x16x1', 'sample.first': 'false'}
        return self.train(run, **{**{k.replace('.', '__'): v for k, v in keys.items()}, **more})

    def picture(self, path):
        with open(f'{self.path}/{path}', 'rb') as f:
            return f.read()


def video_goes_on():
    """Pictures, caches, models and prompts are where they were; the order of items is the same, also with folders of both kinds."""
    with VideoHome() as home:
        shutil.copytree(f'{home.path}/media', f'{home.path}/aaa')
        write_png(f'{home.path}/aaa/stone.png', 16, 16, 9)
        with open(f'{home.path}/prompts.txt', 'w', encoding='utf-8') as f:
            f.write('a river --f 1\n')
        keys = {'data__path': f'[media, {home.path}/aaa]', 'sample__file': 'prompts.txt', 'cache__dir': 'caches'}
        for run, steps in ('whole', 4), ('parts', 2):
            done = home.job(run, train__steps=steps, **keys)
            if done.returncode:
                yield said(done)
        done = at(home, 'zzz/far', 'train', '--resume=../../parts', '--steps=4')
        if done.returncode or ' 0 of latents and 0 of captions made' not in done.stderr:
            yield said(done)
        yield from differences(home, 'parts', 'whole', 4)
        for name in 'step-000004_00.png', 'step-000004_01.png':
            if home.picture(f'parts/samples/{name}') != home.picture(f'whole/samples/{name}'):
                yield f'{name} differs'
        done = at(home, 'zzz', 'sample', '../parts', '--out=here')
        if done.returncode or home.picture('zzz/here/step-000004_01.png') != home.picture('whole/samples/step-000004_01.png'):
            yield said(done)


def what_is_typed_belongs_to_the_current_folder():
    with VideoHome() as home:
        home.job('run', train__steps=2, model__path='models/ti2v.safetensors', model__vae_path='models/vae22.safetensors', data__resolution=64,
                 sample__prompts="['a stone --f 5 --i first.png']", sample__size='64x64x5', sample__every=0)
        os.mkdir(f'{home.path}/far')
        write_png(f'{home.path}/far/first.png', 64, 64, 8)
        hashes = []
        for out, options in (('file', ()), ('typed', ('--prompt=a stone --f 5 --i first.png',)), ('image', ('--image=first.png',)),
                             ('there', ('--image=../first.png',))):
            done = at(home, 'far', 'sample', '../run', f'--out={out}', '--set=sample.format=png', *options)
            if done.returncode:
                yield said(done)
                return
            hashes.append(home.picture(f'far/{out}/step-000002_00.png'))
        if hashes[0] != hashes[3] or hashes[1] != hashes[2] or hashes[0] == hashes[1]:
            yield f'{[hash(h) for h in hashes]}'
        done = at(home, 'far', 'train', '--resume=../run', '--steps=3', '--set=cache.dir=mine')
        if done.returncode or f'  dir: "{home.path}/far/mine"' not in open(f'{home.path}/run/config.yaml', encoding='utf-8').read():
            yield said(done)


def a_dataset_file_goes_on():
    with VideoHome() as home:
        os.mkdir(f'{home.path}/sets')
        with open(f'{home.path}/sets/data.toml', 'w', encoding='utf-8') as f:
            f.write('[general]\nresolution = [16, 16]\ncaption_extension = ".txt"\n[[datasets]]\nimage_directory = "media"\ncache_directory = "kept"\n')
        for run, steps in ('whole', 4), ('parts', 2):
            done = home.job(run, train__steps=steps, data__path='sets/data.toml', sample__every=0)
            if done.returncode:
                yield said(done)
        done = at(home, 'far', 'train', '--resume=../parts', '--steps=4')
        if done.returncode:
            yield said(done)
        yield from differences(home, 'parts', 'whole', 4)


def files_that_are_gone():
    """The error names the folder; a project that was moved works from its new place."""
    with VideoHome() as home:
        home.job('run', train__steps=2, sample__every=0)
        os.rename(f'{home.path}/models', f'{home.path}/elsewhere')
        for command in ('sample', '../run', '--prompt=a'), ('train', '--resume=../run', '--steps=3'):
            done = at(home, 'far', *command)
            if done.returncode == 0 or f'{home.path}/models/' not in done.stderr or 'looked up in' not in done.stderr:
                yield f'{command}: {said(done)}'
        os.rename(f'{home.path}/elsewhere', f'{home.path}/models')
        with open(f'{home.path}/run/run.json', encoding='utf-8') as f:
            info = json.load(f)
        with open(f'{home.path}/run/run.json', 'w', encoding='utf-8') as f:
            json.dump({**info, 'folder': '/gone'}, f)
        done = home.process([CAIRN, 'sample', 'run', '--prompt=a stone --f 1', '--size=16x16x1', '--steps=1', '--out=moved'], None)
        if done.returncode:
            yield said(done)


tap.run([text_goes_on, a_lora_goes_on, video_goes_on, what_is_typed_belongs_to_the_current_folder, a_dataset_file_goes_on, files_that_are_gone])
