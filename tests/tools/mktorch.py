# SPDX-License-Identifier: Apache-2.0
"""mktorch.py DIR: writes the torch files of tests/data/torch, each with its safetensors twin.

Needs PyTorch 2.7 or later and the safetensors package.  A file that cairn reads has a twin NAME.safetensors with
the same tensors under their flattened names; a file that cairn refuses has none.
"""
import collections
import os
import sys
import zipfile

import torch
from safetensors.torch import save_file

torch.manual_seed(1)
FLOATS = ['float64', 'float32', 'float16', 'bfloat16', 'float8_e4m3fn', 'float8_e5m2']
WHOLE = ['int64', 'int32', 'int16', 'int8', 'uint8', 'uint16', 'uint32', 'uint64', 'bool']


def dtypes():
    out = collections.OrderedDict()
    for name in FLOATS:
        out['float.' + name] = torch.randn(3, 5).to(getattr(torch, name))
    for name in WHOLE:
        out['whole.' + name] = torch.arange(7).to(getattr(torch, name))
    return out


def model():
    inner = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.LayerNorm(6), torch.nn.Conv3d(2, 3, (1, 2, 2)))
    inner.register_buffer('counter', torch.tensor(41))
    return inner


def checkpoint():
    net = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    net(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return {
        'epoch': 3, 'loss': 0.25, 'big': 2 ** 70, 'negative': -7, 'name': 'grün', 'none': None, 'flags': [True, False],
        'shape': torch.Size([2, 3]), 'bytes': b'\x00\xff', 'dtype': torch.float16, 'device': torch.device('cpu'),
        'set': {1, 2}, 'state_dict': net.state_dict(), 'optimizer': optimizer.state_dict(),
        'parameter': torch.nn.Parameter(torch.randn(2, 2)), 'list': [torch.ones(2), (torch.zeros(1), torch.ones(1))],
    }


def views():
    base = torch.arange(60, dtype=torch.float32)
    tied = torch.randn(4, 4, dtype=torch.bfloat16)
    return {
        'slice': base[7:19].view(3, 4), 'transposed': base[:12].view(3, 4).t(), 'every_third': base[1::3],
        'expanded': base[5:6].expand(4), 'permuted': base.view(3, 4, 5).permute(2, 0, 1), 'whole': base,
        'tied.a': tied, 'tied.b': tied, 'scalar': torch.tensor(2.5), 'empty': torch.empty(0, 3),
        'one_row': torch.arange(8).view(2, 4)[1:],
    }


def wide():
    """Rows of more than 4 KiB, each in one piece, with something between them."""
    base = torch.arange(2 * 3 * 3000, dtype=torch.int16).view(2, 3, 3000)
    return {'rows': base[:, :2, 100:2600], 'swapped': base[:, :, :2100].transpose(0, 1)}


def flatten(value, prefix, out):
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    if isinstance(value, torch.Tensor):
        out[prefix] = value.detach().clone(memory_format=torch.contiguous_format).contiguous()
    for key, below in pairs:
        flatten(below, f'{prefix}.{key}' if prefix else str(key), out)
    return out


READ = {
    'dtypes': (dtypes(), {}),
    'model': (model().state_dict(), {}),
    'checkpoint': (checkpoint(), {}),
    'views': (views(), {}),
    'protocol4': (views(), {'pickle_protocol': 4}),
    'protocol5': (checkpoint(), {'pickle_protocol': 5}),
    'wide': (wide(), {}),
    'single': (torch.arange(6, dtype=torch.float32).view(2, 3), {}),
}
REFUSED = {
    'legacy': (views(), {'_use_new_zipfile_serialization': False}),
    'module': (model(), {}),
    'sparse': ({'s': torch.eye(3).to_sparse()}, {}),
    'complex': ({'c': torch.zeros(2, dtype=torch.complex64)}, {}),
    'function': ({'f': os.system}, {}),
}


def write_zip64(source, target):
    """The same archive with 64-bit sizes and offsets everywhere, as a file of more than 4 GiB has them."""
    zipfile.ZIP64_LIMIT = zipfile.ZIP_FILECOUNT_LIMIT = 1
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, 'w') as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))


def main(folder):
    for name, (value, how) in {**READ, **REFUSED}.items():
        torch.save(value, os.path.join(folder, name + '.pth'), **how)
    for name, (value, _) in READ.items():
        save_file(flatten(value, 'tensor' if isinstance(value, torch.Tensor) else '', {}), os.path.join(folder, name + '.safetensors'))
    write_zip64(os.path.join(folder, 'views.pth'), os.path.join(folder, 'zip64.pth'))


main(sys.argv[1])
