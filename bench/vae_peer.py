#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The VAEs of Wan 2.1 and 2.2 in PyTorch beside cairn's: seconds and peak memory for a clip, with the same random weights.

    bench/vae_peer.py --run VAE_RUN [--version 2.1|2.2] [--device cuda|cpu] [--dtype bf16|f16|f32] [--size HxW] [--frames N]...
                      [--mib N] [--times N] [--only encode|decode] [--exact]

Clips pass in chunks of one latent frame, as the published code does: each causal convolution keeps its last two input frames.
VAE_RUN is tests/tools/vae_run.  --mib is the memory that cairn may use beyond the weights; 0 takes what PyTorch used.  --exact
runs PyTorch in f32 too, and says how far both are from that: rms, and the largest difference by the largest magnitude.
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
    def __init__(self, dim, time, out):
        super().__init__()
        self.resample = nn.ModuleDict({'1': nn.Conv2d(dim, out, 3, padding=1)})
        self.time_conv = Causal(dim, 2 * dim, (3, 1, 1)) if time else None

    def forward(self, x, past):
        if self.time_conv is not None:
            if past.first:
                past.at += 1
            else:
                b, c, t, h, w = x.shape
                x = self.time_conv(x, past).reshape(b, 2, c, t, h, w).permute(0, 2, 3, 1, 4, 5).reshape(b, c, 2 * t, h, w)
        return each_frame(lambda f: self.resample['1'](F.interpolate(f.float(), scale_factor=2, mode='nearest').to(f.dtype)), x)


