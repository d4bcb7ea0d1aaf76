# SPDX-License-Identifier: Apache-2.0
"""Wan jobs for the tests of `cairn train`: tiny models, musubi-tuner's caches, and tensor files without a library."""
import json
import os
import random
import shutil
import struct

from training import CAIRN, Home

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../data/golden')
T2V = f'{DATA}/dit/dit21_t2v_sq.weights.safetensors'
TI2V = f'{DATA}/dit/dit22_ti2v.weights.safetensors'
I2V_CLIP = f'{DATA}/dit/dit21_i2v_clip.weights.safetensors'
CACHES = f'{DATA}/video/t2v'
I2V_CACHES = f'{DATA}/video/i2v'
TEXT_WIDTH = 64  # of all these models
SMALL = {'model.path': T2V, 'model.heads': 3, 'data.path': CACHES, 'lora.rank': 4, 'train.steps': 4, 'train.lr': 1e-3, 'train.batch': 1,
         'train.warmup': 2, 'train.device': 'cpu', 'eval.every': 0}


# ---- tensor files ----

def read_tensors(path):
    """{name: (dtype, shape, bytes)}, and the metadata."""
    with open(path, 'rb') as f:
        header = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
        body = f.read()
    meta = header.pop('__metadata__', {})
    return {k: (v['dtype'], v['shape'], body[slice(*v['data_offsets'])]) for k, v in header.items()}, meta


def write_tensors(path, tensors, meta=None):
    header, at = ({'__metadata__': meta} if meta else {}), 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text)
        for _, _, data in tensors.values():
            f.write(data)


def floats(tensor):
    """The values of an f32 or bf16 tensor."""
    dtype, _, data = tensor
    if dtype == 'BF16':
        data = b''.join(b'\0\0' + data[i:i + 2] for i in range(0, len(data), 2))
    elif dtype != 'F32':
        raise AssertionError(dtype)
    return struct.unpack(f'<{len(data) // 4}f', data)


def f32(shape, values):
    return 'F32', list(shape), struct.pack(f'<{len(values)}f', *values)


def noise(shape, seed):
    chance, n = random.Random(seed), 1
    for k in shape:
        n *= k
    return f32(shape, [chance.gauss(0, 1) for _ in range(n)])


# ---- models ----

def linear(name, out, n_in):
    scale = n_in ** -0.5
    chance = random.Random(name)
    weight = f32((out, n_in), [scale * chance.gauss(0, 1) for _ in range(out * n_in)])
    return {name + '.weight': weight, name + '.bias': f32((out,), [0.02 * chance.gauss(0, 1) for _ in range(out)])}


def norm(name, width, *, bias=False):
    return {name + '.weight': f32((width,), [1.0] * width), **({name + '.bias': f32((width,), [0.1] * width)} if bias else {})}


def block(name, width, ffn, clip):
    found = {name + '.modulation': f32((1, 6, width), [0.3] * (6 * width)), **norm(name + '.norm3', width, bias=True)}
    for attention in 'self_attn', 'cross_attn':
        for part in 'q', 'k', 'v', 'o':
            found.update(linear(f'{name}.{attention}.{part}', width, width))
        found.update({**norm(f'{name}.{attention}.norm_q', width), **norm(f'{name}.{attention}.norm_k', width)})
    if clip:
        found.update({**linear(name + '.cross_attn.k_img', width, width), **linear(name + '.cross_attn.v_img', width, width),
                      **norm(name + '.cross_attn.norm_k_img', width)})
    return {**found, **linear(name + '.ffn.0', ffn, width), **linear(name + '.ffn.2', width, ffn)}


def write_model(path, width=16, layers=2, channels=16, image_channels=0, clip=0):
    """A Wan transformer with random weights; give the job model.heads=2."""
    patch = linear('patch_embedding', width, 4 * (channels + image_channels))
    patch['patch_embedding.weight'] = 'F32', [width, channels + image_channels, 1, 2, 2], patch['patch_embedding.weight'][2]
    found = {**patch, **linear('text_embedding.0', width, TEXT_WIDTH), **linear('text_embedding.2', width, width),
             **linear('time_embedding.0', width, 256), **linear('time_embedding.2', width, width),
             **linear('time_projection.1', 6 * width, width), **linear('head.head', 4 * channels, width),
             'head.modulation': f32((1, 2, width), [0.2] * (2 * width))}
    for n in range(layers):
        found.update(block(f'blocks.{n}', width, 2 * width, clip))
    if clip:
        found.update({**norm('img_emb.proj.0', clip, bias=True), **linear('img_emb.proj.1', clip, clip),
                      **linear('img_emb.proj.3', width, clip), **norm('img_emb.proj.4', width, bias=True)})
    write_tensors(path, found)
    return path


# ---- caches ----

def write_latents(folder, name, shape=(16, 2, 4, 4), more=None, value=None, frames=5):
    """A clip's latents [channels, frames, height, width]; more: {key: tensor}."""
    size = 'x'.join(str(k) for k in shape[1:])
    latents = noise(shape, name) if value is None else f32(shape, [value] * (shape[0] * shape[1] * shape[2] * shape[3]))
    write_tensors(f'{folder}/{name}_00000-{frames:03d}_0640x0480_wan.safetensors', {f'latents_{size}_float32': latents, **(more or {})},
                  {'architecture': 'wan', 'frame_count': str(frames), 'format_version': '1.0.1'})


def write_text(folder, name, rows=5, width=TEXT_WIDTH, tensor=None):
    write_tensors(f'{folder}/{name}_wan_te.safetensors', {'varlen_t5_float32': tensor or noise((rows, width), name + 't')},
                  {'architecture': 'wan', 'caption1': name})


def write_item(folder, name, **options):
    os.makedirs(folder, exist_ok=True)
    write_latents(folder, name, **options)
    write_text(folder, name)


# ---- jobs ----

class WanHome(Home):
    """As Home, with jobs that train a LoRA over a tiny Wan model."""

    def __enter__(self):
        super().__enter__()
        with open(self.path + '/job.yaml', 'w', encoding='utf-8') as f:
            f.write('model:\n  kind: wan\nrun:\n  name: job\n')
        return self

    def command(self, run, *options, **keys):
        sets = {**SMALL, 'run.dir': run, **{k.replace('__', '.'): v for k, v in keys.items()}}
        return [CAIRN, 'train', 'job.yaml', *options] + [f'--set={k}={v}' for k, v in sets.items()]

    def caches(self, name='caches'):
        """A copy of the caches that may be changed."""
        shutil.copytree(CACHES, f'{self.path}/{name}')
        for file in os.listdir(f'{self.path}/{name}'):
            os.chmod(f'{self.path}/{name}/{file}', 0o644)
        return f'{self.path}/{name}'

    def experts(self, model=T2V):
        """The keys of a job with two experts made of a model, whose weights differ."""
        tensors, meta = read_tensors(model)
        low, high = f'{self.path}/low_noise.safetensors', f'{self.path}/high_noise.safetensors'
        write_tensors(low, tensors, meta)
        dtype, shape, data = tensors['head.head.weight']
        tensors['head.head.weight'] = dtype, shape, data[len(data) // 2:] + data[:len(data) // 2]
        write_tensors(high, tensors, meta)
        return {'model__path': low, 'model__high_noise_path': high, 'model__task': 't2v-A14B'}

    def lora(self, run, step, name='lora'):
        return f'{self.checkpoint(run, step)}/{name}.safetensors'
