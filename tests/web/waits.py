# SPDX-License-Identifier: Apache-2.0
"""How long a silent or a slow client may hold a connection; a minute of waiting."""
import socket
import threading
import time

import tap
from webserver import Server, read_all


def headers_have_30_seconds():
    """A client that sends a byte now and then does not hold its connection for ever."""
    findings = []
    with Server() as s:
        begin = time.monotonic()
        with s.connect(60) as c:
            c.sendall(b'GET / HTTP/1.1\r\n')
            closed = None
            while time.monotonic() - begin < 45 and closed is None:
                try:
                    c.sendall(b'X')
                    c.settimeout(1)
                    if not c.recv(1):
                        closed = time.monotonic() - begin
                except socket.timeout:
                    pass
                except OSError:
                    closed = time.monotonic() - begin
        if closed is None or not 25 < closed < 40:
            findings.append(f'closed after {closed} s')
    return findings


def an_idle_connection_ends_after_60_seconds():
    findings = []
    with Server() as s:
        s.login()
        begin = time.monotonic()
        with s.connect(90) as c:
            c.sendall(f'GET /api/v1/session HTTP/1.1\r\nHost: {s.host}\r\nCookie: {s.cookie}\r\n\r\n'.encode())
            read_all(c)
        seconds = time.monotonic() - begin
        if not 55 < seconds < 80:
            findings.append(f'closed after {seconds:.0f} s')
    return findings


def a_ping_every_15_seconds():
    findings = []
    with Server() as s:
        s.login()
        with s.events('jobs', timeout=20) as e:
            begin = time.monotonic()
            while True:
                block = e.next_block()
                if block == ': ping':
                    break
                if time.monotonic() - begin > 18:
                    return ['no ping']
        if time.monotonic() - begin > 17:
            findings.append(f'{time.monotonic() - begin:.0f} s until a ping')
    return findings


def at_once(*cases):
    """They only wait."""
    results = {}
    threads = [threading.Thread(target=lambda case=case: results.update({case: case()})) for case in cases]
    for t in threads:
        t.start()
    for t in threads:
        t.join()

    def result_of(case):
        def told():
            return results.get(case, ['it failed'])
        told.__name__ = case.__name__
        return told
    tap.run([result_of(case) for case in cases])


at_once(a_ping_every_15_seconds, headers_have_30_seconds, an_idle_connection_ends_after_60_seconds)
