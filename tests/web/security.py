# SPDX-License-Identifier: Apache-2.0
"""Who may ask what: Host, sessions, codes, forged requests, headers, read-only servers, other addresses."""
import os
import stat
import time

import tap
from webserver import MACHINE, Server, expect

POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self'; connect-src 'self'; "
          "form-action 'none'; base-uri 'none'; frame-ancestors 'none'")


# ---- where it listens ----

def listens_on_both_loopback_addresses():
    import socket
    findings = []
    with Server() as s:
        for address in ('127.0.0.1', '::1'):
            try:
                socket.create_connection((address, s.port), 5).close()
            except OSError as e:
                findings.append(f'{address}: {e}')
        listening = open('/proc/net/tcp', encoding='utf-8').read().split('\n')
        for line in listening:
            if f':{s.port:04X} ' in line and ' 0A ' in line and not line.split()[1].startswith('0100007F'):
                findings.append(f'listens on {line}')
    return findings


def a_unix_socket_is_for_its_owner_alone():
    findings = []
    with Server(wait=False) as s:
        path = os.path.join(s.home, 'ui.sock')
        s.arguments += ['--listen', f'unix:{path}', '--folder', f'data={s.home}']
        s.port = 22476
        s.start()
        expect(findings, 'mode', stat.S_IMODE(os.stat(path).st_mode), 0o600)
        s.login()
        expect(findings, 'session', s.get('/api/v1/session').status, 200)
        expect(findings, 'another Host', s.get('/', {'Host': 'localhost:1'}).status, 421)
        expect(findings, 'exit', s.stop(), 0)
        expect(findings, 'left over', os.path.exists(path), False)
    return findings


def another_address_needs_a_host():
    findings = []
    with Server(wait=False) as s:
        done = s.cairn('ui', '--no-open', '--listen', '0.0.0.0', '--port', '0')
        expect(findings, 'exit', done.returncode, 2)
        if '--host' not in done.stderr:
            findings.append(done.stderr)
        done = s.cairn('ui', '--no-open', '--listen', 'example.org', '--host', 'x')
        expect(findings, 'a name instead of an address', done.returncode, 2)
    return findings


def another_address_runs_and_takes_nothing():
    findings = []
    with Server('--listen', '0.0.0.0', '--host', 'box.lan', '--allow-root') as s:
        s.login(s.link.replace('box.lan', 'localhost'))
        expect(findings, 'the name of --host', s.get('/api/v1/session', host=f'box.lan:{s.port}').status, 200)
        expect(findings, 'it alone, behind a proxy', s.get('/api/v1/session', host='box.lan').status, 200)
        session = s.get('/api/v1/session').json()
        expect(findings, 'run', (session['run_allowed'], session['upload_allowed']), (False, False))
        s.stop()
        s.arguments += ['--allow-run']
        s.start()
        s.login(s.link.replace('box.lan', 'localhost'))
        session = s.get('/api/v1/session').json()
        expect(findings, 'with --allow-run', (session['run_allowed'], session['upload_allowed']), (True, True))
    return findings


def commands_as_root_need_an_option():
    findings = []
    for options, want in (([], os.geteuid() != 0), (['--allow-root'], True), (['--allow-root', '--no-run'], False)):
        with Server(*options) as s:
            expect(findings, f'run_allowed with {options}', s.login().get('/api/v1/session').json()['run_allowed'], want)
    return findings


# ---- Host ----

def a_foreign_host_is_misdirected():
    findings = []
    with Server() as s:
        s.login()
        for host in ('evil.example', f'evil.example:{s.port}', f'localhost.evil.example:{s.port}', f'127.0.0.1.evil.example:{s.port}',
                     f'127.0.0.1:{s.port + 1}', 'localhost', f'localhost:{s.port}0', f'localhost:{s.port} ,x', f'0.0.0.0:{s.port}',
                     f'localhost.:{s.port}', f'.localhost:{s.port}', f'user@localhost:{s.port}'):
            for path in ('/', '/login', '/api/v1/session', '/no-such-path'):
                expect(findings, f'{host} {path}', s.get(path, {'Host': host}).status, 421)
        for host in (f'localhost:{s.port}', f'LOCALHOST:{s.port}', f'127.0.0.1:{s.port}', f'[::1]:{s.port}', f'cairn.localhost:{s.port}'):
            expect(findings, host, s.get('/api/v1/session', {'Host': host}).status, 200)
    return findings


