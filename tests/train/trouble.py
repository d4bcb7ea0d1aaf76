# SPDX-License-Identifier: Apache-2.0
"""`cairn train` when things go wrong: signals, torn checkpoints, a full disk, a second process, memory, a lost device."""
import fcntl
import os
import re
import resource
import shutil
import signal
import subprocess

import tap
from training import AHEAD, TEXT, Home, differences, fake, wait


def ctrl_c_saves_the_last_step():
    keys = {'train__steps': 3 * AHEAD, 'checkpoint__every': 0}
    with Home() as home:
        home.train('whole', **keys)
        run = home.start('stopped', **keys)
        run.reach(3)
        run.process.send_signal(signal.SIGINT)
        status = run.end()
        steps = home.steps('stopped')
        if status != 130 or len(steps) != 1 or 'stopped at step' not in run.said():
            yield f'exit {status}, checkpoints {steps}: {run.said()}'
            return
        if '\n\n' in run.said():
            yield f'an empty line, and no terminal: {run.said()}'
        if steps[0] != home.log('stopped')[-1]['step']:
            yield f'saved at {steps[0]}, but the last step is {home.log("stopped")[-1]}'
        done = home.train('stopped', '--resume', **keys)
        if f'resuming from stopped/checkpoints/step-{steps[0]}' not in done.stderr:
            yield done.stderr
        yield from differences(home, 'stopped', 'whole', 3 * AHEAD)


def sigterm_does_the_same():
    with Home() as home:
        run = home.start('stopped', train__steps=3 * AHEAD, checkpoint__every=0)
        run.reach(3)
        run.process.send_signal(signal.SIGTERM)
        if run.end() != 143 or not home.steps('stopped'):
            yield run.said()


def a_second_ctrl_c_ends_at_once():
    """Nobody reads the steps, so that the run waits for room in the pipe, and cannot come to the end of a step."""
    with Home() as home:
        run = home.start('ended', train__steps=3 * AHEAD, checkpoint__every=0)
        run.reach(1)
        run.until_stuck()
        for word in 'stop after this step', '':
            run.process.send_signal(signal.SIGINT)
            run.wait_for(word)
        status = run.end()
        if status != 130 or home.steps('ended'):
            yield f'exit {status}, checkpoints {home.steps("ended")}: {run.said()}'


def a_start_that_is_stopped_leaves_no_half_file():
    with Home() as home:
        with open(home.path + '/text.txt', 'w', encoding='utf-8') as f:
            f.write(TEXT * (40000000 // len(TEXT)))
        tokens = home.path + '/.cache/cairn/tokens'
        with subprocess.Popen(home.command('none'), env=home.environment(None), cwd=home.path,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as start:
            wait(lambda: os.path.isdir(tokens) and os.listdir(tokens), 'file of tokens')
            start.send_signal(signal.SIGINT)
            said = start.communicate()[1]
        if start.returncode not in (0, 130) or [f for f in os.listdir(tokens) if not f.endswith('.tokens')]:
            yield f'exit {start.returncode}, {os.listdir(tokens)}: {said}'


def the_step_of_a_validation_is_the_one_shown():
    with Home() as home:
        try:
            said = home.on_terminal('shown', train__steps=9, eval__every=5)
        except OSError as why:
            raise tap.Skip(f'no terminal can be had here: {why}')
        if not re.search(r'\033\[Kstep 5  validation loss [0-9.]+\r\n\rstep 5/9 .* val ', said):
            yield repr(said)


def cuda_is_a_name_of_amds_gpus_too():
    with Home() as home:
        for name, status, word in ('cuda:0', 0, 'hip:0, '), ('cuda:1', 3, 'no device hip:1'):
            done = home.train('named', '--dry-run', env=fake(home), train__device=name)
            if done.returncode != status or word not in done.stdout + done.stderr:
                yield f'{name}: exit {done.returncode}: {done.stderr}'


def truncate(path):
    os.truncate(path + '/model.safetensors', os.path.getsize(path + '/model.safetensors') - 100)


def flip(path):
    with open(path + '/optimizer.safetensors', 'r+b') as f:
        f.seek(-700, os.SEEK_END)
        byte = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte[0] ^ 1]))


def lose_state(path):
    os.unlink(path + '/state.json')


def torn_checkpoints_are_passed_over():
    keys = {'train__steps': 6, 'checkpoint__every': 2, 'train__schedule': 'constant'}
    with Home() as home:
        home.train('whole', **keys)
        for tear in truncate, flip, lose_state:
            shutil.copytree(home.path + '/whole', home.path + '/torn', symlinks=True)
            tear(home.checkpoint('torn', 6))
            done = home.train('torn', '--resume', **keys)
            if done.returncode or 'step-6 is incomplete' not in done.stderr or 'resuming from torn/checkpoints/step-4' not in done.stderr:
                yield f'{tear.__name__}: exit {done.returncode}: {done.stderr}'
            yield from differences(home, 'torn', 'whole', 6)
            shutil.rmtree(home.path + '/torn')


