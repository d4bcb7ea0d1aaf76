# SPDX-License-Identifier: Apache-2.0
"""Limits: connections, headers, bodies, time, children; and what broken clients do."""
import contextlib
import json
import os
import random
import socket
import threading
import time

import tap
from webserver import MACHINE, Answer, Server, expect, read_all, wait_for


def memory_kib(s):
    for line in open(f'/proc/{s.process.pid}/status', encoding='utf-8'):
        if line.startswith('VmRSS'):
            return int(line.split()[1])
    return 0


def is_sanitized():
    return 'ASAN_OPTIONS' in os.environ


def at_most_256_connections():
    findings = []
    with Server() as s:
        s.login()
        held = [s.connect() for _ in range(256)]
        wait_for(lambda: len(os.listdir(f'/proc/{s.process.pid}/fd')) > 256)
        with s.connect() as c:
            answer = read_all(c)
        if not answer.startswith(b'HTTP/1.1 503 '):
            findings.append(f'one more: {answer[:40]!r}')
        for c in held:
            c.close()
        expect(findings, 'afterwards', wait_for(lambda: s.get('/api/v1/session').status == 200), True)
    return findings


def headers_of_16_kib():
    findings = []
    with Server() as s:
        s.login()
        expect(findings, 'just below', s.get('/api/v1/session', {'X-Long': 'x' * 15_800}).status, 200)
        expect(findings, 'above', s.get('/api/v1/session', {'X-Long': 'x' * 16_500}).status, {431, 413})
        expect(findings, 'far above', s.get('/api/v1/session', {'X-Long': 'x' * 200_000}).status, {431, 413, 400, 0})
        expect(findings, 'many', s.get('/api/v1/session', [(f'X-{i}', 'y' * 20) for i in range(700)]).status, {431, 413})
        expect(findings, 'a long target', s.get('/api/v1/session?x=' + 'y' * 30_000).status, {431, 414, 413, 400})
        expect(findings, 'afterwards', s.get('/api/v1/session').status, 200)
    return findings


def bodies_of_a_mebibyte():
    findings = []
    with Server() as s:
        s.login()
        below = b'{"config":"' + b'x' * ((1 << 20) - 13) + b'"}'
        expect(findings, 'below', s.post('/api/v1/check', body=below).status, 200)
        expect(findings, 'above', s.post('/api/v1/check', body=below + b'    ').status, 413)
        expect(findings, 'announced', s.post('/api/v1/check', headers={'Content-Length': '99999999999'}).status, 413)
        chunk = b'%x\r\n' % (1 << 16) + b'x' * (1 << 16) + b'\r\n'
        expect(findings, 'in chunks', s.post('/api/v1/check', body=chunk * 17 + b'0\r\n\r\n', headers={'Transfer-Encoding': 'chunked'}).status, 413)
        small = b'd\r\n{"config":""}\r\n0\r\n\r\n'
        expect(findings, 'a small one in chunks', s.post('/api/v1/check', body=small, headers={'Transfer-Encoding': 'chunked'}).status, 200)
        log = b'x' * (2 << 20)
        raw = {'Content-Type': 'application/octet-stream'}
        expect(findings, 'a log of 2 MiB', s.post('/api/v1/diagnose', body=log, headers=raw).status, 200)
        expect(findings, 'a log above 32 MiB', s.post('/api/v1/diagnose', headers={**raw, 'Content-Length': str((32 << 20) + 1)}).status, 413)
        expect(findings, 'a body where none belongs', s.send('GET', '/api/v1/session', {'Content-Length': '5'}, b'hello').status, 413)
        expect(findings, 'two lengths', s.post('/api/v1/check', body=b'{}', headers={'Content-Length': '2', 'content-length': '3'}).status, 400)
        both = {'Content-Length': '5', 'Transfer-Encoding': 'chunked'}
        expect(findings, 'a length and chunks', s.post('/api/v1/check', body=b'0\r\n\r\n', headers=both).status, 400)
    return findings


def keeps_a_connection():
    findings = []
    with Server() as s:
        s.login()
        with s.connect() as c:
            for _ in range(5):
                c.sendall(f'GET /api/v1/session HTTP/1.1\r\nHost: {s.host}\r\nCookie: {s.cookie}\r\n\r\n'.encode())
                got = b''
                while b'"folders":[]}' not in got:
                    data = c.recv(65536)
                    if not data:
                        return ['the connection was closed']
                    got += data
            c.sendall(f'GET /api/v1/none HTTP/1.1\r\nHost: {s.host}\r\nCookie: {s.cookie}\r\n\r\n'.encode() * 3)
            got = b''
            while got.count(b'"status":404') < 3:
                data = c.recv(65536)
                if not data:
                    return ['closed after errors, or pipelined requests were lost']
                got += data
    return findings


