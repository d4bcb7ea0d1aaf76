# SPDX-License-Identifier: Apache-2.0
"""shots.py BUILD-DIR [--new]: pages look as they did.

Takes pictures of pages whose content is fixed and compares them with those in shots/, pixel by pixel.  --new replaces
these, after a change that is meant.  What is taken stays in BUILD-DIR/web-shots.
"""
import base64
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
FONTS = '/usr/share/fonts/truetype/dejavu'
# A pixel differs if a channel does by more than this; so much of a picture may.
CHANNEL, SHARE = 16, 0.001
# Where a moment, the speed or the memory of this machine shows.
HIDDEN = '.fit, #job-cwd, .cell.took, .cell.when, .gpus, .facts, textarea { visibility: hidden !important; } * { caret-color: transparent !important; }'
FONT_CONFIG = f'''<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{FONTS}</dir><cachedir prefix="xdg">fontconfig</cachedir>
<match target="pattern"><test name="family" compare="not_contains"><string>ono</string></test><edit name="family" mode="assign" binding="strong"><string>DejaVu Sans</string></edit></match>
<match target="pattern"><test name="family" compare="contains"><string>ono</string></test><edit name="family" mode="assign" binding="strong"><string>DejaVu Sans Mono</string></edit></match></fontconfig>
'''


def prepare_fonts(folder):
    """One font, whatever else is installed; every system that has Chromium has it."""
    path = os.path.join(folder, 'fonts.conf')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(FONT_CONFIG)
    os.environ['FONTCONFIG_FILE'] = path


build = os.path.realpath(sys.argv[1])
renew = '--new' in sys.argv
out = os.path.join(build, 'web-shots')
os.makedirs(out, exist_ok=True)
prepare_fonts(out)

import tap  # noqa: E402
from browser import MACHINE, Browser, Server, skip  # noqa: E402

if not os.path.isdir(FONTS):
    skip(f'no {FONTS} (Debian: fonts-dejavu-core)')

COMPARE = '''const [first, second, channel, done] = arguments;
const pixels = async (data) => {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  return { size: `${image.width} x ${image.height}`, data: context.getImageData(0, 0, image.width, image.height).data };
};
Promise.all([pixels(first), pixels(second)]).then(([a, b]) => {
  if (a.size !== b.size) return done([`${a.size} and ${b.size} pixels`, 1]);
  let n = 0;
  for (let i = 0; i < a.data.length; i += 4)
    if (Math.abs(a.data[i] - b.data[i]) > channel || Math.abs(a.data[i + 1] - b.data[i + 1]) > channel || Math.abs(a.data[i + 2] - b.data[i + 2]) > channel) n++;
  done(["", n / (a.data.length / 4)]);
}, (e) => done([String(e), 1]));'''

server = Server('--root', MACHINE, '--allow-root')
page = Browser(server, 1440, 900).__enter__()
taken = []


def prepare():
    """Jobs that wait and drafts: nothing runs, so nothing changes."""
    server.cairn('job', 'queue', 'pause')
    with open(os.path.join(server.home, 'job.yaml'), 'w', encoding='utf-8') as f:
        f.write('# a small one\nmodel:\n  layers: 2 # enough\n  heads: 2\n  width: 64\ndata:\n  path: words.txt\ntrain:\n  steps: 100\n  lr: 1e-3\n')
    names = [('mountain-style', []), ('mountain-style, rank 64', []), ('a name that somebody wrote without a thought of how long it would become in the end, lr 1e-4 r32 b4', [])]
    drafts = [('next idea', ['--draft']), ('portrait', ['--draft'])]
    return [server.cairn('job', 'add', '--gpu', 'cpu', '--name', name, *more, 'job.yaml').stdout.split()[0] for name, more in names + drafts]


UIDS = prepare()


def take(name, route, ready, text=None, width=1440, dark=True):
    page.resize(width, 900 if width > 600 else 740)
    page.theme(dark)
    page.go(route)
    page.see(ready, text)
    page.js('if (!document.adoptedStyleSheets.length) { const s = new CSSStyleSheet(); s.replaceSync(arguments[0]); document.adoptedStyleSheets = [s]; } document.activeElement.blur(); scrollTo(0, 0);', HIDDEN)
    page.wait(lambda: page.js('return !document.querySelector("main .loading") && [...document.images].every((i) => i.complete)'), 'a page at rest')
    page.js('return document.fonts.ready.then(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100))))')
    path = os.path.join(out, f'{name}.png')
    page.shot(path)
    taken.append(path)


def read(path):
    with open(path, 'rb') as f:
        return base64.b64encode(f.read()).decode()


def compare(path):
    kept = os.path.join(HERE, 'shots', os.path.basename(path))
    if renew:
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        with open(path, 'rb') as source, open(kept, 'wb') as target:
            target.write(source.read())
        return []
    if not os.path.exists(kept):
        return [f'{kept} does not exist: shots.py BUILD-DIR --new makes it']
    trouble, share = page.driver.execute_async_script(COMPARE, read(kept), read(path), CHANNEL)
    if trouble or share > SHARE:
        return [f'{path} differs from {kept}: {trouble or f"{share * 100:.3f} % of the pixels"}; if that is meant: shots.py BUILD-DIR --new']
    return []


SHOTS = [
    ('jobs-wide-dark', '#/', '.history .item', None, 1440, True),
    ('jobs-narrow-light', '#/', '.history .item', None, 360, False),
    ('job-wide-light', f'#/job/{UIDS[0]}', '.notice', None, 1440, False),
    ('config-narrow-dark', f'#/job/{UIDS[0]}/config', '.code-box', None, 360, True),
    ('new-wide-dark', f'#/job/{UIDS[3]}/edit', '.form .field', None, 1440, True),
    ('machine-wide-light', '#/machine', '.gpu', 'Radeon', 1440, False),
    ('doctor-narrow-light', '#/doctor', '.verdict', None, 360, False),
    ('settings-wide-dark', '#/settings', '.choice', None, 1440, True),
]


def case(shot):
    def look():
        take(*shot)
        page.driver.get('about:blank')
        findings = compare(taken[-1])
        page.driver.back()
        page.see('main h1')
        return findings
    look.__name__ = shot[0].replace('-', '_')
    return look


try:
    tap.run([case(shot) for shot in SHOTS])
finally:
    page.__exit__()
    server.__exit__()
