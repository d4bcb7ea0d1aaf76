#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bench_pool measures, with PyTorch's caching allocator: python3 bench/pool_torch.py"""
import time
import torch

LAYERS, STEPS, WIDTHS = 12, 200, (768, 2304, 768, 768, 3072, 3072)
allocate, free = torch.cuda.caching_allocator_alloc, torch.cuda.caching_allocator_delete


def pair_ns(n, rounds=20000):
    best = float('inf')
    for _ in range(10):
        begin = time.perf_counter()
        for _ in range(rounds):
            free(allocate(n))
        best = min(best, (time.perf_counter() - begin) * 1e9 / rounds)
    return best


def raw_ns(n, rounds=20000):
    """Without the Python around it, as far as that goes: the C++ functions themselves."""
    device, stream = torch.cuda.current_device(), torch.cuda.current_stream().cuda_stream
    a, d = torch._C._cuda_cudaCachingAllocator_raw_alloc, torch._C._cuda_cudaCachingAllocator_raw_delete
    best = float('inf')
    for _ in range(10):
        begin = time.perf_counter()
        for _ in range(rounds):
            d(a(n, stream))
        best = min(best, (time.perf_counter() - begin) * 1e9 / rounds)
    return best


def step(tokens):
    kept = []
    for _ in range(LAYERS):
        for width in WIDTHS:
            kept.append((allocate(tokens * width * 2), tokens * width * 2))
            free(allocate(tokens * 4))
    while kept:
        at, n = kept.pop()
        grad = allocate(n)
        free(at)
        free(grad)


torch.cuda.init()
for n in 1 << 10, 1 << 20, 20 << 20:
    print(f'alloc and free of {n >> 10} KiB,{pair_ns(n):.4g},ns,raw,{raw_ns(n):.4g},ns')
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
begin = time.perf_counter()
for i in range(STEPS):
    step(1024 + (i * 2654435761) % 8 * 1024)
print(f'a pair in the trace of a step,{(time.perf_counter() - begin) * 1e9 / (STEPS * 3 * LAYERS * len(WIDTHS)):.4g},ns')
reserved, allocated = torch.cuda.max_memory_reserved(), torch.cuda.max_memory_allocated()
print(f'fragmentation of the trace,{100 * (1 - allocated / reserved):.4g},%')
print(f'reserved at most,{reserved / 2**20:.4g},MiB')
