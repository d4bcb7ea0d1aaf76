# SPDX-License-Identifier: Apache-2.0
"""Many clients, many jobs, long files: `load.py` takes seconds, `load.py long` minutes.

What must hold is that all is answered, and rightly, and that memory does not grow; how fast it is, bench/ui.py tells.
"""
import json
import os
import selectors
import socket
import sqlite3
import statistics
import subprocess
import sys
import threading
import time

import tap
from webserver import CAIRN, MACHINE, Server, expect, wait_for

LONG = 'long' in sys.argv[1:]


def is_sanitized():
    return 'ASAN_OPTIONS' in os.environ


def memory_kib(s, name='VmRSS'):
    with open(f'/proc/{s.process.pid}/status', encoding='utf-8') as f:
        return next((int(line.split()[1]) for line in f if line.startswith(name)), 0)


def descriptors(s):
    return len(os.listdir(f'/proc/{s.process.pid}/fd'))


def fill(s, n):
    """n finished jobs: one that ran, and copies of its row."""
    uid = json.loads(s.cairn('job', 'add', '--json', '--gpu', 'cpu', '--', 'true').stdout)['job']['uid']
    wait_for(lambda: json.loads(s.cairn('job', 'show', '--json', uid).stdout)['job']['state'] == 'finished')
    db = sqlite3.connect(f'{s.home}/state/cairn/cairn.db', timeout=30)
    names = ', '.join(r[1] for r in db.execute('PRAGMA table_info(job)') if r[1] not in ('uid', 'name'))
    db.executemany(f'INSERT INTO job(uid, name, {names}) SELECT ?, ?, {names} FROM job WHERE uid = ?', [(f'0{i:015}', f'job {i}', uid) for i in range(n - 1)])
    db.commit()
    db.close()
    return uid


# ---- clients


class Crowd:
    """Clients that read their streams in a thread; events[i] is how many the i-th has received."""

    def __init__(self, s, n, topics):
        self.events = [0] * n
        self.lost = []
        self.over = threading.Event()
        self.chooser = selectors.DefaultSelector()
        self.streams = [s.events(topics) for _ in range(n)]
        for i, e in enumerate(self.streams):
            e.c.setblocking(False)
            self.chooser.register(e.c, selectors.EVENT_READ, i)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        while not self.over.is_set():
            for key, _ in self.chooser.select(0.2):
                data = key.fileobj.recv(1 << 20)
                self.events[key.data] += data.count(b'event: ')
                if not data:
                    self.lost.append(key.data)
                    self.chooser.unregister(key.fileobj)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        for e in self.streams:
            e.c.close()


def memory_does_not_grow():
    clients, seconds, warm = (200, 60, 10) if LONG else (40, 5, 2)
    findings, sizes, statuses = [], [], set()
    with Server('--root', MACHINE) as s:
        s.login()
        fill(s, 2000)
        with Crowd(s, clients, 'jobs,machine') as crowd:
            begin = time.monotonic()
            while (now := time.monotonic() - begin) < seconds:
                statuses.add(s.get('/api/v1/jobs?limit=100').status)
                if now > warm:
                    sizes.append(memory_kib(s))
            few = min(crowd.events)
            expect(findings, 'streams that ended', crowd.lost, [])
        expect(findings, 'answers', statuses, {200})
        if few < seconds / 3:
            findings.append(f'a client has {few} events after {seconds} s')
        third = len(sizes) // 3
        early, late = statistics.median(sizes[:third]), statistics.median(sizes[-third:])
        print(f'# {len(sizes)} lists, {clients} clients: {early} KiB, later {late} KiB')
        if late > early + 256 and not is_sanitized():
            findings.append(f'{early} KiB after the warm-up, {late} KiB later')
        expect(findings, 'connections are given back', wait_for(lambda: descriptors(s) < 40), True)
    return findings


