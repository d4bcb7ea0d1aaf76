# SPDX-License-Identifier: Apache-2.0
"""Folders of pictures and clips for `cairn cache`, tiny encoders, and what the caches hold."""
import json
import os
import random
import struct
import subprocess
import zlib

import tap
from training import CAIRN, PATIENCE
from wanjobs import DATA, T2V, WanHome, read_tensors, write_tensors

VAE = f'{DATA}/vae/vae21_b.weights.safetensors'
UMT5 = f'{DATA}/t5/umt5_a.weights_hf.safetensors'
SIDE = 16


def write_png(path, width, height, seed):
    """A picture with a smooth part and some noise."""
    chance = random.Random(seed)
    rows = b''.join(b'\0' + bytes((x * 255 // width, y * 255 // height, chance.randrange(256))[c] for x in range(width) for c in range(3))
                    for y in range(height))
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    with open(path, 'wb') as f:
        f.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0))
                + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))


def write_tokenizer(path):
    """A unigram model whose pieces are single letters."""
    letters = 'abcdefghijklmnopqrstuvwxyz \u2581'
    pieces = [['<pad>', 0.0], ['</s>', 0.0], ['<unk>', 0.0]] + [[c, -2.0] for c in letters if c != ' ']
    with open(path, 'w', encoding='utf-8') as f:
        json.dump({'version': '1.0', 'added_tokens': [], 'normalizer': None,
                   'pre_tokenizer': {'type': 'Metaspace', 'replacement': '\u2581', 'prepend_scheme': 'always'},
                   'model': {'type': 'Unigram', 'unk_id': 2, 'vocab': pieces}}, f)


class MediaHome(WanHome):
    """As WanHome, with a folder of pictures, `media`, and the encoders that cache it."""

    def __enter__(self):
        super().__enter__()
        if not os.path.exists(os.path.dirname(CAIRN) + '/cairn-media'):
            raise tap.Skip('cairn-media is not built')
        os.mkdir(self.path + '/media')
        for i, name in enumerate(('stone', 'river')):
            write_png(f'{self.path}/media/{name}.png', SIDE, SIDE, i)
            with open(f'{self.path}/media/{name}.txt', 'w', encoding='utf-8') as f:
                f.write(f'a {name} in the wind')
        write_tokenizer(self.path + '/tokenizer.json')
        return self

    def encoders(self):
        return {'model.path': T2V, 'model.heads': 3, 'model.vae_path': VAE, 'model.text_encoder_path': UMT5, 'model.tokenizer_path': 'tokenizer.json',
                'data.path': 'media', 'data.resolution': SIDE, 'cache.dtype': 'f32'}

    def deep_encoder(self, layers):
        """The text encoder with its layers repeated."""
        tensors, meta = read_tensors(UMT5)
        parts = {name: tensor for name, tensor in tensors.items() if '.block.' not in name}
        for n in range(layers):
            parts.update({name.replace(f'.block.{n % 2}.', f'.block.{n}.'): tensor for name, tensor in tensors.items() if f'.block.{n % 2}.' in name})
        write_tensors(self.path + '/deep.safetensors', parts, meta)
        return self.path + '/deep.safetensors'

    def cache(self, folder, *options, env=None, **keys):
        """`cairn cache` to its end, into the folder."""
        sets = {**self.encoders(), 'cache.dir': folder, **{k.replace('__', '.'): v for k, v in keys.items()}}
        command = [CAIRN, 'cache', 'job.yaml', '--json', *options] + [f'--set={k}={v}' for k, v in sets.items()]
        return self.process(command, env)

    def decode(self, latents, out, *options, env=None):
        return self.process([CAIRN, 'decode', '--vae', VAE, latents, '-o', out, *options], env)

    def process(self, command, env):
        return subprocess.run(command, env=self.environment(env), cwd=self.path, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors='replace', timeout=PATIENCE, check=False)

    def run_json(self, run):
        with open(f'{self.path}/{run}/run.json', encoding='utf-8') as f:
            return json.load(f)

    def held(self, folder):
        """{file: {tensor: (dtype, shape, bytes)}}."""
        return {name: read_tensors(f'{self.path}/{folder}/{name}')[0] for name in sorted(os.listdir(f'{self.path}/{folder}'))
                if name.endswith('.safetensors')}
