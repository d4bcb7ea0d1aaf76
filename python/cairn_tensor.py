# SPDX-License-Identifier: Apache-2.0
"""Tensor files through libcairn-tensor: safetensors, sharded safetensors, torch's .pth and .pt.

    import cairn_tensor

    with cairn_tensor.safe_open('model.safetensors') as f:
        for name in f.keys():
            w = f.get_tensor(name, device='cuda', dtype=torch.bfloat16)

One file, no dependencies: tensors are torch tensors where torch is importable, else numpy arrays, else memoryviews.
Data is read with pread into memory of its own, never mapped, and converted on the CPU on the way; the device sees
one plain copy of finished data.  numpy has no bf16 and no fp8: without torch and ml_dtypes these come as float32,
which holds every one of their values.

safe_open (also called MemoryEfficientSafeOpen) can stand in for the reader of that name in trainers: it has keys(),
metadata(), get_tensor(key, device=…, dtype=…), header, header_size and filename.

The library is looked for in $CAIRN_TENSOR_LIBRARY, beside this file, in the lib folder of the prefix that this file is
installed in, and by the system's loader.
"""
import ctypes
import os
import struct

__all__ = ['Error', 'MemoryEfficientSafeOpen', 'load_file', 'safe_open', 'save_file']

SONAME = 'libcairn-tensor.so.1'
REPLACE, KEEP_ORDER = 1, 2
DIRECT = 1
NOT_FOUND = ctypes.c_size_t(-1).value
NO_PLACE = 2 ** 64 - 1

# dtype: (name in torch, name in numpy or None, memoryview format or None)
DTYPES = {
    'F64': ('float64', 'float64', 'd'),
    'F32': ('float32', 'float32', 'f'),
    'F16': ('float16', 'float16', None),
    'BF16': ('bfloat16', None, None),
    'F8_E4M3': ('float8_e4m3fn', None, None),
    'F8_E5M2': ('float8_e5m2', None, None),
    'I64': ('int64', 'int64', 'q'),
    'I32': ('int32', 'int32', 'i'),
    'I16': ('int16', 'int16', 'h'),
    'I8': ('int8', 'int8', 'b'),
    'U64': ('uint64', 'uint64', 'Q'),
    'U32': ('uint32', 'uint32', 'I'),
    'U16': ('uint16', 'uint16', 'H'),
    'U8': ('uint8', 'uint8', 'B'),
    'BOOL': ('bool', 'bool', '?'),
}
BY_NAME = {name: key for key, (name, _, _) in DTYPES.items()}
FLOATS = ('F64', 'F32', 'F16', 'BF16', 'F8_E4M3', 'F8_E5M2')


class Error(Exception):
    """What the library says: one line that names the file, the tensor and the offset."""

    def __init__(self, code, message, hint=''):
        super().__init__(f'{message} ({hint})' if hint else message)
        self.code, self.message, self.hint = code, message, hint


class _Error(ctypes.Structure):
    _fields_ = [('code', ctypes.c_int), ('message', ctypes.c_char * 512), ('hint', ctypes.c_char * 256)]


class _Info(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('dtype', ctypes.c_char_p), ('shape', ctypes.POINTER(ctypes.c_uint64)),
                ('rank', ctypes.c_size_t), ('elements', ctypes.c_uint64), ('bytes', ctypes.c_uint64),
                ('file', ctypes.c_char_p), ('offset', ctypes.c_uint64)]


_size, _u64, _text, _handle = ctypes.c_size_t, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_void_p
_PROTOTYPES = {
    'version': (ctypes.c_int, []),
    'open_with': (ctypes.c_int, [_text, ctypes.c_uint, ctypes.POINTER(_handle), ctypes.POINTER(_Error)]),
    'is_direct': (ctypes.c_int, [_handle]),
    'close': (None, [_handle]),
    'count': (_size, [_handle]),
    'get': (ctypes.c_int, [_handle, _size, ctypes.POINTER(_Info)]),
    'find': (_size, [_handle, _text]),
    'meta_count': (_size, [_handle]),
    'meta_get': (ctypes.c_int, [_handle, _size, ctypes.POINTER(_text), ctypes.POINTER(_text)]),
    'read': (ctypes.c_int, [_handle, _size, _u64, _u64, _text, ctypes.c_int, _handle, _size, ctypes.POINTER(_Error)]),
    'writer_open': (ctypes.c_int, [_text, ctypes.POINTER(_Info), _size, ctypes.POINTER(_text), _size, ctypes.c_uint,
                                   ctypes.POINTER(_handle), ctypes.POINTER(_Error)]),
    'writer_put': (ctypes.c_int, [_handle, _size, _u64, _handle, _size, ctypes.POINTER(_Error)]),
    'writer_commit': (ctypes.c_int, [_handle, ctypes.POINTER(_Error)]),
    'writer_close': (None, [_handle]),
}


