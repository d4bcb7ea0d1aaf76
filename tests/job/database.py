# SPDX-License-Identifier: Apache-2.0
"""The database of a queue is deleted, damaged, locked, read-only or on a full disk, or two shells use it at once."""
import json
import os
import resource
import sqlite3
import subprocess
import sys
import time

import tap
from queued import CAIRN, Queue, has_begun, kill, until


def a_deleted_database_is_made_again():
    for names in (('cairn.db',), ('cairn.db', 'cairn.db-wal', 'cairn.db-shm'), ('cairn.db-wal', 'cairn.db-shm')):
        with Queue() as q:
            done = q.trainer('done', 0)
            q.wait(done)
            active, waiting = q.trainer('active', 600), q.trainer('waiting', 0)
            has_begun(q, 'active')
            for name in names:
                if os.path.exists(f'{q.state}/{name}'):
                    os.remove(f'{q.state}/{name}')
            listed = q.job('list')
            states, expected = q.states(), {'done': 'finished', 'active': 'active', 'waiting': 'draft'}
            if 'cairn.db' not in names:
                expected['waiting'] = 'queued'
            if listed.returncode or states != expected:
                yield f'{names}: {states} {listed.stderr}'
            if 'cairn.db' in names and 'was missing; 3 jobs were read from their folders' not in ' '.join(listed.stderr.split()):
                yield f'{names}: {listed.stderr}'
            another = q.trainer('another', 0)
            if q.row(another)['state'] != 'queued':
                yield f'a second one on the lane: {q.row(another)}'
            q.job('stop', active)
            if q.wait(active)['state'] != 'stopped' or q.wait(another)['state'] != 'finished':
                yield f'{names}: {q.states()}'
            yield from q.overlaps()


