# SPDX-License-Identifier: Apache-2.0
"""`cairn train` and a device that is slow, or gets nowhere: what is told, and each workaround of the ladder in its turn."""
import json

import tap
from training import Home, fake

KEYS = {'train__device': 'hip:0', 'checkpoint__every': 1, 'checkpoint__async': 'false'}


def run_json(home, run):
    with open(f'{home.path}/{run}/run.json', encoding='utf-8') as f:
        return json.load(f)


def events(home, run, kind):
    return [line for line in home.log(run) if line.get('event') == kind]


def memory_is_in_every_line():
    """In the log and in what --json-events writes."""
    keys = ('mem_bytes', 'mem_allocated_bytes', 'mem_reserved_bytes', 'mem_peak_bytes', 'mem_hole_bytes')
    with Home() as home:
        done = home.train('run', '--json-events=events.jsonl', env=fake(home), train__steps=3, **KEYS)
        with open(home.path + '/events.jsonl', encoding='utf-8') as f:
            told = [json.loads(line) for line in f]
        if done.returncode or len(told) != 3 or len(home.log('run')) != 3:
            yield f'exit {done.returncode}, {told}: {done.stderr}'
        for line in told + home.log('run'):
            if any(not isinstance(line.get(key), int) for key in keys) or not 0 <= line['mem_fragmentation'] < 1:
                yield line
            elif not 0 < line['mem_allocated_bytes'] <= line['mem_peak_bytes'] <= line['mem_reserved_bytes'] <= line['mem_bytes']:
                yield line
            if 'mem_refused' in line or 'mem_host_bytes' in line:
                yield line
        done = home.train('host', env=fake(home), train__steps=3, memory__optimizer='host', **KEYS)
        for line, other in zip(home.log('host'), home.log('run')):
            if not line.get('mem_host_bytes', 0) > other['mem_allocated_bytes'] // 4:
                yield line
        if done.returncode or len(home.log('host')) != 3:
            yield f'exit {done.returncode}: {done.stderr}'
        done = home.train('tight', '--json-events=tight.jsonl', env=fake(home, 'memory=300000'), train__steps=2,
                          train__batch=4, model__context=16, **{**KEYS, 'checkpoint__every': 0})
        if done.returncode or not all(line.get('mem_refused', 0) > 0 for line in home.log('tight')):
            yield f'exit {done.returncode}, {home.log("tight")}: {done.stderr}'


def a_slow_step_is_told():
    """One call takes long: the run goes on."""
    with Home() as home:
        home.train('warm', env=fake(home), train__steps=2, **KEYS)
        done = home.train('slow', '--hang-after=8', '--json-events=events.jsonl', train__steps=12,
                          env=fake(home, 'slow=hipModuleLaunchKernel:500:4000'), **KEYS)
        slow = events(home, 'slow', 'slow-step')
        if done.returncode or len(slow) != 1 or 'restarting from' in done.stderr:
            yield f'exit {done.returncode}: {done.stderr}'
            return
        for word in 'still running after', 'last queued: ', 'the driver has not answered: launch ':
            if word not in slow[0]['note']:
                yield slow[0]
        step = slow[0]['step'] + 1
        if f'step {step} still running after' not in done.stderr:
            yield done.stderr
        with open(home.path + '/events.jsonl', encoding='utf-8') as f:
            if not any(json.loads(line).get('event') == 'slow-step' for line in f):
                yield 'nothing in --json-events'
        with open(home.path + '/slow/slow.txt', encoding='utf-8') as f:
            text = f.read()
        for word in f'step {step} still running', f'memory after step {step - 1}', 'thread ', f'step {step} ended after':
            if word not in text:
                yield f'no "{word}" in {text}'
        if [line['step'] for line in home.log('slow') if 'loss' in line] != list(range(1, 13)):
            yield home.log('slow')


