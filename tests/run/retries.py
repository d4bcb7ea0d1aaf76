# SPDX-License-Identifier: Apache-2.0
"""Trainers that fail in known ways: each is recognised, tried again with the right change, and then succeeds.

The scripts succeed only if the right variable really is in their environment; `tries` counts how often they were started.
"""
import json
import os
import shutil
import subprocess
import sys

import tap
from supervised import CAIRN, DATA, Home, environment

RX6600 = os.path.join(DATA, 'sysfs/gfx1032-gfx1036-rx6600-plus-raphael-igpu')
HALO = os.path.join(DATA, 'sysfs/gfx1151-strixhalo-aurora-112g-gtt')

START = '''
import os, signal, sys, time
with open("tries", "a") as f:
    f.write("x")
first = os.path.getsize("tries") == 1
print("torch 2.9.1+rocm6.4, AMD Radeon RX 6750 XT gfx1031", flush=True)
def train():
    for step in range(1, 4):
        print(f"step {step} loss {1 / step:.3f}", flush=True)
    sys.exit(0)
'''

INVALID_FUNCTION = START + '''
if os.environ.get("HSA_OVERRIDE_GFX_VERSION") == "10.3.0":
    train()
print("RuntimeError: HIP error: invalid device function", file=sys.stderr)
sys.exit(1)
'''

INVALID_ARGUMENT = START + '''
if os.environ.get("HSA_ENABLE_SDMA") == "0":
    train()
sys.stderr.write("""Traceback (most recent call last):
  File "train.py", line 12, in <module>
    model = model.to(device)
  File "torch/nn/modules/module.py", line 1343, in convert
    return t.to(
torch.AcceleratorError: HIP error: invalid argument
""")
sys.exit(1)
'''

FRAGMENTED = START + '''
if any("max_split_size_mb:512" in os.environ.get(f"PYTORCH_{n}ALLOC_CONF", "") for n in ("HIP_", "CUDA_", "")):
    train()
print("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 11.98 GiB of "
      "which 120.00 MiB is free. Of the allocated memory 5.10 GiB is allocated by PyTorch, and 6.20 GiB is reserved by "
      "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
      "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.", file=sys.stderr)
sys.exit(1)
'''

DRIVER_CRASH = START + '''
if "PYTORCH_NO_HIP_MEMORY_CACHING" not in os.environ:
    train()
sys.stderr.write("""Fatal Python error: Segmentation fault

Current thread 0x00007f0000000000 (most recent call first):
  File "torch/nn/modules/linear.py", line 125 in forward
#4 rocblas_create_handle () from librocblas.so.4
""")
sys.stderr.flush()
signal.signal(signal.SIGSEGV, signal.SIG_DFL)
os.kill(os.getpid(), signal.SIGSEGV)
'''

# A runtime of HIP is mapped, as far as anybody can see from outside.
HANG = START + '''
if os.environ.get("HSA_ENABLE_INTERRUPT") == "0":
    train()
import mmap
with open("libamdhip64.so.7", "w+b") as f:
    f.write(b"no library")
    f.flush()
    runtime = mmap.mmap(f.fileno(), 0)
time.sleep(600)
'''

KILLED = START + '''
if not first:
    train()
print("step 1 loss 1.0", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
'''


def attempt(home, text, *options, env=None, argv=()):
    path = home.file('train.py', text)
    return home.run(*options, '--', sys.executable, path, *argv, env=env)


def recovers(text, expected, change, *options, env=None):
    """Findings of a script that must fail with this class, and succeed after this change."""
    with Home() as home:
        done = attempt(home, text, *options, env=env)
        verdict = home.verdict() if home.runs() else {'attempts': []}
        tries = verdict['attempts']
        if done.returncode or len(home.read('tries')) != 2 or len(tries) != 2:
            return [f'exit {done.returncode}, {len(home.read("tries"))} tries', done.stderr.decode()]
        if tries[0]['class'] != expected:
            return [f'class {tries[0]["class"]}']
        if change not in (tries[1]['change'] or ''):
            return [f'change {tries[1]["change"]}']
        events = [e['event'] for e in home.events()]
        return [] if events.count('verdict') == 2 and 'change' in events else [events]


