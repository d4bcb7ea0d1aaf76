# SPDX-License-Identifier: Apache-2.0
"""A LoRA for Wan from files that are wrong, damaged or gone: the run names the file and what to do, or goes on without it."""
import os

import tap
from training import FILES
from wanjobs import CACHES, DATA, I2V_CACHES, I2V_CLIP, T2V, TI2V, WanHome, f32, noise, write_item, write_latents, write_tensors, write_text

CLIP = '{}_00000-005_0640x0480_wan.safetensors'


def refused(home, name, status, *objects, **keys):
    """It must fail before the first step, by this exit status, with these words."""
    done = home.train(name, **keys)
    missing = [word for word in objects if word not in done.stderr]
    if done.returncode != status or missing or home.steps(name):
        yield f'{name}: exit {done.returncode}, without {missing}: {done.stderr}'


def models_that_are_none():
    with WanHome() as home:
        vae, text = home.path + '/vae.safetensors', home.path + '/t5.safetensors'
        write_tensors(vae, {'encoder.conv1.weight': noise((4, 3, 3, 3, 3), 'a'), 'decoder.conv1.weight': noise((4, 3, 3, 3, 3), 'b'),
                            'encoder.downsamples.0.residual.0.gamma': noise((4, 1, 1, 1), 'c')})
        write_tensors(text, {'shared.weight': noise((32, 8), 'a'), 'encoder.block.0.layer.0.SelfAttention.q.weight': noise((8, 8), 'b')})
        lora, gpt = f'{DATA}/dit/dit21_t2v_sq.lora.safetensors', f'{DATA}/gpt/gpt_b.weights.safetensors'
        for name, path, word in (('vae', vae, 'VAE'), ('text', text, 'text encoder'), ('lora', lora, 'LoRA'), ('gpt', gpt, 'gpt'),
                                 ('cache', f'{CACHES}/still_1_0512x0768_wan.safetensors', 'cache'), ('gone', '/none.safetensors', 'none')):
            yield from refused(home, name, 1, os.path.basename(path), word, model__path=path)


def a_model_that_does_not_suit_the_keys():
    with WanHome() as home:
        yield from refused(home, 'task', 2, 'model.task', 't2v-A14B', model__task='nonsense')
        yield from refused(home, 'other', 2, 'ti2v-5B', 'model.task', model__task='ti2v-5B')
        yield from refused(home, 'alone', 2, 'model.expert', 'model.high_noise_path', model__task='t2v-A14B', model__expert='both')
        yield from refused(home, 'rank', 2, 'lora.rank', '96', lora__rank=97)
        yield from refused(home, 'sample', 2, 'sample.every', sample__every=5)
        yield from refused(home, 'clean', 2, 'train.clean_first_frame', 'ti2v-5B', train__clean_first_frame='true')
        yield from refused(home, 'times', 2, 'train.timesteps', 'qwen_shift', train__timesteps='linear')
        yield from refused(home, 'nowhere', 2, 'data.path', data__path='')


def loras_of_other_models():
    with WanHome() as home:
        yield from refused(home, 'size', 1, 'dit21_i2v_clip.lora.safetensors', 'self_attn', lora__path=f'{DATA}/dit/dit21_i2v_clip.lora.safetensors')
        yield from refused(home, 'base', 1, os.path.basename(T2V), lora__path=T2V)


def caches_of_other_models():
    with WanHome() as home:
        write_item(home.path + '/wide', 'a', shape=(48, 2, 4, 4))
        os.mkdir(home.path + '/text')
        write_latents(home.path + '/text', 'a')
        write_text(home.path + '/text', 'a', width=32)
        yield from refused(home, '48', 2, CLIP.format('a'), '48', data__path='wide')
        yield from refused(home, 'width', 2, 'a_wan_te.safetensors', '32', data__path='text')
        yield from refused(home, '16', 2, '16', '48', model__path=TI2V)
        yield from refused(home, 'image', 2, 'latents_image', model__path=I2V_CLIP, model__heads=2)
        yield from refused(home, 'clip', 2, 'clip', model__path=I2V_CLIP, model__heads=2, data__path=I2V_CACHES)


def no_items():
    with WanHome() as home:
        os.mkdir(home.path + '/empty')
        os.mkdir(home.path + '/text')
        write_latents(home.path + '/text', 'a')
        yield from refused(home, 'nothing', 2, 'empty', data__path='empty')
        yield from refused(home, 'gone', 1, 'nowhere', data__path='nowhere')
        yield from refused(home, 'silent', 2, '_wan_te.safetensors', data__path='text')
        write_item(home.path + '/flat', 'a', value=0.0)
        yield from refused(home, 'zero', 2, 'data.path', CLIP.format('a'), data__path='flat')
        with open(f'{home.path}/flat/{CLIP.format("a")}', 'wb') as f:
            f.write(b'garbage ' * 40)
        yield from refused(home, 'damaged', 1, CLIP.format('a'), data__path='flat')


