# SPDX-License-Identifier: Apache-2.0
"""What cairn diagnose answers to the failures that people report, on their machines, in their shells, with each kind of
PyTorch wheel: the class, what its steps set and take away, and what they must never do.

The machines are captures, the wheels trees of tests/tools/mktree.py."""
import functools
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tap

CAIRN, DATA = os.environ['CAIRN'], pathlib.Path(os.environ['CAIRN_TEST_DATA'])
OVERRIDE = 'HSA_OVERRIDE_GFX_VERSION'

MACHINES = {  # capture, the chip to train on, an integrated GPU beside it
    'desktop': ('sysfs-synthetic/gfx1031-gfx1036-rx6750xt-plus-igpu', 'gfx1031', 'gfx1036'),
    'rx6600': ('sysfs/gfx1032-gfx1036-rx6600-plus-raphael-igpu', 'gfx1032', 'gfx1036'),
    'halo': ('sysfs/gfx1151-strixhalo-aurora-112g-gtt', 'gfx1151', None),
    'xtx': ('sysfs/gfx1100-rx7900xtx-tinybox', 'gfx1100', None),
}

WHEELS = {  # of a chip: those with it, with a relative only, with neither, and AMD's for it alone
    'gfx1031': {'with': 'gfx1030,gfx1031,gfx1100', 'relative': 'gfx1030,gfx1100', 'neither': 'gfx1100,gfx1101',
                'alone': 'gfx1031'},
    'gfx1032': {'with': 'gfx1030,gfx1032,gfx1100', 'relative': 'gfx1030,gfx1100', 'neither': 'gfx1100,gfx1101',
                'alone': 'gfx1032'},
    'gfx1151': {'with': 'gfx1030,gfx1100,gfx1150,gfx1151', 'relative': 'gfx1030,gfx1100', 'neither': 'gfx1030,gfx942',
                'alone': 'gfx1151'},
    'gfx1100': {'with': 'gfx1030,gfx1100,gfx1101', 'relative': 'gfx1030,gfx1101', 'neither': 'gfx1030,gfx942',
                'alone': 'gfx1100'},
}
STANDS_IN = {'gfx1031': '10.3.0', 'gfx1032': '10.3.0', 'gfx1151': '11.0.0', 'gfx1100': '11.0.1'}

SHELLS = {
    'clean': {},
    'leftover 11.0.0': {OVERRIDE: '11.0.0', 'LD_LIBRARY_PATH': '/opt/rocm/lib', 'AMD_SERIALIZE_KERNEL': '3'},
    'name for a number': {OVERRIDE: 'gfx1031', 'HIP_VISIBLE_DEVICES': '0', 'CUDA_VISIBLE_DEVICES': '0',
                          'PYTORCH_HIP_ALLOC_CONF': 'expandable_segments:True'},
    'its own number': {OVERRIDE: '10.3.1', 'HIP_VISIBLE_DEVICES': '0'},
    'right for RDNA2': {OVERRIDE: '10.3.0'},
    'card chosen': {'ROCR_VISIBLE_DEVICES': '0'},
    'no caching': {'PYTORCH_NO_HIP_MEMORY_CACHING': '1', OVERRIDE: '11.0.0'},
}

INVALID_FUNCTION = 'RuntimeError: HIP error: invalid device function\n'
def tree(where, chip, kind):
    folder = where / f'{chip}-{kind}'
    if not folder.exists():
        alone = kind == 'alone'
        subprocess.run([sys.executable, '-B', DATA / '../tools/mktree.py', folder, '--targets', WHEELS[chip][kind],
                        '--torch', '2.10.0+rocm7.0' if not alone else '2.10.0+rocm7.10.0a20251120',
                        '--hip', '7.0.51831', '--layout', 'therock' if alone else 'wheel'], check=True)
    return folder / 'venv'


def diagnose(log, shell=None, options=()):
    env = {'PATH': '/usr/bin:/bin', 'HOME': '/nonexistent', **(shell or {})}
    p = subprocess.run([CAIRN, 'diagnose', '--json', *map(str, options), '-'], input=log, env=env, text=True,
                       capture_output=True, check=False)
    if p.returncode > 1:
        raise AssertionError(p.stderr)
    answer = json.loads(p.stdout)
    if '{' in answer['cause'] or any('{' in fix['text'] for fix in answer['fix']):
        raise AssertionError('a key is not filled in: ' + p.stdout)
    return answer


def on(machine, wheel, where):
    capture, chip, _ = MACHINES[machine]
    return ['--root', DATA / capture, '--torch', tree(where, chip, wheel)]


def rungs(answer):
    """("set", NAME, value) and ("unset", NAME) in the order of the ladder."""
    for fix in answer['fix']:
        for name, value in fix['set'].items():
            yield ('set', name, value)
        for name in fix['unset']:
            yield ('unset', name)


