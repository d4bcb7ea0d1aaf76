# SPDX-License-Identifier: Apache-2.0
"""The command itself: one server per state folder, links, ports, files, its end."""
import json
import os
import pty
import signal
import socket
import stat
import subprocess
import time

import tap
from webserver import CAIRN, Server, expect, wait_for


def one_line_with_a_link():
    findings = []
    with Server(wait=False) as s:
        with open(os.path.join(s.home, 'out'), 'w+', encoding='utf-8') as out:
            p = subprocess.Popen([CAIRN, 'ui', '--no-open', '--port', '0'], env=s.environment, stdout=out, stderr=subprocess.PIPE)
            wait_for(lambda: os.path.getsize(out.name) > 20)
            p.send_signal(signal.SIGINT)
            err = p.communicate(timeout=20)[1]
        text = open(out.name, encoding='utf-8').read()
        if text.count('\n') != 1 or not text.startswith('cairn ui: http://localhost:') or '/login?code=' not in text:
            findings.append(f'printed {text!r}')
        expect(findings, 'stderr', err, b'')
        expect(findings, 'exit after Ctrl-C', p.returncode, 0)
    return findings


def a_second_call_prints_a_link_to_the_first():
    findings = []
    with Server() as s:
        begin = time.monotonic()
        done = s.cairn('ui', '--no-open', '--port', '0')
        expect(findings, 'exit', (done.returncode, done.stderr), (0, ''))
        link = done.stdout.split(': ', 1)[1].strip()
        expect(findings, 'port', f':{s.port}/' in link, True)
        expect(findings, 'works', s.use(link).status, 303)
        expect(findings, 'works once', s.use(link).status, 403)
        if time.monotonic() - begin > 10:
            findings.append('slow')
        v = json.loads(s.cairn('ui', '--url', '--json').stdout)
        expect(findings, '--url --json', (v['schema'], s.use(v['link']).status), (1, 303))
    return findings


def url_and_stop_need_a_server():
    findings = []
    with Server(wait=False) as s:
        for option in ('--url', '--stop'):
            done = s.cairn('ui', option)
            expect(findings, option, (done.returncode, done.stdout), (1, ''))
            if 'no server runs' not in done.stderr:
                findings.append(done.stderr)
        done = s.cairn('ui', '--url', '--stop')
        expect(findings, 'both', done.returncode, 2)
    return findings


def stop_ends_it():
    findings = []
    with Server() as s:
        s.login()
        with s.events('machine') as e:
            e.next_event()
            done = s.cairn('ui', '--stop')
            expect(findings, 'exit of --stop', (done.returncode, done.stderr), (0, ''))
            expect(findings, 'exit', s.process.wait(20), 0)
        expect(findings, 'said', s.said(), '')
    return findings


def a_killed_server_leaves_nothing_in_the_way():
    findings = []
    with Server() as s:
        s.login()
        s.process.kill()
        s.process.wait()
        s.port = 0
        s.start()
        expect(findings, 'a new one', s.get('/login').status, 200)
    return findings


def a_port_in_use_is_passed_over():
    findings = []
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        port = taken.getsockname()[1]
        with Server(port=port) as s:
            if not port < s.port < port + 10:
                findings.append(f'{s.port} instead of {port}')
            expect(findings, 'it serves', s.get('/login').status, 200)
    return findings


def ten_ports_in_a_row():
    """Sockets that listen on them."""
    for first in range(23000, 60000, 10):
        held = []
        try:
            for port in range(first, first + 10):
                held.append(socket.socket())
                held[-1].bind(('127.0.0.1', port))
                held[-1].listen()
            return first, held
        except OSError:  # another program has one of them
            for c in held:
                c.close()
    raise tap.Skip('no ten free ports in a row')


def ten_ports_in_use_are_said():
    findings = []
    first, held = ten_ports_in_a_row()
    try:
        with Server(wait=False) as s:
            done = s.cairn('ui', '--no-open', '--port', str(first))
            expect(findings, 'exit', (done.returncode, done.stdout), (1, ''))
            for word in (str(first), 'in use', '--port'):
                if word not in done.stderr:
                    findings.append(f'no {word} in {done.stderr!r}')
            held.pop().close()
            with Server(port=first) as last:
                expect(findings, 'nine in use', last.port, first + 9)
    finally:
        for c in held:
            c.close()
    return findings


