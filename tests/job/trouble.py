# SPDX-License-Identifier: Apache-2.0
"""What happens to jobs: reboots, clocks, kills, trainers that do not obey, folders and programs that are gone."""
import os
import shutil
import signal
import subprocess
import sys
import time

import tap
from queued import CAIRN, RUNNING, TWO_GPUS, Queue, has_begun, kill, stat_of, until

MS = 1000


def now_ms():
    return int(time.time() * MS)


def kill_all(q, uid):
    """As a power failure does: none sees the end of another."""
    pids = [p for p in q.tree(uid) if p]
    for pid in pids:
        kill(pid, signal.SIGSTOP)
    for pid in pids:
        kill(pid)
    until(lambda: not any(stat_of(pid) for pid in pids), 'the end of all')


# ---- rows and processes


def a_reboot_loses_the_job_and_no_other():
    with Queue() as q:
        one, two = q.trainer('one', 600), q.trainer('two', 0.1)
        has_begun(q, 'one')
        kill_all(q, one)
        q.sql("UPDATE job SET boot_id = 'another boot', pid = ? WHERE uid = ?", os.getpid(), one)
        row = q.rows()[one]
        if row['state'] != 'lost' or 'power loss' not in row['cause'] or row['pid'] is not None:
            yield f'after a reboot: {row}'
        if q.wait(two)['state'] != 'finished':
            yield f'the next job: {q.row(two)}'
        yield from q.leftovers()


def the_lock_counts_and_not_the_row():
    """A row that names another boot or another process does not make a running job look dead."""
    with Queue() as q:
        uid = q.trainer('one', 600)
        has_begun(q, 'one')
        other = subprocess.Popen(['sleep', '600'])
        for boot, pid in (('another boot', None), (None, other.pid)):
            q.sql('UPDATE job SET boot_id = coalesce(?, boot_id), pid = coalesce(?, pid) WHERE uid = ?', boot, pid, uid)
            if q.rows()[uid]['state'] != 'active' or not q.rows()[uid]['alive']:
                yield f'{boot} {pid}: {q.row(uid)}'
        q.job('stop', uid)
        if other.poll() is not None:
            yield 'another process, which had the PID, was killed'
        other.kill()
        other.wait()


def a_claim_without_a_supervisor_goes_back():
    with Queue() as q:
        uid = q.add('--draft', '--gpu', 'cpu', '--', './trainer', 'one', '0')
        for since, states in ((now_ms() - 3 * MS, ('starting',)), (now_ms() - 11 * MS, RUNNING + ('finished',)),
                              (now_ms() + 3600 * MS, RUNNING + ('finished',))):
            q.sql("UPDATE job SET state = 'starting', since = ?, claims = 1, attempt = attempt + 1, pid = NULL,"
                  " gpu_used = 'cpu' WHERE uid = ?", since, uid)
            state = q.rows()[uid]['state']
            if state not in states:
                yield f'claimed {(now_ms() - since) / MS:.0f} s ago: {state}'
            if 'finished' in states and q.wait(uid)['state'] != 'finished':
                yield f'{q.row(uid)}'


def the_third_claim_is_the_last():
    with Queue() as q:
        uid = q.add('--draft', '--gpu', 'cpu', '--', './trainer', 'one', '0')
        q.sql("UPDATE job SET state = 'starting', since = ?, claims = 3, attempt = 3, gpu_used = 'cpu' WHERE uid = ?",
              now_ms() - 11 * MS, uid)
        row = q.rows()[uid]
        if row['state'] != 'failed' or 'did not start, 3 times' not in row['cause']:
            yield row
        q.job('start', uid)
        if q.wait(uid)['state'] != 'finished':
            yield f'started again: {q.row(uid)}'


def a_supervisor_that_died_early_is_replaced():
    """It had its lock, and had not begun."""
    with Queue() as q:
        uid = q.add('--draft', '--gpu', 'cpu', '--', './trainer', 'one', '0')
        open(q.folder(uid) + '/lock', 'w', encoding='utf-8').close()
        q.sql("UPDATE job SET state = 'starting', since = ?, claims = 1, attempt = 1, gpu_used = 'cpu', pid = 999999,"
              " pid_start = 1, boot_id = 'x' WHERE uid = ?", now_ms(), uid)
        if q.rows()[uid]['state'] not in RUNNING + ('finished',) or q.wait(uid)['state'] != 'finished':
            yield q.row(uid)