def a_slow_reader_is_dropped():
    """It watches logs that grow, and reads nothing; one that reads gets all."""
    findings = []
    with Server() as s:
        s.login()
        fill(s, 17)
        uids = [f'0{i:015}' for i in range(16)]
        for uid in uids:
            os.makedirs(f'{s.home}/state/cairn/jobs/{uid}/attempt-1', 0o700)
        topics = ','.join(f'job:{uid}' for uid in uids)
        with Crowd(s, 1, topics) as good:
            before = descriptors(s)
            slow = socket.socket()
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(('127.0.0.1', s.port))
            slow.sendall(f'GET /api/v1/events?topics={topics} HTTP/1.1\r\nHost: {s.host}\r\nCookie: {s.cookie}\r\n\r\n'.encode())
            expect(findings, 'it is connected', wait_for(lambda: descriptors(s) == before + 1), True)
            idle = memory_kib(s)
            for uid in uids:
                with open(f'{s.home}/state/cairn/jobs/{uid}/attempt-1/log', 'wb'):
                    pass
            time.sleep(2.2)  # both know the logs
            piece = (b'x' * 99 + b'\n') * 600
            end, dropped = time.monotonic() + 60, False
            while time.monotonic() < end and not dropped:
                for uid in uids:
                    with open(f'{s.home}/state/cairn/jobs/{uid}/attempt-1/log', 'ab') as f:
                        f.write(piece)
                dropped = wait_for(lambda: descriptors(s) == before, 1)
            expect(findings, 'it is dropped', dropped, True)
            if memory_kib(s) > idle + 8192 and not is_sanitized():
                findings.append(f'{idle} KiB before, {memory_kib(s)} KiB after')
            seen = good.events[0]
            with open(f'{s.home}/state/cairn/jobs/{uids[0]}/attempt-1/log', 'ab') as f:
                f.write(b'more\n')
            expect(findings, 'the other one goes on', wait_for(lambda: good.events[0] > seen, 10), True)
            expect(findings, 'streams that ended', good.lost, [])
            slow.close()
        expect(findings, 'other requests', s.get('/api/v1/session').status, 200)
    return findings


def slow_headers_hold_nobody_up():
    """200 clients send a byte now and then; all others are answered, and after 30 seconds those are gone."""
    findings = []
    with Server() as s:
        s.login()
        before = descriptors(s)
        held = [s.connect() for _ in range(200)]
        for c in held:
            c.sendall(b'GET / HTTP/1.1\r\n')
        wait_for(lambda: descriptors(s) >= before + 200)
        begin = time.monotonic()
        while time.monotonic() - begin < (42 if LONG else 3):
            for c in held:
                try:
                    c.send(b'X')
                except OSError:
                    pass  # it was closed
            asked = time.monotonic()
            expect(findings, 'another', s.get('/api/v1/session').status, 200)
            if time.monotonic() - asked > 2:
                findings.append(f'{time.monotonic() - asked:.1f} s for another')
            time.sleep(0.3)
        if LONG:
            expect(findings, 'the slow ones are gone', descriptors(s) <= before + 2, True)
        for c in held:
            c.close()
        expect(findings, 'all are gone', wait_for(lambda: descriptors(s) <= before + 2, 10), True)
    return findings


# ---- many jobs, long files


def two_thousand_jobs_are_listed():
    findings = []
    with Server() as s:
        s.login()
        fill(s, 2000)
        seen, query = [], ''
        while True:
            page = s.get(f'/api/v1/jobs?limit=150{query}').json()
            seen += [j['uid'] for j in page['jobs']]
            if not page['next']:
                break
            query = f'&before={page["next"]}'
        expect(findings, 'by pages', (len(seen), len(set(seen)), seen == sorted(seen, reverse=True)), (2000, 2000, True))
        expect(findings, 'at once', [j['uid'] for j in s.get('/api/v1/jobs?limit=2000').json()['jobs']] == seen, True)
        expect(findings, 'a search', [j['name'] for j in s.get('/api/v1/jobs?q=job+1234').json()['jobs']], ['job 1234'])
        done = s.cairn('job', 'list')
        if '50 of 2000 jobs; --all lists every one.' not in done.stdout or done.returncode:
            findings.append(f'in a terminal: {done.stdout[-300:]} {done.stderr}')
        done = s.cairn('job', 'list', '--all')
        words = done.stdout.split()
        expect(findings, 'all in a terminal', (done.returncode, [i for i in range(1999) if str(i) not in words]), (0, []))
        done = s.cairn('job', 'list', '--all', '--json')
        expect(findings, 'as JSON', len(json.loads(done.stdout)['jobs']), 2000)
    return findings