def place(answer, wanted):
    """The number of the first step that does, or whose text has, what is wanted; 99: none."""
    for i, fix in enumerate(answer['fix']):
        if isinstance(wanted, str) and wanted in fix['text']:
            return i
        if not isinstance(wanted, str) and wanted in list(rungs({'fix': [fix]})):
            return i
    return 99


def drops_override(answer):
    """Is there a step that takes the override away, and no more?"""
    return any(fix['unset'] == [OVERRIDE] and not fix['set'] for fix in answer['fix'])


def flaw(chip, wheel, value):
    """Is an override with this value the cause, on this wheel?"""
    targets = WHEELS[chip][wheel].split(',')
    if value is None or value == STANDS_IN[chip] and wheel == 'relative':
        return False
    named = 'gfx' + value.replace('.', '')
    if not all(part.isdigit() for part in value.split('.')):
        return True
    if named == chip:
        return False  # it changes nothing
    return named[:5] != chip[:5] or chip in targets or named not in targets


def what_is_missing(check, where):
    """"invalid device function": the wheel decides, and an override that is set and wrong."""
    for machine, wheel, shell in itertools.product(MACHINES, ('with', 'relative', 'neither', 'alone'), SHELLS):
        _, chip, igpu = MACHINES[machine]
        said = f'{machine}, wheel {wheel}, {shell}'
        answer = diagnose(INVALID_FUNCTION, SHELLS[shell], on(machine, wheel, where))
        bad = flaw(chip, wheel, SHELLS[shell].get(OVERRIDE))
        check(answer['class'] == ('hsa-override-bad' if bad else 'no-kernel-image'), f'{said}: {answer["class"]}')
        overrides = [r[2] for r in rungs(answer) if r[0] == 'set' and r[1] == OVERRIDE]
        needed = wheel == 'relative' and SHELLS[shell].get(OVERRIDE) != STANDS_IN[chip]
        check(overrides == ([STANDS_IN[chip]] if needed else []), f'{said}: sets {overrides}')
        carried = wheel in ('with', 'alone')
        if bad and carried:
            check(place(answer, ('unset', OVERRIDE)) == 0, f'{said}: the override is not the first to go')
        if bad and not carried: # without any override there is no code to run
            check(place(answer, f'unset {OVERRIDE}') == place(answer, 'pip install') == 0, f'{said}: no wheel without it')
        if not carried:
            check(not drops_override(answer), f'{said}: no code is left')
        check((place(answer, 'pip install') == 99) == carried, f'{said}: a wheel to install')
        if needed:
            check(place(answer, 'pip install') < place(answer, ('set', OVERRIDE, STANDS_IN[chip])),
                  f'{said}: the stop-gap stands before the wheel')
        hides = place(answer, ('set', 'ROCR_VISIBLE_DEVICES', '0')) < 99
        seen = igpu and not any('VISIBLE' in name for name in SHELLS[shell])
        check(hides == bool(seen) or bad, f'{said}: hides an integrated GPU: {hides}')


def the_integrated_gpu_has_to_be_proved(check, where):
    card = 'torch 2.9.1+rocm6.4\nDevice: cuda (ROCM: AMD Radeon RX 6750 XT)\n'
    tensile = 'rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: Illegal seek for GPU arch : '
    for wheel in ('with', 'relative', 'neither'):
        answer = diagnose(card + INVALID_FUNCTION, {}, on('desktop', wheel, where))
        check(answer['class'] == 'no-kernel-image', f'the log names the card: {answer["class"]}')
    answer = diagnose(tensile + 'gfx1031\n', {}, on('desktop', 'relative', where))
    check(answer['class'] == 'tensile-missing', f'for the card: {answer["class"]}')
    check(not any(fix['action'] == 'other-gpu' for fix in answer['fix']), 'hides a GPU that works')
    check(place(answer, ('set', OVERRIDE, '10.3.0')) < 99, 'no override')
    answer = diagnose(tensile + 'gfx1036\n', {}, on('desktop', 'relative', where))
    check(answer['class'] == 'wrong-gpu', f'for the integrated one: {answer["class"]}')
    check(next(rungs(answer)) == ('set', 'ROCR_VISIBLE_DEVICES', '0'), 'does not choose the card')
    # The environment leaves nothing but the integrated GPU.
    answer = diagnose(INVALID_FUNCTION, {'HIP_VISIBLE_DEVICES': '1'}, on('desktop', 'relative', where))
    check(answer['class'] == 'wrong-gpu', f'only the integrated one in sight: {answer["class"]}')
    check(list(rungs(answer))[:2] == [('set', 'ROCR_VISIBLE_DEVICES', '0'), ('unset', 'HIP_VISIBLE_DEVICES')],
          'two variables choose')
    for told, wanted in (('gfx1032+gfx1036', 'no-kernel-image'), ('gfx1100+gfx1036', 'wrong-gpu')):
        answer = diagnose(INVALID_FUNCTION, {}, ['--no-machine', '--gfx', told])
        check(answer['class'] == wanted, f'{told}: {answer["class"]}')
    answer = diagnose(INVALID_FUNCTION, {}, ['--no-machine', '--gfx', 'gfx1032+gfx1036'])
    check(answer['also'][0]['class'] == 'wrong-gpu', answer['also'])
    check(place(answer, ('set', OVERRIDE, '10.3.0')) < place(answer, ('set', 'ROCR_VISIBLE_DEVICES', '0')) < 99,
          'not both rungs')


