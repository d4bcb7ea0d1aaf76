# SPDX-License-Identifier: Apache-2.0
"""Every command of `cairn job`: what it prints, what it refuses, and with which exit status."""
import json
import os
import re
import subprocess
import sys
import time

import tap
from queued import CAIRN, DATA, Queue, has_begun, until

COMMANDS = ('add', 'list', 'show', 'log', 'start', 'stop', 'pause', 'resume', 'kill', 'clone', 'edit', 'move', 'rm',
            'abandon', 'queue', 'rebuild')
# What programs rely on: the type of each key; with None it may be null.
ROW = {
    'uid': str, 'name': str, 'kind': str, 'gpu': str, 'gpu_used': (str, None), 'state': str, 'alive': bool,
    'adopted': bool, 'resumable': bool, 'want': (str, None), 'stopping_s': (int, None), 'step': (int, None), 'steps': (int, None),
    'loss': (float, int, None), 's_per_it': (float, int, None), 'eta_s': (float, int, None), 'mem_bytes': (int, None),
    'command': str, 'class': (str, None), 'cause': (str, None), 'exit_code': (int, None), 'attempt': int,
    'pid': (int, None), 'position': (float, int, None), 'run_dir': (str, None), 'parent': (str, None),
    'note': (str, None), 'created': int, 'started': (int, None), 'finished': (int, None), 'version': int,
}
FULL = {'cwd': str, 'config': (str, None), 'argv': (list, None), 'env': dict, 'options': dict, 'folder': str}


def shape(row, keys):
    """Findings about keys that are missing, unknown or of another type."""
    if set(row) != set(keys):
        yield f'keys: {sorted(set(row) ^ set(keys))}'
    for key, types in keys.items():
        allowed = types if isinstance(types, tuple) else (types,)
        if key in row and not any(row[key] is None if t is None else type(row[key]) is t for t in allowed):
            yield f'{key}: {row[key]!r}'


def refused(done, code, *words):
    """Findings about an error message."""
    if done.returncode != code or any(w not in ' '.join(done.stderr.split()) for w in words):
        yield f'{done.args[1:]}: exit {done.returncode}, want {code} and {words}: {done.stderr}'


def every_command_has_help():
    with Queue() as q:
        for command in COMMANDS:
            done = q.run('job', command, '--help')
            if done.returncode or f'cairn job {command}' not in done.stdout:
                yield f'{command}: {done}'
            yield from refused(q.run('job', command, '--no-such-option'), 2, '--no-such-option')
        if any(c not in q.run('job', '--help').stdout for c in COMMANDS):
            yield 'cairn job --help does not list all'
        if 'exec' in q.run('job', '--help').stdout:
            yield 'the internal command is listed'
        yield from refused(q.run('job'), 2, 'needs a command')
        yield from refused(q.run('job', 'lst'), 2, 'unknown command "lst"', 'list')
        for command in ('start', 'stop', 'pause', 'resume', 'kill', 'clone', 'rm', 'abandon'):
            yield from refused(q.job(command), 2, 'needs a job')
        for command in ('show', 'log', 'edit', 'move'):
            yield from refused(q.job(command), 2, 'needs one job')
        yield from refused(q.run('job', 'exec', '../../x'), 2, 'not the ID of a job')
        yield from refused(q.run('job', 'exec', '0' * 16), 2, 'there is no job')
        if os.path.exists(q.state + '/jobs/' + '0' * 16):
            yield 'the folder of a job that does not exist was made'


