# SPDX-License-Identifier: Apache-2.0
"""Ranks that die, stop, fail and run out of memory: the job ends with its reason, leaves no process and no half checkpoint, and
goes on with the same bits.

`faults.py N [CASE...]` kills N times.
"""
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import tap
from launch import any_launcher, check, environment, finish, train
from training import FAKE, Home, differences, wait

KILLS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
SEED = 20261118
ENDLESS = 100000
KEYS = {'train__accumulate': 4, 'train__batch': 1, 'dist__reduce': 'exact', 'checkpoint__every': 3, 'train__warmup': 0,
        'train__schedule': 'constant'}
END_S = 20  # a loaded machine; mpirun itself takes a second


def start(home, run, ranks=2, options=(), env=None, by=None, **keys):
    command = [*(by or any_launcher()), '-n', str(ranks), *home.command(run, *options, **{**KEYS, **keys})]
    return launch(home, command, run, env)


def launch(home, command, run, env=None):
    with open(f'{home.path}/{run}.said', 'w', encoding='utf-8') as said:
        return subprocess.Popen(command, env=environment(home, env), cwd=home.path, stdin=subprocess.DEVNULL, stdout=said,
                                stderr=said, restore_signals=True)


def said(home, run):
    with open(f'{home.path}/{run}.said', encoding='utf-8', errors='replace') as f:
        return f.read()


def newest(home, run):
    return max(home.steps(run), default=0)


