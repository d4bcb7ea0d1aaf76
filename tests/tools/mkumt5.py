# SPDX-License-Identifier: Apache-2.0
"""mkumt5.py DIR: writes DIR/tiny.safetensors and DIR/tiny.pth, one umT5 encoder in both formats, with official names.

Every value, and twice of it, has a code in fp8 (e4m3), so that a copy in any format has the same weights.  The .pth file is
written as torch.save does it, without torch."""
import io
import json
import os
import pickle
import random
import struct
import sys
import types
import zipfile

VOCAB, DIM, HEADS, SIZE, FFN, LAYERS = 40, 16, 2, 6, 20, 3


def tensors():
    random.seed(1)
    numbers = lambda n, step, base=0: [base + random.randint(-15 if not base else -4, 15 if not base else 4) * step
                                       for _ in range(n)]
    inner = HEADS * SIZE
    yield 'token_embedding.weight', (VOCAB, DIM), numbers(VOCAB * DIM, 1 / 8)
    for i in range(LAYERS):
        for name, shape in (('attn.q', (inner, DIM)), ('attn.k', (inner, DIM)), ('attn.v', (inner, DIM)),
                            ('attn.o', (DIM, inner)), ('ffn.gate.0', (FFN, DIM)), ('ffn.fc1', (FFN, DIM)),
                            ('ffn.fc2', (DIM, FFN))):
            yield f'blocks.{i}.{name}.weight', shape, numbers(shape[0] * shape[1], 1 / 32)
        for name in 'norm1', 'norm2':
            yield f'blocks.{i}.{name}.weight', (DIM,), numbers(DIM, 1 / 8, 1)
        yield f'blocks.{i}.pos_embedding.embedding.weight', (32, HEADS), numbers(32 * HEADS, 1 / 8)
    yield 'norm.weight', (DIM,), numbers(DIM, 1 / 8, 1)


def bf16(numbers):
    return b''.join(struct.pack('<f', x)[2:] for x in numbers)


def write_safetensors(path, all):
    header, at = {}, 0
    for name, shape, data in all:
        header[name] = {'dtype': 'BF16', 'shape': list(shape), 'data_offsets': [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + b''.join(data for _, _, data in all))


class Storage:
    def __init__(self, key, n):
        self.key, self.n = key, n


class Tensor:
    def __init__(self, storage, shape):
        self.storage, self.shape = storage, shape

    def __reduce__(self):
        stride = tuple(self.shape[1:]) + (1,) if len(self.shape) == 2 else (1,)
        return utils._rebuild_tensor_v2, (self.storage, 0, self.shape, stride, False, {})


class Writer(pickle._Pickler):
    def persistent_id(self, x):
        return ('storage', torch.BFloat16Storage, x.key, 'cpu', x.n) if isinstance(x, Storage) else None


torch, utils = types.ModuleType('torch'), types.ModuleType('torch._utils')


def write_torch(path, all):
    torch.BFloat16Storage = type('BFloat16Storage', (), {'__module__': 'torch'})
    rebuild = lambda: None
    rebuild.__module__, rebuild.__qualname__, rebuild.__name__ = 'torch._utils', '_rebuild_tensor_v2', '_rebuild_tensor_v2'
    utils._rebuild_tensor_v2 = rebuild
    sys.modules.update({'torch': torch, 'torch._utils': utils})
    table = {name: Tensor(Storage(str(i), len(data) // 2), shape) for i, (name, shape, data) in enumerate(all)}
    out = io.BytesIO()
    Writer(out, protocol=2).dump(table)
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_STORED) as z:
        put = lambda name, data: z.writestr(zipfile.ZipInfo('tiny/' + name, (1980, 1, 1, 0, 0, 0)), data)
        put('data.pkl', out.getvalue())
        put('byteorder', 'little')
        for i, (_, _, data) in enumerate(all):
            put(f'data/{i}', data)
        put('version', '3\n')


def main():
    all = [(name, shape, bf16(numbers)) for name, shape, numbers in tensors()]
    write_safetensors(os.path.join(sys.argv[1], 'tiny.safetensors'), all)
    write_torch(os.path.join(sys.argv[1], 'tiny.pth'), all)


main()
