#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server of `cairn ui`: how fast it answers, what it takes when nobody asks, and what a training notices of it.

    bench/ui.py [--cairn PROGRAM] [--steps N] [--jobs N] [--clients N] [--seconds N] [--only WORD]

Each row has the median of some tries and the worst of them, the goal, and beside it what a bare program needs in the same
run: Python's http.server, sqlite3, cat, tail.  The ratio is the peer's figure divided by ours: above 1, cairn needs less.
Times are those of a client on the loopback that opens a connection for each request; CPU time is that of the process.

Everything happens in a temporary folder.  The rows of a browser need what tests/web/page needs (Debian: chromium,
chromium-driver, python3-selenium), the row of system calls needs strace; scripts/setup --test installs the browser,
`apt install strace` the other.  A row that cannot be measured says why.
"""
import argparse
import contextlib
import io
import json
import os
import platform
import random
import re
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
TESTS = os.path.join(HERE, '..', 'tests')


def options():
    p = argparse.ArgumentParser()
    p.add_argument('--cairn', default=os.path.join(HERE, '..', 'build', 'cairn'))
    p.add_argument('--steps', type=int, default=1000000)
    p.add_argument('--jobs', type=int, default=2000)
    p.add_argument('--clients', type=int, default=200)
    p.add_argument('--seconds', type=float, default=20, help='of watching, for CPU time')
    p.add_argument('--log-mib', type=int, default=1024)
    p.add_argument('--only', default='', help='sections whose name begins so')
    return p.parse_args()


O = options()
os.environ['CAIRN'] = os.path.realpath(O.cairn)
os.environ['CAIRN_TEST_DATA'] = os.path.realpath(os.path.join(TESTS, 'data'))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(TESTS, 'web'), os.path.join(TESTS, 'web', 'page'), os.path.join(TESTS, 'interop')]
WITHOUT_BROWSER = ''
with contextlib.redirect_stdout(io.StringIO()) as said:
    try:  # Debian's Selenium may be in another Python: then this program is started again by that one
        import browser
    except SystemExit:
        WITHOUT_BROWSER = said.getvalue().strip().replace('1..0 # SKIP ', '')
import webserver  # noqa: E402

CAIRN = webserver.CAIRN


# ---- the form of a row ----

def number(x):
    return f'{x:,.0f}' if abs(x) >= 1000 else f'{x:.3g}'


def figure(values, unit):
    text = f'{number(statistics.median(values))} {unit}'
    return text + (f' (worst {number(max(values))} of {len(values)})' if len(values) > 1 else '')


def row(what, values, unit, goal='', peer=None, peer_name=''):
    """peer: values in the same unit."""
    ours = statistics.median(values)
    right = ''
    if peer:
        theirs = statistics.median(peer)
        right = f'{peer_name}: {number(theirs)} {unit}'.rstrip() + (f', ratio {number(theirs / ours)}' if ours else '')
    print(f'{what:<54} {figure(values, unit):<38} {goal:<10} {right}'.rstrip(), flush=True)


def without(what, reason):
    print(f'{what:<54} not measured: {reason}', flush=True)


def timed(call, *arguments):
    """Milliseconds."""
    begin = time.perf_counter()
    call(*arguments)
    return (time.perf_counter() - begin) * 1e3


def ask(s, path, tries, headers=None):
    """Milliseconds of each try, and the last answer."""
    took, answer = [], None
    for _ in range(tries):
        begin = time.perf_counter()
        answer = s.get(path, headers, timeout=300)
        took.append((time.perf_counter() - begin) * 1e3)
        assert answer.status == 200, (path, answer.status, answer.body[:200])
    return took, answer


# ---- processes ----

def cpu_s(pid):
    """Seconds of CPU so far of all its threads, also of those that have ended, by the nanosecond."""
    return time.clock_gettime(~pid << 3 | 2)  # as clock_getcpuclockid(3) computes it: CPUCLOCK_SCHED of the process


def memory_kib(pid, name='Rss'):
    with open(f'/proc/{pid}/smaps_rollup', encoding='utf-8') as f:
        return next(int(line.split()[1]) for line in f if line.startswith(name + ':'))


class PythonServer:
    """The peer: Python's own server of files."""

    def __enter__(self):
        with socket.socket() as c:
            c.bind(('127.0.0.1', 0))
            port = c.getsockname()[1]
        begin = time.perf_counter()
        self.process = subprocess.Popen([sys.executable, '-m', 'http.server', '--bind', '127.0.0.1', str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd='/var/empty' if os.path.isdir('/var/empty') else '/')
        while True:
            try:
                socket.create_connection(('127.0.0.1', port)).close()
                break
            except OSError:
                time.sleep(0.0005)
        self.ms = (time.perf_counter() - begin) * 1e3
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def server(*arguments, **more):
    return webserver.Server('--allow-root', *arguments, **more)


# ---- what it serves ----

CONFIG = '''model: {layers: 1, heads: 2, width: 32, context: 32}
data: {path: %s, tokenizer: bytes}
train: {steps: %d, batch: 2, lr: 1e-3, allow_cpu: true}
eval: {every: 0}
checkpoint: {every: 0}
run: {dir: %s}
'''


def config(s, name, steps):
    path = f'{s.home}/{name}.yaml'
    with open(path, 'w', encoding='utf-8') as f:
        f.write(CONFIG % (os.environ['CAIRN_TEST_DATA'] + '/text/stones.txt', steps, f'{s.home}/{name}'))
    return path


def add(s, *arguments):
    done = s.cairn('job', 'add', '--json', '--gpu', 'cpu', *arguments)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)['job']['uid']


