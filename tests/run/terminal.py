# SPDX-License-Identifier: Apache-2.0
"""`cairn run` in a terminal: the trainer has one of its own, keys and sizes reach it, and ours is given back."""
import os
import signal
import sys
import time

import tap
from supervised import CAIRN, DATA, Home, Terminal, all_gone, children, is_alive, is_stopped, parent, until


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


def what_is_said_fits_the_terminal():
    """All of it, but for words that are to be copied."""
    script = 'import sys\nprint("RuntimeError: HIP error: invalid device function")\nsys.exit(1)'
    root = DATA + '/sysfs/gfx1032-gfx1036-rx6600-plus-raphael-igpu'
    with Session(script, '--root', root, size=(24, 80)) as (home, terminal):
        terminal.status()
        lines = terminal.output.decode().splitlines()
        if sum(line.startswith('cairn: ') for line in lines) < 5:
            yield terminal.output
        for line in lines:
            if len(line) > 80 and ' ' in line.removeprefix('cairn: ').removesuffix(' \\').strip():
                yield line
        explained = Terminal(home, size=(24, 80), shell='"$1" diagnose --color=never last; echo "status=$?"')
        explained.status()
        explained.close()
        lines = explained.output.decode().splitlines()
        if len(lines) < 8 or any(len(line) > 80 for line in lines if ' ' in line.removesuffix(' \\').strip()):
            yield explained.output
    with Home() as home:
        for command in ('x' * 200, 'sh -c "exit 3"', 'no such command'):
            home.run('--', *command.split())
        table = Terminal(home, '--history', size=(24, 80))
        table.status()
        table.close()
        if b'xxx' not in table.output or any(len(line) > 80 for line in table.output.decode().splitlines()):
            yield table.output


def an_end_of_input_that_was_typed_ahead_is_one():
    """Before cairn has the terminal; script(1) types it where it has no input itself."""
    script = 'import sys\nprint("got", repr(sys.stdin.read()), flush=True)'
    with Home() as home:
        home.file('child.py', script)
        terminal = Terminal(home, '--', sys.executable, 'child.py', shell='read -r ready; "$@"; echo "status=$?"')
        terminal.type(b'ready\n\x04')
        if terminal.status() or b"got ''" not in terminal.output:
            yield terminal.output
        terminal.close()
        with open(home.runs()[-1] + '/log', 'rb') as f:
            log = f.read()
        if b'^@' in log or b'\0' in log:
            yield log


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


# A job as an interactive shell has it: the shell gets the terminal when the job stops, and waits for a line.
JOB = 'set -m; "$@"; echo "paused=$?"; read x; fg; echo "status=$?"'
PIPED = JOB.replace('"$@"', '"$@" | cat')
PIPED_BEHIND = 'set -m; "$@" 2>errors | cat & read x; fg; echo "status=$?"'
# bash sends no SIGCONT to a job that runs.
BEHIND = """command -v bash >/dev/null || { echo no-bash; exec sleep 600; }
exec bash -mc '"$@" & read x; fg; echo "status=$?"' bash "$@" """


def ctrl_z_stops_all_and_gives_the_terminal_back():
    with Session(WAIT, shell=JOB) as (home, terminal):
        terminal.wait('ready')
        trainer = int(home.wait_for('ready'))
        run = children(terminal.pid)[0]
        terminal.until(terminal.is_raw, 'a raw terminal')
        terminal.type(b'\x1a')
        terminal.wait('paused=')
        terminal.until(lambda: is_stopped(run) and is_stopped(trainer), 'a stop')
        if terminal.is_raw():
            yield 'the terminal stays raw'
        terminal.type(b'\n')
        terminal.until(lambda: not is_stopped(trainer) and terminal.is_raw(), 'the return')
        terminal.type(b'\x03')
        terminal.wait('KeyboardInterrupt')
        if terminal.status() != 130:
            yield terminal.output


