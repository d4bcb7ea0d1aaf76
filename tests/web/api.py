# SPDX-License-Identifier: Apache-2.0
"""The endpoints that need no job: machine, doctor, check, plan, env, diagnose, tensor check, settings, assets; against openapi.json."""
import gzip
import json
import os
import shutil
import time

import tap
from checked import Checked
from webserver import DATA, MACHINE, Server, expect, wait_for

CONFIGS = os.path.join(DATA, '..', '..', 'configs')


# ---- the machine ----

def the_machine_is_that_of_cairn_gpu():
    with Checked('--root', MACHINE) as c:
        got = c.get('/api/v1/machine').json()
        live = got.pop('live')
        c.same('report', got, json.loads(c.s.cairn('gpu', '--json', '--root', MACHINE).stdout))
        c.same('live GPUs', len(live['gpus']), len(got['gpus']))
        c.get('/api/v1/machine?x=y')
        return c.findings


def a_machine_without_gpus_is_told():
    with Checked() as c:
        c.get('/api/v1/machine')
        return c.findings


def the_history_grows():
    with Checked('--root', MACHINE) as c:
        c.get('/api/v1/machine/history')
        grown = wait_for(lambda: len(c.get('/api/v1/machine/history?seconds=60').json()['time_ms']) >= 3, 10)
        c.same('three samples', grown, True)
        v = c.get('/api/v1/machine/history?seconds=600').json()
        lengths = {len(x) for x in [v['time_ms'], *v['host'].values(), *(y for g in v['gpus'] for y in g.values())]}
        c.same('lengths', len(lengths), 1)
        c.same('in order', v['time_ms'], sorted(v['time_ms']))
        for seconds in ('0', '601', '-1', 'x', '1.5', ''):
            c.get(f'/api/v1/machine/history?seconds={seconds}', status=400)
        return c.findings


CARD = os.path.join(DATA, 'sysfs', 'gfx1030-rx6900xt-desktop-drm-only')
SENSORS = ('busy_percent', 'power_w', 'temperature_c', 'clock_mhz')


def a_sleeping_card_is_not_woken():
    """Reading its sensors would."""
    findings = []
    with Server(wait=False) as s:
        root = os.path.join(s.home, 'machine')
        shutil.copytree(CARD, root, symlinks=True)
        power = os.path.join(root, 'sys/class/drm/card0/device/power')
        os.mkdir(power)

        def set_status(text):
            with open(os.path.join(power, 'runtime_status'), 'w', encoding='utf-8') as f:
                f.write(text)
        set_status('suspended\n')
        s.arguments += ['--root', root]
        s.start()
        s.login()
        gpu = s.get('/api/v1/machine').json()['live']['gpus'][0]
        expect(findings, 'asleep', gpu['asleep'], True)
        expect(findings, 'its sensors', [gpu[k] for k in SENSORS], [None] * 4)
        set_status('active\n')
        gpu = s.get('/api/v1/machine').json()['live']['gpus'][0]
        expect(findings, 'awake', gpu['asleep'], False)
        expect(findings, 'its sensors', [gpu[k] for k in SENSORS], [3, 36, 56, 500])
    return findings


def an_idle_card_may_fall_asleep():
    """Reading its sensors starts the delay anew, so they are read only while somebody watches."""
    findings = []
    with Server('--root', CARD) as s:
        s.login()
        time.sleep(0.3)
        gpu = s.get('/api/v1/machine/history').json()['gpus'][0]
        expect(findings, 'sensors without a watcher', [gpu[k] for k in SENSORS], [[None]] * 4)
        if gpu['vram_total_bytes'] == [None]:
            findings.append('memory, which wakes nothing, is not read either')
        with s.events('machine') as e:
            gpu = e.next_event()['data']['gpus'][0]
        expect(findings, 'sensors with one', [gpu[k] for k in SENSORS], [3, 36, 56, 500])
    return findings


def the_doctor_answers():
    with Checked('--root', MACHINE) as c:
        c.same('checks', c.get('/api/v1/doctor').json(), json.loads(c.s.cairn('doctor', '--json', '--root', MACHINE).stdout))
        return c.findings


# ---- tools ----