def fill_jobs(s, n):
    """Finished jobs as the queue keeps them: copies of the row of one that ran."""
    uid = add(s, '--', 'true')
    webserver.wait_for(lambda: json.loads(s.cairn('job', 'show', '--json', uid).stdout)['job']['state'] == 'finished')
    db = sqlite3.connect(f'{s.home}/state/cairn/cairn.db')
    names = [r[1] for r in db.execute('PRAGMA table_info(job)')]
    rest = ', '.join(x for x in names if x not in ('uid', 'name'))
    db.executemany(f'INSERT INTO job(uid, name, {rest}) SELECT ?, ?, {rest} FROM job WHERE uid = ?', [('0%015d' % i, f'job {i}', uid) for i in range(n - 1)])
    db.commit()
    db.close()


def fill_run(s, steps):
    """A run of that many steps, as a training in a terminal leaves it; the bytes of its log.jsonl."""
    done = s.cairn('train', config(s, 'long', 3))
    assert not done.returncode, done.stderr
    path = f'{s.home}/long/log.jsonl'
    with open(path, encoding='utf-8') as f:
        line = next(json.loads(text) for text in f if '"loss"' in text)
    dice = random.Random(1)
    with open(path, 'w', encoding='utf-8') as f:
        for step in range(1, steps + 1):
            line.update(step=step, loss=2 + dice.random(), grad_norm=dice.random(), elapsed_s=round(step * 0.12, 3))
            f.write(json.dumps(line, separators=(',', ':')) + '\n')
    return path


def adopted(s, name):
    return next(j['uid'] for j in s.get(f'/api/v1/jobs?q={name}').json()['jobs'] if j['adopted'])


# ---- sections ----

def starting():
    ours, theirs = [], []
    for _ in range(15):
        with server(wait=False) as s:
            ours.append(timed(s.start))
        with PythonServer() as p:
            theirs.append(p.ms)
    row('start to listening', ours, 'ms', '50 ms', theirs, 'http.server')


RECORD = '''(() => {
  const note = (name) => { window.__seen = window.__seen || {}; window.__seen[name] = window.__seen[name] || performance.now(); };
  const look = () => {
    const q = (s) => document.querySelector(s);
    if (q('.history .item') && !q('main .loading') && !q('main [aria-busy="true"]')) note('filled');
    if (!window.__seen || !window.__seen.filled) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})()'''