def an_override_that_nobody_told_of(check, where):
    """PyTorch has the chip's code, by its version: the environment of the log is the first suspect."""
    for version, asks in (('2.10.0+rocm7.0', True), ('2.8.0+rocm6.4', False)):
        answer = diagnose(f'torch {version}\n' + INVALID_FUNCTION, {}, ['-n', '--gfx', 'gfx1151'])
        check((place(answer, 'env | grep') == 0) == asks, answer['fix'])
        check((place(answer, ('set', OVERRIDE, '11.0.0')) < 99) != asks, answer['fix'])
        check((place(answer, 'pip install') < 99) != asks, answer['fix'])


def a_chip_that_nobody_knows(check, where):
    answer = diagnose(INVALID_FUNCTION, {}, ['--no-machine'])
    check(answer['class'] == 'no-kernel-image', answer['class'])
    check(place(answer, '--gfx') < 99, 'does not ask for the chip')
    check(place(answer, OVERRIDE) < 99 and place(answer, 'wheels') < 99, 'names neither wheel nor override')
    check(not any(r[1] == OVERRIDE for r in rungs(answer)), 'sets an override for a chip that is not known')


STACK = """torch %s
Fatal Python error: Segmentation fault

Thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.12/threading.py", line 359 in wait

Current thread 0x00007f0000000000 (most recent call first):
  File "/home/user/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", line 125 in forward
  File "/home/user/train.py", line 12 in <module>
"""


def a_native_crash(check, where):
    """The stack of the log is used, and code that PyTorch carries is not replaced by another chip's."""
    for machine, wheel, shell in itertools.product(('halo', 'xtx', 'desktop'), ('with', 'relative', 'alone'), SHELLS):
        _, chip, _ = MACHINES[machine]
        options = ['--exit', '139', *on(machine, wheel, where)]
        version = '2.10.0+rocm7.10.0a20251120' if wheel == 'alone' else '2.10.0+rocm7.0'
        said = f'{machine}, wheel {wheel}, {shell}'
        for log in (STACK % version, 'Fatal Python error: Segmentation fault\n'):
            answer = diagnose(log, SHELLS[shell], options)
            value = SHELLS[shell].get(OVERRIDE)
            wrong = value and flaw(chip, wheel, value) and (value[:3] != chip[3:5] + '.' or not value[0].isdigit())
            check(answer['class'] == ('hsa-override-bad' if wrong else 'native-crash'), f'{said}: {answer["class"]}')
            if wheel != 'relative':
                check(not any(r[:2] == ('set', OVERRIDE) for r in rungs(answer)), f'{said}: sets an override')
            if value and wheel != 'relative':
                check(place(answer, ('unset', OVERRIDE)) < 99, f'{said}: keeps the override')
            if value and wheel == 'relative': # without any override there is no code to run
                check(not drops_override(answer), f'{said}: no code is left')
                check(place(answer, 'pip install') < 99, f'{said}: no wheel with the chip')
                fits = value == STANDS_IN[chip] or place(answer, ('set', OVERRIDE, STANDS_IN[chip])) < 99
                check(fits, f'{said}: not the value that fits')
            if wrong:
                continue
            has_stack = 'Current thread' in log
            check((place(answer, ('set', 'PYTHONFAULTHANDLER', '1')) == 99) == has_stack, f'{said}: asks for a stack')
            check(('torch/nn/modules/linear.py line 125 in forward' in answer['cause']) == has_stack, f'{said}: the frame')
            check('threading' not in answer['cause'], f'{said}: the stack of another thread')
            check(place(answer, 'unquantised') < 99, f'{said}: no word on quantised weights')


def a_path_that_leads_to_no_rocm_stays(check, where):
    tensile = 'rocBLAS error: Cannot read TensileLibrary.dat: Illegal seek for GPU arch : gfx1151\n'
    for log in ('Segmentation fault (core dumped)\n', tensile):
        for path, goes in (('/opt/rocm/lib', True), ('/usr/local/cuda/lib64:/home/user/lib', False)):
            answer = diagnose(log, {'LD_LIBRARY_PATH': path}, ['--exit', '139', *on('halo', 'with', where)])
            check((place(answer, ('unset', 'LD_LIBRARY_PATH')) < 99) == goes, f'{log!r}, {path}')


