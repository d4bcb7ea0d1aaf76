# SPDX-License-Identifier: Apache-2.0
"""axe.py BUILD-DIR: axe-core finds no violation of WCAG 2.2 AA on any page, in both themes, wide and narrow.

axe-core is a file in a package of the Python index, which pip fetches once into BUILD-DIR.
"""
import glob
import os
import subprocess
import sys
import zipfile

import browser
import tap
from browser import MACHINE, Browser, Server

PACKAGE = 'axe_playwright_python==0.1.8'
MEMBER = 'axe_playwright_python/axe.min.js'
RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
CONFIG = '''model: {layers: 1, heads: 2, width: 32, context: 32}
data: {path: words.txt}
train: {steps: 60, batch: 4, allow_cpu: true}
sample: {every: 30}
'''


def axe_core(build):
    """Its text; pip says why it is not to be had."""
    folder = os.path.join(build, 'axe')
    if not glob.glob(f'{folder}/*.whl'):
        python = next((p for p in (sys.executable, '/usr/bin/python3', 'python3') if subprocess.run([p, '-m', 'pip', '--version'], capture_output=True).returncode == 0), None)
        if not python:
            browser.skip('no pip, which fetches axe-core')
        done = subprocess.run([python, '-m', 'pip', 'download', '--quiet', '--no-deps', '--retries', '1', '--timeout', '20', '--disable-pip-version-check',
                               '--dest', folder, PACKAGE], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8', errors='replace')
        if done.returncode:
            browser.skip(f'pip has no {PACKAGE}: {(done.stdout.strip().splitlines() or ["it failed"])[-1]}')
    with zipfile.ZipFile(glob.glob(f'{folder}/*.whl')[0]) as wheel:
        return wheel.read(MEMBER).decode()


AXE = axe_core(sys.argv[1])
server = Server('--root', MACHINE, '--allow-root')


def prepare():
    """A finished job, a failed one, a draft, and one that waits."""
    with open(os.path.join(server.home, 'words.txt'), 'w', encoding='utf-8') as f:
        f.write('one two three four five six seven. ' * 400)
    with open(os.path.join(server.home, 'job.yaml'), 'w', encoding='utf-8') as f:
        f.write(CONFIG)
    uids = {}
    for name, arguments in (('done', ['job.yaml']), ('broken', ['--retries', '0', '--', 'sh', '-c', 'echo "RuntimeError: HIP error: invalid device function"; exit 1']),
                            ('running', ['--set', 'train.steps=1000000', 'job.yaml']), ('waiting', ['job.yaml']), ('draft', ['--draft', 'job.yaml'])):
        done = server.cairn('job', 'add', '--gpu', 'cpu', '--name', name, *arguments)
        assert done.returncode == 0, done.stderr
        uids[name] = done.stdout.split()[0]
    return uids


UIDS = prepare()
page = Browser(server).__enter__()
ROUTES = ['#/', '#/new', '#/new?view=yaml', '#/new?view=command', '#/machine', '#/doctor', '#/settings',
          *(f'#/job/{UIDS["running"]}{tab}' for tab in ('', '/chart', '/log', '/samples', '/files', '/config')),
          f'#/job/{UIDS["broken"]}', f'#/job/{UIDS["broken"]}/verdict', f'#/job/{UIDS["waiting"]}', f'#/job/{UIDS["draft"]}/edit']


def look(what):
    # What a fixed bar covers can be scrolled to: a window as high as the page shows all of it.
    height = page.js('return document.documentElement.scrollHeight')
    page.resize(page.js('return innerWidth'), max(900, min(height + 100, 12000)))
    violations = page.driver.execute_async_script('''const done = arguments[arguments.length - 1];
        axe.run(document, { runOnly: { type: "tag", values: arguments[0] }, resultTypes: ["violations"] }).then((r) => done(r.violations.map((v) =>
          `${v.id} (${v.impact}): ${v.nodes.slice(0, 3).map((n) => `${n.target.join(" ")}: ${n.failureSummary.split("\\n").slice(1).join("; ").trim()}`).join(" | ")}`)),
          (e) => done([String(e)]))''', RULES)
    page.resize(page.js('return innerWidth'), 900)
    return [f'{what}: {v}' for v in violations]


def every_page(width, dark):
    findings = []
    page.resize(width, 900)
    page.theme(dark)
    page.reload()
    page.js(AXE)
    for route in ROUTES:
        page.go(route)
        page.wait(lambda: page.js('return document.querySelector("main h1")?.textContent && !document.querySelector("main .loading")'), route)
        findings += look(route)
    return findings


def wide_and_dark():
    page.go('#/')
    page.see('.history .item', 'broken', 60)
    page.see('article.run', 'running', 60)
    return every_page(1440, True)


def wide_and_light():
    return every_page(1440, False)


def narrow_and_dark():
    return every_page(360, True)


def narrow_and_light():
    return every_page(360, False)


def twice_as_large():
    """Zoomed by 200 % a window of 1280 pixels has room for 640: nothing is cut off, nothing is wrong."""
    findings = every_page(640, True)
    for route in ROUTES:
        page.go(route)
        if page.overflow() > 0:
            findings.append(f'{route} is {page.overflow()} pixels too wide')
    return findings


def dialogs_and_menus():
    findings = []
    page.resize(1440, 900)
    page.go('#/')
    page.see('article.run')
    page.js('document.body.focus()')
    page.press('?')
    page.see('dialog')
    findings += look('keys')
    page.press(browser.KEYS.ESCAPE)
    page.click('article.run [aria-haspopup]')
    page.see('.menu')
    findings += look('menu')
    page.press(browser.KEYS.ESCAPE)
    page.js('document.querySelector(".history .item-link").focus()')
    page.press(browser.KEYS.DELETE)
    page.see('dialog')
    findings += look('question')
    page.press(browser.KEYS.ESCAPE)
    return findings


try:
    tap.run([wide_and_dark, wide_and_light, narrow_and_dark, narrow_and_light, twice_as_large, dialogs_and_menus])
finally:
    page.__exit__()
    server.__exit__()