def average(x, out, ft, fs):
    """The shortcut of a stage of the 2.2 encoder."""
    x = F.pad(x, (0, 0, 0, 0, -x.shape[2] % ft, 0))
    b, c, t, h, w = x.shape
    x = x.reshape(b, c, t // ft, ft, h // fs, fs, w // fs, fs).permute(0, 1, 3, 5, 7, 2, 4, 6)
    return x.reshape(b, out, -1, t // ft, h // fs, w // fs).mean(2)


def duplicate(x, out, ft, fs, first):
    """And of its decoder."""
    b, c, t, h, w = x.shape
    x = x.repeat_interleave(out * ft * fs * fs // c, 1).reshape(b, out, ft, fs, fs, t, h, w).permute(0, 1, 5, 2, 6, 3, 7, 4)
    return x.reshape(b, out, t * ft, h * fs, w * fs)[:, :, ft - 1 if first else 0:]


class Stage(nn.Module):
    def __init__(self, encoder, blocks, out, time, space):
        super().__init__()
        setattr(self, 'downsamples' if encoder else 'upsamples', nn.ModuleList(blocks))
        self.blocks, self.is_encoder, self.shape = blocks, encoder, (out, 2 if time else 1, 2 if space else 1)

    def forward(self, x, past):
        y = x
        for block in self.blocks:
            y = block(y, past)
        if self.is_encoder:
            return y + average(x, *self.shape)
        return y + duplicate(x, *self.shape, past.first) if self.shape[2] > 1 else y


class Half(nn.Module):
    def __init__(self, encoder, dim, z, stages):
        super().__init__()
        dims = [dim * m for m in ((1, 1, 2, 4, 4) if encoder else (4, 4, 4, 2, 1))]
        blocks = []
        for i in range(4):
            a, b = dims[i], dims[i + 1]
            if not encoder and i and not stages:
                a //= 2
            stage = []
            for _ in range(2 if encoder else 3):
                stage.append(Residual(a, b))
                a = b
            time = i in (1, 2) if encoder else i < 2
            if i < 3:
                stage.append(Down(b, time) if encoder else Up(b, time, b if stages else b // 2))
            blocks += [Stage(encoder, stage, b, time, i < 3)] if stages else stage
        middle = dims[-1] if encoder else dims[0]
        colours = 12 if stages else 3
        self.conv1 = Causal(colours if encoder else z, dims[0], 3)
        self.middle = nn.ModuleList([Residual(middle, middle), Attention(middle), Residual(middle, middle)])
        setattr(self, 'downsamples' if encoder else 'upsamples', nn.ModuleList(blocks))
        self.head = nn.ModuleDict({'0': Norm(dims[-1]), '2': Causal(dims[-1], 2 * z if encoder else colours, 3)})
        self.encoder = encoder

    def forward(self, x, past):
        x = self.conv1(x, past)
        for layer in ([*self.downsamples, *self.middle] if self.encoder else [*self.middle, *self.upsamples]):
            x = layer(x, past)
        return self.head['2'](F.silu(self.head['0'](x)), past)


class Vae(nn.Module):
    def __init__(self, version):
        super().__init__()
        self.is_22 = version == '2.2'
        z = 48 if self.is_22 else 16
        self.encoder = Half(True, 160 if self.is_22 else 96, z, self.is_22)
        self.decoder = Half(False, 256 if self.is_22 else 96, z, self.is_22)
        self.conv1, self.conv2, self.z = Causal(2 * z, 2 * z, 1), Causal(z, z, 1), z

    def encode(self, x):
        past, out = Past(), []
        if self.is_22:
            b, c, t, h, w = x.shape
            x = x.reshape(b, 3, t, h // 2, 2, w // 2, 2).permute(0, 1, 6, 4, 2, 3, 5).reshape(b, 12, t, h // 2, w // 2)
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
        x = torch.cat(out, 2)
        if self.is_22:
            b, c, t, h, w = x.shape
            x = x.reshape(b, 3, 2, 2, t, h, w).permute(0, 1, 4, 5, 3, 6, 2).reshape(b, 3, t, h * 2, w * 2)
        return x


MEAN = [-0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508, 0.4134, -0.0715, 0.5517, -0.3632, -0.1922, -0.9497,
        0.2503, -0.2921]
STD = [2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743, 3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251,
       1.9160]
MEAN_22 = [-0.2289, -0.0052, -0.1323, -0.2339, -0.2799, 0.0174, 0.1838, 0.1557, -0.1382, 0.0542, 0.2813, 0.0891, 0.1570,
           -0.0098, 0.0375, -0.1825, -0.2246, -0.1207, -0.0698, 0.5109, 0.2665, -0.2108, -0.2158, 0.2502, -0.2055, -0.0322,
           0.1109, 0.1567, -0.0729, 0.0899, -0.2799, -0.1230, -0.0313, -0.1649, 0.0117, 0.0723, -0.2839, -0.2083, -0.0520,
           0.3748, 0.0152, 0.1957, 0.1433, -0.2944, 0.3573, -0.0548, -0.1681, -0.0667]
STD_22 = [0.4765, 1.0364, 0.4514, 1.1677, 0.5313, 0.4990, 0.4818, 0.5013, 0.8158, 1.0344, 0.5894, 1.0901, 0.6885, 0.6165,
          0.8454, 0.4978, 0.5759, 0.3523, 0.7135, 0.6804, 0.5833, 1.4146, 0.8986, 0.5659, 0.7069, 0.5338, 0.4889, 0.4917,
          0.4069, 0.4999, 0.6866, 0.4093, 0.5709, 0.6065, 0.6415, 0.4944, 0.5726, 1.2042, 0.5458, 1.6887, 0.3971, 1.0600,
          0.3943, 0.5537, 0.5444, 0.4089, 0.7468, 0.7744]


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


def distance(x, want):
    d = x - want
    return f'{d.norm() / want.norm():.4f} rms {d.abs().max() / want.abs().max():.4f} max'


def in_f32(model, what, x, mean, std, dtype):
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    model.float()
    y = (model.encode(x) - mean) / std if what == 'encode' else model.decode(x * std + mean)
    model.to(dtype)
    return y[0].cpu()


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
    p.add_argument('--version', default='2.1', choices=['2.1', '2.2'])
    p.add_argument('--exact', action='store_true')
    p.add_argument('--device', default='cuda')
    p.add_argument('--dtype', default='bf16')
    p.add_argument('--size', default='480x832')
    p.add_argument('--frames', type=int, action='append')
    p.add_argument('--mib', type=int, default=0)
    p.add_argument('--times', type=int, default=2)
    p.add_argument('--only', choices=['encode', 'decode'])
    o = p.parse_args()
    h, w = (int(i) for i in o.size.split('x'))
    dtype = {'bf16': torch.bfloat16, 'f16': torch.float16, 'f32': torch.float32}[o.dtype]
    folder = Path(tempfile.mkdtemp())
    torch.manual_seed(1)
    model = Vae(o.version)
    with torch.no_grad():
        for p_ in model.parameters():  # the values that the file has
            p_.copy_(p_.to(torch.bfloat16).float())
    save(model, folder / 'vae.safetensors')
    model = model.to(o.device, dtype).eval().requires_grad_(False)
    z, stride = (48, 16) if o.version == '2.2' else (16, 8)
    mean = torch.tensor(MEAN_22 if z == 48 else MEAN).view(1, z, 1, 1, 1).to(o.device)
    std = torch.tensor(STD_22 if z == 48 else STD).view(1, z, 1, 1, 1).to(o.device)
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
                x = torch.randn(1, z, (frames - 1) // 4 + 1, h // stride, w // stride)
                there, given = (x.to(o.device) * std + mean).to(dtype), x
                y, seconds, peak = measure(lambda: model.decode(there), o)
                y = y.float().cpu()
            ours, out = by_cairn(o, folder, what, frames, h, w, o.mib or peak, given)
            want = y[0] if what == 'encode' else y[0].permute(1, 2, 3, 0)
            out = out.view(want.shape)
            print(f"{what} {frames}x{h}x{w} {o.dtype}: torch {seconds:.3f} s {peak:.0f} MiB; cairn {ours['seconds']:.3f} s "
                  f"{ours['peak_mib']:.0f} MiB (planned {ours['planned_mib']:.0f}, chunk {ours['chunk']}, tile {ours['tile']}); "
                  f"torch/cairn {seconds / ours['seconds']:.2f}; difference {distance(out, want)}", flush=True)
            if o.exact:
                exact = in_f32(model, what, x.to(o.device), mean, std, dtype)
                exact = exact if what == 'encode' else exact.permute(1, 2, 3, 0)
                print(f'    from f32: torch {distance(want, exact)}, cairn {distance(out, exact)}', flush=True)
            for op in ours['ops'][:7]:
                print('   ', op, flush=True)
            del there, y
            if o.device == 'cuda':
                torch.cuda.empty_cache()


if __name__ == '__main__':
    main()