def a_request_without_a_host_is_bad():
    findings = []
    with Server() as s:
        expect(findings, 'HTTP/1.1', s.raw(b'GET / HTTP/1.1\r\nConnection: close\r\n\r\n').status, 400)
        expect(findings, 'HTTP/1.0', s.raw(b'GET / HTTP/1.0\r\n\r\n').status, 400)
        expect(findings, 'two', s.get('/', [('Host', s.host), ('Host', s.host)]).status, 400)
        expect(findings, 'empty', s.get('/', {'Host': ''}).status, 400)
        expect(findings, 'in the target', s.get(f'http://{s.host}/', {'Host': s.host}).status, 400)
    return findings


# ---- sessions ----

def everything_but_the_login_needs_a_session():
    findings = []
    with Server('--folder', f'data={MACHINE}') as s:
        for path, want in (('/', 401), ('/index.html', 401), ('/login', 200), ('/login.css', 200), ('/api/v1/session', 401),
                           ('/api/v1/jobs', 401), ('/api/v1/nothing', 401), ('/api/v1/events', 401), ('/api/v1/openapi.json', 401),
                           ('/api/v1/files/data/x', 401), ('/nothing', 401), ('/login.html', 401)):
            expect(findings, path, s.get(path).status, want)
            expect(findings, f'{path} with a wrong cookie', s.get(path, cookie=f'cairn_{s.port}={"0" * 32}').status, want)
            expect(findings, f'{path} with a wrong token', s.get(path, {'Authorization': f'Bearer {"0" * 32}'}).status, want)
        for method in ('POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'):
            expect(findings, method, s.send(method, '/api/v1/settings').status, 401)
    return findings


def a_code_works_once():
    findings = []
    with Server() as s:
        first = s.use(s.link)
        expect(findings, 'first', (first.status, first.headers.get('location')), (303, './'))
        expect(findings, 'second', s.use(s.link).status, 403)
        expect(findings, 'none', s.get('/login').status, 200)
        expect(findings, 'wrong', s.get('/login?code=' + '0' * 32).status, 403)
        expect(findings, 'empty', s.get('/login?code=').status, 403)
    return findings


def looking_at_a_code_does_not_use_it():
    findings = []
    with Server() as s:
        expect(findings, 'HEAD', s.send('HEAD', '/' + s.link.split('/', 3)[3]).status, 200)
        expect(findings, 'GET', s.use(s.link).status, 303)
    return findings


def the_cookie_is_strict():
    findings = []
    with Server() as s:
        cookie = s.use(s.link).headers['set-cookie']
        name, _, rest = cookie.partition('=')
        value, *attributes = [part.strip() for part in rest.split(';')]
        expect(findings, 'name', name, f'cairn_{s.port}')
        expect(findings, 'attributes', set(attributes), {'HttpOnly', 'SameSite=Strict', 'Path=/'})
        expect(findings, 'length', (len(value), all(c in '0123456789abcdef' for c in value)), (32, True))
        s.cookie = f'{name}={value}'
        expect(findings, 'among others', s.get('/api/v1/session', {'Cookie': f'a=b; {s.cookie}; c=d'}).status, 200)
        expect(findings, 'another name', s.get('/api/v1/session', {'Cookie': f'x{s.cookie}'}).status, 401)
        expect(findings, 'cut', s.get('/api/v1/session', {'Cookie': s.cookie[:-1]}).status, 401)
        expect(findings, 'longer', s.get('/api/v1/session', {'Cookie': s.cookie + '0'}).status, 401)
    return findings


def ten_wrong_codes_cost_a_second_each():
    findings = []
    with Server() as s:
        begin = time.monotonic()
        for _ in range(10):
            s.get('/login?code=' + 'f' * 32)
        quick = time.monotonic() - begin
        begin = time.monotonic()
        expect(findings, 'the eleventh', s.get('/login?code=' + 'f' * 32).status, 403)
        slow = time.monotonic() - begin
        if quick > 5 or slow < 0.9:
            findings.append(f'ten took {quick:.2f} s, one more {slow:.2f} s')
        begin = time.monotonic()
        expect(findings, 'others go on', s.get('/login').status, 200)
        if time.monotonic() - begin > 0.5:
            findings.append('other requests wait, too')
        expect(findings, 'the right one', s.use(s.link).status, 303)
    return findings


def a_session_survives_the_server():
    findings = []
    with Server() as s:
        s.login()
        expect(findings, 'exit', s.stop(), 0)
        s.start()
        expect(findings, 'after a restart', s.get('/api/v1/session').json()['csrf'], s.csrf)
        expect(findings, 'logout', s.post('/api/v1/logout').status, 204)
        expect(findings, 'after logout', s.get('/api/v1/session').status, 401)
        s.stop()
        s.start()
        expect(findings, 'after another restart', s.get('/api/v1/session').status, 401)
    return findings