def _places():
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.environ.get('CAIRN_TENSOR_LIBRARY')
    yield os.path.join(here, SONAME)
    prefix = os.path.join(here, '..', '..', '..')
    for lib in ('lib', 'lib64', 'lib/x86_64-linux-gnu', 'lib/aarch64-linux-gnu'):
        yield os.path.join(prefix, lib, SONAME)


def _load():
    found = [place for place in _places() if place and os.path.exists(place)]
    library = ctypes.CDLL(found[0] if found else SONAME)
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(library, 'cairn_tensor_' + name)
        function.restype, function.argtypes = result, arguments
    return library


_library = None


def _call(name, *arguments):
    """Calls a function of the library that may fail."""
    err = _Error()
    if getattr(_lib(), 'cairn_tensor_' + name)(*arguments, ctypes.byref(err)):
        raise Error(err.code, err.message.decode(errors='replace'), err.hint.decode(errors='replace'))


def _lib():
    global _library
    if _library is None:
        _library = _load()
    return _library


def _module(name):
    try:
        return __import__(name)
    except ImportError:
        return None


def _dtype_key(dtype):
    """'BF16' for 'BF16', 'bfloat16', torch.bfloat16, numpy.float32, numpy.dtype('float32')."""
    if dtype is None or dtype in DTYPES:
        return dtype
    text = dtype if isinstance(dtype, str) else getattr(dtype, 'name', None) or getattr(dtype, '__name__', str(dtype))
    key = BY_NAME.get(text.rpartition('.')[2], text.upper())
    if key not in DTYPES:
        raise TypeError(f'{dtype!r} is no dtype of a tensor file')
    return key


class _Torch:
    """Tensors of torch."""

    def __init__(self, module):
        self.module = module

    def native(self, key):
        return key if hasattr(self.module, DTYPES[key][0]) else None

    def make(self, key, shape):
        tensor = self.module.empty(shape, dtype=getattr(self.module, DTYPES[key][0]))
        return tensor, tensor.data_ptr()

    def finish(self, tensor, device):
        if device is None or str(device) == 'cpu':
            return tensor
        # The source is ordinary memory, so the copy is over when this returns.
        return tensor.to(device=device)


class _Numpy:
    """Arrays of numpy; ml_dtypes lends it the kinds it lacks."""

    def __init__(self, module):
        self.module = module

    def dtype(self, key):
        torch_name, name, _ = DTYPES[key]
        if name:
            return self.module.dtype(name)
        more = _module('ml_dtypes')
        return self.module.dtype(getattr(more, torch_name)) if more else None

    def native(self, key):
        return key if self.dtype(key) is not None else None

    def make(self, key, shape):
        array = self.module.empty(shape, dtype=self.dtype(key))
        return array, array.ctypes.data

    def finish(self, array, device):
        if device is not None and str(device) != 'cpu':
            raise TypeError(f'device {device} needs torch')
        return array


class _Plain:
    """memoryviews, for a Python that has neither."""

    def native(self, key):
        return key if DTYPES[key][2] else None

    def make(self, key, shape):
        size = struct.calcsize(DTYPES[key][2])
        count = 1
        for n in shape:
            count *= n
        memory = (ctypes.c_char * (count * size))()
        view = memoryview(memory).cast('B')
        # A memoryview can not have a dimension of 0.
        view = view.cast(DTYPES[key][2], shape) if shape and count else view.cast(DTYPES[key][2])
        return view, ctypes.addressof(memory)

    def finish(self, view, device):
        if device is not None and str(device) != 'cpu':
            raise TypeError(f'device {device} needs torch')
        return view


