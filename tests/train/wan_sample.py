# SPDX-License-Identifier: Apache-2.0
"""Samples of a Wan job while it trains: files, index.jsonl, the sheet, and that training does not notice them."""
import hashlib
import json
import os
import shutil
import signal

import tap
from training import CAIRN, differences, fake
from wanjobs import DATA, T2V, TI2V, write_model
from wanmedia import MediaHome, write_png

VAE_22 = f'{DATA}/vae/vae22_a.weights.safetensors'

STEPS = 4
PROMPTS = "['a stone --d 7', 'a river --w 16 --h 16 --f 1 --n rain']"


class SampleHome(MediaHome):
    def job(self, run, *options, env=None, **keys):
        more = {k.replace('.', '__'): v for k, v in self.encoders().items()}
        more.update({'sample__every': 2, 'sample__prompts': PROMPTS, 'sample__steps': 2, 'sample__size': '32x16x5', 'checkpoint__every': 2,
                     'train__steps': STEPS, **keys})
        return self.train(run, *options, env=env, **more)

    def samples(self, run):
        folder = f'{self.path}/{run}/samples'
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def index(self, run):
        with open(f'{self.path}/{run}/samples/index.jsonl', encoding='utf-8') as f:
            return [json.loads(line) for line in f]

    def hash(self, run, name):
        with open(f'{self.path}/{run}/samples/{name}', 'rb') as f:
            return hashlib.sha256(f.read()).hexdigest()


HOME = SampleHome()


def said(done):
    return f'exit {done.returncode}: {done.stderr[-1500:]}'


def files_and_their_index():
    done = HOME.job('run')
    if done.returncode:
        yield said(done)
        return
    names = [f'step-{step:06d}_{i:02d}.{end}' for step in (0, 2, 4) for i, end in ((0, 'mp4'), (1, 'png'))]
    if HOME.samples('run') != sorted(names + ['index.jsonl', 'sheet.png']):
        yield f'files {HOME.samples("run")}: {said(done)}'
    lines = HOME.index('run')
    if [line['file'] for line in lines] != names:
        yield f'index {lines}'
    first, second = lines[:2]
    if (first['prompt'], first['seed'], first['width'], first['height'], first['frames'], first['fps']) != ('a stone', 7, 32, 16, 5, 16):
        yield f'{first}'
    if (second['prompt'], second['seed'], second['width'], second['frames'], second['step'], second['index']) != ('a river', 42, 16, 1, 0, 1):
        yield f'{second}'


def training_does_not_notice():
    done = HOME.job('without', sample__every=0)
    if done.returncode:
        yield said(done)
    yield from differences(HOME, 'run', 'without', STEPS)
    if HOME.samples('without'):
        yield f'{HOME.samples("without")}'


def a_resumed_run_lists_each_once():
    HOME.job('parts', train__steps=2)
    done = HOME.job('parts', '--resume')
    if done.returncode or [line['file'] for line in HOME.index('parts')] != [line['file'] for line in HOME.index('run')]:
        yield f'{HOME.index("parts")}: {said(done)}'
    for name in ('step-000000_01.png', 'step-000004_01.png'):
        if HOME.hash('parts', name) != HOME.hash('run', name):
            yield f'{name} differs'
    if HOME.hash('run', 'step-000000_01.png') == HOME.hash('run', 'step-000004_01.png'):
        yield 'training changes nothing'


def formats_and_options():
    for name, end in (('jpeg', 'jpg'), ('webp', 'webp'), ('png', 'png')):
        done = HOME.job(name, sample__format=name, sample__first='false', train__steps=2, sample__solver='euler', sample__cfg=1,
                        sample__walk_seed='true')
        if done.returncode or HOME.samples(name) != ['index.jsonl', 'sheet.png', f'step-000002_00.{end}', f'step-000002_01.{end}']:
            yield f'{name}: {HOME.samples(name)}: {said(done)}'
        elif [line['seed'] for line in HOME.index(name)] != [7, 43]:
            yield f'seeds {HOME.index(name)}'


def prompt_files():
    with open(f'{HOME.path}/prompts.txt', 'w', encoding='utf-8') as f:
        f.write('# two\na stone --f 1\n')
    done = HOME.job('file', sample__file='prompts.txt', sample__prompts='[]', train__steps=2, sample__first='false')
    if done.returncode or HOME.samples('file') != ['index.jsonl', 'sheet.png', 'step-000002_00.png']:
        yield f'{HOME.samples("file")}: {said(done)}'
    with open(f'{HOME.path}/bad.txt', 'w', encoding='utf-8') as f:
        f.write('\na stone --w zero\n')
    done = HOME.job('bad', sample__file='bad.txt')
    if done.returncode != 2 or 'bad.txt:2' not in done.stderr:
        yield said(done)


