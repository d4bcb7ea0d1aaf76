#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A sample of a Wan model with a LoRA and CFG by cairn and by PyTorch: seconds of all steps, and how far the latents differ.

    bench/wan_sample_peer.py --program FILE [--device cuda:0|cpu] [--dim N --ffn N --heads N --layers N] [--latent F,H,W]
                             [--steps N] [--cfg C] [--shift S] [--rank R] [--dtype bf16|f32] [--no-compile]

The program is tests/tools/wan_sample.c (ninja -C build tests/tools/wan_sample).  Both have the same random weights, texts and noise.  PyTorch: Euler on the device, the
prompt and the negative prompt in one batch, everything in --dtype but for norms and time, the LoRA too;
scaled_dot_product_attention; eager, and with each block compiled by torch.compile.  The first two steps are not timed.  Exit 1
where cairn's latents differ from PyTorch's f32 ones by more than PyTorch's own do (with --check).
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

import torch
from safetensors.torch import load_file, save_file

import wan_model

DTYPES = {'bf16': torch.bfloat16, 'f32': torch.float32}


def names(model):
    """The parameters as files name them."""
    for name, p in model.named_parameters():
        yield (name + '.weight' if 'lora_' in name else name), p


def make(o):
    with torch.device(o.torch_device):
        model = wan_model.Wan(o, torch.bfloat16)
    wan_model.fill(model, torch.Generator(o.torch_device).manual_seed(1))
    all_of = {n: p.detach().bfloat16().cpu().contiguous() for n, p in names(model)}
    save_file({n: p for n, p in all_of.items() if 'lora_' not in n}, o.weights)
    save_file({n: p.float() for n, p in all_of.items() if 'lora_' in n}, o.lora)
    texts = torch.randn(2, 512, o.text_dim, generator=torch.Generator().manual_seed(2)).bfloat16()
    texts[0, 80:] = 0
    texts[1, 126:] = 0
    save_file({'text': texts, 'size': torch.tensor(o.latent, dtype=torch.float32)}, o.data)


def load(o, dtype):
    with torch.device(o.torch_device):
        model = wan_model.Wan(o, dtype)
    given = load_file(o.weights) | load_file(o.lora)
    with torch.no_grad():
        for name, p in names(model):
            p.data = p.data.to(dtype) if 'lora_' in name else p.data
            p.copy_(given[name])
    return model.requires_grad_(False)


def sigmas(o):
    even = [0.9990000128746033 * (1 - i / o.steps) for i in range(o.steps)]
    return [o.shift * s / (1 + (o.shift - 1) * s) for s in even] + [0.0]


@torch.no_grad()
def sample(model, noise, texts, o, steps):
    s, x = sigmas(o), noise.clone()
    for i in range(steps):
        when = torch.full((2,), float(int(1000 * s[i])), device=x.device)
        cond, uncond = model(torch.cat((x, x)), when, texts).float().chunk(2)
        x = x + (s[i + 1] - s[i]) * (uncond + o.cfg * (cond - uncond))
    return x.cpu()


def by_torch(o, dtype, compiled, noise):
    model = load(o, dtype)
    if compiled:
        for block in model.blocks:
            block.compile()
    texts = load_file(o.data)['text'].to(o.torch_device)
    noise = noise.view(1, o.channels, *o.latent).to(o.torch_device)
    sample(model, noise, texts, o, 2)
    start = time.perf_counter()
    x = sample(model, noise, texts, o, o.steps)
    return x.flatten(), time.perf_counter() - start


def by_cairn(o):
    command = [o.program, o.weights, o.lora, o.data, o.out, o.device, o.dtype, str(o.steps), str(o.cfg), str(o.shift)]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return {name: float(seconds) for name, seconds in (line.split() for line in lines)}, load_file(o.out)


def difference(got, want):
    return ((got.double() - want.double()).norm() / want.double().norm()).item()


def tell(o, ours, latents):
    noise, euler, peers = latents['noise'], latents['euler'], {}
    for compiled in (False,) if o.no_compile else (False, True):
        x, seconds = by_torch(o, DTYPES[o.dtype], compiled, noise)
        name = 'torch.compile' if compiled else 'torch eager'
        peers[name] = x
        print(f'{name:26} {seconds:8.3f} s  ' +
              ', '.join(f'cairn {n} {s / seconds:.3f} of this time' for n, s in ours.items()) +
              f'; cairn\'s latents differ by {difference(euler, x):.4f}', flush=True)
        if o.torch_device == 'cuda':
            torch.cuda.empty_cache()
    if not o.check:
        return True
    want, _ = by_torch(o, torch.float32, False, noise)
    theirs = max(difference(x, want) for x in peers.values())
    mine = difference(euler, want)
    good = mine <= max(1.1 * theirs, 1e-4)
    print(f'{"ok" if good else "not ok"}: from PyTorch in f32, cairn {mine:.5f}, PyTorch {theirs:.5f} of the norm')
    return good


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--program', required=True)
    p.add_argument('--device', default='cuda:0')
    p.add_argument('--dim', type=int, default=1536)
    p.add_argument('--ffn', type=int, default=8960)
    p.add_argument('--heads', type=int, default=12)
    p.add_argument('--layers', type=int, default=30)
    p.add_argument('--channels', type=int, default=16)
    p.add_argument('--text-dim', type=int, default=4096)
    p.add_argument('--latent', default='9,60,104', type=lambda s: tuple(int(n) for n in s.split(',')))
    p.add_argument('--steps', type=int, default=20)
    p.add_argument('--cfg', type=float, default=5)
    p.add_argument('--shift', type=float, default=3)
    p.add_argument('--rank', type=int, default=32)
    p.add_argument('--dtype', default='bf16', choices=DTYPES)
    p.add_argument('--no-compile', action='store_true')
    p.add_argument('--check', action='store_true')
    o = p.parse_args()
    o.alpha, o.torch_device = o.rank, 'cpu' if o.device == 'cpu' else 'cuda'
    with tempfile.TemporaryDirectory() as folder:
        for name in ('weights', 'lora', 'data', 'out'):
            setattr(o, name, os.path.join(folder, name + '.safetensors'))
        start = time.perf_counter()
        make(o)
        print(f'# {o.layers} blocks of {o.dim}, latent {"x".join(map(str, o.latent))}, {o.steps} steps, CFG {o.cfg:g}, rank {o.rank}, '
              f'{o.dtype}; PyTorch {torch.__version__}; weights in {time.perf_counter() - start:.1f} s', flush=True)
        ours, latents = by_cairn(o)
        for name, seconds in ours.items():
            print(f'{"cairn " + name:26} {seconds:8.3f} s', flush=True)
        return 0 if tell(o, ours, latents) else 1


if __name__ == '__main__':
    sys.exit(main())