# The files that were there before the first paint, and those until now.
FETCHED = '''const paint = performance.getEntriesByName("first-contentful-paint")[0].startTime;
const all = performance.getEntriesByType("resource").filter((e) => !e.name.includes("/api/"));
return [all.filter((e) => e.responseEnd < paint), all].map((some) => ["/", ...some.map((e) => new URL(e.name).pathname)])'''


def sizes(s, paths):
    """Number, bytes on the wire, bytes."""
    paths = set(paths)
    return len(paths), sum(len(s.get(p, {'Accept-Encoding': 'gzip'}).body) for p in paths), sum(len(s.get(p).body) for p in paths)


def painting():
    if WITHOUT_BROWSER:
        return without('first paint; all panels filled', WITHOUT_BROWSER)
    with server() as s:
        s.login()
        fill_jobs(s, 100)
        with browser.Browser(s) as page:
            page.driver.execute_cdp_cmd('Page.addScriptToEvaluateOnNewDocument', {'source': RECORD})
            page.driver.execute_cdp_cmd('Network.setCacheDisabled', {'cacheDisabled': True})
            paint, filled, before = [], [], []
            for _ in range(9):
                page.driver.refresh()
                page.wait(lambda: page.js('return window.__seen && window.__seen.filled'), 'a filled page')
                paint.append(page.js('return performance.getEntriesByName("first-contentful-paint")[0].startTime'))
                filled.append(page.js('return window.__seen.filled'))
                before = page.js(FETCHED)
            row('first paint (nothing cached)', paint, 'ms', '300 ms')
            row('all panels of the jobs page filled', filled, 'ms', '600 ms')
            peer = 'unsloth Studio, by its own check-bundle-budget.ts'
            for what, (n, packed, raw), most, goals in (('before the first paint', sizes(s, before[0]), 8, ('40 kB', '160 kB')),
                                                    ('until it is filled', sizes(s, before[1]), '', ('', ''))):
                row(f'files {what}', [n], '', str(most))
                row('    gzip', [packed / 1000], 'kB', goals[0], [1496], peer)
                row('    as they are', [raw / 1000], 'kB', goals[1], [5207], peer)
    return None


def loading():
    """Every file of the page, also those of pages that nobody opens."""
    with server() as s:
        s.login()
        folder = os.path.join(HERE, '..', 'src', 'web', 'assets')
        names = ['/' + os.path.relpath(os.path.join(at, f), folder) for at, _, files in os.walk(folder) for f in files]
        small = raw = n = 0
        for name in sorted(names):
            path = '/' if name == '/index.html' else name
            packed, plain = s.get(path, {'Accept-Encoding': 'gzip'}), s.get(path)
            if packed.status == 200:  # meson.build is none of them
                small, raw, n = small + len(packed.body), raw + len(plain.body), n + 1
    row('all files of all pages', [n], '')
    row('    gzip', [small / 1000], 'kB')
    row('    as they are', [raw / 1000], 'kB')


def idling():
    with server() as s, PythonServer() as p:
        s.login()
        time.sleep(2)
        row('memory, idle: resident', [memory_kib(s.process.pid) / 1024], 'MiB', '12 MiB', [memory_kib(p.process.pid) / 1024], 'http.server')
        row('    private', [(memory_kib(s.process.pid, 'Private_Dirty') + memory_kib(s.process.pid, 'Private_Clean')) / 1024], 'MiB', '',
            [(memory_kib(p.process.pid, 'Private_Dirty') + memory_kib(p.process.pid, 'Private_Clean')) / 1024], 'http.server')
        begin, theirs = cpu_s(s.process.pid), cpu_s(p.process.pid)
        time.sleep(2 * O.seconds)
        share = 100 / (2 * O.seconds)
        row('CPU, idle', [(cpu_s(s.process.pid) - begin) * share], '% of a core', '0.1 %', [(cpu_s(p.process.pid) - theirs) * share], 'http.server')
        fill_jobs(s, O.jobs)
        time.sleep(2)
        begin = cpu_s(s.process.pid)
        time.sleep(O.seconds)
        row(f'    with {O.jobs} jobs', [(cpu_s(s.process.pid) - begin) / O.seconds * 100], '% of a core', '0.1 %')
        for n in (1, O.clients):
            watching(s, n)