def nonsense_is_survived():
    findings = []
    with Server() as s:
        s.login()
        for data in (b'', b'\0' * 100, b'GET\r\n\r\n', b'\r\n\r\n\r\n', b'GET / HTTP/9.9\r\n\r\n', b'GET  HTTP/1.1\r\nHost: x\r\n\r\n',
                     b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' + os.urandom(200), b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
                     b'GET / HTTP/1.1\r\nHost: ' + s.host.encode() + b'\r\nContent-Length: -5\r\n\r\n',
                     b'GET / HTTP/1.1\r\nHost: ' + s.host.encode() + b'\r\nContent-Length: 99999999999999999999999\r\n\r\n',
                     b'POST / HTTP/1.1\r\nHost: ' + s.host.encode() + b'\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
                     b'POST / HTTP/1.1\r\nHost: ' + s.host.encode() + b'\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n',
                     b'G' * 100_000, os.urandom(50_000)):
            try:
                with s.connect(5) as c:
                    c.sendall(data)
                    c.shutdown(socket.SHUT_WR)
                    c.settimeout(2)
                    read_all(c)
            except (OSError, ValueError):
                pass
            if s.process.poll() is not None:
                return [f'the server ended after {data[:40]!r}: {s.said()}']
        expect(findings, 'afterwards', s.get('/api/v1/session').status, 200)
    return findings


def mutate(dice, data):
    """Some bytes are changed, taken out, put in or doubled."""
    data = bytearray(data)
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(data) + 1)
        way = dice.randrange(4)
        if way == 0 and at < len(data):
            data[at] = dice.choice((0, 10, 13, 32, 58, 127, 255, dice.randrange(256)))
        elif way == 1:
            del data[at:at + dice.choice((1, 2, 20))]
        elif way == 2:
            data[at:at] = dice.choice((b'\r\n', b'\0', b'%', b'..', b':', b'9' * 30, b'\xff\xfe', b'A' * 300))
        else:
            data[at:at] = data[at:at + dice.choice((5, 50))]
    return bytes(data)


def mutated_requests_are_survived():
    """What is almost a request, under the sanitizer in `make asan`; each answer is one, and no fault of the server."""
    findings, seed = [], int(os.environ.get('SEED', '1'))
    dice = random.Random(seed)
    with Server('--folder', f'data={MACHINE}') as s:
        s.login()
        head = f'Host: {s.host}\r\nCookie: {s.cookie}\r\n'
        change = head + f'X-Cairn-CSRF: {s.csrf}\r\nContent-Type: application/json\r\n'
        body = '{"name":"a","config":"model:\\n","gpu":"cpu"}'
        requests = [text.encode() for text in (
            f'GET /api/v1/jobs?limit=5&q=a%20b HTTP/1.1\r\n{head}\r\n',
            f'GET /api/v1/files/data/proc/meminfo HTTP/1.1\r\n{head}Range: bytes=0-9\r\nIf-None-Match: "x"\r\n\r\n',
            f'HEAD / HTTP/1.1\r\n{head}Accept-Encoding: gzip\r\n\r\nGET /app.css HTTP/1.1\r\n{head}\r\n',
            f'POST /api/v1/jobs HTTP/1.1\r\n{change}Content-Length: {len(body)}\r\n\r\n{body}',
            f'POST /api/v1/check HTTP/1.1\r\n{change}Transfer-Encoding: chunked\r\n\r\n5\r\n{{"con\r\n9\r\nfig":"a"}}\r\n0\r\n\r\n',
            f'PUT /api/v1/settings HTTP/1.1\r\n{change}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{{}}')]
        for _ in range(4):  # an incomplete one is noticed within a second, so many at once
            asked = []
            for _ in range(100):
                c, data = s.connect(5), mutate(dice, dice.choice(requests))
                asked.append((c, data))
                with contextlib.suppress(OSError):
                    c.sendall(data)
                    c.shutdown(socket.SHUT_WR)
            for c, data in asked:
                answer = b''
                with contextlib.suppress(OSError), c:
                    answer = read_all(c)
                if answer and (not answer.startswith(b'HTTP/1.') or answer[9:12] in (b'500', b'502')):
                    findings.append(f'seed {seed}: {answer[:200]!r} to {data!r}')
            if s.process.poll() is not None:
                return [f'seed {seed}: the server ended after one of {[data for _, data in asked]}: {s.said()}']
        expect(findings, 'afterwards', s.get('/api/v1/session').status, 200)
    return findings


def clients_that_go_away_leave_nothing():
    findings = []
    with Server() as s:
        s.login()
        before = settled_files(s)
        for i in range(60):
            c = s.connect()
            path = ('/api/v1/doctor', '/api/v1/machine', '/api/v1/events?topics=machine')[i % 3]
            c.sendall(f'GET {path} HTTP/1.1\r\nHost: {s.host}\r\nCookie: {s.cookie}\r\n\r\n'.encode())
            if i % 2:
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\x01\0\0\0\0\0\0\0')  # a reset
            c.close()
        fine = wait_for(lambda: len(os.listdir(f'/proc/{s.process.pid}/fd')) <= before + 2, 30)
        if not fine:
            findings.append(f'{before} descriptors before, {len(os.listdir(f"/proc/{s.process.pid}/fd"))} after')
        expect(findings, 'afterwards', s.get('/api/v1/session').status, 200)
    return findings


