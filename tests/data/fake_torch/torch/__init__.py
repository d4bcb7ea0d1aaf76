# SPDX-License-Identifier: Apache-2.0
"""As much of torch as the probe uses, in plain Python; not torch.

FAKE_TORCH says what goes wrong: fine (nothing), no-device, zeros (bf16 to f32 on the device gives 0),
off-by-one (f32 to bf16 on the device truncates), wrong-product, broken-kernel (a product raises),
import-error, crash, crash-late (in the first conversion), hang, children (hangs with a child process),
noise (prints much), exit (ends with status 7).
FAKE_TORCH_LOG, if set, is a file that gets the process id and the environment.
"""
import os
import signal
import struct
import subprocess
import sys
import time

from . import version

__version__ = version.__version__
MODE = os.environ.get('FAKE_TORCH', 'fine')


def _log(text):
    if os.environ.get('FAKE_TORCH_LOG'):
        with open(os.environ['FAKE_TORCH_LOG'], 'a', encoding='utf-8') as f:
            f.write(text + '\n')


def _misbehave():
    _log('pid %d' % os.getpid())
    for name in sorted(os.environ):
        _log('%s=%s' % (name, os.environ[name]))
    if MODE == 'import-error':
        raise ImportError('libamdhip64.so.7: cannot open shared object file')
    if MODE == 'crash':
        os.kill(os.getpid(), signal.SIGSEGV)
    if MODE == 'exit':
        os._exit(7)
    if MODE == 'noise':
        for i in range(20000):
            print('line %d of much talk on standard output' % i)
            print('and on standard error', file=sys.stderr)
    if MODE == 'children':
        _log('pid %d' % subprocess.Popen(['sleep', '600']).pid)
    if MODE in ('hang', 'children'):
        time.sleep(600)


_misbehave()

float32, float16, bfloat16, int32, int16 = 'float32', 'float16', 'bfloat16', 'int32', 'int16'


def _round_to_bf16(bits):
    if bits & 0x7fffffff > 0x7f800000:
        return bits >> 16 | 0x40
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16 & 0xffff


def _f16_to_f32(bits):
    return struct.unpack('<I', struct.pack('<f', struct.unpack('<e', struct.pack('<H', bits))[0]))[0]


def _f32_to_f16(bits):
    value = struct.unpack('<f', struct.pack('<I', bits))[0]
    if value != value:
        return 0x7e00
    try:
        return struct.unpack('<H', struct.pack('<e', value))[0]
    except OverflowError:
        return 0xfc00 if value < 0 else 0x7c00


TO_F32 = {float32: lambda b: b, bfloat16: lambda b: b << 16, float16: _f16_to_f32}
FROM_F32 = {float32: lambda b: b, bfloat16: _round_to_bf16, float16: _f32_to_f16}
SIZES = {float32: 32, float16: 16, bfloat16: 16, int32: 32, int16: 16}


class Tensor:
    def __init__(self, bits, dtype, device='cpu', shape=None):
        self.bits, self.dtype, self.device = bits, dtype, device
        self.shape = shape or [len(bits)]

    def _like(self, bits, dtype=None, device=None):
        return Tensor(bits, dtype or self.dtype, device or self.device, self.shape)

    def to(self, where):
        if where not in SIZES:
            return self._like(self.bits, device=where)
        if MODE == 'crash-late' and self.device != 'cpu':
            os.kill(os.getpid(), signal.SIGABRT)
        if MODE == 'zeros' and self.device != 'cpu' and (self.dtype, where) == (bfloat16, float32):
            return self._like([0] * len(self.bits), where)
        if MODE == 'off-by-one' and self.device != 'cpu' and (self.dtype, where) == (float32, bfloat16):
            return self._like([b >> 16 for b in self.bits], where)
        if self.dtype == where:
            return self
        return self._like([FROM_F32[where](TO_F32[self.dtype](b)) for b in self.bits], where)

    def view(self, dtype):
        assert SIZES[dtype] == SIZES[self.dtype]
        return self._like(self.bits, dtype)

    def float(self):
        return self.to(float32)

    def half(self):
        return self.to(float16)

    def cpu(self):
        return self._like(self.bits, device='cpu')

    def reshape(self, size):
        assert size == -1
        return Tensor(self.bits, self.dtype, self.device)

    def numbers(self):
        return [struct.unpack('<f', struct.pack('<I', TO_F32[self.dtype](b)))[0] for b in self.bits]

    def tolist(self):
        if self.dtype in TO_F32:
            return self.numbers()
        top = 1 << SIZES[self.dtype]
        return [b - top if b >= top // 2 else b for b in self.bits]


def _float_bits(value):
    return struct.unpack('<I', struct.pack('<f', value))[0]


def tensor(values, dtype):
    shape = [len(values)]
    if isinstance(values[0], list):
        shape = [len(values), len(values[0])]
        values = [v for row in values for v in row]
    if dtype == float32:
        return Tensor([_float_bits(v) for v in values], dtype, shape=shape)
    return Tensor([v & ((1 << SIZES[dtype]) - 1) for v in values], dtype, shape=shape)


def matmul(x, y):
    if MODE == 'broken-kernel':
        raise RuntimeError('HIP error: invalid device function\nmore text')
    n, k, m = x.shape[0], x.shape[1], y.shape[1]
    a, b = x.numbers(), y.numbers()
    product = [sum(a[i * k + t] * b[t * m + j] for t in range(k)) for i in range(n) for j in range(m)]
    if MODE == 'wrong-product':
        product[3] += 1
    return Tensor([_float_bits(v) for v in product], float32, x.device, [n, m]).to(x.dtype)


class _Properties:
    gcnArchName = os.environ.get('FAKE_TORCH_TARGET', 'gfx1151') + ':sramecc-'
    total_memory = 112 << 30


class cuda:
    @staticmethod
    def is_available():
        return MODE != 'no-device'

    @staticmethod
    def device_count():
        return 1

    @staticmethod
    def get_device_name(_):
        return 'Radeon 8060S Graphics'

    @staticmethod
    def get_device_properties(_):
        return _Properties

    @staticmethod
    def get_arch_list():
        return ['gfx1100', 'gfx1151']

    @staticmethod
    def synchronize():
        pass
