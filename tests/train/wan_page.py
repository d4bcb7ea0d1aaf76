# SPDX-License-Identifier: Apache-2.0
"""docs/wan.md: its commands, run one after the other in an empty home, print what the page shows.

A block ```console is a session (```console wrong: of commands that fail): `$ COMMAND`, with \\ at the end of lines that go on, then what it prints, both streams as in a
terminal.  A block whose first line is `# NAME` is the file NAME.  The lines that are shown are printed in that order; others may be
between them.  In a line,

    …            stands for anything
    0.52 s/it    a number before a unit of time or speed is not compared, nor is an ETA
    0.4987       other numbers with a point may differ by a tenth: CPUs round differently
    ^C           is the key: the process gets SIGINT once the line above was printed

wan_page.py PAGE prints the page with what the commands print now.
"""
import json
import os
import re
import signal
import subprocess
import sys

import tap
from training import CAIRN, PATIENCE, Home

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
PAGE = ROOT + '/docs/wan.md'
NUMBER = re.compile(r'\d+\.\d+')
VARIES = re.compile(r'\d+\.?\d*(?= s\b| ?s/it|/s\b| per second)|(?<=ETA )\d+:\d+')


def blocks(page):
    """(line, kind, lines) of each fenced block."""
    found, block = [], None
    with open(page, encoding='utf-8') as f:
        for number, line in enumerate(f.read().split('\n'), 1):
            if not line.startswith('```'):
                if block:
                    block[2].append(line)
            elif block:
                found.append(block)
                block = None
            else:
                block = (number, line[3:], [])
    return found


def is_file(kind, lines):
    return not kind.startswith('console') and lines and re.fullmatch(r'# [\w.-]+', lines[0])


def sessions(lines):
    """(command, what is shown) of a block."""
    found, going_on = [], False
    for line in lines:
        if line.startswith('$ '):
            found.append([line[2:], []])
        elif going_on:
            found[-1][0] += '\n' + line
        else:
            found[-1][1].append(line)
        going_on = line.endswith('\\') and (line.startswith('$ ') or going_on)
    return found


def same_line(shown, printed):
    """As the rules above say."""
    shown, printed = VARIES.sub('~', shown), VARIES.sub('~', printed)
    parts = [r'(\d+\.\d+)' if NUMBER.fullmatch(part) else '.*' if part == '…' else re.escape(part)
             for part in re.split(r'(…|\d+\.\d+)', shown)]
    match = re.fullmatch(''.join(parts), printed)
    return bool(match) and all(abs(float(a) - float(b)) <= float(a) / 10 for a, b in zip(NUMBER.findall(shown), match.groups()))