def a_plan_without_a_usable_item():
    """It is one for data.size, if the configuration has it."""
    with WanHome() as home:
        os.mkdir(home.path + '/long')
        write_latents(home.path + '/long', 'a')
        write_text(home.path + '/long', 'a', rows=600)
        yield from refused(home, 'none', 2, 'data.path', data__path='long')
        with open(home.path + '/job.yaml', 'a', encoding='utf-8') as f:
            f.write('data:\n  size: 64x64x5\n')
        done = home.train('plan', '--dry-run', data__path='long')
        if done.returncode or '32 tokens' not in done.stdout:
            yield f'exit {done.returncode}: {done.stdout}{done.stderr}'


def spoil(folder):
    """One item of each kind of damage; returns what must be named."""
    write_item(folder, 'zero', value=0.0)
    write_item(folder, 'nan', value=float('nan'))
    write_item(folder, 'odd', shape=(16, 2, 5, 4))
    write_item(folder, 'short')
    with open(f'{folder}/{CLIP.format("short")}', 'r+b') as f:
        f.truncate(500)
    write_item(folder, 'garbage')
    with open(f'{folder}/{CLIP.format("garbage")}', 'wb') as f:
        f.write(b'garbage ' * 40)
    for name, values in ('nantext', [float('nan')] * 128), ('zerotext', [0.0] * 128):
        write_latents(folder, name)
        write_text(folder, name, tensor=f32((2, 64), values))
    write_latents(folder, 'long')
    write_text(folder, 'long', rows=600)
    return 'zero', 'nan', 'odd', 'short', 'garbage', 'nantext', 'zerotext', 'long'


def damaged_items_are_counted_and_left_out():
    """What is left trains as if they were not there."""
    with WanHome() as home:
        write_item(home.path + '/data-good', 'good')
        write_item(home.path + '/data-mixed', 'good')
        bad = spoil(home.path + '/data-mixed')
        write_latents(home.path + '/data-mixed', 'notext')
        home.train('good', data__path='data-good')
        done = home.train('mixed', data__path='data-mixed')
        listed = [name for name in bad if f'/{name}_' in done.stderr]
        counts = f'{len(bad)} items', f'  and {len(bad) - 5} more\n'
        if done.returncode or len(listed) != 5 or any(words not in done.stderr for words in counts) or '/good_' in done.stderr:
            yield f'exit {done.returncode}, listed {listed}: {done.stderr}'
        if 'notext' not in done.stderr or '1 clip,' not in done.stderr:
            yield done.stderr
        if home.losses('mixed') != home.losses('good'):
            yield f'{home.losses("mixed")}, and not {home.losses("good")}'


def a_cache_that_vanishes():
    """Nothing is lost: a checkpoint is saved, and with the file back the run ends as if nothing had been."""
    keys = {'train__steps': 30, 'checkpoint__every': 100}
    with WanHome() as home:
        folder = home.caches()
        keys['data__path'] = folder
        home.train('whole', **keys)
        gone = f'{folder}/dog_run_01_00000-009_0320x0320_wan.safetensors'
        run = home.start('run', **keys)
        run.reach(2)
        os.rename(gone, gone + '.away')
        status, said, steps = run.end(), run.said(), home.steps('run')
        if status != 1 or 'dog_run_01_00000-009_0320x0320_wan.safetensors' not in said or len(steps) != 1 or not 2 <= steps[0] < 30:
            yield f'exit {status}, checkpoints {steps}: {said}'
        os.rename(gone + '.away', gone)
        done = home.train('run', '--resume', **keys)
        if done.returncode or home.losses('run') != home.losses('whole'):
            yield f'exit {done.returncode}: {done.stderr}'
        if home.weights('run', 30) != home.weights('whole', 30) or not set(home.weights('run', 30)) <= set(FILES):
            yield 'other bits'


def a_base_that_vanishes():
    """The idle expert is read again from its file, which may be gone: nothing is lost either."""
    keys = {'train__steps': 30, 'checkpoint__every': 100, 'memory__idle': 'file', 'train__switch_every': 3}
    with WanHome() as home:
        keys.update(home.experts())
        run = home.start('run', **keys)
        run.reach(2)
        for path in keys['model__path'], keys['model__high_noise_path']:
            os.rename(path, path + '.away')
        status, said, steps = run.end(), run.said(), home.steps('run')
        if status != 1 or '_noise.safetensors' not in said or 'memory.idle' not in said or len(steps) != 1 or not 2 <= steps[0] < 30:
            yield f'exit {status}, checkpoints {steps}: {said}'
        for path in keys['model__path'], keys['model__high_noise_path']:
            os.rename(path + '.away', path)
        home.train('whole', **keys)
        done = home.train('run', '--resume', **keys)
        if done.returncode or home.weights('run', 30) != home.weights('whole', 30):
            yield f'exit {done.returncode}: {done.stderr}'


tap.run([models_that_are_none, a_model_that_does_not_suit_the_keys, loras_of_other_models, caches_of_other_models, no_items,
         a_plan_without_a_usable_item, damaged_items_are_counted_and_left_out, a_cache_that_vanishes,
         a_base_that_vanishes])
