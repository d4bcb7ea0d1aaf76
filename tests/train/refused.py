# SPDX-License-Identifier: Apache-2.0
"""`cairn train` and a driver that refuses something: what can be is saved, and a new process goes on, with one workaround more each
time; what is not the device's fault ends the run as ever."""
import json
import os
import resource

import tap
from training import Home, differences, fake

STEPS = 6
KEYS = {'train__steps': STEPS, 'train__device': 'hip:0', 'checkpoint__every': 2, 'checkpoint__async': 'false'}
ONCE = ',unless=CAIRN_TRAIN_RESTARTS'  # the second process has no trouble


def run_json(home, run):
    with open(f'{home.path}/{run}/run.json', encoding='utf-8') as f:
        return json.load(f)


def restarts(home, run):
    return [line for line in home.log(run) if line.get('event') == 'restart']


def validations(home, run):
    return [(line['step'], line['val_loss']) for line in home.log(run) if 'val_loss' in line]


def state(home, run, step):
    """What a checkpoint has of evaluations."""
    with open(home.checkpoint(run, step) + '/state.json', encoding='utf-8') as f:
        found = json.load(f)
    return {key: found.get(key) for key in ('best_val', 'waited', 'evaluation_due', 'sample_due')}


def samples(home, run):
    path = f'{home.path}/{run}/samples'
    return sorted(os.listdir(path)) if os.path.exists(path) else []


def the_same_end(home, run, done, whole, starts, steps=STEPS):
    """So many new starts, of which the log tells, each step's loss once in it, and the bits and evaluations of an undisturbed run."""
    if done.returncode or done.stderr.count('restarting from') != starts or not min(starts, 1) <= len(restarts(home, run)) <= starts:
        yield f'{run}: exit {done.returncode}: {done.stderr}'
    elif [line['step'] for line in home.log(run) if 'loss' in line] != list(range(1, steps + 1)):
        yield f'{run}: {home.log(run)}'
    elif run_json(home, run)['state'] != 'finished' or not os.path.exists(f'{home.path}/{run}/loss.svg'):
        yield f'{run}: {run_json(home, run)}, {os.listdir(f"{home.path}/{run}")}'
    else:
        yield from differences(home, run, whole, steps)
        for what in validations, samples, lambda at, which: state(at, which, steps):
            if what(home, run) != what(home, whole):
                yield f'{run}: {what(home, run)}, and not {what(home, whole)}'


def any_call_may_be_refused_once():
    """Before the first step, in the middle of one, between two; with parts on the device and on the host."""
    near = {'hipModuleLaunchKernel': (1, 70, 150, 230), 'hipMemcpyHtoDAsync': (40,), 'hipMemsetD8Async': (3, 20), 'hipStreamQuery': (30, 47),
            'hipStreamSynchronize': (47, 60), 'hipStreamCreateWithFlags': (1,)}
    far = {'hipModuleLaunchKernel': (70, 230), 'hipMemsetD8Async': (20,), 'hipEventRecord': (20,), 'hipStreamWaitEvent': (20,)}
    places = ('near', {'eval__every': 3}, near), ('far', {'memory__optimizer': 'host'}, far), \
        ('lora', {'lora__rank': 2, 'memory__low_vram': 'true'}, far)
    starts = saved = 0
    with Home() as home:
        for place, more, calls in places:
            keys = {**KEYS, **more}
            home.train(place, env=fake(home), **keys)
            for call, n in ((call, n) for call, numbers in calls.items() for n in numbers):
                run = f'{place}-{call}-{n}'
                done = home.train(run, env=fake(home, f'fail={call}:{n}:98{ONCE}'), **keys)
                started = done.stderr.count('restarting from')
                starts += started
                saved += done.stderr.count('saved a checkpoint of step')
                if call in ('hipStreamQuery', 'hipStreamSynchronize') and 'saved a checkpoint of step' in done.stderr:
                    yield f'{run}: what was queued may have failed: {done.stderr}'
                yield from the_same_end(home, run, done, place, min(started, 1))
    if starts < 18 or not 4 <= saved < starts:
        yield f'{starts} starts, {saved} of them from what was saved for it'