def a_library_that_crashes_while_it_starts(check, where):
    for call, library in (('rocblas_create_handle', 'rocBLAS'), ('miopenCreate', 'MIOpen')):
        answer = diagnose(f'Segmentation fault (core dumped)\n#4  0x00007f in {call} () from lib.so.4\n',
                          {'PYTORCH_NO_HIP_MEMORY_CACHING': '1'}, ['--exit', '139', *on('halo', 'with', where)])
        check(answer['class'] == 'native-crash' and call in answer['cause'] and library in answer['cause'], answer['cause'])
        check(next(rungs(answer)) == ('unset', 'PYTORCH_NO_HIP_MEMORY_CACHING'), list(rungs(answer)))
    answer = diagnose('Segmentation fault (core dumped)\nmiopenCreateConvolutionDescriptor\n', {}, ['-n', '--exit', '139'])
    check('starting' not in answer['cause'], answer['cause'])


def oom(want, total, free, used, unused):
    return (f'torch.OutOfMemoryError: HIP out of memory. Tried to allocate {want} GiB. GPU 0 has a total capacity of {total} '
            f'GiB of which {free} GiB is free. Of the allocated memory {used} GiB is allocated by PyTorch, and {unused} GiB '
            'is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting '
            'PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n')


def memory_that_is_reserved_and_unused(check, where):
    """On an APU as on a card: the ladder gives the sizes of blocks, and no sentence contradicts the figures."""
    for told in ('gfx1151', 'gfx1103', 'gfx1031', 'gfx1100'):
        answer = diagnose(oom('2.00', '64.00', '0.50', '40.51', '20.68'), {}, ['-n', '--gfx', told])
        check(answer['class'] == 'oom-fragmentation', f'{told}: {answer["class"]}')
        check('does not apply' not in answer['cause'], answer['cause'])
        sizes = [r[2].split('max_split_size_mb:')[1] for r in rungs(answer) if r[0] == 'set']
        check(sizes == ['512', '256', '128'], f'{told}: {sizes}')
    full = diagnose(oom('2.00', '24.00', '0.50', '23.00', '0.20'), {}, ['-n', '--gfx', 'gfx1100'])
    check(full['class'] == 'oom-vram' and 'does not apply' in full['cause'], full['cause'])
    silent = diagnose('HIP out of memory\n', {}, ['-n', '--gfx', 'gfx1100'])
    check(silent['class'] == 'oom-vram' and 'does not apply' not in silent['cause'], silent['cause'])


def the_limit_of_shared_memory(check, where):
    """The limit itself comes first, as a command where the machine is known."""
    full = oom('8.00', '62.00', '1.00', '60.00', '0.20')
    machine = where / 'halo'
    shutil.copytree(DATA / MACHINES['halo'][0], machine, symlinks=True)
    (machine / 'proc').mkdir(exist_ok=True)
    (machine / 'proc/meminfo').write_text('MemTotal: 131072000 kB\nMemFree: 1 kB\nMemAvailable: 100000000 kB\n')
    (machine / 'etc').mkdir(exist_ok=True)
    (machine / 'etc/os-release').write_text('ID=ubuntu\nVERSION_ID="24.04"\n')
    (machine / 'sys/module/ttm/parameters/pages_limit').write_text('16384000\n')
    answer = diagnose(full, {}, ['--root', machine])
    check(answer['class'] == 'oom-unified-limit', answer['class'])
    first = answer['fix'][0]
    check('ttm.pages_limit=28573696' in first['text'] and 'sudo ' in first['text'].split('\n', 1)[1], first)
    answer = diagnose(full, {}, ['-n', '--gfx', 'gfx1151'])
    check('ttm.pages_limit' in answer['fix'][0]['text'] and 'cairn doctor' in answer['fix'][0]['text'], answer['fix'][0])
    answer = diagnose(full, {}, ['--root', DATA / MACHINES['halo'][0]])
    check(place(answer, 'pages_limit') == 99, 'the limit is wide enough here')


SHARDS = '\rLoading checkpoint shards:   0%|          | 0/4 [00:00<?, ?it/s]'
STAGING = '--preload=+stage'


def weights_that_never_load(check, where):
    """Mapped weights come before interrupts, copy engines and MIOpen."""
    for log, stalled in ((SHARDS, True), (SHARDS + '\rLoading checkpoint shards: 100%|###| 4/4 [00:09<00:00, 2.2s/it]\n', False),
                         (SHARDS + '\nstep 1 loss 0.5\nstep 2 loss 0.4\n', False)):
        answer = diagnose('torch 2.10.0+rocm7.0\n' + log, {}, ['--exit', '124', *on('halo', 'with', where)])
        check(answer['class'] == 'hang', answer['class'])
        check((place(answer, STAGING) == 0) == stalled, f'staging is step {place(answer, STAGING)} of {log!r}')
        check('mapped' in answer['cause'] or not stalled, answer['cause'])
    answer = diagnose('step 1\n', {'PYTORCH_NO_HIP_MEMORY_CACHING': '1'}, ['--exit', '124', *on('halo', 'with', where)])
    check(place(answer, ('unset', 'PYTORCH_NO_HIP_MEMORY_CACHING')) < 99, 'an allocator without a cache')