def what_fails_is_left_out():
    with open(f'{HOME.path}/broken.png', 'wb') as f:
        f.write(b'no picture')
    write_png(f'{HOME.path}/first.png', 16, 16, 3)
    done = HOME.job('fails', sample__prompts="['a stone --f 1', 'b --i broken.png']", train__steps=2)
    if done.returncode or [n for n in HOME.samples('fails') if n.startswith('step')] != ['step-000000_00.png', 'step-000002_00.png']:
        yield f'{HOME.samples("fails")}: {said(done)}'
    if done.stderr.count('no sample of prompt 1') != 1:
        yield f'said {done.stderr.count("no sample of prompt 1")} times: {done.stderr[-800:]}'


def wrong_keys_are_refused():
    for keys in ({'sample__prompts': '[]'}, {'sample__size': '3'}, {'sample__prompts': "['a --zz 1']"}, {'sample__solver': 'heun'},
                 {'sample__loras': '[none.safetensors]'}):
        done = HOME.job('refused', **keys)
        if done.returncode not in (1, 2):
            yield f'{keys}: {said(done)}'


def a_gpu_makes_them_too():
    done = HOME.job('gpu', env=fake(HOME), train__device='hip:0', train__steps=2, sample__prompts="['a stone --f 1']", sample__first='false')
    if done.returncode or 'step-000002_00.png' not in HOME.samples('gpu'):
        yield f'{HOME.samples("gpu")}: {said(done)}'


def sample(out, *options, run='run', env=None):
    done = HOME.process([CAIRN, 'sample', run, '--device=cpu', '--json', f'--out={out}', *options], env)
    return done, json.loads(done.stdout) if done.returncode == 0 else None


def a_saved_lora_makes_samples():
    done, found = sample('one')
    if not found or found['step'] != STEPS or [s['file'] for s in found['samples']] != ['step-000004_00.mp4', 'step-000004_01.png']:
        yield f'{found}: {said(done)}'
        return
    hashes = {}
    few = ('--prompt=a stone --f 1', '--size=16x16x1', '--steps=2')
    for name, options in (('base', ()), ('same', ()), ('seed', ('--seed=9',)), ('cfg', ('--cfg=1',)), ('negative', ('--negative=rain',)),
                          ('off', ('--no-lora',)), ('zero', ('--lora-scale=0',)), ('half', ('--lora-scale=0.5',)),
                          ('two', (f'--lora={HOME.lora("run", STEPS)}:2',))):
        done, found = sample(name, *few, *options)
        if not found or len(found['samples']) != 1:
            yield f'{name}: {said(done)}'
            continue
        with open(f'{HOME.path}/{name}/{found["samples"][0]["file"]}', 'rb') as f:
            hashes[name] = hashlib.sha256(f.read()).hexdigest()
    shutil.copy(HOME.lora('run', STEPS), f'{HOME.path}/run/mine.safetensors')
    done, found = sample('mine', *few, run='run/mine.safetensors')
    again, same = sample('whole', *few, run=HOME.lora('run', STEPS))
    files = [f'{HOME.path}/{folder}/{s["samples"][0]["file"]}' for folder, s in (('mine', found), ('whole', same)) if s]
    if len(files) < 2 or open(files[0], 'rb').read() != open(files[1], 'rb').read():
        yield f'a file of the run: {said(done)} {said(again)}'
    if hashes.get('base') != hashes.get('same') or hashes.get('off') != hashes.get('zero'):
        yield f'{hashes}'
    if len(set(hashes.values())) < len(hashes) - 2:
        yield f'two options give the same: {hashes}'


def the_average_is_shown():
    """With train.ema, as `cairn sample --ema` does; and the trained weights come back."""
    keys = {'train__ema': 0.5, 'save__dtype': 'f32', 'sample__first': 'false'}
    # The two multiply matrices of different shapes: with OpenBLAS, a measurement would choose for each which implementation does it.
    one_way = {'CAIRN_BLAS': 'own'}
    done = HOME.job('ema', env=one_way, **keys)
    if done.returncode or 'moving average' not in done.stderr:
        yield said(done)
    HOME.job('ema-quiet', env=one_way, **{**keys, 'sample__every': 0})
    yield from differences(HOME, 'ema', 'ema-quiet', STEPS)
    names = {}
    for name, options in (('mean', ('--ema',)), ('trained', ())):
        done, found = sample(name, *options, run='ema', env=one_way)
        if not found:
            yield said(done)
            return
        with open(f'{HOME.path}/{name}/step-000004_01.png', 'rb') as f:
            names[name] = hashlib.sha256(f.read()).hexdigest()
    if HOME.hash('ema', 'step-000004_01.png') != names['mean'] or names['mean'] == names['trained']:
        yield f'{names}, and while it trained {HOME.hash("ema", "step-000004_01.png")}'


def the_average_on_a_gpu():
    keys = {'train__ema': 0.5, 'train__device': 'hip:0', 'memory__optimizer': 'host', 'train__steps': 2, 'sample__first': 'false',
            'sample__prompts': "['a stone --f 1']"}
    for run, every in ('ema-gpu', 1), ('ema-gpu-quiet', 0):
        done = HOME.job(run, env=fake(HOME), **keys, sample__every=every)
        if done.returncode:
            yield said(done)
    yield from differences(HOME, 'ema-gpu', 'ema-gpu-quiet', 2)