def processes_without_a_guardian_are_ended():
    """The trainer dies with its guardian, but what it started does not; the next job must not run beside that."""
    with Queue() as q:
        one, two = q.trainer('one', 600, script='parent'), q.trainer('two', 0)
        has_begun(q, 'one')
        supervisor, guardian, trainer = q.tree(one)
        for pid in (supervisor, guardian):
            kill(pid, signal.SIGSTOP)
        for pid in (supervisor, guardian):
            kill(pid)
        until(lambda: not stat_of(trainer), 'the end of the trainer')
        if not q.processes():
            yield 'nothing is left, so this test tests nothing'
        state = q.rows()[one]['state']
        if state != 'lost':
            yield f'the job is {state}'
        if q.wait(two)['state'] != 'finished':
            yield q.row(two)
        yield from q.overlaps()
        yield from q.leftovers()


def a_lock_that_somebody_deleted_does_not_free_the_lane():
    for whole in (False, True):
        with Queue() as q:
            one, two = q.trainer('one', 0.8), q.trainer('two', 0)
            has_begun(q, 'one')
            if whole:
                shutil.rmtree(q.folder(one))
            else:
                os.remove(q.folder(one) + '/lock')
            if q.rows()[one]['state'] != 'active' or q.rows()[two]['state'] != 'queued':
                yield f'{q.states()}'
            q.wait(two)
            state = q.rows()[one]['state']
            if state != ('lost' if whole else 'finished'):
                yield f'in the end: {state}'
            yield from q.overlaps()


def a_signal_from_outside_does_not_start_the_next():
    """At a shutdown every process gets SIGTERM, and a new one would be killed at once."""
    with Queue() as q:
        one, two = q.trainer('one', 600), q.trainer('two', 0)
        has_begun(q, 'one')
        kill(q.tree(one)[0], signal.SIGTERM)
        until(lambda: not q.processes(), 'the end of the supervisor')
        (state, cause), (other,) = q.columns(one, 'state', 'cause'), q.columns(two, 'state')
        if state != 'stopped' or 'a signal stopped it' not in cause or other != 'queued':
            yield f'{state}, {cause}; the next: {other}'
        q.rows()
        if q.wait(two)['state'] != 'finished':
            yield f'the next does not start when somebody looks: {q.row(two)}'


def a_stop_in_any_moment_is_heard():
    """Also while the supervisor starts; and the queue goes on by itself.  A script would not do: a shell that is about to start a
    program loses SIGINT, as with Ctrl-C in a terminal, and ends with SIGTERM after the grace."""
    with Queue() as q:
        for i in range(8):
            one, two = q.add('--gpu', 'cpu', '--', 'sleep', '600'), q.trainer(f'two-{i}', 0)
            time.sleep(0.012 * i)
            q.job('stop', one)
            until(lambda: q.columns(two, 'state')[0] == 'finished', f'the job behind one that was stopped after {12 * i} ms')
            if q.row(one)['state'] != 'stopped':
                yield f'{12 * i} ms: {q.row(one)}'
        yield from q.leftovers()


# ---- trainers


def a_trainer_that_ignores_signals_is_ended():
    for ignored, code in (('INT', 143), ('INT TERM', 137)):
        with Queue() as q:
            uid = q.add('--gpu', 'cpu', '--grace', '1', '--', 'sh', '-c',
                        f"trap '' {ignored}; echo begun; while :; do sleep 0.1; done")
            until(lambda: 'begun' in q.log(uid), 'the start')
            done = q.json('stop', uid)['job']
            if done['want'] != 'stop' or done['stopping_s'] not in (0, 1):
                yield f'{ignored}: {done}'
            row = q.wait(uid)
            if row['state'] != 'stopped' or row['exit_code'] != code:
                yield f'{ignored}: {row}'
            if 'sending SIGTERM, then SIGKILL' not in q.read(q.folder(uid) + '/supervisor.log'):
                yield f'{ignored}: {q.read(q.folder(uid) + "/supervisor.log")}'
            yield from q.leftovers()


def a_trainer_has_time_to_save():
    with Queue() as q:
        uid = q.add('--gpu', 'cpu', '--', 'sh', '-c', 'trap "sleep 0.5; echo saved; exit 0" INT; echo begun; '
                    'while :; do sleep 0.05; done')
        until(lambda: 'begun' in q.log(uid), 'the start')
        first = q.json('stop', uid)['job']
        if not 55 < first['stopping_s'] <= 60:
            yield f'countdown: {first["stopping_s"]}'
        q.job('stop', uid)  # impatience changes nothing
        if q.wait(uid)['state'] != 'stopped' or 'saved' not in q.log(uid):
            yield f'{q.row(uid)}: {q.log(uid)}'


def a_job_may_add_jobs():
    """What a trainer adds is not part of it: it starts on a free GPU, and lives on."""
    with Queue(TWO_GPUS) as q:
        outer = q.add('--gpu', '0', '--name', 'outer', '--', 'sh', '-c',
                      f'{CAIRN} job add --root {TWO_GPUS} --gpu 1 --name inner -- ./trainer inner 1; sleep 0.2')
        if q.wait(outer)['state'] != 'finished':
            yield f'the outer one: {q.row(outer)}'
        inner = next(r['uid'] for r in q.rows().values() if r['name'] == 'inner')
        if q.wait(inner)['state'] != 'finished' or 'end inner' not in q.read('marks'):
            yield f'the inner one: {q.row(inner)}'
        seconds = q.row(outer)['finished'] - q.row(outer)['started']
        if seconds > 3:
            yield f'the outer one waited {seconds} s for the inner one'