def a_torn_one_does_not_push_out_a_whole_one():
    keys = {'train__schedule': 'constant', 'train__warmup': 0, 'checkpoint__every': 0}
    with Home() as home:
        for steps in 2, 6:
            home.train('run', '--resume', train__steps=steps, checkpoint__keep=0, **keys)
        truncate(home.checkpoint('run', 6))
        done = home.train('run', '--resume', train__steps=4, checkpoint__keep=1, **keys)
        if done.returncode or home.steps('run') != [4]:
            yield f'exit {done.returncode}, checkpoints {home.steps("run")}: {done.stderr}'


def a_full_disk_costs_a_checkpoint_and_not_the_run():
    """A limit on the size of files that holds for a while."""
    keys = {'train__steps': 6 * AHEAD, 'checkpoint__every': 20, 'checkpoint__keep': 0}
    with Home() as home:
        home.train('whole', **keys)
        run = home.start('full', **keys)
        run.until(lambda: home.steps('full'), 'first checkpoint')
        before = resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, (20000, before[1]))
        run.until(lambda: 'cannot write a checkpoint' in run.said(), 'word of the full disk')
        resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, before)
        yield from differences(home, 'full', 'whole', home.steps('full')[0])
        status = run.end()
        if status:
            yield f'exit {status}: {run.said()}'
        left = [n for n in os.listdir(home.path + '/full/checkpoints') if n.startswith('.')]
        if left:
            yield f'left over: {left}'
        if 'checkpoint-failed' not in [line.get('event') for line in home.log('full')]:
            yield 'the log does not tell'
        if len(home.steps('full')) == len(home.steps('whole')):
            yield 'none is missing'
        yield from differences(home, 'full', 'whole', 6 * AHEAD)


def a_second_process_is_refused():
    keys = {'train__steps': 3 * AHEAD, 'checkpoint__every': 1}
    with Home() as home:
        home.train('whole', **keys)
        run = home.start('shared', **keys)
        run.reach(3)
        second = home.train('shared', '--resume', **keys)
        if second.returncode != 2 or 'another process' not in second.stderr:
            yield f'exit {second.returncode}: {second.stderr}'
        status = run.end()
        if status:
            yield f'exit {status}: {run.said()}'
        yield from differences(home, 'shared', 'whole', 3 * AHEAD)


def it_is_refused_before_it_reads_anything():
    """Checkpoints of the other process come and go."""
    with Home() as home:
        home.train('run', train__steps=2)
        with open(home.path + '/run/log.jsonl', encoding='utf-8') as log:
            fcntl.flock(log, fcntl.LOCK_EX)
            done = home.train('run', '--resume', data__path='nowhere')
        if done.returncode != 2 or 'another process' not in done.stderr:
            yield f'exit {done.returncode}: {done.stderr}'


def less_memory_is_enough():
    keys = {'train__steps': 8, 'train__device': 'hip:0', 'train__batch': 4, 'model__context': 16}
    with Home() as home:
        done = home.train('roomy', env=fake(home), **keys)
        if done.returncode:
            yield done.stderr
        done = home.train('tight', env=fake(home, 'memory=300000'), **keys)
        if done.returncode or 'gradient checkpointing' not in done.stderr or 'micro-batches of 2 samples' not in done.stderr:
            yield f'exit {done.returncode}: {done.stderr}'
            return
        pairs = list(zip(home.losses('roomy'), home.losses('tight')))
        if len(pairs) != 8 or any(abs(a - b) > 1e-3 for a, b in pairs):
            yield pairs


def what_the_device_cannot_widen_the_host_does():
    """Weights in int8 and fp8, with no kernel for them, or one that cannot be launched: the same bits."""
    keys = {'train__steps': 5, 'train__device': 'hip:0', 'lora__rank': 2}
    with Home() as home:
        for kind in 'int8', 'fp8':
            done = home.train(kind, env=fake(home), model__quantize=kind, **keys)
            if done.returncode or 'falling back to the CPU' in done.stderr:
                yield f'{kind}: exit {done.returncode}: {done.stderr}'
            for told in 'without', 'refuse':
                run = f'{kind}-{told}'
                done = home.train(run, env=fake(home, told + '=dequantise'), model__quantize=kind, **keys)
                if done.returncode or done.stderr.count('falling back to the CPU') != 1:
                    yield f'{run}: exit {done.returncode}: {done.stderr}'
                    continue
                if [line.get('event') for line in home.log(run)].count('weights-by-host') != 1:
                    yield f'{run}: the log does not tell'
                yield from differences(home, run, kind, 5)


def what_was_loaded_is_told_while_debugging():
    """Read back and compared; the same numbers have the same hash, wherever they are."""
    with Home() as home:
        said = {}
        for name, env, keys in (('cpu', None, {}), ('gpu', fake(home), {'train__device': 'hip:0'}), ('other', None, {'train__seed': 2})):
            done = home.train(name, '--debug', env=env, train__steps=2, train__dtype='f32', **keys)
            found = re.findall(r'^load .*\b([0-9]+) bytes\b.*hash ([0-9a-f]{32})$', done.stderr, re.M)
            if done.returncode or len(found) != 1:
                yield f'{name}: exit {done.returncode}: {done.stderr}'
            said[name] = found
        if said['cpu'] != said['gpu'] or said['cpu'] == said['other']:
            yield said
        done = home.train('quiet', train__steps=2)
        if done.returncode or re.search('^load ', done.stderr, re.M):
            yield done.stderr