def watching(s, n):
    """Clients that watch the jobs and the machine, which changes once a second."""
    before = memory_kib(s.process.pid, 'Private_Dirty')
    streams = [s.events('jobs,machine', timeout=60) for _ in range(n)]
    count, stop = [0], threading.Event()

    def drain():
        while not stop.is_set():
            for e in streams:
                e.c.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    count[0] += e.c.recv(1 << 20).count(b'event: ')
            time.sleep(0.05)
    reader = threading.Thread(target=drain)
    reader.start()
    time.sleep(3)
    count[0], cpu = 0, cpu_s(s.process.pid)
    time.sleep(O.seconds)
    row(f'CPU with {n} watching at 1 Hz, {O.jobs} jobs', [(cpu_s(s.process.pid) - cpu) / O.seconds * 100], '% of a core', '1 %' if n == 1 else '')
    if n > 1:
        row('    events received each second', [count[0] / O.seconds], '')
        row('    memory of each', [(memory_kib(s.process.pid, 'Private_Dirty') - before) / n], 'KiB', '64 KiB')
        took = sorted(ask(s, '/api/v1/jobs?limit=100', 1000)[0])
        row('    GET /jobs meanwhile, 99 of 100 within', [took[989]], 'ms', '20 ms')
    stop.set()
    reader.join()
    for e in streams:
        e.c.close()
    time.sleep(2)


def listing():
    with server() as s:
        s.login()
        fill_jobs(s, O.jobs)
        path = f'{s.home}/state/cairn/cairn.db'

        def select(limit):
            db = sqlite3.connect(path)
            db.execute(f'SELECT * FROM job ORDER BY uid DESC LIMIT {limit}').fetchall()
            db.close()
        s.get('/api/v1/jobs?limit=2000')
        row(f'GET /jobs, a page of 100 of {O.jobs}', ask(s, '/api/v1/jobs?limit=100', 50)[0], 'ms', '10 ms', [timed(select, 100) for _ in range(50)], 'sqlite3')
        before = cpu_s(s.process.pid)
        took, answer = ask(s, '/api/v1/jobs?limit=2000', 20)
        own = (cpu_s(s.process.pid) - before) / 20
        row(f'    all {len(answer.json()["jobs"])}, {len(answer.body) / 1e6:.2g} MB', took, 'ms', '10 ms', [timed(select, 2000) for _ in range(20)], 'sqlite3')
        row('    CPU of the server itself', [own * 1e3], 'ms')
        row('    a search', ask(s, '/api/v1/jobs?q=job+1234', 50)[0], 'ms')


def curves():
    with server() as s:
        s.login()
        path = fill_run(s, O.steps)
        uid = adopted(s, 'long')
        cat = [timed(lambda: subprocess.run(['cat', path], stdout=subprocess.DEVNULL, check=True)) for _ in range(5)]
        for what, query in (('the loss', '?metrics=loss'), ('all metrics', '')):
            s.stop()
            s.port = 0
            s.start()
            s.login()
            before = cpu_s(s.process.pid)
            first = ask(s, f'/api/v1/jobs/{uid}/series{query}', 1)[0]
            own = cpu_s(s.process.pid) - before
            row(f'GET /series of {O.steps} steps, {what}, first', first, 'ms', '300 ms', cat, f'cat of {os.path.getsize(path) >> 20} MiB')
            row('    CPU of the server itself', [own * 1e3], 'ms')
            tries = 3 if first[0] > 1000 else 30
            before = cpu_s(s.process.pid)
            row('    later', ask(s, f'/api/v1/jobs/{uid}/series{query}', tries)[0], 'ms', '10 ms')
            row('    CPU of the server itself', [(cpu_s(s.process.pid) - before) / tries * 1e3], 'ms')
            sep = '&' if query else '?'
            row('    a tenth of it', ask(s, f'/api/v1/jobs/{uid}/series{query}{sep}from={O.steps // 2}&to={O.steps // 2 + O.steps // 10}', tries)[0], 'ms')
        row('    memory with that run', [memory_kib(s.process.pid) / 1024], 'MiB')


