# SPDX-License-Identifier: Apache-2.0
"""What `cairn run` does with processes and their output: nothing is left behind, nothing is changed, no code is lost."""
import os
import random
import resource
import signal
import subprocess
import sys
import time

import tap
from supervised import DATA, Home, all_gone, children, is_alive, parent, until

# Starts a grandchild in a session of its own, whose parent is gone, and says its number.
ORPHANS = '''
import os, subprocess, sys, time
for name in ("one", "two"):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open(name, "w").write(f"{os.getpid()}\\n")
            time.sleep(600)
        os._exit(0)
    os.wait()
while not all(os.path.exists(n) and open(n).read() for n in ("one", "two")):
    time.sleep(0.01)
open("trainer", "w").write(f"{os.getpid()}\\n")
time.sleep(float(sys.argv[1]))
'''


def python(home, text, *arguments):
    return sys.executable, home.file('child.py', text), *arguments


def returns_the_code():
    with Home() as home:
        for code in (0, 1, 7, 255):
            done = home.run('--retries', '0', '--', 'sh', '-c', f'exit {code}')
            if done.returncode != code or b'signal' in done.stderr:
                yield f'{code}: {done}'
        for sig in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
            done = home.run('--retries', '0', '--', 'sh', '-c', f'kill -{int(sig)} $$')
            if done.returncode != 128 + sig or b'by signal %d' % sig not in done.stderr:
                yield f'{sig.name}: {done}'


def says_why_it_did_not_start():
    with Home() as home:
        done = home.run('--', '/nonexistent/trainer')
        if done.returncode != 127 or b'cannot run /nonexistent/trainer: No such file' not in done.stderr:
            yield done
        done = home.run('--', home.file('no-program', 'x'))
        if done.returncode != 126 or b'Permission denied' not in done.stderr:
            yield done
        done = home.run('--', home.path)
        if done.returncode != 126:
            yield done
        done = home.run('--')
        if done.returncode != 2 or b'needs a command' not in done.stderr:
            yield done


def keeps_both_streams_apart_and_whole():
    script = 'import os, sys; os.write(1, bytes(range(256)) * 8192); os.write(2, b"\\0\\xff" * 65536)'
    with Home() as home:
        done = home.run('--no-preflight', '--', *python(home, script))
        if done.stdout != bytes(range(256)) * 8192:
            yield f'stdout: {len(done.stdout)} bytes'
        if b'\0\xff' * 65536 not in done.stderr:
            yield 'stderr is not whole'
        with open(home.runs()[-1] + '/log', 'rb') as f:
            # Lines are ended where the other stream comes between.
            if len(f.read().replace(b'\n', b'')) != 255 * 8192 + 131072:
                yield 'the log is not whole'


def streams_that_are_one_stay_in_order():
    """Into a file, and into a pipe; an end of a line that comes by itself stays with its line."""
    script = 'import os\nfor i in range(2000): os.write(1, b"out %d" % i), os.write(1, b"\\n"), os.write(2, b"err %d\\n" % i)'
    wanted = b''.join(b'out %d\nerr %d\n' % (i, i) for i in range(2000))
    with Home() as home:
        command = '--no-preflight', '--', *python(home, script)
        with open(os.path.join(home.path, 'both'), 'wb') as both:
            home.start(*command, stdout=both, stderr=subprocess.STDOUT).wait(60)
        with open(os.path.join(home.path, 'both'), 'rb') as both:
            if wanted not in both.read():
                yield 'a file'
        output, _ = home.start(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).communicate(timeout=60)
        if wanted not in output:
            yield 'a pipe'
        for run in home.runs():
            with open(run + '/log', 'rb') as log:
                if log.read() != wanted:
                    yield run


def a_flood_of_lines_comes_whole_and_in_order():
    script = 'import os\nfor i in range(50000): os.write(1, b"line %d\\n" % i)\nos.write(1, b"no end")'
    wanted = b''.join(b'line %d\n' % i for i in range(50000)) + b'no end'
    with Home() as home:
        done = home.run('--no-preflight', '--', *python(home, script))
        if done.stdout != wanted:
            yield f'stdout: {len(done.stdout)} bytes of {len(wanted)}'
        with open(home.runs()[-1] + '/log', 'rb') as f:
            if f.read() != wanted:
                yield 'the log is another'


