#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a tiny Wan transformer as torch's zip file and as safetensors, without torch: mkwan.py FOLDER"""
import io
import json
import pickle
import random
import struct
import sys
import types
import zipfile

WIDTH, FFN, IN, OUT, TEXT, TIME, BLOCKS = 8, 12, 16, 16, 4, 6, 2


def shapes():
    def linear(name, out, into):
        yield f"{name}.weight", (out, into)
        yield f"{name}.bias", (out,)

    yield "patch_embedding.weight", (WIDTH, IN, 1, 2, 2)
    yield "patch_embedding.bias", (WIDTH,)
    yield from linear("text_embedding.0", WIDTH, TEXT)
    yield from linear("text_embedding.2", WIDTH, WIDTH)
    yield from linear("time_embedding.0", WIDTH, TIME)
    yield from linear("time_embedding.2", WIDTH, WIDTH)
    yield from linear("time_projection.1", 6 * WIDTH, WIDTH)
    for n in range(BLOCKS):
        yield f"blocks.{n}.modulation", (1, 6, WIDTH)
        for attention in "self_attn", "cross_attn":
            for m in "qkvo":
                yield from linear(f"blocks.{n}.{attention}.{m}", WIDTH, WIDTH)
            yield f"blocks.{n}.{attention}.norm_q.weight", (WIDTH,)
            yield f"blocks.{n}.{attention}.norm_k.weight", (WIDTH,)
        yield f"blocks.{n}.norm3.weight", (WIDTH,)
        yield f"blocks.{n}.norm3.bias", (WIDTH,)
        yield from linear(f"blocks.{n}.ffn.0", FFN, WIDTH)
        yield from linear(f"blocks.{n}.ffn.2", WIDTH, FFN)
    yield "head.modulation", (1, 2, WIDTH)
    yield from linear("head.head", 4 * OUT, WIDTH)


def count(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def strides(shape):
    return tuple(count(shape[i + 1:]) for i in range(len(shape)))


# What torch's pickles refer to.
def _rebuild_tensor_v2(*args):
    raise NotImplementedError


class BFloat16Storage:
    pass


for module, thing in ("torch._utils", _rebuild_tensor_v2), ("torch", BFloat16Storage):
    sys.modules.setdefault(module, types.ModuleType(module))
    setattr(sys.modules[module], thing.__name__, thing)
    thing.__module__ = module
    thing.__qualname__ = thing.__name__


class Storage:
    def __init__(self, key, n):
        self.key, self.n = key, n


class Tensor:
    def __init__(self, key, shape):
        self.key, self.shape = key, shape

    def __reduce__(self):
        storage = Storage(self.key, count(self.shape))
        return _rebuild_tensor_v2, (storage, 0, self.shape, strides(self.shape), False, {})


class Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        return ("storage", BFloat16Storage, obj.key, "cpu", obj.n) if isinstance(obj, Storage) else None


def main(folder):
    rng = random.Random(7)
    tensors = {}
    for name, shape in shapes():
        values = [rng.gauss(0, 0.3) for _ in range(count(shape))]
        tensors[name] = shape, b"".join(struct.pack("<f", v)[2:] for v in values)
    with zipfile.ZipFile(f"{folder}/tiny.pth", "w") as z:
        text = io.BytesIO()
        state = {name: Tensor(str(i), shape) for i, (name, (shape, _)) in enumerate(tensors.items())}
        Pickler(text, 2).dump(state)

        def write(name, data):
            z.writestr(zipfile.ZipInfo(f"tiny/{name}"), data)

        write("data.pkl", text.getvalue())
        write("byteorder", b"little")
        for i, (_, data) in enumerate(tensors.values()):
            write(f"data/{i}", data)
        write("version", b"3\n")
    header, at = {}, 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(f"{folder}/tiny.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(d for _, d in tensors.values()))


main(sys.argv[1])
