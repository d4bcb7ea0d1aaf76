# SPDX-License-Identifier: Apache-2.0
"""Files of named folders: what can be reached, ranges, types, uploads, the trash."""
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
import time

import tap
from webserver import Server, expect, wait_for

TEXT = b'0123456789abcdefghijklmnopqrstuvwxyz'


class Home:
    """A folder with files, one beside it, and a server that shows the first as `data` and, unchangeable, as `fixed`."""

    def __init__(self, *options):
        self.top = tempfile.mkdtemp(prefix='cairn-files-')
        self.data = os.path.join(self.top, 'data')
        os.makedirs(os.path.join(self.data, 'sub', 'deep'))
        for name in ('a.txt', 'sub/b.txt', 'sub/deep/c.png', '.hidden', 'sub/.hidden.txt', 'page.html', 'drawing.svg', 'w.safetensors',
                     'no-end', 'grüße ✓.txt', 'A.PNG', 'clip.mp4', 'job.json'):
            with open(os.path.join(self.data, name), 'wb') as f:
                f.write(TEXT)
        with open(os.path.join(self.top, 'secret.txt'), 'wb') as f:
            f.write(b'secret')
        self.server = Server('--folder', f'data={self.data}', '--folder', f'fixed={self.data}:ro', *options).login()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.__exit__()
        shutil.rmtree(self.top)

    def get(self, path, headers=None, folder='data'):
        return self.server.get(f'/api/v1/files/{folder}/{path}', headers)

    def put(self, path, body, headers=None, folder='data', **more):
        return self.server.change('PUT', f'/api/v1/files/{folder}/{path}', body=body,
                                  headers={'Content-Type': 'application/octet-stream', **(headers or {})}, **more)

    def path(self, name):
        return os.path.join(self.data, name)


# ---- reading ----

def files_are_read():
    findings = []
    with Home() as h:
        for name in ('a.txt', 'sub/b.txt', 'sub/deep/c.png', 'no-end', 'gr%C3%BC%C3%9Fe%20%E2%9C%93.txt', 'sub%2Fb.txt'):
            answer = h.get(name)
            expect(findings, name, (answer.status, answer.body), (200, TEXT) if '%2F' not in name else (400, answer.body))
        expect(findings, 'HEAD', (h.server.send('HEAD', '/api/v1/files/data/a.txt').status), 200)
        expect(findings, 'length', h.server.send('HEAD', '/api/v1/files/data/a.txt').headers['content-length'], str(len(TEXT)))
        for name in ('none.txt', 'sub', 'sub/', '', 'a.txt/x'):
            expect(findings, name, h.get(name).status, 404)
        expect(findings, 'another folder', h.get('a.txt', folder='other').status, 404)
    return findings


def dot_files_are_hidden():
    findings = []
    with Home() as h:
        for name in ('.hidden', 'sub/.hidden.txt', '.cairn-trash/x', '%2ehidden'):
            expect(findings, name, h.get(name).status, 404)
    return findings


TRAVERSALS = [
    '../secret.txt', '..%2fsecret.txt', '%2e%2e/secret.txt', '%2e%2e%2fsecret.txt', '..%5csecret.txt', 'sub/../../secret.txt',
    'sub/..%2f..%2fsecret.txt', '..%252fsecret.txt', '%252e%252e/secret.txt', '..%c0%afsecret.txt', '%c0%ae%c0%ae/secret.txt',
    '..%ef%bc%8fsecret.txt', 'a.txt%00.png', '%00', 'sub/deep/../../../secret.txt', '/etc/passwd', '%2fetc%2fpasswd', '//etc/passwd',
    './a.txt', 'sub//b.txt', 'sub/./b.txt', '..', '.', '%2e', '..;/secret.txt', '..%00/secret.txt', 'sub/%2e%2e/%2e%2e/secret.txt',
    '\\..\\secret.txt', '%5c..%5csecret.txt', 'out.txt', 'outdir/secret.txt', 'abs.txt', 'self/root/etc/passwd', 'self/cwd/a.txt',
    'fifo', 'device', 'socket', 'loop', '~/secret.txt', '....//secret.txt', '..%u2215secret.txt', 'x' * 300, 'a/' * 100 + 'b', '%zz', '%',
    'a.txt%', 'a.txt%2', 'a.txt%0a', 'a.txt%0d%0aX: y', 'a%09.txt',
]