def copies_find_another_way():
    """One that fails, and no pinned memory for them: said once, and the same bits."""
    keys = {'train__steps': 6, 'train__device': 'hip:0', 'checkpoint__every': 2}
    ways = {'fail=hipMemcpyHtoDAsync:2:1': ('copy_steps', 'step by step'),
            'fail=hipMemcpyDtoHAsync:6:1': ('copy_steps', 'step by step'),
            'pinned=200000': ('copy_pageable', 'pageable memory')}
    with Home() as home:
        done = home.train('whole', env=fake(home), **keys)
        if done.returncode or 'a copy' in done.stderr or 'copying' in done.stderr:
            yield done.stderr
        for i, (told, (key, words)) in enumerate(ways.items()):
            run = f'way-{i}'
            done = home.train(run, env=fake(home, told), **keys)
            if done.returncode or done.stderr.count(words) != 1:
                yield f'{told}: exit {done.returncode}: {done.stderr}'
                continue
            log = home.log(run)
            if [line.get('event') for line in log].count('copies') != 1 or log[-1].get(key) != 1:
                yield f'{told}: the log does not tell: {log[-1]}'
            yield from differences(home, run, 'whole', 6)


def a_lost_device_is_tried_again():
    """Each process loses it after so many launches; each has come further by then."""
    keys = {'train__steps': 12, 'train__device': 'hip:0', 'checkpoint__every': 1, 'checkpoint__async': 'false'}
    with Home() as home:
        done = home.train('whole', env=fake(home), **keys)
        if done.returncode:
            yield done.stderr
        done = home.train('lost', env=fake(home, 'fail=hipModuleLaunchKernel:300:700'), **keys)
        starts = done.stderr.count('restarting from the last checkpoint')
        if done.returncode or not 1 <= starts <= 3 or done.stderr.count('resuming from') != starts:
            yield f'exit {done.returncode}: {done.stderr}'
        yield from differences(home, 'lost', 'whole', 12)


def a_hang_is_tried_again():
    """Work that never ends, and a call that never returns; the number of restarts is of another process."""
    keys = {'train__steps': 12, 'train__device': 'hip:0', 'checkpoint__every': 1, 'checkpoint__async': 'false'}
    with Home() as home:
        done = home.train('whole', env=fake(home), **keys)
        if done.returncode:
            yield done.stderr
        for way in 'hang', 'block':
            env = {**fake(home, way + '=hipModuleLaunchKernel:300'), 'CAIRN_TRAIN_RESTARTS': '1:3'}
            done = home.train(way, '--hang-after=1', env=env, **keys)
            starts = done.stderr.count('restarting from the last checkpoint')
            if done.returncode or not 1 <= starts <= 3 or done.stderr.count('resuming from') != starts:
                yield f'{way}: exit {done.returncode}: {done.stderr}'
            yield from differences(home, way, 'whole', 12)


def after_a_hang_ctrl_c_still_works():
    keys = {'train__steps': 1000, 'train__device': 'hip:0', 'checkpoint__every': 1, 'checkpoint__async': 'false'}
    with Home() as home:
        run = home.start('hung', '--hang-after=1', env=fake(home, 'block=hipModuleLaunchKernel:300'), **keys)
        run.until(lambda: 'resuming from' in run.said(), 'second start')
        run.reach(home.steps('hung')[-1] + 1)
        run.process.send_signal(signal.SIGINT)
        status = run.end()
        if status != 130 or 'stopped at step' not in run.said():
            yield f'exit {status}: {run.said()}'


def a_device_that_stays_lost_ends_it():
    with Home() as home:
        for told in 'fail=hipModuleLaunchKernel:20:700', 'block=hipModuleLaunchKernel:20':
            done = home.train(told[:4], '--hang-after=1', '--resume', env=fake(home, told), train__device='hip:0')
            if done.returncode != 1 or done.stderr.count('restarting from') != 4 or 'dmesg' not in done.stderr:
                yield f'{told}: exit {done.returncode}: {done.stderr}'


tap.run([
    ctrl_c_saves_the_last_step,
    sigterm_does_the_same,
    a_second_ctrl_c_ends_at_once,
    a_start_that_is_stopped_leaves_no_half_file,
    the_step_of_a_validation_is_the_one_shown,
    cuda_is_a_name_of_amds_gpus_too,
    torn_checkpoints_are_passed_over,
    a_torn_one_does_not_push_out_a_whole_one,
    a_full_disk_costs_a_checkpoint_and_not_the_run,
    a_second_process_is_refused,
    it_is_refused_before_it_reads_anything,
    less_memory_is_enough,
    what_the_device_cannot_widen_the_host_does,
    what_was_loaded_is_told_while_debugging,
    copies_find_another_way,
    a_lost_device_is_tried_again,
    a_hang_is_tried_again,
    after_a_hang_ctrl_c_still_works,
    a_device_that_stays_lost_ends_it,
])
