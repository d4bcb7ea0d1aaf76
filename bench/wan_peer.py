#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One block of a Wan model with a LoRA in PyTorch, as `cairn bench wan` measures it: milliseconds for each block.

    bench/wan_peer.py [--cairn PROGRAM | --read FILE] [--device cuda|cpu] [--model NAME]... [--tokens N] [--no-compile]

Frozen bf16 weights, LoRA of rank 32 in f32 under autocast, gradient checkpointing, scaled_dot_product_attention; eager, and with
each block compiled by torch.compile.  The time of a block is the difference between 3 blocks and 1, halved, the best of several
passes.  FILE is what `cairn bench wan --json` printed; with a PROGRAM it is run first.  Both use the same device and size.
"""
import argparse
import json
import subprocess
import sys
import time
from types import SimpleNamespace

import torch
from torch.utils.checkpoint import checkpoint

import wan_model

SIZES = {'14B': (5120, 13824, 40), '5B': (3072, 14336, 24), '1.3B': (1536, 8960, 12), 'tiny': (256, 512, 2)}


def run_blocks(blocks, inputs):
    x = inputs[0]
    for block in blocks:
        x = checkpoint(block, x, *inputs[1:], use_reentrant=False)
    return x


def best(blocks, inputs, gradient, o):
    """Milliseconds of a pass forward and backward."""
    cuda, least, spent = o.device == 'cuda', float('inf'), 0
    for i in range(12):
        if cuda:
            torch.cuda.synchronize()
        start = time.perf_counter()
        with torch.autocast(o.device, torch.bfloat16):
            y = run_blocks(blocks, inputs)
        y.backward(gradient)
        if cuda:
            torch.cuda.synchronize()
        ms = 1000 * (time.perf_counter() - start)
        if i > 1:
            least, spent = min(least, ms), spent + ms
        if i > 3 and spent > 1000 * o.seconds:
            break
    return least


def by_torch(name, tokens, compiled, o):
    dim, ffn, heads = SIZES[name]
    c = SimpleNamespace(dim=dim, ffn=ffn, heads=heads, rank=32, alpha=32)
    generator = torch.Generator(o.device).manual_seed(1)
    with torch.device(o.device):
        blocks = [wan_model.Block(c, torch.bfloat16) for _ in range(3)]
    for block in blocks:
        wan_model.fill(block, generator)
    text = 64 if name == 'tiny' else 512

    def normal(*shape, dtype=torch.bfloat16):
        return torch.randn(shape, device=o.device, generator=generator).to(dtype)
    grid = (5, 30, 52) if tokens == 7800 else (1, 1, tokens)
    x = normal(1, tokens, dim).requires_grad_()
    inputs = (x, normal(1, 6, dim, dtype=torch.float32), normal(1, text, dim), *wan_model.rope_table(*grid, dim // heads, o.device))
    gradient = normal(1, tokens, dim)
    if compiled:
        blocks = [torch.compile(b) for b in blocks]
    return (best(blocks, inputs, gradient, o) - best(blocks[:1], inputs, gradient, o)) / 2


def cairn_rows(o):
    if o.read:
        with open(o.read, encoding='utf-8') as f:
            return json.load(f)['results']
    if not o.cairn:
        return []
    command = [o.cairn, 'bench', 'wan', '--json', '--device', 'cuda:0' if o.device == 'cuda' else o.device]
    for name in o.model[:1] if len(o.model) == 1 else []:
        command += ['--model', name]
    if o.tokens:
        command += ['--tokens', str(o.tokens)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)['results']


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--cairn', help='the program')
    p.add_argument('--read', help='what `cairn bench wan --json` printed')
    p.add_argument('--device', default='cuda')
    p.add_argument('--model', action='append', choices=SIZES, default=None)
    p.add_argument('--tokens', type=int)
    p.add_argument('--seconds', type=float, default=1)
    p.add_argument('--no-compile', action='store_true')
    o = p.parse_args()
    o.model = o.model or (['14B', '5B', '1.3B'] if o.device == 'cuda' else ['tiny'])
    rows = cairn_rows(o)
    print(f'{"MODEL":6} {"TOKENS":>6}  {"BY":22} {"MS":>9}  RATIO   (PyTorch {torch.__version__})')
    for name in o.model:
        tokens = o.tokens or (64 if name == 'tiny' else 7800)
        ours = [r for r in rows if r['bench'] == 'wan' and r['name'] == name and r['sizes'][0] == tokens]
        for r in ours:
            print(f'{name:6} {tokens:6}  {"cairn, " + r["by"]:22} {r["time_ms"]:9.3f}')
        for compiled in (False,) if o.no_compile else (False, True):
            ms = by_torch(name, tokens, compiled, o)
            ratio = ', '.join(f'cairn {r["by"]} {r["time_ms"] / ms:.3f} of this time' for r in ours if r['by'] == 'device')
            print(f'{name:6} {tokens:6}  {"torch.compile" if compiled else "torch eager":22} {ms:9.3f}  {ratio}', flush=True)
            if o.device == 'cuda':
                torch.cuda.empty_cache()


if __name__ == '__main__':
    sys.exit(main())