# ---- folders, programs, configurations


def a_folder_that_is_gone_fails_the_job():
    with Queue() as q:
        os.mkdir(q.path('work'))
        q.job('queue', 'pause')
        uid = q.add('--gpu', 'cpu', '--', 'true', cwd=q.path('work'))
        other = q.trainer('other', 0)
        os.rmdir(q.path('work'))
        q.job('queue', 'go')
        row = q.wait(uid)
        if row['state'] != 'failed' or q.path('work') not in row['cause'] or 'make it again' not in row['cause']:
            yield row
        if q.wait(other)['state'] != 'finished':
            yield q.row(other)


def the_folder_of_a_job_may_be_deleted_before_it_starts():
    with Queue() as q:
        q.job('queue', 'pause')
        for how in ('config', 'folder'):
            uid = q.add('--gpu', 'cpu', '--steps', '1', q.native())
            if how == 'config':
                os.remove(q.folder(uid) + '/config.yaml')
            else:
                shutil.rmtree(q.folder(uid))
        q.job('queue', 'go')
        q.wait_for_end()
        for row in q.rows().values():
            if row['state'] != 'finished' or not os.path.exists(q.folder(row['uid']) + '/config.yaml'):
                yield row


def a_folder_that_cannot_be_used_does_not_stop_the_queue():
    with Queue() as q:
        q.job('queue', 'pause')
        one, two = q.trainer('one', 0), q.trainer('two', 0)
        os.mkdir(q.folder(one) + '/supervisor.log')
        q.job('queue', 'go')
        if q.wait(two)['state'] != 'finished' or q.row(one)['state'] != 'failed':
            yield f'{q.row(one)} {q.row(two)}'
        if 'supervisor.log' not in q.row(one)['cause']:
            yield q.row(one)['cause']


def a_program_that_is_replaced_goes_on():
    for gone in (True, False):
        with Queue() as q:
            q.cairn = q.path('cairn')
            shutil.copy(CAIRN, q.cairn)
            one, two = q.trainer('one', 0.5), q.trainer('two', 0)
            three = q.add('--gpu', 'cpu', '--steps', '1', q.native())
            has_begun(q, 'one')
            os.remove(q.cairn)
            if not gone:
                shutil.copy(CAIRN, q.cairn)
            q.cairn = CAIRN
            for uid in (one, two, three):
                if q.wait(uid)['state'] != 'finished':
                    yield f'{"removed" if gone else "replaced"}: {q.row(uid)}'


def a_large_configuration_is_kept():
    with Queue() as q:
        text = open(q.native(), encoding='utf-8').read()
        big = q.file('big.yaml', text + '# ' + 'x' * 900000 + '\n')
        uid = q.add('--gpu', 'cpu', '--steps', '1', big)
        if q.wait(uid)['state'] != 'finished' or len(q.row(uid)['config']) < 900000:
            yield {k: v for k, v in q.row(uid).items() if k != 'config'}
        if os.path.getsize(q.folder(uid) + '/config.yaml') != os.path.getsize(big):
            yield 'the file of the job is another'
        huge = q.file('huge.yaml', text + '# ' + 'x' * (5 << 20))
        for command in (('add', '--gpu', 'cpu', huge), ('add', '--draft', huge), ('edit', '--config', huge, uid)):
            done = q.job(*command)
            if done.returncode not in (1, 2) or 'huge.yaml: too large' not in done.stderr or len(q.rows()) != 1:
                yield f'5 MiB: {done}'


if __name__ == '__main__':
    tap.only([
        a_reboot_loses_the_job_and_no_other,
        the_lock_counts_and_not_the_row,
        a_claim_without_a_supervisor_goes_back,
        the_third_claim_is_the_last,
        a_supervisor_that_died_early_is_replaced,
        processes_without_a_guardian_are_ended,
        a_lock_that_somebody_deleted_does_not_free_the_lane,
        a_signal_from_outside_does_not_start_the_next,
        a_stop_in_any_moment_is_heard,
        a_trainer_that_ignores_signals_is_ended,
        a_trainer_has_time_to_save,
        a_job_may_add_jobs,
        a_folder_that_is_gone_fails_the_job,
        the_folder_of_a_job_may_be_deleted_before_it_starts,
        a_folder_that_cannot_be_used_does_not_stop_the_queue,
        a_program_that_is_replaced_goes_on,
        a_large_configuration_is_kept,
    ], sys.argv[1:])