def secrets_are_for_their_owner_alone():
    findings = []
    with Server() as s:
        s.login()
        state = os.path.join(s.home, 'state', 'cairn')
        for path in (s.state_file(), os.path.join(state, 'token'), os.path.join(state, 'ui.lock')):
            expect(findings, path, stat.S_IMODE(os.stat(path).st_mode), 0o600)
        for path in (state, os.path.dirname(s.state_file())):
            expect(findings, path, stat.S_IMODE(os.stat(path).st_mode), 0o700)
        value = s.cookie.split('=')[1]
        if value in open(s.state_file(), encoding='utf-8').read():
            findings.append('ui.json holds the cookie itself')
    return findings


def log_lines_hold_no_secrets():
    findings = []
    with Server() as s:
        s.login()
        s.get('/api/v1/session', {'Authorization': 'Bearer ' + s.token()})
        s.post('/api/v1/env', {'with': {'SECRET_NAME': 'secret-value'}})
        s.get('/login?code=' + 'e' * 32)
        s.stop()
        said = s.said()
        for secret in (s.cookie.split('=')[1], s.csrf, s.link.split('=')[1], 'secret-value', 'e' * 32):
            if secret in said:
                findings.append(f'the log holds {secret}')
    return findings


# ---- changes ----

CHANGE = ('PUT', '/api/v1/settings', b'{"ui.theme":"dark"}')


def changes_need_all_signs_of_our_page():
    findings = []
    with Server() as s:
        s.login()
        right = {'Content-Type': 'application/json', 'X-Cairn-CSRF': s.csrf, 'Origin': f'http://{s.host}', 'Sec-Fetch-Site': 'same-origin'}

        def attempt(**other):
            headers = {**right, **{k.replace('_', '-'): v for k, v in other.items()}}
            return s.send(CHANGE[0], CHANGE[1], headers, CHANGE[2]).status
        expect(findings, 'all', attempt(), 200)
        expect(findings, 'no Origin', attempt(Origin=None), 200)
        expect(findings, 'no Sec-Fetch-Site', attempt(Sec_Fetch_Site=None), 200)
        for site in ('cross-site', 'same-site', 'none', '', 'Same-Origin'):
            expect(findings, f'Sec-Fetch-Site: {site}', attempt(Sec_Fetch_Site=site), 403)
        for origin in ('null', 'http://evil.example', f'https://{s.host}', f'http://localhost:{s.port + 1}', 'http://localhost',
                       f'http://127.0.0.1:{s.port}', f'http://{s.host}.evil.example', f'http://{s.host}/', ''):
            expect(findings, f'Origin: {origin}', attempt(Origin=origin), 403)
        for token in (None, '', '0' * 32, s.csrf[:-1], s.csrf + '0', s.csrf.upper() + 'x'):
            expect(findings, f'X-Cairn-CSRF: {token}', attempt(X_Cairn_CSRF=token), 403)
        for kind in (None, '', 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'application/jsonx', 'text/json'):
            expect(findings, f'Content-Type: {kind}', attempt(Content_Type=kind), 415)
        expect(findings, 'with a parameter', attempt(Content_Type='application/json; charset=utf-8'), 200)
    return findings


def the_token_needs_no_other_sign():
    findings = []
    with Server() as s:
        bearer = {'Authorization': 'Bearer ' + s.token()}
        expect(findings, 'PUT', s.send(CHANGE[0], CHANGE[1], bearer, CHANGE[2]).status, 200)
        for wrong in ('Bearer ' + '0' * 32, 'Bearer ' + s.token()[:-1], 'Bearer', 'Basic ' + s.token(), s.token()):
            expect(findings, wrong[:12], s.send(CHANGE[0], CHANGE[1], {'Authorization': wrong}, CHANGE[2]).status, 401)
        s.login()
        expect(findings, 'a link needs the token', s.post('/api/v1/link', {}).status, 403)
        made = s.send('POST', '/api/v1/link', bearer, b'{"read_only":true}', cookie='')
        expect(findings, 'link', made.status, 201)
        expect(findings, 'neither true nor false', s.send('POST', '/api/v1/link', bearer, b'{"read_only":{}}', cookie='').status, 400)
        s.login(made.json()['link'])
        expect(findings, 'it is read-only', s.get('/api/v1/session').json()['read_only'], True)
    return findings


def no_answer_has_cors_headers():
    findings = []
    with Server() as s:
        s.login()
        for method, path in (('GET', '/'), ('GET', '/api/v1/session'), ('OPTIONS', '/api/v1/settings'), ('GET', '/api/v1/nothing')):
            answer = s.send(method, path, {'Origin': 'http://evil.example', 'Access-Control-Request-Method': 'PUT'})
            findings += [f'{method} {path}: {k}' for k in answer.headers if k.startswith('access-control')]
        expect(findings, 'OPTIONS', s.send('OPTIONS', '/api/v1/settings').status, 405)
    return findings


# ---- headers ----