def blocks_of_any_size_come_whole_and_in_order():
    """The reader is slow at times."""
    script = 'import os, random\nr = random.Random(7)\n' \
             'for i in range(1500): os.write(1, bytes([i % 251]) * r.choice((1, 100, 5000, 33000, 70000, 300000)))'
    r = random.Random(7)
    wanted = b''.join(bytes([i % 251]) * r.choice((1, 100, 5000, 33000, 70000, 300000)) for i in range(1500))
    with Home() as home:
        run = home.start('--no-preflight', '--keep-log', 'kept', '--', *python(home, script), stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL)
        got = bytearray()
        while piece := run.stdout.read(1 << 16):
            got += piece
            if len(got) % 7 == 0:
                time.sleep(0.001)
        if run.wait() or got != wanted:
            yield f'stdout: {len(got)} bytes of {len(wanted)}'
        with open(os.path.join(home.path, 'kept'), 'rb') as f:
            if f.read() != wanted:
                yield 'the log is another'


def passes_stdin_on():
    with Home() as home:
        path = home.file('input', 'one\ntwo\n')
        with open(path, 'rb') as f:
            done = home.run('--', 'cat', stdin=f)
        if done.stdout != b'one\ntwo\n':
            yield done.stdout


def keeps_the_users_preload():
    with Home() as home:
        done = home.run('--preload=off', '--', 'sh', '-c', 'echo "$LD_PRELOAD"', env={'LD_PRELOAD': 'libm.so.6', 'ASAN_OPTIONS': 'verify_asan_link_order=0'})
        if done.stdout != b'libm.so.6\n':
            yield done