def open_files(s):
    return len(os.listdir(f'/proc/{s.process.pid}/fd'))


def settled_files(s):
    """How many files it has open once its threads have opened theirs."""
    counts = [open_files(s)]
    while len(counts) < 100 and len(set(counts[-6:])) + (len(counts) < 6) > 1:
        time.sleep(0.1)
        counts.append(open_files(s))
    return counts[-1]


def clients_that_break_off_are_noticed():
    """Also those whose end comes together with their last bytes."""
    findings = []
    with Server() as s:
        s.login()
        head = f'Host: {s.host}\r\nCookie: {s.cookie}\r\nX-Cairn-CSRF: {s.csrf}\r\nContent-Type: application/json\r\n'
        before = settled_files(s)
        for data in ('GET / HTTP/1.1\r\nHost', f'PUT /api/v1/settings HTTP/1.1\r\n{head}Content-Length: 19\r\n\r\n{{"ui',
                     f'POST /api/v1/check HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\nd\r\n{{"con', 'GET / HTTP/1.1\r\n', '\0\0\r\n'):
            for _ in range(10):
                with s.connect() as c:
                    c.sendall(data.encode())
        if not wait_for(lambda: len(os.listdir(f'/proc/{s.process.pid}/fd')) <= before + 1, 8):
            findings.append(f'{len(os.listdir(f"/proc/{s.process.pid}/fd")) - before} connections are left')
    return findings


def a_closed_stream_is_noticed():
    findings = []
    with Server() as s:
        s.login()
        before = settled_files(s)
        streams = [s.events('jobs') for _ in range(20)]
        for e in streams:
            e.c.close()
        if not wait_for(lambda: len(os.listdir(f'/proc/{s.process.pid}/fd')) <= before + 1, 8):
            findings.append('streams without a reader are left')
    return findings


def two_children_at_a_time():
    findings = []
    with Server() as s:
        s.login()
        most = 0
        config = json.dumps({'log': 'x\n' * 400_000}).encode()
        done = []
        threads = [threading.Thread(target=lambda: done.append(s.post('/api/v1/diagnose', body=config, timeout=120).status)) for _ in range(8)]
        for t in threads:
            t.start()
        while any(t.is_alive() for t in threads):
            children = open(f'/proc/{s.process.pid}/task/{s.process.pid}/children', encoding='utf-8').read().split()
            most = max(most, len(children))
            begin = time.monotonic()
            s.get('/api/v1/session')
            if time.monotonic() - begin > 2:
                findings.append('other requests wait for children')
            time.sleep(0.002)
        expect(findings, 'answers', done, [200] * 8)
        expect(findings, 'children at once', most, {1, 2})
    return findings


def too_many_children_are_refused():
    findings = []
    with Server() as s:
        s.login()
        asked = [s.connect() for _ in range(80)]
        for c in asked:
            c.sendall(f'GET /api/v1/doctor HTTP/1.1\r\nHost: {s.host}\r\nCookie: {s.cookie}\r\nConnection: close\r\n\r\n'.encode())
        answers = [Answer(read_all(c)) for c in asked]
        for c in asked:
            c.close()
        if {a.status for a in answers} != {200, 503}:
            findings.append(f'{[a.status for a in answers]}')
        expect(findings, 'Retry-After', {a.headers.get('retry-after') for a in answers if a.status == 503}, {'2'})
        expect(findings, 'afterwards', s.get('/api/v1/doctor').status, 200)
    return findings


def memory_stays_small():
    if is_sanitized():
        raise tap.Skip('a sanitizer takes memory of its own')
    findings = []
    with Server() as s:
        s.login()
        idle = memory_kib(s)
        if idle > 12 * 1024:
            findings.append(f'{idle} KiB after the start')
        streams = [s.events('machine') for _ in range(100)]
        for e in streams:
            e.next_event()
        per = (memory_kib(s) - idle) / 100
        if per > 64:
            findings.append(f'{per:.0f} KiB per stream')
        for e in streams:
            e.c.close()
    return findings


def starts_within_50_ms():
    if is_sanitized():
        raise tap.Skip('not with a sanitizer')
    best = 9.0
    for _ in range(10):
        with Server(wait=False) as s:
            begin = time.monotonic()
            s.start()
            best = min(best, time.monotonic() - begin)
    if best >= 0.05 and os.getloadavg()[0] > os.cpu_count():
        raise tap.Skip(f'{best * 1000:.0f} ms, but other programs have the CPUs')
    return [] if best < 0.05 else [f'{best * 1000:.0f} ms until it listens']


tap.run([
    at_most_256_connections,
    headers_of_16_kib,
    bodies_of_a_mebibyte,
    keeps_a_connection,
    nonsense_is_survived,
    mutated_requests_are_survived,
    clients_that_go_away_leave_nothing,
    clients_that_break_off_are_noticed,
    a_closed_stream_is_noticed,
    two_children_at_a_time,
    too_many_children_are_refused,
    memory_stays_small,
    starts_within_50_ms,
])
