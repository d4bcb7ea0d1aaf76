#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The convolutions of `cairn bench conv` with PyTorch, beside cairn's own figures.

    cairn bench conv norm --json > conv.json
    bench/conv_peer.py conv.json            prints a line for each bf16 row: cairn, PyTorch, the ratio

cuDNN chooses by measuring (cudnn.benchmark).  Contiguous and channels_last_3d are both tried, and the faster counts.
The past is part of the input here, so that nothing is concatenated, and doubling is done before: PyTorch gets its best
case, but for the doubled row, which has its own upsampling in the time."""
import json
import sys

import torch
import torch.nn.functional as F

SHAPES = {  # name: channels, filters, kernel, stride, doubles
    '96': (96, 96, (3, 3, 3), 1, False), '192': (192, 192, (3, 3, 3), 1, False), '384': (384, 384, (3, 3, 3), 1, False),
    '384, low': (384, 384, (3, 3, 3), 1, False), '160': (160, 160, (3, 3, 3), 1, False),
    '256': (256, 256, (3, 3, 3), 1, False), '640': (640, 640, (3, 3, 3), 1, False),
    '1024': (1024, 1024, (3, 3, 3), 1, False), '96, halved': (96, 96, (1, 3, 3), 2, False),
    '192 to 96, doubled': (192, 96, (1, 3, 3), 1, True), '384 to 768, time': (384, 768, (3, 1, 1), 1, False),
    '96 to 3': (96, 3, (3, 3, 3), 1, False),
}


def best_ms(call, rounds=5):
    for _ in range(3):
        call()
    best = float('inf')
    for _ in range(rounds):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(3):
            call()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) / 3)
    return best


def peer_ms(name, frames, height, width, form):
    channels, filters, kernel, stride, doubles = SHAPES[name]
    flat = kernel[0] == 1
    options = {'device': 'cuda', 'dtype': torch.bfloat16}
    x = torch.randn(1, channels, frames if flat else frames + 2, height, width, **options)
    w, bias = torch.randn(filters, channels, *kernel, **options), torch.randn(filters, **options)
    pad = (0, 0, 0) if kernel[1] == 1 else (0, 1, 1)
    x, w = x.contiguous(memory_format=form), w.contiguous(memory_format=form)

    def call():
        seen = F.interpolate(x, scale_factor=(1, 2, 2), mode='nearest') if doubles else x
        if stride == 2:
            return F.conv3d(F.pad(seen, (0, 1, 0, 1)), w, bias, stride=(1, 2, 2))
        return F.conv3d(seen, w, bias, padding=pad)
    return best_ms(call)


def norm_ms(rows, columns):
    x = torch.randn(1, columns, rows // 416, 416, device='cuda', dtype=torch.bfloat16)
    gamma = torch.randn(columns, 1, 1, device='cuda', dtype=torch.bfloat16)
    return best_ms(lambda: F.silu(F.normalize(x, dim=1) * columns ** 0.5 * gamma))


def main():
    torch.backends.cudnn.benchmark = True
    forms = {'contiguous': torch.contiguous_format, 'channels last': torch.channels_last_3d}
    with open(sys.argv[1], encoding='utf-8') as f:
        results = json.load(f)['results']
    print(f'PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}, bf16')
    print(f'{"row":24} {"shape":>24} {"cairn ms":>9} {"TFLOP/s":>8} {"contiguous":>11} {"ch. last":>9} {"ratio":>6}')
    for r in results:
        if r['format'] != 'bf16' or (r['bench'] != 'conv' and 'norm_silu' not in r['name']):
            continue
        sizes = r['sizes']
        if r['bench'] == 'conv':
            ms = [peer_ms(r['name'], *sizes[:3], form) for form in forms.values()]
        else:
            ms = [norm_ms(*sizes)] * 2
        shape = ' x '.join(map(str, sizes))
        print(f'{r["name"]:24} {shape:>24} {r["time_ms"]:9.3f} {r["rate"]:8.0f} {ms[0]:11.3f} {ms[1]:9.3f} '
              f'{min(ms) / r["time_ms"]:6.2f}', flush=True)


if __name__ == '__main__':
    main()