def ctrl_s_is_no_hang():
    script = 'input("ready")\nfor i in range(3000): print("line", i)'
    with Session(script, '--hang-after', '2') as (_, terminal):
        terminal.wait('ready')
        terminal.until(terminal.is_raw, 'a raw terminal')
        terminal.type(b'\x13\r')
        later = time.monotonic() + 5
        terminal.until(lambda: time.monotonic() > later, 'patience to end')
        if b'line' in terminal.output or b'stopping' in terminal.output:
            yield terminal.output
        terminal.type(b'\x11')
        if terminal.status() or b'line 2999' not in terminal.output:
            yield terminal.output[-2000:]


def ctrl_z_without_a_shell_does_not_stop():
    """Nobody could continue it."""
    with Session(WAIT) as (home, terminal):
        terminal.wait('ready')
        terminal.until(terminal.is_raw, 'a raw terminal')
        terminal.type(b'\x1a')
        terminal.type(b'\x03')
        if terminal.status() != 130:
            yield terminal.output


def ctrl_backslash_is_no_crash():
    with Session(WAIT) as (home, terminal):
        terminal.wait('ready')
        terminal.until(terminal.is_raw, 'a raw terminal')
        terminal.type(b'\x1c')
        if terminal.status() != 131 or home.verdict()['attempts'][0]['end'] != 'interrupted':
            yield terminal.output


def a_job_in_the_background_gets_keys_when_it_comes_to_the_front():
    with Session('print("got", repr(input("name? ")))', shell=BEHIND) as (_, terminal):
        terminal.until(lambda: b'name? ' in terminal.output or b'no-bash' in terminal.output, 'a start')
        if b'no-bash' in terminal.output:
            raise tap.Skip('there is no bash here')
        terminal.type(b'\n')
        terminal.until(terminal.is_raw, 'a raw terminal')
        terminal.type(b'cairn\r')
        terminal.wait("got 'cairn'")
        if terminal.status() or terminal.is_raw():
            yield terminal.output


# Reads from the user's terminal, whatever its own output is.
READS = WAIT.replace('time.sleep', 'print("got", input(), flush=True)\ntime.sleep')


def ctrl_z_stops_one_that_has_our_terminal():
    with Session(READS, shell=PIPED) as (home, terminal):
        terminal.wait('ready')
        trainer = int(home.wait_for('ready'))
        terminal.type(b'one\n')
        terminal.wait('got one')
        terminal.type(b'\x1a')
        terminal.wait('paused=')
        if not is_stopped(trainer):
            yield 'the trainer runs on'
        terminal.type(b'\n')
        terminal.until(lambda: not is_stopped(trainer), 'the return')
        terminal.interrupt('cairn: journal')  # the shell, interrupted as well, says no more
        all_gone([trainer])
        if home.verdict()['attempts'][0]['end'] != 'interrupted':
            yield home.verdict()


def one_that_reads_goes_on_reading_after_ctrl_z():
    with Session(READS, shell=PIPED) as (home, terminal):
        terminal.wait('ready')
        trainer = int(home.wait_for('ready'))
        terminal.until(lambda: os.tcgetpgrp(terminal.fd) == trainer and not is_stopped(trainer), 'the foreground')
        terminal.type(b'\x1a')
        terminal.wait('paused=')
        terminal.type(b'\n')
        terminal.until(lambda: os.tcgetpgrp(terminal.fd) == trainer, 'the foreground again')
        terminal.type(b'two\n')
        terminal.wait('got two')


def ctrl_c_at_one_that_has_our_terminal_is_no_crash():
    script = 'import os, signal\nsignal.signal(signal.SIGINT, lambda *_: os.abort())\n' + READS
    with Session(script, shell=PIPED.replace('; read x; fg', '')) as (home, terminal):
        terminal.wait('ready')
        terminal.type(b'one\n')
        terminal.wait('got one')
        terminal.type(b'\x03')
        terminal.wait('status=')
        if home.verdict()['attempts'][0]['end'] != 'interrupted' or b'diagnosis' in terminal.output:
            yield terminal.output


