# SPDX-License-Identifier: Apache-2.0
"""`cairn run` with the library inside the trainer: what it is told, what its calls tell, and what a retry makes of it.

The trainer's GPU work is done by tests/preload/child.c, with a HIP that is not one.
"""
import fcntl
import json
import os
import shutil
import subprocess
import sys

import tap
from supervised import CAIRN, DATA, PATIENCE, Home, environment

WORLD = os.environ['PRELOAD_WORLD']
HALO = os.path.join(DATA, 'sysfs/gfx1151-strixhalo-aurora-112g-gtt')
PHOENIX = os.path.join(DATA, 'sysfs/gfx1103-phoenix-780m-laptop')
TELL = '''
import json, os
names = ("LD_PRELOAD", "CAIRN_PRELOAD", "CAIRN_PRELOAD_FILE", "CAIRN_PRELOAD_BUDGET", "CAIRN_PRELOAD_RESERVE")
print(json.dumps({n: os.environ[n] for n in names if n in os.environ}))
'''
TRAIN = f'''
import os, subprocess, sys
def gpu(word, fake=""):
    return subprocess.run(["{WORLD}/preload_child", word, "{WORLD}/libtorch6.so"], env=dict(os.environ, FAKE_HIP=fake),
                          stdout=subprocess.PIPE, encoding="utf-8")
print("torch 2.9.1+rocm6.4, AMD Radeon RX 6750 XT gfx1031", flush=True)
def train():
    for step in range(1, 4):
        print(f"step {{step}} loss {{1 / step:.3f}}", flush=True)
    sys.exit(0)
'''
# Weights are mapped, and HIP does not take them.
REFUSED = TRAIN + '''
if gpu("load", "invalid=1000").stdout.startswith("0 1 0 1 0 1 0 1 last 0"):
    train()
sys.exit("torch.AcceleratorError: HIP error: invalid argument")
'''
# Weights are mapped, and HIP never comes back.
STALLED = REFUSED.replace('invalid=1000', 'stall=1')
# It never comes back, and another thread of the trainer keeps a core busy.
SPINNING = TRAIN + '''
import threading, time
stalled = threading.Thread(target=gpu, args=("load", "stall=1"), daemon=True)
stalled.start()
if "stage" in os.environ["CAIRN_PRELOAD"]:
    train()
end = time.monotonic() + 100
while time.monotonic() < end:
    pass
'''
# Half of what the GPU could use is all that the trainer was told.
CROWDED = TRAIN + '''
if "memory" in os.environ.get("CAIRN_PRELOAD", ""):
    train()
sys.exit("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 62.50 GiB of "
         "which 1.00 GiB is free. Of the allocated memory 60.10 GiB is allocated by PyTorch, and 0.20 GiB is reserved by "
         "PyTorch but unallocated.")
'''
# cairn's own guard does not let it have what it asks for.
GUARDED = TRAIN + '''
with open("meminfo", "w") as f:
    f.write(f"MemTotal: {128 << 20} kB\\nMemAvailable: {(int(os.environ['CAIRN_PRELOAD_RESERVE']) >> 10) + (30 << 10)} kB\\n")
os.environ["CAIRN_PRELOAD_MEMINFO"] = "meminfo"
gpu("allocate")
sys.exit("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 40.00 MiB. GPU 0 has a total capacity of 96.00 GiB of "
         "which 60.00 GiB is free. Of the allocated memory 30.10 GiB is allocated by PyTorch, and 0.20 GiB is reserved by "
         "PyTorch but unallocated.")
'''
STUCK = TRAIN + 'gpu("hang")\n'
FETCHES = TRAIN + 'gpu("item")\n'
DIES = TRAIN + f'''
import signal
child = subprocess.Popen(["{WORLD}/preload_child", "hang", "{WORLD}/libtorch6.so"], stdout=subprocess.PIPE)
child.stdout.readline()
import time
time.sleep(0.2)
child.kill()
child.wait()
print("Memory access fault by GPU node-1 (Agent handle: 0x55) on address 0x7f. Reason: Page not present", file=sys.stderr)
os.abort()
'''


def run(home, text, *arguments, **more):
    return home.run('--no-preflight', *arguments, '--', sys.executable, home.file('train.py', text), **more)


def told(home, *arguments, **more):
    return json.loads(run(home, TELL, *arguments, **more).stdout)