def check_names_lines():
    with Checked() as c:
        v = c.post('/api/v1/check', {'config': 'train:\n  stepz: 1\n  lr: x\n'}).json()
        c.same('errors', [(e['line'], e['column'], e['key']) for e in v['errors']], [(2, 3, 'train.stepz'), (3, 7, 'train.lr')])
        good = open(os.path.join(CONFIGS, 'gpt-tiny.yaml'), encoding='utf-8').read()
        c.same('ok', c.post('/api/v1/check', {'config': good}).json()['ok'], True)
        c.same('raw', c.post('/api/v1/check', body=good.encode(), headers={'Content-Type': 'application/octet-stream'}).json()['ok'], True)
        c.same('empty', c.post('/api/v1/check', {'config': ''}).json()['ok'], False)
        for wrong in (b'', b'[]', b'"x"', b'{"config":1}', b'{"config":null}', b'{}', b'{"config":"a","config":"b"}', b'{'):
            c.post('/api/v1/check', body=wrong, status=400)
        c.post('/api/v1/check', {'config': 'a: "\udc80"'}, status=400)
        return c.findings


def plan_computes():
    with Checked('--root', MACHINE) as c:
        config = open(os.path.join(CONFIGS, 'gpt-10m.yaml'), encoding='utf-8').read()
        text = os.path.join(DATA, '..', '..', 'README.md')
        v = c.post('/api/v1/plan', {'config': config, 'set': {'data.path': text}}).json()
        c.same('chip', v['gfx'], 'gfx1151')
        v = c.post('/api/v1/plan', {'config': config, 'set': {'data.path': text}, 'fit': True, 'device': 'auto'}).json()
        c.same('schema', v['schema'], 1)
        v = c.post('/api/v1/plan', {'config': 'train:\n  stepz: 1\n'}, status=422).json()
        c.same('line', (v['line'], 'stepz' in v['detail'], '/dev/stdin' in v['detail']), (2, True, False))
        c.post('/api/v1/plan', {'config': config, 'cwd': '/no/such/folder'}, status=422)
        v = c.post('/api/v1/plan', {'config': config, 'set': {'data.path': '/no/such/te'}}, status=422).json()
        c.same('a path half typed', '/no/such/te' in v['detail'], True)
        for wrong in ({'config': 1}, {'config': config, 'fit': 1}, {'config': config, 'memory_gb': 'x'}, {'config': config, 'set': []},
                      {'config': config, 'set': {'a': 1}}, {'config': config, 'gfx': 'a\nb'}):
            c.post('/api/v1/plan', wrong, status=400)
        c.post('/api/v1/plan', {'config': config, 'gfx': '--help'}, status=422)
        return c.findings


def env_explains():
    with Checked('--root', MACHINE) as c:
        v = c.post('/api/v1/env', {'debug': True, 'with': {'NAME': 'value'}, 'gpu': 0}).json()
        c.same('with', [x for x in v['set'] if x['name'] == 'NAME'][0]['value'], 'value')
        c.post('/api/v1/env', {})
        c.post('/api/v1/env', {'trainer': '; touch /tmp/x'}, status=422)
        for wrong in ({'gpu': 'x'}, {'debug': 'yes'}, {'keep': 'X'}, {'keep': [1]}, {'with': ['A=B']}, {'trainer': 5}):
            c.post('/api/v1/env', wrong, status=400)
        return c.findings


def diagnose_names_the_cause():
    with Checked('--root', MACHINE) as c:
        log = 'RuntimeError: HIP error: invalid device function\n'
        c.same('class', c.post('/api/v1/diagnose', {'log': log, 'exit': 1}).json()['class'], 'no-kernel-image')
        c.same('another machine', c.post('/api/v1/diagnose', {'log': log, 'use_machine': False}).json()['class'], 'no-kernel-image')
        raw = {'Content-Type': 'application/octet-stream'}
        c.same('bytes', c.post('/api/v1/diagnose', body=b'\xff\xfe\0' + log.encode(), headers=raw).json()['schema'], 1)
        c.post('/api/v1/diagnose', {'log': ''})
        c.post('/api/v1/diagnose', {'log': log, 'exit': 'x'}, status=400)
        return c.findings


def tensor_check_reads_a_file_of_a_folder():
    weights = os.path.join(DATA, 'golden', 'gpt')
    names = sorted(n for n in os.listdir(weights) if n.endswith('.safetensors')) if os.path.isdir(weights) else []
    where, names = (weights, names) if names else find_weights()
    with Checked('--folder', f'w={where}') as c:
        v = c.post('/api/v1/tensor/check', {'folder': 'w', 'path': names[0]}).json()
        c.same('files', len(v['files']), 1)
        for path in ('none.safetensors', '../x', '.hidden'):
            c.post('/api/v1/tensor/check', {'folder': 'w', 'path': path}, status={'none.safetensors': 404}.get(path, 400))
        c.post('/api/v1/tensor/check', {'folder': 'other', 'path': names[0]}, status=404)
        c.post('/api/v1/tensor/check', {'path': 5}, status=400)
        return c.findings