def a_damaged_database_is_rebuilt_when_asked():
    for how in ('garbage', 'cut', 'page'):
        with Queue() as q:
            done, draft = q.trainer('done', 0), q.add('--draft', '--name', 'draft', '--note', 'n', '--', 'true')
            q.wait(done)
            active = q.trainer('active', 600)
            has_begun(q, 'active')
            for _ in range(40):
                q.sql("INSERT INTO setting(key, value) VALUES(hex(randomblob(8)), hex(randomblob(500)))")
            path = q.state + '/cairn.db'
            size = os.path.getsize(path)
            with open(path, 'r+b') as f:
                if how == 'cut':
                    f.truncate(size // 2)
                else:
                    f.seek(0 if how == 'garbage' else 4096)
                    f.write(b'\xa5' * (size if how == 'garbage' else 4096))
            listed = q.job('list')
            if listed.returncode != 1 or 'cairn job rebuild' not in listed.stderr or path not in listed.stderr:
                yield f'{how}: {listed}'
            built = q.json('rebuild')
            if built['added'] != 3 or not os.path.exists(built['old'] or ''):
                yield f'{how}: {built}'
            if q.states() != {'done': 'finished', 'draft': 'draft', 'active': 'active'} or q.row(draft)['note'] != 'n':
                yield f'{how}: {q.states()} {q.row(draft)}'
            if q.json('rebuild') != {'schema': 1, 'added': 0, 'skipped': 0, 'old': None}:
                yield f'{how}: a second time'
            q.job('kill', active)
            yield from q.leftovers()


def an_empty_database_is_filled():
    with Queue() as q:
        uid = q.add('--draft', '--', 'true')
        with open(q.state + '/cairn.db', 'w', encoding='utf-8'):
            pass
        for name in ('-wal', '-shm'):
            if os.path.exists(q.state + '/cairn.db' + name):
                os.remove(q.state + '/cairn.db' + name)
        if list(q.rows()) != [uid]:
            yield q.states()


def rebuild_adds_what_is_missing_and_keeps_the_rest():
    with Queue() as q:
        q.job('queue', 'pause')
        uids = [q.trainer(f'job-{i}', 0) for i in range(3)]
        q.job('move', '--first', uids[2])
        q.sql('DELETE FROM job WHERE uid = ?', uids[1])
        with open(q.folder(uids[0]) + '/job.json', 'w', encoding='utf-8') as f:
            f.write('{"name": 7')
        if q.json('rebuild')['added'] != 1:
            yield 'one was missing'
        if q.states() != {'job-0': 'queued', 'job-1': 'draft', 'job-2': 'queued'}:
            yield q.states()
        os.remove(q.state + '/cairn.db')
        listed = q.job('list')
        if 'which could not be' not in listed.stderr or len(q.rows()) != 2:
            yield f'{listed}'
        done = q.job('rebuild')
        if 'left out' not in done.stderr or uids[0] not in done.stderr:
            yield f'{done}'


def a_locked_database_is_waited_for(seconds=1.5):
    """A user gets an answer after five seconds; a supervisor waits, and the queue goes on."""
    with Queue() as q:
        one, two = q.trainer('one', 0.3), q.trainer('two', 0)
        has_begun(q, 'one')
        db = sqlite3.connect(q.state + '/cairn.db', isolation_level=None)
        db.execute('BEGIN EXCLUSIVE')
        begin = time.monotonic()
        done = q.job('stop', one)
        took = time.monotonic() - begin
        if done.returncode != 1 or 'locked' not in done.stderr or not 4 < took < 20:
            yield f'after {took:.1f} s: {done}'
        until(lambda: 'end one' in q.read('marks'), 'the end of the trainer')
        time.sleep(seconds)
        db.execute('ROLLBACK')
        db.close()
        until(lambda: q.columns(two, 'state')[0] == 'finished', 'the next job, without a call')
        if q.row(one)['state'] != 'finished':
            yield q.row(one)


def a_new_database_that_another_makes_is_waited_for():
    """SQLite calls no busy handler when it switches to another journal."""
    with Queue() as q:
        os.makedirs(q.state, mode=0o700)
        os.close(os.open(q.state + '/cairn.db', os.O_CREAT | os.O_WRONLY, 0o600))
        other = sqlite3.connect(q.state + '/cairn.db', isolation_level=None)
        other.execute('BEGIN IMMEDIATE')
        added = subprocess.Popen([CAIRN, 'job', 'add', '--draft', '--', 'true'], env=q.environment(), cwd=q.home, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        if added.poll() is not None:
            yield f'it did not wait: {added.stderr.read()}'
        other.execute('COMMIT')
        _, said = added.communicate(timeout=30)
        if added.returncode or said:
            yield f'{added.returncode} {said}'
        other.close()


def a_database_locked_for_a_minute_is_waited_for():
    return a_locked_database_is_waited_for(60)


def a_newer_database_is_left_alone():
    with Queue() as q:
        q.add('--draft', '--', 'true')
        q.sql('PRAGMA user_version = 99')
        for command in ('list', 'rebuild'):
            done = q.job(command)
            if done.returncode != 2 or 'newer cairn' not in done.stderr:
                yield f'{done}'


def read_only(q, *command):
    """Runs cairn where the home cannot be written."""
    if os.geteuid():
        os.chmod(q.state, 0o500)
        try:
            return q.run(*command)
        finally:
            os.chmod(q.state, 0o700)
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    done = subprocess.run(['unshare', '--mount', 'sh', '-c', script, q.home, CAIRN, *command], env=q.environment(),
                          cwd='/', stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60, check=False)
    if 'mount' in done.stderr or 'unshare' in done.stderr:
        raise tap.Skip(f'no read-only mount here: {done.stderr.strip()}')
    return done


def a_read_only_disk_shows_the_jobs():
    with Queue() as q:
        done, draft = q.trainer('done', 0), q.add('--draft', '--name', 'draft', '--', 'true')
        q.wait(done)
        db = sqlite3.connect(q.state + '/cairn.db')  # so that the last changes are in the log of SQLite
        db.execute('SELECT count(*) FROM job').fetchall()
        q.json('edit', '--name', 'renamed', draft)
        listed = read_only(q, 'job', 'list', '--json')
        names = sorted(r['name'] for r in json.loads(listed.stdout or '{"jobs":[]}')['jobs'])
        if listed.returncode or names != ['done', 'renamed'] or 'read-only' not in listed.stderr:
            yield f'{names} {listed.returncode} {listed.stderr}'
        db.close()
        for command in (('job', 'start', draft), ('job', 'add', '--', 'true'), ('job', 'rm', done)):
            refused = read_only(q, *command)
            if refused.returncode != 1 or not refused.stderr:
                yield f'{command}: {refused}'
        if q.states() != {'done': 'finished', 'renamed': 'draft'}:
            yield q.states()


def the_folder_of_another_user_is_refused():
    if os.geteuid():
        raise tap.Skip('needs root, to give a folder away')
    with Queue() as q:
        q.add('--draft', '--', 'true')
        os.chown(q.state, 65534, 65534)
        for command in (('list',), ('add', '--', 'true'), ('rebuild',)):
            done = q.job(*command)
            if done.returncode != 1 or 'belongs to uid 65534' not in done.stderr:
                yield f'{command}: {done}'
        os.chown(q.state, 0, 0)


# ---- disks


def whole(q):
    """Findings about rows without a folder."""
    for row in q.rows().values():
        if not os.path.exists(q.folder(row['uid']) + '/job.json'):
            yield f'{row["uid"]} has a row and no folder'


def a_limit_on_files_loses_nothing():
    """Each write fails once the file is as long as this."""
    with Queue() as q:
        q.add('--draft', '--name', 'first', '--', 'true')
        added = 1
        for limit in (0, 64, 512, 2048, 4096, 8192, 32768, 65536):
            done = subprocess.run([CAIRN, 'job', 'add', '--draft', '--', 'true'], env=q.environment(), cwd=q.home,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                                  preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                                   (limit, limit)))
            if done.returncode not in (0, 1) or (done.returncode and not done.stderr):
                yield f'{limit} bytes: {done}'
            added += done.returncode == 0
            if len(q.rows()) != added:
                yield f'{limit} bytes: {len(q.rows())} rows, {added} were added'
            yield from whole(q)
        if added == 1 or added == 9:
            yield f'{added - 1} of 8 succeeded: the limits test nothing'


def a_full_disk_loses_nothing():
    with Queue() as q:
        os.mkdir(q.home + '/state')
        if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=1m,mode=700', 'none', q.home + '/state'],
                          stderr=subprocess.DEVNULL, check=False).returncode:
            raise tap.Skip('no tmpfs can be mounted')
        try:
            yield from fill(q)
        finally:
            for pid in q.processes():
                kill(pid)
            until(lambda: not q.processes(), 'the end')
            subprocess.run(['umount', '-l', q.home + '/state'], check=False)


