# SPDX-License-Identifier: Apache-2.0
"""A Wan transformer in PyTorch with a LoRA on the ten linears of each block, for wan_peer.py, wan_reference.py and
wan_sample_peer.py.

Frozen matrices are bf16 or f32; so is the residual stream.  Time, modulation, statistics of norms, gates and the loss are f32.
The LoRA is f32; in bf16 run it under autocast, as trainers do.  Parameters have the official names.
"""
import math

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

EPSILON = 1e-6
MODULES = [f'{a}.{m}' for a in ('self_attn', 'cross_attn') for m in 'qkvo'] + ['ffn.0', 'ffn.2']


class Weight(nn.Module):
    """A frozen weight, with a bias where `bias`."""

    def __init__(self, shape, dtype, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(shape, dtype=dtype), requires_grad=False)
        if bias:
            self.bias = nn.Parameter(torch.empty(shape[0], dtype=dtype), requires_grad=False)


class Linear(Weight):
    """With a LoRA where rank is not 0."""

    def __init__(self, out, size, dtype, rank=0, scale=1.0):
        super().__init__((out, size), dtype)
        self.scale = scale
        self.lora_A = nn.Parameter(torch.empty(rank, size)) if rank else None
        self.lora_B = nn.Parameter(torch.empty(out, rank)) if rank else None

    def forward(self, x):
        y = functional.linear(x, self.weight, self.bias)
        if self.lora_A is None:
            return y
        return y + functional.linear(functional.linear(x, self.lora_A), self.lora_B) * self.scale


def rms(x, weight):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPSILON) * weight.float()).to(x.dtype)


def rotate(x, cos, sin):
    """Pairs of neighbours; cos and sin are [tokens, 1, pairs]."""
    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2).to(x.dtype)


def rope_table(frames, height, width, size, device):
    """Of a grid of tokens: [tokens, 1, size / 2] twice."""
    pairs = size // 2
    third = pairs // 3
    axes = []
    grid = torch.meshgrid(*(torch.arange(n, dtype=torch.float64) for n in (frames, height, width)), indexing='ij')
    for place, n in zip(grid, (pairs - 2 * third, third, third)):
        axes.append(place.flatten()[:, None] * 10000.0 ** (-torch.arange(n, dtype=torch.float64) / n))
    angle = torch.cat(axes, 1)[:, None]
    return angle.cos().float().to(device), angle.sin().float().to(device)


def modulated(x, shift, scale):
    return (functional.layer_norm(x.float(), x.shape[-1:], eps=EPSILON) * (1 + scale) + shift).to(x.dtype)


def gated(x, y, gate):
    return (x.float() + y.float() * gate).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, c, dtype):
        super().__init__()
        for name in 'qkvo':
            setattr(self, name, Linear(c.dim, c.dim, dtype, c.rank, c.alpha / c.rank))
        self.norm_q, self.norm_k = Weight((c.dim,), dtype, False), Weight((c.dim,), dtype, False)
        self.heads = c.heads

    def forward(self, x, keys, rope=None):
        q, k, v = rms(self.q(x), self.norm_q.weight), rms(self.k(keys), self.norm_k.weight), self.v(keys)
        q, k, v = (t.unflatten(-1, (self.heads, -1)) for t in (q, k, v))
        if rope:
            q, k = rotate(q, *rope), rotate(k, *rope)
        y = functional.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)))
        return self.o(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, c, dtype):
        super().__init__()
        self.modulation = nn.Parameter(torch.empty(1, 6, c.dim), requires_grad=False)
        self.self_attn, self.cross_attn = Attention(c, dtype), Attention(c, dtype)
        self.norm3 = Weight((c.dim,), dtype)
        self.ffn = nn.ModuleDict({'0': Linear(c.ffn, c.dim, dtype, c.rank, c.alpha / c.rank),
                                  '2': Linear(c.dim, c.ffn, dtype, c.rank, c.alpha / c.rank)})

    def forward(self, x, time, text, cos, sin):
        m = (self.modulation + time).unbind(1)
        m = [part[:, None] for part in m]
        y = modulated(x, m[0], m[1])
        x = gated(x, self.self_attn(y, y, (cos, sin)), m[2])
        y = functional.layer_norm(x.float(), x.shape[-1:], self.norm3.weight.float(), self.norm3.bias.float(), EPSILON)
        x = x + self.cross_attn(y.to(x.dtype), text)
        y = functional.gelu(self.ffn['0'](modulated(x, m[3], m[4])), approximate='tanh')
        return gated(x, self.ffn['2'](y), m[5])


