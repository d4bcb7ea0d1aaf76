# SPDX-License-Identifier: Apache-2.0
"""`cairn train` and `cairn plan` when memory is short, on a fake GPU with memory of its own, and on the CPU."""
import json
import subprocess
import tempfile

import tap
from training import Home, differences, fake

JOB = {'train__steps': 4, 'train__device': 'hip:0', 'train__batch': 4, 'model__context': 8, 'model__layers': 4,
       'checkpoint__every': 2}
LORA = {**JOB, 'lora__rank': 2}
CLOSE = 1e-3
DIRECT = {'CAIRN_POOL': 'direct'}  # each piece by itself
CACHE = tempfile.TemporaryDirectory(prefix='cairn-cache-')


def run(home, name, told='', env=None, **keys):
    return home.train(name, env={**fake(home, told), 'XDG_CACHE_HOME': CACHE.name, **(env or {})}, **keys)


def far(home, name, other, steps=4):
    """Losses that are not those of an undisturbed run."""
    pairs = list(zip(home.losses(name), home.losses(other)))
    return len(pairs) != steps or any(abs(a - b) > CLOSE for a, b in pairs)


def every_allocation_may_fail():
    """Whichever it is, something gives way and the run comes to its end with the same losses."""
    keys = {**JOB, 'train__steps': 2, 'checkpoint__every': 1, 'eval__every': 1, 'sample__every': 1, 'sample__tokens': 2,
            'model__layers': 1}
    told = []
    with Home() as home:
        run(home, 'whole', **keys)
        for n in range(1, 100):
            done = run(home, f'at-{n}', f'fail=hipMalloc:{n}:2', DIRECT, **keys)
            told.append('out of memory' in done.stderr)
            if done.returncode or far(home, f'at-{n}', 'whole', 2):
                yield f'allocation {n}: exit {done.returncode}: {done.stderr}'
            if not any(told[-2:]):
                break
        if sum(told) < 10:
            yield f'only {sum(told)} of them were noticed'


def no_step_is_taken_twice():
    """Want of memory that comes from a launch, which may be one that moves weights: such a step is taken up again from the last checkpoint."""
    keys = {**JOB, 'train__steps': 3, 'checkpoint__every': 1, 'checkpoint__async': 'false', 'model__layers': 1,
            'memory__optimizer': 'host', 'train__warmup': 0}
    starts = 0
    with Home() as home:
        run(home, 'whole', **keys)
        for n in [30] + list(range(95, 180)): # a step has some 50 launches, its last ones move weights
            name = f'at-{n}'
            done = run(home, name, f'fail=hipModuleLaunchKernel:{n}:2,unless=CAIRN_TRAIN_RESTARTS', **keys)
            starts += done.stderr.count('restarting from')
            if done.returncode or far(home, name, 'whole', 3):
                yield f'launch {n}: exit {done.returncode}: {done.stderr}'
            if starts == 2:
                break
        if not starts:
            yield 'no launch that moves weights was met'


def parts_on_the_host_change_no_bit():
    with Home() as home:
        run(home, 'near', **JOB)
        run(home, 'near-lora', train__recompute='blocks', **LORA)
        for name, keys, like in (('optimizer', {**JOB, 'memory__optimizer': 'host'}, 'near'),
                                 ('low', {**LORA, 'memory__low_vram': 'true'}, 'near-lora')):
            done = run(home, name, **keys)
            if done.returncode or 'of host memory: ' not in done.stderr:
                yield f'{name}: exit {done.returncode}: {done.stderr}'
            yield from differences(home, name, like, 4)
        with open(home.checkpoint('low', 4) + '/state.json', encoding='utf-8') as f:
            state = json.load(f)
        if not (state['optimizer_on_host'] and state['blocks_on_host'] and state['recompute']):
            yield state


def pinned_memory_may_be_refused():
    """Where none can be had, ordinary memory does."""
    keys = {**JOB, 'memory__optimizer': 'host'}
    with Home() as home:
        run(home, 'pinned', **keys)
        done = run(home, 'refused', 'pinned=1', **keys)
        if done.returncode or done.stderr.count('pageable memory') != 1:
            yield f'exit {done.returncode}: {done.stderr}'
        yield from differences(home, 'refused', 'pinned', 4)


def what_went_to_the_host_comes_back():
    """The device has no room when the step's memory is taken, and has it again later."""
    with Home() as home:
        run(home, 'whole', **JOB)
        for n in range(1, 40):
            done = run(home, f'at-{n}', f'fail=hipMalloc:{n}:2', DIRECT, **JOB)
            if 'offloading the optimizer' in done.stderr:
                break
        if 'back to the device' not in done.stderr or done.returncode:
            yield f'exit {done.returncode}: {done.stderr}'
        if 'memory-back' not in [line.get('event') for line in home.log(f'at-{n}')]:
            yield 'the log does not tell'
        yield from differences(home, f'at-{n}', 'whole', 4)


