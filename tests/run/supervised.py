# SPDX-License-Identifier: Apache-2.0
"""What the tests of `cairn run` share: a home of their own, runs with and without a terminal, processes to look for.

Everything happens in a temporary folder; nothing outside it is written.  Waiting is for a condition, with a limit that
is far above what a loaded machine needs.
"""
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time

import tap

CAIRN = os.environ['CAIRN']
DATA = os.environ['CAIRN_TEST_DATA']
PATIENCE = 60
# Whoever started the tests may ignore it (nohup does), and what they start would inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def environment(home, **more):
    """The user's own would change the answers."""
    return {'PATH': '/usr/bin:/bin', 'LC_ALL': 'C.UTF-8', 'HOME': home, 'XDG_STATE_HOME': home + '/state',
            'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', ''), **more}


class Home:
    """A temporary home; `with Home() as home`."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix='cairn-run-')
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name, text=''):
        path = os.path.join(self.path, name)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        return path

    def read(self, name):
        try:
            with open(os.path.join(self.path, name), encoding='utf-8', errors='replace') as f:
                return f.read()
        except FileNotFoundError:
            return ''

    def start(self, *arguments, env=None, **options):
        return subprocess.Popen([CAIRN, 'run', *arguments], env=environment(self.path, **(env or {})), cwd=self.path,
                                stdin=subprocess.DEVNULL, **options)

    def run(self, *arguments, env=None, **options):
        return subprocess.run([CAIRN, 'run', *arguments], env=environment(self.path, **(env or {})), cwd=self.path,
                              stdin=options.pop('stdin', subprocess.DEVNULL), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=PATIENCE, check=False, **options)

    def runs(self):
        folder = os.path.join(self.path, 'state/cairn/runs')
        return sorted(os.path.join(folder, name) for name in os.listdir(folder)) if os.path.isdir(folder) else []

    def events(self):
        """Of the newest run."""
        with open(self.runs()[-1] + '/events.jsonl', encoding='utf-8') as f:
            return [json.loads(line) for line in f]

    def verdict(self):
        with open(self.runs()[-1] + '/verdict.json', encoding='utf-8') as f:
            return json.load(f)

    def wait_for(self, name):
        """Until a file of the home has a whole line; its first word."""
        until(lambda: self.read(name).endswith('\n'), f'file {name}')
        return self.read(name).split()[0]


def until(condition, what):
    limit = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > limit:
            raise AssertionError('waited too long for ' + what)
        time.sleep(0.02)


def is_alive(pid):
    """A process that runs; a zombie whose parent is slow to look does not count."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as f:
            return f.read().rpartition(')')[2].split()[0] not in 'ZX'
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_stopped(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as f:
        return f.read().rpartition(')')[2].split()[0] == 'T'


def all_gone(pids):
    until(lambda: not any(is_alive(p) for p in pids), f'the end of {pids}')


class Terminal:
    """cairn run in a terminal of its own, as a session's only job; with a shell that minds jobs where one is given."""

    def __init__(self, home, *arguments, size=(24, 80), redirect='', shell=''):
        self.output = b''
        try:
            self.pid, self.fd = pty.fork()
        except OSError as e:  # no /dev/pts in a bare container
            raise tap.Skip(f'no terminal can be had here: {e}') from e
        if self.pid == 0:
            for ignored in signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP:  # by what started the tests
                signal.signal(ignored, signal.SIG_DFL)
            os.chdir(home.path)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', *size, 0, 0))
            script = shell or '"$@" ' + redirect + '; echo "status=$?"'
            os.execve('/bin/sh', ['sh', '-c', script, 'sh', CAIRN, 'run', *arguments], environment(home.path, TERM='xterm'))

    def pump(self, seconds=0.02):
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return
        try:
            self.output += os.read(self.fd, 65536)
        except OSError:
            pass

    def until(self, condition, what):
        limit = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > limit:
                raise AssertionError(f'waited too long for {what}; output {self.output[-2000:]!r}')
            self.pump()

    def wait(self, text):
        self.until(lambda: text.encode() in self.output, repr(text))

    def interrupt(self, text):
        """Ctrl-C, until `text` is there.  One that comes while a shell gives a job the terminal back may reach the shell alone."""
        for _ in range(4):
            self.type(b'\x03')
            limit = time.monotonic() + PATIENCE / 4
            while text.encode() not in self.output and time.monotonic() < limit:
                self.pump()
            if text.encode() in self.output:
                return
        raise AssertionError(f'waited too long for {text!r}; output {self.output[-2000:]!r}')

    def type(self, keys):
        os.write(self.fd, keys)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def is_raw(self):
        return not termios.tcgetattr(self.fd)[3] & termios.ICANON

    def status(self):
        self.wait('status=')
        return int(self.output.split(b'status=')[1].split()[0])

    def close(self):
        os.close(self.fd)
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)


def parent(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as f:
        return int(f.read().rpartition(')')[2].split()[1])


def children(pid):
    """Every process below one."""
    below, found = {}, []
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            below.setdefault(parent(name), []).append(int(name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    todo = [pid]
    while todo:
        todo += below.get(todo[0], [])
        found += below.get(todo.pop(0), [])
    return found