def logs():
    with server() as s:
        s.login()
        line = 'step {:>9} loss 0.12345 and some words that a trainer prints beside it ............\n'
        uid = add(s, '--', 'true')
        webserver.wait_for(lambda: s.get(f'/api/v1/jobs/{uid}').json()['state'] == 'finished')
        path = f'{s.home}/state/cairn/jobs/{uid}/attempt-1/log'
        block = ''.join(line.format(i) for i in range(12000)).encode()
        with open(path, 'wb') as f:
            while f.tell() < O.log_mib << 20:
                f.write(block)
        tail = [timed(lambda: subprocess.run(['tail', '-c', '65536', path], stdout=subprocess.DEVNULL, check=True)) for _ in range(30)]
        row(f'GET /log?tail=65536 of {os.path.getsize(path) / 1e9:.2g} GB', ask(s, f'/api/v1/jobs/{uid}/log?tail=65536', 50)[0], 'ms', '10 ms', tail, 'tail -c')


def datasets():
    with server() as s:
        s.login()
        if '/api/v1/datasets/{name}/items' not in s.get('/api/v1/openapi.json').json()['paths']:
            return without('a page of a dataset of 10,000', 'this server has no datasets')
        folder = f'{s.home}/pictures'
        os.mkdir(folder)
        for i in range(10000):
            with open(f'{folder}/{i:05}.png', 'wb') as f:
                f.write(b'\x89PNG\r\n\x1a\n')
            with open(f'{folder}/{i:05}.txt', 'w', encoding='utf-8') as f:
                f.write(f'a caption of picture {i}')
        made = s.post('/api/v1/datasets', {'name': 'pictures', 'path': folder})
        assert made.status in (200, 201), made.body
        took, _ = ask(s, '/api/v1/datasets/pictures/items?limit=100', 10)
        row('a page of a dataset of 10,000, first', took[:1], 'ms', '100 ms')
        row('    later', took[1:], 'ms', '100 ms', [timed(lambda: list(os.scandir(folder))) for _ in range(10)], 'scandir')
    return None


def handing_over():
    """From the last breath of a job to the first of the next; both tell the time themselves, and no server runs."""
    took = []
    with server(wait=False) as s:
        s.cairn('job', 'queue', 'pause')
        n = 8
        for i in range(n):
            uid = add(s, '--', 'sh', '-c', f'date +%s%N >>{s.home}/marks; sleep 0.1; date +%s%N >>{s.home}/marks')
        s.cairn('job', 'queue', 'go')
        assert webserver.wait_for(lambda: os.path.exists(f'{s.home}/marks') and len(open(f'{s.home}/marks', encoding='utf-8').read().split()) == 2 * n, 60)
        marks = [int(x) for x in open(f'{s.home}/marks', encoding='utf-8').read().split()]
        took = [(b - a) / 1e6 for a, b in zip(marks[1::2], marks[2::2])]
        webserver.wait_for(lambda: json.loads(s.cairn('job', 'show', '--json', uid).stdout)['job']['state'] == 'finished')
    row('from one job to the next, without a server', took, 'ms', '1,000 ms')


def seeing_steps():
    """How long the first step that was not told yet has waited, for each event and each new figure on the page."""
    with server() as s:
        s.login()
        uid = add(s, config(s, 'live', 400000))
        path = f'{s.home}/live/log.jsonl'
        written, stop = {}, threading.Event()
        webserver.wait_for(lambda: os.path.exists(path), 60)

        def follow():
            with open(path, encoding='utf-8') as f:
                text = ''
                while not stop.is_set():
                    text += f.read()
                    *lines, text = text.split('\n')
                    now = time.time()
                    for line in lines:
                        with contextlib.suppress(ValueError, KeyError):
                            written.setdefault(json.loads(line)['step'], now)
                    time.sleep(0.001)
        threading.Thread(target=follow, daemon=True).start()

        def waits(told):
            """(time, step) in order."""
            return [(at - written[before + 1]) * 1e3 for (_, before), (at, _) in zip(told, told[1:]) if before + 1 in written]
        took, dice = [], random.Random(1)
        for _ in range(8):  # the server looks once a second, from the moment that somebody watches: other moments, other waits
            time.sleep(dice.random())
            told = []
            with s.events(f'job:{uid}') as e:
                while len(told) < 4:
                    event = e.next_event()
                    if event['event'] == 'series':
                        told.append((time.time(), event['data']['step']))
            took += waits(told)[1:]
        row('a new step to its event', took, 'ms', '1,500 ms')
        if WITHOUT_BROWSER:
            without('    to the page', WITHOUT_BROWSER)
        else:
            pixels(s, uid, waits)
        stop.set()
        s.cairn('job', 'kill', uid)
        webserver.wait_for(lambda: not s.get(f'/api/v1/jobs/{uid}').json()['alive'])