def nothing_outside_can_be_reached():
    findings = []
    import socket
    with Home() as h:
        os.symlink('../secret.txt', h.path('out.txt'))
        os.symlink('..', h.path('outdir'))
        os.symlink(os.path.join(h.top, 'secret.txt'), h.path('abs.txt'))
        os.symlink('/proc/self', h.path('self'))
        os.symlink('loop', h.path('loop'))
        os.symlink('/dev/zero', h.path('device'))
        os.mkfifo(h.path('fifo'))
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(h.path('socket'))
            for path in TRAVERSALS:
                answer = h.get(path)
                if answer.status not in (400, 404) or b'secret' in answer.body.replace(b'secret.txt', b'') or b'root:' in answer.body:
                    findings.append(f'{path}: {answer.status} {answer.body[:60]!r}')
        expect(findings, 'it still serves', h.get('a.txt').status, 200)
    return findings


def links_inside_are_followed():
    findings = []
    with Home() as h:
        os.symlink('sub/b.txt', h.path('near.txt'))
        os.symlink('sub', h.path('nearby'))
        expect(findings, 'a file', h.get('near.txt').status, 200)
        expect(findings, 'a folder', h.get('nearby/b.txt').status, 200)
    return findings


def a_race_of_links_shows_nothing_outside():
    """A folder becomes a link outside and back while it is read."""
    findings = []
    with Home() as h:
        stop = threading.Event()
        shutil.copy(os.path.join(h.top, 'secret.txt'), os.path.join(h.top, 'b.txt'))

        def swap():
            while not stop.is_set():
                os.rename(h.path('sub'), h.path('sub2'))
                os.symlink('..', h.path('sub'))
                time.sleep(0.0005)
                os.unlink(h.path('sub'))
                os.rename(h.path('sub2'), h.path('sub'))
                time.sleep(0.0005)
        thread = threading.Thread(target=swap)
        thread.start()
        seen = {}
        for _ in range(400):
            answer = h.get('sub/b.txt')
            seen[answer.status] = seen.get(answer.status, 0) + 1
            if answer.body == b'secret':
                findings.append('a file outside was sent')
                break
        stop.set()
        thread.join()
        if not seen.get(200):
            findings.append(f'never the file itself: {seen}')
    return findings


def types_follow_the_table():
    findings = []
    with Home() as h:
        for name, kind, shown in (('a.txt', 'text/plain; charset=utf-8', True), ('sub/deep/c.png', 'image/png', True),
                                  ('A.PNG', 'image/png', True), ('clip.mp4', 'video/mp4', True), ('job.json', 'application/json', True),
                                  ('page.html', 'text/html; charset=utf-8', False), ('drawing.svg', 'image/svg+xml', False),
                                  ('w.safetensors', 'application/octet-stream', False), ('no-end', 'application/octet-stream', False)):
            answer = h.get(name)
            expect(findings, f'{name}: type', answer.headers['content-type'], kind)
            expect(findings, f'{name}: disposition', answer.headers['content-disposition'].split(';')[0], 'inline' if shown else 'attachment')
        answer = h.get('gr%C3%BC%C3%9Fe%20%E2%9C%93.txt')
        expect(findings, 'name', answer.headers['content-disposition'], "inline; filename*=UTF-8''gr%C3%BC%C3%9Fe%20%E2%9C%93.txt")
    return findings


def ranges_are_parts():
    findings = []
    n = len(TEXT)
    with Home() as h:
        for asked, status, want in (('bytes=0-9', 206, TEXT[:10]), ('bytes=10-', 206, TEXT[10:]), ('bytes=-5', 206, TEXT[-5:]),
                                    ('bytes=0-0', 206, TEXT[:1]), (f'bytes={n - 1}-', 206, TEXT[-1:]), ('bytes=0-99999', 206, TEXT),
                                    ('bytes=-99999', 206, TEXT), (f'bytes={n}-', 416, None), ('bytes=99-100', 416, None), ('bytes=-0', 416, None),
                                    ('bytes=5-2', 200, TEXT), ('bytes=a-b', 200, TEXT), ('lines=0-1', 200, TEXT), ('bytes=0-1,3-4', 200, TEXT),
                                    ('bytes=', 200, TEXT), ('bytes=-', 200, TEXT), ('bytes=99999999999999999999-', 416, None)):
            answer = h.get('a.txt', {'Range': asked})
            expect(findings, asked, answer.status, status)
            if want is not None:
                expect(findings, asked, answer.body, want)
        part = h.get('a.txt', {'Range': 'bytes=10-19'})
        expect(findings, 'Content-Range', part.headers['content-range'], f'bytes 10-19/{n}')
        expect(findings, 'Content-Length', part.headers['content-length'], '10')
        expect(findings, 'Accept-Ranges', part.headers['accept-ranges'], 'bytes')
        expect(findings, 'Content-Range of 416', h.get('a.txt', {'Range': 'bytes=99-'}).headers['content-range'], f'bytes */{n}')
        open(h.path('empty.txt'), 'w').close()
        expect(findings, 'an empty file', h.get('empty.txt', {'Range': 'bytes=0-'}).status, 416)
        expect(findings, 'an empty file', (h.get('empty.txt').status, h.get('empty.txt').body), (200, b''))
    return findings


