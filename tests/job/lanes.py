# SPDX-License-Identifier: Apache-2.0
"""Several GPUs: each runs one job at a time, in the order of the queue; other programs are waited for."""
import os
import shutil
import signal
import sys
import time

import tap
from queued import DATA, TWO_GPUS, Queue, has_begun, kill, until


def visible(q, uid):
    """What the trainer of a job that prints its environment saw."""
    return {line.partition('=')[0]: line.partition('=')[2] for line in q.log(uid).splitlines() if 'VISIBLE' in line}


def auto_takes_the_first_that_is_free():
    with Queue(TWO_GPUS) as q:
        uids = [q.trainer(f'job-{i}', 600 if i < 2 else 0) for i in range(4)]
        for i in range(2):
            has_begun(q, f'job-{i}')
        rows = q.rows()
        if [rows[u]['gpu_used'] for u in uids] != ['0', '1', None, None]:
            yield f'{[rows[u]["gpu_used"] for u in uids]}'
        cpu = q.add('--gpu', 'cpu', '--', 'true')
        if q.wait(cpu)['state'] != 'finished':
            yield 'a job for the CPU has a lane of its own'
        q.job('stop', uids[1])
        for uid in uids[2:]:
            row = q.wait(uid)
            if row['state'] != 'finished' or row['gpu_used'] != '1':
                yield f'{row}'
        yield from q.overlaps()


def the_trainer_sees_its_own_gpu():
    with Queue(TWO_GPUS) as q:
        shell = {'HIP_VISIBLE_DEVICES': '1', 'CUDA_VISIBLE_DEVICES': '0', 'GPU_DEVICE_ORDINAL': '1'}
        for gpu, used, seen in (('0', '0', {'ROCR_VISIBLE_DEVICES': '0'}), ('1', '1', {'ROCR_VISIBLE_DEVICES': '1'}),
                                ('1,0', '0,1', {'ROCR_VISIBLE_DEVICES': '0,1'}),
                                ('01,1', '1', {'ROCR_VISIBLE_DEVICES': '1'}),
                                ('cpu', 'cpu', {'HIP_VISIBLE_DEVICES': '-1'})):
            uid = q.add('--gpu', gpu, '--', 'env', env=shell)
            row = q.wait(uid)
            if row['gpu_used'] != used or visible(q, uid) != seen:
                yield f'--gpu {gpu}: used {row["gpu_used"]}, saw {visible(q, uid)}'


def what_the_machine_lacks_is_refused():
    with Queue(TWO_GPUS) as q:
        for gpu, code, word in (('2', 3, 'no GPU 2'), ('0,7', 3, 'no GPU 7'), ('-1', 2, '"-1"'), ('', 2, '""'),
                                ('0,', 2, '"0,"'), ('hip:0', 2, 'hip:0'), ('99999999999999999999', 2, '9999'),
                                ('0,1,2,0,1,2,0,1,2,0,1,2,0,1', 3, 'no GPU 2')):
            done = q.job('add', '--gpu=' + gpu, '--', 'true')
            if done.returncode != code or word not in done.stderr:
                yield f'--gpu {gpu}: {done}'
        done = q.job('add', '--gpu', '0,1', q.native())
        if done.returncode != 2 or 'uses one GPU' not in done.stderr:
            yield f'{done}'
        uid = q.add('--draft', '--gpu', '0', '--', 'true')
        done = q.job('edit', '--gpu', '5', uid)
        if done.returncode != 3 or q.row(uid)['gpu'] != '0' or len(q.rows()) != 1:
            yield f'{done}'
    with Queue() as q:
        done = q.job('add', '--gpu', '0', '--', 'true')
        if done.returncode != 3 or 'cairn gpu' not in done.stderr:
            yield f'{done}'


def a_job_for_two_gpus_does_not_starve():
    with Queue(TWO_GPUS) as q:
        first = q.trainer('first', 600)
        has_begun(q, 'first')
        both = q.trainer('both', 0, '--gpu', '0,1')
        later = q.trainer('later', 0, '--gpu', '1')
        time.sleep(0.3)
        if q.rows()[later]['state'] != 'queued' or q.rows()[both]['state'] != 'queued':
            yield f'a later one overtook it: {q.states()}'
        q.job('stop', first)
        for uid in (both, later):
            if q.wait(uid)['state'] != 'finished':
                yield f'{q.row(uid)}'
        marks = q.read('marks').split('\n')
        if marks.index('end both') > marks.index('start later'):
            yield f'{marks}'