def rows_have_their_keys():
    with Queue() as q:
        uid = q.trainer('one', 600)
        has_begun(q, 'one')
        draft = q.add('--draft', '--', 'true')
        answer = q.json('list')
        if set(answer) != {'schema', 'jobs', 'next', 'queue'} or answer['schema'] != 1 or \
                answer['queue'] != {'paused': False, 'reason': None}:
            yield f'{answer}'
        for row in answer['jobs']:
            yield from shape(row, ROW)
        for row in (q.row(uid), q.row(draft), q.json('stop', uid)['job'], q.json('clone', draft)['job']):
            yield from shape(row, {**ROW, **FULL})
        row = q.wait(uid)
        yield from shape(row, {**ROW, **FULL})
        if (row['state'], row['exit_code'], row['alive'], row['pid']) != ('stopped', 130, False, None):
            yield f'{row}'
        if not (row['created'] <= row['started'] <= row['finished'] <= time.time()):
            yield f'times: {row}'


def a_configuration_is_trained():
    with Queue() as q:
        path = q.native()
        uid = q.add('--gpu', 'cpu', '--set', 'train.lr=2e-3', '--steps', '6', '--note', 'a note', path)
        row = q.wait(uid)
        with open(path, encoding='utf-8') as f:
            text = f.read()
        want = {'state': 'finished', 'kind': 'train', 'name': 'tiny', 'step': 6, 'steps': 6, 'exit_code': 0,
                'config': text, 'note': 'a note', 'run_dir': q.path('runs/tiny'), 'class': None, 'cause': None}
        for key, value in want.items():
            if row[key] != value:
                yield f'{key}: {row[key]!r}, not {value!r}'
        if not 0 < row['loss'] < 10 or not row['mem_bytes'] or 'lr: 0.002' not in q.read('runs/tiny/config.yaml'):
            yield f'{row}'
        again = q.add('--gpu', 'cpu', '--steps', '1', path)
        if q.wait(again)['run_dir'] != q.path('runs/tiny-2'):
            yield f'a second one: {q.row(again)["run_dir"]}'
        if any(r['adopted'] for r in q.rows().values()):
            yield 'the training of a job is listed twice'


def a_mistake_shows_when_it_is_added():
    with Queue() as q:
        bad = q.file('bad.yaml', 'model: {layers: 1}\ntrain: {stepz: 3}\n')
        yield from refused(q.job('add', bad), 2, f'{bad}:2', 'train.stepz', 'train.steps')
        yield from refused(q.job('add', q.file('no.yaml', 'a: [')), 2, 'no.yaml')
        yield from refused(q.job('add', q.path('missing.yaml')), 1, 'missing.yaml', 'No such file')
        yield from refused(q.job('add', q.home), 1, q.home)
        yield from refused(q.job('add', '--set', 'train.nope=1', q.native()), 2, 'train.nope')
        yield from refused(q.job('add'), 2, 'needs a configuration')
        yield from refused(q.job('add', '--'), 2, 'needs a configuration')
        yield from refused(q.job('add', q.native(), q.native()), 2, 'one configuration')
        yield from refused(q.job('add', '--steps', '3', '--', 'true'), 2, '--steps goes with a configuration')
        yield from refused(q.job('add', '--retries', '3', q.native()), 2, '--retries goes with a command')
        yield from refused(q.job('add', '--env', 'A-B=1', '--', 'true'), 2, 'NAME=VALUE')
        yield from refused(q.job('add', '--grace', 'x', '--', 'true'), 2, '--grace takes seconds')
        yield from refused(q.job('add', '--hang-after', '-1', '--', 'true'), 2, '--hang-after takes seconds')
        yield from refused(q.run('job', 'add', '--', b'\xff'), 2, 'word 1 of the command is not UTF-8')
        yield from refused(q.job('add', '--root', q.path('nowhere'), '--', 'true'), 2, 'nowhere')
        yield from refused(q.job('add', q.native(), '--', 'true'), 2, 'not both')
        if q.rows() or os.path.exists(q.state + '/jobs') and os.listdir(q.state + '/jobs'):
            yield f'something was added: {q.states()}'
        draft = q.add('--draft', '--gpu', 'cpu', bad)
        q.job('start', draft)
        row = q.wait(draft)
        if row['state'] != 'failed' or row['exit_code'] != 2 or not row['cause'].startswith('bad.yaml:2:9: unknown key'):
            yield f'a draft with a mistake: {row}'