def the_cpu_where_it_is_allowed():
    with Home() as home:
        script = START + '''
if os.environ.get("HIP_VISIBLE_DEVICES") == "-1":
    train()
print("RuntimeError: HIP error: invalid device function", file=sys.stderr)
sys.exit(1)
'''
        done = attempt(home, script)
        if not done.returncode or '--allow-cpu' not in done.stderr.decode():
            return [f'not allowed: exit {done.returncode}', done.stderr.decode()]
    with Home() as home:
        done = attempt(home, script, '--allow-cpu')
        changes = [t['change'] or '' for t in home.verdict()['attempts']]
        if done.returncode or 'CPU' not in changes[-1]:
            return [done.returncode, changes, done.stderr.decode()]
        return ['remembered'] if 'remembered' in done.stderr.decode() else []


def invalid_device_function():
    return recovers(INVALID_FUNCTION, 'no-kernel-image', 'HSA_OVERRIDE_GFX_VERSION=10.3.0')


def a_card_beside_an_integrated_gpu():
    """The log does not say which GPU it was; the card is what lacks code, whether cairn hides the other one or not."""
    script = INVALID_FUNCTION.replace(', AMD Radeon RX 6750 XT gfx1031', '')
    for options in ((), ('--no-env',)):
        yield from recovers(script, 'no-kernel-image', 'HSA_OVERRIDE_GFX_VERSION=10.3.0', '--root', RX6600, *options)


def invalid_argument_in_to():
    """Copies are staged first; without the library in the trainer the copy engines are switched off."""
    staged = INVALID_ARGUMENT.replace('os.environ.get("HSA_ENABLE_SDMA") == "0"', '"stage" in os.environ["CAIRN_PRELOAD"]')
    yield from recovers(staged, 'hip-invalid-argument', 'CAIRN_PRELOAD=record,stage,retry')
    yield from recovers(INVALID_ARGUMENT, 'hip-invalid-argument', 'HSA_ENABLE_SDMA=0', '--preload=off')


def out_of_memory_with_much_reserved():
    return recovers(FRAGMENTED, 'oom-fragmentation', 'max_split_size_mb:512')


def driver_crash():
    return recovers(DRIVER_CRASH, 'native-crash', 'without PYTORCH_NO_HIP_MEMORY_CACHING', '--no-env',
                    env={'PYTORCH_NO_HIP_MEMORY_CACHING': '1'})


def silent_hang():
    return recovers(HANG, 'hang', 'HSA_ENABLE_INTERRUPT=0', '--hang-after', '2')


def a_hang_without_a_gpu_is_not_the_gpus():
    """Nothing of the GPU's is changed, and what is known stands in a file that is named."""
    with Home() as home:
        done = attempt(home, START + 'time.sleep(600)', '--hang-after', '2')
        first, *more = home.verdict()['attempts']
        if done.returncode != 124 or more or first['class'] != 'hang' or first['gpu_use'] != 'never':
            yield done.returncode, home.verdict()
        dump = home.runs()[-1] + '/hang.txt'
        if dump.encode() not in done.stderr or b'--pid' in done.stderr:
            yield done.stderr.decode()
        told = diagnose(home)
        if told['class'] != 'hang' or any(fix['auto'] for fix in told['fix']) or dump not in str(told['fix']):
            yield told


def py_spy(home):
    """One that says whom it was asked about, in a file too, and does not end by itself; returns the environment."""
    os.mkdir(home.path + '/bin')
    spy = home.file('bin/py-spy', f'#!/bin/sh\necho $3 >>{home.path}/asked\ntest -d /proc/$3 && echo "stack of $3"\nexec sleep 600\n')
    os.chmod(spy, 0o755)
    return {'PATH': home.path + '/bin:/usr/bin:/bin'}


