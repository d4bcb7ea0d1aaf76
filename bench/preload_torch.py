#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch with and without the library to preload: what it computes, and what it costs.

    preload_torch.py LIBRARY train|load [--switches LIST] [--rounds N] [--gib N] [--pieces KIB,KIB,…] [--warm]

Each round starts PyTorch twice, without the library and with it.  train: a process trains a small transformer and launches
many tiny kernels.  load: it loads a safetensors file tensor by tensor, mapped in two ways, and as safetensors itself does;
--pieces tries other sizes of the library's buffers.  Losses and sums must be the same to the last bit; times are the
best of all rounds, so that shares hold where figures do not.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

TENSOR = 32 << 20
STEPS, BLOCKS, LAUNCHES = 50, 4, 10000


def main():
    p = argparse.ArgumentParser()
    p.add_argument('library')
    p.add_argument('what', choices=('train', 'load'))
    p.add_argument('--switches', default='record,stage,retry,memory,guard')
    p.add_argument('--rounds', type=int, default=2)
    p.add_argument('--gib', type=int, default=4)
    p.add_argument('--pieces', default='')
    p.add_argument('--warm', action='store_true', help='PyTorch was started a moment ago')
    o = p.parse_args()
    library = os.path.realpath(o.library)
    with tempfile.TemporaryDirectory(dir='.') as folder:
        weights = write_weights(os.path.join(folder, 'weights.safetensors'), o.gib) if o.what == 'load' else ''
        if not o.warm:
            start(weights, 'warm')
        without, with_it = [], []
        for n in range(o.rounds):
            if n % 2:
                with_it.append(start(weights, o.what, library, o.switches))
            without.append(start(weights, o.what))
            if not n % 2:
                with_it.append(start(weights, o.what, library, o.switches))
            good = report_train(without, with_it, o) if o.what == 'train' else report_load(without, with_it, o)
            sys.stdout.flush()
        for kib in filter(None, o.pieces.split(',')):
            r = start(weights, 'load', library, o.switches, CAIRN_PRELOAD_PIECE=str(int(kib) << 10))
            print(f'  buffers of {kib:>5} KiB: ' + ', '.join(f'{k} {o.gib / v:.2f} GiB/s' for k, v in r['load'].items()),
                  flush=True)
    sys.exit(0 if good else 1)


