# SPDX-License-Identifier: Apache-2.0
"""Files written by one side are read by the other, bit for bit; the Python module beside the package."""
import os
import random
import struct
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy
import safetensors
import safetensors.numpy

import cairn_tensor
import tap

try:
    import torch
except ImportError:
    torch = None

KINDS = ['float64', 'float32', 'float16', 'int64', 'int32', 'int16', 'int8', 'uint64', 'uint32', 'uint16', 'uint8', 'bool',
         'bfloat16', 'float8_e4m3fn', 'float8_e5m2']
FLOATS = ['float64', 'float32', 'float16', 'bfloat16', 'float8_e4m3fn', 'float8_e5m2']
# The package's numpy side has no fp8 of its own in every version; cairn's files with fp8 are compared by bytes.
PACKAGE_KINDS = [k for k in KINDS if not k.startswith('float8')]


def numpy_dtype(kind):
    return numpy.dtype(getattr(ml_dtypes, kind)) if kind.startswith(('bfloat', 'float8')) else numpy.dtype(kind)


def random_array(rng, kind):
    shape = [rng.choice([0, 1, 2, 3, 7]) for _ in range(rng.randrange(0, 4))]
    dtype = numpy_dtype(kind)
    data = rng.randbytes(dtype.itemsize * int(numpy.prod(shape, dtype=int)))
    if kind == 'bool':
        data = bytes(b & 1 for b in data)
    return numpy.frombuffer(data, dtype).reshape(shape).copy()


def random_tensors(rng, kinds):
    names = rng.sample(['', 'a', 'a.b', 'blocks.0.weight', 'ü', '日本', '🙂', 'q"uote', 'back\\slash', 'tab\t', 'x' * 200], 6)
    return {name: random_array(rng, rng.choice(kinds)) for name in names}


def random_metadata(rng):
    return rng.choice([None, {'format': 'pt'}, {'a': '', '': 'ü\n"', 'k' * 100: 'v' * 1000}])


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def differences(got, want, what):
    if sorted(got) != sorted(want):
        yield f'{what}: names {sorted(got)}, want {sorted(want)}'
        return
    for name in want:
        if not same(got[name], want[name]):
            yield f'{what}: {name!r} is {got[name]!r}, want {want[name]!r}'


def each(count, kinds):
    rng = random.Random(count)
    with tempfile.TemporaryDirectory() as folder:
        for i in range(count):
            yield os.path.join(folder, f'{i}.safetensors'), random_tensors(rng, kinds), random_metadata(rng)


def the_package_reads_what_cairn_wrote():
    for path, tensors, metadata in each(100, PACKAGE_KINDS):
        cairn_tensor.save_file(tensors, path, metadata)
        yield from differences(safetensors.numpy.load_file(path), tensors, path)
        with safetensors.safe_open(path, framework='np') as f:
            if (f.metadata() or {}) != (metadata or {}):
                yield f'{path}: metadata {f.metadata()}'


def cairn_reads_what_the_package_wrote():
    for path, tensors, metadata in each(101, PACKAGE_KINDS):
        safetensors.numpy.save_file(tensors, path, metadata)
        yield from differences(cairn_tensor.load_file(path, framework='np'), tensors, path)
        with cairn_tensor.safe_open(path, framework='np') as f:
            if f.metadata() != (metadata or {}):
                yield f'{path}: metadata {f.metadata()}'


def cairn_reads_what_cairn_wrote():
    for path, tensors, metadata in each(50, KINDS):
        cairn_tensor.save_file(tensors, path, metadata, keep_order=True)
        for direct in False, True:
            yield from differences(cairn_tensor.load_file(path, framework='np', direct=direct), tensors, path)
        with cairn_tensor.safe_open(path) as f:
            # Empty tensors lie at the place of their neighbour, so only the others have an order.
            order = [n for n in f.keys() if tensors[n].size]
        if order != [n for n in tensors if tensors[n].size]:
            yield f'{path}: order {order}'


def files_are_the_same_bytes():
    """Given the same tensors, both writers write the same file: order, alignment, padding."""
    for path, tensors, _ in each(60, PACKAGE_KINDS):
        one, other = path + '.cairn', path + '.package'
        tensors = {name: t for name, t in tensors.items() if t.size}
        cairn_tensor.save_file(tensors, one)
        safetensors.numpy.save_file(tensors, other)
        with open(one, 'rb') as f, open(other, 'rb') as g:
            a, b = f.read(), g.read()
        begin = 8 + struct.unpack('<Q', b[:8])[0]
        if begin % 8 or a[8 + struct.unpack('<Q', a[:8])[0]:] != b[begin:]:
            yield f'{path}: the data differs'
        if a != b:
            yield f'{path}: the header differs: {a[8:begin]!r} and {b[8:begin]!r}'