def find_weights():
    for folder, _, files in os.walk(DATA):
        found = [f for f in files if f.endswith('.safetensors')]
        if found:
            return folder, found
    raise tap.Skip('no safetensors file among the data')


# ---- settings ----

def settings_are_kept():
    with Checked() as c:
        before = c.get('/api/v1/settings').json()['settings']
        c.same('defaults', (before['ui.theme'], before['queue.paused'], before['queue.wait_idle']), ('system', False, True))
        after = c.change('PUT', '/api/v1/settings', {'ui.theme': 'dark', 'queue.paused': True, 'ui.smoothing': 0.25}).json()['settings']
        c.same('changed', after, {**before, 'ui.theme': 'dark', 'queue.paused': True, 'ui.smoothing': 0.25})
        for wrong in ({'ui.theme': 'pink'}, {'ui.theme': True}, {'queue.paused': 'true'}, {'ui.them': 'dark'}, {'ui.smoothing': 1},
                      {'ui.smoothing': -1}, {'ui.theme': 'light', 'x': 1}, {'ui.theme': 'light|dark'}, {'ui.theme': ''}):
            c.change('PUT', '/api/v1/settings', wrong, status=422)
        c.same('unchanged', c.get('/api/v1/settings').json()['settings'], after)
        c.s.stop()
        c.s.start()
        c.same('after a restart', c.get('/api/v1/settings').json()['settings'], after)
        return c.findings


def a_damaged_database_is_said():
    with Checked() as c:
        c.s.stop()
        with open(os.path.join(c.s.home, 'state', 'cairn', 'cairn.db'), 'wb') as f:
            f.write(b'not a database' * 100)
        c.s.start()
        c.get('/api/v1/settings', status=503)
        c.get('/api/v1/session')
        return c.findings


# ---- the page ----

def assets_are_packed_and_tagged():
    findings = []
    with Server() as s:
        s.login()
        plain = s.get('/')
        packed = s.get('/', {'Accept-Encoding': 'gzip, deflate, br'})
        expect(findings, 'type', plain.headers['content-type'], 'text/html; charset=utf-8')
        expect(findings, 'encoding', (plain.headers.get('content-encoding'), packed.headers.get('content-encoding')), (None, 'gzip'))
        expect(findings, 'unpacked', gzip.decompress(packed.body), plain.body)
        expect(findings, 'vary', packed.headers['vary'], 'Accept-Encoding')
        expect(findings, 'cache', packed.headers['cache-control'], 'no-cache')
        for first in (plain, packed):
            headers = {'If-None-Match': first.headers['etag'], 'Accept-Encoding': 'gzip' if first is packed else 'identity'}
            again = s.get('/', headers)
            expect(findings, 'not changed', (again.status, again.body), (304, b''))
        if plain.headers['etag'] == packed.headers['etag']:
            findings.append('both forms have one tag')
        expect(findings, 'by its name', s.get('/index.html').body, plain.body)
        expect(findings, 'HEAD', (s.send('HEAD', '/').status, s.send('HEAD', '/').body), (200, b''))
        expect(findings, 'unknown', s.get('/nothing.js').status, 404)
        if b'cairn job list' not in plain.body or b'<noscript>' not in plain.body:
            findings.append('the page says nothing without JavaScript')
        login = s.get('/login', cookie='')
        expect(findings, 'login', (login.status, b'cairn ui --url' in login.body), (200, True))
    return findings


def urls_are_relative():
    """Any path prefix of a proxy works."""
    import re
    findings = []
    with Server() as s:
        s.login()
        for path in ('/', '/login'):
            for url in re.findall(rb'(?:href|src)="([^"]*)"', s.get(path).body):
                if url.startswith((b'/', b'http:', b'https:')):
                    findings.append(f'{path}: {url}')
    return findings


tap.run([
    the_machine_is_that_of_cairn_gpu,
    a_machine_without_gpus_is_told,
    the_history_grows,
    a_sleeping_card_is_not_woken,
    an_idle_card_may_fall_asleep,
    the_doctor_answers,
    check_names_lines,
    plan_computes,
    env_explains,
    diagnose_names_the_cause,
    tensor_check_reads_a_file_of_a_folder,
    settings_are_kept,
    a_damaged_database_is_said,
    assets_are_packed_and_tagged,
    urls_are_relative,
])
