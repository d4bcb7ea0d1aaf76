# SPDX-License-Identifier: Apache-2.0
"""What is written about the program is what the program has: man page, README, tables in docs/."""
import json
import os
import re
import shutil
import sys

import lint

cairn = os.path.realpath(sys.argv[1])
MAN = 'docs/cairn.1'
SHARED = 'All commands'


def ask(*arguments):
    done = lint.run(cairn, *arguments)
    if done.returncode:
        sys.exit(f'cairn {" ".join(arguments)}: exit {done.returncode}: {done.stdout}')
    return done.stdout


def commands():
    return [line.split('\t')[0] for line in ask('--list-commands').splitlines()]


def verbs():
    """Commands, and the commands below them ("tensor ls"): whatever has options of its own."""
    for command in commands():
        yield command
        below = lint.run(cairn, command, '--list-commands')
        if below.returncode == 0:
            yield from (f'{command} {line.split()[0]}' for line in below.stdout.splitlines())


def options(verb):
    """{long name: (short letter, argument)} as the program tells them."""
    help_text = ask(*verb.split(), '--help')
    shorts = dict((name, letter) for letter, name in re.findall(r'^  -(.), (--[a-z-]+)', help_text, re.M))
    rows = [line.split('\t') for line in ask(*verb.split(), '--list-options').splitlines()]
    return {name: (shorts.get(name, ''), '' if argument == '-' else argument) for name, argument, _ in rows}


def manual():
    """{section: {long name: (short letter, argument)}} as the man page tells them."""
    sections, here = {}, None
    for _, line in lint.lines(MAN):
        if line.startswith(('.Sh ', '.Ss ')):
            here = sections.setdefault(line[4:].strip('"'), {})
        match = re.match(r'\.It (?:Fl (\w) , )?Fl -([a-z-]+)(.*)', line)
        if match and here is not None:
            letter, name, rest = match.groups()
            argument = re.search(r'\bAr (\S+)', rest)
            here['--' + name] = ('' if letter is None else letter, argument.group(1) if argument else '')
    return sections


def shared_options():
    """Those that every command has; the man page tells them once."""
    every = [options(c) for c in commands()]
    return {name: row for name, row in every[0].items() if name in ('--help', '--color')}


def option_findings():
    pages, shared = manual(), shared_options()
    yield from compare(SHARED, shared, pages.get(SHARED, {}))
    for verb in verbs():
        own = {name: row for name, row in options(verb).items() if name not in shared}
        yield from compare(f'cairn {verb}', own, pages.get(f'cairn {verb}', {}))


def compare(section, have, told):
    for name in sorted(have.keys() | told.keys()):
        if name not in told:
            yield f'{MAN}: {section}: {name} is missing'
        elif name not in have:
            yield f'{MAN}: {section}: {name} does not exist'
        elif have[name] != told[name]:
            yield f'{MAN}: {section}: {name}: the page has {told[name]}, the program {have[name]}'


def command_findings():
    readme, pages = lint.read('README.md'), manual()
    for command in commands():
        if f'cairn {command}' not in readme:
            yield f'README.md: nothing about cairn {command}'
    for verb in verbs():
        if f'cairn {verb}' not in pages:
            yield f'{MAN}: no section "cairn {verb}"'
    for section in pages:
        if section.startswith('cairn ') and section[len('cairn '):] not in verbs():
            yield f'{MAN}: there is no "{section}"'


def chips_findings():
    if lint.read('docs/chips.md') != ask('gpu', '--chips', '--markdown'):
        yield 'docs/chips.md is old; run: cairn gpu --chips --markdown >docs/chips.md'


def readme_targets(chips):
    """{target: families} of the table in README.md; "gfx1010–gfx1012" are all rows between the two."""
    order = [c['gfx'] for c in chips]
    rows = {}
    for families, targets in re.findall(r'^\| ([\w., ]+) \| (gfx[\w–, ]+) \|$', lint.read('README.md'), re.M):
        for first, last in re.findall(r'(gfx\w+)(?:–(gfx\w+))?', targets):
            span = order[order.index(first):order.index(last or first) + 1] if first in order else [first]
            rows.update({target: families.split(', ') for target in span})
    return rows


def readme_chip_findings():
    """README.md lists the targets that some wheel carries code for."""
    chips = json.loads(ask('gpu', '--chips', '--json'))['chips']
    rows = readme_targets(chips)
    for chip in chips:
        carried = bool(chip['wheel'] or chip['therock'])
        if carried != (chip['gfx'] in rows):
            yield f'README.md: {chip["gfx"]} is {"missing" if carried else "listed, and no wheel carries it"}'
        elif carried and not any(chip['family'].startswith(f) for f in rows[chip['gfx']]):
            yield f'README.md: {chip["gfx"]} is of {chip["family"]}'
    for target in rows.keys() - {c['gfx'] for c in chips}:
        yield f'README.md: {target} is not in the table'