def a_reader_that_leaves_ends_the_writer():
    with Home() as home:
        run = home.start('--retries', '0', '--', 'yes', stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        run.stdout.read(100)
        run.stdout.close()
        if run.wait(60) != 128 + signal.SIGPIPE:
            yield f'exit {run.returncode}'
        # That is no failure to be cured, whatever it said before.
        script = 'import sys\nopen("tries", "a").write("x")\nprint("gfx1031", flush=True)\n' \
                 'sys.stderr.write("RuntimeError: HIP error: invalid device function\\n")\n' \
                 'while True: print("x" * 9000)\n'
        run = home.start('--', *python(home, script), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        run.stdout.read(100)
        run.stdout.close()
        if not run.wait(60) or home.read('tries') != 'x' or home.verdict()['attempts'][0]['end'] != 'interrupted':
            yield home.read('tries'), home.verdict()


def a_full_disk_behind_us_is_no_success():
    with Home() as home:
        with open('/dev/full', 'wb') as full:
            run = home.start('--', 'sh', '-c', 'echo words; sleep 1; echo more', stdout=full, stderr=subprocess.PIPE)
            _, errors = run.communicate(timeout=60)
        if run.returncode != 1 or b"cannot write the trainer's output" not in errors:
            yield errors
        with open(home.runs()[-1] + '/log', encoding='utf-8') as f:
            if f.read() != 'words\nmore\n':
                yield 'the log is not whole'
    # Nor is it a failure of the trainer, which would be tried again.
    script = 'open("tries", "a").write("x")\nprint("gfx1031 HIP error: invalid device function" + "x" * 9000)'
    with Home() as home:
        with open('/dev/full', 'wb') as full:
            run = home.start('--', *python(home, script), stdout=full, stderr=subprocess.PIPE)
            _, errors = run.communicate(timeout=60)
        if run.returncode != 1 or home.read('tries') != 'x' or b'diagnosis' in errors:
            yield run.returncode, home.read('tries'), errors


def a_limit_on_the_size_of_files_ends_nobody():
    script = 'import os, sys\nos.write(1, b"x" * 20000)\nsys.exit(7)'
    with Home() as home:
        done = home.run('--retries', '0', '--no-preflight', '--', *python(home, script),
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        said = b' '.join(done.stderr.split())
        if done.returncode != 7 or len(done.stdout) != 20000:
            yield done.returncode, len(done.stdout)
        if said.count(b'cannot write the log') != 1:
            yield said
        # The trainer has its signals as ever.
        done = home.run('--no-preflight', '--', 'grep', 'SigIgn', '/proc/self/status')
        ignored = int(done.stdout.split()[1], 16)
        if any(ignored >> (s - 1) & 1 for s in (signal.SIGXFSZ, signal.SIGPIPE)):
            yield done


def a_child_that_closes_its_output_is_waited_for():
    with Home() as home:
        done = home.run('--retries', '0', '--', 'sh', '-c', 'exec >&- 2>&-; sleep 1; exit 5')
        if done.returncode != 5:
            yield done


def ends_what_the_trainer_left():
    with Home() as home:
        done = home.run('--', *python(home, ORPHANS + '\nsys.exit(7)', '0'))
        pids = [int(home.read(n)) for n in ('one', 'two')]
        if done.returncode != 7:
            yield done
        if any(is_alive(p) for p in pids):
            yield 'an orphan lives'
        if b'ending processes that the trainer left' not in b' '.join(done.stderr.split()):
            yield 'nothing was said'
        # After a good end it has some time, until somebody does not want to wait.
        run = home.start('--', *python(home, ORPHANS, '0'), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        until(lambda: b'up to 10 s for processes' in run.stderr.readline(), 'a word')
        if not is_alive(int(home.read('one'))):
            yield 'it was ended at once'
        run.terminate()
        if run.wait(60) or any(is_alive(int(home.read(n))) for n in ('one', 'two')):
            yield f'exit {run.returncode}'


# Writes a file for some time after the trainer has ended, or until it is told to end.
SAVES = """
import os, signal, sys, time
if os.fork():
    sys.exit(int(sys.argv[1]))
def told(*_):
    open("saved", "a").write("told")
    os._exit(0)
signal.signal(signal.SIGTERM, told)
open("pid", "w").write(str(os.getpid()))
time.sleep(float(sys.argv[2]))
open("saved", "a").write("whole")
"""


def what_the_trainer_left_may_finish():
    for code, seconds, expected in (('0', '3.5', 'whole'), ('7', '600', 'told')):
        with Home() as home:
            done = home.run('--retries', '0', '--no-preflight', '--', *python(home, SAVES, code, seconds))
            if done.returncode != int(code) or home.read('saved') != expected:
                yield f'{home.read("saved")!r}: {done}'


def what_does_not_obey_is_killed():
    script = SAVES.replace('os._exit(0)', 'time.sleep(600)')
    with Home() as home:
        done = home.run('--retries', '0', '--no-preflight', '--', *python(home, script, '7', '600'))
        if done.returncode != 7 or home.read('saved') != 'told' or is_alive(int(home.read('pid'))):
            yield done


def killed_outright_while_it_waits_leaves_nothing():
    with Home() as home:
        run = home.start('--', *python(home, ORPHANS, '0'), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        until(lambda: b'for processes that the trainer left' in run.stderr.readline(), 'a word')
        pids = children(run.pid)
        run.kill()
        run.wait()
        run.stderr.close()
        all_gone(pids)


def killed_outright_leaves_nothing():
    with Home() as home:
        run = home.start('--', *python(home, ORPHANS, '600'), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pids = [int(home.wait_for(n)) for n in ('trainer', 'one', 'two')]
        pids += children(run.pid)
        run.kill()
        run.wait()
        all_gone(pids)


def a_killed_guardian_takes_all_with_it():
    with Home() as home:
        run = home.start('--retries', '0', '--', *python(home, ORPHANS, '600'), stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
        pids = [int(home.wait_for(n)) for n in ('trainer', 'one', 'two')]
        os.kill(parent(pids[0]), signal.SIGKILL)
        if run.wait(60) != 137:
            yield f'exit {run.returncode}'
        all_gone(pids)


def forwards_signals():
    script = '''
import os, signal, sys, time
def told(number, frame):
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
    if number == signal.SIGTERM:
        sys.exit(9)
for s in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(s, told)
open("ready", "w").write("yes\\n")
while True:
    time.sleep(0.05)
'''
    with Home() as home:
        with open(os.path.join(home.path, 'out'), 'wb') as out:
            run = home.start('--', *python(home, script), stdout=out, stderr=subprocess.DEVNULL)
        home.wait_for('ready')
        for sig in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
            run.send_signal(sig)
            until(lambda: sig.name in home.read('out'), sig.name)
        if run.wait(60) != 9:
            yield f'exit {run.returncode}'
        if home.verdict()['attempts'][0]['end'] != 'interrupted':
            yield home.verdict()


def a_second_signal_kills():
    script = 'import os, signal, time\nsignal.signal(signal.SIGTERM, lambda *_: os.write(1, b"no\\n"))\n' \
             'open("ready", "w").write("yes\\n")\nwhile True: time.sleep(0.05)\n'
    with Home() as home:
        with open(os.path.join(home.path, 'out'), 'wb') as out:
            run = home.start('--', *python(home, script), stdout=out, stderr=subprocess.DEVNULL)
        home.wait_for('ready')
        run.terminate()
        until(lambda: 'no' in home.read('out'), 'the first one')
        run.terminate()
        if run.wait(60) != 137:
            yield f'exit {run.returncode}'


def stops_and_continues():
    with Home() as home:
        run = home.start('--', *python(home, ORPHANS, '600'), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         preexec_fn=os.setpgrp)  # as a shell starts a job: it could be continued
        pids = [int(home.wait_for(n)) for n in ('trainer', 'one', 'two')]
        for sig, state in ((signal.SIGTSTP, 'T'), (signal.SIGCONT, 'S')):
            run.send_signal(sig)
            for pid in [run.pid] + pids:
                until(lambda: states(pid) == state or (state == 'S' and states(pid) in 'RS'), f'{pid} in {state}')
        run.terminate()
        run.wait(60)
        all_gone(pids)


def states(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as f:
        return f.read().rpartition(')')[2].split()[0]


def detached_it_outlives_us():
    with Home() as home:
        done = home.run('--detach', '--', *python(home, ORPHANS, '600'))
        if done.returncode or b'as process' not in done.stderr:
            yield done
            return
        supervisor = int(done.stderr.split(b'as process ')[1].split(b',')[0])
        pids = [int(home.wait_for(n)) for n in ('trainer', 'one', 'two')]
        os.kill(supervisor, signal.SIGKILL)
        until(lambda: not is_alive(supervisor), 'its end')
        if not all(is_alive(p) for p in pids):
            yield 'the trainer died'
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        all_gone(pids)


def detached_it_is_told_how_to_follow_and_to_stop_it():
    """What is said is what one types; and the trainer may save before it ends."""
    script = '''
import signal, sys, time
def save(*_):
    open("saved", "w").write("yes\\n")
    sys.exit(3)
signal.signal(signal.SIGTERM, save)
print("it is up", flush=True)
open("ready", "w").write("yes\\n")
time.sleep(600)
'''
    with Home() as home:
        done = home.run('--detach', '--', *python(home, script))
        home.wait_for('ready')
        commands = [line.strip() for line in done.stderr.decode().splitlines() if line.startswith(' ')]
        follow = next((c for c in commands if c.startswith('tail -f ')), '')
        stop = next((c for c in commands if c.startswith('kill ')), 'false')
        until(lambda: 'it is up' in open(follow.removeprefix('tail -f '), encoding='utf-8').read(), 'its log')
        subprocess.run(['sh', '-c', stop], check=True)
        home.wait_for('saved')
        until(lambda: os.path.exists(home.runs()[-1] + '/verdict.json'), 'the verdict')
        if home.verdict()['attempts'][0]['end'] != 'interrupted' or home.verdict()['code'] != 3:
            yield home.verdict()


def ends_a_hang_and_keeps_the_evidence():
    with Home() as home:
        done = home.run('--retries', '0', '--hang-after', '1', '--', 'sleep', '600')
        if done.returncode != 124:  # as timeout(1): a script tells it from Ctrl-C
            yield done
        if 'sleep' not in open(home.runs()[-1] + '/hang.txt', encoding='utf-8', errors='replace').read():
            yield 'no evidence'
        verdict, (*_, end) = home.verdict(), home.events()
        if verdict['attempts'][0]['end'] != 'hung' or verdict['attempts'][0]['code'] != 124 or verdict['code'] != 124:
            yield verdict
        if end['event'] != 'end' or end['code'] != 124:
            yield end


def asks_python_for_its_stacks():
    """With --debug Python's faulthandler waits for SIGABRT."""
    script = 'import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n' \
             'def stuck_here():\n    time.sleep(600)\nstuck_here()\n'
    with Home() as home:
        done = home.run('--retries', '0', '--debug', '--hang-after', '1', '--', *python(home, script))
        if b'in stuck_here' not in done.stderr or done.returncode != 124:
            yield done


def a_busy_child_does_not_hang():
    with Home() as home:
        done = home.run('--retries', '0', '--hang-after', '1', '--', sys.executable, '-c',
                        'import time\nend = time.monotonic() + 3\nwhile time.monotonic() < end: pass')
        if done.returncode:
            yield done


BESIDE_A_GPU = ('--retries', '0', '--hang-after', '1', '--root', DATA + '/sysfs/gfx1103-phoenix-780m-laptop',
                '--no-preflight', '--')


BUSY = '''
import os, time
end = time.monotonic() + 100
while not os.path.exists("enough") and time.monotonic() < end:
    pass
'''


def a_busy_child_beside_an_idle_gpu_is_remarked_on():
    """It is busy until the remark is there, however long a loaded machine takes for it."""
    with Home() as home:
        run = home.start(*BESIDE_A_GPU, *python(home, BUSY), stderr=subprocess.PIPE)
        until(lambda: run.poll() is not None or any(os.path.exists(r + '/busy.txt') for r in home.runs()), 'busy.txt')
        home.file('enough')
        _, errors = run.communicate(timeout=60)
        if run.returncode or b'but a CPU is busy' not in errors:
            yield errors


def a_busy_child_that_writes_is_not():
    """Unless the machine kept it from writing."""
    script = '''
import time
longest, before = 0, time.monotonic()
end = before + 5
while before < end:
    open("here", "w").write("x")
    now = time.monotonic()
    longest, before = max(longest, now - before), now
print(longest)
'''
    with Home() as home:
        done = home.run(*BESIDE_A_GPU, *python(home, script))
        if done.returncode and b'no CPU time' in done.stderr:  # a_busy_child_does_not_hang has seen that this is counted
            raise tap.Skip('this machine is too busy: the child stood still for a second, without CPU time')
        if done.returncode:
            yield done
        elif float(done.stdout) > 1:
            raise tap.Skip(f'this machine is too busy: the child stood still for {float(done.stdout):.1f} s')
        if b'but a CPU is busy' in done.stderr or os.path.exists(home.runs()[-1] + '/busy.txt'):
            yield done.stderr


def one_whose_reader_pauses_does_not_hang():
    """It sleeps in a write, for longer than the patience of both watches."""
    with Home() as home:
        script = 'import os\nfor i in range(80): os.write(1, b"x" * 100000)'
        run = home.start(*BESIDE_A_GPU, *python(home, script), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(6)
        output, errors = run.communicate(timeout=60)
        if run.returncode or len(output) != 8000000:
            yield run.returncode, len(output), errors
        if b'CPU is busy' in errors:
            yield errors


tap.run([
    returns_the_code,
    says_why_it_did_not_start,
    keeps_both_streams_apart_and_whole,
    streams_that_are_one_stay_in_order,
    a_flood_of_lines_comes_whole_and_in_order,
    blocks_of_any_size_come_whole_and_in_order,
    passes_stdin_on,
    keeps_the_users_preload,
    a_reader_that_leaves_ends_the_writer,
    a_full_disk_behind_us_is_no_success,
    a_limit_on_the_size_of_files_ends_nobody,
    a_child_that_closes_its_output_is_waited_for,
    ends_what_the_trainer_left,
    what_the_trainer_left_may_finish,
    what_does_not_obey_is_killed,
    killed_outright_while_it_waits_leaves_nothing,
    killed_outright_leaves_nothing,
    a_killed_guardian_takes_all_with_it,
    forwards_signals,
    a_second_signal_kills,
    stops_and_continues,
    detached_it_outlives_us,
    detached_it_is_told_how_to_follow_and_to_stop_it,
    ends_a_hang_and_keeps_the_evidence,
    asks_python_for_its_stacks,
    a_busy_child_does_not_hang,
    a_busy_child_beside_an_idle_gpu_is_remarked_on,
    a_busy_child_that_writes_is_not,
    one_whose_reader_pauses_does_not_hang,
])
