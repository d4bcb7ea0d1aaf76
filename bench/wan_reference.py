#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of a Wan model by cairn and by PyTorch, from the same random weights, noise and order.

    bench/wan_reference.py step [--program FILE] [--dir DIR] [--device cuda:0|cpu] [--dim N --ffn N --heads N --layers N]
                                [--latent F,H,W]
    bench/wan_reference.py curve [the same] [--steps N] [--rate R] [--svg FILE]

`step` compares the output, the loss and every gradient of the LoRA: cairn's f32 with PyTorch's f32 (within 1e-4 of a tensor's
largest magnitude), cairn's bf16 with PyTorch's f32 (within 2 %, or no further than PyTorch's own bf16).  `curve` trains with AdamW:
cairn in bf16, PyTorch in f32 and in bf16; means of the loss over 20 steps must differ from PyTorch's f32 by no more than
PyTorch's own bf16 does, both on average and at most.  Exit 1 where that is not so.  The program is tests/tools/wan_steps.c.
"""
import argparse
import os
import subprocess
import sys
import time

import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

import wan_model


def names(model):
    """The parameters as files name them."""
    for name, p in model.named_parameters():
        yield (name + '.weight' if 'lora_' in name else name), p


def make(o):
    """Writes weights, LoRA and data."""
    torch.manual_seed(1)
    with torch.device(o.torch_device):
        model = wan_model.Wan(o, torch.bfloat16)
    wan_model.fill(model, torch.Generator(o.torch_device).manual_seed(o.seed))
    all_names = dict(names(model))
    if o.what == 'curve':  # as a new LoRA
        for name, p in all_names.items():
            if 'lora_B' in name:
                p.data.zero_()
    weights = {n: p.detach().bfloat16().cpu().contiguous() for n, p in all_names.items() if 'lora_' not in n}
    save_file(weights, o.weights)
    save_file({n: p.detach().float().cpu().contiguous() for n, p in all_names.items() if 'lora_' in n}, o.lora)
    g = torch.Generator().manual_seed(o.seed)
    latent = (o.channels, *o.latent)
    captions = torch.randn(o.items, 512, o.text_dim, generator=g).bfloat16()
    for i in range(o.items):
        captions[i, 100 + 20 * i:] = 0  # behind the caption
    # Smooth latents, so that there is something to learn.
    smooth = functional.interpolate(torch.randn(o.items, o.channels, 1, 4, 4, generator=g), o.latent, mode='trilinear')
    save_file({'latents': smooth.contiguous(), 'text': captions,
               'noise': torch.randn(o.steps, *latent, generator=g),
               'order': torch.randint(o.items, (o.steps,), generator=g, dtype=torch.int32),
               'sigma': torch.rand(o.steps, generator=g) * 0.98 + 0.01}, o.data)


def load(o, dtype):
    with torch.device(o.torch_device):
        model = wan_model.Wan(o, dtype)
    given = load_file(o.weights) | load_file(o.lora)
    with torch.no_grad():
        for name, p in names(model):
            p.copy_(given[name])
    return model


def by_torch(o, dtype):
    """What wan_steps writes."""
    model, data = load(o, dtype), load_file(o.data)
    trained = {n: p for n, p in names(model) if p.requires_grad}
    optimizer = torch.optim.AdamW(trained.values(), lr=o.rate, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    out, losses, norms = {}, [], []
    for i in range(o.steps):
        item, sigma = int(data['order'][i]), float(data['sigma'][i])
        x0, noise = (t[None].to(o.torch_device) for t in (data['latents'][item], data['noise'][i]))
        text = data['text'][item][None].to(o.torch_device)
        when = torch.tensor([1000 * data['sigma'][i]], device=o.torch_device)
        with torch.autocast(o.torch_device, torch.bfloat16, enabled=dtype == torch.bfloat16):
            y = model((1 - sigma) * x0 + sigma * noise, when, text)
        loss = (y - (noise - x0)).square().mean()
        loss.backward()
        if i == 0:
            out['output'] = y.detach().flatten().float().cpu()
            out |= {f'grad.{n}': p.grad.flatten().float().cpu() for n, p in trained.items()}
        norms.append(torch.nn.utils.clip_grad_norm_(trained.values(), 1.0).item())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    return out | {'loss': torch.tensor(losses), 'norm': torch.tensor(norms)}


def by_cairn(o, dtype):
    path = os.path.join(o.dir, f'cairn-{dtype}.safetensors')
    subprocess.run([o.program, o.weights, o.lora, o.data, path, o.device, dtype, str(o.steps), str(o.rate)], check=True)
    return load_file(path)


def timed(what, run, *args):
    start = time.perf_counter()
    out = run(*args)
    print(f'# {what}: {time.perf_counter() - start:.1f} s', flush=True)
    return out


def differences(got, want):
    """Of each tensor: the largest difference as a share of its largest magnitude, and the norm of the difference as a share."""
    out = {}
    for name, w in want.items():
        d = got[name].double() - w.double()
        out[name] = (d.abs().max() / w.abs().max()).item(), (d.norm() / w.double().norm()).item()
    return out


def tell(name, all_of, limit, beside=None):
    """Prints the worst of each kind.  A difference is allowed up to the limit, or up to that of `beside`."""
    good = True
    for kind in ('output', 'loss', 'grad'):
        shares = {n: s for n, s in all_of.items() if n.startswith(kind)}
        worst = max(shares, key=lambda n: shares[n][0])
        allowed = {n: max(limit, beside[n][0] if beside else 0) for n in shares}
        bad = [n for n, s in shares.items() if not s[0] <= allowed[n]]
        norm = max(s[1] for s in shares.values())
        print(f'{"not ok" if bad else "ok    "}  {name:32} {kind:7} worst {shares[worst][0]:.2e} of the largest magnitude, '
              f'{norm:.2e} of the norm ({worst}); {len(bad)} of {len(shares)} above the limit')
        good = good and not bad
    return good


def step(o):
    timed('weights', make, o)
    want = timed('torch f32', by_torch, o, torch.float32)
    peer = differences(timed('torch bf16', by_torch, o, torch.bfloat16), want)
    wide = differences(timed('cairn f32', by_cairn, o, 'f32'), want)
    narrow = differences(timed('cairn bf16', by_cairn, o, 'bf16'), want)
    tell('torch bf16 from torch f32', peer, 0.02)
    return all([tell('cairn f32 from torch f32', wide, 1e-4), tell('cairn bf16 from torch f32', narrow, 0.02, peer)])


COLORS = {'torch f32': '#444444', 'torch bf16': '#d97706', 'cairn bf16': '#2563eb'}


def means(losses, n):
    return losses[:len(losses) // n * n].view(-1, n).mean(1)


def draw(path, curves, title):
    """Losses as means of 20 steps, and below how far they are from the first curve, as SVG."""
    wide, high, left, gap = 720, 220, 70, 40
    first = next(iter(curves.values()))

    def lines(of, top, label):
        low, most = min(min(c) for c in of.values()), max(max(c) for c in of.values())
        span = (most - low) or 1
        out = [f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" fill="none" stroke="#999"/>']
        for k in range(5):
            y, v = top + high - high * k / 4, low + span * k / 4
            out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{v:.4g}</text>')
        for name, c in of.items():
            points = ' '.join(f'{left + wide * i / max(1, len(c) - 1):.1f},{top + high - high * (v - low) / span:.1f}'
                              for i, v in enumerate(c))
            out.append(f'<polyline points="{points}" fill="none" stroke="{COLORS[name]}" stroke-width="1.5"/>')
        out.append(f'<text x="{left + 8}" y="{top + 18}">{label}</text>')
        return out
    body = [f'<text x="{left}" y="20">{title}</text>']
    for i, name in enumerate(curves):
        body.append(f'<text x="{left + 130 * i}" y="40" fill="{COLORS[name]}">{name}</text>')
    body += lines({n: c.tolist() for n, c in curves.items()}, 55, 'loss, means of 20 steps')
    body += lines({n: (c - first).tolist() for n, c in curves.items()}, 55 + high + gap, 'difference from torch f32')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide + left + 20}" height="{2 * high + gap + 75}" '
                'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>'
                + '\n'.join(body) + '</svg>\n')


def curve(o):
    timed('weights', make, o)
    curves = {}
    for name, run, dtype in (('torch f32', by_torch, torch.float32), ('torch bf16', by_torch, torch.bfloat16),
                             ('cairn bf16', by_cairn, 'bf16')):
        curves[name] = means(timed(name, run, o, dtype)['loss'].double(), min(20, o.steps))
    base = curves['torch f32']
    away = {n: (c - base).abs() for n, c in curves.items()}
    for name, d in away.items():
        print(f'{name:11} first {curves[name][0]:.6f}, last {curves[name][-1]:.6f}; from torch f32: mean {d.mean():.6f}, '
              f'largest {d.max():.6f}')
    further = int((away['cairn bf16'] > away['torch bf16']).sum())
    print(f'cairn is further from torch f32 than torch bf16 in {further} of {len(base)} means')
    if o.svg:
        draw(o.svg, curves, f'Wan LoRA, hidden size {o.dim}, {o.layers} blocks, {o.steps} steps: {o.title}')
    return bool(away['cairn bf16'].mean() <= away['torch bf16'].mean() and away['cairn bf16'].max() <= away['torch bf16'].max())


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('what', choices=('step', 'curve'))
    p.add_argument('--program', default='build/tests/tools/wan_steps')
    p.add_argument('--dir', default='.', help='where weights and data are written')
    p.add_argument('--device', default='cuda:0', help="cairn's name of the device")
    p.add_argument('--latent', default='5,60,104', help='frames, height and width')
    for name, preset in (('dim', 5120), ('ffn', 13824), ('heads', 40), ('layers', 2), ('rank', 32), ('channels', 16),
                         ('text-dim', 4096), ('items', 8), ('steps', 300), ('seed', 1)):
        p.add_argument('--' + name, type=int, default=preset)
    p.add_argument('--rate', type=float, default=1e-4)
    p.add_argument('--svg')
    o = p.parse_args()
    os.makedirs(o.dir, exist_ok=True)
    o.alpha, o.latent = o.rank, tuple(int(n) for n in o.latent.split(','))
    o.torch_device = 'cpu' if o.device == 'cpu' else 'cuda'
    o.title = 'CPU' if o.device == 'cpu' else torch.cuda.get_device_name()
    if o.what == 'step':
        o.steps = 1
    for name in ('weights', 'lora', 'data'):
        setattr(o, name, os.path.join(o.dir, f'{name}.safetensors'))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    return 0 if (step if o.what == 'step' else curve)(o) else 1


if __name__ == '__main__':
    sys.exit(main())