def jobs_of_other_trainers_are_taken():
    with Queue() as q:
        env = {'TOOLKIT_DATA': q.home, 'HF_HUB_CACHE': q.path('hub')}
        q.job('queue', 'pause')
        for name in ('ok-wan22-14b.yaml', 'ok-both.json', 'ok-wan21-1b.yaml'):
            done = q.job('add', '--json', f'{DATA}/toolkit/{name}', env=env)
            if done.returncode or 'the job fails unless' not in ' '.join(done.stderr.split()):
                yield f'{name}: {done}'
        yield from refused(q.job('add', f'{DATA}/toolkit/no-lokr.yaml', env=env), 2, 'no-lokr.yaml:9', 'network.type')
        toml = q.file('musubi.toml', 'dit = "/nowhere/wan.safetensors"\ntask = "t2v-14B"\n'
                      'network_module = "networks.lora_wan"\nnetwork_dim = 8\n')
        uid = q.add('--draft', toml)
        if not os.path.exists(q.folder(uid) + '/config.toml') or len(q.rows()) != 4:
            yield f'{q.states()}'


def a_command_runs():
    with Queue() as q:
        work = q.path('work folder')
        os.mkdir(work)
        uid = q.add('--gpu', 'cpu', '--', 'sh', '-c', 'pwd; echo "$0|$1|"; echo to stderr >&2', "it's", '', cwd=work)
        row = q.wait(uid)
        if row['state'] != 'finished' or q.log(uid) != f"{work}\nit's||\nto stderr\n":
            yield f'{row}: {q.log(uid)!r}'
        if row['argv'][3:] != ["it's", ''] or row['cwd'] != work:
            yield f'{row["argv"]} {row["cwd"]}'
        q.file('train.py', 'import nothing_of_that_name\n')
        for command, code, cause in (
                (('sh', '-c', 'exit 3'), 3, 'exit status 3'), (('no-such-program',), 127, 'no such command'),
                ((q.path('train.py'),), 126, 'cannot be executed'), (('sh', '-c', 'kill -9 $$'), 137, '137'),
                ((sys.executable, 'train.py'), 1, "No module named 'nothing_of_that_name'")):
            uid = q.add('--gpu', 'cpu', '--retries', '0', '--', *command)
            row = q.wait(uid)
            if (row['state'], row['exit_code']) != ('failed', code) or cause not in row['cause']:
                yield f'{command}: {row}'


def a_job_has_the_variables_of_its_shell():
    """Neither those of the shell that started the supervisor nor those of the job before."""
    with Queue() as q:
        q.job('queue', 'pause')
        show = ('sh', '-c', 'echo "$FIRST,$SECOND,$GIVEN,$LEFT,$TERM,$CAIRN_RUN" | sed s,/.*,/journal,')
        one = q.add('--gpu', 'cpu', '--env', 'GIVEN=x=y', '--', *show, env={'FIRST': '1', 'LEFT': 'ä', 'TERM': 'xterm'})
        two = q.add('--gpu', 'cpu', '--', *show, env={'SECOND': '2', 'CAIRN_RUN': '/elsewhere', 'HF_TOKEN': 'hf_secret'})
        three = q.add('--gpu', 'cpu', '--', *show)
        q.job('queue', 'go', env={'FIRST': 'starter', 'LEFT': 'starter', 'GIVEN': 'starter'})
        for uid, seen in ((one, '1,,x=y,ä,,/journal\n'), (two, ',2,,,,/journal\n'), (three, ',,,,,/journal\n')):
            q.wait(uid)
            if q.log(uid) != seen:
                yield f'{q.log(uid)!r}, not {seen!r}'
        done = q.job('show', '--json', two)
        if 'hf_secret' in done.stdout or json.loads(done.stdout)['job']['env']['HF_TOKEN'] != '(hidden)':
            yield f'a token is shown: {done.stdout}'
        token = q.add('--gpu', 'cpu', '--', 'sh', '-c', 'echo $HF_TOKEN', env={'HF_TOKEN': 'hf_secret'})
        copy = q.json('clone', token)['job']['uid']
        q.job('start', copy)
        q.wait(copy)
        if q.log(token) != 'hf_secret\n' or q.log(copy) != 'hf_secret\n':
            yield 'the job needs its token'
        for path in (q.folder(token), q.state + '/jobs', q.state + '/cairn.db'):
            if os.stat(path).st_mode & 0o077:
                yield f'others can read {path}'


