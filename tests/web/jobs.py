# SPDX-License-Identifier: Apache-2.0
"""Jobs through the API: add, watch, stop, resume, clone, edit, order, remove; curves, logs, samples and files."""
import json
import os
import time

import tap
from checked import Checked
from webserver import DATA, MACHINE, expect, wait_for

CONFIGS = os.path.join(DATA, '..', '..', 'configs')
UID = '/api/v1/jobs/{uid}'


def training(c, steps=400):
    """A small GPT on the CPU."""
    text = os.path.join(c.s.home, 'book.txt')
    with open(text, 'w', encoding='utf-8') as f:
        f.write('the quick brown fox jumps over the lazy dog\n' * 400)
    with open(os.path.join(CONFIGS, 'gpt-tiny.yaml'), encoding='utf-8') as f:
        config = f.read()
    for old, new in (('path: docs', f'path: {text}'), ('steps: 60', f'steps: {steps}'), ('layers: 4', 'layers: 1'), ('heads: 4', 'heads: 2'),
                     ('width: 128', 'width: 32'), ('context: 128', 'context: 32'), ('batch: 24', 'batch: 4')):
        config = config.replace(old, new)
    return {'name': 'tiny', 'kind': 'train', 'config': config, 'gpu': 'cpu', 'cwd': c.s.home, 'start': True}


def get(c, uid):
    return c.get(f'/api/v1/jobs/{uid}', template=UID).json()


def part(c, uid, name, query='', status=200):
    return c.get(f'/api/v1/jobs/{uid}/{name}{query}', template=f'{UID}/{name}', status=status)


def act(c, uid, name, status=202):
    return c.post(f'/api/v1/jobs/{uid}/{name}', {}, template=UID + '/{action}', status=status).json()


def reaches(c, uid, *states):
    wait_for(lambda: c.s.get(f'/api/v1/jobs/{uid}').json()['state'] in states, 60)
    return get(c, uid)


def a_training_lives_through_the_api():
    with Checked() as c:
        made = c.post('/api/v1/jobs', training(c), status=201)
        uid = made.json()['uid']
        c.same('where it is', made.headers['location'], f'api/v1/jobs/{uid}')
        wait_for(lambda: (c.s.get(f'/api/v1/jobs/{uid}').json()['step'] or 0) > 20, 60)
        c.same('alive', get(c, uid)['alive'], True)
        act(c, uid, 'save')
        act(c, uid, 'stop')
        act(c, uid, 'stop')
        stopped = reaches(c, uid, 'stopped')
        c.same('the step of a stopped job is known', stopped['step'] > 20, True)
        curve = part(c, uid, 'series', '?metrics=loss&points=10').json()
        c.same('last step', curve['last_step'], stopped['step'])
        c.same('points', len(curve['step']) <= 10 and len(curve['metrics']['loss']['mean']) == len(curve['step']), True)
        names = [f['path'] for f in part(c, uid, 'files').json()['files']]
        c.same('a checkpoint', any(n.startswith('checkpoints/step-') and n.endswith('model.safetensors') for n in names), True)
        c.same('a file of the run', c.s.get(f'/api/v1/files/job-{uid}/run.json').json()['name'], 'tiny')
        c.same('nothing beside it', c.s.get(f'/api/v1/files/job-{uid}/../../../cairn.db').status in (400, 404), True)
        act(c, uid, 'resume')
        wait_for(lambda: (c.s.get(f'/api/v1/jobs/{uid}').json()['step'] or 0) > stopped['step'], 60)
        act(c, uid, 'kill')
        reaches(c, uid, 'stopped')
        copy = act(c, uid, 'clone')
        c.same('the clone', (copy['state'], copy['parent'], copy['config']), ('draft', uid, get(c, uid)['config']))
        return c.findings