FRAMES = '''window.__steps = [];
const look = () => {
  const found = document.querySelector('dl.stats')?.innerText.match(/([0-9][0-9,\\u202f\\u00a0 .]*) of [0-9]/);
  const step = found ? Number(found[1].replace(/[^0-9]/g, '')) : 0;
  const last = window.__steps.at(-1);
  if (step && (!last || last[1] !== step)) window.__steps.push([(performance.timeOrigin + performance.now()) / 1000, step]);
  requestAnimationFrame(look);
};
look();'''


def pixels(s, uid, waits):
    took, dice = [], random.Random(2)
    with browser.Browser(s) as page:
        page.js(FRAMES)
        for _ in range(8):
            page.go('#/doctor')
            time.sleep(1 + dice.random())
            page.js('window.__steps = []')
            page.go(f'#/job/{uid}')
            page.wait(lambda: page.js('return window.__steps.length') > 4, 'steps on the page', 60)
            took += waits(page.js('return window.__steps'))[1:]
        row('    to the frame that shows it', took, 'ms', '1,500 ms')


def restarting():
    """The server and the supervisor of a job are killed: until a new server has the right state of all jobs."""
    took = []
    for _ in range(5):
        with server() as s:
            s.login()
            fill_jobs(s, O.jobs)
            uid = add(s, '--', 'sleep', '600')
            webserver.wait_for(lambda: s.get(f'/api/v1/jobs/{uid}').json()['state'] == 'active')
            pid = s.get(f'/api/v1/jobs/{uid}').json()['pid']
            s.process.kill()
            s.process.wait()
            os.kill(pid, 9)
            s.port = 0
            begin = time.perf_counter()
            s.start()
            s.login()
            while s.get('/api/v1/jobs?limit=100').json()['jobs'][0]['state'] != 'lost':
                time.sleep(0.005)
            took.append((time.perf_counter() - begin) * 1e3)
    row(f'restart until all {O.jobs} jobs are right', took, 'ms', '1,000 ms')


# ---- what a training notices ----

WRITES = re.compile(r'^(write|writev|pwrite64|pwritev2?|fsync|fdatasync|rename\w*|unlink\w*|ftruncate)\(')
STATS = re.compile(r'^(newfstatat|stat|lstat|statx|fstat)\(')
OPENED = re.compile(r'^openat\([^,]*, "([^"]*)", [A-Z_|]*O_(?:WRONLY|RDWR)')


