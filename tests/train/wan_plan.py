# SPDX-License-Identifier: Apache-2.0
"""What `cairn plan` says of a LoRA for Wan is what training takes, on the CPU and on a fake GPU with memory of its own."""
import json
import subprocess
import tempfile

import tap
from training import fake
from wanjobs import CACHES, I2V_CLIP, WanHome, noise, write_item, write_model

NEAR = 0.05
CACHE = tempfile.TemporaryDirectory()  # of kernels, for all cases
WIDE = {'model__heads': 2, 'train__steps': 1, 'train__warmup': 0}
CPU = {
    'rank': {'lora__rank': 24, 'train__ema': 0.9},
    'batch': {'train__batch': 3, 'lora__dropout': 0.1},
    'accumulate': {'train__batch': 2, 'train__accumulate': 2},
    'keep all': {'long': True, 'train__recompute': 'none'},
    'fp8': {'model__quantize': 'fp8', 'train__optimizer': 'adafactor'},
    'validation': {'data__val_split': 0.5, 'eval__every': 1},
    'dropped expert': {'experts': True, 'memory__idle': 'file', 'train__steps': 2, 'train__recipe': 'ai-toolkit'},
    'clip': {'clip': True},
}
BOTH = {
    'int8': {'model__quantize': 'int8', 'train__optimizer': 'adamw8', 'train__batch': 2},
    'experts': {'experts': True, 'train__steps': 2},
    'one LoRA': {'experts': True, 'lora__experts': 'one'},
}
GPU = {
    'some blocks': {'long': True, 'memory__blocks': 3},
    'all blocks': {'memory__blocks': 'host', 'model__quantize': 'int8'},
    'inputs': {'long': True, 'memory__inputs': 'host'},
    'low': {'long': True, 'memory__low_vram': 'true'},
    'bf16': {'train__dtype': 'bf16', 'memory__blocks': 'host'},
    'f16': {'train__dtype': 'f16', 'train__recompute': 'none'},
    'copied expert': {'experts': True, 'memory__idle': 'host', 'train__steps': 2, 'train__recipe': 'ai-toolkit'},
    'blocks of experts': {'experts': True, 'memory__blocks': 3},
}


def keys_of(home, keys):
    keys = {**WIDE, **keys}
    experts = keys.pop('experts', False)
    if keys.pop('clip', False):
        write_item(home.path + '/i2v', 'a', more={'latents_image_2x4x4_float32': noise((20, 2, 4, 4), 'i'), 'clip_float32': noise((257, 64), 'c')})
        return {**keys, 'model__path': I2V_CLIP, 'data__path': 'i2v'}
    if keys.pop('long', False):
        write_item(home.path + '/long', 'a', shape=(16, 3, 16, 16))
        keys['data__path'] = 'long'
    low = write_model(home.path + '/low_noise.safetensors', width=32, layers=5)
    high = {'model__high_noise_path': write_model(home.path + '/high_noise.safetensors', width=32, layers=5), 'model__task': 't2v-A14B'}
    return {'data__path': CACHES, **keys, 'model__path': low, **(high if experts else {'model__expert': 'low'})}


def environment(home, device):
    return {**(fake(home) if device != 'cpu' else {}), 'XDG_CACHE_HOME': CACHE.name}


def plan(home, env, *options, **keys):
    command = home.command('plan', '--json', *options, **keys)
    command[1] = 'plan'
    done = subprocess.run(command, env=home.environment(env), cwd=home.path, text=True, capture_output=True, stdin=subprocess.DEVNULL,
                          timeout=60, check=False)
    if done.returncode:
        raise AssertionError(f'exit {done.returncode}: {done.stderr}')
    return json.loads(done.stdout)


def compared(device, name, keys):
    with WanHome() as home:
        keys = {**keys_of(home, keys), 'train__device': device, 'train__dtype': keys.get('train__dtype', 'f32')}
        env = environment(home, device)
        planned = plan(home, env, **keys)
        done = home.train('run', env=env, **keys)
        if done.returncode:
            yield f'exit {done.returncode}: {done.stderr}'
            return
        taken = home.log('run')[-1]['mem_peak_bytes']
        print(f'# {name}: {planned["device_bytes"] / taken:.4f} of what is taken')
        if abs(planned['device_bytes'] - taken) > NEAR * taken:
            yield f'{name}: {planned["device_bytes"]} planned, {taken} taken: {json.dumps(planned["parts"])}'


def like_the_device_itself():
    """A plan for a GPU that is not here has the parts of one that is; only libraries may differ."""
    with WanHome() as home:
        for keys in GPU.values():
            keys = keys_of(home, keys)
            here = plan(home, environment(home, 'hip'), **keys, train__device='hip:0')
            there = plan(home, environment(home, 'cpu'), '--gfx', 'gfx1100', '--memory', '64', **{**keys, 'train__device': 'auto'})
            one, other = ([p for p in d['parts'] if p['name'] != 'work'] for d in (here, there))
            if one != other or here['storage'] != there['storage']:
                yield f'{keys}: {one}, {other}'


def case_of(device, name, keys):
    def case():
        yield from compared(device, name, keys)
    case.__name__ = f'{name.replace(" ", "_")}_on_{device.split(":", maxsplit=1)[0]}'
    return case


tap.run([case_of('cpu', name, keys) for name, keys in {**CPU, **BOTH}.items()] +
        [case_of('hip:0', name, keys) for name, keys in {**BOTH, **GPU}.items()] + [like_the_device_itself])
