#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training a GPT by cairn and by PyTorch on the same machine, in one run: tokens a second, memory, and their ratio.

    bench/train_peer.py [--cairn PROGRAM] [--device cuda|cpu] [--layers N --heads N --width N --context N --vocab N]
                        [--batch N] [--steps N] [--compile]

The default is GPT-2 (124 M parameters), 32 x 1024 tokens a step, bf16: PyTorch under autocast with fused AdamW, cairn with
bf16 weights and their f32 copy; both clip gradients.  On the CPU both take f32.  The median of the last steps counts,
also as a share of the best matrix product that `cairn bench` finds.
"""
import argparse
import array
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time


def by_cairn(o, folder):
    """Tokens a second and bytes of memory, from the log of a run on random tokens."""
    data = os.path.join(folder, 'd.bin')
    n = o.batch * o.context * 8 + 1
    with open(data, 'wb') as f:
        array.array('H', (random.randrange(97, 122) for _ in range(n))).tofile(f)
    job = os.path.join(folder, 'job.yaml')
    with open(job, 'w', encoding='utf-8') as f:
        f.write(f'''model: {{layers: {o.layers}, heads: {o.heads}, width: {o.width}, context: {o.context}, vocab: {o.vocab}}}
data: {{path: {data}, tokenizer: bytes, val_split: 0}}
train: {{steps: {o.steps}, batch: {o.batch}, warmup: 1, allow_cpu: true}}
eval: {{every: 0}}
checkpoint: {{every: 0}}
run: {{dir: {folder}/run}}
''')
    device = 'cuda:0' if o.device == 'cuda' else o.device
    done = subprocess.run([o.cairn, 'train', job, '--device', device], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    with open(os.path.join(folder, 'run', 'log.jsonl'), encoding='utf-8') as f:
        steps = [json.loads(line) for line in f]
    late = steps[len(steps) // 2:]
    return statistics.median(s['tokens_per_s'] for s in late), max(s['mem_bytes'] for s in late)


def model_of(o, torch):
    nn, functional = torch.nn, torch.nn.functional
    hidden = torch.ones(o.context, o.context, device=o.device).triu(1).bool()

    def attend(q, k, v):
        if hasattr(functional, 'scaled_dot_product_attention'):
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = q @ k.transpose(2, 3) * q.shape[3] ** -0.5
        return scores.masked_fill(hidden, float('-inf')).softmax(3) @ v

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            d = o.width
            self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (p.view(b, t, o.heads, d // o.heads).transpose(1, 2)
                       for p in self.qkv(self.norm1(x)).split(d, 2))
            y = attend(q, k, v)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
            return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate='tanh'))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            kept = (o.vocab + 63) // 64 * 64
            self.wte, self.wpe = nn.Embedding(kept, o.width), nn.Embedding(o.context, o.width)
            self.blocks = nn.ModuleList(Block() for _ in range(o.layers))
            self.norm = nn.LayerNorm(o.width)

        def forward(self, ids, targets):
            x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
            for block in self.blocks:
                x = block(x)
            scores = self.norm(x) @ self.wte.weight.T
            return functional.cross_entropy(scores.view(-1, scores.shape[-1]), targets.view(-1))

    return Gpt()


def by_torch(o, torch, compiled):
    gpu = o.device.startswith('cuda')
    model = model_of(o, torch).to(o.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, **({'fused': True} if gpu else {}))
    run = torch.compile(model) if compiled else model
    ids, targets = (torch.randint(0, o.vocab, (o.batch, o.context), device=o.device) for _ in range(2))
    times = []
    for _ in range(o.steps):
        begin = time.perf_counter()
        if gpu:
            with torch.autocast('cuda', torch.bfloat16):
                loss = run(ids, targets)
        else:
            loss = run(ids, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        times.append(time.perf_counter() - begin)
    with open('/proc/self/status', encoding='ascii') as f:
        peak = next(int(line.split()[1]) * 1024 for line in f if line.startswith('VmHWM'))
    memory = torch.cuda.max_memory_reserved() if gpu else peak
    return o.batch * o.context / statistics.median(times[o.steps // 2:]), memory


def ceiling(o):
    """Operations a second of the best matrix product that `cairn bench` finds."""
    device = 'cuda:0' if o.device == 'cuda' else o.device
    done = subprocess.run([o.cairn, 'bench', '--device', device, '--json', 'gemm'], stdout=subprocess.PIPE, check=True)
    name = 'bf16' if o.device == 'cuda' else 'f32'
    return max(r['rate'] for r in json.loads(done.stdout)['results'] if r['format'] == name) * 1e12


def operations(o):
    """Of products and of causal attention, for one token forward and backward."""
    return 6 * (12 * o.layers * o.width**2 + o.vocab * o.width) + 6 * o.layers * o.width * o.context


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--cairn', default='build/cairn')
    p.add_argument('--device', default='cuda')
    for name, preset in (('layers', 12), ('heads', 12), ('width', 768), ('context', 1024), ('vocab', 50257), ('batch', 32),
                         ('steps', 20)):
        p.add_argument('--' + name, type=int, default=preset)
    p.add_argument('--compile', action='store_true', help='torch.compile too')
    o = p.parse_args()
    import torch  # pylint: disable=import-outside-toplevel
    if o.device.startswith('cuda'):
        torch.set_float32_matmul_precision('high')
    with tempfile.TemporaryDirectory(dir='.') as folder:
        speed, memory = by_cairn(o, folder)
    most = ceiling(o)
    print(f'cairn          {speed:12.0f} tok/s  {memory / 2**20:8.0f} MiB  {operations(o) * speed / most:.2f} of the best '
          f'matrix product, {most / 1e12:.4g} TFLOP/s')
    for compiled in (False, True) if o.compile else (False,):
        peer, peer_memory = by_torch(o, torch, compiled)
        name = 'torch.compile' if compiled else 'torch eager'
        print(f'{name:14} {peer:12.0f} tok/s  {peer_memory / 2**20:8.0f} MiB  cairn/torch {speed / peer:.2f}, '
              f'memory {memory / peer_memory:.2f}  (torch {torch.__version__})')


if __name__ == '__main__':
    sys.exit(main())