FRAMEWORKS = {'pt': ('torch', _Torch), 'torch': ('torch', _Torch), 'np': ('numpy', _Numpy), 'numpy': ('numpy', _Numpy)}


def _framework(name):
    if name == 'plain':
        return _Plain()
    for candidate in ([name] if name else ['pt', 'np']):
        module_name, kind = FRAMEWORKS[candidate]
        module = _module(module_name)
        if module is not None:
            return kind(module)
    if name:
        raise ImportError(f'{FRAMEWORKS[name][0]} is not installed')
    return _Plain()


class safe_open:
    """An open tensor file.

    framework is 'pt', 'np' or 'plain'; None takes the first that is there.  device is where get_tensor puts tensors
    unless it is told otherwise.  direct reads past the page cache; the attribute of that name tells whether the file
    system can.
    """

    def __init__(self, filename, framework=None, device=None, direct=False):
        self.filename = filename
        self._handle = None
        self._framework = _framework(framework)
        self._device = device
        handle = _handle()
        _call('open_with', os.fsencode(filename), DIRECT if direct else 0, ctypes.byref(handle))
        self._handle = handle
        self.direct = bool(_lib().cairn_tensor_is_direct(handle))
        self._index = {}
        for i in range(_lib().cairn_tensor_count(handle)):
            self._index[self._info(i).name.decode()] = i
        self._header = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()

    def close(self):
        if getattr(self, '_handle', None):
            _lib().cairn_tensor_close(self._handle)
        self._handle = None

    def __len__(self):
        return len(self._index)

    def __contains__(self, name):
        return name in self._index

    def _info(self, i):
        info = _Info()
        if not self._handle or _lib().cairn_tensor_get(self._handle, i, ctypes.byref(info)):
            raise ValueError(f'{self.filename} is closed')
        return info

    def _find(self, name):
        if name not in self._index:
            raise KeyError(f'no tensor {name!r} in {self.filename}')
        return self._info(self._index[name])

    def keys(self):
        """The names, in the order of the data."""
        return list(self._index)

    offset_keys = keys

    def metadata(self):
        """The strings of __metadata__; empty if there are none."""
        self._info_open()
        out, key, value = {}, _text(), _text()
        for i in range(_lib().cairn_tensor_meta_count(self._handle)):
            _lib().cairn_tensor_meta_get(self._handle, i, ctypes.byref(key), ctypes.byref(value))
            out[key.value.decode()] = value.value.decode()
        return out

    def _info_open(self):
        if not self._handle:
            raise ValueError(f'{self.filename} is closed')

    def dtype(self, name):
        """As the file says it: 'BF16'."""
        return self._find(name).dtype.decode()

    def shape(self, name):
        info = self._find(name)
        return info.shape[:info.rank]

    def place(self, name):
        """(file, offset, bytes) of a tensor whose data lies in one piece; None if it does not."""
        info = self._find(name)
        return None if info.offset == NO_PLACE else (os.fsdecode(info.file), info.offset, info.bytes)

    @property
    def header_size(self):
        """Bytes of the JSON header of a single safetensors file; data begins 8 bytes further on."""
        return self._read_header()[1]

    @property
    def header(self):
        """{name: {'dtype', 'shape', 'data_offsets'}} and '__metadata__', as the header of a safetensors file has them."""
        return self._read_header()[0]

    def _read_header(self):
        self._info_open()
        if self._header is None:
            self._header = self._make_header()
        return self._header

    def _make_header(self):
        with open(self.filename, 'rb') as f:
            start = f.read(9)
        files = {self._info(i).file for i in self._index.values()}
        if start[8:] != b'{' or files - {os.fsencode(self.filename)}:
            raise ValueError(f'{self.filename} is not a single safetensors file; place() tells where a tensor lies')
        size = struct.unpack('<Q', start[:8])[0]
        header = {'__metadata__': self.metadata()} if self.metadata() else {}
        for name, i in self._index.items():
            info = self._info(i)
            begin = info.offset - size - 8
            header[name] = {'dtype': info.dtype.decode(), 'shape': info.shape[:info.rank],
                            'data_offsets': [begin, begin + info.bytes]}
        return header, size

    def get_tensor(self, key, device=None, dtype=None):
        """A tensor in memory of its own, converted on the CPU if another dtype is asked for, then moved."""
        info = self._find(key)
        stored = info.dtype.decode()
        if stored not in DTYPES:
            raise TypeError(f'tensor {key} of {self.filename} is {stored}, which can be listed but not loaded')
        wanted = _dtype_key(dtype) or self._framework.native(stored) or 'F32'
        if self._framework.native(wanted) is None:
            raise TypeError(f'{wanted} does not exist here; ask for float32')
        # The library converts between floating kinds; whole numbers are the framework's own business.
        loaded = wanted if stored in FLOATS and wanted in FLOATS else stored
        shape = info.shape[:info.rank]
        tensor, address = self._framework.make(loaded, shape)
        _call('read', self._handle, self._index[key], 0, info.elements, loaded.encode(), 0, address,
              info.elements * self._bytes(loaded))
        if loaded != wanted:
            tensor = self._cast(tensor, wanted)
        return self._framework.finish(tensor, self._device if device is None else device)

    def _cast(self, tensor, wanted):
        if isinstance(self._framework, _Torch):
            return tensor.to(getattr(self._framework.module, DTYPES[wanted][0]))
        if isinstance(self._framework, _Numpy):
            return tensor.astype(self._framework.dtype(wanted))
        raise TypeError('whole numbers are converted by torch or numpy, and neither is here')

    @staticmethod
    def _bytes(key):
        return {'64': 8, '32': 4, '16': 2}.get(key[-2:], 1)


