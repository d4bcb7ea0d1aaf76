# SPDX-License-Identifier: Apache-2.0
"""kill -9 of supervisors, guardians, trainers and the server of `cairn ui` in every state of a job: no row is stuck, no
lane has two trainers, no job is lost, no process is left.

    life.py [ROUNDS [SEED]]
"""
import os
import random
import subprocess
import sys
import time

import tap
from queued import CAIRN, ENDED, RUNNING, TWO_GPUS, Queue, kill, rounds, stat_of, until

COUNT, SEED = rounds(sys.argv, 20)
TARGETS = (('supervisor',), ('guardian',), ('trainer',), ('supervisor', 'guardian'), ('guardian', 'trainer'),
           ('supervisor', 'guardian', 'trainer'))


class Window:
    """A server of `cairn ui`, or none; where cairn was built without it, it ends at once."""

    def __init__(self, q, wanted):
        self.q, self.wanted, self.process = q, wanted, None

    def __enter__(self):
        self.open()
        return self

    def __exit__(self, *_):
        self.kill()

    def open(self):
        if self.wanted:
            root = ['--root', self.q.root] if self.q.root else []
            self.process = subprocess.Popen([CAIRN, 'ui', '--no-open', '--port', '0', *root], env=self.q.environment(), cwd=self.q.home,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


def add_jobs(q, r, native):
    """Quick ones, sleepers, sleepers with children, and perhaps a native training."""
    uids = {}
    for i in range(r.randint(2, 4)):
        kind = r.choice(('quick', 'quick', 'sleeper', 'parent'))
        name = f'{kind}-{i}'
        uids[name] = q.trainer(name, r.uniform(0.05, 0.3) if kind == 'quick' else 600,
                               script='parent' if kind == 'parent' else 'trainer')
    if native:
        uids['native'] = q.add('--gpu', 'cpu', '--name', 'native', '--steps', '40', '--set', 'checkpoint.every=20', q.native())
    return uids


def strike(q, r, uid, who):
    """Kills these processes of a job; stopped first, so that none can react to the death of another."""
    tree = dict(zip(('supervisor', 'guardian', 'trainer'), q.tree(uid)))
    pids = [tree[name] for name in who if tree[name]]
    if len(pids) > 1:
        for pid in pids:
            kill(pid, 19)
    r.shuffle(pids)
    for pid in pids:
        kill(pid)
    until(lambda: not any(stat_of(pid) for pid in pids), f'the end of {pids}')
    return pids


def settle(q, uid, what):
    """The row of a job is right within two seconds once its lock is free; returns findings."""
    until(lambda: not q.is_held(uid) or q.rows() and not q.is_held(uid), f'the lock of {what}')
    begin = time.monotonic()
    while (state := q.rows()[uid]['state']) in RUNNING:
        if q.is_held(uid):  # it was started again
            return []
        if time.monotonic() - begin > 2:
            return [f'{what}: still {state}, {time.monotonic() - begin:.1f} s after its lock was free']
        time.sleep(0.05)
    return []


def one_round(number):
    r = random.Random(SEED * 1000 + number)
    root = r.choice((None, None, TWO_GPUS))
    native = number % 10 == 4
    with Queue(root) as q, Window(q, r.random() < 0.4) as window:
        uids = add_jobs(q, r, native)
        for _ in range(r.randint(1, 3)):
            time.sleep(r.choice((0, 0.02, 0.1, 0.3)))
            rows = q.rows() if r.random() < 0.5 else {}
            name = r.choice(sorted(uids))
            if r.random() < 0.3:
                q.job(r.choice(('stop', 'pause', 'kill')), uids[name])
            who = r.choice(TARGETS)
            if r.random() < 0.5:
                window.kill()
            pids = strike(q, r, uids[name], who)
            if pids and not rows.get(uids[name], {}).get('state') in ENDED:
                yield from settle(q, uids[name], f'{name} after the end of {" and ".join(who)}')
            if not window.process:
                window.open()
        window.kill()
        yield from drain(q, uids)


def drain(q, uids):
    """Ends what is left, and looks at the whole."""
    for uid in uids.values():
        q.wait(uid, *ENDED, 'active', 'queued', 'paused')
    limit = time.monotonic() + 60
    while busy := [r for r in q.rows().values() if r['state'] not in ENDED]:
        for row in busy:
            if row['name'].startswith(('quick', 'native')):
                if row['state'] == 'paused':
                    q.job('resume', row['uid'])
            else:
                q.job('kill', row['uid'])
        if time.monotonic() > limit:
            yield f'the queue does not end: {q.states()}'
            break
        time.sleep(0.05)
    rows = q.rows()
    for name, uid in uids.items():
        if uid not in rows:
            yield f'{name} is no longer in the list'
        elif rows[uid]['state'] == 'finished' and name != 'native' and f'end {name}\n' not in q.read('marks'):
            yield f'{name} is finished, but did not end: {q.read("marks")!r}'
        elif rows[uid]['state'] == 'failed' and rows[uid]['exit_code'] != 137:
            yield f'{name} failed: {rows[uid]["cause"]}'
    yield from q.overlaps()
    yield from q.leftovers()


def numbered(number):
    def case():
        return list(one_round(number))
    case.__name__ = f'round_{number}'
    return case


if __name__ == '__main__':
    if not os.path.exists('/usr/bin/flock'):
        print('1..0 # SKIP flock is not installed')
        sys.exit(0)
    tap.run([numbered(n) for n in range(COUNT)])