def an_invalid_argument(check, where):
    log = 'torch.AcceleratorError: HIP error: invalid argument\n'
    leftover = SHELLS['leftover 11.0.0']
    for wheel in ('with', 'alone'):
        answer = diagnose(log, leftover, on('halo', wheel, where))
        order = [place(answer, STAGING), place(answer, ('unset', 'LD_LIBRARY_PATH')), place(answer, ('set', 'HSA_ENABLE_SDMA', '0'))]
        check(answer['class'] == 'hip-invalid-argument' and order == [0, 1, 2], f'{wheel}: {answer["class"]}, {order}')
    prepared = '  File "/venv/lib/python3.12/site-packages/accelerate/accelerator.py", line 1, in prepare\n' + log
    for text, named in ((prepared, True), (log, False)):
        answer = diagnose(text, {}, on('halo', 'with', where))
        check((place(answer, 'device_placement') < 99) == named, 'a word on Accelerate')
    for path in (None, '/usr/local/lib'):
        answer = diagnose(log, {'LD_LIBRARY_PATH': path} if path else {}, on('halo', 'with', where))
        check(place(answer, ('unset', 'LD_LIBRARY_PATH')) == 99, f'takes {path} away')
        check(place(answer, ('set', 'HSA_ENABLE_SDMA', '0')) == 1, 'the copy engines')


LINUX_WORDS = ('sudo', 'dmesg', 'docker', 'container', '/dev/', '/etc/', 'export ', 'cairn run', 'cairn doctor', 'ttm.',
               'amdgpu.', 'rocminfo', 'usermod', 'kernel parameter', 'python3 ', '.venv/bin')
POWERSHELL = 'PS C:\\toolkit> $env:HSA_OVERRIDE_GFX_VERSION = "11.0.0"\nPS C:\\toolkit> python run.py wan22.yaml\n'
WINDOWS = [  # the log, the class, what is proposed
    ('ROCm driver crash (0xC0000005)\n  rocblas_create_handle()\n', 'native-crash', None),
    ('Process finished with exit code -1073741819 (0xC0000005)\n', 'native-crash', None),
    ('exit code 0xC0000409\n', 'native-crash', None),
    ('exit code 0xc0000374\n', 'native-crash', None),
    ('exited with code -1073741795\n', 'native-crash', None),
    ('exited with 3221225781\n', 'lib-load', 'Visual C++'),
    ('OSError: [WinError 1455] The paging file is too small for this operation to complete\n', 'host-oom', 'paging file'),
    ('OSError: [WinError 1455] Die Auslagerungsdatei ist zu klein\n', 'host-oom', 'paging file'),
    ('Error: (os error 1455)\n' + POWERSHELL, 'host-oom', 'paging file'),
    (POWERSHELL + INVALID_FUNCTION, 'no-kernel-image', 'device-gfx1151'),
    (POWERSHELL + 'RuntimeError: HIP error: invalid argument\n', 'hip-invalid-argument', ('set', 'PAL_DISABLE_SDMA', '1')),
    (POWERSHELL + oom('2.00', '64.00', '0.50', '40.51', '20.68'), 'oom-fragmentation', None),
    (POWERSHELL + oom('8.00', '62.00', '1.00', '60.00', '0.20'), 'oom-unified-limit', 'Adrenalin'),
    (POWERSHELL + 'RuntimeError: No HIP GPUs are available\n', 'no-device', 'Adrenalin'),
    (POWERSHELL + 'RuntimeError: HIP error: unspecified launch failure\n', 'gpu-reset', 'TdrDelay'),
    (POWERSHELL + 'AssertionError: Torch not compiled with CUDA enabled\n', 'torch-not-rocm', 'device-gfx1151'),
    (POWERSHELL + 'OSError: [Errno 28] No space left on device\n', 'disk-full', None),
    (POWERSHELL + 'Memory access fault by GPU node-1 on address 0x1e4000. Reason: Page not present\n', 'gpu-memory-fault', None),
    (POWERSHELL + 'something else\n', None, None),
]


# What the failures look like that trainers of video LoRAs on an RX 6750 XT and on a Strix Halo meet most: the log, the
# class, and the class where PyTorch carries the chip and nothing is left over in the shell.
MESSAGES = [
    (INVALID_FUNCTION, 'no-kernel-image'),
    ('  File "accelerate/accelerator.py", line 1, in prepare_model\n    model = model.to(self.device)\n'
     'RuntimeError: HIP error: invalid argument\n', 'hip-invalid-argument'),
    (oom('2.00', '64.00', '0.50', '40.51', '20.68'), 'oom-fragmentation'),
    ('Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n'
     '  File "torch/nn/modules/linear.py", line 125 in forward\nin rocblas_create_handle\n', 'native-crash'),
    ('bitsandbytes library load error: Configured ROCm binary not found at libbitsandbytes_rocm64.so\n'
     'RuntimeError: bitsandbytes was compiled without GPU support\n', 'bitsandbytes-no-rocm'),
    ('Error: latents contain NaN\n{\'loss\': nan, \'grad_norm\': nan}\n', 'numerics-nan'),
]