def what_the_device_does_not_take_stays():
    """Copies of more than so many bytes fail: too few for the large matrices of the blocks, which then come in smaller pieces."""
    keys = {**LORA, 'lora__rank': 1, 'lora__targets': '*attn*', 'model__width': 64, 'model__ffn': 1024, 'model__layers': 4}
    with Home() as home:
        run(home, 'whole', **keys)
        done = run(home, 'kept', 'copy=60000', **keys)
        if done.returncode or done.stderr.count('upload refused') != 1 or \
                done.stderr.count('cannot move offloaded memory back') != 1:
            yield f'exit {done.returncode}: {done.stderr}'
            return
        if 'part-on-host' not in [line.get('event') for line in home.log('kept')]:
            yield 'the log does not tell'
        yield from differences(home, 'kept', 'whole', 4)


def plan(home, *options, **keys):
    command = home.command('plan', *options, **keys)
    command[1] = 'plan'
    return subprocess.run(command, env=home.environment({**fake(home), 'XDG_CACHE_HOME': CACHE.name}), cwd=home.path, text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=60, check=False)


def the_plan_is_what_is_taken():
    jobs = {'gpu': {**JOB, 'train__optimizer': 'adamw8'}, 'cpu': {**JOB, 'train__device': 'cpu'},
            'cpu and much attention': {**JOB, 'train__device': 'cpu', 'model__context': 256, 'model__layers': 1}, 'low': {**LORA, 'memory__low_vram': 'true'},
            'rope and int8': {**LORA, 'model__position': 'rope', 'model__mlp': 'swiglu', 'model__quantize': 'int8'}}
    with Home() as home:
        for name, keys in jobs.items():
            keys = {**keys, 'model__width': 32, 'train__steps': 2, 'sample__every': 1, 'sample__tokens': 2}
            found = plan(home, '--json', **keys)
            if found.returncode:
                yield f'{name}: {found.stderr}'
                continue
            planned = json.loads(found.stdout)
            if sum(p['device_bytes'] for p in planned['parts']) != planned['device_bytes'] or not planned['fits']:
                yield planned
            run(home, name, **keys)
            taken = home.log(name)[-1]['mem_peak_bytes']
            if not 0.95 <= planned['device_bytes'] / taken <= 1.05:
                yield f'{name}: {planned["device_bytes"]} planned, {taken} taken'


def a_plan_for_a_gpu_that_is_absent():
    """It has the parts of a plan on the GPU itself; only libraries may take more."""
    with Home() as home:
        for keys in JOB, LORA, {**LORA, 'memory__low_vram': 'true', 'model__quantize': 'int8'}:
            here = json.loads(plan(home, '--json', **keys).stdout)
            there = json.loads(plan(home, '--json', '--gfx', 'gfx1100', '--memory', '8', **keys).stdout)
            one, other = ({p['name']: p for p in d['parts']} for d in (here, there))
            works = [d.pop('work')['device_bytes'] for d in (one, other)]
            if one != other or here['storage'] != there['storage'] or not 0 <= works[1] - works[0] <= 64 << 20:
                yield f'{here}, {there}'


def a_limit_is_kept():
    """Less and less: what gives way is said in its order, and the last is an error before anything is begun."""
    rungs = (({'memory__optimizer': 'host'}, 'offloading the optimizer'),
             ({'train__recompute': 'blocks'}, 'gradient checkpointing'),
             ({'train__batch': 2, 'train__accumulate': 2}, 'micro-batches of 2 samples'))
    keys, asked = {**JOB, 'model__width': 64}, {}
    with Home() as home:
        run(home, 'whole', **keys)
        for i, (more, words) in enumerate(rungs):
            asked.update(more)
            enough = json.loads(plan(home, '--json', **{**keys, **asked}).stdout)['device_bytes'] * 1.03
            done = run(home, f'limit-{i}', '', DIRECT, memory__limit=enough / 2**30, **keys)
            if done.returncode or words not in done.stderr or 'out of memory' in done.stderr or \
                    any(later in done.stderr for _, later in rungs[i + 1:]):
                yield f'{words}: exit {done.returncode}: {done.stderr}'
            elif home.log(f'limit-{i}')[-1]['mem_peak_bytes'] > enough or far(home, f'limit-{i}', 'whole'):
                yield f'{enough}: {home.log(f"limit-{i}")}'
        little = {**keys, 'memory__limit': enough / 10 / 2**30}
        found = plan(home, **little)
        for process in run(home, 'nothing', **little), found:
            if process.returncode != 1 or 'MiB available' not in process.stderr or 'adafactor' not in process.stderr:
                yield f'exit {process.returncode}: {process.stderr}'
        if 'micro-batches of 1 sample' not in found.stdout or home.steps('nothing'):
            yield found.stdout


tap.run([
    every_allocation_may_fail,
    no_step_is_taken_twice,
    parts_on_the_host_change_no_bit,
    pinned_memory_may_be_refused,
    what_went_to_the_host_comes_back,
    what_the_device_does_not_take_stays,
    the_plan_is_what_is_taken,
    a_plan_for_a_gpu_that_is_absent,
    a_limit_is_kept,
])
