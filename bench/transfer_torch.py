#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file of tensors to a GPU as PyTorch users load it, beside bench_transfer.

    python3 bench/transfer_torch.py make FILE GIB    a safetensors file of that size: bf16, like a model's
    python3 bench/transfer_torch.py FILE [ROUNDS]
"""
import json
import os
import struct
import sys
import time


def make(path, gib):
    """Blocks of matrices with small vectors between them; the bits are random numbers near 1."""
    header, at, block = {}, 0, 0
    shapes = [('attn', [4096, 3 * 4096]), ('proj', [4096, 4096]), ('norm', [4096]), ('bias', [4096])]
    while at < gib << 30:
        for name, shape in shapes:
            n = 2
            for d in shape:
                n *= d
            header[f'block.{block}.{name}'] = {'dtype': 'BF16', 'shape': shape, 'data_offsets': [at, at + n]}
            at += n
        block += 1
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    some = bytearray(os.urandom(64 << 20))
    some[1::2] = b'\x3f' * (32 << 20)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text)
        for k in range(0, at, len(some)):
            f.write(some[:at - k])


def main(path, rounds=5):
    import torch
    from safetensors.torch import load_file
    n = os.path.getsize(path)
    torch.cuda.init()
    torch.zeros(1, device='cuda')

    def measure(what, size, fn):
        seconds = []
        for _ in range(rounds):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            kept = fn()
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - begin)
            del kept
        seconds.sort()
        print(f'torch {torch.__version__},{what},{size / seconds[0] / 1e9:.2f},{size / seconds[rounds // 2] / 1e9:.2f},GB/s',
              flush=True)

    pinned = torch.ones(256 << 20, dtype=torch.uint8).pin_memory()
    to = torch.empty_like(pinned, device='cuda')
    measure('copy from pinned', pinned.numel(), lambda: to.copy_(pinned, non_blocking=True))
    measure('load_file', n, lambda: load_file(path, device='cuda'))


if __name__ == '__main__':
    if sys.argv[1] == 'make':
        make(sys.argv[2], int(sys.argv[3]))
    else:
        main(sys.argv[1], *map(int, sys.argv[2:3]))