def every_message_on_every_machine(check, where):
    """Each message, machine and wheel, as printed by a shell of Linux and by PowerShell: the class is right, an override is
    set only where the wheel lacks the chip and has its stand-in, and Windows gets nothing that it does not read."""
    for (log, wanted), machine, wheel in itertools.product(MESSAGES, MACHINES, WHEELS['gfx1151']):
        chip = MACHINES[machine][1]
        linux = diagnose(log, {}, [*on(machine, wheel, where), '--exit', '1'])
        windows = diagnose(POWERSHELL + log, {}, [*on(machine, wheel, where), '--exit', '1'])
        for answer, system in ((linux, 'sh'), (windows, 'PowerShell')):
            told = f'{log!r} {machine} {wheel} {system}: {answer["class"]} {list(rungs(answer))}'
            check(answer['class'] == wanted or (wheel == 'with' and wanted == 'no-kernel-image'), told)
            values = [r[2] for r in rungs(answer) if r[:2] == ('set', OVERRIDE)]
            fits = system == 'sh' and wheel == 'relative' and values == [STANDS_IN[chip]]
            check(not values or fits, told)
        check(not any(r[1].startswith(('HSA_', 'ROCR_', 'LD_')) for r in rungs(windows)), list(rungs(windows)))


def logs_of_windows(check, where):
    """They get answers for Windows, whatever machine cairn runs on."""
    for options in (['-n', '--gfx', 'gfx1151'], ['--gfx', 'gfx1151', '--root', DATA / MACHINES['halo'][0]]):
        for log, wanted, step in WINDOWS:
            answer = diagnose(log, {}, options)
            check(wanted in (None, answer['class']), f'{log!r}: {answer["class"]}')
            texts = [answer['cause'], *(fix['text'] for fix in answer['fix'])]
            check(not any(word in text for text in texts for word in LINUX_WORDS), f'{log!r}: {texts}')
            check(not any(r[1].startswith(('HSA_', 'ROCR_', 'LD_', 'CAIRN_')) for r in rungs(answer)), list(rungs(answer)))
            check(step is None or place(answer, step) < 99, f'{log!r}: no {step}')


def what_to_type_on_windows(check, where):
    def text(log):
        return subprocess.run([CAIRN, 'diagnose', '-n', '--gfx', 'gfx1151', '-'], input=log, env={}, text=True,
                              capture_output=True, check=True).stdout
    said = text(POWERSHELL + oom('2.00', '64.00', '0.50', '40.51', '20.68'))
    check("$env:PYTORCH_HIP_ALLOC_CONF = 'garbage" in said and 'export ' not in said, said)
    said = text(POWERSHELL + '$env:PYTORCH_NO_HIP_MEMORY_CACHING = "1"\nexit code 0xC0000005\n')
    check('Env:PYTORCH_NO_HIP_MEMORY_CACHING' in said and 'unset ' not in said, said)
    check(not any(line.endswith('\\') for line in said.splitlines()), said)
    said = text('HSA_OVERRIDE_GFX_VERSION=9.0.0\n/home/user/train.py\nSegmentation fault (core dumped)\n')
    check('unset HSA_OVERRIDE_GFX_VERSION' in said, said)


def exit_statuses_of_windows(check, where):
    for code in ('3221225477', '0xC0000005', '0xc0000005', '-1073741819'):
        answer = diagnose('step 1\n', {}, ['-n', f'--exit={code}'])
        check(answer['class'] == 'native-crash' and 'exit status 3221225477 (0xC0000005)' in answer['facts_used'], answer)
        check(not any(r[1].startswith('HSA_') for r in rungs(answer)), list(rungs(answer)))
    for code in ('-1', '0x', '0xG', '-5000000000', '0x1FFFFFFFF', '-1073741819x'):
        p = subprocess.run([CAIRN, 'diagnose', '-n', f'--exit={code}', '-'], input='', text=True, capture_output=True, check=False)
        check(p.returncode == 2 and not p.stdout, f'{code}: {p.returncode}')


