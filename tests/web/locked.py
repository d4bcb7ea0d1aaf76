# SPDX-License-Identifier: Apache-2.0
"""While another program has locked the database of jobs, pages are served; what writes waits, or answers 503."""
import os
import sqlite3
import threading
import time

import tap
from checked import Checked


class Lock:
    """Another program that writes."""

    def __init__(self, c):
        self.db = sqlite3.connect(os.path.join(c.s.home, 'state', 'cairn', 'cairn.db'), isolation_level=None, check_same_thread=False)
        self.db.execute('BEGIN IMMEDIATE')

    def release(self):
        self.db.execute('ROLLBACK')
        self.db.close()


class Later:
    """A request on a thread: its answer, and how long it took."""

    def __init__(self, work):
        self.answer = self.seconds = None
        self.thread = threading.Thread(target=self.run, args=(work,))
        self.thread.start()

    def run(self, work):
        begin = time.monotonic()
        self.answer = work()
        self.seconds = time.monotonic() - begin

    def join(self):
        self.thread.join()
        return self.answer


def serve(c, stream, seconds):
    """Asks for what pages ask for; the slowest answer, and how many events came meanwhile."""
    end, slowest, events = time.monotonic() + seconds, 0, []
    reader = threading.Thread(target=lambda: [events.append(stream.next_event()) for _ in range(max(1, int(seconds) - 1))])
    reader.start()
    while time.monotonic() < end:
        for path in ('/api/v1/session', '/api/v1/jobs', '/api/v1/settings', '/'):
            begin = time.monotonic()
            c.same(path, c.s.get(path).status, 200)
            slowest = max(slowest, time.monotonic() - begin)
        time.sleep(0.05)
    reader.join(10)
    return slowest, len(events)


def pages_are_served_while_a_change_waits():
    with Checked('--allow-root') as c, c.s.events('jobs,machine') as stream:
        first = c.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu'}, status=201).json()['uid']
        time.sleep(2.5)  # it is healing every two seconds
        lock = Lock(c)
        add = Later(lambda: c.s.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu', 'name': 'waited'}))
        edit = Later(lambda: c.s.change('PATCH', f'/api/v1/jobs/{first}', {'name': 'edited'}))
        slowest, events = serve(c, stream, 3)
        c.same('nothing was written', [j['name'] for j in c.get('/api/v1/jobs').json()['jobs']], ['true'])
        lock.release()
        c.same('added', add.join().status, 201)
        c.same('edited', edit.join().status, 200)
        print(f'# slowest answer {1000 * slowest:.0f} ms, {events} events, the change after {add.seconds:.1f} s')
        c.same('the change waited', 2.5 < add.seconds < 8, True)
        c.same('others did not', slowest < 1, True)
        c.same('events came', events >= 2, True)
        c.same('both are there', sorted(j['name'] for j in c.get('/api/v1/jobs').json()['jobs']), ['edited', 'waited'])
        return c.findings


def a_long_lock_is_said():
    with Checked('--allow-root') as c:
        c.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu'}, status=201)
        lock = Lock(c)
        answer = c.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu'}, status=503)
        c.same('Retry-After', answer.headers.get('retry-after'), '2')
        c.same('why', 'locked' in answer.json()['detail'], True)
        lock.release()
        c.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu'}, status=201)
        return c.findings


def ending_does_not_wait_for_long():
    with Checked() as c:
        lock = Lock(c)
        time.sleep(2.5)
        begin = time.monotonic()
        c.same('status', c.s.stop(), 0)
        c.same('ended in time', time.monotonic() - begin < 8, True)
        lock.release()
        return c.findings


tap.run([pages_are_served_while_a_change_waits, a_long_lock_is_said, ending_does_not_wait_for_long])
