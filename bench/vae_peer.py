#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The VAE of Wan 2.1 in PyTorch beside cairn's: seconds and peak memory for a clip, with the same random weights.

    bench/vae_peer.py --run VAE_RUN [--device cuda|cpu] [--dtype bf16|f32] [--size HxW] [--frames N]... [--mib N] [--times N]

Clips pass in chunks of one latent frame, as the published code does: each causal convolution keeps its last two input frames.
VAE_RUN is tests/tools/vae_run.  --mib is the memory that cairn may use beyond the weights; 0 takes what PyTorch used.
"""
import argparse
import json
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F


class Past:
    """What convolutions have seen, in the order in which they are called."""

    def __init__(self):
        self.list, self.at = {}, 0

    def chunk(self):
        self.at = 0

    def swap(self, x, frames):
        key, self.at = self.at, self.at + 1
        old = self.list.get(key)
        new = x[:, :, -frames:].clone()
        if new.shape[2] < frames and old is not None:
            new = torch.cat([old[:, :, -(frames - new.shape[2]):], new], 2)
        self.list[key] = new
        return old


class Causal(nn.Conv3d):
    def forward(self, x, past=None):
        t, h, w = self.kernel_size
        front = t - 1
        if past is not None and front:
            old = past.swap(x, front)
            if old is not None:
                x = torch.cat([old, x], 2)
                front -= old.shape[2]
        x = F.pad(x, (w // 2, w // 2, h // 2, h // 2, front, 0))
        return F.conv3d(x, self.weight, self.bias, self.stride)


class Norm(nn.Module):
    def __init__(self, dim, flat=False):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(dim, *([1] * (2 if flat else 3))))

    def forward(self, x):
        return F.normalize(x, dim=1) * self.gamma.shape[0] ** 0.5 * self.gamma


class Residual(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.residual = nn.ModuleDict({'0': Norm(a), '2': Causal(a, b, 3), '3': Norm(b), '6': Causal(b, b, 3)})
        self.shortcut = Causal(a, b, 1) if a != b else None

    def forward(self, x, past):
        r = self.residual
        y = r['2'](F.silu(r['0'](x)), past)
        y = r['6'](F.silu(r['3'](y)), past)
        return y + (self.shortcut(x) if self.shortcut else x)


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.to_qkv, self.proj = Norm(dim, True), nn.Conv2d(dim, 3 * dim, 1), nn.Conv2d(dim, dim, 1)

    def forward(self, x, past):
        b, c, t, h, w = x.shape
        y = x.transpose(1, 2).reshape(b * t, c, h, w)
        q, k, v = self.to_qkv(self.norm(y)).reshape(b * t, 1, 3 * c, h * w).transpose(2, 3).chunk(3, -1)
        y = F.scaled_dot_product_attention(q.contiguous(), k.contiguous(), v.contiguous())
        y = self.proj(y.squeeze(1).transpose(1, 2).reshape(b * t, c, h, w))
        return x + y.reshape(b, t, c, h, w).transpose(1, 2)


def each_frame(f, x):
    b, c, t, h, w = x.shape
    y = f(x.transpose(1, 2).reshape(b * t, c, h, w))
    return y.reshape(b, t, *y.shape[1:]).transpose(1, 2)


class Down(nn.Module):
    def __init__(self, dim, time):
        super().__init__()
        self.resample = nn.ModuleDict({'1': nn.Conv2d(dim, dim, 3, stride=2)})
        self.time_conv = nn.Conv3d(dim, dim, (3, 1, 1), stride=(2, 1, 1)) if time else None

    def forward(self, x, past):
        x = each_frame(lambda f: self.resample['1'](F.pad(f, (0, 1, 0, 1))), x)
        if self.time_conv is None:
            return x
        old = past.swap(x, 1)
        if old is None:  # the first chunk is one frame
            return x
        return self.time_conv(torch.cat([old, x], 2))


class Up(nn.Module):
    def __init__(self, dim, time):
        super().__init__()
        self.resample = nn.ModuleDict({'1': nn.Conv2d(dim, dim // 2, 3, padding=1)})
        self.time_conv = Causal(dim, 2 * dim, (3, 1, 1)) if time else None

    def forward(self, x, past):
        if self.time_conv is not None:
            if past.first:
                past.at += 1
            else:
                b, c, t, h, w = x.shape
                x = self.time_conv(x, past).reshape(b, 2, c, t, h, w).permute(0, 2, 3, 1, 4, 5).reshape(b, c, 2 * t, h, w)
        return each_frame(lambda f: self.resample['1'](F.interpolate(f.float(), scale_factor=2, mode='nearest').to(f.dtype)), x)


class Half(nn.Module):
    def __init__(self, encoder, dim, z):
        super().__init__()
        dims = [dim * m for m in ((1, 1, 2, 4, 4) if encoder else (4, 4, 4, 2, 1))]
        blocks = []
        for i in range(4):
            a, b = dims[i], dims[i + 1]
            if not encoder and i:
                a //= 2
            for _ in range(2 if encoder else 3):
                blocks.append(Residual(a, b))
                a = b
            if i < 3:
                blocks.append(Down(b, i > 0) if encoder else Up(b, i < 2))
        middle = dims[-1] if encoder else dims[0]
        self.conv1 = Causal(3 if encoder else z, dims[0], 3)
        self.middle = nn.ModuleList([Residual(middle, middle), Attention(middle), Residual(middle, middle)])
        setattr(self, 'downsamples' if encoder else 'upsamples', nn.ModuleList(blocks))
        self.head = nn.ModuleDict({'0': Norm(dims[-1]), '2': Causal(dims[-1], 2 * z if encoder else 3, 3)})
        self.encoder = encoder

    def forward(self, x, past):
        x = self.conv1(x, past)
        for layer in ([*self.downsamples, *self.middle] if self.encoder else [*self.middle, *self.upsamples]):
            x = layer(x, past)
        return self.head['2'](F.silu(self.head['0'](x)), past)


class Vae(nn.Module):
    def __init__(self, dim=96, z=16):
        super().__init__()
        self.encoder, self.decoder = Half(True, dim, z), Half(False, dim, z)
        self.conv1, self.conv2, self.z = Causal(2 * z, 2 * z, 1), Causal(z, z, 1), z

    def encode(self, x):
        past, out = Past(), []
        for i in range(1 + (x.shape[2] - 1) // 4):
            past.chunk()
            out.append(self.encoder(x[:, :, :1] if not i else x[:, :, 4 * i - 3:4 * i + 1], past))
        return self.conv1(torch.cat(out, 2))[:, :self.z]

    def decode(self, z):
        past, out = Past(), []
        z = self.conv2(z)
        for i in range(z.shape[2]):
            past.chunk()
            past.first = not i
            out.append(self.decoder(z[:, :, i:i + 1], past))
        return torch.cat(out, 2)


MEAN = [-0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508, 0.4134, -0.0715, 0.5517, -0.3632, -0.1922, -0.9497,
        0.2503, -0.2921]
STD = [2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743, 3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251,
       1.9160]


def save(model, path):
    header, data, at = {}, [], 0
    for name, t in model.state_dict().items():
        raw = t.detach().to(torch.bfloat16).cpu().contiguous().view(torch.uint8).numpy().tobytes()
        header[name] = {'dtype': 'BF16', 'shape': list(t.shape), 'data_offsets': [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + b''.join(data))


def measure(f, o):
    least = float('inf')
    if o.device == 'cuda':
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
    for i in range(o.times + 1):
        start = time.perf_counter()
        y = f()
        if o.device == 'cuda':
            torch.cuda.synchronize()
        if i or not o.times:
            least = min(least, time.perf_counter() - start)
    peak = (torch.cuda.max_memory_allocated() - before) / 2**20 if o.device == 'cuda' else 0
    return y, least, peak


def by_cairn(o, folder, what, frames, h, w, mib, x):
    (folder / 'in').write_bytes(x.float().cpu().contiguous().numpy().tobytes())
    device = 'cuda:0' if o.device == 'cuda' else 'cpu'
    command = [o.run, folder / 'vae.safetensors', device, o.dtype, what, frames, h, w, int(mib), o.times, folder / 'in', folder / 'out']
    r = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if r.returncode:
        raise SystemExit(r.stderr)
    return json.loads(r.stdout), torch.frombuffer(bytearray((folder / 'out').read_bytes()), dtype=torch.float32)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--run', required=True)
    p.add_argument('--device', default='cuda')
    p.add_argument('--dtype', default='bf16')
    p.add_argument('--size', default='480x832')
    p.add_argument('--frames', type=int, action='append')
    p.add_argument('--mib', type=int, default=0)
    p.add_argument('--times', type=int, default=2)
    p.add_argument('--only', choices=['encode', 'decode'])
    o = p.parse_args()
    h, w = (int(i) for i in o.size.split('x'))
    dtype = torch.bfloat16 if o.dtype == 'bf16' else torch.float32
    folder = Path(tempfile.mkdtemp())
    torch.manual_seed(1)
    model = Vae()
    with torch.no_grad():
        for p_ in model.parameters():  # the values that the file has
            p_.copy_(p_.to(torch.bfloat16).float())
    save(model, folder / 'vae.safetensors')
    model = model.to(o.device, dtype).eval().requires_grad_(False)
    mean = torch.tensor(MEAN).view(1, 16, 1, 1, 1).to(o.device)
    std = torch.tensor(STD).view(1, 16, 1, 1, 1).to(o.device)
    for frames in o.frames or [17, 81]:
        for what in ('encode', 'decode'):
            if o.only and what != o.only:
                continue
            if what == 'encode':
                x = (torch.rand(1, 3, frames, h, w) * 2 - 1)
                there = x.to(o.device, dtype)
                y, seconds, peak = measure(lambda: model.encode(there), o)
                y = ((y.float() - mean) / std).cpu()
                given = x[0].permute(1, 2, 3, 0)
            else:
                given = torch.randn(1, 16, (frames - 1) // 4 + 1, h // 8, w // 8)
                there = (given.to(o.device) * std + mean).to(dtype)
                y, seconds, peak = measure(lambda: model.decode(there), o)
                y = y.float().cpu()
            ours, out = by_cairn(o, folder, what, frames, h, w, o.mib or peak, given)
            want = y[0] if what == 'encode' else y[0].permute(1, 2, 3, 0)
            d = (out.view(want.shape) - want).pow(2).mean().sqrt() / want.pow(2).mean().sqrt()
            print(f"{what} {frames}x{h}x{w} {o.dtype}: torch {seconds:.3f} s {peak:.0f} MiB; cairn {ours['seconds']:.3f} s "
                  f"{ours['peak_mib']:.0f} MiB (planned {ours['planned_mib']:.0f}, chunk {ours['chunk']}, tile {ours['tile']}); "
                  f"torch/cairn {seconds / ours['seconds']:.2f}; difference {d:.4f}", flush=True)
            for op in ours['ops'][:7]:
                print('   ', op, flush=True)
            del there, y
            if o.device == 'cuda':
                torch.cuda.empty_cache()


if __name__ == '__main__':
    main()