class PageHome(Home):
    """As a new user has it: the checkout is ~/cairn, ComfyUI is beside it, and cairn is in the PATH."""

    def __enter__(self):
        super().__enter__()
        if not os.path.exists(os.path.dirname(CAIRN) + '/cairn-media'):
            raise tap.Skip('cairn-media is not built')
        os.symlink(ROOT, self.path + '/cairn')
        os.makedirs(self.path + '/ComfyUI/models/loras')
        self.folder = self.path
        return self

    def environment(self, env):
        return {**super().environment(env), 'PATH': os.path.dirname(CAIRN) + ':/usr/bin:/bin', 'PYTHONDONTWRITEBYTECODE': '1'}

    def write(self, lines):
        with open(f'{self.folder}/{lines[0][2:]}', 'w', encoding='utf-8') as f:
            f.write('\n'.join(lines[1:]) + '\n')

    def run(self, command, shown):
        """(status, lines); the folder that the command changes to stays."""
        script = command + f'\nstatus=$?; pwd >{self.path}/pwd; exit $status'
        with subprocess.Popen(['bash', '-c', script], cwd=self.folder, env=self.environment(None), text=True, errors='replace',
                              start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            printed = self.until_key(process, shown) if '^C' in shown else []
            printed += process.communicate(timeout=PATIENCE)[0].split('\n')
        with open(self.path + '/pwd', encoding='utf-8') as f:
            self.folder = f.read().strip()
        return process.returncode, [line for line in printed if line]

    def until_key(self, process, shown):
        """Reads until the line above ^C was printed, and presses the key."""
        before = [line for line in shown[:shown.index('^C')] if line.strip() != '…'][-1]
        printed = []
        for line in process.stdout:
            printed.append(line.rstrip('\n'))
            if same_line(before, printed[-1]):
                os.killpg(process.pid, signal.SIGINT)
                return printed + ['^C']
        return printed


def not_printed(shown, printed):
    """The first line that is shown and not printed there; None: all are."""
    rest = iter(printed)
    for line in shown:
        if line.strip() not in ('', '…') and not any(same_line(line, other) for other in rest):
            return line
    return None


def the_page_shows_what_is_printed():
    commands = 0
    with PageHome() as home:
        for number, kind, lines in blocks(PAGE):
            if is_file(kind, lines):
                home.write(lines)
            for command, shown in sessions(lines) if kind.startswith('console') else []:
                commands += 1
                status, printed = home.run(command, shown)
                missing = not_printed(shown, printed)
                fails = kind == 'console wrong' or '^C' in shown
                if missing is not None or bool(status) != fails:
                    yield f'docs/wan.md:{number}: {command}: exit {status}, not printed (there): {missing}\n# ' + '\n# '.join(printed)
                    return
    if commands < 15:
        yield f'{commands} commands are too few'


def a_difference_is_seen():
    for shown, printed, same in (('step 1/4  loss 0.6740  0.58 s/it', 'step 1/4  loss 0.6712  1.02 s/it', True),
                                 ('step 1/4  loss 0.6740  0.58 s/it', 'step 1/4  loss 0.5740  0.58 s/it', False),
                                 ('step 1/4  loss 0.6740  0.58 s/it', 'step 2/4  loss 0.6740  0.58 s/it', False),
                                 ('device    cpu, …: as requested', 'device    cpu, A.B (c): as requested', True),
                                 ('device    cpu, …: as requested', 'device    hip, A.B (c): as requested', False),
                                 ('a.yaml', 'abyaml', False), ('text  1 of 2  5.1/s  ETA 0:10', 'text  1 of 2  77.15/s  ETA 1:00', True)):
        if same_line(shown, printed) != same:
            yield f'"{shown}" and "{printed}"'
    if not_printed(['b', 'a'], ['a', 'b']) != 'a' or not_printed(['a', '…', 'c'], ['a', 'b', 'c']) is not None:
        yield 'the order does not count'


# ---- the tables of memory ----

MODELS = {
    '1.3B': ['model.task=t2v-1.3B'],
    'TI2V-5B': ['model.task=ti2v-5B'],
    '14B or one A14B expert': ['model.task=t2v-14B'],
    'one A14B expert': ['model.task=t2v-A14B', 'model.expert=low'],
    'both A14B experts': ['model.task=t2v-A14B'],
}


def table(start):
    """The rows of the page's table whose first line begins with this, as lists of cells."""
    with open(PAGE, encoding='utf-8') as f:
        lines = f.read().split('\n')
    first = next(i for i, line in enumerate(lines) if line.startswith(start))
    end = next(i for i in range(first, len(lines)) if not lines[i].startswith('|'))
    return [[cell.strip() for cell in line.strip('|').split('|')] for line in lines[first:end] if not line.startswith('|---')]


def plan(home, model, size, gfx, memory, *keys):
    name, dtype = model.rsplit(', ', 1)
    keys = [*MODELS[name], *(['model.quantize=fp8'] if dtype == 'fp8' else []), 'model.kind=wan', f'data.size={size}', *keys]
    with open(home.path + '/plan.yaml', 'w', encoding='utf-8') as f:
        f.write('model: {kind: wan}\n')
    done = subprocess.run([CAIRN, 'plan', 'plan.yaml', '--json', '--gfx', gfx, '--memory', memory, *(f'--set={key}' for key in keys)],
                          cwd=home.path, env=home.environment(None), text=True, capture_output=True, timeout=PATIENCE, check=False)
    if done.returncode:
        raise AssertionError(f'{keys}: exit {done.returncode}: {done.stderr}')
    return json.loads(done.stdout)


def what_jobs_take():
    rows = table('| | 512×512 image')
    with Home() as home:
        for model, *cells in rows[1:]:
            for size, cell in zip(rows[0][1:], cells):
                pixels = size.replace('×', 'x').replace(' image', 'x1')
                got = plan(home, model, pixels, 'gfx1100', '400', 'train.optimizer=adamw8')
                if f'{got["device_bytes"] / 2**30:.1f}' != cell:
                    yield f'{model} at {size}: {got["device_bytes"] / 2**30:.2f} GiB, the page has {cell}'
        if len(rows) < 8 or len(rows[0]) < 6:
            yield 'the table is too small'


def what_cards_do():
    rows = table('| card | model | plan |')
    with Home() as home:
        for card, model, *told in rows[1:]:
            gfx, memory = re.search(r'\((gfx\w+)\), (\d+) GB', card).groups()
            got = plan(home, model, '832x480x33', gfx, memory)
            most = got['frames_most']
            streamed = f'{got["blocks_streamed"]} of {got["blocks_all"]} blocks in host memory'
            want = [streamed if got['blocks_streamed'] else f'{got["device_bytes"] / 2**30:.1f} GiB', f'{most["frames"]} frames',
                    f'{most["frames_without_fallbacks"]} frames' if most['frames_without_fallbacks'] else 'none']
            if told != want:
                yield f'{card}: {want}, the page has {told}'
        if len(rows) < 5:
            yield 'the table is too small'


def print_page(page):
    with PageHome() as home:
        for number, kind, lines in blocks(page):
            if is_file(kind, lines):
                home.write(lines)
            for command, shown in sessions(lines) if kind.startswith('console') else []:
                status, printed = home.run(command, shown)
                print(f'{number}: $ {command}', *printed, f'exit {status}', '', sep='\n')


if len(sys.argv) > 1:
    print_page(sys.argv[1])
else:
    tap.run([a_difference_is_seen, the_page_shows_what_is_printed, what_jobs_take, what_cards_do])
