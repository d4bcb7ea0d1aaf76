# SPDX-License-Identifier: Apache-2.0
"""For bench/preload_torch.py: what stands for PyTorch, on a HIP that is not one.  PRELOAD_WORLD is the folder of both."""
import ctypes
import os
import zlib

TENSOR = 32 << 20
D2H = 2


class World:
    runtime = 'libamdhip64.so'

    @staticmethod
    def prepare():
        pass

    def __init__(self):
        folder = os.environ['PRELOAD_WORLD']
        self.hip = ctypes.CDLL(os.path.join(folder, 'libamdhip64.so.6'))  # past everything, to look at results
        self.lazy = ctypes.CDLL(os.path.join(folder, 'libsteps-lazy.so'))
        self.now = ctypes.CDLL(os.path.join(folder, 'libsteps-now.so'))
        self.batch = (ctypes.c_char * (128 << 10))()
        self.place = self.allocate(128 << 10)
        self.tensors = []
        self.steps(1)

    def allocate(self, n):
        p = ctypes.c_void_p()
        if self.lazy.take(ctypes.byref(p), ctypes.c_size_t(n)):
            raise MemoryError(n)
        return p

    def copy(self, to, source, n):
        if self.lazy.steps(0, to, source, ctypes.c_size_t(n)):
            raise OSError('a copy failed')

    def steps(self, n):
        for library in (self.lazy, self.now):
            if library.steps(n // 2, self.place, self.batch, ctypes.c_size_t(len(self.batch))):
                raise OSError('a launch failed')

    def synchronize(self):
        self.now.rest()

    def trainer(self, small):
        def step(i):
            ctypes.memset(self.batch, i, len(self.batch))
            self.steps(60 if small else 600)
        return step

    def value(self, loss):
        self.synchronize()
        return float(self.digest(self.place, len(self.batch)))

    def launches(self, n):
        self.steps(n)

    def loaders(self, path):
        return [('mapped', lambda: self.load(path), False)]

    def load(self, path):
        import mmap
        with open(path, 'rb') as f:
            whole = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY)
        skip = 8 + int.from_bytes(whole[:8], 'little')
        first = ctypes.addressof(ctypes.c_char.from_buffer(whole))
        n = (len(whole) - skip) // TENSOR
        while len(self.tensors) < n:
            self.tensors.append(self.allocate(TENSOR))
        for i in range(n):
            self.copy(self.tensors[i], ctypes.c_void_p(first + skip + i * TENSOR), TENSOR)
        return self.tensors[:n]

    def digest(self, place, n):
        back = (ctypes.c_char * n)()
        self.hip.hipMemcpy(back, place, ctypes.c_size_t(n), D2H)
        return zlib.crc32(back)

    def digests(self, tensors):
        return [self.digest(t, TENSOR) for t in tensors]

    def truth(self, path):
        with open(path, 'rb') as f:
            f.seek(8 + int.from_bytes(f.read(8), 'little'))
            return [zlib.crc32(f.read(TENSOR)) for _ in range((os.path.getsize(path) - f.tell()) // TENSOR)]