def ctrl_c_twice_kills_one_that_has_our_terminal():
    script = 'import os, signal\nsignal.signal(signal.SIGINT, lambda *_: os.write(1, b"no\\n"))' + READS + \
             '\nwhile True: time.sleep(600)'
    with Session(script, shell=PIPED.replace('; read x; fg', '')) as (home, terminal):
        terminal.wait('ready')
        terminal.type(b'one\n')
        terminal.wait('got one')
        terminal.type(b'\x03')
        terminal.wait('no\r\n')
        time.sleep(0.5)  # of two that come at once the second is not heard
        terminal.type(b'\x03')
        terminal.wait('status=')
        all_gone([int(home.read('ready'))])
        if home.verdict()['attempts'][0]['code'] != 137:
            yield home.verdict()


def killed_outright_gives_the_foreground_back():
    """A moment later; a shell without jobs that reads before gets nothing."""
    shell = '"$@" | cat; until test -e enough; do sleep 0.02; done; read x; echo "read=$x"'
    with Session(READS, shell=shell) as (home, terminal):
        trainer = int(home.wait_for('ready'))
        terminal.until(lambda: os.tcgetpgrp(terminal.fd) == trainer, 'the foreground')
        os.kill(parent(parent(trainer)), signal.SIGKILL)
        all_gone([trainer])
        terminal.until(lambda: os.tcgetpgrp(terminal.fd) == os.getpgid(terminal.pid), 'the foreground again')
        home.file('enough')
        terminal.type(b'line\n')
        terminal.wait('read=line')


def a_hangup_leaves_time_to_save():
    """It comes twice: when the terminal goes, and when the shell does."""
    script = '''
import os, signal, sys, time
def told(*_):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    open("told", "w").write("yes\\n")
    time.sleep(1.5)
    open("saved", "w").write("whole")
    sys.exit(0)
signal.signal(signal.SIGHUP, told)
''' + WAIT
    with Home() as home:
        terminal = Terminal(home, '--', sys.executable, home.file('child.py', script))
        trainer = int(home.wait_for('ready'))
        os.kill(parent(parent(trainer)), signal.SIGHUP)
        home.wait_for('told')
        terminal.close()
        all_gone([trainer])
        if home.read('saved') != 'whole':
            yield 'it was killed'


def a_size_that_changed_meanwhile_reaches_the_trainer():
    script = WAIT.replace('time.sleep(600)', '''
while True:
    print("size", os.get_terminal_size().columns, flush=True)
    time.sleep(0.1)
''')
    with Session(script, shell=JOB) as (_, terminal):
        terminal.wait('size 80')
        terminal.until(terminal.is_raw, 'a raw terminal')
        terminal.type(b'\x1a')
        terminal.wait('paused=')
        terminal.resize(40, 123)
        terminal.type(b'\n')
        terminal.wait('size 123')


def a_hangup_of_one_that_has_our_terminal_is_no_crash():
    with Home() as home:
        path = home.file('child.py', READS)
        terminal = Terminal(home, '--', sys.executable, path, shell=PIPED)
        trainer = int(home.wait_for('ready'))
        terminal.until(lambda: os.tcgetpgrp(terminal.fd) == trainer, 'the foreground')
        pids = [trainer] + children(terminal.pid)
        terminal.close()
        all_gone(pids)
        if [t['end'] for t in home.verdict()['attempts']] != ['interrupted']:
            yield home.verdict()


def one_that_reads_in_the_background_stops_its_job():
    """As it does by itself; the shell then knows, and fg brings it back."""
    with Session(READS, shell=PIPED_BEHIND) as (home, terminal):
        run = parent(parent(int(home.wait_for('ready'))))  # past the guardian
        terminal.until(lambda: is_stopped(run), 'a stop')
        terminal.type(b'\n')
        terminal.until(lambda: not is_stopped(run), 'the return')
        terminal.type(b'one\n')
        terminal.wait('got one')
        terminal.type(b'\x03')
        terminal.wait('status=')