def progress_is_shown():
    """One line for each sample on a terminal, in training and in `cairn sample`, and nothing of it in a file."""
    keys = {k.replace('.', '__'): v for k, v in HOME.encoders().items()}
    keys = {**keys, 'sample__every': 1, 'sample__prompts': PROMPTS, 'sample__steps': 2, 'sample__size': '32x16x5', 'train__steps': 1, 'train__warmup': 0}
    trained = HOME.on_terminal('lines', **keys)
    sampled = HOME.terminal([CAIRN, 'sample', 'lines', '--device=cpu', '--out=lines-out'])
    for shown in trained, sampled:
        for line in 'sample 1 of 2  step 0 of 2', 'sample 2 of 2  step 0 of 2', 'decoding sample 1 of 2  frame 0 of 5':
            if f'\r{line}\033[K' not in shown:
                yield f'no "{line}": {shown}'
    if '\r\033[K---- sample at step 1' not in trained:
        yield f'{trained}'
    done, _ = sample('plain', run='lines')
    if '\r' in done.stderr or 'step 1 of' in done.stderr:
        yield f'{done.stderr}'


def images_lead_samples():
    for name, keys in (('ti2v', {'model__path': TI2V, 'model__vae_path': VAE_22, 'data__resolution': 64, 'sample__size': '64x64x5'}),
                       ('i2v', {'model__path': write_model(f'{HOME.path}/i2v.safetensors', image_channels=20), 'model__heads': 2,
                                'model__task': 'i2v-A14B', 'model__expert': 'low'})):
        for run, prompt in (('a', "['a stone --i first.png']"), ('b', "['a stone --i media/stone.png']"), ('none', "['a stone']")):
            done = HOME.job(f'{name}-{run}', sample__prompts=prompt, train__steps=1, train__warmup=1, sample__every=1, sample__first='false', **keys)
            has = 'step-000001_00.mp4' in HOME.samples(f'{name}-{run}')
            if done.returncode or has != (name == 'ti2v' or run != 'none'):
                yield f'{name} {run}: {HOME.samples(f"{name}-{run}")}: {said(done)}'
        if HOME.hash(f'{name}-a', 'step-000001_00.mp4') == HOME.hash(f'{name}-b', 'step-000001_00.mp4'):
            yield f'{name}: both images give the same'


def an_interrupt_ends_a_sample():
    job = HOME.start('stopped', **{k.replace('.', '__'): v for k, v in HOME.encoders().items()}, sample__every=1,
                     sample__prompts="['a stone']", sample__steps=1000, sample__size='64x64x17')
    job.wait_for('step ')
    os.kill(job.process.pid, signal.SIGINT)
    code = job.end()
    if code not in (0, 130) or HOME.samples('stopped'):
        yield f'exit {code}, {HOME.samples("stopped")}'


def memory_is_planned():
    parts = {}
    for size in '32x16x5', '512x512x81':
        more = {k.replace('.', '__'): v for k, v in HOME.encoders().items()}
        done = HOME.train(f'plan-{size}', '--dry-run', **more, sample__every=1, sample__prompts="['a']", sample__size=size)
        parts[size] = [line for line in done.stdout.splitlines() if ', samples ' in line]
        if done.returncode:
            yield said(done)
    if not parts['512x512x81'] or parts['32x16x5'] == parts['512x512x81']:
        yield f'{parts}'


def wrong_options_of_sample():
    for options in (('--tokens=3',), ('--size=9',), ('--prompt=a --zz 1',), ('--lora=none.safetensors',), ('--steps=0',), ('--cfg=x',)):
        done, _ = sample('wrong', *options)
        if done.returncode not in (1, 2):
            yield f'{options}: {said(done)}'
    done, _ = sample('wrong', '--lora=none.safetensors')
    if 'cairn: --lora: open none.safetensors: ' not in done.stderr or 'it takes a LoRA' not in done.stderr:
        yield said(done)
    done = HOME.process([CAIRN, 'sample', T2V, '--prompt=a'], None)
    if done.returncode != 1 or 'is not a GPT' not in done.stderr or 'for videos give a run' not in done.stderr:
        yield said(done)
    done, _ = sample('wrong', '--prompt=a stone', '--image=broken.png')
    if done.returncode != 2 or 'broken.png: a text-to-video model takes no image' not in done.stderr:
        yield said(done)


with HOME:
    tap.run([files_and_their_index, training_does_not_notice, a_resumed_run_lists_each_once, formats_and_options, prompt_files,
             what_fails_is_left_out, wrong_keys_are_refused, a_gpu_makes_them_too, a_saved_lora_makes_samples, the_average_is_shown,
             the_average_on_a_gpu, progress_is_shown, images_lead_samples, an_interrupt_ends_a_sample, memory_is_planned,
             wrong_options_of_sample])