def traced(s, name, steps, watched):
    """What a training does under strace: seconds, counts of calls, the names of files that it opens to write."""
    trace, told = f'{s.home}/{name}.strace', 0
    begin = time.perf_counter()
    p = subprocess.Popen(['strace', '-f', '-qq', '-o', trace, CAIRN, 'train', config(s, name, steps)], env=s.environment, cwd=s.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if watched:
        webserver.wait_for(lambda: p.poll() is not None or any(j['name'] == name for j in s.get('/api/v1/jobs').json()['jobs']), 60)
        with s.events(f'jobs,machine,job:{adopted(s, name)}', timeout=60) as e:
            while p.poll() is None:
                told += e.next_event()['event'] in ('series', 'job')
                s.get('/api/v1/jobs')
    p.wait()
    found = {'s': time.perf_counter() - begin, 'told': told, 'writes': 0, 'stats': 0, 'control': 0, 'files': set()}
    with open(trace, encoding='utf-8', errors='replace') as f:
        for line in f:
            call = line.split(None, 1)[1]
            found['writes'] += bool(WRITES.match(call))
            found['stats'] += bool(STATS.match(call))
            found['control'] += 'control.json' in call
            if opened := OPENED.match(call):
                found['files'].add(re.sub(r'[0-9]+', 'N', os.path.basename(opened.group(1)).replace(name, 'NAME')))
    return found


def disturbing():
    with server(wait=False) as s:
        steps = speeds(s)
        if not shutil.which('strace'):
            return without('system calls of a training', 'no strace (Debian: apt install strace)')
        steps = min(steps, 2000)  # strace makes each call slow
        alone = traced(s, 'alone', steps, False)
        s.start()
        s.login()
        seen = traced(s, 'watched', steps, True)
    print(f'    {steps} steps under strace, watched ({seen["told"]} events) and without a server; a training writes by the clock:')
    row('    files written that it does not write alone', [len(seen['files'] - alone['files'])], '', '0')
    row('    writes, renames and syncs per second', [seen['writes'] / seen['s']], '', '', [alone['writes'] / alone['s']], 'alone')
    row('    stat calls per step', [seen['stats'] / steps], '', '', [alone['stats'] / steps], 'alone')
    row('    of those for control.json', [seen['control'] / steps], '', '1', [alone['control'] / steps], 'alone')
    return None


def speeds(s):
    """Seconds per step with and without somebody who watches, in turns, and the CPU that the server takes meanwhile."""
    alone, seen, share = [], [], []

    def train(name, steps):
        done = subprocess.run([CAIRN, 'train', config(s, name, steps)], env=s.environment, cwd=s.home, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, check=False)
        assert not done.returncode, done.stderr
        with open(f'{s.home}/{name}/log.jsonl', encoding='utf-8') as f:
            lines = [json.loads(line) for line in f]
        lines = [x for x in lines if 'elapsed_s' in x and 'loss' in x]
        return (lines[-1]['elapsed_s'] - lines[20]['elapsed_s']) / (lines[-1]['step'] - lines[20]['step']) * 1e3
    steps = max(200, int(5000 / train('probe', 200)))
    for i in range(3):
        alone.append(train(f'a{i}', steps))
        s.port = 0
        s.start()
        s.login()
        stop = threading.Event()
        with s.events('jobs,machine', timeout=5) as e:
            def watch():
                while not stop.is_set():
                    with contextlib.suppress(socket.timeout, EOFError, OSError):
                        e.next_event()
            reader = threading.Thread(target=watch)
            reader.start()
            cpu, begin = cpu_s(s.process.pid), time.perf_counter()
            seen.append(train(f'w{i}', steps))
            share.append((cpu_s(s.process.pid) - cpu) / (time.perf_counter() - begin) * 100)
            stop.set()
            reader.join()
        s.stop()
    print(f'    a step while somebody watches, and alone, best of {len(seen)}:')
    row('    step time', [min(seen)], 'ms', '+0.1 %', [min(alone)], 'alone')
    row('    CPU of the server meanwhile', share, '% of a core', '1 %')
    return steps


def machine():
    with open('/proc/cpuinfo', encoding='utf-8') as f:
        name = next((line.split(':')[1].strip() for line in f if line.startswith('model name')), '?')
    return f'{name}, {len(os.sched_getaffinity(0))} cores, Linux {platform.release()}, load {os.getloadavg()[0]:.1f} at the start'


SECTIONS = starting, painting, loading, idling, listing, curves, logs, datasets, handing_over, seeing_steps, restarting, disturbing


def main():
    print(machine())
    print(subprocess.run([CAIRN, '--version'], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[0])
    print(f'{"":<54} {"":<38} goal       peer', flush=True)
    for section in SECTIONS:
        if section.__name__.startswith(O.only):
            section()
    print(f'load {os.getloadavg()[0]:.1f} at the end')


if __name__ == '__main__':
    main()