def pids_of(home, run):
    """The ranks that train `run`, by their own command lines."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as f:
                words = f.read().split(b'\0')
            here = os.readlink(f'/proc/{pid}/cwd') == home.path
        except OSError:
            continue
        if here and words[0].endswith(b'/cairn') and f'--set=run.dir={run}'.encode() in words:
            found.append(int(pid))
    return sorted(found)


def ends(home, process, run):
    """Findings where the job goes on."""
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        yield f'it did not end: {said(home, run)[-600:]}'
    limit = time.monotonic() + END_S
    while pids_of(home, run) and time.monotonic() < limit:
        time.sleep(0.1)
    for pid in pids_of(home, run):
        os.kill(pid, signal.SIGKILL)
        yield f'a rank of {run} is left'


def continued(home, run, ranks, step):
    """Findings where the bits of what goes on are not those of a run that nobody disturbed."""
    done = train(home, ranks, run, '--resume', **{**KEYS, 'train__steps': step})
    if done.returncode or 'is incomplete' in done.stderr:
        yield f'resume: exit {done.returncode}: {done.stderr[-800:]}'
        return
    done = train(home, 1, 'whole', **{**KEYS, 'train__steps': step})
    if done.returncode:
        yield f'whole: {done.stderr[-800:]}'
    yield from differences(home, run, 'whole', step)


def a_killed_rank_ends_the_job():
    chance = random.Random(SEED)
    with Home() as home:
        for n in range(KILLS):
            before = newest(home, 'run')
            process = start(home, 'run', options=['--resume'], train__steps=ENDLESS)
            wait(lambda: newest(home, 'run') > before or process.poll() is not None, 'checkpoint')
            time.sleep(chance.random() * 0.2)
            ranks = pids_of(home, 'run')
            if len(ranks) != 2:
                yield f'kill {n}: {len(ranks)} ranks: {said(home, "run")[-600:]}'
                process.kill()
                continue
            os.kill(chance.choice(ranks), signal.SIGKILL)
            yield from ends(home, process, 'run')
            if process.returncode == 0:
                yield f'kill {n}: exit 0'
        last = newest(home, 'run') + 2
        yield from continued(home, 'run', 2, last)


def a_stop_saves_on_all_ranks():
    with Home() as home:
        process = launch(home, home.command('run', '--ranks', '2', **KEYS, train__steps=ENDLESS), 'run')
        wait(lambda: newest(home, 'run') or process.poll() is not None, 'checkpoint')
        process.send_signal(signal.SIGINT)
        yield from ends(home, process, 'run')
        if process.returncode != 130 or said(home, 'run').count('will save and stop') != 1 or \
                'to resume: cairn train --resume=run' not in said(home, 'run'):
            yield f'exit {process.returncode}: {said(home, "run")[-900:]}'
        step = newest(home, 'run')
        if f'stopped at step {step}' not in said(home, 'run'):
            yield f'checkpoint of step {step}: {said(home, "run")[-300:]}'
        yield from continued(home, 'run', 1, step + 2)


def ranks_end_with_who_started_them():
    with Home() as home:
        process = launch(home, home.command('run', '--ranks', '2', **KEYS, train__steps=ENDLESS), 'run')
        wait(lambda: newest(home, 'run') or process.poll() is not None, 'checkpoint')
        process.kill()
        yield from ends(home, process, 'run')


def an_order_reaches_all_ranks():
    with Home() as home:
        process = launch(home, home.command('run', '--ranks', '2', **KEYS, train__steps=ENDLESS), 'run')
        wait(lambda: newest(home, 'run') or process.poll() is not None, 'checkpoint')
        with open(home.path + '/run/control.new', 'w', encoding='utf-8') as f:
            json.dump({'seq': 1, 'save': True, 'stop_at_step': 1}, f)
        os.rename(home.path + '/run/control.new', home.path + '/run/control.json')
        yield from ends(home, process, 'run')
        if process.returncode != 130 or 'stopped at step' not in said(home, 'run'):
            yield f'exit {process.returncode}: {said(home, "run")[-900:]}'


def a_rank_that_fails_is_named():
    with Home() as home:
        done = finish(check(3, 'fail'), home)
        if done.returncode != 1 or not re.search(r'^rank 2 of 3 on \S+: a file is gone$', done.stdout, re.M):
            yield f'exit {done.returncode}: {done.stdout}{done.stderr}'


def a_rank_that_is_late_is_named():
    with Home() as home:
        done = finish(check(3, 'late'), home)
        if done.returncode or 'waiting for rank 2' not in done.stdout or 'right' not in done.stdout:
            yield f'exit {done.returncode}: {done.stdout}{done.stderr}'
        done = finish(check(3, 'lost'), home)
        if done.returncode != 1 or not re.search(r'^rank 2 of 3 \(\S+\) has not come for 3 s$', done.stdout, re.M):
            yield f'exit {done.returncode}: {done.stdout}{done.stderr}'


def a_rank_that_stands_still_ends_the_job():
    with Home() as home:
        process = start(home, 'run', train__steps=ENDLESS, dist__timeout=2)
        wait(lambda: newest(home, 'run') or process.poll() is not None, 'checkpoint')
        time.sleep(0.3)
        ranks = pids_of(home, 'run')
        stopped = ranks[-1]
        os.kill(stopped, signal.SIGSTOP)
        found = list(ends(home, process, 'run'))
        yield from found
        if process.returncode == 0 or not re.search(r'rank \d of 2 \(\S+\) has not come for \d+ s', said(home, 'run')):
            yield f'exit {process.returncode}: {said(home, "run")[-900:]}'


def without_memory_all_take_smaller_batches():
    if not os.path.exists(FAKE + '/libamdhip64.so.7'):
        raise tap.Skip('the fake HIP is not built')
    with Home() as home:
        keys = {**KEYS, 'train__batch': 32, 'train__accumulate': 2, 'model__context': 16, 'train__steps': 6, 'train__device': 'auto',
                'train__dtype': 'f32'}
        env = {'LD_LIBRARY_PATH': FAKE, 'FAKE_GFX': 'gfx1100', 'CAIRN_RANKS_SHARE_GPU': '1'}
        command = home.command('run', **keys)
        small = ['env', 'CAIRN_FAKE_HIP=memory=700000'] + command
        done = finish([*any_launcher(), '-n', '1', *command, ':', '-n', '1', *small], home, env)
        if done.returncode or 'another rank is short of memory' not in done.stderr:
            yield f'exit {done.returncode}: {done.stderr[-1500:]}'
        if home.steps('run')[-1:] != [6]:
            yield f'checkpoints {home.steps("run")}'


def on_gpus_sums_pass_through_host_memory():
    if not os.path.exists(FAKE + '/libamdhip64.so.7'):
        raise tap.Skip('the fake HIP is not built')
    with Home() as home:
        keys = {**KEYS, 'train__steps': 6, 'train__device': 'auto', 'train__dtype': 'f32'}
        env = {'LD_LIBRARY_PATH': FAKE, 'FAKE_GFX': 'gfx1100'}
        done = train(home, 2, 'run', env=env, **keys)
        if done.returncode != 2 or 'have the same GPU, 0000:' not in done.stderr:
            yield f'two ranks, one GPU: exit {done.returncode}: {done.stderr[-800:]}'
        for n, run in (2, 'two'), (1, 'one'):
            done = train(home, n, run, env={**env, 'CAIRN_RANKS_SHARE_GPU': '1'}, **keys)
            if done.returncode:
                yield f'{n} ranks: exit {done.returncode}: {done.stderr[-1500:]}'
        yield from differences(home, 'two', 'one', 6)


if __name__ == '__main__':
    tap.only([a_killed_rank_ends_the_job, a_stop_saves_on_all_ranks, ranks_end_with_who_started_them, an_order_reaches_all_ranks,
              a_rank_that_fails_is_named, a_rank_that_is_late_is_named, a_rank_that_stands_still_ends_the_job,
              without_memory_all_take_smaller_batches, on_gpus_sums_pass_through_host_memory], sys.argv[2:])