def tags_spare_the_body():
    findings = []
    with Home() as h:
        first = h.get('a.txt')
        tag = first.headers['etag']
        again = h.get('a.txt', {'If-None-Match': tag})
        expect(findings, 'the same', (again.status, again.body, again.headers['etag']), (304, b'', tag))
        expect(findings, 'one of several', h.get('a.txt', {'If-None-Match': f'"x", {tag}'}).status, 304)
        expect(findings, 'cache', first.headers['cache-control'], 'private, no-cache')
        expect(findings, 'If-Range', h.get('a.txt', {'Range': 'bytes=0-3', 'If-Range': tag}).status, 206)
        expect(findings, 'If-Range of another', h.get('a.txt', {'Range': 'bytes=0-3', 'If-Range': '"x"'}).status, 200)
        time.sleep(0.02)
        with open(h.path('a.txt'), 'ab') as f:
            f.write(b'more')
        expect(findings, 'after a change', h.get('a.txt', {'If-None-Match': tag}).status, 200)
    return findings


# ---- uploads ----

def a_file_is_uploaded():
    findings = []
    body = os.urandom(3_000_000)
    with Home() as h:
        answer = h.put('new/folder/one.png', body)
        expect(findings, 'status', (answer.status, answer.json().get('size_bytes')), (201, len(body)))
        expect(findings, 'content', open(h.path('new/folder/one.png'), 'rb').read() == body, True)
        expect(findings, 'tag', answer.headers['etag'], h.get('new/folder/one.png').headers['etag'])
        expect(findings, 'nothing is left', os.listdir(h.path('new/folder')), ['one.png'])
        expect(findings, 'once more', h.put('new/folder/one.png', b'other').status, 409)
        expect(findings, 'unchanged', os.path.getsize(h.path('new/folder/one.png')), len(body))
        expect(findings, 'an empty one', h.put('empty.txt', b'').status, 201)
    return findings


def an_upload_goes_on_where_it_broke():
    findings = []
    body = os.urandom(2_000_000)
    with Home() as h:
        s = h.server
        head = (f'PUT /api/v1/files/data/big.webm HTTP/1.1\r\nHost: {s.host}\r\nCookie: {s.cookie}\r\nX-Cairn-CSRF: {s.csrf}\r\n'
                f'Content-Type: application/octet-stream\r\nContent-Length: {len(body)}\r\n\r\n').encode()
        with s.connect() as c:
            c.sendall(head + body[:700_000])
            part = h.path('.cairn-upload-big.webm.part')
            if not wait_for(lambda: os.path.exists(part) and os.path.getsize(part) == 700_000):
                findings.append('the first bytes did not arrive')
            expect(findings, 'a second at the same time', h.put('big.webm', body).status, 409)
        wait_for(lambda: 'already' not in h.put('big.webm', body[5:], {'X-Offset': '5'}).json()['detail'])
        wrong = h.put('big.webm', body[5:], {'X-Offset': '5'})
        expect(findings, 'a wrong offset', (wrong.status, wrong.headers.get('x-offset')), (409, '700000'))
        expect(findings, 'no file yet', os.path.exists(h.path('big.webm')), False)
        rest = h.put('big.webm', body[700_000:], {'X-Offset': '700000'})
        expect(findings, 'the rest', rest.status, 201)
        same = hashlib.sha256(open(h.path('big.webm'), 'rb').read()).digest() == hashlib.sha256(body).digest()
        expect(findings, 'content', same, True)
        expect(findings, 'the part is gone', os.path.exists(part), False)
    return findings


def uploads_follow_the_rules():
    findings = []
    with Home() as h:
        for name in ('x.html', 'x.svg', 'x.sh', 'x.py', 'x', 'x.png.exe', 'x.so', 'x.js'):
            expect(findings, name, h.put(name, b'x').status, 415)
        for name in ('.x.png', '../x.png', 'sub/../../x.png', 'x%00.png', 'x%0a.png', 'n' * 201 + '.png', '%ff.png', '', '.d/x.png'):
            expect(findings, name, h.put(name, b'x').status, {400, 404})
        expect(findings, 'below a file', h.put('a.txt/x.png', b'x').status, 409)
        expect(findings, 'a read-only folder', h.put('x.png', b'x', folder='fixed').status, 403)
        expect(findings, 'another folder', h.put('x.png', b'x', folder='other').status, 404)
        expect(findings, 'no length', h.put('x.png', b'1\r\nx\r\n0\r\n\r\n', {'Transfer-Encoding': 'chunked'}).status, 411)
        expect(findings, '4 GiB and a byte', h.put('x.png', b'', {'Content-Length': str((4 << 30) + 1)}).status, 413)
        expect(findings, 'an offset above', h.put('x.png', b'xx', {'X-Offset': str((4 << 30) - 1)}).status, 413)
        for offset in ('-1', 'x', '1e3', '99999999999999999999'):
            expect(findings, f'X-Offset: {offset}', h.put('x.png', b'x', {'X-Offset': offset}).status, 400)
        expect(findings, 'nothing was made', sorted(os.listdir(h.top)), ['data', 'secret.txt'])
        os.symlink('/etc', h.path('etc'))
        expect(findings, 'through a link', h.put('etc/x.png', b'x').status, 404)
        os.symlink('/tmp/cairn-nothing', h.path('dangling.png'))
        expect(findings, 'onto a link', h.put('dangling.png', b'x').status, 409)
    return findings