class Head(nn.Module):
    def __init__(self, c, dtype):
        super().__init__()
        self.modulation = nn.Parameter(torch.empty(1, 2, c.dim), requires_grad=False)
        self.head = Linear(4 * c.channels, c.dim, dtype)


class Wan(nn.Module):
    def __init__(self, c, dtype):
        super().__init__()
        self.c = c
        self.patch_embedding = Weight((c.dim, c.channels, 1, 2, 2), dtype)
        self.text_embedding = nn.ModuleDict({'0': Linear(c.dim, c.text_dim, dtype), '2': Linear(c.dim, c.dim, dtype)})
        self.time_embedding = nn.ModuleDict({'0': Linear(c.dim, 256, dtype), '2': Linear(c.dim, c.dim, dtype)})
        self.time_projection = nn.ModuleDict({'1': Linear(6 * c.dim, c.dim, dtype)})
        self.blocks = nn.ModuleList(Block(c, dtype) for _ in range(c.layers))
        self.head = Head(c, dtype)
        self.dtype = dtype
        self.rope_size, self.rope = None, None

    def embed_time(self, time):
        def linear(l, x):
            return functional.linear(x, l.weight.float(), l.bias.float())
        with torch.autocast(time.device.type, enabled=False):
            angle = time.double()[:, None] * 10000.0 ** (-torch.arange(128, device=time.device, dtype=torch.float64) / 128)
            e = linear(self.time_embedding['0'], torch.cat((angle.cos(), angle.sin()), 1).float())
            e = linear(self.time_embedding['2'], functional.silu(e))
            return e, linear(self.time_projection['1'], functional.silu(e)).unflatten(1, (6, -1))

    def forward(self, x, time, text):
        """x: [sample, channel, frame, row, column]; the output is laid out alike, in f32."""
        b, c, f, h, w = x.shape
        e, e0 = self.embed_time(time)
        text = self.text_embedding['2'](functional.gelu(self.text_embedding['0'](text.to(self.dtype)), approximate='tanh'))
        patches = x.view(b, c, f, h // 2, 2, w // 2, 2).permute(0, 2, 3, 5, 1, 4, 6).reshape(b, f * h * w // 4, 4 * c)
        x = functional.linear(patches.to(self.dtype), self.patch_embedding.weight.flatten(1), self.patch_embedding.bias)
        if self.rope_size != (f, h, w):
            self.rope_size, self.rope = (f, h, w), rope_table(f, h // 2, w // 2, self.c.dim // self.c.heads, x.device)
        cos, sin = self.rope
        for block in self.blocks:
            if torch.is_grad_enabled():
                x = checkpoint(block, x, e0, text, cos, sin, use_reentrant=False)
            else:
                x = block(x, e0, text, cos, sin)
        m = (self.head.modulation + e[:, None]).unbind(1)
        y = self.head.head(modulated(x, m[0][:, None], m[1][:, None])).float()
        return y.view(b, f, h // 2, w // 2, 2, 2, -1).permute(0, 6, 1, 2, 4, 3, 5).reshape(b, -1, f, h, w)


def fill(model, generator):
    """Random values of the scale of a trained model's, all of which bf16 holds; the LoRA's in f32."""
    for name, p in model.named_parameters():
        wide = torch.empty(p.shape, device=p.device)
        if 'lora_' in name:
            wide.uniform_(-1, 1, generator=generator).div_(math.sqrt(p.shape[1]) * (1 if 'lora_A' in name else 4))
        elif 'norm' in name and name.endswith('weight'):
            wide.uniform_(0.5, 1.5, generator=generator)
        elif p.dim() == 1:
            wide.normal_(0, 0.02, generator=generator)
        elif name.endswith('modulation'):
            wide.normal_(0, 1 / math.sqrt(p.shape[-1]), generator=generator)
        else:
            wide.normal_(0, 1 / math.sqrt(p[0].numel()), generator=generator)
        with torch.no_grad():
            p.copy_(wide if 'lora_' in name else wide.bfloat16())