def without_a_runtime_folder_the_state_folder_serves():
    findings = []
    for value in ('', '/no/such/folder', 'relative'):
        with Server(wait=False) as s:
            s.environment['XDG_RUNTIME_DIR'] = value
            s.state_file = lambda s=s: os.path.join(s.home, 'state', 'cairn', 'ui.json')
            s.start()
            s.login()
            expect(findings, 'mode', stat.S_IMODE(os.stat(s.state_file()).st_mode), 0o600)
            s.environment['XDG_RUNTIME_DIR'] = os.path.join(s.home, 'runtime')
            done = s.cairn('ui', '--url')
            expect(findings, 'found from another', done.returncode, 0)
    return findings


def two_state_folders_share_a_runtime_folder():
    findings = []
    with Server() as one, Server(wait=False) as two:
        two.environment['XDG_RUNTIME_DIR'] = one.environment['XDG_RUNTIME_DIR']
        two.state_file = lambda: os.path.join(one.home, 'runtime', 'cairn', 'ui-2.json')
        two.start()
        one.login()
        two.login()
        expect(findings, 'ports differ', one.port != two.port, True)
        for s in (one, two):
            expect(findings, 'link', f':{s.port}/' in s.cairn('ui', '--url').stdout, True)
    return findings


def a_state_folder_that_is_not_ours_is_refused():
    findings = []
    with Server(wait=False) as s:
        os.symlink('/tmp', os.path.join(s.home, 'state', 'cairn'))
        done = s.cairn('ui', '--no-open', '--port', '0')
        expect(findings, 'exit', done.returncode, 1)
        if 'symbolic link' not in done.stderr:
            findings.append(done.stderr)
    return findings


def wrong_usage_is_said():
    findings = []
    with Server(wait=False) as s:
        for arguments in (['--port', '70000'], ['--port', 'x'], ['x'], ['--listen', 'nonsense'], ['--folder', 'x']):
            expect(findings, str(arguments), s.cairn('ui', '--no-open', *arguments).returncode, 2)
        expect(findings, 'root', s.cairn('ui', '--no-open', '--port', '0', '--root', '/no/such').returncode, 2)
        done = s.cairn('ui', '--help')
        expect(findings, 'help', (done.returncode, 'ssh -L' in done.stdout), (0, True))
    return findings


def a_browser_needs_a_display_and_a_terminal():
    """xdg-open is a script that notes what it got."""
    findings = []
    with Server(wait=False) as s:
        noted = os.path.join(s.home, 'noted')
        opener = os.path.join(s.home, 'xdg-open')
        with open(opener, 'w', encoding='utf-8') as f:
            f.write(f'#!/bin/sh\necho "$1" >>{noted}\n')
        os.chmod(opener, 0o755)

        def run(display, terminal, *options):
            environment = {**s.environment, 'PATH': f'{s.home}:/usr/bin:/bin', 'TERM': 'xterm', **({'DISPLAY': ':9'} if display else {})}
            ours, theirs = pty.openpty()
            p = subprocess.Popen([CAIRN, 'ui', '--port', '0', *options], env=environment, stdout=theirs if terminal else subprocess.DEVNULL)
            os.close(theirs)
            wait_for(lambda: os.path.exists(noted) or s.cairn('ui', '--url').returncode == 0)
            seen = wait_for(lambda: os.path.exists(noted), 1)
            p.send_signal(signal.SIGTERM)
            p.wait(20)
            os.close(ours)
            if seen:
                os.unlink(noted)
            return seen
        expect(findings, 'both', run(True, True), True)
        expect(findings, 'no display', run(False, True), False)
        expect(findings, 'no terminal', run(True, False), False)
        expect(findings, '--no-open', run(True, True, '--no-open'), False)
    return findings


tap.run([
    one_line_with_a_link,
    a_second_call_prints_a_link_to_the_first,
    url_and_stop_need_a_server,
    stop_ends_it,
    a_killed_server_leaves_nothing_in_the_way,
    a_port_in_use_is_passed_over,
    ten_ports_in_use_are_said,
    without_a_runtime_folder_the_state_folder_serves,
    two_state_folders_share_a_runtime_folder,
    a_state_folder_that_is_not_ours_is_refused,
    wrong_usage_is_said,
    a_browser_needs_a_display_and_a_terminal,
])