def jobs_are_found_by_name_and_id():
    with Queue() as q:
        one = q.add('--draft', '--name', 'same', '--', 'true')
        q.add('--draft', '--name', 'same', '--', 'true')
        other = q.add('--draft', '--name', 'other', '--', 'true')
        for word, uid in ((one, one), (one[-5:], one), ('other', other), (other[-7:], other)):
            if q.json('show', word)['job']['uid'] != uid:
                yield f'{word} is not {uid}'
        for command in ('show', 'log', 'start', 'stop', 'pause', 'resume', 'kill', 'clone', 'rm', 'abandon', 'move'):
            yield from refused(q.job(command, 'nobody'), 2, 'there is no job "nobody"', 'cairn job list')
            yield from refused(q.job(command, 'same'), 2, 'names more than one job', 'give the ID')
            yield from refused(q.job(command, ''), 2, 'empty')
        for command in ('show', 'move'):
            yield from refused(q.job(command, 'othre'), 2, 'there is no job "othre"', 'did you mean other?')
        yield from refused(q.job('edit', '--name', 'x', 'nobody'), 2, 'there is no job "nobody"')
        yield from refused(q.job('edit', '--name', ' ', 'other'), 2, 'name', 'empty')
        done = q.job('rm', 'nobody', 'other', 'nobody-else')
        yield from refused(done, 2, '"nobody"', '"nobody-else"')
        if 'other: removed' not in done.stdout or len(q.rows()) != 2:
            yield f'the others are done all the same: {done}'


def names_are_made_and_cleaned():
    with Queue() as q:
        for arguments, name in ((('--', 'python3', '/x/train.py', '-v'), 'train.py'), (('--', '/bin/echo', 'a'), 'echo'),
                                (('--', 'sh', '-c', 'echo a; echo b'), 'echo a; echo b'),
                                (('--', 'sh', '-c', 'echo a\necho b'), 'echo a echo b'),
                                (('--name', 'a\x1b[31mb\nc', '--', 'true'), None),
                                (('--name', 'ü' * 200, '--', 'true'), 'ü' * 60)):
            got = q.row(q.add('--draft', *arguments))['name']
            if name is None and re.search('[\x00-\x1f]', got) or name and got != name:
                yield f'{arguments}: {got!r}'
        if '\x1b' in q.job('list').stdout:
            yield 'escape sequences reach the terminal'