def a_step_that_gets_nowhere_is_ended():
    """Each launch takes long, and none too long; a library is to blame, since without it all is well."""
    with Home() as home:
        home.train('warm', env=fake(home), train__steps=2, **KEYS)
        done = home.train('crawl', '--hang-after=1', train__steps=20,
                          env=fake(home, 'crawl=hipModuleLaunchKernel:450:600,unless=CAIRN_BLAS'), **KEYS)
        restarts = events(home, 'crawl', 'restart')
        if done.returncode or done.stderr.count('restarting from') != 2 or len(restarts) != 2:
            yield f'exit {done.returncode}, {restarts}: {done.stderr}'
            return
        if 'timed out after' not in restarts[0]['note'] or 'without a workaround' not in restarts[0]['note'] or 'CAIRN_BLAS=own' not in restarts[1]['note']:
            yield restarts
        if run_json(home, 'crawl')['workaround'] != 'own-kernels':
            yield run_json(home, 'crawl')
        if home.log('crawl')[-1]['step'] != 20:
            yield home.log('crawl')[-1]


def the_workaround_is_remembered():
    """The copy engines are to blame.  A run that ended well is tried without the workaround, one that did not is not."""
    told = 'hang=hipModuleLaunchKernel:300,unless=HSA_ENABLE_SDMA'
    with Home() as home:
        done = home.train('run', '--hang-after=1', env=fake(home, told), train__steps=17, **KEYS)
        if done.returncode or done.stderr.count('restarting from') != 3 or run_json(home, 'run')['workaround'] != 'no-sdma':
            yield f'exit {done.returncode}, {run_json(home, "run")}: {done.stderr}'
            return
        info = run_json(home, 'run')
        for state, words in ('crashed', 'keeping it'), ('finished', 'without it'):
            with open(home.path + '/run/run.json', 'w', encoding='utf-8') as f:
                json.dump({**info, 'state': state}, f)
            done = home.train('run', '--hang-after=1', '--resume', env=fake(home, told), train__steps=18 + (state == 'finished'), **KEYS)
            kept = 'no-sdma' if state == 'crashed' else None
            if done.returncode or words not in done.stderr or run_json(home, 'run')['workaround'] != kept:
                yield f'{state}: exit {done.returncode}, {run_json(home, "run")}: {done.stderr}'


def interrupts_that_are_lost_have_a_workaround():
    with Home() as home:
        done = home.train('run', '--hang-after=1', env=fake(home, 'hang=hipModuleLaunchKernel:20,unless=HSA_ENABLE_INTERRUPT'),
                          train__steps=5, **KEYS)
        if done.returncode or done.stderr.count('restarting from') != 4 or run_json(home, 'run')['workaround'] != 'no-interrupt':
            yield f'exit {done.returncode}, {run_json(home, "run")}: {done.stderr}'


def the_last_resort_is_the_cpu():
    with Home() as home:
        done = home.train('run', '--hang-after=1', env=fake(home, 'hang=hipModuleLaunchKernel:20'), train__steps=5,
                          train__allow_cpu='true', **KEYS)
        info = run_json(home, 'run')
        if done.returncode or done.stderr.count('restarting from') != 5 or info['device'] != 'cpu' or info['workaround'] != 'cpu':
            yield f'exit {done.returncode}, {info}: {done.stderr}'


def a_gpu_that_is_gone_is_not_the_cpu_unasked():
    """After the first hang there is no device any more."""
    told = 'hang=hipModuleLaunchKernel:20,leaves=CAIRN_TRAIN_RESTARTS'
    with Home() as home:
        for device in 'hip:0', 'auto':
            keys = {**KEYS, 'train__device': device, 'train__steps': 5}
            done = home.train('left-' + device[:3], '--hang-after=1', env=fake(home, told), **keys)
            if done.returncode != 3 or done.stderr.count('restarting from') != 1:
                yield f'{device}: exit {done.returncode}: {done.stderr}'
        done = home.train('left-hip', '--hang-after=1', '--resume', env=fake(home, 'devices=0'), train__allow_cpu='true', train__steps=5, **KEYS)
        if done.returncode or 'device    cpu' not in done.stderr or 'no device hip:0 (train.allow_cpu)' not in done.stderr:
            yield f'exit {done.returncode}: {done.stderr}'


tap.run([
    memory_is_in_every_line,
    a_slow_step_is_told,
    a_step_that_gets_nowhere_is_ended,
    the_workaround_is_remembered,
    interrupts_that_are_lost_have_a_workaround,
    the_last_resort_is_the_cpu,
    a_gpu_that_is_gone_is_not_the_cpu_unasked,
])
