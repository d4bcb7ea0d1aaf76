# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around the server: large and deleted configurations, disks, databases, other servers, no libmicrohttpd.

A port in use and the end of a server are in command.py; what jobs live through is in tests/job.
"""
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time

import tap
from checked import Checked
from webserver import CAIRN, DATA, Server, expect, wait_for

UID = '/api/v1/jobs/{uid}'
TEXT = '''# a comment that stays
model: {layers: 1, heads: 2, width: 32, context: 32}
data: {path: %s, tokenizer: bytes}
train: {steps: 4, batch: 2, lr: 1e-3, allow_cpu: true}
''' % (DATA + '/text/stones.txt')


def is_sanitized():
    return 'ASAN_OPTIONS' in os.environ


def ends(s, uid):
    """The job once it is over.  A database that is locked for a moment, as by each commit on a network file system, is asked again."""
    def over():
        answer = s.get(f'/api/v1/jobs/{uid}')
        if answer.status not in (200, 503):
            raise AssertionError(f'{answer.status}: {answer.json()}')
        answers.append(answer.json())
        return answers[-1].get('state') in ('finished', 'failed', 'lost', 'stopped')
    answers = []
    wait_for(over, 60)
    return answers[-1]


# ---- configurations


def a_configuration_of_5_mb_is_refused():
    """By the API with 413, by a terminal with the name of the file; nothing is lost by it."""
    with Checked('--allow-root') as c:
        uid = c.post('/api/v1/jobs', {'config': TEXT, 'gpu': 'cpu'}, status=201).json()['uid']
        large = TEXT + '# ' + 'x' * (5 << 20) + '\n'
        for path in ('/api/v1/check', '/api/v1/plan', '/api/v1/jobs'):
            detail = c.post(path, {'config': large}, status=413).json()['detail']
            c.same(path, '1048576 bytes' in detail, True)
        c.change('PATCH', f'/api/v1/jobs/{uid}', {'config': large}, template=UID, status=413)
        with open(f'{c.s.home}/large.yaml', 'w', encoding='utf-8') as f:
            f.write(large)
        for words in (('add', 'large.yaml'), ('edit', '--config', 'large.yaml', uid)):
            done = c.s.cairn('job', *words)
            c.same(f'{words}', (done.returncode in (1, 2), 'large.yaml: too large' in done.stderr), (True, True))
        c.same('the job', [j['uid'] for j in c.get('/api/v1/jobs').json()['jobs']], [uid])
        c.same('its text', c.get(f'/api/v1/jobs/{uid}', template=UID).json()['config'], TEXT)
        return c.findings


def a_configuration_that_was_deleted_is_still_there():
    """The row has the text: it is shown, cloned, edited and trained, and the file is made again."""
    with Checked('--allow-root') as c:
        uid = c.post('/api/v1/jobs', {'config': TEXT, 'gpu': 'cpu', 'cwd': c.s.home}, status=201).json()['uid']
        path = f'{c.s.home}/state/cairn/jobs/{uid}/config.yaml'
        os.remove(path)
        c.same('shown', c.get(f'/api/v1/jobs/{uid}', template=UID).json()['config'], TEXT)
        c.same('in a terminal', c.s.cairn('job', 'show', uid).returncode, 0)
        clone = c.post(f'/api/v1/jobs/{uid}/clone', {}, template=UID + '/{action}', status=202).json()
        c.same('cloned', clone['config'], TEXT)
        c.change('PATCH', f'/api/v1/jobs/{uid}', {'config': TEXT + '# more\n'}, template=UID)
        with open(path, encoding='utf-8') as f:
            c.same('edited', f.read(), TEXT + '# more\n')
        os.remove(path)
        c.post(f'/api/v1/jobs/{uid}/start', {}, template=UID + '/{action}', status=202)
        c.same('trained', ends(c.s, uid)['state'], 'finished')
        with open(path, encoding='utf-8') as f:
            c.same('made again', f.read(), TEXT + '# more\n')
        return c.findings


def a_configuration_whose_file_is_gone_was_copied():
    """The user's own file may go once the job is there."""
    with Checked('--allow-root') as c:
        with open(f'{c.s.home}/mine.yaml', 'w', encoding='utf-8') as f:
            f.write(TEXT)
        uid = json.loads(c.s.cairn('job', 'add', '--json', '--draft', '--gpu', 'cpu', 'mine.yaml').stdout)['job']['uid']
        os.remove(f'{c.s.home}/mine.yaml')
        c.post(f'/api/v1/jobs/{uid}/start', {}, template=UID + '/{action}', status=202)
        c.same('trained', ends(c.s, uid)['state'], 'finished')
        done = c.s.cairn('job', 'add', 'mine.yaml')
        c.same('added again', (done.returncode in (1, 2), 'mine.yaml' in done.stderr), (True, True))
        return c.findings