def life_goes_its_way():
    """Each command in each state; what makes no sense says so, and what is already so stays so."""
    with Queue() as q:
        draft = q.add('--draft', '--gpu', 'cpu', '--name', 'draft', '--', './trainer', 'draft', '0')
        yield from refused(q.job('pause', draft), 2, 'is draft and cannot be paused')
        yield from refused(q.job('resume', draft), 2, 'has not begun', 'cairn job start')
        yield from refused(q.job('move', draft), 2, 'is draft')
        yield from refused(q.job('log', draft), 2, 'has not begun')
        for command in ('stop', 'kill', 'abandon'):
            if q.json(command, draft)['job']['state'] != 'draft':
                yield f'{command} of a draft'
        busy = q.trainer('busy', 600)
        has_begun(q, 'busy')
        for command in ('start', 'resume'):
            if q.json(command, busy)['job']['state'] != 'active':
                yield f'{command} of a job that runs'
        yield from refused(q.job('rm', busy), 2, 'runs', 'cairn job stop')
        yield from refused(q.job('edit', '--note', 'x', busy), 2, 'runs', 'clone')
        yield from refused(q.job('pause', busy), 2, 'cannot be paused', 'cairn job stop')
        yield from refused(q.job('abandon', busy), 2, 'before it was asked to stop')
        yield from refused(q.job('move', '--first', busy), 2, 'is active')
        for _ in range(2):
            if q.json('start', draft)['job']['state'] != 'queued':
                yield 'start of a draft'
        if q.json('pause', draft)['job']['state'] != 'paused' or q.json('pause', draft)['job']['state'] != 'paused':
            yield 'pause of a job that waits'
        if q.json('resume', draft)['job']['state'] != 'queued':
            yield 'resume of a paused job'
        if q.json('stop', draft)['job']['state'] != 'stopped' or q.json('stop', draft)['job']['state'] != 'stopped':
            yield 'stop of a job that waits'
        yield from refused(q.job('resume', draft), 2, 'cannot be resumed', 'cairn job start')
        q.job('start', draft)
        if q.json('kill', busy)['job']['state'] != 'stopped':
            yield 'kill waits until it has ended'
        if q.wait(draft)['state'] != 'finished' or q.row(draft)['attempt'] != 1:
            yield f'{q.row(draft)}'
        q.job('start', draft)
        row = q.wait(draft)
        if row['state'] != 'finished' or row['attempt'] != 2 or q.read('marks').count('end draft') != 2:
            yield f'a second time: {row}'
        removed = q.json('rm', draft)
        if removed != {'schema': 1, 'removed': draft} or os.path.exists(q.folder(draft)) or \
                not os.path.exists(f'{q.state}/jobs/.cairn-trash/{draft}/job.json'):
            yield f'{removed}'
        yield from q.leftovers()


def a_job_that_stops_is_not_started():
    with Queue() as q:
        uid = q.add('--gpu', 'cpu', '--', 'sh', '-c', 'trap "sleep 1; exit 0" INT; echo begun; while :; do sleep 0.05; done')
        until(lambda: 'begun' in q.log(uid), 'the start')
        q.job('stop', uid)
        for command in ('start', 'resume'):
            yield from refused(q.job(command, uid), 2, 'was asked to stop and has not ended yet')
        text = q.job('list').stdout
        if 'stopping' not in text or 'asked to stop' not in q.job('show', uid).stdout:
            yield text
        if q.json('abandon', uid)['job']['state'] != 'stopped':
            yield f'{q.row(uid)}'
        yield from refused(q.job('rm', uid), 2, 'runs')
        other = q.trainer('other', 0)
        if q.row(other)['state'] != 'queued':
            yield 'the lane is free although a process is left'
        q.job('start', uid)  # waits a moment, and refuses or does it
        if q.wait(other)['state'] != 'finished':
            yield f'{q.row(other)}'
        q.job('kill', uid)


def the_queue_has_an_order():
    with Queue() as q:
        if q.json('queue', 'pause') != {'schema': 1, 'paused': True, 'wait_idle': True}:
            yield f'{q.json("queue")}'
        uids = [q.trainer(n, 0) for n in 'abcd']
        if q.states() != dict.fromkeys('abcd', 'queued') or 'paused' not in q.job('list').stdout:
            yield f'it is paused: {q.states()}'
        q.job('move', '--first', uids[3])
        q.job('move', uids[0])
        q.job('move', '--before', uids[3], uids[2])
        yield from refused(q.job('move', '--first', '--before', 'a', 'b'), 2, 'not both')
        order = sorted(q.rows().values(), key=lambda r: r['position'])
        if [r['name'] for r in order] != list('cdba'):
            yield [r['name'] for r in order]
        q.job('pause', 'd')
        if 'goes on' not in q.job('queue', 'go').stdout:
            yield 'go'
        q.wait(uids[0])
        yield from refused(q.job('move', 'c'), 2, 'is finished')
        q.job('resume', 'd')
        q.wait(uids[3])
        if re.findall('start (.)', q.read('marks')) != list('cbad'):
            yield q.read('marks')