def a_log_of_a_gigabyte_has_an_end():
    """A hole in a file reads as zeros, and takes no room on the disk."""
    findings = []
    with Server() as s:
        s.login()
        uid = fill(s, 1)
        path = f'{s.home}/state/cairn/jobs/{uid}/attempt-1/log'
        size = 1 << 30
        end = ''.join(f'step {i} of many\n' for i in range(5000)).encode()
        with open(path, 'r+b') as f:
            f.truncate(size)
            f.seek(size - len(end))
            f.write(end)
        before = memory_kib(s, 'VmHWM')
        answer = s.get(f'/api/v1/jobs/{uid}/log?tail=65536')
        expect(findings, 'its end', (answer.status, answer.body == end[-65536:]), (200, True))
        expect(findings, 'where', (answer.headers['x-offset'], answer.headers['x-size']), (str(size - 65536), str(size)))
        middle = s.get(f'/api/v1/jobs/{uid}/log?offset={size // 2}&limit=1000')
        expect(findings, 'its middle', (middle.status, len(middle.body)), (200, 1000))
        expect(findings, 'behind its end', s.get(f'/api/v1/jobs/{uid}/log?offset={size + 5}').body, b'')
        if memory_kib(s, 'VmHWM') > before + 4096 and not is_sanitized():
            findings.append(f'{before} KiB before, {memory_kib(s, "VmHWM")} KiB at most')
        if LONG:
            done = subprocess.run(['sh', '-c', '"$0" job log "$1" | tail -n 1', CAIRN, uid], env=s.environment, stdout=subprocess.PIPE, check=False, timeout=100)
            expect(findings, 'in a terminal', done.stdout, b'step 4999 of many\n')
    return findings


def a_million_steps_have_a_curve():
    steps = 1_000_000 if LONG else 50_000
    findings = []
    with Server() as s:
        s.login()
        with open(f'{s.home}/book.txt', 'w', encoding='utf-8') as f:
            f.write('the quick brown fox jumps over the lazy dog\n' * 400)
        with open(f'{s.home}/a.yaml', 'w', encoding='utf-8') as f:
            f.write(f'model: {{layers: 1, heads: 2, width: 32, context: 32}}\ndata: {{path: {s.home}/book.txt, tokenizer: bytes}}\n'
                    f'train: {{steps: 2, batch: 2, allow_cpu: true}}\ncheckpoint: {{every: 0}}\nrun: {{dir: {s.home}/run}}\n')
        done = s.cairn('train', 'a.yaml')
        if done.returncode:
            return [done.stderr]
        high, low = steps // 3 + 7, steps // 2 + 5
        with open(f'{s.home}/run/log.jsonl', 'w', encoding='utf-8') as f:
            for i in range(1, steps + 1):
                loss = 90.5 if i == high else 0.25 if i == low else 2 + (i % 7) / 8
                f.write(f'{{"step":{i},"loss":{loss},"lr":0.001,"elapsed_s":{i * 0.125}}}\n')
        uid = next(j['uid'] for j in s.get('/api/v1/jobs').json()['jobs'] if j['adopted'])
        for _ in range(2):
            got = s.get(f'/api/v1/jobs/{uid}/series?metrics=loss&points=500', timeout=100).json()
            loss = got['metrics']['loss']
            expect(findings, 'last step', (got['last_step'], got['step'][-1]), (steps, steps))
            expect(findings, 'points', (100 < len(got['step']) <= 500, len(loss['mean'])), (True, len(got['step'])))
            expect(findings, 'extremes', (max(loss['max']), min(loss['min'])), (90.5, 0.25))
        near = s.get(f'/api/v1/jobs/{uid}/series?metrics=loss&points=500&from={high - 3}&to={high + 3}', timeout=100).json()
        expect(findings, 'seven steps', near['step'], list(range(high - 3, high + 4)))
        expect(findings, 'their values', near['metrics']['loss']['mean'][3], 90.5)
        with open(f'{s.home}/run/log.jsonl', 'a', encoding='utf-8') as f:
            f.write(f'{{"step":{steps + 1},"loss":77.5,"lr":0.001,"elapsed_s":1}}\n')
        more = s.get(f'/api/v1/jobs/{uid}/series?metrics=loss&from={steps - 5}', timeout=100).json()
        expect(findings, 'one more step', (more['last_step'], more['metrics']['loss']['max'][-1]), (steps + 1, 77.5))
    return findings


tap.run([
    memory_does_not_grow,
    a_slow_reader_is_dropped,
    slow_headers_hold_nobody_up,
    two_thousand_jobs_are_listed,
    a_log_of_a_gigabyte_has_an_end,
    a_million_steps_have_a_curve,
])