def the_recorder_is_there_by_itself():
    with Home() as home:
        env = told(home)
        if not env['LD_PRELOAD'].endswith('/libcairn-preload.so') or env['CAIRN_PRELOAD'] != 'record':
            yield env
        if not env['CAIRN_PRELOAD_FILE'].startswith('/dev/shm/cairn-run-') or 'CAIRN_PRELOAD_BUDGET' in env:
            yield env
        if os.path.exists(os.path.dirname(env['CAIRN_PRELOAD_FILE'])):
            yield 'the folder is still there'
        library = env['LD_PRELOAD']
        env = told(home, env={'LD_PRELOAD': f'{library} libm.so.6', 'ASAN_OPTIONS': 'verify_asan_link_order=0'})
        if env['LD_PRELOAD'] != f'libm.so.6:{library}':
            yield env
        env = told(home, env={'LD_PRELOAD': 'libm.so.6', 'ASAN_OPTIONS': 'verify_asan_link_order=0'})
        if not env['LD_PRELOAD'].startswith('libm.so.6:/'):
            yield env


def it_can_be_left_out_or_chosen():
    with Home() as home:
        for arguments in (('--preload=off',), ('--preload=none',), ('--no-env',)):
            env = told(home, *arguments)
            if env:
                yield arguments, env
        env = told(home, '--preload=stage', '--root', HALO)
        if env.get('CAIRN_PRELOAD') != 'stage' or 'CAIRN_PRELOAD_FILE' in env:
            yield env
        done = run(home, TELL, '--preload=stage,guard', '--root', HALO)
        env = json.loads(done.stdout)
        if env.get('CAIRN_PRELOAD') != 'stage,guard' or 'CAIRN_PRELOAD_FILE' not in env:
            yield env
        with open(home.runs()[-1] + '/env', encoding='utf-8') as f:
            if "CAIRN_PRELOAD='stage,guard'" not in f.read():
                yield 'the journal does not have it'
        env = told(home, '--preload=all', '--no-env', '--root', HALO)
        if env.get('CAIRN_PRELOAD') != 'record,stage,retry,memory,guard':
            yield env
        env = told(home, '--preload=+stage,retry', '--root', HALO)
        if env.get('CAIRN_PRELOAD') != 'record,stage,retry,guard':
            yield env
        for bad in ('stage,', 'all,speed', 'speed', '', '+', '+off', 'stage,+retry'):
            done = run(home, TELL, '--preload=' + bad)
            if done.returncode != 2 or b'--preload' not in done.stderr:
                yield bad, done


def a_card_with_memory_of_its_own_is_not_guarded():
    with Home() as home:
        done = run(home, TELL, '--preload=all')
        if json.loads(done.stdout).get('CAIRN_PRELOAD') != 'record,stage,retry':
            yield done.stdout
        if b'without memory,guard: the GPU is not known to share' not in b' '.join(done.stderr.split()):
            yield done.stderr
        done = run(home, TELL, '--preload=guard')
        if json.loads(done.stdout) or b'no preload library' not in done.stderr:
            yield done


def shared_memory_is_guarded():
    with Home() as home:
        done = run(home, TELL, '--root', HALO)
        env = json.loads(done.stdout)
        if env['CAIRN_PRELOAD'] != 'record,guard' or b'shares the host' not in done.stderr:
            yield env, done.stderr
        if not 64 << 30 < int(env['CAIRN_PRELOAD_BUDGET']) < 128 << 30 or int(env['CAIRN_PRELOAD_RESERVE']) < 1:
            yield env


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def board(root, device_ids):
    """Sockets with a gfx942 each: MI300A is 0x74a0, and shares the host's memory."""
    put(f'{root}/proc/meminfo', f'MemTotal: {512 << 20} kB\nMemAvailable: {500 << 20} kB\n')
    for i, device in enumerate(device_ids):
        put(f'{root}/sys/class/kfd/kfd/topology/nodes/{i + 1}/properties',
            f'simd_count 912\ngfx_target_version 90402\nvendor_id 4098\ndevice_id {device}\ndrm_render_minor {128 + i}\n'
            f'domain 0\nlocation_id {256 * (i + 1)}\n')
        for name, value in (('vendor', '0x1002'), ('device', f'{device:#x}'), ('mem_info_vram_total', 128 << 30)):
            put(f'{root}/sys/class/drm/renderD{128 + i}/device/{name}', f'{value}\n')
    return root