class Busy:
    """A captured machine on which another program uses a GPU."""

    def __init__(self, q, gpu=0):
        self.path = q.path('machine')
        kfd = self.path + '/sys/class/kfd/kfd/'
        shutil.copytree(TWO_GPUS, self.path)
        for node in (1, 2):
            with open(f'{kfd}topology/nodes/{node}/gpu_id', 'w', encoding='ascii') as f:
                f.write(f'{1000 + node}\n')
        self.proc = f'{kfd}proc/4711'
        os.makedirs(self.proc)
        with open(f'{self.proc}/vram_{1001 + gpu}', 'w', encoding='ascii') as f:
            f.write('4096\n')
        os.makedirs(self.path + '/proc/4711')
        with open(self.path + '/proc/4711/comm', 'w', encoding='ascii') as f:
            f.write('ollama\n')

    def leaves(self):
        shutil.rmtree(self.proc)


def waiting(q, uid):
    return until(lambda: (row := q.row(uid))['state'] == 'starting' and row['cause'] and row, 'the job to wait')


def another_program_is_waited_for():
    with Queue() as q:
        busy = Busy(q)
        q.root = busy.path
        one = q.trainer('one', 0, '--gpu', '0')
        row = waiting(q, one)
        if row['cause'] != 'waiting for GPU 0, which ollama (pid 4711) uses' or row['alive'] is not True:
            yield f'{row}'
        other = q.trainer('other', 0, '--gpu', '1')
        if q.wait(other)['state'] != 'finished':
            yield 'the other GPU is free'
        busy.leaves()
        row = q.wait(one)
        if row['state'] != 'finished' or row['cause']:
            yield f'{row}'


def a_job_that_waits_can_be_stopped():
    for command, state in (('stop', 'stopped'), ('pause', 'paused'), ('kill', 'stopped')):
        with Queue() as q:
            busy = Busy(q)
            q.root = busy.path
            one = q.trainer('one', 0, '--gpu', '0', '--trainer', 'ai-toolkit')
            two = q.trainer('two', 0, '--gpu', '0')
            waiting(q, one)
            q.job(command, one)
            row = q.wait(one, 'stopped', 'paused')
            if row['state'] != state:
                yield f'{command}: {row}'
            busy.leaves()
            if command != 'kill':  # then the command itself moves the queue on
                until(lambda: q.columns(two, 'state')[0] == 'finished', 'the next job, without a call')
            if q.wait(two)['state'] != 'finished':
                yield f'{command}: {q.row(two)}'
            if 'start one' in q.read('marks'):
                yield f'{command}: it was started'
            yield from q.leftovers()


def one_that_waits_at_a_shutdown_stays_queued():
    with Queue() as q:
        busy = Busy(q)
        q.root = busy.path
        uid = q.trainer('one', 0, '--gpu', '0')
        waiting(q, uid)
        kill(q.tree(uid)[0], signal.SIGTERM)
        until(lambda: not q.processes(), 'the end of the supervisor')
        if q.columns(uid, 'state', 'attempt', 'claims') != ('queued', 0, 0):
            yield f'{q.columns(uid, "state", "attempt", "claims")}'
        busy.leaves()
        q.rows()
        if q.wait(uid)['state'] != 'finished':
            yield f'{q.row(uid)}'


def waiting_can_be_switched_off():
    with Queue() as q:
        q.root = Busy(q).path
        uid = q.trainer('one', 0, '--gpu', '0')
        waiting(q, uid)
        if q.json('queue', '--wait-idle', 'off') != {'schema': 1, 'paused': False, 'wait_idle': False}:
            yield f'{q.json("queue")}'
        if q.wait(uid)['state'] != 'finished':
            yield f'{q.row(uid)}'


def a_lost_gpu_is_said():
    """Eight GPUs when it was added, two when it starts."""
    with Queue(DATA + '/sysfs/gfx90a-mi210-8gpu-2hives') as q:
        q.job('queue', 'pause')
        uid = q.add('--gpu', '6', '--', 'true')
        q.root = TWO_GPUS
        q.job('queue', 'go')
        row = q.wait(uid)
        if row['state'] != 'failed' or '6' not in row['cause']:
            yield f'{row}'


if __name__ == '__main__':
    tap.only([
        auto_takes_the_first_that_is_free,
        the_trainer_sees_its_own_gpu,
        what_the_machine_lacks_is_refused,
        a_job_for_two_gpus_does_not_starve,
        another_program_is_waited_for,
        a_job_that_waits_can_be_stopped,
        one_that_waits_at_a_shutdown_stays_queued,
        waiting_can_be_switched_off,
        a_lost_gpu_is_said,
    ], sys.argv[1:])