def a_paused_job_keeps_its_place():
    """Also if others were moved while it ran."""
    with Queue() as q:
        first = q.trainer('first', 600, '--trainer', 'ai-toolkit')
        has_begun(q, 'first')
        q.job('queue', 'pause')
        uids = [q.trainer(n, 0) for n in 'ab']
        q.job('move', '--first', uids[1])
        q.job('pause', first)
        row = q.wait(first, 'paused')
        order = sorted((r for r in q.rows().values()), key=lambda r: r['position'])
        if [r['name'] for r in order] != ['first', 'b', 'a']:
            yield [r['name'] for r in order]
        q.job('resume', first)
        q.job('queue', 'go')
        row = q.wait(first, 'active')
        if row['attempt'] != 2 or 'start b' in q.read('marks'):
            yield f'{row} {q.read("marks")}'


def native_training_goes_on():
    with Queue() as q:
        uid = q.add('--gpu', 'cpu', '--steps', '600', '--set', 'checkpoint.every=50', q.native())
        until(lambda: (q.row(uid)['step'] or 0) > 3, 'the first steps')
        q.job('pause', uid)
        row = q.wait(uid, 'paused')
        step = row['step']
        if not 3 < step < 600 or row['steps'] != 600 or not row['run_dir']:
            yield f'{row}'
        q.job('resume', uid)
        until(lambda: (q.row(uid)['step'] or 0) > step, 'further steps')
        if f'step-{step}' not in q.log(uid, 2):
            yield f'it did not go on at step {step}: {q.log(uid, 2)}'
        q.job('kill', uid)
        text = open(q.path('tiny.yaml'), encoding='utf-8').read().replace('1e-3', '5e-4')
        q.json('edit', '--config', q.file('slower.yaml', text), uid)
        q.job('start', uid)
        row = q.wait(uid)
        if row['state'] != 'finished' or row['step'] != 600 or row['attempt'] != 3 or row['run_dir'] != q.path('runs/tiny'):
            yield f'{row}'
        if '5e-4' not in row['config'] or 'another configuration' not in q.log(uid, 3):
            yield 'the change was not used'


def a_command_that_saved_its_state_resumes_from_it():
    """As musubi-tuner does with --resume; the first time it starts from the beginning, whatever lies there."""
    with Queue() as q:
        script = q.file('wan_train_network.py', '''
import os, sys, time
print(sys.argv[1:], flush=True)
if '--resume' not in sys.argv:
    os.makedirs('out/x-state')
    for name in ('optimizer.bin', 'random_states_0.pkl'):
        open('out/x-state/' + name, 'w').write('state')
    print('saved', flush=True)
    time.sleep(600)
''')
        os.makedirs(q.path('out/old-state'))
        for name in ('optimizer.bin', 'random_states_0.pkl'):
            q.file('out/old-state/' + name, 'an older run')
        uid = q.add('--gpu', 'cpu', '--', sys.executable, script, '--output_dir', 'out', cwd=q.home)
        until(lambda: 'saved' in q.log(uid), 'the state')
        q.job('pause', uid)
        q.wait(uid, 'paused')
        q.job('resume', uid)
        row = q.wait(uid)
        if row['state'] != 'finished' or "'--resume', 'out/x-state'" not in q.log(uid, 2) or '--resume' in q.log(uid, 1):
            yield f'{row} {q.log(uid, 2)}'