def fill(q):
    one, two = q.trainer('one', 1), q.trainer('two', 0)
    has_begun(q, 'one')
    with open(q.home + '/state/filler', 'wb', buffering=0) as f:
        try:
            while True:
                f.write(b'x' * 4096)
        except OSError:
            pass
    failed = [q.job('add', '--draft', '--', 'true') for _ in range(3)]
    if any(d.returncode not in (0, 1) for d in failed) or not any(d.returncode for d in failed):
        yield f'on a full disk: {failed}'
    until(lambda: 'end one' in q.read('marks'), 'the end of the trainer')
    until(lambda: not q.processes(), 'the end of the supervisor')
    os.remove(q.home + '/state/filler')
    rows = q.rows()
    if rows[one]['state'] not in ('finished', 'lost'):
        yield rows[one]
    if q.wait(two)['state'] != 'finished':
        yield q.row(two)
    yield from whole(q)


# ---- two at once


def two_shells_add_at_once():
    with Queue() as q:
        script = f'i=0; while [ $i -lt 20 ]; do {CAIRN} job add --gpu cpu --name "$0-$i" -- ./trainer $0-$i 0 || exit 1; ' \
                 'i=$((i+1)); done'
        shells = [subprocess.Popen(['sh', '-c', script, name], env=q.environment(), cwd=q.home, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True) for name in ('a', 'b')]
        for shell in shells:
            out, err = shell.communicate(timeout=120)
            if shell.returncode or err or len(out.splitlines()) != 20:
                yield f'{shell.returncode} {err} {out}'
        q.wait_for_end()
        states = q.states()
        wanted = {f'{s}-{i}' for s in 'ab' for i in range(20)}
        if set(states) != wanted or set(states.values()) != {'finished'}:
            yield states
        for name in wanted:
            if q.read('marks').count(f'start {name}\n') != 1:
                yield f'{name} was started {q.read("marks").count(f"start {name}")} times'
        yield from q.overlaps()
        yield from q.leftovers()


def many_lists_start_a_job_once():
    with Queue() as q:
        q.job('queue', 'pause')
        uids = [q.trainer(f'job-{i}', 0) for i in range(6)]
        q.sql("UPDATE setting SET value = 'false' WHERE key = 'queue.paused'")
        lists = [subprocess.Popen([CAIRN, 'job', 'list'], env=q.environment(), cwd=q.home, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True) for _ in range(8)]
        for p in lists:
            if p.communicate()[1] or p.returncode:
                yield f'{p.returncode}'
        q.wait_for_end()
        for i, uid in enumerate(uids):
            if q.read('marks').count(f'start job-{i}\n') != 1 or q.row(uid)['attempt'] != 1:
                yield f'job-{i}: {q.row(uid)["attempt"]} attempts, {q.read("marks")}'
        yield from q.overlaps()


def the_first_calls_at_once_make_one_database():
    with Queue() as q:
        first = [subprocess.Popen([CAIRN, 'job', 'add', '--draft', '--', 'true'], env=q.environment(), cwd=q.home,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(8)]
        for p in first:
            _, err = p.communicate()
            if p.returncode or err:
                yield f'{p.returncode} {err}'
        if len(q.rows()) != 8:
            yield f'{len(q.rows())} rows'


if __name__ == '__main__':
    tap.only([
        a_deleted_database_is_made_again,
        a_damaged_database_is_rebuilt_when_asked,
        an_empty_database_is_filled,
        rebuild_adds_what_is_missing_and_keeps_the_rest,
        a_locked_database_is_waited_for,
        a_new_database_that_another_makes_is_waited_for,
        a_newer_database_is_left_alone,
        a_read_only_disk_shows_the_jobs,
        the_folder_of_another_user_is_refused,
        a_limit_on_files_loses_nothing,
        a_full_disk_loses_nothing,
        two_shells_add_at_once,
        many_lists_start_a_job_once,
        the_first_calls_at_once_make_one_database,
    ] + ([a_database_locked_for_a_minute_is_waited_for] if sys.argv[1:] else []), sys.argv[1:])
