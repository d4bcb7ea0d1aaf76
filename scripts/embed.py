# SPDX-License-Identifier: Apache-2.0
"""Files that travel inside the program, as C.

embed.py NAME IN OUT                     the text file IN as `const char NAME[]`
embed.py --assets FOLDER OUT IN...       the files of the page as `struct asset web_assets[]` (src/web/assets.h), each
                                         also packed with gzip; scripts and styles without indentation, scripts
                                         without lines that are a comment
"""
import gzip
import hashlib
import os
import re
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


def shortened(path, data):
    """The file as it travels: statements stay on lines of their own, so that a script means the same.  In a text between backquotes that
    goes over several lines, spaces count: a script with an odd number of backquotes in a line is left as it is."""
    text = data.decode()
    if path.endswith('.js') and not any(line.count('`') % 2 for line in text.splitlines()):
        text = re.sub(r'^[ \t]*//.*$', '', text, flags=re.M)
    elif not path.endswith('.css'):
        return data
    return re.sub(r'^\s+', '', text, flags=re.M).encode()


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
                data = shortened(source, f.read())
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


if __name__ == '__main__':
    if sys.argv[1] == '--assets':
        embed_assets(*sys.argv[2:])
    else:
        embed_text(*sys.argv[1:])