def every_gpu_must_share_memory():
    with Home() as home:
        root = board(home.path + '/four', [0x74a0] * 4)
        env = told(home, '--root', root)
        if env['CAIRN_PRELOAD'] != 'record,guard' or int(env.get('CAIRN_PRELOAD_BUDGET', 0)) != 128 << 30:
            yield env
        # What a process took of one is not told from what it took of another.
        done = run(home, TELL, '--root', root, '--preload=all')
        if json.loads(done.stdout)['CAIRN_PRELOAD'] != 'record,stage,retry,guard' or b'without memory: the trainer sees several' not in done.stderr:
            yield done
        env = told(home, '--root', root, '--preload=all', env={'ROCR_VISIBLE_DEVICES': '2'})
        if env['CAIRN_PRELOAD'] != 'record,stage,retry,memory,guard':
            yield env
        env = told(home, '--root', board(home.path + '/mixed', [0x74a0] * 3 + [0x74a1]))
        if env['CAIRN_PRELOAD'] != 'record':
            yield env


def the_budget_is_what_the_host_has_left():
    with Home() as home:
        root = home.path + '/halo'
        shutil.copytree(HALO, root, symlinks=True)
        with open(root + '/proc/meminfo', 'a', encoding='utf-8') as f:
            f.write(f'MemAvailable:   {40 << 20} kB\n')
        env = told(home, '--root', root)
        if int(env['CAIRN_PRELOAD_BUDGET']) + int(env['CAIRN_PRELOAD_RESERVE']) != 40 << 30:
            yield env
        # With 0 the library would take it for a card with memory of its own.
        put(root + '/proc/self/cgroup', '0::/train\n')
        for name in ('max', 'current'):
            put(root + '/sys/fs/cgroup/train/memory.' + name, f'{1 << 30}\n')
        env = told(home, '--root', root)
        if env.get('CAIRN_PRELOAD_BUDGET') != '1':
            yield env


def a_refused_copy_is_staged_the_next_time():
    with Home() as home:
        done = run(home, REFUSED)
        tries = home.verdict()['attempts']
        if done.returncode or [t['change'] for t in tries] != [None, 'CAIRN_PRELOAD=record,stage,retry']:
            yield tries, done.stderr
        calls = tries[0]['gpu_calls'][0]
        last = [c for c in calls['last'] if c['code']][-1]
        if (last['call'], last['error'], calls['staged']) != ('hipMemcpyHtoD', 'hipErrorInvalidValue', 0):
            yield calls
        if b'last GPU call that failed: hipMemcpyHtoD of 9.0 MiB: hipErrorInvalidValue (1)' not in b' '.join(done.stderr.split()):
            yield done.stderr
        # What worked is used the next time, and is the library's own business.
        done = run(home, REFUSED)
        if done.returncode or len(home.verdict()['attempts']) != 1 or b'record,stage,retry' not in done.stderr:
            yield done


def a_copy_that_stands_still_is_staged():
    with Home() as home:
        done = run(home, STALLED, '--hang-after', '2')
        tries = home.verdict()['attempts']
        if done.returncode or [t['change'] for t in tries] != [None, 'CAIRN_PRELOAD=record,stage,retry']:
            yield tries, done.stderr
        if b'did not return: hipMemcpyWithStream of 9.0 MiB' not in b' '.join(done.stderr.split()):
            yield done.stderr


def a_busy_core_does_not_hide_a_copy_that_stands_still():
    with Home() as home:
        done = run(home, SPINNING, '--hang-after', '1', '--root', PHOENIX)
        changes = [t['change'] for t in home.verdict()['attempts']]
        if done.returncode or len(changes) != 2 or 'stage,retry' not in changes[1]:
            yield changes, done.stderr
        if b'a copy to the GPU has not returned' not in done.stderr:
            yield done.stderr


def the_truth_about_shared_memory():
    with Home() as home:
        done = run(home, CROWDED.replace('RX 6750 XT gfx1031', '8060S gfx1151'), '--root', HALO)
        changes = [t['change'] for t in home.verdict()['attempts']]
        if done.returncode or changes[-1] != 'CAIRN_PRELOAD=record,guard,memory':
            yield changes, done.stderr


