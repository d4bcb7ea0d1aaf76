# SPDX-License-Identifier: Apache-2.0
"""The page of `cairn ui`: nothing that its security policy forbids, every text in one table, sizes in budget."""
import gzip
import os
import posixpath
import re
import shutil
import sys
import tempfile

import lint

sys.path.append(os.path.join(lint.TOP, 'scripts'))
import embed  # noqa: E402

HOME = 'src/web/assets/'
# Bytes as they are sent, see scripts/embed.py.  The first page, with all that it shows, and everything; a hand-written page has to stay small.
FIRST_PACKED, FIRST_RAW = 40 * 1024, 160 * 1024
ALL_PACKED, ALL_RAW = 76 * 1024, 208 * 1024
# Requests that the first paint waits for: what index.html names, and what main.js imports.
FIRST_REQUESTS = 8
LONGEST = 500
LIMITS = {'dom.js': 120, 'chart.js': 450}
FIRST_PAGE = 'pages/jobs.js'
# Contrast by WCAG 2.2: text 4.5, edges of controls 3.
PAIRS = ([(ink, paper, 4.5) for ink in ('text', 'soft') for paper in ('bg', 'side', 'card', 'raised', 'sunk')] +
         [(ink, paper, 4.5) for ink in ('accent', 'good', 'bad', 'warn') for paper in ('bg', 'card', 'raised', 'sunk', ink + '-soft')] +
         [('text', paper, 4.5) for paper in ('good-soft', 'bad-soft', 'warn-soft', 'accent-soft')] +
         [('accent-text', 'accent', 4.5)] + [('edge', paper, 3) for paper in ('bg', 'card')] +
         [(f'c{n}', 'card', 3) for n in range(8)])
FORBIDDEN = re.compile(r'''(?x)
    \binnerHTML\b | \bouterHTML\b | insertAdjacentHTML | document\.write | \beval\( | \bnew\ Function\b | DOMParser |
    setAttribute\(\s*['"]style | \bstyle: | \bjavascript: | createContextualFragment | setHTMLUnsafe | \bsrcdoc\b''')
KEY = re.compile(r"^[a-z]+[\w.]*$")


def assets(*ends):
    return [f for f in lint.files(*ends, under=HOME)]


def name_of(path):
    return path[len(HOME):]


def scripts():
    return assets('.js')


def forbidden_findings():
    for path in scripts():
        for number, line in lint.lines(path):
            found = FORBIDDEN.search(line)
            if found:
                yield f'{path}:{number}: {found.group().strip()}: only text nodes and style properties are allowed'
    for path in assets('.html'):
        text = lint.read(path)
        for bad in re.findall(r'<style\b|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)[^>]*>|javascript:', text):
            yield f'{path}: {bad.strip()}: inline style or script'


def outside_findings():
    """The page loads nothing from elsewhere."""
    for path in assets('.js', '.css', '.html', '.svg'):
        for number, line in lint.lines(path):
            if re.search(r'''(?:src|href|import|url|from|fetch)\s*[=(]?\s*['"(]?(?:https?:)?//''', line) and 'xmlns' not in line:
                yield f'{path}:{number}: an address of another host'


def imports(path):
    """Paths of the modules that a module names, from the folder of assets; lazy ones too."""
    text = lint.read(path)
    for found in re.findall(r'''(?:from|import|import\()\s*['"](\.[^'"]+)['"]''', text):
        yield posixpath.normpath(posixpath.join(posixpath.dirname(name_of(path)), found))


def import_findings():
    there = {name_of(f) for f in assets('.js')}
    for path in scripts():
        for target in imports(path):
            if target not in there:
                yield f'{path}: imports {target}, which does not exist'
        text = lint.read(path)
        for names in re.findall(r'^import \{([^}]*)\} from', text, re.M):
            for name in (n.strip().split(' as ')[-1] for n in names.split(',')):
                if name and len(re.findall(rf'(?:(?<![\w.])|(?<=\.\.\.)){re.escape(name)}\b', text)) < 2:
                    yield f'{path}: imports {name} and does not use it'


def list_findings():
    text = lint.read(HOME + 'meson.build')
    listed = set(re.findall(r"'([\w./-]+\.(?:js|css|html|svg))'", text))
    there = {name_of(f) for f in assets('.js', '.css', '.html', '.svg')}
    for name in sorted(there - listed):
        yield f'{HOME}meson.build does not list {name}'
    for name in sorted(listed - there):
        yield f'{HOME}meson.build lists {name}, which does not exist'


# ---- texts ----

def first_argument(text, at):
    """What stands between the parenthesis at `at` and the comma or parenthesis that ends the first argument."""
    depth, quote, i = 0, '', at
    while i < len(text):
        c = text[i]
        if quote:
            if c == '\\':
                i += 1
            elif c == quote:
                quote = ''
        elif c in '\'"`':
            quote = c
        elif c in '([{':
            depth += 1
        elif c in ')]}':
            depth -= 1
        if depth == 0 and i > at or depth == 1 and c == ',' and not quote:
            break
        i += 1
    return text[at + 1:i]


def texts():
    return set(re.findall(r"^  '([^']+)':", lint.read(HOME + 'text/en.js'), re.M))


def pattern_of(template):
    return re.compile(re.sub(r'\\\$\\\{.*?\\\}', r'[\\w.]+', re.escape(template)) + r'\Z')