def the_stacks_of_python_are_taken_while_there_is_a_process():
    """However long that takes: the trainer has its time to save behind it."""
    script = START + """
open("pid", "w").write(f"{os.getpid()}\\n")
try:
    time.sleep(600)
except KeyboardInterrupt:
    time.sleep(3)
    open("saved", "w").write("yes\\n")
"""
    with Home() as home:
        done = attempt(home, script, '--hang-after', '2', env=py_spy(home))
        with open(home.runs()[-1] + '/hang.txt', encoding='utf-8', errors='replace') as f:
            if done.returncode != 124 or f'stack of {home.read("pid").strip()}' not in f.read():
                yield done
        if not os.path.exists(home.path + '/saved'):
            yield f'it was ended before it could save: {done}'


def diagnose(home):
    """What `cairn diagnose` says of the newest journal."""
    done = subprocess.run([CAIRN, 'diagnose', '--json', home.runs()[-1]], env=environment(home.path), cwd=home.path,
                          stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


def machine(home):
    """A captured one, with figures of its memory that scripts change."""
    tree = os.path.join(home.path, 'machine')
    shutil.copytree(HALO + '/sys', tree + '/sys', symlinks=True)
    os.makedirs(tree + '/proc')
    home.file('machine/proc/meminfo', 'MemTotal: 130000000 kB\nMemFree: 1 kB\nMemAvailable: 100000000 kB\n')
    home.file('machine/proc/vmstat', 'oom_kill 4\n')
    return tree


def killed_with_memory_to_spare():
    """It was no lack of memory, as cairn's own watch shows, and starting again would not change a thing."""
    with Home() as home:
        done = attempt(home, KILLED, '--root', machine(home), '--no-preflight')
        tries = home.verdict()['attempts']
        if done.returncode != 137 or len(tries) != 1 or tries[0]['class'] != 'unknown':
            yield done.returncode, tries
        if tries[0]['memory']['host_least_bytes'] != 100000000 * 1024 or tries[0]['memory']['oom_kills'] != 0:
            yield tries[0]
        if diagnose(home)['class'] != 'unknown':
            yield diagnose(home)


def one_that_runs_elsewhere_is_not_judged_by_this_machine():
    """The memory of a container or of another machine is not watched, nor is its GPU."""
    with Home() as home:
        os.mkdir(home.path + '/bin')
        docker = home.file('bin/docker', '#!/bin/sh\nkill -9 $$\n')
        os.chmod(docker, 0o755)
        done = home.run('--', docker, 'run')
        if done.returncode != 137 or home.verdict()['attempts'][0]['class'] != 'host-oom':
            yield done
        shutil.copy('/bin/sleep', docker)
        done = home.run('--retries', '0', '--hang-after', '2', '--', docker, '600')
        if done.returncode != 124 or home.verdict()['attempts'][0]['gpu_use'] != 'unknown':
            yield done, home.verdict()


def killed_by_the_kernel():
    """Which counts whom it kills.  From a checkpoint it goes on by itself; without one it does not start again."""
    script = KILLED.replace('os.kill', 'open("machine/proc/vmstat", "w").write("oom_kill 5\\n")\nos.kill')
    for resume in (), ('--resume-cmd', sys.executable + ' train.py'):
        with Home() as home:
            done = attempt(home, script, '--root', machine(home), '--no-preflight', *resume)
            tries = home.verdict()['attempts']
            if tries[0]['class'] != 'host-oom' or len(tries) != 1 + bool(resume):
                yield done.returncode, tries
            if done.returncode != (0 if resume else 137):
                yield done
            if not resume and diagnose(home)['class'] != 'host-oom':
                yield diagnose(home)


def shared_memory_that_runs_out():
    """The machine is a captured one, whose memory figure the script lowers as if it used it up."""
    with Home() as home:
        tree = machine(home)
        meminfo = os.path.join(tree, 'proc/meminfo')
        figures = 'MemTotal: 130000000 kB\\nMemFree: 1 kB\\nMemAvailable: %d kB\\n'
        script = START + f'''
def available(kib):
    with open({meminfo!r} + ".new", "w") as f:
        f.write("{figures}" % kib)
    os.replace({meminfo!r} + ".new", {meminfo!r})
available(100000000)
if not first:
    train()
print("step 1 loss 1.0", flush=True)
time.sleep(1.5)
available(1000000)
time.sleep(600)
'''
        done = attempt(home, script, '--root', tree, '--no-preflight', '--resume-cmd', sys.executable + ' train.py',
                       env=py_spy(home))
        if os.path.exists(home.path + '/asked'):
            yield 'the machine freezes while py-spy is waited for'
        if b'memory is nearly exhausted' not in done.stderr:
            yield done.stderr.decode()
            return
        if done.returncode or len(home.verdict()['attempts']) != 2:
            yield f'exit {done.returncode}, attempts {home.verdict()["attempts"]}'
        first = home.verdict()['attempts'][0]
        if first['end'] != 'out-of-host-memory' or first['class'] != 'host-oom':
            yield first
        if 'cairn stopped the trainer' not in first['cause']:
            yield first['cause']
        if not os.path.exists(home.runs()[-1] + '/memory-guard.txt'):
            yield 'no evidence'
        if home.verdict()['peak']['host_available_bytes'] != 1000000 * 1024:
            yield home.verdict()['peak']


def one_change_at_a_time_until_the_retries_end():
    with Home() as home:
        done = attempt(home, START + 'print("RuntimeError: HIP error: invalid argument at t.to(device)")\nsys.exit(3)',
                       '--retries', '1')
        if done.returncode != 3 or len(home.read('tries')) > 2:
            yield done
        attempt(home, INVALID_FUNCTION, '--retries', '0')
        if len(home.verdict()['attempts']) != 1:
            yield home.verdict()


def work_is_not_destroyed():
    script = START + '''
print("step 1 loss 0.5", flush=True)
print("RuntimeError: HIP error: invalid device function", file=sys.stderr)
sys.exit(1)
'''
    with Home() as home:
        done = attempt(home, script)
        if done.returncode != 1 or len(home.read('tries')) != 1:
            yield done
        if b'to try it: cairn run --with HSA_OVERRIDE_GFX_VERSION=10.3.0 --' not in b' '.join(done.stderr.split()):
            yield done.stderr.decode()


def a_run_inside_a_run_retries_alone():
    with Home() as home:
        path = home.file('train.py', START + 'sys.exit("RuntimeError: HIP error: invalid argument at t.to(device)")')
        done = home.run('--allow-cpu', '--', CAIRN, 'run', '--allow-cpu', '--', sys.executable, path)
        if done.returncode != 1 or len(home.read('tries')) != 3:
            yield len(home.read('tries')), done
        if b'a `cairn run` inside' not in done.stderr:
            yield done.stderr.decode()
        # One that ended long ago means nothing.
        os.unlink(home.path + '/tries')
        if b'inside' in home.run('--allow-cpu', '--', sys.executable, path, env={'CAIRN_RUN': home.path + '/gone'}).stderr:
            yield 'it takes itself for an outer one'
        if len(home.read('tries')) != 3:
            yield len(home.read('tries'))


def words_of_suggestion(done):
    """As a shell takes the lines that are suggested, pasted as they stand."""
    told = done.stderr.split(b'to try it:\n')[1].split(b'cairn: ')[0]
    words = subprocess.run(['bash', '-c', b"printf '%s\\0' " + told.strip()], stdout=subprocess.PIPE, check=True).stdout
    return [os.fsdecode(w) for w in words.split(b'\0')[:-1]]


def the_command_to_type_is_whole():
    """What was changed before, and the options that were given."""
    script = START + """
sys.exit("RuntimeError: HIP error: invalid argument at t.to(device)" if "HSA_OVERRIDE_GFX_VERSION" in os.environ
         else "RuntimeError: HIP error: invalid device function")
"""
    given = ('--with', "MYVAR=it's 1", '--debug', '--retries', '1', '--no-preflight', '--preload=off')
    with Home() as home:
        odd = ('two words', "it's\n\\ two lines", 'a    # b', 'tab\t\udcff')
        done = attempt(home, script, *given, argv=odd)
        words = words_of_suggestion(done)
        at = words.index('--')
        path = os.path.join(home.path, 'train.py')
        if words[:2] != ['cairn', 'run'] or words[at - len(given):] != [*given, '--', sys.executable, path, *odd]:
            yield words
        if b'\t' in done.stderr or b' \\\n' not in done.stderr:
            yield done.stderr
        if 'HSA_OVERRIDE_GFX_VERSION=10.3.0' not in words or len(words[2:at - len(given)]) != 4:
            yield words
        # It does what it says.
        home.file('train.py', START + 'print({n: os.environ.get(n) for n in sys.argv[1:]})')
        names = [w.split('=')[0] for w in words[:at] if '=' in w and not w.startswith('--')]
        wanted = {w.split('=')[0]: w.split('=')[1] for w in words[:at] if '=' in w and not w.startswith('--')}
        done = home.run(*words[2:-len(odd)], *names)
        if repr(wanted).encode() not in done.stdout or len(wanted) != 3:
            yield wanted, done


def the_journal_is_diagnosed_as_the_last_attempt_was():
    script = START + """
print("RuntimeError: HIP error: invalid device function" if first else "RuntimeError: HIP error: invalid argument")
sys.exit(1)
"""
    with Home() as home:
        def diagnose():
            done = subprocess.run([CAIRN, 'diagnose', '-n', '--json', home.runs()[-1]], stdout=subprocess.PIPE, check=True)
            return json.loads(done.stdout)
        attempt(home, script, '--retries', '1')
        classes = [t['class'] for t in home.verdict()['attempts']]
        found = diagnose()
        if classes != ['no-kernel-image', 'hip-invalid-argument'] or found['class'] != classes[1]:
            yield classes, found
        line = home.read(home.runs()[-1] + '/log').split('\n')[found['evidence'][0]['line'] - 1]
        if line != found['evidence'][0]['text'] or 'HSA_OVERRIDE_GFX_VERSION=10.3.0' not in found['facts_used']:
            yield line, found
        os.unlink(home.path + '/tries')
        done = attempt(home, INVALID_FUNCTION)
        if done.returncode or len(home.verdict()['attempts']) < 2 or diagnose()['class'] != 'no-failure':
            yield done, diagnose()


def the_journal_has_what_the_diagnosis_went_by():
    """The chip and the hidden GPU, which the log does not name, and variables of the user's own."""
    script = START.replace(', AMD Radeon RX 6750 XT gfx1031', '') + """
sys.exit("RuntimeError: HIP error: invalid device function")
"""
    for env in ({}, {'HSA_OVERRIDE_GFX_VERSION': '9.0.0', 'MY_PASSWORD': 'hunter2'}):
        for options in ((), ('--no-env',)):
            with Home() as home:
                attempt(home, script, '--root', RX6600, '--retries', '0', *options, env=env)
                said = home.verdict()['attempts'][-1]
                for operand in ('-n', home.runs()[-1]), (home.runs()[-1],):
                    done = subprocess.run([CAIRN, 'diagnose', '--json', *operand], stdout=subprocess.PIPE,
                                          env=environment(home.path), check=True)
                    found = json.loads(done.stdout)
                    if (found['class'], found['cause']) != (said['class'], said['cause']) or 'gfx1032' not in found['facts_used']:
                        yield said, found
                if 'hunter2' in home.read(home.runs()[-1] + '/context.json'):
                    yield 'a password is in the journal'


def the_command_to_type_resumes():
    with Home() as home:
        done = attempt(home, RESUMES, '--retries', '0', '--trainer', 'musubi', argv=('--output_dir', 'out'))
        words = words_of_suggestion(done)
        if words[-2:] != ['--resume', 'out/lora-000001-state'] or words[words.index('--') - 2:][:2] != ['--trainer', 'musubi']:
            yield words


def given_variables_count_without_the_plan():
    with Home() as home:
        done = home.run('--no-env', '--with', 'MYVAR=1', '--with', 'MYVAR=2', '--', 'sh', '-c', 'echo "$MYVAR"')
        if done.stdout != b'1\n':
            yield done


RESUMES = START + '''
if "--resume" in sys.argv:
    print("resumed from", sys.argv[sys.argv.index("--resume") + 1])
    train()
state = "out/lora-000001-state"
os.makedirs(state)
for name in ("optimizer.bin", "random_states_0.pkl"):
    with open(os.path.join(state, name), "w") as f:
        f.write("state")
print("step 1 loss 0.5", flush=True)
print("RuntimeError: HIP error: invalid device function", file=sys.stderr)
sys.exit(1)
'''


def resumes_from_the_saved_state():
    with Home() as home:
        done = attempt(home, RESUMES, '--trainer', 'musubi', argv=('--output_dir', 'out'))
        if done.returncode or b'resumed from out/lora-000001-state' not in done.stdout:
            yield done


def a_resumed_training_is_never_started_anew():
    """The second attempt resumes and dies before it has made a step; the third has to resume as well."""
    script = START + '''
open("resumed", "a").write("r" if "--resume" in sys.argv else "n")
if os.environ.get("HSA_ENABLE_SDMA") == "0":
    sys.exit(0)
if first:
    os.makedirs("out/lora-state")
    for name in ("optimizer.bin", "random_states_0.pkl"):
        open("out/lora-state/" + name, "w").write("state")
    print("step 1 loss 0.5", flush=True)
    sys.exit("RuntimeError: HIP error: invalid device function")
sys.exit("RuntimeError: HIP error: invalid argument at t.to(device)")
'''
    with Home() as home:
        done = attempt(home, script, '--trainer', 'musubi', '--preload=off', argv=('--output_dir', 'out'))
        if done.returncode or home.read('resumed') != 'nrr':
            yield home.read('resumed'), done


def resumes_by_command():
    with Home() as home:
        done = attempt(home, RESUMES, '--resume-cmd', 'echo continued; exit 0')
        if done.returncode or not done.stdout.endswith(b'continued\n'):
            yield done


LAUNCHER = START + '''
import subprocess
worker = subprocess.run([sys.executable, "-c", """
import os, sys
print('worker', os.environ.get('HSA_OVERRIDE_GFX_VERSION'), flush=True)
if os.environ.get('HSA_OVERRIDE_GFX_VERSION') == '10.3.0':
    sys.exit(0)
sys.exit('RuntimeError: HIP error: invalid device function')
"""], start_new_session=True)
if worker.returncode:
    print("subprocess.CalledProcessError: Command returned non-zero exit status 1.", file=sys.stderr)
sys.exit(worker.returncode)
'''


def a_launchers_workers_count():
    return recovers(LAUNCHER, 'no-kernel-image', 'HSA_OVERRIDE_GFX_VERSION=10.3.0')


def a_busy_worker_is_no_hang():
    script = START + '''
import subprocess
subprocess.run([sys.executable, "-c", """
import time
end = time.monotonic() + 4
while time.monotonic() < end:
    pass
"""], start_new_session=True)
'''
    with Home() as home:
        done = attempt(home, script, '--hang-after', '2', '--retries', '0')
        if done.returncode:
            yield done


def caches_are_moved_aside_and_kept():
    script = START + '''
if not os.path.exists(os.environ["HOME"] + "/.cache/miopen"):
    train()
print("MIOpen(HIP): Error [EvaluateInvokers] miopenStatusUnknownError", file=sys.stderr)
print("RuntimeError: miopenStatusUnknownError", file=sys.stderr)
sys.exit(1)
'''
    with Home() as home:
        os.makedirs(os.path.join(home.path, '.cache/miopen/3.4.0'))
        home.file('.cache/miopen/3.4.0/gfx1030_20.ukdb', 'bytes')
        done = attempt(home, script)
        backups = [n for n in os.listdir(home.path + '/.cache') if n.startswith('miopen.cairn-backup-')]
        if done.returncode or len(backups) != 1:
            yield done
        elif home.read(f'.cache/{backups[0]}/3.4.0/gfx1030_20.ukdb') != 'bytes':
            yield 'the backup is not whole'


def another_optimizer_where_bitsandbytes_has_none():
    script = START + '''
if "AdamW" in sys.argv:
    train()
print("Could not find the bitsandbytes ROCm binary at PosixPath('libbitsandbytes_rocm64.so')", file=sys.stderr)
print("RuntimeError: Configured ROCm binary not found at libbitsandbytes_rocm64.so", file=sys.stderr)
sys.exit(1)
'''
    with Home() as home:
        done = attempt(home, script, argv=('--optimizer_type', 'AdamW8bit'))
        if done.returncode or 'AdamW instead of AdamW8bit' not in str(home.verdict()['attempts'][-1]['change']):
            yield done.stderr.decode()


def what_a_person_can_change_is_said():
    """Where the optimizer is in a file of the trainer's, cairn cannot replace it, but says that a person can."""
    script = START + 'sys.exit("RuntimeError: Configured ROCm binary not found at libbitsandbytes_rocm64.so")'
    with Home() as home:
        done = attempt(home, script, argv=('wan22.yaml',))
        notes = [e['text'] for e in home.events() if e['event'] == 'note']
        if done.returncode != 1 or not any('optimizer' in n and 'Adafactor' in n for n in notes):
            yield done
    with Home() as home:
        home.file('job.yaml', 'job: extension\nconfig:\n  process:\n    - train:\n        optimizer: adamw8bit\n')
        done = attempt(home, script, argv=('job.yaml',))
        notes = [e['text'] for e in home.events() if e['event'] == 'note']
        if done.returncode != 1 or not any('job.yaml:5: ' in n and 'train.optimizer: adamw ' in n for n in notes):
            yield done


def what_worked_is_used_first():
    with Home() as home:
        attempt(home, INVALID_FUNCTION)
        os.unlink(home.path + '/tries')
        done = attempt(home, INVALID_FUNCTION)
        if done.returncode or len(home.read('tries')) != 1:
            yield done
        with open(home.path + '/state/cairn/known-good.json', encoding='utf-8') as f:
            entry = json.load(f)['entries'][0]
        if entry['set'] != {'HSA_OVERRIDE_GFX_VERSION': '10.3.0'} or entry['trainer'] != 'train.py':
            yield entry
        if entry['date'].encode() not in done.stderr:
            yield done.stderr.decode()
        # `cairn env` tells of it.
        told = subprocess.run([CAIRN, 'env'], env=environment(home.path), stdout=subprocess.PIPE, check=False).stdout
        if b'train.py worked here with: HSA_OVERRIDE_GFX_VERSION=10.3.0' not in b' '.join(told.replace(b'#', b'').split()):
            yield told.decode()
        # What does not work any more is forgotten.
        attempt(home, START + 'sys.exit(1)')
        attempt(home, START + 'sys.exit("RuntimeError: HIP error: invalid argument at t.to(device)")', '--retries', '0')
        with open(home.path + '/state/cairn/known-good.json', encoding='utf-8') as f:
            if json.load(f)['entries']:
                yield 'not forgotten'


tap.run([
    invalid_device_function,
    a_card_beside_an_integrated_gpu,
    invalid_argument_in_to,
    out_of_memory_with_much_reserved,
    driver_crash,
    silent_hang,
    a_hang_without_a_gpu_is_not_the_gpus,
    the_stacks_of_python_are_taken_while_there_is_a_process,
    killed_with_memory_to_spare,
    one_that_runs_elsewhere_is_not_judged_by_this_machine,
    killed_by_the_kernel,
    shared_memory_that_runs_out,
    one_change_at_a_time_until_the_retries_end,
    the_cpu_where_it_is_allowed,
    work_is_not_destroyed,
    a_run_inside_a_run_retries_alone,
    the_command_to_type_is_whole,
    the_journal_is_diagnosed_as_the_last_attempt_was,
    the_journal_has_what_the_diagnosis_went_by,
    the_command_to_type_resumes,
    given_variables_count_without_the_plan,
    resumes_from_the_saved_state,
    a_resumed_training_is_never_started_anew,
    resumes_by_command,
    a_launchers_workers_count,
    a_busy_worker_is_no_hang,
    caches_are_moved_aside_and_kept,
    another_optimizer_where_bitsandbytes_has_none,
    what_a_person_can_change_is_said,
    what_worked_is_used_first,
])
