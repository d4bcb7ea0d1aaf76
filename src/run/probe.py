# SPDX-License-Identifier: Apache-2.0
"""Run by `cairn doctor --probe` in a child process: what PyTorch really does on this machine.

Arguments: the folder that torch is to come from, and the parent's process id.  On descriptor 3 goes one JSON
object a line: {"stage": …} before each step, so that a crash can be placed, and the whole result last.
Works with torch 1.13 and later, on ROCm, on CUDA, and without a GPU; needs nothing but torch.
"""
import sys

# With -c Python looks into the working folder first, which may be a clone of anything: a json.py there is not json.
# (-P is Python 3.11's; -I would leave out the user's packages.)
if sys.path and sys.path[0] == '':
    del sys.path[0]
import ctypes
import json
import os
import resource
import signal

RESULT_FD = 3
COUNT = 65536
PR_SET_PDEATHSIG = 1


def tell(value):
    data = (json.dumps(value) + '\n').encode()
    while data:
        data = data[os.write(RESULT_FD, data):]


def die_with_parent(parent):
    """Nothing may be left running, even if cairn is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def short(error):
    lines = str(error).strip().splitlines()
    return '%s: %s' % (type(error).__name__, lines[0] if lines else '')


def is_nan(bits, kind):
    limit = {'f32': 0x7f800000, 'f16': 0x7c00, 'bf16': 0x7f80}[kind]
    return bits & (0x7fffffff if kind == 'f32' else 0x7fff) > limit


def signed(bits, width):
    return bits - (1 << width) if bits >> (width - 1) else bits


class Conversions:
    """Every 16-bit pattern, converted on the device and on the CPU, compared bit for bit (a NaN is a NaN)."""

    def __init__(self, torch, device):
        self.torch, self.device = torch, device
        self.dtype = {'f32': torch.float32, 'f16': torch.float16, 'bf16': torch.bfloat16}

    def values(self, kind):
        torch = self.torch
        if kind != 'f32':
            return torch.tensor([signed(i, 16) for i in range(COUNT)], dtype=torch.int16).view(self.dtype[kind])
        # The upper half takes every value; the lower one meets ties, their neighbours and both ends.
        low = (0x0000, 0x0001, 0x7fff, 0x8000, 0x8001, 0xffff, 0x4000, 0xc000)
        words = [signed(i << 16 | low[i % len(low)], 32) for i in range(COUNT)]
        return torch.tensor(words, dtype=torch.int32).view(torch.float32)

    def bits(self, tensor, kind):
        wide = kind == 'f32'
        mask = 0xffffffff if wide else 0xffff
        ints = tensor.view(self.torch.int32 if wide else self.torch.int16)
        return [v & mask for v in ints.tolist()]

    def check(self, name, source, target, on_device):
        values = self.values(source)
        want = self.bits(values.to(self.dtype[target]), target)
        got = self.bits(on_device(values, self.dtype[target]), target)
        wrong = [i for i in range(COUNT)
                 if got[i] != want[i] and not (is_nan(got[i], target) and is_nan(want[i], target))]
        zeros = sum(1 for i in wrong if got[i] & 0x7fffffff == 0)
        first = None
        if wrong:
            i = wrong[0]
            first = 'input 0x%04x: got 0x%x, want 0x%x' % (i, got[i], want[i])
        return {'name': name, 'tested': len(got), 'wrong': len(wrong), 'zeros': zeros, 'first': first}

    def to(self, values, dtype):
        return values.to(self.device).to(dtype).cpu()

    def all(self):
        return (
            ('bf16 to f32 by .to()', 'bf16', 'f32', self.to),
            ('bf16 to f32 by .float()', 'bf16', 'f32', lambda v, _: v.to(self.device).float().cpu()),
            ('bf16 to f32 on the CPU after a copy', 'bf16', 'f32', lambda v, _: v.to(self.device).cpu().float()),
            ('bf16 to f16', 'bf16', 'f16', lambda v, _: v.to(self.device).half().cpu()),
            ('f32 to bf16', 'f32', 'bf16', self.to),
            ('f16 to bf16', 'f16', 'bf16', self.to),
        )


def matmul(torch, device, name, dtype, size=64):
    """Small whole numbers, so that every type must give the exact product."""
    a = [[(7 * i + 3 * k) % 5 - 2 for k in range(size)] for i in range(size)]
    b = [[(5 * k + 11 * j) % 7 - 3 for j in range(size)] for k in range(size)]
    want = [sum(a[i][k] * b[k][j] for k in range(size)) for i in range(size) for j in range(size)]
    x = torch.tensor(a, dtype=torch.float32).to(dtype).to(device)
    y = torch.tensor(b, dtype=torch.float32).to(dtype).to(device)
    got = torch.matmul(x, y).to(torch.float32).cpu().reshape(-1).tolist()
    wrong = sum(1 for g, w in zip(got, want) if g != w)
    return {'name': name, 'tested': len(want), 'wrong': wrong}


def attempt(out, stage, step):
    """Runs a step; a failure is part of the result, not the end."""
    tell({'stage': stage})
    try:
        step(out)
        return True
    except Exception as error:  # whatever the step meets is what the probe is after
        out['errors'].append({'stage': stage, 'error': short(error)})
        return False


def import_torch(out):
    import torch
    out['torch'] = torch.__version__
    out['where'] = os.path.dirname(os.path.dirname(torch.__file__ or ''))
    out['hip'] = getattr(torch.version, 'hip', None)
    out['cuda'] = getattr(torch.version, 'cuda', None)


def import_accelerate(out):
    import accelerate
    out['accelerate'] = accelerate.__version__
    out['accelerate_device'] = str(accelerate.Accelerator().device)


def ask_device(out):
    import torch
    out['available'] = bool(torch.cuda.is_available())
    out['archs'] = [str(a) for a in torch.cuda.get_arch_list()]
    if not out['available']:
        return
    out['count'] = torch.cuda.device_count()
    out['device'] = torch.cuda.get_device_name(0)
    properties = torch.cuda.get_device_properties(0)
    out['total_bytes'] = int(properties.total_memory)
    name = getattr(properties, 'gcnArchName', None) if out['hip'] else None
    if out['hip']:
        out['target'] = name.split(':')[0] if name else None
    else:
        out['target'] = 'sm_%d%d' % torch.cuda.get_device_capability(0)


def convert(out):
    import torch
    conversions = Conversions(torch, 'cuda')
    for row in conversions.all():
        attempt(out, row[0], lambda o, r=row: o['conversions'].append(conversions.check(*r)))


def multiply(out):
    import torch
    for name, dtype in (('f32', torch.float32), ('f16', torch.float16), ('bf16', torch.bfloat16)):
        # A bf16 result has eight bits, so a smaller sum keeps it whole.
        size = 64 if name != 'bf16' else 16
        attempt(out, 'matmul in ' + name, lambda o: o['matmul'].append(matmul(torch, 'cuda', name, dtype, size)))
    torch.cuda.synchronize()


def main(site, parent):
    die_with_parent(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if site and site not in sys.path:
        sys.path.insert(0, site)
    out = {'python': '%d.%d.%d' % sys.version_info[:3], 'available': None, 'conversions': [], 'matmul': [], 'errors': []}
    if attempt(out, 'import torch', import_torch):
        if attempt(out, 'looking for a device', ask_device) and out['available']:
            attempt(out, 'converting', convert)
            attempt(out, 'multiplying', multiply)
        attempt(out, 'import accelerate', import_accelerate)
    out['stage'] = 'done'
    tell(out)


main(sys.argv[1], int(sys.argv[2]))