MemoryEfficientSafeOpen = safe_open


def load_file(filename, device=None, dtype=None, framework=None, direct=False):
    """Every tensor of a file, by name."""
    with safe_open(filename, framework, device, direct) as f:
        return {name: f.get_tensor(name, dtype=dtype) for name in f.keys()}


def _describe(tensor):
    """(dtype key, shape, something with the bytes in order, their address) of a tensor, array or memoryview."""
    if hasattr(tensor, 'data_ptr'):
        tensor = tensor.detach().cpu().contiguous()
        return _dtype_key(tensor.dtype), tuple(tensor.shape), tensor, tensor.data_ptr()
    if hasattr(tensor, '__array_interface__'):
        array = _module('numpy').ascontiguousarray(tensor).reshape(tensor.shape)
        if array.dtype.byteorder == '>':
            array = array.astype(array.dtype.newbyteorder('<'))
        return _dtype_key(array.dtype), tuple(array.shape), array, array.ctypes.data
    view = memoryview(tensor)
    formats = {form: key for key, (_, _, form) in DTYPES.items() if form}
    if view.format not in formats:
        raise TypeError(f'a memoryview of format {view.format!r} can not be saved')
    copy = ctypes.create_string_buffer(view.tobytes(), view.nbytes or 1)
    return formats[view.format], view.shape, copy, ctypes.addressof(copy)


def save_file(tensors, filename, metadata=None, replace=True, keep_order=False):
    """Writes a safetensors file that appears under its name only when it is whole."""
    for text in list(tensors) + [t for pair in (metadata or {}).items() for t in pair]:
        if '\0' in text:
            raise ValueError(f'{text!r} has a NUL character')
    infos = (_Info * len(tensors))()
    described = [_describe(t) for t in tensors.values()]
    for info, name, (key, shape, _, _) in zip(infos, tensors, described):
        info.name, info.dtype, info.rank = name.encode(), key.encode(), len(shape)
        info.shape = (ctypes.c_uint64 * len(shape))(*shape)
    flat = [text.encode() for pair in (metadata or {}).items() for text in pair]
    handle = _handle()
    _call('writer_open', os.fsencode(filename), infos, len(infos), (_text * len(flat))(*flat), len(flat) // 2,
          (REPLACE if replace else 0) | (KEEP_ORDER if keep_order else 0), ctypes.byref(handle))
    try:
        for i, (key, shape, _, address) in enumerate(described):
            count = safe_open._bytes(key)
            for n in shape:
                count *= n
            _call('writer_put', handle, i, 0, address, count)
        _call('writer_commit', handle)
    finally:
        _lib().cairn_tensor_writer_close(handle)