def flash_attn_that_is_not_there(check, where):
    for log in ('ImportError: FlashAttention2 has been toggled on, but it cannot be used due to the following error: the package '
                'flash_attn seems to be not installed.\n', "ModuleNotFoundError: No module named 'flash_attn'\n"):
        answer = diagnose(log, {}, ['-n', '--exit', '1'])
        check(answer['class'] == 'attention-experimental' and place(answer, 'sdpa') == 0, answer)
        check(not any(r[1] == 'TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL' for r in rungs(answer)), 'AOTriton is another matter')
    answer = diagnose(POWERSHELL + log, {}, ['-n', '--exit', '1'])
    check(place(answer, 'FLASH_ATTENTION_TRITON_AMD_ENABLE') == 99, 'a build for Linux')


def a_malformed_override(check, where):
    """Another PyTorch alone does not help while the value is there."""
    for machine in ('desktop', 'halo'):
        _, chip, _ = MACHINES[machine]
        answer = diagnose('RuntimeError: No HIP GPUs are available\n', {OVERRIDE: chip}, on(machine, 'relative', where))
        check(answer['class'] == 'hsa-override-bad', f'{machine}: {answer["class"]}')
        check(place(answer, ('set', OVERRIDE, STANDS_IN[chip])) < 99, f'{machine}: {answer["fix"]}')
        texts = [fix['text'] for fix in answer['fix']]
        check(all(f'unset {OVERRIDE}' in t for t in texts if 'pip install' in t), f'{machine}: {texts}')
        check(len(set(texts)) == len(texts), f'{machine}: a step twice')


def a_chip_without_a_wheel(check, where):
    for gfx, first in (('gfx803', 0), ('gfx1010', 99), ('gfx1031', 99), ('gfx1100', 99)):
        answer = diagnose(INVALID_FUNCTION, {}, ['-n', '--gfx', gfx])
        check(answer['class'] == 'no-kernel-image' and place(answer, 'cairn gpu --chips') == first, f'{gfx}: {answer["fix"]}')


def attention_of_other_packages(check, where):
    """Each of them is another way to what PyTorch does by itself."""
    for log in ("ModuleNotFoundError: No module named 'xformers'\n", "ModuleNotFoundError: No module named 'sageattention'\n",
                'ImportError: No xformers / xformers\n',
                'ModuleNotFoundError: Refer to https://github.com/facebookresearch/xformers for more information on how to install '
                'xformers\n',
                'NotImplementedError: No operator found for `memory_efficient_attention_forward` with inputs:\n'):
        answer = diagnose(log, {}, ['-n', '--gfx', 'gfx1100', '--exit', '1'])
        check(answer['class'] == 'attention-experimental' and place(answer, 'sdpa') == 0, f'{log!r}: {answer["class"]}')
        check(not any(r[1] == 'TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL' for r in rungs(answer)), f'{log!r}: AOTriton')
        check(place(answer, 'FLASH_ATTENTION_TRITON_AMD_ENABLE') == 99, f'{log!r}: flash-attn')
    went_on = "xformers is not available, sdpa is used\nstep 10/10 loss 0.1\nmodel saved to out/last.safetensors\n"
    check(diagnose(went_on, {}, ['-n', '--gfx', 'gfx1100', '--exit', '0'])['class'] == 'no-failure', 'it went on')


def triton_that_is_not_there(check, where):
    for log in ("ModuleNotFoundError: No module named 'triton'\n",
                'torch._inductor.exc.TritonMissing: Cannot find a working triton installation.\n'):
        answer = diagnose(log, {}, ['-n', '--gfx', 'gfx1100', '--exit', '1'])
        check(answer['class'] == 'triton-compile' and place(answer, 'pip install') == 0, answer)
        check(place(answer, 'num_stages') == 99 and place(answer, 'TRITON_HIP_LLD_PATH') == 99, answer['fix'])
    answer = diagnose('torch._inductor.exc.InductorError: out of resource: shared memory\n', {}, ['-n', '--gfx', 'gfx1100'])
    check(place(answer, 'pip install') == 99 and place(answer, 'num_stages') < 99, answer['fix'])


def headers_that_are_missing(check, where):
    """The package comes first, and the compiler's line is quoted."""
    miopen = ("MIOpen(HIP): Error [Compile] 'hiprtcCompileProgram' naive_conv.cpp: HIPRTC_ERROR_COMPILATION (6)\n"
              "/tmp/comgr-1/input/naive_conv.cpp:12:10: fatal error: 'type_traits' file not found\n"
              'RuntimeError: miopenStatusUnknownError\n')
    triton = ("torch._inductor.exc.InductorError: CalledProcessError: Command '['/usr/bin/gcc', '/tmp/b12/main.c', '-O3']' "
              'returned non-zero exit status 1.\n/tmp/b12/main.c:4:10: fatal error: Python.h: No such file or directory\n')
    for log, wanted, package in ((miopen, 'miopen-failure', 'libstdc++'), (triton, 'triton-compile', 'python3-dev')):
        answer = diagnose(log, {}, ['-n', '--gfx', 'gfx1151', '--exit', '1'])
        check(answer['class'] == wanted and place(answer, package) == 0, answer['fix'][0])
        check('fatal error' in answer['evidence'][0]['text'] and answer['evidence'][0]['line'] == 2, answer['evidence'])
    answer = diagnose(miopen.replace('fatal error', 'x'), {}, ['-n', '--gfx', 'gfx1151'])
    check(place(answer, 'libstdc++') == 99 and place(answer, ('set', 'MIOPEN_DEBUG_CONV_DIRECT', '0')) < 99, answer['fix'])
    answer = diagnose(miopen, {}, ['-n', '--gfx', 'gfx1100'])
    check(place(answer, ('set', 'MIOPEN_DEBUG_CONV_DIRECT', '0')) == 99, 'a solver that fails on another chip')
    check(place(answer, 'mv ~/.cache/miopen') < 99, 'no command that moves the caches')