def every_answer_has_the_headers():
    findings = []
    with Server('--folder', f'data={MACHINE}') as s:
        answers = {path: s.get(path, cookie='') for path in ('/', '/login', '/login.css', '/api/v1/session')}
        answers['wrong host'] = s.get('/', {'Host': 'evil.example'})
        s.login()
        for path in ('/', '/login.css', '/nothing', '/api/v1/session', '/api/v1/nothing', '/api/v1/machine', '/api/v1/openapi.json',
                     '/api/v1/files/data/none', '/api/v1/check', '/%2e%2e'):
            answers[f'{path} with a session'] = s.get(path)
        answers['HEAD'] = s.send('HEAD', '/')
        answers['PUT'] = s.change('PUT', '/api/v1/settings', {})
        for what, answer in answers.items():
            for name, value in (('content-security-policy', POLICY), ('x-content-type-options', 'nosniff'),
                                ('referrer-policy', 'no-referrer'), ('cross-origin-opener-policy', 'same-origin'),
                                ('cross-origin-resource-policy', 'same-origin')):
                expect(findings, f'{what}: {name}', answer.headers.get(name), value)
            names = [k for k, _ in answer.pairs if k != 'set-cookie']
            findings += [f'{what}: {k} twice' for k in set(names) if names.count(k) > 1]
            if '/api/' in what and 'files' not in what:
                expect(findings, f'{what}: cache-control', answer.headers.get('cache-control'), 'no-store')
    return findings


def errors_are_problems():
    findings = []
    with Server() as s:
        s.login()
        for answer, status in ((s.get('/api/v1/nothing'), 404), (s.send('PATCH', '/api/v1/settings'), 405),
                               (s.change('PUT', '/api/v1/settings', body=b'{'), 400), (s.get('/api/v1/session', cookie='x=y'), 401)):
            expect(findings, 'status', answer.status, status)
            expect(findings, 'type', answer.headers['content-type'], 'application/problem+json')
            problem = answer.json()
            expect(findings, 'keys', set(problem), {'type', 'title', 'status', 'detail', 'hint'})
            expect(findings, 'status inside', problem['status'], status)
        expect(findings, 'Allow', s.send('PATCH', '/api/v1/settings').headers['allow'], 'GET, PUT')
    return findings


# ---- read-only ----

def read_only_refuses_every_change():
    findings = []
    with Server('--read-only', '--folder', f'data={MACHINE}') as s:
        s.login()
        api = s.get('/api/v1/openapi.json').json()
        token = {'Authorization': 'Bearer ' + s.token()}
        asks = {'/api/v1/check', '/api/v1/env', '/api/v1/diagnose', '/api/v1/tensor/check', '/api/v1/logout', '/api/v1/link'}
        count = 0
        for path, methods in api['paths'].items():
            for method in set(methods) - {'get', 'parameters'} if path not in asks else ():
                where = path.replace('{folder}', 'data').replace('{path}', 'a.png').replace('{uid}', '0' * 16).replace('{name}', 'x')
                expect(findings, f'{method} {path}', s.change(method.upper(), where, {}).status, 403)
                expect(findings, f'{method} {path} with the token', s.send(method.upper(), where, token, b'{}', cookie='').status, 403)
                count += 1
        if count < 4:
            findings.append(f'only {count} changes in openapi.json')
        expect(findings, 'a question', s.post('/api/v1/check', {'config': ''}).status, 200)
    return findings


def a_read_only_link_refuses_changes():
    findings = []
    with Server() as s:
        done = s.cairn('ui', '--url', '--read-only')
        s.login(done.stdout.split(': ', 1)[1].strip())
        expect(findings, 'change', s.change('PUT', '/api/v1/settings', {'ui.theme': 'dark'}).status, 403)
        expect(findings, 'session', s.get('/api/v1/session').json()['read_only'], True)
    return findings


tap.run([
    listens_on_both_loopback_addresses,
    a_unix_socket_is_for_its_owner_alone,
    another_address_needs_a_host,
    another_address_runs_and_takes_nothing,
    commands_as_root_need_an_option,
    a_foreign_host_is_misdirected,
    a_request_without_a_host_is_bad,
    everything_but_the_login_needs_a_session,
    a_code_works_once,
    looking_at_a_code_does_not_use_it,
    the_cookie_is_strict,
    ten_wrong_codes_cost_a_second_each,
    a_session_survives_the_server,
    secrets_are_for_their_owner_alone,
    log_lines_hold_no_secrets,
    changes_need_all_signs_of_our_page,
    the_token_needs_no_other_sign,
    no_answer_has_cors_headers,
    every_answer_has_the_headers,
    errors_are_problems,
    read_only_refuses_every_change,
    a_read_only_link_refuses_changes,
])
