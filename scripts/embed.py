# SPDX-License-Identifier: Apache-2.0
"""Files that travel inside the program, as C.

embed.py NAME IN OUT                     the text file IN as `const char NAME[]`
embed.py --assets FOLDER OUT IN...       the files of the page as `struct asset web_assets[]` (src/web/assets.h), each
                                         also packed with gzip
"""
import gzip
import hashlib
import os
import sys

ESCAPES = {'\\': '\\\\', '"': '\\"', '\n': '\\n'}


def embed_text(name, source, target):
    with open(source, encoding='utf-8') as f:
        text = f.read()
    lines = [''.join(ESCAPES.get(c, c) for c in line) for line in text.splitlines(keepends=True)]
    with open(target, 'w', encoding='utf-8') as f:
        f.write('/* Made from %s; do not edit. */\n' % source.rsplit('/', 1)[-1])
        f.write('extern const char %s[];\nconst char %s[] =\n' % (name, name))
        f.write('\n'.join('    "%s"' % line for line in lines) + ';\n')


def write_bytes(out, name, data):
    out.write('static const unsigned char %s[] = {\n' % name)
    for at in range(0, len(data), 24):
        out.write(''.join('%d,' % byte for byte in data[at:at + 24]) + '\n')
    out.write('};\n')


def embed_assets(folder, target, *sources):
    rows = []
    with open(target, 'w', encoding='utf-8') as out:
        out.write('/* Made from the files of the page; do not edit. */\n#include "web/assets.h"\n')
        for number, source in enumerate(sources):
            with open(source, 'rb') as f:
                data = f.read()
            packed = gzip.compress(data, 9, mtime=0)
            write_bytes(out, 'plain_%d' % number, data)
            smaller = len(packed) < len(data)
            if smaller:
                write_bytes(out, 'packed_%d' % number, packed)
            path = os.path.relpath(os.path.realpath(source), os.path.realpath(folder))
            rows.append('    { "%s", "%s", plain_%d, %d, %s, %d },\n' % (
                path, hashlib.sha256(data).hexdigest()[:32], number, len(data),
                'packed_%d' % number if smaller else 'NULL', len(packed) if smaller else 0))
        out.write('const struct asset web_assets[] = {\n%s};\n' % ''.join(rows))
        out.write('const size_t n_web_assets = %d;\n' % len(rows))


if sys.argv[1] == '--assets':
    embed_assets(*sys.argv[2:])
else:
    embed_text(*sys.argv[1:])