def curves_are_those_of_the_log():
    with Checked() as c:
        uid = c.post('/api/v1/jobs', training(c, 60), status=201).json()['uid']
        done = reaches(c, uid, 'finished', 'failed')
        c.same('state', done['state'], 'finished')
        with open(os.path.join(done['run_dir'], 'log.jsonl'), encoding='utf-8') as f:
            lines = [json.loads(line) for line in f]
        loss = {line['step']: line['loss'] for line in lines if 'loss' in line}
        got = part(c, uid, 'series', '?metrics=loss&points=1000').json()
        c.same('steps', got['step'], sorted(loss))
        far = max(abs(a - loss[s]) for a, s in zip(got['metrics']['loss']['mean'], got['step']))
        c.same('values', far < 1e-6, True)
        thin = part(c, uid, 'series', '?metrics=loss&points=7&from=11&to=40').json()
        groups = [[loss[s] for s in range(a, min(a + 5, 41))] for a in range(11, 41, 5)]
        c.same('groups', thin['step'], [15, 20, 25, 30, 35, 40])
        for name, function in (('min', min), ('max', max)):
            far = max(abs(a - function(g)) for a, g in zip(thin['metrics']['loss'][name], groups))
            c.same(name, far < 1e-6, True)
        part(c, uid, 'series', '?points=0', status=400)
        return c.findings