def write_weights(path, gib):
    """As safetensors does it, without needing it."""
    block, n = os.urandom(TENSOR), (gib << 30) // TENSOR
    table = {f'layer.{i}': {'dtype': 'I64', 'shape': [TENSOR // 8], 'data_offsets': [i * TENSOR, (i + 1) * TENSOR]}
             for i in range(n)}
    head = json.dumps(table).encode()
    head += b' ' * (-len(head) % 4096 - 8)  # so that tensors begin at pages
    with open(path, 'wb') as f:
        f.write(len(head).to_bytes(8, 'little') + head)
        for i in range(n):
            f.write(block[i:] + block[:i])
    return path


def start(weights, what, library='', switches='', **more):
    env = dict(os.environ, CUBLAS_WORKSPACE_CONFIG=':4096:8', **more)
    if library:
        env.update(LD_PRELOAD=library, CAIRN_PRELOAD=switches, CAIRN_PRELOAD_FILE=os.path.join('/dev/shm', 'cairn-bench'),
                   CAIRN_PRELOAD_BUDGET=str(100 << 30))
    print(f'# {time.perf_counter():.1f} s: {switches or "without"} {more or ""}', file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, __file__, '--child', weights, what], env=env, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(f'{library or "without"}: exit {done.returncode}')
    result = json.loads(done.stdout)
    result['counts'] = counts(result['pid'])
    return result


def counts(pid):
    """The counters at the beginning of the file that the library left, and the kernels at its end."""
    import struct
    path = f'/dev/shm/cairn-bench.{pid}'
    if not os.path.exists(path):
        return None
    with open(path, 'rb') as f:
        whole = f.read()
    os.remove(path)
    kernels = [whole[at:at + 256].split(b'\0')[0].decode() for at in range(len(whole) - (1024 << 8), len(whole), 256)]
    names = 'calls staged staged_bytes stage_failed retried retry_failed told refused refused_bytes'.split()
    return dict(zip(names, struct.unpack_from('<9Q', whole, 24)), kernels=sum(map(bool, kernels)), one=kernels[1])


def best(runs, *keys):
    def value(r):
        for k in keys:
            r = r[k]
        return r
    return min(map(value, runs))


def title(first, o, n):
    print(f'{first["device"]}, PyTorch {first["torch"]}; {o.switches}; {n} rounds')


def report_train(without, with_it, o):
    first = without[0]
    same = all(r['losses'] == first['losses'] for r in without + with_it)
    title(first, o, len(without))
    print(f'  {STEPS} steps: losses {"the same bit for bit" if same else "DIFFER"} '
          f'({float.fromhex(first["losses"][0]):.4f} to {float.fromhex(first["losses"][-1]):.4f})')
    for name, unit, key in (('a step', 'ms', 'step_s'), ('a step that waits', 'ms', 'sync_step_s'), ('a launch', 'us', 'launch_s')):
        by = {'ms': 1e3, 'us': 1e6}[unit]
        a, b = best(without, key), best(with_it, key)
        print(f'  {name}: {a * by:.3f} {unit} without, {b * by:.3f} with: {(b / a - 1) * 100:+.2f} %   rounds: '
              f'{[round(r[key] * by, 3) for r in without]} {[round(r[key] * by, 3) for r in with_it]}')
    print(f'  counted: {with_it[0]["counts"]}')
    return same


def report_load(without, with_it, o):
    first = without[0]
    same = all(r['sums'] == first['sums'] for r in without + with_it)
    title(first, o, len(without))
    print(f'  weights of {o.gib} GiB: sums {"the same" if same else "DIFFER"}')
    for how in first['load']:
        a, b = best(without, 'load', how), best(with_it, 'load', how)
        print(f'  {how}: {o.gib / a:.2f} GiB/s without, {o.gib / b:.2f} with')
    print(f'  counted: {with_it[0]["counts"]}')
    return same


# --- inside ----------------------------------------------------------------------------------------------------------

def train(torch):
    nn = torch.nn
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    layer = nn.TransformerEncoderLayer(512, 8, 2048, 0.0, batch_first=True, norm_first=True)
    model = nn.Sequential(nn.Embedding(1000, 512), nn.TransformerEncoder(layer, 4, enable_nested_tensor=False),
                          nn.Linear(512, 1000)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    batches = [torch.randint(0, 1000, (64, 256)) for _ in range(8)]  # 128 KiB each, not pinned

    def step(i):
        x = batches[i % 8].cuda(non_blocking=True)
        with torch.autocast('cuda', torch.bfloat16):
            y = model(x)
        loss = nn.functional.cross_entropy(y.float().view(-1, 1000), x.roll(1, 1).view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(i).item().hex() for i in range(STEPS)]

    def timed(wait):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for i in range(10):
            loss = step(i)
            if wait:
                loss.item()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / 10

    return losses, min(timed(False) for _ in range(BLOCKS)), min(timed(True) for _ in range(BLOCKS))


def launch(torch):
    x = torch.zeros(8, device='cuda')
    times = []
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(LAUNCHES // 5):
            x.add_(1)
        times.append((time.perf_counter() - begin) / (LAUNCHES // 5))
    torch.cuda.synchronize()
    return min(times)


def ways_to_load(torch, path):
    """Each gives the tensors on the device."""
    import mmap
    import warnings
    warnings.simplefilter('ignore')
    size = os.path.getsize(path)
    with open(path, 'rb') as f:
        skip = 8 + int.from_bytes(f.read(8), 'little')
        mapped = mmap.mmap(f.fileno(), size, access=mmap.ACCESS_READ)
    read_only = torch.frombuffer(mapped, dtype=torch.int64, offset=skip)
    writable = torch.from_file(path, shared=False, size=size // 8, dtype=torch.int64)[skip // 8:]
    for name, view in (('read-only', read_only), ('writable', writable)):
        yield name, lambda v=view: [v[at:at + TENSOR // 8].cuda() for at in range(0, v.numel(), TENSOR // 8)]
    try:
        import safetensors.torch
    except ImportError:
        return
    yield 'safetensors', lambda: list(safetensors.torch.load_file(path, device='cuda').values())


def load(torch, path):
    result, sums = {}, []
    for name, get in ways_to_load(torch, path):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        loaded = get()
        torch.cuda.synchronize()
        result[name] = time.perf_counter() - begin
        sums.append(sorted(int(t.sum()) for t in loaded))
        del loaded
    return result, sums


def child(weights, what):
    import torch
    torch.zeros(1, device='cuda')
    out = {'torch': torch.__version__, 'device': torch.cuda.get_device_name(), 'pid': os.getpid(),
           'free': torch.cuda.mem_get_info()}
    if what == 'train':
        out['losses'], out['step_s'], out['sync_step_s'] = train(torch)
        out['launch_s'] = launch(torch)
    if what == 'load':
        out['load'], out['sums'] = load(torch, weights)
    print(json.dumps(out))


if sys.argv[1:2] == ['--child']:
    child(*sys.argv[2:])
else:
    main()