def edits_do_not_overwrite_each_other():
    with Queue() as q:
        uid = q.add('--draft', '--gpu', 'cpu', q.native())
        one = q.json('edit', '--name', 'one', '--note', 'n', '--version', '1', uid)['job']
        if (one['name'], one['note'], one['version']) != ('one', 'n', 2):
            yield f'{one}'
        yield from refused(q.job('edit', '--name', 'two', '--version', '1', uid), 2, 'has version 2, not 1')
        yield from refused(q.job('edit', uid), 2, 'needs --name')
        bad = q.file('bad.yaml', 'train: {stepz: 3}\n')
        if q.json('edit', '--config', bad, uid)['job']['config'] != 'train: {stepz: 3}\n':
            yield 'a draft may be unfinished'
        q.job('queue', 'pause')
        q.json('edit', '--config', q.native(), uid)
        q.job('start', uid)
        yield from refused(q.job('edit', '--config', bad, uid), 2, 'bad.yaml:1', 'train.stepz')
        command = q.add('--draft', '--', 'true')
        yield from refused(q.job('edit', '--config', bad, command), 2, 'has no configuration')
        with open(q.folder(uid) + '/job.json', encoding='utf-8') as f:
            if json.load(f)['name'] != 'one':
                yield 'the folder says otherwise'
        os.rename(q.folder(uid), q.folder(uid) + '-away')
        open(q.folder(uid), 'w', encoding='utf-8').close()
        yield from refused(q.job('edit', '--name', 'three', uid), 1, uid)
        if q.row(uid)['name'] != 'one':
            yield 'a change that the folder could not take is in the list'


def a_clone_is_a_draft_of_its_own():
    with Queue() as q:
        uid = q.add('--gpu', 'cpu', '--steps', '2', '--note', 'old', q.native())
        done = q.wait(uid)
        copy = q.json('clone', uid)['job']
        for key in ('name', 'kind', 'config', 'cwd', 'gpu'):
            if copy[key] != done[key]:
                yield f'{key}: {copy[key]}'
        if (copy['state'], copy['parent'], copy['attempt'], copy['run_dir'], copy['step']) != ('draft', uid, 0, None, None):
            yield f'{copy}'
        q.job('start', copy['uid'])
        if q.wait(copy['uid'])['run_dir'] != q.path('runs/tiny-2'):
            yield f'{q.row(copy["uid"])}'
        q.job('rm', uid)
        if q.row(copy['uid'])['parent'] is not None:
            yield 'the parent is gone'


def lists_can_be_narrowed():
    with Queue() as q:
        for i in range(60):
            q.sql("INSERT INTO job(uid, name, kind, argv, cwd, state, created) VALUES(?, ?, 'run', '[\"x\"]', '/', ?, 1)",
                  f'{i:016d}', f'old-{i}', 'finished') if i else q.add('--draft', '--name', 'Draft', '--note', 'Blue', '--',
                                                                     'true')
        rows = q.json('list')
        if len(rows['jobs']) != 51 or rows['next'] != rows['jobs'][-1]['uid']:
            yield f'{len(rows["jobs"])} {rows["next"]}'
        for options, count in ((('--all',), 60), (('--limit', '3'), 4), (('--state', 'finished', '--all'), 59),
                               (('--find', 'blue'), 1), (('--find', 'old-5'), 11), (('--find', '%'), 0)):
            if len(q.json('list', *options)['jobs']) != count:
                yield f'{options}: {len(q.json("list", *options)["jobs"])}'
        yield from refused(q.job('list', '--state', 'done'), 2, 'no state "done"', 'finished')
        yield from refused(q.job('list', 'x'), 2, '')
        text = q.job('list').stdout
        if '51 of 60 jobs' not in text:
            yield text


