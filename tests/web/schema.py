# SPDX-License-Identifier: Apache-2.0
"""What schemathesis makes of openapi.json, sent to the server: no 5xx, no answer that is not described; with a session and without one.

It keeps what the server tells it: the jobs that it adds are those that it asks for, edits and starts later.
"""
import os
import subprocess
import sys

import tap
from webserver import MACHINE, Server

# Not asked: whether each value that the schema allows is taken.  Values have meanings that a schema does not know: a GPU
# that exists, a folder, an offset.  Nor what a wrong cookie does beside the right token, which is nothing, and what
# unknown methods get without a session, which is 401.  security.py has both.
UNASKED = 'positive_data_acceptance,missing_required_header,ignored_auth'
# A wrong If-Match is answered before the body is looked at; a long body before it is read.
SETTINGS = '[checks.negative_data_rejection]\nexpected-statuses = ["400", "401", "403", "404", "405", "409", "412", "413", "415", "422"]\n'
EXAMPLES = os.environ.get('SCHEMA_EXAMPLES', '80')


def run(server, unasked, *more):
    """Findings of a run over all operations but the stream, which does not end."""
    command = [os.path.join(os.path.dirname(sys.executable), 'schemathesis'), '--config-file', f'{server.home}/schemathesis.toml', 'run', f'{server.home}/openapi.json',
               '--url', f'http://localhost:{server.port}', '--exclude-path', '/api/v1/events', '--checks', 'all', '--exclude-checks', unasked, '--max-examples', EXAMPLES,
               '--seed', '1', '--phases', 'examples,coverage,fuzzing', '--request-timeout', '60', '--continue-on-failure', '--no-color', '--warnings', 'off', *more]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8', errors='replace', cwd=server.home, check=False)
    findings = [] if done.returncode == 0 else done.stdout.splitlines()
    if server.process.poll() is not None:
        findings.append('the server ended: ' + server.said()[-2000:])
    elif server.get('/api/v1/session').status != 200:
        findings.append('the server does not answer any more')
    return findings


def start():
    # It makes up commands: a server that runs them is no toy for it.
    server = Server('--allow-root', '--no-run', '--root', MACHINE).login()
    with open(f'{server.home}/openapi.json', 'wb') as f:
        f.write(server.get('/api/v1/openapi.json').body)
    with open(f'{server.home}/schemathesis.toml', 'w', encoding='utf-8') as f:
        f.write(SETTINGS)
    return server


def answers_are_those_that_are_described():
    with start() as s:
        return run(s, UNASKED, '--header', f'Authorization: Bearer {s.token()}', '--exclude-path', '/api/v1/logout')


def without_a_session_nothing_is_told():
    with start() as s:
        return run(s, UNASKED + ',unsupported_method')


tap.run([answers_are_those_that_are_described, without_a_session_nothing_is_told])