def what_was_due_is_done_by_the_next_process():
    """The evaluation after the last step, one in the middle, the sample after an evaluation that makes it enough: the copy of their
    tokens fails, the first after a step has clipped its gradient or, with two evaluations, has its loss for the eighth time."""
    still = {'train__lr': 1e-30, 'train__weight_decay': 0, 'train__warmup': 0}  # no evaluation is better than the first
    ways = {'last': ('clip:3', 3, ('starting', 'validation'), {'train__steps': 3}),
            'middle': ('clip:3', 3, ('starting', 'validation'), {}),
            'sample': ('cross_entropy:8', 6, ('validation', 'starting', 'sample'), {'train__steps': 9, 'sample__every': 6, 'sample__tokens': 1, 'train__patience': 1, **still})}
    with Home() as home:
        for name, (after, step, order, more) in ways.items():
            keys = {**KEYS, 'eval__every': 3, 'eval__batches': 1, **more}
            home.train(name + '-whole', env=fake(home), **keys)
            done = home.train(name, env=fake(home, f'fail=hipMemcpyHtoDAsync:1:98,after={after}{ONCE}'), **keys)
            words = {'starting': 'restarting from', 'validation': f'step {step}  validation loss', 'sample': f'sample at step {step}'}
            said = [done.stderr.find(words[word]) for word in order]
            if f'saved a checkpoint of step {step}' not in done.stderr or -1 in said or said != sorted(said):
                yield f'{name}: {done.stderr}'
            yield from the_same_end(home, name, done, name + '-whole', 1, steps=max(home.steps(name + '-whole')))


def a_checkpoint_that_had_no_room_is_tried_again():
    """The disk is full when step 2 is saved, and has room when the device refuses something in step 3."""
    with Home() as home:
        home.train('whole', env=fake(home), **KEYS)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, before[1]))
        run = home.start('full', env=fake(home, f'slow=hipModuleLaunchKernel:1:5000,fail=hipModuleLaunchKernel:2:98,after=embedding:3{ONCE}'), **KEYS)
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        run.wait_for('cannot write a checkpoint')
        resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, before)
        status = run.end()
        if status or 'saved a checkpoint of step 2' not in run.said():
            yield f'exit {status}: {run.said()}'
        yield from differences(home, 'full', 'whole', STEPS)


def a_device_that_cannot_be_opened_is_tried_once_more():
    """In a run's first process; or the CPU takes its place, where that is wanted."""
    told = 'deny=hipStreamCreateWithFlags:1:98'
    with Home() as home:
        done = home.train('never', env=fake(home, told), **KEYS)
        if done.returncode != 1 or done.stderr.count('restarting from the beginning') != 1 or done.stderr.count('restarting') != 1:
            yield f'exit {done.returncode}: {done.stderr}'
        if 'libcuda' in done.stderr:
            yield f'of another device: {done.stderr}'
        done = home.train('cpu', env=fake(home, told), train__allow_cpu='true', **KEYS)
        if done.returncode or 'starting' in done.stderr or run_json(home, 'cpu')['device'] != 'cpu':
            yield f'exit {done.returncode}: {done.stderr}'


