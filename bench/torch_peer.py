#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rows of `cairn bench` by PyTorch on the same device: row, cairn, torch, ratio (above 1: cairn is faster).

    bench/torch_peer.py [--cairn PROGRAM | --read FILE] [--device NAME] [--seconds S] [--rounds N] [--flash] [GROUP]...

cairn and PyTorch take turns, --rounds times; the best of each counts.  Both are timed alike: events around rounds of
at least 4 ms after a warm-up, random normal numbers.  Exit 0 with a reason where PyTorch or its GPU is missing.
"""
import argparse
import contextlib
import json
import re
import subprocess
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print('no PyTorch here: nothing to compare with')
    sys.exit(0)

DTYPES = {'f32': torch.float32, 'bf16': torch.bfloat16, 'f16': torch.float16}


class Clock:
    """Milliseconds of one run, the best of a few rounds, as src/gpu/bench.c takes them."""

    def __init__(self, device, seconds):
        self.gpu = device.type != 'cpu'
        self.seconds = seconds

    def round(self, run, times):
        if not self.gpu:
            start = time.perf_counter()
            for _ in range(times):
                run()
            return (time.perf_counter() - start) * 1000 / times
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(times):
            run()
        last.record()
        torch.cuda.synchronize()
        return first.elapsed_time(last) / times

    def best(self, run):
        self.round(run, 1)
        ms = self.round(run, 1)
        times = min(1000, int(4 / ms) + 1)
        best, spent = float('inf'), 0
        for i in range(7):
            if i and spent >= 1000 * self.seconds:
                break
            ms = self.round(run, times)
            best, spent = min(best, ms), spent + ms * times
        return best


def normal(device, dtype, *shape):
    return torch.randn(*shape, device=device, dtype=dtype)


def copy(row, device, dtype):
    if row['name'] == 'copy kernel':
        x = normal(device, dtype, *row['sizes'])
        y = torch.empty_like(x)
        return lambda: y.copy_(x)
    n = row['sizes'][0] // 4
    here, there = normal(device, torch.float32, n), torch.randn(n)
    if row['name'] == 'on the device':
        other = torch.empty_like(here)
        return lambda: other.copy_(here)
    if device.type == 'cpu':
        return None
    if row['name'].endswith('staged'):
        there = there.pin_memory()
    if row['name'].startswith('to'):
        return lambda: here.copy_(there, non_blocking=True)
    return lambda: there.copy_(here, non_blocking=True)


def norm(row, device, dtype):
    rows, columns = row['sizes']
    x, dy = normal(device, dtype, rows, columns), normal(device, dtype, rows, columns)
    w, b = normal(device, dtype, columns), normal(device, dtype, columns)
    if row['name'] == 'layer_norm':
        return lambda: F.layer_norm(x, (columns,), w, b)
    if row['name'] == 'layer_norm backward':
        _, mean, rstd = torch.native_layer_norm(x, (columns,), w, b, 1e-5)
        mask = [True, True, True]
        return lambda: torch.ops.aten.native_layer_norm_backward(dy, x, (columns,), mean, rstd, w, b, mask)
    if row['name'] == 'rms_norm':
        return lambda: F.rms_norm(x, (columns,), w, 1e-5)
    x.requires_grad_()
    w.requires_grad_()
    y = F.rms_norm(x, (columns,), w, 1e-5)
    return lambda: torch.autograd.grad(y, (x, w), dy, retain_graph=True)


def softmax(row, device, dtype):
    x, dy = (normal(device, dtype, *row['sizes']) for _ in range(2))
    if row['name'] == 'softmax':
        return lambda: torch.softmax(x, -1)
    return lambda: torch.ops.aten._softmax_backward_data(dy, x, -1, dtype)


def cross_entropy(row, device, dtype):
    rows, columns = row['sizes']
    x = normal(device, dtype, rows, columns).requires_grad_()
    targets = torch.randint(columns, (rows,), device=device)
    return lambda: torch.autograd.grad(F.cross_entropy(x, targets, reduction='sum'), x)


def adamw(row, device, dtype):
    """16-bit weights: the fused step on a master copy in f32, whose image is then rounded."""
    if row['name'] != 'adamw':
        return None
    master = normal(device, torch.float32, *row['sizes']).requires_grad_()
    master.grad = torch.randn_like(master)
    step = torch.optim.AdamW([master], lr=1e-4, weight_decay=0.1, fused=True).step
    if dtype == torch.float32:
        return step
    image = master.detach().to(dtype)

    def both():
        step()
        image.copy_(master.detach())
    return both


def gemm(row, device, dtype):
    m, n, k = row['sizes']
    if row['name'].startswith('gelu'):
        x, w, bias = normal(device, dtype, m, k), normal(device, dtype, n, k), normal(device, dtype, n)
        return lambda: F.gelu(F.linear(x, w, bias), approximate='tanh')
    a, b, c = normal(device, dtype, m, k), normal(device, dtype, k, n), torch.empty(m, n, device=device, dtype=dtype)
    name = row['name'].split(',')[0]
    a = a.t().contiguous().t() if name == 'aT b' else a
    b = b.t().contiguous().t() if name == 'a bT' else b
    return lambda: torch.mm(a, b, out=c)


def attention(row, device, dtype):
    samples, heads, tokens, size = row['sizes']
    keys = re.search(r'(\d+) keys', row['name'])
    keys = min(tokens, int(keys.group(1))) if keys else tokens
    q, k, v, do = (normal(device, dtype, samples, n, heads, size).transpose(1, 2) for n in (tokens, keys, keys, tokens))
    causal = 'causal' in row['name']
    if 'backward' not in row['name']:
        return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    for t in (q, k, v):
        t.requires_grad_()

    def both():
        torch.autograd.grad(F.scaled_dot_product_attention(q, k, v, is_causal=causal), (q, k, v), do)
    return both


PEERS = {'copy': copy, 'norm': norm, 'softmax': softmax, 'cross_entropy': cross_entropy, 'adamw': adamw,
         'gemm': gemm, 'attention': attention}


def peer_of(row):
    name = row['name'].split(',')[0] if row['bench'] == 'gemm' else row['name']
    return row['bench'], name, row['format'], tuple(row['sizes'])


def measure_cairn(args, device):
    command = [args.cairn, 'bench', '--json', '--device', device, '--seconds', str(args.seconds)] + args.groups
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def backend(row, flash):
    if not flash or row['bench'] != 'attention' or row['format'] == 'f32':
        return contextlib.nullcontext()
    return torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION)


def time_peer(row, device, clock, flash):
    """Milliseconds; None: PyTorch has no such thing."""
    needs_grad = 'backward' in row['name'] or 'gradient' in row['name']
    run = PEERS[row['bench']](row, device, DTYPES.get(row['format'], torch.float32))
    with torch.set_grad_enabled(needs_grad), backend(row, flash):
        return clock.best(run) if run else None


def measure_torch(rows, device, clock, flash):
    """Ctrl-C ends it early, with the rows until then."""
    times = {}
    try:
        for row in rows:
            # What several ways of cairn do is one thing for PyTorch.
            peer = peer_of(row)
            if peer not in times:
                times[peer] = time_peer(row, device, clock, flash)
                if clock.gpu:
                    torch.cuda.empty_cache()
    except KeyboardInterrupt:
        print('interrupted; the rows without a figure were not measured', file=sys.stderr)
    return times


def better(old, new):
    """The faster of two runs of the same rows."""
    for row, again in zip(old['results'], new['results']):
        if again['time_ms'] < row['time_ms']:
            row.update(time_ms=again['time_ms'], rate=again['rate'], by=again['by'])
    return old


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--cairn', default='cairn', help='the program')
    parser.add_argument('--read', help='what `cairn bench --json` printed, instead of running it')
    parser.add_argument('--device', default='cuda:0', help="cairn's name of the device")
    parser.add_argument('--seconds', type=float, default=0.4, help='for each row, at most')
    parser.add_argument('--rounds', type=int, default=1)
    parser.add_argument('--flash', action='store_true', help="attention by PyTorch's FLASH backend, in 16 bits")
    parser.add_argument('groups', nargs='*', metavar='GROUP')
    args = parser.parse_args()
    is_cpu = args.device == 'cpu'
    if not is_cpu and not torch.cuda.is_available():
        print('this PyTorch has no GPU: nothing to compare with')
        return
    device = torch.device('cpu' if is_cpu else 'cuda')
    cairn, peers = None, {}
    for _ in range(args.rounds):
        if args.read:
            with open(args.read, encoding='utf-8') as f:
                cairn = json.load(f)
        else:
            new = measure_cairn(args, args.device)
            cairn = better(cairn, new) if cairn else new
        for key, ms in measure_torch(cairn['results'], device, Clock(device, args.seconds), args.flash).items():
            peers[key] = ms if ms is None else min(ms, peers.get(key) or ms)
    print(f"{cairn['title']} ({cairn['arch']}), cairn {cairn['version']}, PyTorch {torch.__version__}")
    print(f"{'BENCH':13} {'NAME':28} {'FORMAT':6} {'SHAPE':22} {'BY':10} {'CAIRN ms':>9} {'TORCH ms':>9} {'RATE':>15} "
          f"{'RATIO':>6}")
    for row in cairn['results']:
        ms = peers.get(peer_of(row))
        other, ratio = (f'{ms:9.3f}', f"{ms / row['time_ms']:6.2f}") if ms else ('-', '-')
        rate = f"{row['rate']:.1f} {row['unit']}"
        print(f"{row['bench']:13} {row['name']:28} {row['format'] or '-':6} {row['shape']:22} {row['by'] or '-':10} "
              f"{row['time_ms']:9.3f} {other:>9} {rate:>15} {ratio:>6}")


main()