def values_of_other_types_are_refused():
    with Checked('--allow-root') as c:
        uids = [c.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu'}, status=201).json()['uid'] for _ in range(2)]
        for position in ({}, [1], 'first', True):
            c.change('PATCH', f'/api/v1/jobs/{uids[0]}', {'position': position}, template=UID, status=422)
        for body in (b'[1]', b'false', b'{"x":'):
            c.post(f'/api/v1/jobs/{uids[0]}/start', body=body, template=UID + '/{action}', status=400)
        c.same('not started', c.get(f'/api/v1/jobs/{uids[0]}', template=UID).json()['state'], 'draft')
        for part in ('log', 'series', 'files'):
            answer = c.s.post(f'/api/v1/jobs/{uids[0]}/{part}', {})
            c.same(f'POST {part}', (answer.status, answer.headers.get('allow')), (405, 'GET'))
        return c.findings


# ---- clocks and disks


def preload(s, name):
    """Has the commands of a server's user run with that library, NAME.c."""
    if is_sanitized():
        raise tap.Skip('a sanitizer wants to be the first library')
    library = f'{s.home}/{name}.so'
    source = os.path.join(os.path.dirname(__file__), name + '.c')
    made = subprocess.run(['cc', '-shared', '-fPIC', '-o', library, source], stderr=subprocess.PIPE, check=False)
    if made.returncode:
        raise tap.Skip(f'no compiler: {made.stderr.decode().strip()[:200]}')
    s.environment['LD_PRELOAD'] = library


def a_clock_that_is_set_back_changes_no_state():
    findings = []
    with Server('--allow-root') as s:
        s.login()
        before = s.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu', 'start': True}).json()['uid']
        expect(findings, 'before', ends(s, before)['state'], 'finished')
        live = s.post('/api/v1/jobs', {'argv': ['/bin/sleep', '600'], 'gpu': 'cpu', 'start': True}).json()['uid']
        wait_for(lambda: s.get(f'/api/v1/jobs/{live}').json()['state'] == 'active')
        later = s.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu', 'start': True}).json()['uid']
        s.stop()
        preload(s, 'clock_back')
        s.port = 0
        s.start()
        s.login()
        created = s.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu'}).json()['created']
        if not 86000 < time.time() - created < 87000:
            return [f'the clock is not set back: {created}']
        rows = json.loads(s.cairn('job', 'list', '--json', '--all').stdout)['jobs']
        expect(findings, 'states', {r['uid']: r['state'] for r in rows if r['state'] != 'draft'}, {before: 'finished', live: 'active', later: 'queued'})
        stopped = s.post(f'/api/v1/jobs/{live}/stop', {}).json()
        if stopped['stopping_s'] is not None and not 0 <= stopped['stopping_s'] <= 60:
            findings.append(f'{stopped["stopping_s"]} s to stop')
        expect(findings, 'stopped', ends(s, live)['state'], 'stopped')
        expect(findings, 'the next one', ends(s, later)['state'], 'finished')
        after = json.loads(s.cairn('job', 'add', '--json', '--gpu', 'cpu', '--', 'true').stdout)['job']['uid']
        expect(findings, 'a new one', ends(s, after)['state'], 'finished')
    return findings


def a_state_folder_that_cannot_be_made_is_said():
    findings = []
    with Server(wait=False) as s:
        with open(s.home + '/file', 'w', encoding='utf-8'):
            pass
        s.environment['XDG_STATE_HOME'] = s.home + '/file'
        for command in (['ui', '--no-open', '--port', '0'], ['job', 'list'], ['job', 'add', '--', 'true']):
            done = s.cairn(*command)
            expect(findings, f'exit of {command}', done.returncode, 1)
            for word in (s.home + '/file', 'set XDG_STATE_HOME'):
                if word not in done.stderr:
                    findings.append(f'no {word} in {done.stderr!r}')
    return findings


def a_read_only_state_folder_is_said():
    findings = []
    with Server(wait=False) as s:
        s.cairn('job', 'add', '--draft', '--name', 'kept', '--', 'true')
        state = s.home + '/state'
        if os.geteuid():
            os.chmod(state + '/cairn', 0o500)
            done = s.cairn('ui', '--no-open', '--port', '0')
            os.chmod(state + '/cairn', 0o700)
        else:
            script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
            done = subprocess.run(['unshare', '--mount', 'sh', '-c', script, state, CAIRN, 'ui', '--no-open', '--port', '0'], env=s.environment, cwd='/',
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8', timeout=60, check=False)
            if 'mount' in done.stderr or 'unshare' in done.stderr:
                raise tap.Skip(f'no read-only mount here: {done.stderr.strip()}')
        expect(findings, 'exit', done.returncode, 1)
        for word in (state, 'XDG_STATE_HOME'):
            if word not in done.stderr:
                findings.append(f'no {word} in {done.stderr!r}')
        expect(findings, 'the job', [j['name'] for j in json.loads(s.cairn('job', 'list', '--all', '--json').stdout)['jobs']], ['kept'])
    return findings


def a_state_folder_on_nfs_has_another_journal():
    """SQLite's log of writes ahead needs memory that programs share; a network has none."""
    findings = []
    with Server(wait=False) as s:
        preload(s, 'remote_disk')
        added = s.cairn('job', 'add', '--json', '--gpu', 'cpu', '--', 'true')
        expect(findings, 'what is said', added.stderr.count('is on a network file system'), 1)
        first = json.loads(added.stdout)['job']['uid']
        s.arguments.append('--allow-root')
        s.start()
        s.login()
        expect(findings, 'a job of the terminal', ends(s, first)['state'], 'finished')
        second = s.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu', 'start': True}).json()['uid']
        expect(findings, 'a job of the page', ends(s, second)['state'], 'finished')
        expect(findings, 'said by the server', s.said().count('is on a network file system'), 1)
        expect(findings, 'files of a shared log', [n for n in os.listdir(s.home + '/state/cairn') if n.endswith(('-wal', '-shm'))], [])
        db = sqlite3.connect(s.home + '/state/cairn/cairn.db')
        expect(findings, 'journal', db.execute('PRAGMA journal_mode').fetchone()[0], 'delete')
        db.close()
    return findings


def a_full_disk_under_a_server_loses_no_job():
    findings = []
    with Server('--allow-root', wait=False) as s:
        state = s.home + '/state'
        if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=1m,mode=700', 'none', state], stderr=subprocess.DEVNULL, check=False).returncode:
            raise tap.Skip('no tmpfs can be mounted')
        try:
            s.start()
            s.login()
            kept = [s.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu'}).json()['uid'] for _ in range(3)]
            with open(state + '/filler', 'wb', buffering=0) as f:
                try:
                    while True:
                        f.write(b'x' * 4096)
                except OSError:
                    pass
            refused = 0
            for i in range(8):
                answer = s.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu', 'config': '# ' + 'x' * 20000})
                if answer.status == 201:
                    kept.append(answer.json()['uid'])
                else:
                    refused += 1
                    if not answer.json()['detail']:
                        findings.append(f'{i}: {answer.status} {answer.body}')
            expect(findings, 'some were refused', refused > 0, True)
            expect(findings, 'the list', sorted(j['uid'] for j in s.get('/api/v1/jobs').json()['jobs']), sorted(kept))
            os.remove(state + '/filler')
            expect(findings, 'a start', s.post(f'/api/v1/jobs/{kept[0]}/start', {}).status, 202)
            expect(findings, 'its end', ends(s, kept[0])['state'], 'finished')
            expect(findings, 'one more', s.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu'}).status, 201)
            s.stop()
        finally:
            subprocess.run(['umount', '-l', state], check=False)
    return findings


# ---- the database, while a server runs


def drop(s):
    for name in ('cairn.db', 'cairn.db-wal', 'cairn.db-shm'):
        if os.path.exists(f'{s.home}/state/cairn/{name}'):
            os.remove(f'{s.home}/state/cairn/{name}')


def a_deleted_database_loses_no_job():
    with Checked('--allow-root') as c:
        drafts = [c.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu'}, status=201).json()['uid'] for _ in range(3)]
        live = c.post('/api/v1/jobs', {'argv': ['/bin/sleep', '600'], 'gpu': 'cpu', 'start': True}, status=201).json()['uid']
        wait_for(lambda: c.s.get(f'/api/v1/jobs/{live}').json()['state'] == 'active' and os.path.exists(f'{c.s.home}/state/cairn/jobs/{live}/attempt-1/log'))
        drop(c.s)
        wait_for(lambda: len(c.s.get('/api/v1/jobs').json().get('jobs', [])) == 4, 10)
        states = {j['uid']: j['state'] for j in c.get('/api/v1/jobs').json()['jobs']}
        c.same('jobs', states, {**{u: 'draft' for u in drafts}, live: 'active'})
        c.post(f'/api/v1/jobs/{live}/kill', {}, template=UID + '/{action}', status=202)
        c.same('killed', ends(c.s, live)['state'], 'stopped')
        return c.findings


def a_damaged_database_names_the_remedy():
    with Checked('--allow-root') as c:
        uid = c.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu'}, status=201).json()['uid']
        path = f'{c.s.home}/state/cairn/cairn.db'
        drop(c.s)
        with open(path, 'wb') as f:
            f.write(b'\xa5' * 8192)
        answer = c.s.get('/api/v1/jobs')
        c.same('jobs', answer.status, 503)
        c.same('remedy', 'cairn job rebuild' in (answer.json()['hint'] or ''), True)
        c.get('/api/v1/session')
        c.same('rebuild', c.s.cairn('job', 'rebuild').returncode, 0)
        c.same('without a restart', [j['uid'] for j in c.get('/api/v1/jobs').json()['jobs']], [uid])
        return c.findings


def a_locked_database_answers(seconds=3):
    """Lists go on; a change says what is the matter, and works afterwards."""
    with Checked('--allow-root') as c:
        uid = c.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu'}, status=201).json()['uid']
        db = sqlite3.connect(f'{c.s.home}/state/cairn/cairn.db', isolation_level=None)
        db.execute('BEGIN EXCLUSIVE')
        end, n = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            c.same('the list', [j['uid'] for j in c.get('/api/v1/jobs').json()['jobs']], [uid])
            begin = time.monotonic()
            answer = c.s.post(f'/api/v1/jobs/{uid}/start', {})
            if answer.status < 500 or 'locked' not in answer.body.decode():
                c.findings.append(f'a change: {answer.status} {answer.body}')
            if time.monotonic() - begin > 10:
                c.findings.append(f'{time.monotonic() - begin:.0f} s until that is said')
            n += 1
        c.same('there was time', n > 0, True)
        db.execute('ROLLBACK')
        db.close()
        c.same('not started', c.get(f'/api/v1/jobs/{uid}', template=UID).json()['state'], 'draft')
        c.post(f'/api/v1/jobs/{uid}/start', {}, template=UID + '/{action}', status=202)
        c.same('afterwards', ends(c.s, uid)['state'], 'finished')
        return c.findings


def a_database_locked_for_a_minute_answers():
    return a_locked_database_answers(60)


# ---- other servers and terminals


def servers_that_start_at_once_are_one():
    findings = []
    with Server(wait=False) as s:
        started = [subprocess.Popen([CAIRN, 'ui', '--no-open', '--port', '0', '--json'], env=s.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=s.home) for _ in range(6)]
        wait_for(lambda: sum(p.poll() is None for p in started) == 1)
        left = [p for p in started if p.poll() is None]
        expect(findings, 'servers', len(left), 1)
        for p in started:
            if p not in left:
                out, err = p.communicate()
                if p.returncode not in (0, 1) or (p.returncode == 0 and b'/login?code=' not in out) or (p.returncode and not err):
                    findings.append(f'{p.returncode} {out} {err}')
        expect(findings, 'it is found', s.cairn('ui', '--stop').returncode, 0)
        for p in left:
            expect(findings, 'its end', p.wait(20), 0)
            p.communicate()
    return findings


def a_page_and_a_terminal_at_once():
    """Both add and remove; no job is lost and none is there twice."""
    with Checked('--allow-root') as c:
        told, failed = [], []

        def terminal():
            for i in range(10):
                done = c.s.cairn('job', 'add', '--draft', '--json', '--name', f't{i}', '--', 'true')
                failed.extend([done.stderr] if done.returncode else [])

        def page():
            for i in range(10):
                told.append(c.s.post('/api/v1/jobs', {'name': f'p{i}', 'argv': ['/bin/true'], 'gpu': 'cpu'}).status)
        threads = [threading.Thread(target=f) for f in (terminal, page)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        c.same('the terminal', failed, [])
        c.same('the page', told, [201] * 10)
        names = sorted(j['name'] for j in c.get('/api/v1/jobs?limit=100').json()['jobs'])
        c.same('jobs', names, sorted(f'{x}{i}' for x in 'tp' for i in range(10)))
        return c.findings


TRAINER = '''#!/bin/sh
exec 8>>"$HOME/lane"
flock -n 8 || echo "$1 is not alone" >>"$HOME/overlaps"
echo "$1" >>"$HOME/marks"
sleep 0.05
'''


def a_killed_server_loses_no_job(rounds=5):
    """It is killed while a page adds jobs: what it said it took is there, and each job runs once."""
    findings, accepted = [], []
    dice = random.Random(rounds)
    with Server('--allow-root') as s:
        with open(s.home + '/trainer', 'w', encoding='utf-8') as f:
            f.write(TRAINER)
        os.chmod(s.home + '/trainer', 0o755)

        def add(number):
            for i in range(100):
                time.sleep(0.03)
                try:
                    wish = {'name': f'{number}-{i}', 'argv': ['./trainer', f'{number}-{i}'], 'gpu': 'cpu', 'cwd': s.home, 'start': True}
                    answer = s.post('/api/v1/jobs', wish)
                    if answer.status == 201:
                        accepted.append(answer.json()['uid'])
                except (OSError, ValueError, IndexError):
                    return
        for number in range(rounds):
            s.login()
            adds = threading.Thread(target=add, args=(number,))
            adds.start()
            time.sleep(dice.uniform(0.02, 0.25))
            s.process.kill()
            s.process.wait()
            adds.join()
            s.port = 0
            s.start()
        s.login()

        def rows():
            return {j['uid']: j for j in s.get('/api/v1/jobs?limit=2000').json()['jobs']}
        wait_for(lambda: all(j['state'] == 'finished' for j in rows().values()), 60 + 3 * rounds)
        expect(findings, 'states', {j['state'] for j in rows().values()}, {'finished'})
        expect(findings, 'jobs that were lost', [u for u in accepted if u not in rows()], [])
        with open(s.home + '/marks', encoding='utf-8') as f:
            marks = f.read().split()
        expect(findings, 'each ran once', sorted(marks), sorted(j['name'] for j in rows().values()))
        expect(findings, 'one at a time', os.path.exists(s.home + '/overlaps'), False)
        expect(findings, 'there were some', len(accepted) >= rounds, True)
        print(f'# {rounds} kills, {len(accepted)} jobs accepted, {len(marks)} ran')
    return findings


def many_killed_servers_lose_no_job():
    return a_killed_server_loses_no_job(60)


# ---- a program without the page


def without_libmicrohttpd_the_package_is_named():
    findings = []
    plain = os.environ.get('CAIRN_WITHOUT_UI')
    if not plain:
        raise tap.Skip('CAIRN_WITHOUT_UI is not set')
    with Server(wait=False) as s:
        for words in ((), ('--url',), ('--stop',), ('--json', '--no-open')):
            done = subprocess.run([plain, 'ui', *words], env=s.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8', cwd=s.home, timeout=60, check=False)
            expect(findings, f'{words}', (done.returncode, done.stdout), (3, ''))
            for word in ('libmicrohttpd-dev', 'scripts/setup'):
                if word not in done.stderr:
                    findings.append(f'{words}: no {word} in {done.stderr!r}')
        done = subprocess.run([plain, 'job', 'add', '--json', '--gpu', 'cpu', '--', 'true'], env=s.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8', cwd=s.home,
                              timeout=60, check=False)
        expect(findings, 'a job all the same', (done.returncode, done.stderr), (0, ''))
        uid = json.loads(done.stdout)['job']['uid']
        wait_for(lambda: json.loads(s.cairn('job', 'show', '--json', uid).stdout)['job']['state'] == 'finished')
        expect(findings, 'its state', json.loads(s.cairn('job', 'show', '--json', uid).stdout)['job']['state'], 'finished')
    return findings


CASES = [
    a_configuration_of_5_mb_is_refused,
    a_configuration_that_was_deleted_is_still_there,
    a_configuration_whose_file_is_gone_was_copied,
    values_of_other_types_are_refused,
    a_clock_that_is_set_back_changes_no_state,
    a_state_folder_that_cannot_be_made_is_said,
    a_read_only_state_folder_is_said,
    a_state_folder_on_nfs_has_another_journal,
    a_full_disk_under_a_server_loses_no_job,
    a_deleted_database_loses_no_job,
    a_damaged_database_names_the_remedy,
    a_locked_database_answers,
    servers_that_start_at_once_are_one,
    a_page_and_a_terminal_at_once,
    a_killed_server_loses_no_job,
    without_libmicrohttpd_the_package_is_named,
]
LONG = [a_database_locked_for_a_minute_answers, many_killed_servers_lose_no_job]

tap.only(CASES + (LONG if sys.argv[1:] else []), sys.argv[1:])
