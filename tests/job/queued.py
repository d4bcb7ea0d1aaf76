# SPDX-License-Identifier: Apache-2.0
"""What the tests of `cairn job` share: a queue of their own, its processes, its database.

Everything happens in a temporary home; nothing outside it is written.  Waiting is for a condition, with a limit that
is far above what a loaded machine needs.
"""
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

CAIRN = os.environ['CAIRN']
DATA = os.environ['CAIRN_TEST_DATA']
TWO_GPUS = DATA + '/sysfs/gfx1032-gfx1036-rx6600-plus-raphael-igpu'
PATIENCE = 60
ENDED = ('finished', 'failed', 'stopped', 'lost')
RUNNING = ('starting', 'active')

# NAME SECONDS: notes its start and its end, and whether it has its lane for itself.
TRAINER = '''#!/bin/sh
lane=${ROCR_VISIBLE_DEVICES:-cpu}
exec 8>>"$HOME/lane-$lane"
flock -n 8 || echo "$1 is not alone on $lane" >>"$HOME/overlaps"
echo "start $1" >>"$HOME/marks"
sleep "$2"
echo "end $1" >>"$HOME/marks"
'''
# The same with a child that no longer is in its session, and one that has closed all files.
PARENT = '''#!/bin/sh
lane=${ROCR_VISIBLE_DEVICES:-cpu}
exec 8>>"$HOME/lane-$lane"
flock -n 8 || echo "$1 is not alone on $lane" >>"$HOME/overlaps"
echo "start $1" >>"$HOME/marks"
setsid sleep 600 &
sleep 600 3>&- 4>&- 5>&- 6>&- 7>&- 9>&- &
sleep "$2"
echo "end $1" >>"$HOME/marks"
'''
# A native training of milliseconds per step; %s is its text.
NATIVE = '''# a comment that stays
model: {layers: 1, heads: 2, width: 32, context: 32}
data: {path: %s, tokenizer: bytes}
train: {steps: 4, batch: 2, lr: 1e-3, allow_cpu: true}
checkpoint: {every: 1}
'''


def until(condition, what, patience=PATIENCE):
    """The condition's value once it is true."""
    limit = time.monotonic() + patience
    while not (value := condition()):
        if time.monotonic() > limit:
            raise AssertionError('waited too long for ' + what)
        time.sleep(0.02)
    return value


