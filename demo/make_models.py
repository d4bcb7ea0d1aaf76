#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the models of the demo: a VAE, a text encoder and a transformer of Wan 2.1 in its own format, 3.7 MB in all.

    PYTHONPATH=bench demo/make_models.py OUT [--device cuda] [--vae SECONDS] [--dit SECONDS]

The VAE learns to compress clips of moving shapes, stars among them.  The transformer learns, with the text encoder, to draw circles,
squares and triangles as a caption says; it never sees a star.  Four minutes on one large GPU; needs PyTorch.  OUT/*.png show
what it learned.  Nobody needs this to run the demo: its results are in models/.
"""
import argparse
import functools
import json
import math
import os
import random
import struct
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import shapes
import vae_peer

DIM, HEADS, LAYERS, FFN, Z = 96, 4, 6, 288, 16        # the transformer
TEXT, TEXT_HEADS, TEXT_LAYERS, TEXT_FFN = 64, 2, 2, 128
VAE_DIM = 8
ROWS = 8            # of a caption that may be in use; the other 504 are the same and count as one
WORDS = ['a', 'moving', *shapes.MOTIONS, *shapes.COLORS, *shapes.SHAPES, 'the', 'of', 'in', 'on', 'and', 'with', 'small', 'large', 'slowly',
         'fast', 'heart', 'ring', 'cross', 'moon', 'zigzag', 'jumping', 'orange', 'pink', 'black', 'grey']
PIECES = ['<pad>', '</s>', '<unk>'] + ['\u2581' + w for w in WORDS] + ['\u2581'] + list('abcdefghijklmnopqrstuvwxyz')
MEAN, STD = torch.tensor(vae_peer.MEAN), torch.tensor(vae_peer.STD)


# ---- files ----

def save(path, tensors):
    header, data, at = {}, [], 0
    for name, t in tensors.items():
        raw = t.detach().to(torch.bfloat16).cpu().contiguous().view(torch.uint8).numpy().tobytes()
        header[name] = {'dtype': 'BF16', 'shape': list(t.shape), 'data_offsets': [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + b''.join(data))


def load(path, device='cpu'):
    with open(path, 'rb') as f:
        header = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
        body = f.read()
    kinds = {'BF16': torch.bfloat16, 'F16': torch.float16, 'F32': torch.float32}
    header.pop('__metadata__', None)
    return {k: torch.frombuffer(bytearray(body[slice(*v['data_offsets'])]), dtype=kinds[v['dtype']]).view(v['shape']).float().to(device)
            for k, v in header.items()}


def save_tokenizer(path):
    scores = [0 if p[0] == '<' else -2 if p[0] == '\u2581' else -9 for p in PIECES]
    space = {'type': 'Metaspace', 'replacement': '\u2581', 'prepend_scheme': 'always', 'split': True}
    with open(path, 'w', encoding='utf-8') as f:
        json.dump({'version': '1.0', 'added_tokens': [], 'normalizer': None, 'pre_tokenizer': space,
                   'model': {'type': 'Unigram', 'unk_id': 2, 'vocab': [list(p) for p in zip(PIECES, scores)]}}, f)
        f.write('\n')


def save_sheet(path, clips):
    """One clip a row: [n, 3, frames, side, side] in -1 to 1."""
    x = ((clips.clamp(-1, 1) + 1) * 127.5).round().byte().cpu()
    n, _, t, h, w = x.shape
    x = F.pad(x, (0, 2, 0, 2)).permute(0, 3, 2, 4, 1).reshape(n * (h + 2), t * (w + 2) * 3)
    shapes.write_png(path, [bytes(r) for r in x.numpy()])


# ---- clips ----

def render(points, inner, turn, radius, color, ground, x0, y0, side=shapes.SIDE):
    """As shapes.frame: parameters [n], colours [n, 3], centres [n, frames]; the result [n, 3, frames, side, side]."""
    n, device = points.shape[0], points.device
    place = torch.arange(side, device=device) + 0.5
    wide = lambda v: v.view(n, 1, 1, 1)
    dx, dy = place.view(1, 1, 1, -1) - x0[:, :, None, None], place.view(1, 1, -1, 1) - y0[:, :, None, None]
    r, half = torch.sqrt(dx * dx + dy * dy + 1e-9), wide(math.pi / points)
    a = (torch.remainder(torch.atan2(dy, dx) - wide(turn) + half, 2 * half) - half).abs()
    radius = wide(radius)
    bx, by = radius * wide(inner) * half.cos(), radius * wide(inner) * half.sin()
    inside = ((bx - radius) * r * a.sin() - by * (r * a.cos() - radius)) / torch.sqrt((bx - radius) ** 2 + by ** 2)
    cover = (inside + 0.5).clamp(0, 1)[:, None]
    color, ground = color.view(n, 3, 1, 1, 1), ground.view(-1, 3, 1, 1, 1)
    return (ground + (color - ground) * cover) / 127.5 - 1


@functools.lru_cache
def constants(device):
    """Kinds of shapes, colours and the ground; a CUDA graph cannot copy them."""
    kinds = [k[:3] for k in shapes.SHAPES.values()]
    return tuple(torch.tensor(v, device=device, dtype=torch.float32) for v in (kinds, list(shapes.COLORS.values()), shapes.GROUND))


def random_clips(n, device, side=shapes.SIDE):
    """Any shape, colour, motion and turn: what the VAE sees."""
    kinds, colors, plain = constants(device)

    def between(low, high, *size):
        return low + (high - low) * torch.rand(*(size or (n,)), device=device)
    kind = kinds[torch.randint(len(kinds), (n,), device=device)]
    odd = torch.rand(n, device=device) < 0.3
    points = torch.where(odd, torch.floor(between(3, 8)), kind[:, 0])
    inner = torch.where(odd, between(0.35, 1) * torch.cos(math.pi / points), kind[:, 1])
    turn = torch.where(odd, between(0, 6.3), kind[:, 2])
    t = torch.arange(shapes.FRAMES, device=device) - (shapes.FRAMES - 1) / 2
    axis = torch.rand(n, device=device) < 0.5
    v, w = between(-6, 6), torch.where(torch.rand(n, device=device) < 0.3, between(-4, 4), torch.zeros(n, device=device))
    x0 = side / 2 + between(-14, 14)[:, None] + torch.where(axis, v, w)[:, None] * t
    y0 = side / 2 + between(-14, 14)[:, None] + torch.where(axis, w, v)[:, None] * t
    color = colors[torch.randint(len(colors), (n,), device=device)]
    color = torch.where(odd[:, None], between(30, 255, n, 3), color)
    ground = torch.where(torch.rand(n, 1, device=device) < 0.1, between(0, 60, n, 3), plain)
    return render(points, inner, turn, between(10, 23), color, ground, x0, y0, side)


def captioned_clips(n, names, chance, device):
    """As shapes.write_clip draws them; with the number of each one's motion caption and of that without motion."""
    rows, x, y, clips, images = [], [], [], [], []
    kinds = [k for k in shapes.SHAPES if k != 'star']
    for _ in range(n):
        shape, color, motion = chance.choice(kinds), chance.choice(list(shapes.COLORS)), chance.choice(list(shapes.MOTIONS))
        points, inner, turn, radius = shapes.SHAPES[shape]
        rows.append((points, inner, turn, radius * chance.uniform(0.85, 1.15), *shapes.COLORS[color]))
        way = list(shapes.path(motion, chance))
        x.append([p[0] for p in way])
        y.append([p[1] for p in way])
        clips.append(names[shapes.caption(color, shape, motion)])
        images.append(names[shapes.caption(color, shape)])
    p = torch.tensor(rows, device=device)
    ground = constants(device)[2]
    pixels = render(p[:, 0], p[:, 1], p[:, 2], p[:, 3], p[:, 4:], ground, torch.tensor(x, device=device), torch.tensor(y, device=device))
    return pixels, torch.tensor(clips, device=device), torch.tensor(images, device=device)


# ---- the VAE, whole clips at once, channels last; vae_peer has the modules ----

def flat(f, x):
    """A 2-D convolution of each frame."""
    y = f(x.flatten(0, 1).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    return y.unflatten(0, x.shape[:2])


def conv(m, x):
    """A causal convolution of [n, t, h, w, c]: earlier frames become channels, since 2-D convolutions are the fast ones."""
    k, t = m.weight.shape[2], x.shape[1]
    if k > 1:
        past = F.pad(x, (0, 0, 0, 0, 0, 0, k - 1, 0))
        x = torch.cat([past[:, i:i + t] for i in range(k)], -1)
    weight = m.weight.transpose(1, 2).flatten(1, 2)
    if weight.shape[-1] == 1:
        return F.linear(x, weight.flatten(1), m.bias)
    return flat(lambda y: F.conv2d(y, weight, m.bias, padding=1), x)


def rms(m, x):
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32).clamp(min=1e-12)
    return x * (x.shape[-1] ** 0.5 / length).to(x.dtype) * m.gamma.view(-1).to(x.dtype)


def residual(m, x):
    y = conv(m.residual['2'], F.silu(rms(m.residual['0'], x)))
    y = conv(m.residual['6'], F.silu(rms(m.residual['3'], y)))
    return y + (conv(m.shortcut, x) if m.shortcut else x)


def attention(m, x):
    y = rms(m.norm, x).flatten(2, 3)
    q, k, v = F.linear(y, m.to_qkv.weight.flatten(1), m.to_qkv.bias).flatten(0, 1)[:, None].chunk(3, -1)
    y = F.scaled_dot_product_attention(q, k, v)[:, 0]
    return x + F.linear(y, m.proj.weight.flatten(1), m.proj.bias).view(x.shape)


def down(m, x):
    x = flat(m.resample['1'], F.pad(x, (0, 0, 0, 1, 0, 1)))
    t = x.shape[1]
    if m.time_conv is None or t == 1:
        return x
    parts = torch.cat([x[:, i:t - 2 + i:2] for i in range(3)], -1)
    later = F.linear(parts, m.time_conv.weight.transpose(1, 2).flatten(1), m.time_conv.bias)
    return torch.cat([x[:, :1].to(later.dtype), later], 1)


def up(m, x):
    n, t, h, w, c = x.shape
    if m.time_conv is not None and t > 1:
        later = conv(m.time_conv, x[:, 1:]).unflatten(-1, (2, c)).permute(0, 1, 4, 2, 3, 5).reshape(n, -1, h, w, c)
        x = torch.cat([x[:, :1].to(later.dtype), later], 1)
    x = x[:, :, :, None, :, None].expand(-1, -1, -1, 2, -1, 2, -1).reshape(n, -1, 2 * h, 2 * w, c)
    return flat(m.resample['1'], x)


def half(m, x):
    x = conv(m.conv1, x)
    for layer in ([*m.downsamples, *m.middle] if m.encoder else [*m.middle, *m.upsamples]):
        kinds = {vae_peer.Residual: residual, vae_peer.Attention: attention, vae_peer.Down: down, vae_peer.Up: up}
        x = kinds[type(layer)](layer, x)
    return conv(m.head['2'], F.silu(rms(m.head['0'], x)))


def make_vae():
    vae = vae_peer.Vae('2.1')
    vae.encoder, vae.decoder = vae_peer.Half(True, VAE_DIM, Z, False), vae_peer.Half(False, VAE_DIM, Z, False)
    return vae


def encode(vae, x):
    return conv(vae.conv1, half(vae.encoder, x.permute(0, 2, 3, 4, 1)))[..., :Z].permute(0, 4, 1, 2, 3)


def decode(vae, z):
    return half(vae.decoder, conv(vae.conv2, z.permute(0, 2, 3, 4, 1))).permute(0, 4, 1, 2, 3)


@torch.no_grad()
def to_published_scale(vae, clips):
    """Folds a change of scale into the two 1x1x1 convolutions, so that latents have the mean and deviation that Wan's have."""
    z = torch.cat([encode(vae, c) for c in clips.split(64)])
    m, s = z.mean((0, 2, 3, 4)), z.std((0, 2, 3, 4))
    mean, std = MEAN.to(z.device), STD.to(z.device)
    w, b = vae.conv1.weight, vae.conv1.bias
    w[:Z] *= (std / s).view(-1, 1, 1, 1, 1)
    b[:Z] = (b[:Z] - m) * std / s + mean
    w[Z:], b[Z:] = 0, -6  # the log variance, which nobody trained
    w, b = vae.conv2.weight, vae.conv2.bias
    b += w[:, :, 0, 0, 0] @ (m - mean * s / std)
    w *= (s / std).view(1, -1, 1, 1, 1)
    for p in vae.parameters():
        p.copy_(p.bfloat16().float())


# ---- the text encoder ----

def text_parameters(device):
    n = lambda *size, std: torch.randn(*size, device=device) * std
    p = {'token_embedding.weight': n(len(PIECES), TEXT, std=1)}
    for i in range(TEXT_LAYERS):
        b = f'blocks.{i}.'
        p[b + 'norm1.weight'] = torch.ones(TEXT, device=device)
        p[b + 'attn.q.weight'] = n(TEXT, TEXT, std=(TEXT * TEXT / TEXT_HEADS) ** -0.5)
        for name in 'kvo':
            p[b + f'attn.{name}.weight'] = n(TEXT, TEXT, std=TEXT ** -0.5)
        p[b + 'pos_embedding.embedding.weight'] = n(32, TEXT_HEADS, std=0.1)
        p[b + 'norm2.weight'] = torch.ones(TEXT, device=device)
        p[b + 'ffn.gate.0.weight'], p[b + 'ffn.fc1.weight'] = n(TEXT_FFN, TEXT, std=TEXT ** -0.5), n(TEXT_FFN, TEXT, std=TEXT ** -0.5)
        p[b + 'ffn.fc2.weight'] = n(TEXT, TEXT_FFN, std=TEXT_FFN ** -0.5)
    p['norm.weight'] = torch.ones(TEXT, device=device)
    return p


def norm(x, w):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w


def encode_text(p, ids, mask):
    """Of [n, ROWS] ids; rows behind the caption are 0."""
    place = torch.arange(ROWS, device=ids.device)
    rel = place[None] - place[:, None]
    bucket = rel.abs() + 16 * (rel > 0)  # exact for distances below 8
    x = p['token_embedding.weight'][ids]
    for i in range(TEXT_LAYERS):
        b = f'blocks.{i}.'
        y = norm(x, p[b + 'norm1.weight'])
        q, k, v = (F.linear(y, p[b + f'attn.{c}.weight']).unflatten(-1, (TEXT_HEADS, -1)).transpose(1, 2) for c in 'qkv')
        scores = q @ k.transpose(2, 3) + p[b + 'pos_embedding.embedding.weight'][bucket].permute(2, 0, 1)
        y = F.softmax(scores.masked_fill(~mask[:, None, None], -1e9), -1) @ v
        x = x + F.linear(y.transpose(1, 2).flatten(2), p[b + 'attn.o.weight'])
        y = norm(x, p[b + 'norm2.weight'])
        y = F.linear(y, p[b + 'ffn.fc1.weight']) * F.gelu(F.linear(y, p[b + 'ffn.gate.0.weight']), approximate='tanh')
        x = x + F.linear(y, p[b + 'ffn.fc2.weight'])
    return norm(x, p['norm.weight']) * mask[:, :, None]


def all_captions():
    """'' first; those of stars are never trained."""
    found = ['']
    for shape in shapes.SHAPES:
        for color in shapes.COLORS:
            found += [shapes.caption(color, shape)] + [shapes.caption(color, shape, m) for m in shapes.MOTIONS]
    return found


def tokenize(captions, device):
    ids = torch.zeros(len(captions), ROWS, dtype=torch.long)
    mask = torch.zeros(len(captions), ROWS, dtype=torch.bool)
    for i, c in enumerate(captions):
        found = [PIECES.index('\u2581' + w) for w in c.split()] + [1]
        ids[i, :len(found)] = torch.tensor(found)
        mask[i, :len(found)] = True
    return ids.to(device), mask.to(device)


# ---- the transformer ----

def dit_parameters(device):
    p = {}

    def linear(name, out, size, std=None):
        p[name + '.weight'] = torch.randn(out, size, device=device) * (size ** -0.5 if std is None else std)
        p[name + '.bias'] = torch.zeros(out, device=device)
    linear('patch_embedding', DIM, 4 * Z)
    linear('text_embedding.0', DIM, TEXT)
    linear('text_embedding.2', DIM, DIM)
    linear('time_embedding.0', DIM, 256, 0.05)
    linear('time_embedding.2', DIM, DIM)
    linear('time_projection.1', 6 * DIM, DIM, 0.02)
    for i in range(LAYERS):
        b = f'blocks.{i}.'
        p[b + 'modulation'] = torch.randn(1, 6, DIM, device=device) * 0.02
        p[b + 'modulation'][:, 2::3] += 0.3  # the gates
        for kind in 'self_attn.', 'cross_attn.':
            for name in 'qkvo':
                linear(b + kind + name, DIM, DIM)
            p[b + kind + 'norm_q.weight'], p[b + kind + 'norm_k.weight'] = torch.ones(DIM, device=device), torch.ones(DIM, device=device)
        p[b + 'norm3.weight'], p[b + 'norm3.bias'] = torch.ones(DIM, device=device), torch.zeros(DIM, device=device)
        linear(b + 'ffn.0', FFN, DIM)
        linear(b + 'ffn.2', DIM, FFN)
    p['head.modulation'] = torch.randn(1, 2, DIM, device=device) * 0.02
    linear('head.head', 4 * Z, DIM, 0.01)
    return p


def rope(f, h, w, device):
    pairs = DIM // HEADS // 2
    third, axes = pairs // 3, []
    grid = torch.meshgrid(*(torch.arange(n, dtype=torch.float64) for n in (f, h, w)), indexing='ij')
    for place, n in zip(grid, (pairs - 2 * third, third, third)):
        axes.append(place.flatten()[:, None] * 10000.0 ** (-torch.arange(n, dtype=torch.float64) / n))
    angle = torch.cat(axes, 1)
    return angle.cos().float().to(device), angle.sin().float().to(device)


def rotate(x, cos, sin):
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


def velocity(p, x, t, rows, table):
    """x [n, Z, f, h, w], t [n] in 0 to 1000, rows [n, ROWS, TEXT] of the captions."""
    n, c, f, h, w = x.shape
    lin = lambda name, y: F.linear(y, p[name + '.weight'].flatten(1), p[name + '.bias'])
    heads = lambda y: y.unflatten(-1, (HEADS, -1)).transpose(1, 2)
    angle = t[:, None] * 10000.0 ** (-torch.arange(128, device=x.device) / 128)
    e = lin('time_embedding.2', F.silu(lin('time_embedding.0', torch.cat((angle.cos(), angle.sin()), 1))))
    e0 = lin('time_projection.1', F.silu(e)).unflatten(1, (6, -1))
    rows = F.pad(rows, (0, 0, 0, 1))  # the last stands for 512 - ROWS of them
    text = lin('text_embedding.2', F.gelu(lin('text_embedding.0', rows), approximate='tanh'))
    weight = torch.zeros(ROWS + 1, device=x.device)
    weight[ROWS:] += math.log(512 - ROWS)
    x = x.reshape(n, c, f, h // 2, 2, w // 2, 2).permute(0, 2, 3, 5, 1, 4, 6).reshape(n, f * h * w // 4, 4 * c)
    x = lin('patch_embedding', x)
    for i in range(LAYERS):
        b = f'blocks.{i}.'
        m = [part[:, None] for part in (p[b + 'modulation'] + e0).unbind(1)]
        y = F.layer_norm(x, (DIM,), eps=1e-6) * (1 + m[1]) + m[0]
        a = b + 'self_attn.'
        q, k = norm(lin(a + 'q', y), p[a + 'norm_q.weight']), norm(lin(a + 'k', y), p[a + 'norm_k.weight'])
        y = F.scaled_dot_product_attention(rotate(heads(q), *table), rotate(heads(k), *table), heads(lin(a + 'v', y)))
        x = x + lin(a + 'o', y.transpose(1, 2).flatten(2)) * m[2]
        y = F.layer_norm(x, (DIM,), p[b + 'norm3.weight'], p[b + 'norm3.bias'], 1e-6)
        a = b + 'cross_attn.'
        q, k = heads(norm(lin(a + 'q', y), p[a + 'norm_q.weight'])), heads(norm(lin(a + 'k', text), p[a + 'norm_k.weight']))
        y = F.softmax(q @ k.transpose(2, 3) / (DIM // HEADS) ** 0.5 + weight, -1) @ heads(lin(a + 'v', text))
        x = x + lin(a + 'o', y.transpose(1, 2).flatten(2))
        y = F.layer_norm(x, (DIM,), eps=1e-6) * (1 + m[4]) + m[3]
        x = x + lin(b + 'ffn.2', F.gelu(lin(b + 'ffn.0', y), approximate='tanh')) * m[5]
    m = (p['head.modulation'] + e[:, None]).unbind(1)
    y = lin('head.head', F.layer_norm(x, (DIM,), eps=1e-6) * (1 + m[1][:, None]) + m[0][:, None])
    return y.view(n, f, h // 2, w // 2, 2, 2, Z).permute(0, 6, 1, 2, 4, 3, 5).reshape(n, Z, f, h, w)


@torch.no_grad()
def sample(p, rows, empty, frames=3, steps=20, shift=3.0, cfg=3.0, seed=1):
    """Latents [n, Z, frames, 12, 12] by Euler's method."""
    side = shapes.SIDE // 8
    n, device = rows.shape[0], rows.device
    table = rope(frames, side // 2, side // 2, device)
    x = torch.randn(n, Z, frames, side, side, generator=torch.Generator().manual_seed(seed)).to(device)
    sigma = torch.linspace(1, 0, steps + 1)
    sigma = (shift * sigma / (1 + (shift - 1) * sigma)).tolist()
    both = torch.cat((rows, empty.expand_as(rows)))
    for now, then in zip(sigma, sigma[1:]):
        v, v0 = velocity(p, torch.cat((x, x)), torch.full((2 * n,), 1000 * now, device=device), both, table).chunk(2)
        x = x + (then - now) * (v0 + cfg * (v - v0))
    return x


# ---- training ----

class Loop:
    """Steps of AdamW for a number of seconds, through a CUDA graph; the learning rate rises and falls.  average: of the weights."""

    def __init__(self, parameters, loss, device, rate, decay):
        self.parameters, self.loss, self.peak, self.device = parameters, loss, rate, device
        self.rate = torch.tensor(0.0, device=device)
        groups = [{'params': [q for q in parameters if q.dim() > 1]}, {'params': [q for q in parameters if q.dim() < 2], 'weight_decay': 0}]
        fast = {'capturable': True, 'foreach': True} if device == 'cuda' else {'foreach': True}
        self.optimizer = torch.optim.AdamW(groups, lr=self.rate if device == 'cuda' else 0.0, betas=(0.9, 0.99), weight_decay=decay, **fast)
        self.average = [q.detach().clone() for q in parameters]
        self.keep = torch.tensor(0.0, device=device)

    def step(self):
        self.optimizer.zero_grad(set_to_none=False)
        loss = self.loss()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0, foreach=True)
        self.optimizer.step()
        torch._foreach_mul_(self.average, self.keep)
        torch._foreach_add_(self.average, torch._foreach_mul([q.detach() for q in self.parameters], 1 - self.keep))
        return loss.detach()

    def set_rate(self, share, steps):
        rate = self.peak * min(1, (steps + 1) / 300) * (0.02 + 0.98 * (1 - share) ** 0.8)
        self.rate.fill_(rate)
        if self.device != 'cuda':
            for g in self.optimizer.param_groups:
                g['lr'] = rate
        self.keep.fill_(min(0.999, (1 + steps) / (10 + steps)))

    def capture(self):
        for q in self.parameters:
            q.grad = torch.zeros_like(q)
        if self.device != 'cuda':
            return self.step
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(4):
                self.step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                out = self.step()
        except RuntimeError as e:
            print(f'no CUDA graph: {e}', flush=True)
            return self.step

        def replay():
            graph.replay()
            return out
        return replay

    def run(self, seconds, name):
        start = time.monotonic()
        self.set_rate(0, 0)
        step, n, told = self.capture(), 0, -1
        print(f'{name}: ready after {time.monotonic() - start:.1f} s', flush=True)
        while True:
            spent = time.monotonic() - start
            if spent > seconds:
                break
            if n % 10 == 0:
                self.set_rate(spent / seconds, n)
            loss = step()
            n += 1
            if n % 50 == 0:
                value = float(loss)  # waits for the GPU: the clock stays honest
                if int(spent / 5) != told:
                    told = int(spent / 5)
                    print(f'{name}: {spent:.0f} s, step {n}, loss {value:.5f}', flush=True)
        with torch.no_grad():
            for q, mean in zip(self.parameters, self.average):
                q.copy_(mean)


def train_vae(o):
    vae = make_vae()
    mean, std = MEAN.to(o.device).view(1, -1, 1, 1, 1), STD.to(o.device).view(1, -1, 1, 1, 1)
    with torch.no_grad():
        for m in vae.modules():
            if isinstance(m, (torch.nn.Conv2d, torch.nn.Conv3d)):
                torch.nn.init.kaiming_normal_(m.weight, nonlinearity='linear')
                m.bias.zero_()
    if o.start:
        vae.load_state_dict(load(f'{o.start}/vae.safetensors'))
    vae.to(o.device)

    def loss():
        x = random_clips(o.vae_batch, o.device, o.side)
        with torch.autocast('cuda', torch.bfloat16, enabled=o.device == 'cuda', cache_enabled=False):
            z = (encode(vae, x).float() - mean) / std
            y = decode(vae, (z + 0.07 * torch.randn_like(z)) * std + mean).float()
        error = y - x
        # Latents stay near N(0, 1); the square makes edges count.
        return error.abs().mean() + 4 * error.square().mean() + 1e-4 * z.square().mean()
    Loop(list(vae.parameters()), loss, o.device, 2e-3, 0.0).run(o.vae, 'vae')
    vae.requires_grad_(False)
    to_published_scale(vae, torch.cat([random_clips(64, o.device) for _ in range(o.clips // 1024 + 1)]))
    save(f'{o.out}/vae.safetensors', vae.state_dict())
    x = random_clips(8, o.device)
    y = decode(vae, encode(vae, x))
    print(f'vae: PSNR {10 * math.log10(4 / (y.clamp(-1, 1) - x).square().mean()):.1f} dB', flush=True)
    save_sheet(f'{o.out}/vae.png', torch.stack((x, y), 1).flatten(0, 1))
    return vae


@torch.no_grad()
def make_latents(vae, names, o):
    chance = random.Random(1)
    mean, std = MEAN.to(o.device).view(1, -1, 1, 1, 1), STD.to(o.device).view(1, -1, 1, 1, 1)
    parts = []
    while len(parts) * 256 < o.clips:
        x, clips, images = captioned_clips(256, names, chance, o.device)
        parts.append(((encode(vae, x) - mean) / std, clips, images))
    return [torch.cat(p) for p in zip(*parts)]


def train_dit(vae, o):
    captions = all_captions()
    names = {c: i for i, c in enumerate(captions)}
    ids, mask = tokenize(captions, o.device)
    start = time.monotonic()
    latents, clips, images = make_latents(vae, names, o)
    print(f'latents: {tuple(latents.shape)}, mean {latents.mean():.3f}, deviation {latents.std():.3f}, {time.monotonic() - start:.1f} s', flush=True)
    text, dit = text_parameters(o.device), dit_parameters(o.device)
    if o.start:
        text, dit = load(f'{o.start}/text_encoder.safetensors', o.device), load(f'{o.start}/wan.safetensors', o.device)
        dit['patch_embedding.weight'] = dit['patch_embedding.weight'].flatten(1)
    # Words that no caption has keep their first values, as a word would that the text encoder knows and the transformer does not.
    parameters = [q.requires_grad_() for q in [*text.values(), *dit.values()]]
    side = latents.shape[-1] // 2
    tables = {f: rope(f, side, side, o.device) for f in (1, 3)}

    def part(n, frames):
        pick = torch.randint(len(latents), (n,), device=o.device)
        x0 = latents[pick, :, :frames]
        name = (clips if frames > 1 else images)[pick] * (torch.rand(n, device=o.device) > 0.1)
        z = torch.sigmoid(torch.randn(n, device=o.device))
        t = torch.where(torch.rand(n, device=o.device) < 0.5, torch.rand(n, device=o.device), 3 * z / (1 + 2 * z)).clamp(0.001, 1)
        noise = torch.randn_like(x0)
        wide = t.view(-1, 1, 1, 1, 1)
        got = velocity(dit, (1 - wide) * x0 + wide * noise, 1000 * t, rows[name], tables[frames])
        return (got - (noise - x0)).square().mean()

    def loss():
        nonlocal rows
        rows = encode_text(text, ids, mask)
        return part(o.dit_batch, 3) + 0.2 * part(o.dit_batch // 4, 1)
    rows = None
    Loop(parameters, loss, o.device, 1e-3 if o.start else 2e-3, 0.01).run(o.dit, 'dit')
    for q in parameters:
        q.requires_grad_(False).copy_(q.bfloat16().float())
    dit['patch_embedding.weight'] = dit['patch_embedding.weight'].view(DIM, Z, 1, 2, 2)
    save(f'{o.out}/text_encoder.safetensors', text)
    save(f'{o.out}/wan.safetensors', dit)
    return text, dit


def show(vae, text, dit, o):
    prompts = [shapes.caption(c, s, m) for c, s, m in (
        ('red', 'circle', 'left'), ('green', 'square', 'right'), ('blue', 'triangle', 'up'), ('yellow', 'circle', 'down'),
        ('purple', 'square', 'up'), ('cyan', 'triangle', 'left'), ('white', 'circle', 'right'), ('red', 'square', 'down'),
        ('red', 'star', 'right'), ('purple', 'star', 'up'))]
    rows = encode_text(text, *tokenize(prompts, o.device))
    empty = encode_text(text, *tokenize([''], o.device))
    mean, std = MEAN.to(o.device).view(1, -1, 1, 1, 1), STD.to(o.device).view(1, -1, 1, 1, 1)
    for cfg in 1.0, 3.0:
        save_sheet(f'{o.out}/samples-cfg{cfg:.0f}.png', decode(vae, sample(dit, rows, empty, cfg=cfg) * std + mean))
    save_sheet(f'{o.out}/images.png', decode(vae, sample(dit, rows, empty, frames=1) * std + mean).expand(-1, -1, 2, -1, -1))


def main():
    a = argparse.ArgumentParser()
    a.add_argument('out')
    a.add_argument('--device', default='cuda')
    a.add_argument('--vae', type=float, default=75)
    a.add_argument('--dit', type=float, default=110)
    a.add_argument('--vae-batch', type=int, default=16)
    a.add_argument('--dit-batch', type=int, default=256)
    a.add_argument('--side', type=int, default=64, help='of the clips for the VAE')
    a.add_argument('--start', help='folder of models to go on with')
    a.add_argument('--clips', type=int, default=16384)
    o = a.parse_args()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    os.makedirs(o.out, exist_ok=True)
    save_tokenizer(f'{o.out}/tokenizer.json')
    vae = train_vae(o)
    text, dit = train_dit(vae, o)
    show(vae, text, dit, o)


if __name__ == '__main__':
    main()
