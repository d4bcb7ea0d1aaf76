# SPDX-License-Identifier: Apache-2.0
"""A server of `cairn ui` for a test, and a client that can send anything.

    with Server('--read-only') as s:
        s.login()
        answer = s.get('/api/v1/session')
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

CAIRN = os.environ['CAIRN']
DATA = os.environ['CAIRN_TEST_DATA']
MACHINE = os.path.join(DATA, 'sysfs', 'gfx1151-strixhalo-aurora-112g-gtt')


class Answer:
    """Status, headers (names in lower case; of several of one name the last) and body."""

    def __init__(self, raw):
        head, _, body = raw.partition(b'\r\n\r\n')
        lines = head.decode('latin-1').split('\r\n')
        self.status = int(lines[0].split()[1]) if lines[0].startswith('HTTP/') else 0
        self.pairs = [(k.lower(), v.strip()) for k, _, v in (line.partition(':') for line in lines[1:])]
        self.headers = dict(self.pairs)
        self.body = unchunk(body) if self.headers.get('transfer-encoding') == 'chunked' else body

    def json(self):
        return json.loads(self.body)


def unchunk(body):
    out = b''
    while body:
        size, _, body = body.partition(b'\r\n')
        n = int(size or b'0', 16)
        out, body = out + body[:n], body[n + 2:]
    return out


class Server:
    """Starts `cairn ui` with a state folder of its own, on any free port."""

    def __init__(self, *arguments, environment=None, port=0, wait=True):
        self.home = tempfile.mkdtemp(prefix='cairn-web-')
        for name in ('state', 'runtime', 'cache'):
            os.mkdir(os.path.join(self.home, name), 0o700)
        self.environment = {
            'PATH': '/usr/bin:/bin', 'HOME': self.home, 'XDG_STATE_HOME': f'{self.home}/state', 'LC_ALL': 'C.UTF-8',
            'XDG_RUNTIME_DIR': f'{self.home}/runtime', 'XDG_CACHE_HOME': f'{self.home}/cache',
            **{k: v for k, v in os.environ.items() if k.endswith('SAN_OPTIONS')}, **(environment or {})}
        self.arguments = list(arguments)
        self.cookie = self.csrf = self.process = None
        self.port = port
        if wait:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, kind=None, *_):
        status = self.stop()
        said = self.said() if status else ''
        shutil.rmtree(self.home, ignore_errors=True)
        if status and not kind:
            raise RuntimeError(f'the server ended with {status}: {said}')

    # ---- the process ----

    def start(self):
        self.log = open(os.path.join(self.home, 'log'), 'w+b')
        self.process = subprocess.Popen([CAIRN, 'ui', '--no-open', '--json', '--port', str(self.port), *self.arguments],
                                        env=self.environment, stdout=subprocess.PIPE, stderr=self.log, cwd=self.home)
        lines = b''
        while not lines.endswith(b'}\n'):
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f'no server: {self.said()}')
            lines += line
        self.link = json.loads(lines)['link']
        self.state = json.load(open(self.state_file(), encoding='utf-8'))
        self.port = self.state['port']
        self.host = f'localhost:{self.port}'

    def stop(self, sig=signal.SIGTERM):
        """The exit status."""
        if not self.process:
            return None
        if self.process.poll() is None:
            self.process.send_signal(sig)
        try:
            status = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.process.stdout.close()
        self.process = None
        return status

    def state_file(self):
        return os.path.join(self.home, 'runtime', 'cairn', 'ui.json')

    def token(self):
        return open(os.path.join(self.home, 'state', 'cairn', 'token'), encoding='utf-8').read().strip()

    def said(self):
        self.log.flush()
        return open(self.log.name, encoding='utf-8', errors='replace').read()

    def cairn(self, *arguments):
        """Another command of the same user."""
        return subprocess.run([CAIRN, *arguments], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding='utf-8', cwd=self.home, timeout=60)

    # ---- requests ----

    def connect(self, timeout=20):
        where = self.state['listen']
        if where.startswith('unix:'):
            c = socket.socket(socket.AF_UNIX)
            c.settimeout(timeout)
            c.connect(where[5:])
            return c
        return socket.create_connection(('127.0.0.1', self.port), timeout)

    def raw(self, data, timeout=20):
        """Sends bytes, and reads until the server closes the connection."""
        with self.connect(timeout) as c:
            try:
                c.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it may have answered before
            return Answer(read_all(c))

    def send(self, method, path, headers=None, body=b'', cookie=None, host=None, timeout=20):
        """headers: a list of pairs, or a dict; a value of None leaves the header out."""
        pairs = list(headers.items()) if isinstance(headers, dict) else list(headers or [])
        names = [k.lower() for k, _ in pairs]
        if 'host' not in names:
            pairs.insert(0, ('Host', host or self.host))
        cookie = self.cookie if cookie is None else cookie
        if cookie and 'cookie' not in names:
            pairs.append(('Cookie', cookie))
        if (body or method in ('POST', 'PUT')) and not {'content-length', 'transfer-encoding'} & set(names):
            pairs.append(('Content-Length', str(len(body))))
        pairs.append(('Connection', 'close'))
        text = f'{method} {path} HTTP/1.1\r\n' + ''.join(f'{k}: {v}\r\n' for k, v in pairs if v is not None) + '\r\n'
        return self.raw(text.encode('utf-8', 'surrogateescape') + body, timeout)

    def get(self, path, headers=None, **more):
        return self.send('GET', path, headers, **more)

    def change(self, method, path, value=None, headers=None, **more):
        """As the page does it: with the token against forgery."""
        own = {'Content-Type': 'application/json', 'X-Cairn-CSRF': self.csrf, **(headers or {})}
        body = more.pop('body', b'' if value is None else json.dumps(value).encode())
        return self.send(method, path, own, body, **more)

    def post(self, path, value=None, headers=None, **more):
        return self.change('POST', path, value, headers, **more)

    def use(self, link):
        """Opens a one-time link; the answer."""
        path = '/' + link.split('/', 3)[3]
        return self.get(path, cookie='')

    def login(self, link=None):
        answer = self.use(link or self.link)
        assert answer.status == 303, (answer.status, answer.body)
        self.cookie = answer.headers['set-cookie'].split(';')[0]
        self.csrf = self.get('/api/v1/session').json()['csrf']
        return self

    def events(self, topics, headers=None, timeout=20):
        return Events(self, topics, headers, timeout)


class Events:
    """A stream of events; iterate over it, or call next_event."""

    def __init__(self, server, topics, headers=None, timeout=20):
        self.c = server.connect(timeout)
        lines = [f'GET /api/v1/events?topics={topics} HTTP/1.1', f'Host: {server.host}', f'Cookie: {server.cookie}']
        lines += [f'{k}: {v}' for k, v in (headers or {}).items()]
        self.c.sendall(('\r\n'.join(lines) + '\r\n\r\n').encode())
        self.buffer = b''
        while b'\r\n\r\n' not in self.buffer:
            self.buffer += self.read_some()
        head, _, self.buffer = self.buffer.partition(b'\r\n\r\n')
        self.status = int(head.split()[1])
        self.text = b''

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.c.close()

    def read_some(self):
        data = self.c.recv(65536)
        if not data:
            raise EOFError('the stream ended')
        return data

    def next_block(self):
        """The lines of one event or comment."""
        while b'\n\n' not in self.text:
            self.take_chunk()
        block, _, self.text = self.text.partition(b'\n\n')
        return block.decode()

    def take_chunk(self):
        while b'\r\n' not in self.buffer:
            self.buffer += self.read_some()
        size, _, rest = self.buffer.partition(b'\r\n')
        n = int(size, 16)
        while len(rest) < n + 2:
            rest += self.read_some()
        self.text += rest[:n]
        self.buffer = rest[n + 2:]

    def next_event(self):
        """{'id', 'event', 'data'}; comments and other fields are left out."""
        while True:
            fields = dict(line.split(': ', 1) for line in self.next_block().split('\n') if ': ' in line and line[0] != ':')
            if 'event' in fields:
                fields['data'] = json.loads(fields['data'])
                return fields


def read_all(c):
    out = b''
    while True:
        try:
            data = c.recv(65536)
        except ConnectionResetError:
            return out
        if not data:
            return out
        out += data


def wait_for(condition, seconds=20):
    """Polls until it is true; whether it became so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def expect(findings, what, got, want):
    """Adds a finding unless the two are equal, or `got` is one of a tuple or set."""
    if got != want and not (isinstance(want, (tuple, set)) and got in want):
        findings.append(f'{what}: {got!r}, want {want!r}')
