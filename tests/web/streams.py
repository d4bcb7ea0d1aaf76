# SPDX-License-Identifier: Apache-2.0
"""Server-sent events: topics, ids, what was missed, many clients, --dev."""
import os
import shutil
import socket
import time

import tap
from webserver import MACHINE, Server, expect, wait_for


def the_machine_once_a_second():
    findings = []
    with Server('--root', MACHINE) as s:
        s.login()
        with s.events('machine') as e:
            first = e.next_event()
            begin = time.monotonic()
            second, third = e.next_event(), e.next_event()
            seconds = time.monotonic() - begin
        expect(findings, 'event', first['event'], 'machine')
        expect(findings, 'GPUs', [g['usable_bytes'] for g in first['data']['gpus']], [120259084288])
        if not 1.5 < seconds < 3.5:
            findings.append(f'two events in {seconds:.1f} s')
        starts = {x['id'].split('-')[0] for x in (first, second, third)}
        numbers = [int(x['id'].split('-')[1]) for x in (first, second, third)]
        expect(findings, 'one start', len(starts), 1)
        expect(findings, 'numbers', numbers, list(range(numbers[0], numbers[0] + 3)))
    return findings


def only_what_was_asked_for():
    findings = []
    with Server('--root', MACHINE) as s:
        s.login()
        with s.events('jobs,job:0123456789abcdef', timeout=1.5) as e:
            expect(findings, 'status', e.status, 200)
            try:
                findings.append(f'an event that nobody asked for: {e.next_event()}')
            except socket.timeout:
                pass
        for topics in ('a%20b', 'UPPER', 'x' * 70, ','.join(f't{i}' for i in range(40)), 'a/b', 'a%0ab'):
            expect(findings, topics, s.get(f'/api/v1/events?topics={topics}').status, 400)
        expect(findings, 'HEAD', s.send('HEAD', '/api/v1/events?topics=jobs').status, 200)
    return findings


def headers_of_the_stream():
    findings = []
    with Server() as s:
        s.login()
        with s.connect() as c:
            c.sendall(f'GET /api/v1/events?topics=jobs HTTP/1.1\r\nHost: {s.host}\r\nCookie: {s.cookie}\r\n\r\n'.encode())
            head = b''
            while b'\r\n\r\n' not in head or b'retry: 2000' not in head:
                head += c.recv(4096)
        text = head.decode().lower()
        for line in ('content-type: text/event-stream', 'cache-control: no-store', 'content-security-policy: '):
            if line not in text:
                findings.append(f'no "{line}" in {text}')
    return findings


def what_was_missed_is_sent_again():
    findings = []
    folder = os.path.join(os.path.dirname(__file__), '..', '..', 'src', 'web', 'assets')
    with Server(wait=False) as s:
        shutil.copytree(folder, os.path.join(s.home, 'assets'))
        s.arguments += ['--dev', os.path.join(s.home, 'assets')]
        s.start()
        s.login()
        with s.events('machine') as e:
            seen = e.next_event()['id']
        start = seen.split('-')[0]
        with s.events('machine', {'Last-Event-ID': seen}) as e:  # fleeting events are not kept: the next is new
            expect(findings, 'the next', e.next_event()['event'], 'machine')
        for unknown in ('0000-1', f'{start}-999999', 'x', f'{start}-', f'{start}-x', ''):
            with s.events('machine', {'Last-Event-ID': unknown}) as e:
                expect(findings, f'Last-Event-ID: {unknown}', e.next_event()['event'], 'reset')
        with s.events(f'machine&after={start}-999999') as e:
            expect(findings, 'after=', e.next_event()['event'], 'reset')
    return findings


def what_comes_at_once_is_told():
    """A line of a log between the answer and the server's next look at that log."""
    with Server('--allow-root') as s:
        s.login()
        script = 'echo one; until test -e go; do sleep 0.02; done; echo two; exec sleep 60'
        uid = s.cairn('job', 'add', '--gpu', 'cpu', '--', 'sh', '-c', script).stdout.split()[0]
        findings = [] if wait_for(lambda: 'one' in s.cairn('job', 'log', uid).stdout) else ['the job does not run']
        with s.events(f'job:{uid}', timeout=5) as e:
            open(os.path.join(s.home, 'go'), 'w', encoding='utf-8').close()
            try:
                while True:
                    told = e.next_event()
                    if told['event'] == 'log' and told['data']['text'] == 'two\n':
                        break
            except socket.timeout:
                findings.append('the second line is not told')
        s.cairn('job', 'kill', uid)
    return findings


def a_changed_asset_reloads():
    findings = []
    folder = os.path.join(os.path.dirname(__file__), '..', '..', 'src', 'web', 'assets')
    with Server(wait=False) as s:
        assets = os.path.join(s.home, 'assets')
        shutil.copytree(folder, assets)
        s.arguments += ['--dev', assets]
        s.start()
        s.login()
        expect(findings, 'from the folder', s.get('/').body, open(os.path.join(assets, 'index.html'), 'rb').read())
        expect(findings, 'not cached', s.get('/').headers['cache-control'], 'no-store')
        with s.events('jobs') as e:
            with open(os.path.join(assets, 'index.html'), 'w', encoding='utf-8') as f:
                f.write('changed')
            expect(findings, 'event', e.next_event()['event'], 'reload')
            expect(findings, 'the new one', s.get('/').body, b'changed')
        expect(findings, 'not an asset', s.get('/meson.build').status, 404)
        expect(findings, 'above', s.get('/..%2flog').status, 400)
        os.symlink('/etc/passwd', os.path.join(assets, 'p.html'))
        expect(findings, 'a link outside', s.get('/p.html').status, 404)
    with Server(wait=False) as s:
        expect(findings, 'no such folder', s.cairn('ui', '--no-open', '--port', '0', '--dev', '/no/such').returncode, 1)
    return findings


def two_hundred_clients():
    findings = []
    with Server('--root', MACHINE) as s:
        s.login()
        streams = [s.events('machine') for _ in range(200)]
        late = 0
        for e in streams:
            e.next_event()
        begin = time.monotonic()
        for e in streams:
            e.next_event()
        late = time.monotonic() - begin
        if late > 3:
            findings.append(f'{late:.1f} s until all had the next event')
        expect(findings, 'other requests', s.get('/api/v1/session').status, 200)
        for e in streams:
            e.c.close()
        expect(findings, 'they are gone', wait_for(lambda: len(os.listdir(f'/proc/{s.process.pid}/fd')) < 40, 20), True)
    return findings


tap.run([
    the_machine_once_a_second,
    only_what_was_asked_for,
    headers_of_the_stream,
    what_was_missed_is_sent_again,
    what_comes_at_once_is_told,
    a_changed_asset_reloads,
    two_hundred_clients,
])
