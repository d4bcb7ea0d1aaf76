# SPDX-License-Identifier: Apache-2.0
"""Runs of `cairn train` and `cairn run` that were started in a terminal, among the jobs: shown, stopped, gone on with as jobs."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import tap
from commands import FULL, ROW, refused, shape
from queued import CAIRN, Queue, until


def runs_of_a_terminal_are_listed_and_stopped():
    with Queue() as q:
        config = q.native('terminal.yaml')
        train = subprocess.Popen([CAIRN, 'train', config, '--steps', '100000', '--device', 'cpu'], env=q.environment(),
                                 cwd=q.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        run = subprocess.Popen([CAIRN, 'run', '--', 'sh', '-c', 'echo begun; sleep 600'], env=q.environment(), cwd=q.home,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        background = subprocess.Popen([CAIRN, 'run', '--', 'sleep', '601'], env=q.environment(), cwd=q.home,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        def adopted():
            return {r['pid']: r for r in q.rows().values() if r['adopted'] and r['state'] == 'active'}
        until(lambda: set(adopted()) == {train.pid, run.pid, background.pid} and adopted()[train.pid]['step'], 'all three')
        rows = adopted()
        for pid, kind, name in ((train.pid, 'train', 'terminal'), (run.pid, 'run', 'sh -c echo begun; sleep 600')):
            row = rows[pid]
            yield from shape(row, ROW)
            if (row['kind'], row['name'], row['alive']) != (kind, name, True):
                yield f'{row}'
        yield from shape(q.row(rows[run.pid]['uid']), {**ROW, **FULL})
        uid = rows[run.pid]['uid']
        for command in ('start', 'pause', 'kill', 'rm'):
            yield from refused(q.job(command, uid), 2, 'was started in a terminal')
        yield from refused(q.job('resume', uid), 2, 'has not ended')
        follower = subprocess.Popen([CAIRN, 'job', 'log', '-f', uid], env=q.environment(), stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        if follower.poll() is not None:
            yield 'log --follow ended at once'
        for word in (rows[train.pid]['name'], uid[-6:], rows[background.pid]['uid']):
            if q.json('stop', word)['job']['adopted'] is not True:
                yield f'stop {word}'
        for process, name in ((train, 'train'), (run, 'run'), (background, 'background')):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                yield f'{name} was not stopped'
                process.kill()
        if follower.communicate(timeout=30)[0] != 'begun\n':
            yield 'the log that was followed'
        ended = {r['name']: r['state'] for r in q.rows().values()}
        if ended.pop('terminal') != 'stopped' or set(ended.values()) - {'stopped', 'failed'}:
            yield f'{ended}'
        if 'terminal' not in q.job('list').stdout:
            yield 'the list for people'


def runs_of_a_terminal_go_on_as_jobs():
    with Queue() as q:
        os.mkdir(q.path('there'))
        train = subprocess.Popen([CAIRN, 'train', q.native('terminal.yaml'), '--steps', '1000000', '--device', 'cpu'], env=q.environment(),
                                 cwd=q.path('there'), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: any((r['step'] or 0) > 3 for r in q.rows().values()), 'some steps')
        run, = q.rows().values()
        yield from refused(q.job('resume', run['uid']), 2, 'has not ended', 'stop')
        q.json('stop', run['uid'])
        train.wait(60)
        run, = q.rows().values()
        if not (run['adopted'] and run['resumable'] and run['state'] == 'stopped' and run['gpu'] == 'cpu'):
            yield f'{run}'
        copy = q.json('clone', 'terminal')['job']
        if copy['state'] != 'draft' or copy['run_dir'] or copy['adopted']:
            yield f'the clone: {copy}'
        q.job('rm', copy['uid'])
        q.job('queue', 'pause')
        job = q.json('resume', run['uid'])['job']
        if (job['state'], job['run_dir']) != ('queued', run['run_dir']):
            yield f'the job: {job}'
        if [r['name'] for r in q.rows().values() if r['adopted']]:
            yield 'the run is listed twice'
        for name in ('cairn.db', 'cairn.db-wal', 'cairn.db-shm'):  # it has not begun, and all the same knows what it goes on with
            with contextlib.suppress(FileNotFoundError):
                os.remove(q.state + '/' + name)
        q.job('rebuild')
        q.job('start', job['uid'])
        q.job('queue', 'go')
        until(lambda: (q.row(job['uid'])['step'] or 0) > run['step'], 'further steps')
        q.job('stop', job['uid'])
        row = q.wait(job['uid'])
        if (row['state'], row['run_dir'], row['cwd']) != ('stopped', run['run_dir'], os.path.realpath(q.path('there'))):
            yield f'the job: {row}'
        with open(run['run_dir'] + '/log.jsonl', encoding='utf-8') as f:
            steps = [json.loads(line)['step'] for line in f]
        if steps != sorted(steps) or steps.count(1) != 1:
            yield 'it began from the start'


def commands_of_a_terminal_go_on_as_jobs():
    with Queue() as q:
        os.mkdir(q.path('there'))
        subprocess.run([CAIRN, 'run', '--no-env', '--', 'sh', '-c', 'pwd'], env=q.environment(), cwd=q.path('there'), stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        run, = q.rows().values()
        if run['resumable']:
            yield 'a shell script that cairn knows nothing of is resumable'
        yield from refused(q.job('resume', run['uid']), 2, 'cannot be resumed', 'clone')
        copy = q.json('clone', run['uid'])['job']['uid']
        q.job('start', copy)
        q.wait(copy)
        if q.job('log', copy).stdout != os.path.realpath(q.path('there')) + '\n':
            yield f'the copy ran in {q.job("log", copy).stdout!r}'
        journal = q.row(run['uid'])['run_dir']
        with open(journal + '/events.jsonl', encoding='utf-8') as f:  # as older versions wrote it
            lines = f.read().split('\n')
        first = json.loads(lines[0])
        del first['cwd']
        with open(journal + '/events.jsonl', 'w', encoding='utf-8') as f:
            f.write('\n'.join([json.dumps(first)] + lines[1:]))
        yield from refused(q.job('clone', run['uid']), 2, 'in which folder', 'cairn job add')


if __name__ == '__main__':
    tap.only([
        runs_of_a_terminal_are_listed_and_stopped,
        runs_of_a_terminal_go_on_as_jobs,
        commands_of_a_terminal_go_on_as_jobs,
    ], sys.argv[1:])
