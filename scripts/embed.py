# SPDX-License-Identifier: Apache-2.0
"""embed.py NAME IN OUT: writes the text file IN as a C file OUT with `const char NAME[]`."""
import sys

ESCAPES = {'\\': '\\\\', '"': '\\"', '\n': '\\n'}


def main(name, source, target):
    with open(source, encoding='utf-8') as f:
        text = f.read()
    lines = [''.join(ESCAPES.get(c, c) for c in line) for line in text.splitlines(keepends=True)]
    with open(target, 'w', encoding='utf-8') as f:
        f.write('/* Made from %s; do not edit. */\n' % source.rsplit('/', 1)[-1])
        f.write('extern const char %s[];\nconst char %s[] =\n' % (name, name))
        f.write('\n'.join('    "%s"' % line for line in lines) + ';\n')


main(*sys.argv[1:])
