# SPDX-License-Identifier: Apache-2.0
"""pages.py OUT FILE...: writes text files as a C file OUT with the table `pages`: name and text of each.

docs/rules/override.md becomes "rules/override", configs/gpt-tiny.yaml "example/gpt-tiny"."""
import pathlib
import sys

ESCAPES = {'\\': '\\\\', '"': '\\"', '\n': '\\n'}
FOLDERS = {'rules': 'rules', 'configs': 'example'}


def literal(text):
    lines = [''.join(ESCAPES.get(c, c) for c in line) for line in text.splitlines(keepends=True)]
    return '\n'.join('      "%s"' % line for line in lines)


def main(target, *sources):
    with open(target, 'w', encoding='utf-8') as f:
        f.write('/* Made from docs/rules and configs; do not edit. */\n#include "cli/pages.h"\n#include <stddef.h>\n\n'
                'const struct page pages[] = {\n')
        for source in map(pathlib.Path, sources):
            f.write('    { "%s/%s",\n%s },\n' % (FOLDERS[source.parent.name], source.stem,
                                                 literal(source.read_text(encoding='utf-8'))))
        f.write('    { NULL, NULL },\n};\n')


main(*sys.argv[1:])