def long_curves_are_read_on():
    """A log of many steps, appended to, truncated as by a resume, and replaced."""
    with Checked() as c:
        uid = c.post('/api/v1/jobs', training(c, 5), status=201).json()['uid']
        path = os.path.join(reaches(c, uid, 'finished')['run_dir'], 'log.jsonl')
        loss = {}

        def write(mode, steps, scale):
            with open(path, mode, encoding='utf-8') as f:
                for step in steps:
                    loss[step] = scale * (step * 7919 % 1000)
                    f.write(f'{{"step":{step},"loss":{loss[step]},"lr":0.001,"elapsed_s":{step}.0}}\n')
            return os.path.getsize(path)

        def compare(what):
            begin = time.monotonic()
            got = part(c, uid, 'series', '?metrics=loss&points=100').json()
            print(f'# {what}: {1000 * (time.monotonic() - begin):.1f} ms')
            at, steps = 0, sorted(loss)
            size = -(-len(steps) // 100)
            for i, last in enumerate(got['step']):
                group = [loss[s] for s in steps[at:at + size]]
                c.same(f'{what}: step {i}', last, steps[min(at + size, len(steps)) - 1])
                c.same(f'{what}: values {i}', (got['metrics']['loss']['min'][i], got['metrics']['loss']['max'][i]), (min(group), max(group)))
                at += size
            c.same(f'{what}: last step', got['last_step'], steps[-1])

        write('w', range(1, 200001), 1)
        compare('first')
        size = write('a', range(200001, 200051), 1)
        compare('appended')
        write('a', range(200051, 200101), 1)
        compare('appended again')
        os.truncate(path, size)
        for step in range(200051, 200101):
            del loss[step]
        compare('truncated')
        write('a', range(200051, 200081), 3)
        compare('taken again')
        loss.clear()
        write('w', range(1, 5001), 2)
        compare('replaced')
        os.unlink(path)
        c.same('gone', part(c, uid, 'series', '?metrics=loss').json()['step'], [])
        return c.findings


def a_command_has_a_log_and_a_verdict():
    with Checked('--allow-root') as c:
        argv = ['/bin/sh', '-c', 'echo one; echo two; echo "RuntimeError: HIP error: invalid device function"; exit 1']
        uid = c.post('/api/v1/jobs', {'argv': argv, 'gpu': 'cpu', 'cwd': c.s.home, 'options': {'retries': 0}, 'start': True}, status=201).json()['uid']
        failed = reaches(c, uid, 'failed')
        c.same('class', failed['class'], 'no-kernel-image')
        answer = c.s.get(f'/api/v1/jobs/{uid}/log?offset=4&limit=4')
        c.same('a part of the log', (answer.body, answer.headers['x-offset']), (b'two\n', '4'))
        tail = c.s.get(f'/api/v1/jobs/{uid}/log?tail=9')
        c.same('its end', (tail.body, int(tail.headers['x-size']) > 40), (b'function\n', True))
        c.same('verdict', part(c, uid, 'verdict').json()['class'], 'no-kernel-image')
        c.same('samples', part(c, uid, 'samples').json()['samples'], [])
        act(c, uid, 'save', status=409)
        return c.findings


def other_trainers_have_curves():
    """From the bars and losses in their output: two epochs, of which the second was started again in its middle."""
    with Checked('--allow-root') as c:
        lines = ['Loading pipeline components...: 100%|##########| 7/7 [00:01<00:00,  5.1it/s]']
        bar = 'steps:  10%|#         | {}/500 [00:31<20:11,  2.50s/it, avr_loss={}]'
        lines += [bar.format(i, i / 8) for i in range(1, 501)] + [bar.format(i, i / 4) for i in range(1, 301)]
        lines += ['a note'] + [bar.format(i, i / 2) for i in range(200, 251)]
        source = os.path.join(c.s.home, 'output')
        with open(source, 'w', encoding='utf-8', newline='') as f:
            f.write('\r'.join(lines) + '\n')
        uid = c.post('/api/v1/jobs', {'argv': ['/bin/cat', source], 'gpu': 'cpu', 'cwd': c.s.home, 'start': True}, status=201).json()['uid']
        folder = reaches(c, uid, 'finished')['folder']
        want = {i: i / 8 for i in range(1, 501)} | {500 + i: i / 4 for i in range(1, 200)} | {500 + i: i / 2 for i in range(200, 251)}

        def compare(what):
            got = part(c, uid, 'series', '?points=5000').json()
            c.same(f'{what}: metrics', sorted(got['metrics']), ['loss', 's_per_it'])
            c.same(f'{what}: steps', got['step'], sorted(want))
            c.same(f'{what}: loss', got['metrics']['loss']['mean'], [want[s] for s in sorted(want)])
            c.same(f'{what}: seconds', set(got['metrics']['s_per_it']['max']), {2.5})

        compare('all')
        with open(os.path.join(folder, 'attempt-1', 'log'), 'a', encoding='utf-8') as f:
            f.write(bar.format(251, 9) + '\r' + bar.format(252, 9))  # the second is not complete
        want[751] = 9
        compare('appended')
        return c.findings


def rotated_logs_are_one_text():
    """As cairn run leaves them: a part between the first and the last two is gone."""
    with Checked('--allow-root') as c:
        uid = c.post('/api/v1/jobs', {'argv': ['/bin/echo', 'x'], 'gpu': 'cpu', 'cwd': c.s.home, 'start': True}, status=201).json()['uid']
        journal = os.path.join(reaches(c, uid, 'finished')['folder'], 'attempt-1')
        every = ''.join(f'line {i:06}\n' for i in range(60000)).encode()
        cuts = (0, 12000, 612000, 612120, len(every))  # the second of these four is dropped
        for name, i in (('log.first', 0), ('log.previous', 2), ('log', 3)):
            with open(os.path.join(journal, name), 'wb') as f:
                f.write(every[cuts[i]:cuts[i + 1]])
        with open(os.path.join(journal, 'log.dropped'), 'w', encoding='ascii') as f:
            f.write('600000\n')

        def read(query):
            answer = c.s.get(f'/api/v1/jobs/{uid}/log?{query}')
            c.same(f'{query}: status and size', (answer.status, int(answer.headers['x-size'])), (200, len(every)))
            return int(answer.headers['x-offset']), answer.body

        c.same('in the first', read('offset=120&limit=24'), (120, every[120:144]))
        c.same('up to the hole', read('offset=11988&limit=100'), (11988, every[11988:12000]))
        c.same('in the hole', read('offset=20000&limit=100')[1], b'')
        at, body = read('offset=600000&limit=12012')
        c.same('the line', body, b'\n[cairn: 600000 bytes of the log were dropped here]\n' + every[612000:612012])
        c.same('where', at + len(body), 612012)
        c.same('over two parts', read('offset=612100&limit=40'), (612100, every[612100:612140]))
        c.same('the end', read('tail=1000'), (len(every) - 1000, every[-1000:]))
        c.same('behind it', read('offset=99999999'), (len(every), b''))
        with c.s.events(f'job:{uid}') as stream:
            time.sleep(1.5)
            os.rename(os.path.join(journal, 'log'), os.path.join(journal, 'log.previous'))
            with open(os.path.join(journal, 'log.dropped'), 'w', encoding='ascii') as f:
                f.write('600120\n')
            with open(os.path.join(journal, 'log'), 'wb') as f:
                f.write(b'new\n')
            event = stream.next_event()
            c.same('an event', (event['event'], event['data']['offset'], event['data']['text']), ('log', len(every), 'new\n'))
        return c.findings


def events_tell_what_happens():
    with Checked() as c:
        with c.s.events('jobs') as stream:
            uid = c.post('/api/v1/jobs', training(c, 30), status=201).json()['uid']
            seen = []
            while 'finished' not in seen:
                event = stream.next_event()
                if event['event'] == 'job' and event['data']['uid'] == uid:
                    seen.append(event['data']['state'])
            c.same('states', seen[0] in ('queued', 'starting', 'active'), True)
        return c.findings


def changes_in_a_terminal_reach_open_pages():
    with Checked('--allow-root') as c:
        with c.s.events('jobs') as stream:
            def until(what, wanted):
                for _ in range(100):
                    event = stream.next_event()
                    if wanted(event['event'], event.get('data') or {}):
                        return event
                c.same(what, 'no such event', 'an event')
                return None

            uid = json.loads(c.s.cairn('job', 'add', '--draft', '--json', '--gpu', 'cpu', '--name', 'first', '--', 'true').stdout)['job']['uid']
            until('added', lambda kind, data: kind == 'job' and data['uid'] == uid and data['state'] == 'draft')
            c.s.cairn('job', 'edit', uid, '--name', 'second')
            until('edited', lambda kind, data: kind == 'job' and data['uid'] == uid and data.get('name') == 'second')
            c.s.cairn('job', 'queue', 'pause')
            until('paused', lambda kind, data: kind == 'reset')
            c.same('paused', c.get('/api/v1/jobs').json()['queue']['paused'], True)
            c.s.cairn('job', 'queue', 'go')
            until('goes on', lambda kind, data: kind == 'reset')
            c.s.cairn('job', 'rm', uid)
            until('removed', lambda kind, data: kind == 'job' and data['uid'] == uid and data.get('deleted'))
            c.get(f'/api/v1/jobs/{uid}', template=UID, status=404)
            # One that was removed here is told once.
            made = c.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu'}, status=201).json()['uid']
            until('added', lambda kind, data: kind == 'job' and data['uid'] == made)
            c.change('DELETE', f'/api/v1/jobs/{made}', template=UID)
            until('removed', lambda kind, data: kind == 'job' and data['uid'] == made and data.get('deleted'))
            time.sleep(1.2)
            last = c.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu'}, status=201).json()['uid']
            seen = until('added', lambda kind, data: kind == 'job')
            c.same('told once', seen['data']['uid'], last)
        return c.findings


def samples_come_by_their_index():
    with Checked() as c:
        uid = c.post('/api/v1/jobs', training(c, 30), status=201).json()['uid']
        run = reaches(c, uid, 'finished')['run_dir']
        os.makedirs(run + '/samples', exist_ok=True)
        with open(run + '/samples/index.jsonl', 'w', encoding='utf-8') as f:
            f.write('{"step":10,"index":0,"prompt":"a","file":"x.png","width":8,"height":8,"frames":1}\nnot JSON\n{"step":10}\n'
                    '{"step":20,"index":1,"prompt":"b","file":"y.png"}\n{"step":')
        got = part(c, uid, 'samples').json()['samples']
        c.same('samples', [(s['step'], s['index'], s['path'], s['folder']) for s in got],
               [(10, 0, 'samples/x.png', f'job-{uid}'), (20, 1, 'samples/y.png', f'job-{uid}')])
        return c.findings


def the_queue_has_an_order():
    with Checked('--allow-root') as c:
        c.change('PUT', '/api/v1/queue', {'paused': True})
        uids = [c.post('/api/v1/jobs', {'name': name, 'argv': ['/bin/true'], 'gpu': 'cpu', 'start': True}, status=201).json()['uid'] for name in 'abc']
        c.change('PUT', '/api/v1/queue', {'order': [uids[2], uids[0], uids[1]]})
        rows = c.get('/api/v1/jobs?state=queued').json()
        c.same('order', [j['name'] for j in sorted(rows['jobs'], key=lambda j: j['position'])], ['c', 'a', 'b'])
        c.same('paused', rows['queue']['paused'], True)
        c.change('PATCH', f'/api/v1/jobs/{uids[1]}', {'position': 0}, template=UID)
        rows = c.get('/api/v1/jobs?state=queued').json()['jobs']
        c.same('first', min(rows, key=lambda j: j['position'])['name'], 'b')
        c.change('PUT', '/api/v1/queue', {'paused': 'yes'}, status=422)
        c.change('PUT', '/api/v1/queue', {'paused': False})
        for uid in uids:
            reaches(c, uid, 'finished')
        return c.findings


def edits_do_not_overwrite_each_other():
    with Checked('--allow-root') as c:
        job = c.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu'}, status=201).json()
        where = f'/api/v1/jobs/{job["uid"]}'
        new = c.change('PATCH', where, {'name': 'new', 'note': 'x'}, {'If-Match': f'"{job["version"]}"'}, template=UID).json()
        c.same('name', (new['name'], new['note']), ('new', 'x'))
        c.change('PATCH', where, {'name': 'newer'}, {'If-Match': f'"{job["version"]}"'}, template=UID, status=412)
        c.same('still', get(c, job['uid'])['name'], 'new')
        c.change('PATCH', where, {'gpu': '7'}, template=UID, status=422)
        c.change('DELETE', where, template=UID)
        c.get(where, template=UID, status=404)
        return c.findings


def pause_is_offered_where_resuming_is_known():
    with Checked('--allow-root') as c:
        def resumable(wish):
            job = c.post('/api/v1/jobs', {'gpu': 'cpu', 'cwd': c.s.home, **wish}, status=201).json()
            listed = {j['uid']: j['resumable'] for j in c.get('/api/v1/jobs').json()['jobs']}
            c.same('as listed', listed[job['uid']], job['resumable'])
            return job['uid'], job['resumable']

        c.change('PUT', '/api/v1/queue', {'paused': True})
        c.same('training', resumable({'config': 'model:\n'})[1], True)
        c.same('a command', resumable({'argv': ['/bin/sleep', '60']})[1], False)
        c.same('its own way', resumable({'argv': ['/bin/sleep', '60'], 'options': {'resume_cmd': 'sleep 30'}})[1], True)
        # What is in the queue can be paused, whatever it is, and resumed.
        uid, _ = resumable({'argv': ['/bin/true'], 'start': True})
        c.same('paused', act(c, uid, 'pause')['resumable'], True)
        c.same('resumed', act(c, uid, 'resume')['state'], 'queued')
        c.change('PUT', '/api/v1/queue', {'paused': False})
        c.same('finished', reaches(c, uid, 'finished')['resumable'], False)
        # A command that runs and cannot go on is not paused.
        uid, _ = resumable({'argv': ['/bin/sleep', '60'], 'start': True})
        c.same('running', reaches(c, uid, 'active')['resumable'], False)
        act(c, uid, 'pause', status=409)
        act(c, uid, 'kill')
        return c.findings


def bad_wishes_are_refused():
    with Checked('--allow-root') as c:
        for wish in ({}, {'kind': 'dance', 'argv': ['x']}, {'kind': 'train'}, {'argv': []}, {'argv': [1]}, {'argv': ['true'], 'cwd': 'here'},
                     {'argv': ['true'], 'cwd': '/no/such/folder'}, {'argv': ['true'], 'gpu': 'many'}, {'argv': ['true'], 'env': {'A': 1}},
                     {'argv': ['true'], 'env': []}, {'config': 5}, {'name': 'x' * 300, 'argv': ['true']}):
            c.post('/api/v1/jobs', wish, status=422)
        c.same('no job', c.get('/api/v1/jobs').json()['jobs'], [])
        c.get('/api/v1/jobs?state=dancing', status=400)
        c.get('/api/v1/jobs?limit=0', status=400)
        c.get('/api/v1/jobs/nothing', template=UID, status=404)
        act(c, '0' * 16, 'start', status=404)
        act(c, '0' * 16, 'dance', status=404)
        return c.findings


def a_request_that_is_repeated_adds_one_job():
    with Checked('--allow-root') as c:
        uids = {c.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu'}, {'Idempotency-Key': 'k1'}, status=201).json()['uid'] for _ in range(3)}
        c.same('jobs', (len(uids), len(c.get('/api/v1/jobs').json()['jobs'])), (1, 1))
        c.post('/api/v1/jobs', {'argv': ['/bin/false'], 'gpu': 'cpu'}, {'Idempotency-Key': 'k1'}, status=422)
        c.change('DELETE', f'/api/v1/jobs/{uids.pop()}', template=UID)
        c.post('/api/v1/jobs', {'argv': ['/bin/true'], 'gpu': 'cpu'}, {'Idempotency-Key': 'k1'}, status=409)
        c.same('jobs in the end', c.get('/api/v1/jobs').json()['jobs'], [])
        return c.findings


def commands_are_refused_where_they_are_not_allowed():
    with Checked('--no-run') as c:
        c.post('/api/v1/jobs', {'argv': ['/bin/true']}, status=403)
        c.post('/api/v1/jobs', {'config': 'model:\n', 'gpu': 'cpu'}, status=201)
        config = {'config': 'model:\n', 'gpu': 'cpu'}
        for more in ({'argv': ['--json-events', '/nowhere']}, {'env': {'LD_PRELOAD': '/nowhere.so'}}, {'options': {'resume_cmd': 'true'}}):
            c.post('/api/v1/jobs', config | more, status=403)
        uid = c.post('/api/v1/jobs', config | {'argv': [], 'env': {}, 'options': {'retries': 1}}, status=201).json()['uid']
        c.change('PATCH', f'/api/v1/jobs/{uid}', {'options': {'resume_cmd': 'true'}}, template=UID, status=403)
        c.change('PATCH', f'/api/v1/jobs/{uid}', {'name': 'other'}, template=UID)
        c.change('PATCH', f'/api/v1/jobs/{uid}', {'name': ' '}, template=UID, status=422)
        made = json.loads(c.s.cairn('job', 'add', '--draft', '--json', '--gpu', 'cpu', '--', 'true').stdout)['job']
        act(c, made['uid'], 'start', status=403)
        c.change('PATCH', f'/api/v1/jobs/{made["uid"]}', {'argv': ['/bin/false']}, template=UID, status=403)
        return c.findings


def runs_of_a_terminal_are_listed():
    with Checked('--allow-root') as c:
        c.s.cairn('run', '--', 'sh', '-c', 'echo hello')
        rows = c.get('/api/v1/jobs').json()['jobs']
        c.same('runs', [(j['adopted'], j['state']) for j in rows], [(True, 'finished')])
        uid = rows[0]['uid']
        c.same('log', c.s.get(f'/api/v1/jobs/{uid}/log').body, b'hello\n')
        act(c, uid, 'start', status=409)
        act(c, uid, 'stop')
        act(c, uid, 'resume', status=409)
        copy = act(c, uid, 'clone')
        c.same('a job of its own', (copy['adopted'], copy['state'], copy['argv']), (False, 'draft', ['sh', '-c', 'echo hello']))
        act(c, copy['uid'], 'start')
        reaches(c, copy['uid'], 'finished')
        return c.findings


def runs_of_a_terminal_go_on():
    with Checked('--allow-root') as c:
        config = os.path.join(c.s.home, 'alone.yaml')
        with open(config, 'w', encoding='utf-8') as f:
            f.write(training(c, 3)['config'])
        done = c.s.cairn('train', '--device', 'cpu', '--set', f'run.dir={c.s.home}/alone', config)
        c.same(done.stderr, done.returncode, 0)
        row, = c.get('/api/v1/jobs').json()['jobs']
        c.same('resumable', (row['adopted'], row['resumable']), (True, True))
        job = act(c, row['uid'], 'resume')
        c.same('the same run', (job['adopted'], job['run_dir']), (False, row['run_dir']))
        reaches(c, job['uid'], 'finished')
        c.same('listed once', [j['uid'] for j in c.get('/api/v1/jobs').json()['jobs']], [job['uid']])
        where = f'/api/v1/jobs/{job["uid"]}'
        c.change('DELETE', where + '?files=all', template=UID, status=400)
        c.change('DELETE', where + '?files=trash', template=UID)
        c.same('its files', (os.path.exists(row['run_dir']), len(os.listdir(c.s.home + '/.cairn-trash'))), (False, 1))
        return c.findings


def a_killed_supervisor_is_noticed():
    with Checked('--allow-root') as c:
        uid = c.post('/api/v1/jobs', {'argv': ['/bin/sleep', '600'], 'gpu': 'cpu', 'start': True}, status=201).json()['uid']
        pid = reaches(c, uid, 'active')['pid']
        os.kill(pid, 9)
        begin = time.monotonic()
        lost = reaches(c, uid, 'lost', 'failed', 'stopped')
        c.same('state', lost['state'], 'lost')
        print(f'# noticed after {time.monotonic() - begin:.1f} s')
        return c.findings


def the_keys_of_configurations_are_there():
    with Checked('--root', MACHINE) as c:
        table = c.get('/api/v1/config').json()
        expect(c.findings, 'kinds', set(table['kinds']), {'gpt', 'wan'})
        names = [k['name'] for k in table['kinds']['wan']]
        expect(c.findings, 'a key', 'model.high_noise_path' in names and 'train.lr' in names, True)
        expect(c.findings, 'an example', 'gpt-tiny' in [p['name'] for p in table['presets']], True)
        return c.findings


tap.run([
    a_training_lives_through_the_api,
    curves_are_those_of_the_log,
    long_curves_are_read_on,
    a_command_has_a_log_and_a_verdict,
    other_trainers_have_curves,
    rotated_logs_are_one_text,
    events_tell_what_happens,
    changes_in_a_terminal_reach_open_pages,
    samples_come_by_their_index,
    the_queue_has_an_order,
    edits_do_not_overwrite_each_other,
    pause_is_offered_where_resuming_is_known,
    bad_wishes_are_refused,
    a_request_that_is_repeated_adds_one_job,
    commands_are_refused_where_they_are_not_allowed,
    runs_of_a_terminal_are_listed,
    runs_of_a_terminal_go_on,
    a_killed_supervisor_is_noticed,
    the_keys_of_configurations_are_there,
])