def cairns_own_refusal_is_said():
    with Home() as home:
        text = GUARDED.replace('"meminfo"', repr(home.path + '/meminfo')).replace('RX 6750 XT gfx1031', '8060S gfx1151')
        for arguments in ((), ('--preload=guard',)):
            done = run(home, text, '--root', HALO, '--retries', '0', *arguments)
            said = b' '.join(done.stderr.split())
            if b'refused 3 GPU allocations (120.0 MiB)' not in said or b'--preload=record' not in said:
                yield said
            if b'pages_limit' in said or b'lets it map' in said:
                yield said
            verdict = home.verdict()['attempts'][0]
            if (verdict['refused'], verdict['refused_bytes']) != (3, 120 << 20) or 'refused 3' not in verdict['cause']:
                yield verdict


def what_the_user_chose_stays():
    with Home() as home:
        done = run(home, REFUSED, '--preload=record')
        changes = [t['change'] for t in home.verdict()['attempts']]
        if done.returncode != 1 or changes != [None, 'HSA_ENABLE_SDMA=0']:
            yield changes


def a_hang_names_the_call():
    with Home() as home:
        done = run(home, STUCK, '--hang-after', '2', '--retries', '0')
        said = b' '.join(done.stderr.split())
        if b'did not return: hipLaunchKernel never_ends of 1 threads' not in said:
            yield said
        with open(home.runs()[-1] + '/hang.txt', encoding='utf-8') as f:
            evidence = f.read()
        if 'GPU calls of process' not in evidence or 'never_ends' not in evidence:
            yield evidence[:500]


def to_fetch_a_loss_is_a_wait():
    with Home() as home:
        done = run(home, FETCHES, '--hang-after', '2', '--retries', '1')
        changes = [t['change'] for t in home.verdict()['attempts']]
        if len(changes) != 2 or 'stage' in changes[1]:
            yield changes
        if b'did not return: hipMemcpyWithStream of 4 bytes' not in b' '.join(done.stderr.split()):
            yield done.stderr


def debug_says_which_kernel_failed():
    with Home() as home:
        done = run(home, DIES, '--retries', '0')
        if b'launch: never_ends (not necessarily' not in b' '.join(done.stderr.split()):
            yield done.stderr
        done = run(home, DIES, '--retries', '0', '--debug', '--root', HALO)
        if b'failed kernel: never_ends' not in b' '.join(done.stderr.split()):
            yield done.stderr
        if 'never_ends' not in json.dumps(home.verdict()['attempts'][0]['gpu_calls']):
            yield home.verdict()
        # Its launch had returned, so it is not the one.
        done = run(home, DIES.replace('"hang"', '"item"'), '--retries', '0', '--debug', '--root', HALO)
        if b'launch: attention_bwd (not necessarily the one that failed)' not in b' '.join(done.stderr.split()):
            yield done.stderr