def copies_that_stay_refused_walk_the_ladder():
    """Of a batch, of state that lives on the host, of what a checkpoint is made of.  The copy engines are to blame, as it turns out."""
    ways = {'batch': ('hipMemcpyHtoDAsync:31', 3, {}), 'state': ('hipMemcpyHtoDAsync:42', 3, {'memory__optimizer': 'host'}),
            'home': ('hipMemcpyDtoHAsync:24', 2, {'memory__optimizer': 'host'}), 'checkpoint': ('hipMemcpyDtoHAsync:5', 3, {})}
    with Home() as home:
        for name, (told, starts, more) in ways.items():
            keys = {**KEYS, **more}
            home.train(name + '-whole', env=fake(home), **keys)
            done = home.train(name, env=fake(home, f'deny={told}:1,unless=HSA_ENABLE_SDMA'), **keys)
            yield from the_same_end(home, name, done, name + '-whole', starts)
            if starts == 3 and run_json(home, name)['workaround'] != 'no-sdma':
                yield run_json(home, name)
        for word in 'copy 16384 bytes to the device', 'HSA_ENABLE_SDMA=0':
            if word not in restarts(home, 'state')[-1]['note']:
                yield restarts(home, 'state')


def weights_that_do_not_come_back_are_not_saved():
    """A sample shows the moving average, and then the device takes nothing any more: what it holds are not the trained weights."""
    keys = {**KEYS, 'train__ema': 0.5, 'sample__every': 3, 'sample__tokens': 2}
    with Home() as home:
        home.train('whole', env=fake(home), **keys)
        done = home.train('lost', env=fake(home, f'deny=hipMemcpyHtoDAsync:1:1,after=ema:6{ONCE}'), **keys)
        yield from the_same_end(home, 'lost', done, 'whole', 1)
        if 'saved a checkpoint' in done.stderr:
            yield done.stderr


def the_last_resort_is_the_cpu():
    """Unasked the run ends, with what the device had on the disk."""
    told = 'deny=hipMemcpyHtoDAsync:31:1'
    with Home() as home:
        done = home.train('unasked', env=fake(home, told), **KEYS)
        if done.returncode != 1 or done.stderr.count('restarting from') != 4 or home.steps('unasked') != [1]:
            yield f'exit {done.returncode}: {home.steps("unasked")}, {done.stderr}'
        done = home.train('asked', env=fake(home, told), train__allow_cpu='true', **KEYS)
        info = run_json(home, 'asked')
        if done.returncode or done.stderr.count('restarting from') != 5 or info['device'] != 'cpu' or info['workaround'] != 'cpu':
            yield f'exit {done.returncode}, {info}: {done.stderr}'
        elif len(home.losses('asked')) != STEPS:
            yield home.log('asked')


def what_is_not_the_device_s_fault_ends_it():
    """Too little memory (one new start where a part of the weights has moved), a file that is not whole, numbers that are none."""
    with Home() as home:
        home.train('model', env=fake(home), **KEYS)
        model = home.checkpoint('model', STEPS)
        with open(model + '/model.safetensors', 'r+b') as f:
            f.truncate(9000)
        grow = {'train__lr': 100, 'train__weight_decay': 10, 'train__schedule': 'constant', 'train__warmup': 0, 'train__steps': 50}
        ways = {'memory': ('memory=100000', {}, 'MiB available'), 'file': ('', {'model__path': model}, 'model.safetensors'),
                'numbers': ('', grow, 'the loss is'), 'moved': ('fail=hipModuleLaunchKernel:2:2,after=clip:1', {}, 'updated some weights')}
        for name, (told, more, words) in ways.items():
            done = home.train(name, env=fake(home, told), **{**KEYS, **more})
            if done.returncode != 1 or words not in done.stderr or done.stderr.count('restarting from') != (name == 'moved'):
                yield f'{name}: exit {done.returncode}: {done.stderr}'


tap.run([
    any_call_may_be_refused_once,
    what_was_due_is_done_by_the_next_process,
    a_checkpoint_that_had_no_room_is_tried_again,
    a_device_that_cannot_be_opened_is_tried_once_more,
    copies_that_stay_refused_walk_the_ladder,
    weights_that_do_not_come_back_are_not_saved,
    the_last_resort_is_the_cpu,
    what_is_not_the_device_s_fault_ends_it,
])
