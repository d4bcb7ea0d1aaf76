# SPDX-License-Identifier: Apache-2.0
"""`cairn run` in a terminal: the trainer has one of its own, keys and sizes reach it, and ours is given back."""
import os
import signal
import sys

import tap
from supervised import Home, Terminal, all_gone, children, is_alive, is_stopped, until


class Session:
    """A run in a terminal that is closed whatever happens."""

    def __init__(self, script, *options, **more):
        self.script, self.options, self.more = script, options, more

    def __enter__(self):
        self.home = Home().__enter__()
        path = self.home.file('child.py', self.script)
        try:
            self.terminal = Terminal(self.home, '--retries', '0', *self.options, '--', sys.executable, path, **self.more)
        except tap.Skip:
            self.home.__exit__()
            raise
        return self.home, self.terminal

    def __exit__(self, *_):
        self.terminal.close()
        self.home.__exit__()


WAIT = '''
import os, time
open("ready", "w").write(f"{os.getpid()}\\n")
print("ready", flush=True)
time.sleep(600)
'''


def the_trainer_has_a_terminal():
    script = 'import os, sys\nprint("tty", *(os.isatty(n) for n in range(3)), os.get_terminal_size())\nsys.exit(4)'
    with Session(script, size=(33, 77)) as (_, terminal):
        if terminal.status() != 4:
            yield 'wrong status'
        if b'tty True True True' not in terminal.output:
            yield terminal.output
        if b'columns=77, lines=33' not in terminal.output:
            yield terminal.output
        if terminal.is_raw():
            yield 'the terminal stays raw'


def stderr_may_go_elsewhere():
    script = 'import os, sys\nprint("tty", *(os.isatty(n) for n in range(3)), flush=True)\nprint("trouble", file=sys.stderr)'
    with Session(script, redirect='2>errors') as (home, terminal):
        terminal.status()
        if b'tty True True False' not in terminal.output:
            yield terminal.output
        if 'trouble' not in home.read('errors').splitlines():
            yield home.read('errors')


def what_is_said_begins_a_line():
    """Behind a progress bar that is not finished, and behind a whole line."""
    for end in '', '\\n':
        with Session(f'print("half", end="{end}")') as (_, terminal):
            if terminal.status() or b'half\r\ncairn: exit status' not in terminal.output:
                yield terminal.output


def keys_reach_the_trainer():
    with Session('print("got", repr(input("name? ")))') as (_, terminal):
        terminal.wait('name? ')
        terminal.type(b'cairn\r')
        terminal.wait("got 'cairn'")
        terminal.status()


def a_new_size_reaches_the_trainer():
    script = '''
import os, signal
def resized(*_):
    os.write(1, b"size %d\\n" % os.get_terminal_size().columns)
signal.signal(signal.SIGWINCH, resized)
print("ready", flush=True)
while True:
    signal.pause()
'''
    with Session(script) as (_, terminal):
        terminal.wait('ready')
        terminal.resize(40, 123)
        terminal.wait('size 123')


def ctrl_c_interrupts():
    with Session(WAIT) as (_, terminal):
        terminal.wait('ready')
        terminal.type(b'\x03')
        terminal.wait('KeyboardInterrupt')
        if terminal.status() != 130:
            yield terminal.output
        if terminal.is_raw():
            yield 'the terminal stays raw'


def ctrl_c_twice_kills():
    with Session('import os, signal\nsignal.signal(signal.SIGINT, lambda *_: os.write(1, b"no\\n"))' + WAIT +
                 '\nwhile True: time.sleep(600)') as (home, terminal):
        terminal.wait('ready')
        terminal.type(b'\x03')
        terminal.wait('no')
        terminal.type(b'\x03')
        if terminal.status() != 137:
            yield terminal.output
        all_gone([int(home.read('ready'))])


def ctrl_z_stops_all_and_gives_the_terminal_back():
    with Session(WAIT) as (home, terminal):
        terminal.wait('ready')
        trainer = int(home.wait_for('ready'))
        run = children(terminal.pid)[0]
        terminal.until(terminal.is_raw, 'a raw terminal')
        terminal.type(b'\x1a')
        terminal.until(lambda: is_stopped(run) and is_stopped(trainer), 'a stop')
        if terminal.is_raw():
            yield 'the terminal stays raw'
        os.kill(run, signal.SIGCONT)
        terminal.until(lambda: not is_stopped(trainer) and terminal.is_raw(), 'the return')
        terminal.type(b'\x03')
        terminal.wait('KeyboardInterrupt')


def killed_outright_gives_the_terminal_back():
    with Session(WAIT) as (home, terminal):
        trainer = int(home.wait_for('ready'))
        terminal.until(terminal.is_raw, 'a raw terminal')
        run = children(terminal.pid)[0]
        os.kill(run, signal.SIGKILL)
        all_gone([trainer])
        terminal.until(lambda: not terminal.is_raw(), 'the terminal')


def a_hangup_ends_the_trainer():
    with Home() as home:
        path = home.file('child.py', WAIT)
        terminal = Terminal(home, '--', sys.executable, path)
        trainer = int(home.wait_for('ready'))
        pids = [trainer] + children(terminal.pid)
        terminal.close()
        all_gone(pids)


def reads_from_the_terminal_with_redirected_output():
    """Without a terminal of its own the trainer is in the background, and gets the foreground when it wants it."""
    with Session('print("got", input())', redirect='>out') as (home, terminal):
        until(lambda: any(is_alive(p) for p in children(terminal.pid)), 'a start')
        terminal.type(b'cairn\r')
        if terminal.status() != 0:
            yield terminal.output
        if home.read('out') != 'got cairn\n':
            yield home.read('out')


tap.run([
    the_trainer_has_a_terminal,
    stderr_may_go_elsewhere,
    what_is_said_begins_a_line,
    keys_reach_the_trainer,
    a_new_size_reaches_the_trainer,
    ctrl_c_interrupts,
    ctrl_c_twice_kills,
    ctrl_z_stops_all_and_gives_the_terminal_back,
    killed_outright_gives_the_terminal_back,
    a_hangup_ends_the_trainer,
    reads_from_the_terminal_with_redirected_output,
])