def conversions_are_those_of_numpy():
    """Every bf16, f16 and fp8 value, and random f32 and f64 ones, to every floating kind."""
    rng = numpy.random.default_rng(5)
    sources = {kind: numpy.arange(256 ** numpy_dtype(kind).itemsize, dtype=f'uint{8 * numpy_dtype(kind).itemsize}')
               .view(numpy_dtype(kind)) for kind in FLOATS[2:]}
    sources['float32'] = rng.integers(0, 2 ** 32, 200_000, 'uint32').view('float32')
    sources['float64'] = rng.normal(0, 3, 100_000) * 10.0 ** rng.integers(-50, 50, 100_000)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'all.safetensors')
        cairn_tensor.save_file(sources, path)
        with cairn_tensor.safe_open(path, framework='np') as f:
            for kind, source in sources.items():
                for to in FLOATS:
                    yield from compare_conversion(f.get_tensor(kind, dtype=to), source, kind, to)


def compare_conversion(got, source, kind, to):
    with numpy.errstate(all='ignore'):
        want = source.astype(numpy_dtype(to))
        a, b = got.astype('float64'), want.astype('float64')
    if got.dtype != want.dtype or got.shape != want.shape:
        yield f'{kind} to {to}: {got.dtype} {got.shape}'
        return
    # NaN has many forms; each must stay NaN.
    wrong = ~((a == b) & (numpy.signbit(a) == numpy.signbit(b)) | (numpy.isnan(a) & numpy.isnan(b)))
    if wrong.any():
        i = int(numpy.argmax(wrong))
        yield f'{kind} to {to}: {int(wrong.sum())} differ, first {source[i]!r}: {got[i]!r}, numpy has {want[i]!r}'


def the_header_is_that_of_the_file():
    import json
    for path, tensors, metadata in each(30, PACKAGE_KINDS):
        safetensors.numpy.save_file(tensors, path, metadata)
        with open(path, 'rb') as f:
            size = struct.unpack('<Q', f.read(8))[0]
            header = json.loads(f.read(size))
        with cairn_tensor.MemoryEfficientSafeOpen(path) as f:
            if f.header_size != size or f.header != {k: v for k, v in header.items() if k != '__metadata__' or v}:
                yield f'{path}: {f.header} is not {header}'
            for name, t in tensors.items():
                place, offset, count = f.place(name)
                with open(place, 'rb') as raw:
                    raw.seek(offset)
                    if raw.read(count) != t.tobytes():
                        yield f'{path}: {name!r} does not lie at {offset}'


def a_sharded_model_is_one_file():
    import json
    with tempfile.TemporaryDirectory() as folder:
        parts = [{'a': numpy.arange(3.0)}, {'b': numpy.ones((2, 2), 'float16')}]
        for i, part in enumerate(parts):
            safetensors.numpy.save_file(part, os.path.join(folder, f'{i}.safetensors'))
        index = os.path.join(folder, 'model.safetensors.index.json')
        with open(index, 'w', encoding='utf-8') as f:
            json.dump({'metadata': {}, 'weight_map': {'a': '0.safetensors', 'b': '1.safetensors'}}, f)
        return list(differences(cairn_tensor.load_file(index, framework='np'), {**parts[0], **parts[1]}, index))


def torch_files_are_their_twins():
    folder = os.path.join(os.environ['CAIRN_TEST_DATA'], 'torch')
    names = [n[:-4] for n in sorted(os.listdir(folder)) if os.path.exists(os.path.join(folder, n[:-4] + '.safetensors'))]
    if len(names) < 5:
        yield 'the files are missing'
    for name in names:
        with cairn_tensor.safe_open(os.path.join(folder, name + '.pth'), framework='np') as f, \
                cairn_tensor.safe_open(os.path.join(folder, name + '.safetensors'), framework='np') as twin:
            yield from differences({k: f.get_tensor(k) for k in f.keys()}, {k: twin.get_tensor(k) for k in twin.keys()}, name)


def python_alone_is_enough():
    """Without numpy and torch tensors are memoryviews; what they can not hold comes as float32."""
    script = ('import sys, cairn_tensor\n'
              'for name in ("numpy", "torch", "ml_dtypes"): sys.modules[name] = None\n'
              'with cairn_tensor.safe_open(sys.argv[1]) as f:\n'
              '    assert f.get_tensor("b").tolist() == [1.0, 2.5], f.get_tensor("b")\n'
              '    assert f.get_tensor("i").tolist() == [[1, 2], [3, 4]] and f.get_tensor("s").tolist() == [7]\n'
              '    assert f.get_tensor("e").tolist() == [] and f.get_tensor("i").format == "q"\n'
              '    again = {name: f.get_tensor(name) for name in f.keys()}\n'
              'cairn_tensor.save_file(again, sys.argv[1] + ".again")\n')
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'x.safetensors')
        cairn_tensor.save_file({'b': numpy.array([1, 2.5], ml_dtypes.bfloat16), 'i': numpy.array([[1, 2], [3, 4]]),
                                's': numpy.array([7], 'uint8'), 'e': numpy.zeros((0, 2), 'float32')}, path)
        done = subprocess.run([sys.executable, '-c', script, path], stderr=subprocess.PIPE, encoding='utf-8')
        if done.returncode:
            return done.stderr.splitlines()
        again = safetensors.numpy.load_file(path + '.again')
        return [] if again['b'].tolist() == [1, 2.5] and again['i'].tolist() == [[1, 2], [3, 4]] else [f'{again}']


