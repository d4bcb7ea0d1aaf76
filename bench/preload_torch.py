#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch with and without the library to preload: what it computes, and what it costs.

    preload_torch.py LIBRARY all|train|load [--seconds N] [--mib N] [--rings NxKIB,…] [--switches LIST] [--world FILE]

Processes of PyTorch differ more from each other than the library could cost.  So both are timed in one process: its calls
go through the library and past it in turn (bypass.c; libcairn-bypass.so lies beside LIBRARY), block by block, and the
differences of neighbours are looked at.  The library's own counters must say which way they went.

train: losses of a small transformer, in a process without the library, with it, and going to and fro: they must be the
same to the last bit; then steps and launches, on one CPU: what a scheduler that moves threads about does to a step is
more than 1 %.  load: a safetensors file that is in memory already, mapped in two ways, and as
safetensors itself does it; the bytes on the device are compared.  --rings tries other buffers of the library, in a
process each, as long as there is time.

--world: a file with another class World, for tests without a GPU.
"""
import argparse
import ctypes
import gc
import importlib.util
import json
import math
import mmap
import os
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

TENSOR = 32 << 20
STEPS, FLIP = 50, 5            # of training; how often the way changes
LAUNCHES = 1000                # that are timed at once
WARM = 30                      # that come before anything that is timed
FEWEST = 3                     # pairs, however long they take
RECORDS = '/dev/shm/cairn-bench' if os.path.isdir('/dev/shm') else '/tmp/cairn-bench'


def main():
    p = argparse.ArgumentParser()
    p.add_argument('library')
    p.add_argument('what', choices=('all', 'train', 'load'))
    p.add_argument('--seconds', type=float, default=300)
    p.add_argument('--mib', type=int, default=2048)
    p.add_argument('--rings', default='4x1024,2x4096,4x256,8x1024,1x1024')
    p.add_argument('--switches', default='record,stage,retry,memory,guard')
    p.add_argument('--world')
    o = p.parse_args()
    o.library = os.path.realpath(o.library)
    o.bypass = os.path.join(os.path.dirname(o.library), 'libcairn-bypass.so')
    for path in (o.library, o.bypass):
        if not os.path.exists(path):
            sys.exit(f'{path} is not there: ninja -C build {os.path.basename(path)}')
    o.deadline = time.monotonic() + o.seconds
    with tempfile.TemporaryDirectory(dir='.') as o.folder:
        writer = threading.Thread(target=write_weights, args=(os.path.join(o.folder, 'weights'), o.mib))
        writer.start()
        bad = start(o, 'bare')  # takes along whatever is slow the first time
        writer.join()
        bad += start(o, 'with', LD_PRELOAD=o.library, CAIRN_PRELOAD_FILE=RECORDS, CAIRN_PRELOAD_BUDGET=str(100 << 30))
    sys.exit(1 if bad else 0)


def start(o, role, **more):
    env = dict(os.environ, CUBLAS_WORKSPACE_CONFIG=':4096:8', **more)
    child = subprocess.Popen([sys.executable, os.path.realpath(__file__), '--inside', role, json.dumps(vars(o))], env=env)
    try:
        return failed(child.wait(2 * o.seconds + 60))
    except subprocess.TimeoutExpired:
        child.kill()
        return failed(child.wait())


def failed(code):
    if code:
        print(f'FAILED: exit {code}', flush=True)
    return bool(code)


def write_weights(path, mib):
    """As safetensors does it, without needing it."""
    block, n = os.urandom(TENSOR), (mib << 20) // TENSOR
    table = {f'layer.{i}': {'dtype': 'I64', 'shape': [TENSOR // 8], 'data_offsets': [i * TENSOR, (i + 1) * TENSOR]}
             for i in range(n)}
    head = json.dumps(table).encode()
    head += b' ' * (-len(head) % 4096 - 8)  # so that tensors begin at pages
    with open(path, 'wb') as f:
        f.write(len(head).to_bytes(8, 'little') + head)
        for i in range(n):
            f.write(block[i:] + block[:i])
        f.flush()
        os.fsync(f.fileno())  # not while we measure


# --- inside: the two ways ----------------------------------------------------------------------------------------------

class Ways:
    """Through the library and past it, and what it counted meanwhile."""

    def __init__(self, o, world):
        self.world, self.faults, self.is_past = world, 0, False
        with open(f'{RECORDS}.{os.getpid()}', 'rb') as f:
            self.record = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        self.bypass = ctypes.CDLL(o['bypass'])
        self.bypass.bypass_slots.restype = ctypes.c_char_p
        self.names = os.path.basename(o['library']).encode(), world.runtime.encode()
        self.slots = 0
        self.find()

    def find(self):
        """Again from time to time: libraries may have been loaded."""
        slots = self.bypass.bypass_find(*self.names)
        if slots <= 0:
            sys.exit(f'no slot of {self.names} was found: nothing can be compared')
        if slots != self.slots:
            print(f'  {slots} slots: ' + ', '.join(self.bypass.bypass_slots().decode().splitlines()), flush=True)
        self.slots = slots

    def counts(self):
        """The head of a file has all but the calls, of which each has its number in its line."""
        names = 'staged staged_bytes stage_failed retried retry_failed told refused refused_bytes'.split()
        calls, kernels = 4096 << 6, 1024 << 8  # the file ends with them
        lines = memoryview(self.record)[-kernels - calls:-kernels].cast('Q')
        return {'calls': max(lines[::8])} | dict(zip(names, struct.unpack_from('<8Q', self.record, 24)))

    def kernels(self):
        names = self.record[-(1024 << 8):]
        return sum(names[at + 4] != 0 for at in range(0, len(names), 256))

    def go(self, past):
        self.world.synchronize()
        self.bypass.bypass_on() if past else self.bypass.bypass_off()
        self.is_past = past

    def check(self, good, what):
        if not good:
            self.faults += 1
            if self.faults <= 5:
                print(f'  FAULT: {what}', flush=True)

    def timed(self, past, work, warm):
        """Seconds, and how far the counters went.  What the first calls of a way take is left out."""
        self.go(past)
        warm()
        self.world.synchronize()
        before = self.counts()
        begin = time.perf_counter()
        work()
        self.world.synchronize()
        took = time.perf_counter() - begin
        counted = {k: v - before[k] for k, v in self.counts().items()}
        self.check((counted['calls'] == 0) == past, f'{counted["calls"]} calls recorded {"past" if past else "through"} the library')
        return took, counted

    def pairs(self, seconds, work, warm, after=lambda counted: None, other=True):
        """(through, past) as often as there is time for; which one is first changes."""
        pairs, last = [], {}
        self.find()
        end = time.monotonic() + seconds
        gc.collect()
        gc.disable()
        while len(pairs) < FEWEST or time.monotonic() < end:
            took = {}
            for which in ((0, 1), (1, 0))[len(pairs) % 2]:
                took[which], counted = self.timed(bool(which and other), work, warm)
                after(counted)
                last[which] = counted
            pairs.append((took[0], took[1]))
        gc.enable()
        self.go(False)
        return pairs, last


def interval(values):
    """The median, and between which two values it is with 95 %, whatever they are distributed like; of few, all."""
    v, n = sorted(values), len(values)
    k = max(0, math.floor((n - 1.96 * math.sqrt(n)) / 2) - 1)
    return statistics.median(v), v[k], v[n - 1 - k]


def compare(name, pairs, n, unit, calls):
    by = {'ms': 1e3, 'us': 1e6}[unit] / n
    past = statistics.median(p for _, p in pairs) * by
    more, low, high = (x * by * 1e6 / {'ms': 1e3, 'us': 1e6}[unit] for x in interval([t - p for t, p in pairs]))
    share, least, most = (x * 100 for x in interval([t / p - 1 for t, p in pairs]))
    shown = ': at most 1 %' if most <= 1 else ': more than 1 %' if least > 1 else ': not known whether more than 1 %'
    print(f'  {name}: {past:.3f} {unit} past the library, {calls / n:.1f} calls; through it {more:+.3f} us '
          f'({low:+.3f} to {high:+.3f}), {share:+.3f} % ({least:+.3f} to {most:+.3f}){shown if unit == "ms" else ""}; '
          f'{len(pairs)} pairs', flush=True)


# --- inside: what is compared ----------------------------------------------------------------------------------------

def losses(world, flip=lambda past: None):
    step = world.trainer(False)
    result = []
    for i in range(STEPS):
        if i % FLIP == 0:
            flip(bool(i // FLIP % 2))
        result.append(world.value(step(i)).hex())
    flip(False)
    return result


def compare_losses(world, ways, path):
    bare = [None] * STEPS
    if os.path.exists(path):
        with open(path) as f:
            bare = json.load(f)
    for how, now in (('with the library', losses(world)), (f'through it and past it, {FLIP} steps each', losses(world, ways.go))):
        same = now == bare
        print(f'  {STEPS} steps {how}: losses {"the same bit for bit as without" if same else "DIFFER"} '
              f'({float.fromhex(now[0]):.4f} to {float.fromhex(now[-1]):.4f})', flush=True)
        ways.check(same, f'losses differ first at step {next((i for i in range(STEPS) if now[i] != bare[i]), None)}')


def train(world, ways, folder, seconds):
    compare_losses(world, ways, os.path.join(folder, 'losses'))
    step, small = world.trainer(False), world.trainer(True)

    def several(one, n, wait):
        def work():
            for i in range(n):
                loss = one(i)
                if wait:
                    world.value(loss)
        return work

    for name, one, n, wait, other, share in (
            ('a step', step, 4, False, True, 0.2), ('a step that waits', step, 1, True, True, 0.2),
            ('a small step', small, 1, False, True, 0.35),
            ('a small step, both times through it', small, 1, False, False, 0.2)):
        several(one, 4, wait)()
        pairs, last = ways.pairs(seconds * share, several(one, n, wait), lambda: world.launches(WARM), other=other)
        compare(name, pairs, n, 'ms', last[0]['calls'])
    pairs, last = ways.pairs(seconds * 0.05, lambda: world.launches(LAUNCHES), lambda: world.launches(WARM))
    compare('a launch', pairs, LAUNCHES, 'us', last[0]['calls'])
    print(f'  counted in all: {ways.counts()}, {ways.kernels()} kernels by name', flush=True)


def load(world, ways, folder, seconds, most):
    path = os.path.join(folder, 'weights')
    truth, size = world.truth(path), os.path.getsize(path) // TENSOR * TENSOR  # the header is less than a tensor
    print(f'  {size >> 20} MiB in tensors of {TENSOR >> 20} MiB; GiB/s, medians', flush=True)
    loaders = world.loaders(path)[:most]
    for name, get, pins in loaders:
        loaded = []

        def work():
            loaded[:] = get()

        def after(counted):
            ways.check(world.digests(loaded) == truth, f'{name}: the bytes are not the same')
            staged = counted['staged_bytes']
            ways.check(staged == (0 if ways.is_past or pins else size), f'{name}: {staged} bytes of {size} were staged')
            loaded.clear()

        work()  # takes the device's memory, through the library, so that it knows it
        loaded.clear()
        pairs, _ = ways.pairs(seconds / len(loaders), work, lambda: None, after)
        gib = size / (1 << 30)
        ratio, low, high = interval([p / t for t, p in pairs])
        how = 'through the library, which finds it pinned' if pins else 'staged'
        print(f'  {name}: {gib / statistics.median(p for _, p in pairs):.2f} past the library, '
              f'{gib / statistics.median(t for t, _ in pairs):.2f} {how}: {ratio:.3f} times as fast '
              f'({low:.3f} to {high:.3f}); {len(pairs)} pairs', flush=True)


# --- inside: processes -----------------------------------------------------------------------------------------------

def bare(o, kind):
    print(f'--- {told_time(o)}: without the library', flush=True)
    result = losses(kind())
    with open(os.path.join(o['folder'], 'losses'), 'w') as f:
        json.dump(result, f)
    return 0


def told_time(o):
    return f'{time.monotonic() + o["seconds"] - o["deadline"]:.1f} s'


def with_it(o, kind):
    """A child of fork for each set of switches and buffers: Python has loaded everything, and GPUs are not in use yet."""
    kind.prepare()
    left, bad = o['deadline'] - time.monotonic(), 0
    if o['what'] != 'load':
        share = 0.45 if o['what'] == 'train' else 0.24
        for switches in (o['switches'], 'record'):  # the latter is on unless something has failed
            bad += fork(o, kind, switches, train_seconds=left * share)
    if o['what'] != 'train':
        bad += fork(o, kind, o['switches'], load_seconds=left * 0.12, most=3)
        for ring in filter(None, o['rings'].split(',')):
            if o['deadline'] - time.monotonic() < o['seconds'] / 15:
                print(f'no time for buffers of {ring}')
                continue
            n, kib = ring.split('x')
            bad += fork(o, kind, o['switches'], load_seconds=o['seconds'] / 30, most=2, CAIRN_PRELOAD_RING=n,
                        CAIRN_PRELOAD_PIECE=str(int(kib) << 10))
    return 1 if bad else 0


def fork(o, kind, switches, **more):
    env = {k: v for k, v in more.items() if k.isupper()}
    print(f'--- {told_time(o)}: {switches} {" ".join(f"{k}={v}" for k, v in env.items())}', flush=True)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.environ.update(env, CAIRN_PRELOAD=switches)
            signal.alarm(int(o['seconds']) + 60)
            code = compare_ways(o, kind, **{k: v for k, v in more.items() if k not in env})
        except BaseException:  # sys.exit, too: this child must not go on as its parent
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if os.path.exists(f'{RECORDS}.{pid}'):
        os.remove(f'{RECORDS}.{pid}')
    return failed(code)


def compare_ways(o, kind, train_seconds=0, load_seconds=0, most=0):
    if train_seconds:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # the threads to come, too
    world = kind()
    ways = Ways(o, world)
    if train_seconds:
        train(world, ways, o['folder'], train_seconds)
    if load_seconds:
        load(world, ways, o['folder'], load_seconds, most)
    print(f'  {"counters and bytes are as they must be" if not ways.faults else f"{ways.faults} FAULTS"}', flush=True)
    return 1 if ways.faults else 0


class World:
    """PyTorch."""
    device = 'cuda'
    shapes = (256, 256), (2, 64)  # of a batch, 512 KiB that are not pinned, and a small one

    @staticmethod
    def prepare():
        import torch

    def __init__(self):
        import torch
        self.torch = torch
        self.runtime = 'libamdhip64.so' if torch.version.hip else 'libcudart'
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False
        self.few = torch.zeros(8, device=self.device)
        print(f'  {self.name()}, PyTorch {torch.__version__}, {len(os.sched_getaffinity(0))} CPUs', flush=True)

    def name(self):
        self.torch.cuda.mem_get_info()
        return self.torch.cuda.get_device_name()

    def synchronize(self):
        self.torch.cuda.synchronize()

    def value(self, loss):
        return loss.item()

    def trainer(self, small):
        """A function that takes a step.  The GPU has a small one done before the CPU has launched the next."""
        torch, nn = self.torch, self.torch.nn
        torch.manual_seed(1)
        layer = nn.TransformerEncoderLayer(512, 8, 2048, 0.0, batch_first=True, norm_first=True)
        model = nn.Sequential(nn.Embedding(1000, 512), nn.TransformerEncoder(layer, 4, enable_nested_tensor=False),
                              nn.Linear(512, 1000)).to(self.device)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        batches = [torch.randint(0, 1000, self.shapes[small]) for _ in range(8)]

        def step(i):
            x = batches[i % 8].to(self.device, non_blocking=True)
            with torch.autocast(self.device, torch.bfloat16):
                y = model(x)
            loss = nn.functional.cross_entropy(y.float().view(-1, 1000), x.roll(1, 1).view(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return step

    def launches(self, n):
        for _ in range(n):
            self.few.add_(1)

    def views(self, whole):
        return [whole[at:at + TENSOR // 8] for at in range(0, whole.numel(), TENSOR // 8)]

    def loaders(self, path):
        """Each maps the file anew, and gives its tensors on the device; whether it pins what it reads by itself."""
        import warnings
        warnings.simplefilter('ignore')
        torch, size = self.torch, os.path.getsize(path)
        with open(path, 'rb') as f:
            skip = 8 + int.from_bytes(f.read(8), 'little')

        def read_only():
            with open(path, 'rb') as f:
                mapped = mmap.mmap(f.fileno(), size, access=mmap.ACCESS_READ)
            return [v.to(self.device) for v in self.views(torch.frombuffer(mapped, dtype=torch.int64, offset=skip))]

        def writable():
            mapped = torch.from_file(path, shared=False, size=size // 8, dtype=torch.int64)
            return [v.to(self.device) for v in self.views(mapped[skip // 8:])]

        result = [('read-only', read_only, False), ('writable', writable, False)]
        try:
            import safetensors.torch
            version = safetensors.__version__
            result.append((f'safetensors {version}',
                           lambda: list(safetensors.torch.load_file(path, device=self.device).values()),
                           tuple(map(int, version.split('.')[:2])) >= (0, 8)))
        except ImportError:
            print('  no safetensors here')
        return result

    def digests(self, tensors):
        """A number for each, in no order, that knows where its bytes are."""
        def digest(t):
            rows = t.view(-1, 1024).sum(1)
            return (rows * self.torch.arange(1, rows.numel() + 1, device=t.device)).sum()
        return sorted(self.torch.stack([digest(t) for t in tensors]).tolist())

    def truth(self, path):
        with open(path, 'rb') as f:
            skip = 8 + int.from_bytes(f.read(8), 'little')
        whole = self.torch.from_file(path, shared=False, size=os.path.getsize(path) // 8, dtype=self.torch.int64)
        return self.digests(self.views(whole[skip // 8:]))


def kind_of_world(path):
    if not path:
        return World
    spec = importlib.util.spec_from_file_location('world', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.World


def inside(role, o):
    return {'bare': bare, 'with': with_it}[role](o, kind_of_world(o['world']))


if __name__ == '__main__':
    if sys.argv[1:2] == ['--inside']:
        sys.exit(inside(sys.argv[2], json.loads(sys.argv[3])))
    main()