def stat_of(pid):
    """State and parent of a process; None once it has ended."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as f:
            words = f.read().rpartition(')')[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if words[0] in 'ZX' else (words[0], int(words[1]))


def name_of(pid):
    try:
        with open(f'/proc/{pid}/comm', encoding='utf-8', errors='replace') as f:
            return f.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ''


def kill(pid, sig=signal.SIGKILL):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass


class Queue:
    """A home with a queue; `with Queue() as q`.  root: a captured machine instead of this one."""

    def __init__(self, root=None, cairn=None):
        self.root, self.cairn = root, cairn or CAIRN

    def __enter__(self):
        self.home = tempfile.mkdtemp(prefix='cairn-job-')
        self.state = self.home + '/state/cairn'
        for name, text in (('trainer', TRAINER), ('parent', PARENT)):
            self.script(name, text)
        return self

    def __exit__(self, *_):
        for pid in self.processes():
            kill(pid)
        shutil.rmtree(self.home, ignore_errors=True)

    # ---- files

    def path(self, name):
        return os.path.join(self.home, name)

    def file(self, name, text=''):
        path = self.path(name)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        return path

    def native(self, name='tiny.yaml', text=NATIVE):
        """A configuration of `cairn train`."""
        return self.file(name, text % (DATA + '/text/stones.txt'))

    def script(self, name, text):
        os.chmod(self.file(name, text), 0o755)

    def read(self, name):
        try:
            with open(self.path(name), encoding='utf-8', errors='replace') as f:
                return f.read()
        except FileNotFoundError:
            return ''

    def folder(self, uid):
        return f'{self.state}/jobs/{uid}'

    def log(self, uid, attempt=1):
        return self.read(f'{self.folder(uid)}/attempt-{attempt}/log')

    # ---- commands

    def environment(self, **more):
        """The user's own would change the answers."""
        env = {'PATH': '/usr/bin:/bin', 'LC_ALL': 'C.UTF-8', 'HOME': self.home,
               'XDG_STATE_HOME': self.home + '/state', 'XDG_CACHE_HOME': self.home + '/cache', **more}
        for name in ('ASAN_OPTIONS', 'UBSAN_OPTIONS', 'LSAN_OPTIONS'):
            if name in os.environ:
                env[name] = os.environ[name]
        return env

    def run(self, *arguments, env=None, **options):
        return subprocess.run([self.cairn, *arguments], env=self.environment(**(env or {})),
                              cwd=options.pop('cwd', self.home), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=PATIENCE, check=False, text=True, **options)

    def job(self, command, *arguments, **options):
        root = ['--root', self.root] if self.root and command not in ('show', 'log', 'rebuild') else []
        return self.run('job', command, *root, *arguments, **options)

    def json(self, command, *arguments, **options):
        """Its answer; an AssertionError with its words if it failed."""
        done = self.job(command, '--json', *arguments, **options)
        if done.returncode:
            raise AssertionError(f'cairn job {command} {arguments}: exit {done.returncode}: {done.stderr}')
        return json.loads(done.stdout)

    def add(self, *arguments, **options):
        return self.json('add', *arguments, **options)['job']['uid']

    def trainer(self, name, seconds, *options, script='trainer'):
        return self.add('--gpu', 'auto' if self.root else 'cpu', '--name', name, *options, '--', './' + script, name,
                        str(seconds))

    def rows(self, *options):
        return {row['uid']: row for row in self.json('list', '--all', *options)['jobs']}

    def row(self, uid):
        return self.json('show', uid)['job']

    def states(self):
        return {row['name']: row['state'] for row in self.rows().values()}

    def wait(self, uid, *states):
        """Until it is in one of these states; by default until it has ended."""
        wanted = states or ENDED
        return until(lambda: (row := self.row(uid))['state'] in wanted and row, f'{uid} to be {wanted}')

    def wait_for_end(self):
        """Of all that wait or run."""
        until(lambda: all(r['state'] not in RUNNING + ('queued',) for r in self.rows().values()), 'the end of the queue')

    # ---- database

    def sql(self, statement, *values):
        with sqlite3.connect(self.state + '/cairn.db', timeout=30) as db:
            result = db.execute(statement, values).fetchall()
        db.close()
        return result

    def columns(self, uid, *names):
        return self.sql(f'SELECT {", ".join(names)} FROM job WHERE uid = ?', uid)[0]

    # ---- processes

    def processes(self):
        """All that were started for this home: supervisors, guardians, trainers and what they left."""
        mark = b'XDG_STATE_HOME=' + (self.home + '/state').encode() + b'\0'
        found = []
        for pid in os.listdir('/proc'):
            if not pid.isdigit() or int(pid) == os.getpid():
                continue
            try:
                with open(f'/proc/{pid}/environ', 'rb') as f:
                    if mark in f.read() + b'\0' and stat_of(pid):
                        found.append(int(pid))
            except OSError:
                continue
        return found

    def tree(self, uid):
        """Supervisor, guardian and trainer of a job; 0 for one that is not there."""
        pid, = self.columns(uid, 'pid')
        supervisor = pid if pid and stat_of(pid) else 0
        mine = self.processes()
        guardian = next((p for p in mine if supervisor and (stat_of(p) or (0, 0))[1] == supervisor
                         and name_of(p) == 'cairn-guardian'), 0)
        trainer = next((p for p in mine if guardian and (stat_of(p) or (0, 0))[1] == guardian), 0)
        return supervisor, guardian, trainer

    def is_held(self, uid):
        """Whether somebody has the job's lock open, by asking the kernel for the files of the processes."""
        lock = os.path.realpath(self.folder(uid) + '/lock')
        for pid in self.processes():
            try:
                if any(os.readlink(f'/proc/{pid}/fd/{fd}') == lock for fd in os.listdir(f'/proc/{pid}/fd')):
                    return True
            except OSError:
                continue
        return False

    def leftovers(self):
        """Findings about processes that should not be there any more."""
        try:
            until(lambda: not self.processes(), 'the end of all processes', 10)
        except AssertionError:
            return [f'left: {pid} {name_of(pid)}' for pid in self.processes()]
        return []

    def overlaps(self):
        return [line for line in self.read('overlaps').splitlines() if line]


def has_begun(q, name):
    until(lambda: f'start {name}\n' in q.read('marks'), f'the start of {name}')


def rounds(argv, default):
    """The number of rounds and the seed of a random test: PROGRAM [ROUNDS [SEED]]."""
    count = int(argv[1]) if len(argv) > 1 else default
    seed = int(argv[2]) if len(argv) > 2 else int.from_bytes(os.urandom(4), 'little')
    print(f'# {count} rounds, seed {seed}; to repeat them: {os.path.basename(argv[0])} {count} {seed}')
    sys.stdout.flush()
    return count, seed