def errors_are_told():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'x.safetensors')
        cairn_tensor.save_file({'a': numpy.arange(3.0)}, path)
        tries = {
            'no such file': lambda: cairn_tensor.safe_open(path + 'x'),
            'exists': lambda: cairn_tensor.save_file({}, path, replace=False),
            'no tensor': lambda: cairn_tensor.safe_open(path).get_tensor('b'),
            'no dtype': lambda: cairn_tensor.safe_open(path).get_tensor('a', dtype='float7'),
            'nul': lambda: cairn_tensor.save_file({'a\0': numpy.arange(3)}, path),
            'unsavable': lambda: cairn_tensor.save_file({'a': numpy.zeros(2, 'complex128')}, path),
            'twice closed': lambda: closed(path).keys() and closed(path).get_tensor('a'),
        }
        for title, attempt in tries.items():
            try:
                attempt()
                yield f'{title}: no error'
            except (cairn_tensor.Error, KeyError, TypeError, ValueError) as e:
                if not str(e):
                    yield f'{title}: no message'
        if cairn_tensor.load_file(path, framework='np')['a'].tolist() != [0, 1, 2]:
            yield 'the old file is gone'


def closed(path):
    with cairn_tensor.safe_open(path) as f:
        f.close()
    return f


def torch_tensors_come_and_go():
    if torch is None:
        raise tap.Skip('torch is not installed; INTEROP_PYTHON=/path/to/python names one that has it')
    import safetensors.torch
    values = torch.randn(7, 5)
    tensors = {kind: values.to(getattr(torch, kind)) for kind in FLOATS}
    tensors.update({'int64': torch.arange(5), 'bool': torch.tensor([True, False]), 'scalar': torch.tensor(3.5),
                    'empty': torch.empty(0, 2), 'turned': values.t()})
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'x.safetensors')
        cairn_tensor.save_file(tensors, path, {'format': 'pt'})
        package = safetensors.torch.load_file(path)
        with cairn_tensor.safe_open(path) as f:
            for name, want in tensors.items():
                for who, got in (('package', package[name]), ('cairn', f.get_tensor(name))):
                    if got.dtype != want.dtype or not torch.equal(got.float(), want.float()):
                        yield f'{who}: {name} is {got}, want {want}'
            for to in FLOATS:
                kind = getattr(torch, to)
                for name in FLOATS:
                    got = f.get_tensor(name, device=torch.device('cpu'), dtype=kind)
                    if got.dtype != kind or not torch.equal(got.float(), tensors[name].to(kind).float()):
                        yield f'{name} to {to} is not what torch makes of it'
            if f.get_tensor('int64', dtype=torch.float32).tolist() != [0, 1, 2, 3, 4]:
                yield 'whole numbers do not become floats'
            if torch.cuda.is_available() and f.get_tensor('bfloat16', device='cuda', dtype=torch.float32).device.type != 'cuda':
                yield 'not on the device'


def torch_files_are_what_torch_says():
    if torch is None:
        raise tap.Skip('torch is not installed; INTEROP_PYTHON=/path/to/python names one that has it')
    net = torch.nn.Sequential(torch.nn.Linear(300, 70), torch.nn.Conv2d(3, 5, 3)).to(memory_format=torch.channels_last)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'x.pth')
        torch.save({'state_dict': net.state_dict(), 'step': 3}, path)
        with cairn_tensor.safe_open(path) as f:
            want = {'state_dict.' + k: v for k, v in net.state_dict().items()}
            if f.keys() != list(want):
                yield f'{f.keys()}'
            for name, t in want.items():
                if not torch.equal(f.get_tensor(name), t):
                    yield f'{name} differs'


print(f'# safetensors {safetensors.__version__}, numpy {numpy.__version__}, torch {torch and torch.__version__}')
tap.run([
    the_package_reads_what_cairn_wrote,
    cairn_reads_what_the_package_wrote,
    cairn_reads_what_cairn_wrote,
    files_are_the_same_bytes,
    conversions_are_those_of_numpy,
    the_header_is_that_of_the_file,
    a_sharded_model_is_one_file,
    torch_files_are_their_twins,
    python_alone_is_enough,
    errors_are_told,
    torch_tensors_come_and_go,
    torch_files_are_what_torch_says,
])
