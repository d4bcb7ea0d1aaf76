# SPDX-License-Identifier: Apache-2.0
"""Small rules that hold for every file: licence, length, no goto, no trace of somebody's desk."""
import os
import re
import sys

import lint

LONGEST = 650
CODE = ('.c', '.h', '.py', '.sh', '.bash', '.fish', '.k', '.js', '.css')
SCRIPTS = ('Makefile', 'scripts/', '.ci/', 'completions/', 'tests/fuzz/run')

# Places and words that mean something to one person only.
DESK = re.compile(r'''(?x)
      (?<![\w.])/root/\.
    | \b[Ii]ssue\ \#\d  |  \b[Ss]eed\ document
''')


def code():
    return [f for f in lint.tracked()
            if not f.startswith('tests/data/') and (f.endswith(CODE) or f.startswith(SCRIPTS))]


def licence_findings():
    for path in code():
        if 'SPDX-License-Identifier: Apache-2.0' not in '\n'.join(lint.read(path).splitlines()[:3]):
            yield f'{path}: no SPDX line at the top'


def goto_findings():
    for path in lint.files('.c', '.h'):
        for number, line in lint.lines(path):
            if re.search(r'^\s*goto\s+\w+\s*;', line):
                yield f'{path}:{number}: goto'


def ascii_findings():
    """What is printed is ASCII, but where it is asked whether the terminal shows more; what is sought in logs is not
    printed."""
    for path in lint.files('.c', '.h', under='src/'):
        text = re.sub(r'/\*.*?\*/', lambda comment: '\n' * comment.group().count('\n'), lint.read(path), flags=re.DOTALL)
        if 'utf8' in text or path.startswith('src/rules/issue_rules_'):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if not line.isascii():
                yield f'{path}:{number}: a terminal may not show {line.strip()}'


def length_findings():
    for path in code():
        count = len(lint.read(path).splitlines())
        if count > LONGEST:
            yield f'{path}: {count} lines; two nouns in one file?'


def desk_findings():
    for path in lint.tracked():
        if path == os.path.relpath(os.path.realpath(__file__), lint.TOP):
            continue
        if path.startswith('tests/data/') and not path.endswith('SOURCE'):
            continue
        for number, line in lint.lines(path):
            found = DESK.search(line)
            if found:
                yield f'{path}:{number}: {found.group(0)!r} means nothing to a reader'


def blank_findings():
    for path in lint.files(*CODE, '.md', '.build', '.1') + ['Makefile']:
        text = lint.read(path)
        if not text.endswith('\n') and text:
            yield f'{path}: no line feed at the end'
        for number, line in enumerate(text.split('\n'), 1):
            if line != line.rstrip():
                yield f'{path}:{number}: white space at the end'


def unicode_findings():
    """The table of characters is what its script makes; another Python may have another Unicode."""
    import unicodedata
    table = lint.read('src/text/unicode_table.h')
    if f'Unicode {unicodedata.unidata_version}.' not in table:
        return lint.Skip(f'this Python has Unicode {unicodedata.unidata_version}')
    made = lint.run(sys.executable, 'scripts/unicode.py').stdout
    return [] if made == table else ['src/text/unicode_table.h is old; run: scripts/unicode.py >src/text/unicode_table.h']


def entity_findings():
    """The names of HTML 5 do not change any more."""
    made = lint.run(sys.executable, 'scripts/text_tables.py', 'entities').stdout
    name = 'src/text/html_entity_table.h'
    return [] if made == lint.read(name) else [f'{name} is old; run: scripts/text_tables.py entities >{name}']


lint.report(
    ('every source names its licence', licence_findings()),
    ('no goto', goto_findings()),
    ('what is printed is ASCII', ascii_findings()),
    (f'no file over {LONGEST} lines', length_findings()),
    ('the project speaks of itself alone', desk_findings()),
    ('lines end cleanly', blank_findings()),
    ('the table of characters is made by its script', unicode_findings()),
    ('the table of entities is made by its script', entity_findings()),
)