def one_that_reads_where_no_shell_minds_it_is_remarked_on():
    shell = 'set -m; ("$@" </dev/tty 2>errors | cat &) & sleep 600'
    with Session(READS, shell=shell) as (home, terminal):
        trainer = int(home.wait_for('ready'))
        terminal.until(lambda: 'reads from the terminal' in home.read('errors'), 'a remark')
        os.kill(parent(parent(trainer)), signal.SIGTERM)
        all_gone([trainer])
        if home.read('errors').count('reads from the terminal') != 1:
            yield home.read('errors')


def asks_for_a_password_without_any_stream_of_the_terminal():
    script = 'import getpass\nopen("secret", "w").write(getpass.getpass() + "\\n")'
    with Session(script, redirect='</dev/null 2>errors | cat') as (home, terminal):
        terminal.wait('assword')
        terminal.type(b'cairn\r')
        if home.wait_for('secret') != 'cairn':
            yield home.read('secret')
        terminal.status()


# Its child prints and writes a file after the trainer's end.
LATE = '''
import os, time
if os.fork() == 0:
    open("child", "w").write(f"{os.getpid()}\\n")
    time.sleep(SECONDS)
    print("saved here", flush=True)
    open("saved", "w").write("whole")
    os._exit(0)
while not os.path.exists("child"):
    time.sleep(0.01)
print("main done", flush=True)
'''


def what_the_trainer_left_may_finish():
    with Session(LATE.replace('SECONDS', '5')) as (home, terminal):
        if terminal.status() or home.read('saved') != 'whole' or b'saved here' not in terminal.output:
            yield terminal.output
        if b'processes that the trainer left' not in terminal.output:
            yield 'nothing was said'
        if terminal.is_raw():
            yield 'the terminal stays raw'


def ctrl_c_ends_what_the_trainer_left():
    """At once, and when the wait was said."""
    for word in 'main done', 'Ctrl-C':
        with Session(LATE.replace('SECONDS', '600')) as (home, terminal):
            child = int(home.wait_for('child'))
            terminal.wait(word)
            start = time.monotonic()
            terminal.type(b'\x03')
            terminal.wait('cairn: journal')  # the shell, interrupted as well, may say no more
            all_gone([child])
            if time.monotonic() - start > 9:
                yield terminal.output


def the_trainer_may_have_a_group_of_its_own():
    script = 'import os\nos.setpgrp()\nprint("got", input("ready"), os.getpgrp() == os.tcgetpgrp(0))'
    with Session(script) as (_, terminal):
        terminal.wait('ready')
        terminal.type(b'one\r')
        if terminal.status() or b'got one True' not in terminal.output:
            yield terminal.output


def of_two_runs_one_inside_the_other_is_one_job():
    """With terminals of their own, and where the inner one lends its trainer the outer one's."""
    for inner in ('--', CAIRN, 'run'), ('--', 'sh', '-c', '"$@" | cat', 'sh', CAIRN, 'run'):
        with Session(READS, *inner, shell=JOB) as (home, terminal):
            trainer = int(home.wait_for('ready'))
            terminal.until(terminal.is_raw, 'a raw terminal')
            terminal.type(b'one\r')
            terminal.wait('got one')
            terminal.type(b'\x1a')
            terminal.wait('paused=')
            terminal.until(lambda: is_stopped(trainer), 'a stop')
            if terminal.is_raw():
                yield 'the terminal stays raw'
            terminal.type(b'\n')
            terminal.until(lambda: not is_stopped(trainer) and terminal.is_raw(), 'the return')
            terminal.type(b'\x03')
            terminal.status()
            all_gone([trainer])
            if b'diagnosis' in terminal.output:
                yield terminal.output


def ctrl_c_for_jobs_of_the_trainers_own_is_not_counted():
    """A shell's: each ends one of its jobs, and the shell goes on."""
    script = '''
import os, signal, time
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
for i in range(3):
    job = os.fork()
    if job == 0:
        os.setpgrp()
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        print(f"job {i}", flush=True)
        time.sleep(600)
    print("ended by", os.waitpid(job, 0)[1], flush=True)
    os.tcsetpgrp(0, os.getpgrp())
print("all done")
'''
    with Session(script) as (_, terminal):
        for i in range(3):
            terminal.wait(f'job {i}')
            terminal.type(b'\x03')
        if terminal.status() or b'all done' not in terminal.output or terminal.output.count(b'ended by 2') != 3:
            yield terminal.output