def text_findings():
    known = texts()
    used = set()
    for path in scripts():
        if path.endswith('text/en.js'):
            continue
        text = re.sub(r'^\s*//.*$', '', lint.read(path), flags=re.M)
        # A key may travel through a variable: each quoted key counts as used.
        used |= {word for word in re.findall(r"'([^'\s]+)'", text) if word in known}
        for call in re.finditer(r'(?<![\w.])t\(', text):
            argument = first_argument(text, call.end() - 1)
            number = text.count('\n', 0, call.start()) + 1
            for word in re.findall(r"(?<!=== )(?<!!== )'([^']+)'", argument):
                if word not in known and KEY.match(word) and '.' in word:
                    yield f'{path}:{number}: no text for {word}'
            if re.fullmatch(r"'[^']+'", argument) and argument.strip("'") not in known:
                yield f'{path}:{number}: no text for {argument}'
            for template in re.findall(r'`([^`]+)`', argument):
                found = {key for key in known if pattern_of(template).match(key)}
                used |= found
                if not found:
                    yield f'{path}:{number}: no text for {template}'
    for key in sorted(known - used):
        yield f'{HOME}text/en.js: {key} is not used'


# ---- icons ----

def icon_findings():
    sprite = lint.read(HOME + 'icons.svg')
    there = set(re.findall(r'<symbol id="(\w+)"', sprite))
    words = set()
    for path in scripts():
        text = lint.read(path)
        words |= set(re.findall(r"'(\w+)'", text)) | set(re.findall(r'(\w+): ', text))
        for name in re.findall(r"(?<!\w)icon\('(\w+)'", text):
            if name not in there:
                yield f'{path}: no icon {name}'
    for state in re.findall(r"^  'state\.(\w+)'", lint.read(HOME + 'text/en.js'), re.M):
        if state not in there:
            yield f'{HOME}icons.svg: no icon for the state {state}'
        words.add(state)
    for name in sorted(there - words):
        yield f'{HOME}icons.svg: {name} is not used'


# ---- colours ----

def colours():
    """{name: (light, dark)} of the style sheet."""
    found = re.findall(r'--([\w-]+): light-dark\((#\w+), (#\w+)\)', lint.read(HOME + 'app.css'))
    return {name: (light, dark) for name, light, dark in found}


def luminance(colour):
    digits = colour[1:]
    if len(digits) == 3:
        digits = ''.join(c * 2 for c in digits)
    parts = [int(digits[i:i + 2], 16) / 255 for i in (0, 2, 4)]
    r, g, b = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a, b):
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def contrast_findings():
    table = colours()
    for ink, paper, least in PAIRS:
        if ink not in table or paper not in table:
            yield f'{HOME}app.css: no colour {ink if ink not in table else paper}'
            continue
        for i, theme in enumerate(('light', 'dark')):
            value = contrast(table[ink][i], table[paper][i])
            if value < least:
                yield f'{HOME}app.css: {ink} on {paper} in the {theme} theme has contrast {value:.2f}, must be {least}'


# ---- sizes ----

def closure(*starts):
    """The modules that these need at once."""
    todo, seen = list(starts), set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        text = lint.read(HOME + name)
        for found in re.findall(r'''^import [^;]*?from ['"](\.[^'"]+)['"]|^import ['"](\.[^'"]+)['"]''', text, re.M):
            todo.append(posixpath.normpath(posixpath.join(posixpath.dirname(name), found[0] or found[1])))
    return seen


def size_of(names):
    raw = packed = 0
    for name in names:
        with open(os.path.join(lint.TOP, HOME, name), 'rb') as f:
            data = embed.shortened(name, f.read())
        raw += len(data)
        packed += len(gzip.compress(data, 9, mtime=0))
    return raw, packed


def size_findings():
    page = set(re.findall(r'(?:src|href)="([\w./-]+)"', lint.read(HOME + 'index.html'))) | {'index.html'}
    paint = page | closure('main.js')
    if len(paint) > FIRST_REQUESTS:
        yield f'the first paint waits for {len(paint)} requests, must be {FIRST_REQUESTS}: {", ".join(sorted(paint))}'
    first = paint | closure(FIRST_PAGE)
    for what, names, most_raw, most_packed in (
            ('the first page', first, FIRST_RAW, FIRST_PACKED),
            ('all of it', [name_of(f) for f in assets('.js', '.css', '.html', '.svg')], ALL_RAW, ALL_PACKED)):
        raw, packed = size_of(names)
        print(f'# {what}: {raw} bytes, {packed} with gzip, {len(set(names))} files')
        if raw > most_raw or packed > most_packed:
            yield f'{what} has {raw} bytes, {packed} with gzip; must be {most_raw} and {most_packed}'
    for path in assets('.js', '.css', '.html'):
        n = lint.read(path).count('\n')
        most = LIMITS.get(name_of(path), LONGEST)
        if n > most:
            yield f'{path} has {n} lines, must be {most}'


def syntax_findings():
    node = shutil.which('node')
    if not node:
        return lint.Skip('Node is not installed')
    findings = []
    for path in scripts():
        # Modules are checked as such only under a name that says so.
        with open(os.path.join(lint.TOP, path), 'rb') as f:
            data = f.read()
        for text in {data, embed.shortened(path, data)}:
            with tempfile.TemporaryFile() as file:
                file.write(text)
                file.seek(0)
                done = lint.run(node, '--input-type=module', '--check', stdin=file)
            if done.returncode:
                findings += [f'{path}: {line}' for line in done.stdout.splitlines()[:6]]
    return findings


lint.report(
    ('no inline style, no inline script, no markup from text', forbidden_findings()),
    ('nothing is loaded from another host', outside_findings()),
    ('imports exist and are used', import_findings()),
    ('meson.build lists the assets', list_findings()),
    ('every text exists and is used', text_findings()),
    ('every icon exists and is used', icon_findings()),
    ('colours have the contrast of WCAG 2.2 AA', contrast_findings()),
    ('sizes are in budget', size_findings()),
    ('Node reads every script', syntax_findings()),
)