def layer_findings():
    """The table of folders in docs/architecture.md says what src/LAYERS does; os and base it leaves out."""
    rows = re.findall(r'^\| `src/(\w+)` \|[^|]*\|([^|]*)\|', lint.read('docs/architecture.md'), re.M)
    told = {folder: set(re.findall(r'\w+', included)) for folder, included in rows}
    have = {}
    for _, line in lint.lines('src/LAYERS'):
        if line.strip() and not line.startswith('#'):
            layer, _, below = line.partition(':')
            have[layer] = set(below.split()) - {'os', 'base'}
    for layer in sorted(have.keys() | told.keys()):
        if have.get(layer) != told.get(layer):
            yield f'docs/architecture.md: src/{layer}: {told.get(layer)}, src/LAYERS has {have.get(layer)}'


def classes_findings():
    if ask('diagnose', '--list', '--markdown') not in lint.read('docs/diagnose.md'):
        yield 'docs/diagnose.md: the list of classes is old; run: cairn diagnose --list --markdown'


def config_findings():
    if ask('help', 'config', '--markdown') not in lint.read('docs/config.md'):
        yield 'docs/config.md: the tables of keys are old; run: cairn help config --markdown'


def link_findings():
    """A link in a page leads to a file that is there."""
    tracked = set(lint.tracked())
    folders = {'/'.join(f.split('/')[:n]) for f in tracked for n in range(1, f.count('/') + 1)}
    for path in lint.files('.md'):
        folder = path.rpartition('/')[0]
        for number, line in lint.lines(path):
            for target in re.findall(r'\]\(([^)#]+)', line):
                whole = normal(folder, target)
                if '://' not in target and whole not in tracked and whole not in folders:
                    yield f'{path}:{number}: no file {target}'


def source_findings():
    """A file of ours that a page names, as `src/run/pump.c` or `run/pump.c`, is there."""
    tracked = set(lint.tracked())
    folders = {f.split('/')[1] for f in tracked if f.startswith('src/') and f.count('/') > 1} | {'src', 'tests', 'bench', 'scripts'}
    for path in lint.files('.md'):
        for number, line in lint.lines(path):
            for pair in re.findall(r'`((?:[\w-]+/)+[\w-]+\.(?:c|h|k|def))`|`((?:src|tests|bench|scripts)/[\w/-]+\.(?:py|sh|tsv))`', line):
                name = pair[0] or pair[1]
                if name.split('/')[0] in folders and not {name, 'src/' + name} & tracked:
                    yield f'{path}:{number}: no file {name}'


def anchors(path):
    """The anchors that GitHub makes of a page's headings."""
    inside, names = False, set()
    for _, line in lint.lines(path):
        inside ^= line.startswith('```')
        if line.startswith('#') and not inside:
            text = re.sub(r'[^\w\- ]', '', line.lstrip('#').strip().lower())
            names.add(text.replace(' ', '-'))
    return names


def anchor_findings():
    """A link to a heading names one that the page has."""
    tracked = set(lint.tracked())
    for path in lint.files('.md'):
        for number, line in lint.lines(path):
            for target, anchor in re.findall(r'\]\(([^)#:]*)#([^)]+)\)', line):
                page = normal(path.rpartition('/')[0], target) if target else path
                if page in tracked and page.endswith('.md') and anchor not in anchors(page):
                    yield f'{path}:{number}: no heading #{anchor} in {page}'


def evidence_findings():
    """A page that a rule names as its source is there."""
    tracked = set(lint.tracked())
    for path in lint.files('.c', '.h', '.py', under='src/'):
        for number, line in lint.lines(path):
            for page in re.findall(r'"(docs/[\w./-]+\.md)', line):
                if page not in tracked:
                    yield f'{path}:{number}: no page {page}'


def normal(folder, target):
    parts = folder.split('/') if folder else []
    for part in target.rstrip('/').split('/'):
        if part == '..' and parts:
            parts.pop()
        elif part != '.':
            parts.append(part)
    return '/'.join(parts)


def man_findings():
    if not shutil.which('mandoc'):
        return lint.Skip('no mandoc')
    done = lint.run('mandoc', '-T', 'lint', '-W', 'warning', MAN)
    return done.stdout.splitlines() if done.returncode else []


lint.report(
    ('the man page has every option, and no other', option_findings()),
    ('README and man page have every command', command_findings()),
    ('docs/chips.md is the table', chips_findings()),
    ('README.md lists the chips of the table', readme_chip_findings()),
    ('docs/architecture.md has the folders of src/LAYERS', layer_findings()),
    ('docs/diagnose.md has every class', classes_findings()),
    ('docs/config.md has every key', config_findings()),
    ('links lead somewhere', link_findings()),
    ('files that pages name are there', source_findings()),
    ('links lead to headings', anchor_findings()),
    ('pages that rules name are there', evidence_findings()),
    ('the man page is well formed', man_findings()),
)