def one_that_stops_itself_stops_its_job():
    """As programs do that have all keys for themselves."""
    script = 'import os, signal\nprint("ready", flush=True)\nos.kill(0, signal.SIGTSTP)\nprint("goes on")'
    with Session(script, shell=JOB) as (_, terminal):
        terminal.wait('paused=')
        if terminal.is_raw() or b'goes on' in terminal.output:
            yield terminal.output
        terminal.type(b'\n')
        terminal.wait('goes on')
        if terminal.status():
            yield terminal.output
    with Session(script) as (_, terminal):  # nobody could continue it
        terminal.wait('goes on')
        if terminal.status():
            yield terminal.output


def one_that_gave_its_terminal_away_gets_it_back():
    """A shell does so, when a job stands where it should not."""
    script = '''
import os, signal
other = os.fork()
if other == 0:
    os.setpgrp()
    signal.pause()
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
while os.getpgid(other) != other:
    pass
os.tcsetpgrp(0, other)
print("got", input("ready"), flush=True)
os.kill(other, signal.SIGKILL)
'''
    with Session(script) as (_, terminal):
        terminal.wait('ready')
        terminal.type(b'one\r')
        terminal.wait('got one')
        if terminal.status():
            yield terminal.output


def a_killed_guardian_takes_all_with_it():
    with Session(LATE.replace('SECONDS', '600') + WAIT) as (home, terminal):
        pids = [int(home.wait_for('ready')), int(home.wait_for('child'))]
        terminal.until(terminal.is_raw, 'a raw terminal')
        os.kill(parent(pids[0]), signal.SIGKILL)
        if terminal.status() != 137 or terminal.is_raw():
            yield terminal.output
        all_gone(pids)


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
    what_is_said_fits_the_terminal,
    an_end_of_input_that_was_typed_ahead_is_one,
    stderr_may_go_elsewhere,
    what_is_said_begins_a_line,
    keys_reach_the_trainer,
    a_new_size_reaches_the_trainer,
    ctrl_c_interrupts,
    ctrl_c_twice_kills,
    ctrl_z_stops_all_and_gives_the_terminal_back,
    ctrl_s_is_no_hang,
    ctrl_z_without_a_shell_does_not_stop,
    ctrl_backslash_is_no_crash,
    a_job_in_the_background_gets_keys_when_it_comes_to_the_front,
    ctrl_z_stops_one_that_has_our_terminal,
    one_that_reads_goes_on_reading_after_ctrl_z,
    ctrl_c_at_one_that_has_our_terminal_is_no_crash,
    ctrl_c_twice_kills_one_that_has_our_terminal,
    killed_outright_gives_the_foreground_back,
    a_hangup_leaves_time_to_save,
    a_size_that_changed_meanwhile_reaches_the_trainer,
    a_hangup_of_one_that_has_our_terminal_is_no_crash,
    one_that_reads_in_the_background_stops_its_job,
    one_that_reads_where_no_shell_minds_it_is_remarked_on,
    asks_for_a_password_without_any_stream_of_the_terminal,
    what_the_trainer_left_may_finish,
    ctrl_c_ends_what_the_trainer_left,
    the_trainer_may_have_a_group_of_its_own,
    of_two_runs_one_inside_the_other_is_one_job,
    ctrl_c_for_jobs_of_the_trainers_own_is_not_counted,
    one_that_stops_itself_stops_its_job,
    one_that_gave_its_terminal_away_gets_it_back,
    a_killed_guardian_takes_all_with_it,
    killed_outright_gives_the_terminal_back,
    a_hangup_ends_the_trainer,
    reads_from_the_terminal_with_redirected_output,
])
