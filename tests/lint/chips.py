# SPDX-License-Identifier: Apache-2.0
"""What is known about a chip is in its row of src/chip/gfx_table.c: no other source keeps names of targets.

A rule about one chip may name it, where the rule is about a fault of that chip and not about what the chip is; those are
listed here.  Sentences for people may name chips too: only text that is nothing but names is looked at."""
import re

import lint

TABLE = 'src/chip/gfx_table.c'
# What each file may name, and why.
ALLOWED = {
    # How names begin, for finding them in a log.
    'src/rules/log_facts.c': {'gfx1', 'gfx9', 'gfx8', 'gfx7'},
    'src/rules/issue_rules_device.c': {'gfx1|gfx9|gfx8', 'gfx000'},
    # Faults of one chip with some version of something else.
    'src/rules/checks_kernel.c': {'gfx1151', 'gfx1152'},
    'src/rules/checks_libraries.c': {'gfx1151'},
    'src/rules/checks_rocm.c': {'gfx1151', 'gfx90c'},
    'src/rules/checks_torch.c': {'gfx1100'},
    'src/rules/env_rules.c': {'gfx1100', 'gfx1151', 'gfx90c'},
    # A fix that is for one chip.
    'src/rules/diagnose_when.c': {'gfx1151'},
}
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
NAMES = re.compile(r'gfx\d[\w*-]*(?:[ ,|]+(?:gfx\d[\w*-]*)?)*')


def names(path):
    """(line, text) of every literal that consists of names of targets, or of the beginnings of some."""
    text = COMMENT.sub(lambda m: re.sub(r'[^\n]', ' ', m.group()), lint.read(path))
    for match in LITERAL.finditer(text):
        if NAMES.fullmatch(match.group(1).strip()):
            yield text.count('\n', 0, match.start()) + 1, match.group(1)


def list_findings(paths):
    for path in paths:
        for number, text in names(path):
            if path != TABLE and text not in ALLOWED.get(path, ()):
                yield f'{path}:{number}: "{text}": what is true of a chip is a fact of its row in {TABLE}'


def stale_findings():
    for path, allowed in ALLOWED.items():
        for text in sorted(allowed - {text for _, text in names(path)}):
            yield f'tests/lint/chips.py: {path} does not name "{text}" any more'


lint.report(
    ('no list of chips beside the table', list_findings(lint.files('.c', '.h', under='src/'))),
    ('what is allowed is used', stale_findings()),
    ('the table is found', [] if len(list(names(TABLE))) > 30 else [f'{TABLE} has no names']),
)