def a_lack_of_room_is_said():
    mount = ['unshare', '-Urm', 'sh', '-c', 'mount -t tmpfs -o "size=$0" none /dev/shm && exec "$@"']
    if not shutil.which('unshare') or subprocess.run(mount + ['64k', 'true'], stderr=subprocess.DEVNULL, check=False).returncode:
        raise tap.Skip('no right to mount a small /dev/shm')
    with Home() as home:
        for size, want in (('64k', b'recorded for no process: /dev/shm'),
                           ('1200k', b'recorded only for 2 processes'), ('64m', None), ('0', None)):
            done = subprocess.run(mount + [size, CAIRN, 'run', '--no-preflight', '--', 'true'], env=environment(home.path),
                                  cwd=home.path, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
            said = b' '.join(done.stderr.split())
            if done.returncode or (want not in said if want else b'recorded' in said):
                yield size, done


def a_record_made_by_hand_can_be_read():
    with Home() as home:
        env = environment(home.path, LD_PRELOAD=told(home)['LD_PRELOAD'], CAIRN_PRELOAD='record', FAKE_HIP='invalid=1000',
                          CAIRN_PRELOAD_FILE=home.path + '/calls')
        children = [subprocess.Popen([f'{WORLD}/preload_child', 'load', f'{WORLD}/libtorch6.so'], env=env,
                                     stdout=subprocess.DEVNULL) for _ in range(2)]
        pids = [child.pid for child in children if child.wait() is not None]
        record = f'{home.path}/calls.{pids[0]}'

        def diagnose(*arguments):
            return subprocess.run([CAIRN, 'diagnose', '-n', *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  check=False)
        done = diagnose(record)
        if done.returncode or not done.stdout.startswith(b'=== last GPU calls of process %d, ' % pids[0]) \
                or b'hipMemcpyHtoD of 9.0 MiB: hipErrorInvalidValue (1)' not in done.stdout \
                or b'process %d' % pids[1] in done.stdout:
            yield done
        os.symlink(record, home.path + '/link')
        if not diagnose(home.path + '/link').stdout.startswith(b'=== last GPU calls of process %d, ' % pids[0]):
            yield 'not behind a link'
        calls = json.loads(diagnose('--json', record, f'{home.path}/calls.{pids[1]}').stdout)['gpu_calls']
        if [c['pid'] for c in calls] != pids:
            yield calls
        # Beside a log both are told.
        log = home.file('log', 'RuntimeError: HIP error: invalid argument\n')
        done = diagnose(log, record)
        if not done.stdout.startswith(b'hip-invalid-argument') or b'process %d' % pids[0] not in done.stdout:
            yield done
        if json.loads(diagnose('--json', log, record).stdout)['gpu_calls'][0]['pid'] != pids[0]:
            yield 'no calls in the JSON'
        os.rename(record, home.path + '/renamed')
        done = diagnose(home.path + '/renamed')
        if done.returncode != 1 or done.stdout or b'is a record of GPU calls' not in done.stderr:
            yield done


def what_a_killed_run_left_goes_with_the_next():
    # No process has so high a number here; one elsewhere may.
    folder = '/dev/shm/cairn-run-4194305-abcdef'
    os.makedirs(folder, exist_ok=True)
    with open(folder + '/calls.1', 'w', encoding='utf-8'):
        pass
    with Home() as home:
        held = os.open(folder, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        told(home)
        if not os.path.exists(folder + '/calls.1'):
            yield 'somebody held it'
        os.close(held)
        told(home)
        if os.path.exists(folder):
            yield 'it is still there'


# Sets a variable as programs do, and only then uses the GPU.
SETS_ITSELF = f'''
import ctypes, json, os, re, time
os.environ["AMD_SERIALIZE_KERNEL"] = "3"
library = ctypes.CDLL("{WORLD}/libtorch6.so")
with open("{DATA}/../preload/torch.h") as f:
    last = len(re.findall(r"(?m)^    X\\\\(", f.read())) + 1
table = (ctypes.c_void_p * (last + 1)).in_dll(library, "torch")
ctypes.CFUNCTYPE(ctypes.c_int)(table[last])()
end = time.monotonic() + 30
while time.monotonic() < end and "environment" not in open(os.environ["CAIRN_RUN"] + "/events.jsonl").read():
    time.sleep(0.05)
'''.replace('\\\\', '\\')


def what_the_program_sets_itself_is_seen():
    with Home() as home:
        done = run(home, SETS_ITSELF, '--root', HALO)
        told_of = [e for e in home.events() if e['event'] == 'environment']
        if [(e['name'], e['value'], e['given']) for e in told_of] != [('AMD_SERIALIZE_KERNEL', '3', None)]:
            yield f'{told_of}: {done}'
        elif 'line 3' not in told_of[0]['where']:
            yield told_of[0]


tap.run([
    the_recorder_is_there_by_itself,
    it_can_be_left_out_or_chosen,
    a_card_with_memory_of_its_own_is_not_guarded,
    shared_memory_is_guarded,
    every_gpu_must_share_memory,
    the_budget_is_what_the_host_has_left,
    a_refused_copy_is_staged_the_next_time,
    a_copy_that_stands_still_is_staged,
    a_busy_core_does_not_hide_a_copy_that_stands_still,
    the_truth_about_shared_memory,
    cairns_own_refusal_is_said,
    what_the_user_chose_stays,
    a_hang_names_the_call,
    to_fetch_a_loss_is_a_wait,
    debug_says_which_kernel_failed,
    a_lack_of_room_is_said,
    a_record_made_by_hand_can_be_read,
    what_a_killed_run_left_goes_with_the_next,
    what_the_program_sets_itself_is_seen,
])
