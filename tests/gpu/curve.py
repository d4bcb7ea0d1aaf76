#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The loss of 300 steps of a GPT by cairn and by PyTorch, from the same weights and batches, on the same device.

    tests/gpu/curve.py TEXT [--cairn PROGRAM] [--batches PROGRAM] [--device cuda|cpu] [--steps N] [--out DIR]

PyTorch trains in f32 and in bf16 (autocast); cairn in f32, bf16 and f16.  Noise is what two ways of PyTorch differ by.
Leaves runs in DIR that `cairn plot` compares.  Exit 1 if cairn is further from PyTorch's f32 than 3 times the noise.
"""
import argparse
import array
import json
import math
import os
import shutil
import struct
import subprocess
import sys

import torch
from torch import nn
from torch.nn import functional

LAYERS, HEADS, WIDTH, CONTEXT, VOCAB, BATCH = 6, 6, 384, 256, 256, 16
LR, WARMUP, MIN_SHARE, DECAY, CLIP = 6e-4, 30, 0.1, 0.1, 1.0


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.a_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.c_fc, self.m_proj = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (p.view(b, t, HEADS, d // HEADS).transpose(1, 2) for p in self.c_attn(self.ln_1(x)).split(d, 2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + self.a_proj(y)
        return x + self.m_proj(functional.gelu(self.c_fc(self.ln_2(x)), approximate='tanh'))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCAB, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(WIDTH)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * LAYERS) if name.endswith('proj.weight') else 0.02)
            elif name.endswith('bias'):
                nn.init.zeros_(p)

    def forward(self, ids, targets):
        x = self.wte(ids) + self.wpe.weight[:ids.shape[1]]
        for block in self.h:
            x = block(x)
        return functional.cross_entropy((self.ln_f(x) @ self.wte.weight.T).view(-1, VOCAB), targets.view(-1))


def hf_name(name):
    for ours, theirs in (('c_attn', 'attn.c_attn'), ('a_proj', 'attn.c_proj'), ('c_fc', 'mlp.c_fc'), ('m_proj', 'mlp.c_proj')):
        if f'.{ours}.' in name:
            return 'transformer.' + name.replace(ours, theirs), name.endswith('weight')
    return 'transformer.' + name, False


def save(model, folder):
    """As Hugging Face's GPT-2: matrices of blocks are [in, out]."""
    os.makedirs(folder, exist_ok=True)
    header, data, at = {}, [], 0
    for name, p in model.named_parameters():
        name, turned = hf_name(name)
        numbers = (p.detach().T if turned else p.detach()).contiguous().cpu()
        raw = array.array('f', numbers.flatten().tolist()).tobytes()
        header[name] = {'dtype': 'F32', 'shape': list(numbers.shape), 'data_offsets': [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(f'{folder}/model.safetensors', 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + b''.join(data))
    with open(f'{folder}/config.json', 'w', encoding='utf-8') as f:
        json.dump({'model_type': 'gpt2', 'architectures': ['GPT2LMHeadModel'], 'vocab_size': VOCAB, 'n_positions': CONTEXT,
                   'n_embd': WIDTH, 'n_layer': LAYERS, 'n_head': HEADS, 'activation_function': 'gelu_new',
                   'layer_norm_epsilon': 1e-5, 'tie_word_embeddings': True}, f)


def rate(step, steps):
    if step < WARMUP:
        return LR * (step + 1) / (WARMUP + 1)
    share = (step - WARMUP) / (steps - WARMUP)
    return LR * (MIN_SHARE + (1 - MIN_SHARE) * 0.5 * (1 + math.cos(math.pi * share)))


def by_torch(start, batches, o, dtype, rates):
    model = Gpt().to(o.device)
    model.load_state_dict(start)
    groups = [{'params': [p for p in model.parameters() if p.dim() > 1], 'weight_decay': DECAY},
              {'params': [p for p in model.parameters() if p.dim() == 1], 'weight_decay': 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95), eps=1e-8)
    losses = []
    for step, (ids, targets) in enumerate(batches):
        for group in optimizer.param_groups:
            group['lr'] = rates[step]
        with torch.autocast(o.device.split(':')[0], torch.bfloat16, enabled=dtype == 'bf16'):
            loss = model(ids, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    folder = f'{o.out}/torch-{dtype}'
    os.makedirs(folder)
    with open(f'{folder}/log.jsonl', 'w', encoding='utf-8') as f:
        for i, loss in enumerate(losses):
            f.write(json.dumps({'step': i + 1, 'loss': loss, 'lr': rates[i]}) + '\n')
    return losses


def by_cairn(o, dtype):
    job, folder = f'{o.out}/{dtype}.yaml', f'{o.out}/cairn-{dtype}'
    with open(job, 'w', encoding='utf-8') as f:
        f.write(f'''model: {{path: {o.out}/start}}
data: {{path: {o.text}, tokenizer: bytes, val_split: 0.05}}
train: {{steps: {o.steps}, batch: {BATCH}, lr: {LR}, min_lr: {MIN_SHARE}, warmup: {WARMUP}, weight_decay: {DECAY}, clip: {CLIP},
        beta1: 0.9, beta2: 0.95, eps: 1e-8, seed: 1, dtype: {dtype}, allow_cpu: true}}
eval: {{every: 0}}
checkpoint: {{every: 0}}
run: {{dir: {folder}}}
''')
    device = 'cuda:0' if o.device == 'cuda' else o.device
    subprocess.run([o.cairn, 'train', job, '--device', device], check=True)
    with open(f'{folder}/log.jsonl', encoding='utf-8') as f:
        steps = [json.loads(line) for line in f]
    return [s['loss'] for s in steps], [s['lr'] for s in steps]


def distance(a, b):
    """Mean and largest difference of curves, each smoothed over 10 steps."""
    smooth = [[sum(c[max(0, i - 9):i + 1]) / min(i + 1, 10) for i in range(len(c))] for c in (a, b)]
    d = [abs(x - y) for x, y in zip(*smooth)]
    return sum(d) / len(d), max(d)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('text')
    p.add_argument('--cairn', default='build/cairn')
    p.add_argument('--batches', default='build/tests/tools/batches')
    p.add_argument('--device', default='cuda')
    p.add_argument('--steps', type=int, default=300)
    p.add_argument('--out', default='curve')
    o = p.parse_args()
    shutil.rmtree(o.out, ignore_errors=True)
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    model = Gpt()
    save(model, f'{o.out}/start')
    start = model.state_dict()
    raw = subprocess.run([o.batches, o.text, str(CONTEXT), str(BATCH), str(o.steps), '1'], check=True,
                         stdout=subprocess.PIPE).stdout
    numbers = torch.frombuffer(bytearray(raw), dtype=torch.int32).view(o.steps, 2, BATCH, CONTEXT).long().to(o.device)
    batches = [(n[0], n[1]) for n in numbers]
    mine = {}
    for dtype in ('f32', 'bf16', 'f16'):
        mine[dtype], rates = by_cairn(o, dtype)
    if max(abs(a - rate(i, o.steps)) for i, a in enumerate(rates)) > 1e-9:
        print('note: the rates are cairn\'s; the formula here gives others')
    theirs = {dtype: by_torch(start, batches, o, dtype, rates) for dtype in ('f32', 'bf16')}
    noise = distance(theirs['f32'], theirs['bf16'])
    print(f'torch bf16 from torch f32: mean {noise[0]:.5f}, largest {noise[1]:.5f}; last loss {theirs["f32"][-1]:.4f}')
    bad = 0
    for dtype, losses in mine.items():
        d = distance(theirs['f32'], losses)
        bad += d[0] > 3 * noise[0]
        print(f'cairn {dtype} from torch f32: mean {d[0]:.5f}, largest {d[1]:.5f}; last loss {losses[-1]:.4f}')
    subprocess.run([o.cairn, 'plot', *(f'{o.out}/{n}' for n in ('torch-f32', 'torch-bf16', 'cairn-f32', 'cairn-bf16', 'cairn-f16')),
                    '--out', f'{o.out}/curve.svg'], check=False)
    return bad > 0


if __name__ == '__main__':
    sys.exit(main())