def a_full_disk_is_said_before():
    if os.geteuid():
        raise tap.Skip('mounts a small disk, which only root can')
    findings = []
    with Home() as h:
        small = os.path.join(h.top, 'small')
        os.mkdir(small)
        if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=3g', 'none', small], stderr=subprocess.DEVNULL).returncode:
            raise tap.Skip('no disk can be mounted here')
        try:
            with Server('--folder', f'small={small}') as s:
                s.login()
                put = {'Content-Type': 'application/octet-stream'}
                expect(findings, 'fits', s.change('PUT', '/api/v1/files/small/a.png', body=b'x' * 1000, headers=put).status, 201)
                head = {**put, 'Content-Length': str((1 << 30) + 1000), 'Expect': '100-continue'}
                expect(findings, 'leaves under 2 GiB', s.change('PUT', '/api/v1/files/small/b.png', body=b'', headers=head).status, 507)
        finally:
            subprocess.run(['umount', small])
    return findings


# ---- the trash ----

def deleting_moves_to_the_trash():
    findings = []
    with Home() as h:
        s = h.server

        def delete(name, folder='data', headers=None):
            return s.change('DELETE', f'/api/v1/files/{folder}/{name}', headers=headers)
        answer = delete('sub/b.txt')
        expect(findings, 'status', answer.status, 200)
        where = answer.json()['trash']
        expect(findings, 'where', (where.startswith('.cairn-trash/'), where.endswith('/sub/b.txt')), (True, True))
        expect(findings, 'its bytes', open(h.path(where), 'rb').read(), TEXT)
        expect(findings, 'gone', (h.get('sub/b.txt').status, delete('sub/b.txt').status), (404, 404))
        places = set()
        for _ in range(3):
            with open(h.path('sub/b.txt'), 'wb') as f:
                f.write(b'again')
            places.add(delete('sub/b.txt').json()['trash'])
        expect(findings, 'places', len(places | {where}), 4)
        expect(findings, 'a folder', delete('sub/deep').status, 404)
        expect(findings, 'a read-only folder', delete('a.txt', 'fixed').status, 403)
        expect(findings, 'a dot file', delete('.hidden').status, 404)
        expect(findings, 'traversal', delete('../secret.txt').status, {400, 404})
        expect(findings, 'another version', delete('a.txt', headers={'If-Match': '"x"'}).status, 412)
        tag = h.get('a.txt').headers['etag']
        expect(findings, 'this version', delete('a.txt', headers={'If-Match': tag}).status, 200)
        expect(findings, 'outside', os.path.exists(os.path.join(h.top, 'secret.txt')), True)
    return findings


def folders_are_named_in_the_session():
    findings = []
    with Home() as h:
        folders = h.server.get('/api/v1/session').json()['folders']
        expect(findings, 'folders', folders, [{'name': 'data', 'path': os.path.realpath(h.data), 'read_only': False},
                                              {'name': 'fixed', 'path': os.path.realpath(h.data), 'read_only': True}])
    for option in ('data', 'data=', '=x', 'a/b=/tmp', '.x=/tmp', 'data=/no/such/folder', 'data=/etc/passwd', 'a b=/tmp'):
        with Server(wait=False) as s:
            done = s.cairn('ui', '--no-open', '--port', '0', '--folder', option)
            expect(findings, f'--folder {option}', done.returncode, {1, 2})
    return findings


tap.run([
    files_are_read,
    dot_files_are_hidden,
    nothing_outside_can_be_reached,
    links_inside_are_followed,
    a_race_of_links_shows_nothing_outside,
    types_follow_the_table,
    ranges_are_parts,
    tags_spare_the_body,
    a_file_is_uploaded,
    an_upload_goes_on_where_it_broke,
    uploads_follow_the_rules,
    a_full_disk_is_said_before,
    deleting_moves_to_the_trash,
    folders_are_named_in_the_session,
])