def logs_can_be_followed():
    with Queue() as q:
        q.job('queue', 'pause')
        uid = q.add('--gpu', 'cpu', '--', 'sh', '-c', 'for i in 1 2 3; do echo line $i; sleep 0.3; done')
        follower = subprocess.Popen([CAIRN, 'job', 'log', '--follow', uid], env=q.environment(), stdout=subprocess.PIPE,
                                    text=True)
        time.sleep(0.3)
        if follower.poll() is not None:
            yield 'it did not wait for the job'
        q.job('queue', 'go')
        if follower.communicate(timeout=30)[0] != 'line 1\nline 2\nline 3\n':
            yield 'the log is another'
        if q.job('log', uid).stdout != 'line 1\nline 2\nline 3\n':
            yield 'the log of a job that ended'
        q.job('start', uid)
        q.wait(uid)
        q.sql("UPDATE job SET attempt = 3, state = 'stopped' WHERE uid = ?", uid)  # stopped before it began again
        if 'line 3' not in q.job('log', uid).stdout:
            yield 'the log of the attempt before'


def files_of_a_removed_job_go_to_the_trash():
    with Queue() as q:
        config = q.native()
        kept, moved = q.add('--gpu', 'cpu', '--name', 'kept', config), q.add('--gpu', 'cpu', '--name', 'moved', config)
        rows = [q.wait(uid) for uid in (kept, moved)]
        folder = os.path.dirname(rows[1]['run_dir'])
        q.job('rm', kept)
        q.json('rm', '--files', moved)
        trash = [os.path.join(at, n) for at, names, _ in os.walk(folder + '/.cairn-trash') for n in names if n == 'moved']
        if [os.path.exists(r['run_dir']) for r in rows] != [True, False] or not (len(trash) == 1 and os.path.exists(trash[0] + '/checkpoints')):
            yield f'{rows} {trash}'
        one = q.add('--gpu', 'cpu', '--name', 'one', config)
        run_dir = q.wait(one)['run_dir']
        other = q.add('--draft', '--gpu', 'cpu', '--name', 'other', config)
        q.sql('UPDATE job SET run_dir = ? WHERE uid = ?', run_dir, other)
        q.job('rm', '--files', one)
        if not os.path.exists(run_dir + '/checkpoints'):
            yield 'the run of another job is gone'
        os.rename(run_dir, run_dir + '-away')
        if q.json('rm', '--files', other)['removed'] != other:
            yield 'a job whose run is gone cannot be removed'


def a_list_for_people():
    with Queue() as q:
        if 'no jobs yet' not in q.job('list').stdout:
            yield q.job('list').stdout
        uid = q.add('--gpu', 'cpu', '--', 'sh', '-c', 'printf " 3/9 [00:06<00:12,  2.00s/it, avr_loss=0.125]\\n"; exit 5')
        row = q.wait(uid)
        if (row['step'], row['steps'], row['s_per_it'], row['loss']) != (3, 9, 2.0, 0.125):
            yield f'{row}'
        text = q.job('list').stdout
        if not all(w in text for w in (uid[-5:], 'failed', '3/9', '0.125', 'exit status 5')):
            yield text
        text = q.job('show', uid).stdout
        if not all(w in text for w in (uid, 'exit status 5', '3/9', 'cairn diagnose', q.home)):
            yield text


if __name__ == '__main__':
    tap.only([
        every_command_has_help,
        rows_have_their_keys,
        a_configuration_is_trained,
        a_mistake_shows_when_it_is_added,
        jobs_of_other_trainers_are_taken,
        a_command_runs,
        a_job_has_the_variables_of_its_shell,
        jobs_are_found_by_name_and_id,
        names_are_made_and_cleaned,
        life_goes_its_way,
        a_job_that_stops_is_not_started,
        the_queue_has_an_order,
        a_paused_job_keeps_its_place,
        native_training_goes_on,
        a_command_that_saved_its_state_resumes_from_it,
        edits_do_not_overwrite_each_other,
        a_clone_is_a_draft_of_its_own,
        lists_can_be_narrowed,
        logs_can_be_followed,
        files_of_a_removed_job_go_to_the_trash,
        a_list_for_people,
    ], sys.argv[1:])