def no_gpu_at_all(check, where):
    log = '>>> torch.cuda.is_available()\nFalse\n'
    answer = diagnose("'2.9.1+rocm6.4'\n" + log, {}, ['-n'])
    order = [place(answer, text) for text in ('cairn doctor', 'usermod', 'docker')]
    check(answer['class'] == 'no-device' and order[0] == 0 and order == sorted(order), f'{answer["class"]} {order}')
    answer = diagnose(log, {}, ['--root', DATA / MACHINES['desktop'][0]])
    check(place(answer, 'docker') == 99, 'a container, though there is none')


def words_of_both_vendors(check, where):
    """Where nothing says whose GPU it is, the answer is no more sure than that."""
    for log, wanted in (('RuntimeError: CUDA error: invalid device ordinal\n', 'visible-devices'),
                        ('RuntimeError: CUDA error: no kernel image is available for execution on the device\n', 'no-kernel-image')):
        answer = diagnose(log, {}, ['-n', '--exit', '1'])
        check(answer['class'] == 'not-rocm' and answer['confidence'] < 0.65, answer['confidence'])
        check(answer['also'][0]['class'] == wanted and place(answer, '--gfx') < 99, answer['also'])
        sure = diagnose('NVIDIA GeForce RTX 3090\n' + log, {}, ['-n', '--exit', '1'])
        check(sure['class'] == 'not-rocm' and sure['confidence'] > 0.7 and place(sure, '--gfx') == 99, sure)
        check(diagnose(log, {}, ['-n', '--gfx', 'gfx1100', '--exit', '1'])['class'] == wanted, 'on an AMD GPU')
    nccl = ('torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled cuda error (run with '
            'NCCL_DEBUG=INFO for details), NCCL version 2.21.5\nncclUnhandledCudaError: Call to CUDA function failed.\n')
    answer = diagnose(nccl, {}, ['-n', '--exit', '1'])
    check('rccl-error' in (answer['class'], answer['also'][0]['class']) and answer['confidence'] < 0.85, answer)
    answer = diagnose('RuntimeError: [../third_party/gloo/gloo/transport/tcp/device.cc:85] Unable to find address for: node1\n',
                      {}, ['-n', '--exit', '1'])
    check(place(answer, 'GLOO_SOCKET_IFNAME') < 99, answer['fix'])


def the_exception_is_the_evidence(check, where):
    quoted = ('Traceback (most recent call last):\n  File "/home/user/train.py", line 12, in <module>\n'
              '    raise RuntimeError("HIP error: invalid device function\\nHIP kernel errors might be")\n')
    answer = diagnose(quoted + INVALID_FUNCTION, {}, ['-n', '--gfx', 'gfx1031'])
    check([e['line'] for e in answer['evidence']] == [4], answer['evidence'])
    answer = diagnose(quoted, {}, ['-n', '--gfx', 'gfx1031'])
    check([e['line'] for e in answer['evidence']] == [3], answer['evidence'])


CASES = [
    every_message_on_every_machine,
    what_is_missing,
    the_integrated_gpu_has_to_be_proved,
    an_override_that_nobody_told_of,
    a_chip_that_nobody_knows,
    flash_attn_that_is_not_there,
    a_malformed_override,
    a_chip_without_a_wheel,
    attention_of_other_packages,
    triton_that_is_not_there,
    headers_that_are_missing,
    no_gpu_at_all,
    words_of_both_vendors,
    the_exception_is_the_evidence,
    logs_of_windows,
    what_to_type_on_windows,
    exit_statuses_of_windows,
    weights_that_never_load,
    an_invalid_argument,
    memory_that_is_reserved_and_unused,
    the_limit_of_shared_memory,
    a_native_crash,
    a_library_that_crashes_while_it_starts,
    a_path_that_leads_to_no_rocm_stays,
]


def findings_of(case, where):
    @functools.wraps(case)
    def run():
        wrong = []
        case(lambda fine, said: fine or wrong.append(said), where)
        return wrong
    return run


def main():
    with tempfile.TemporaryDirectory() as folder:
        tap.run([findings_of(case, pathlib.Path(folder)) for case in CASES])


if __name__ == '__main__':
    main()
