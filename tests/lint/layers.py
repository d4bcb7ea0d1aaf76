# SPDX-License-Identifier: Apache-2.0
"""Includes point down, as src/LAYERS says; a module includes its own header first; a library has one user."""
import os
import re

import lint

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

# Each library can be replaced in one place.
OWNERS = {
    'jansson.h': 'src/base/json.c',
    'yaml.h': 'src/base/yaml.c',
    'zstd.h': 'src/host/unpack.c',
    'utf8proc.h': 'src/text/unicode_form.c',
    'zlib.h': 'src/base/deflate.c',
    'sqlite3.h': 'src/job/sql.c',
    'microhttpd.h': 'src/web/server.c',
    'getopt.h': 'src/cli/options.c',
    'png.h': 'src/media/child/png.c',
    'jpeglib.h': ('src/media/child/jpeg.c', 'src/media/child/jpeg_out.c'),
    'webp/decode.h': 'src/media/child/webp.c',
    'avif/avif.h': 'src/media/child/avif.c',
}


def allowed_layers():
    layers = {}
    for number, line in lint.lines('src/LAYERS'):
        if line.strip() and not line.startswith('#'):
            name, _, below = line.partition(':')
            layers[name.strip()] = set(below.split()) | {name.strip()}
    return layers


def includes(path):
    for number, line in lint.lines(path):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def layer_findings(sources):
    layers = allowed_layers()
    for path in sources:
        layer = path.split('/')[1]
        if layer not in layers:
            yield f'{path}: src/LAYERS does not know {layer}'
            continue
        for number, quote, name in includes(path):
            below = name.split('/')[0]
            if quote == '"' and name not in ('config.h', 'media_config.h') and below not in layers[layer]:
                yield f'{path}:{number}: {layer} may not include "{name}"'


def below_itself(layers):
    """LAYERS must not hold a circle: whoever may be included may not include back."""
    for name, below in layers.items():
        for other in below - {name}:
            if other not in layers:
                yield f'src/LAYERS: {name} names {other}, which has no line'
            elif name in layers[other]:
                yield f'src/LAYERS: {name} and {other} include each other'


def first_findings(sources):
    for path in sources:
        header = path[len('src/'):-1] + 'h'
        if not path.endswith('.c') or not os.path.exists(os.path.join(lint.TOP, 'src', header)):
            continue
        first = next(includes(path), None)
        if not first or first[2] != header:
            yield f'{path}: its own header comes first: "{header}"'


def library_findings(sources):
    for path in sources:
        for number, _, name in includes(path):
            if path not in OWNERS.get(name, path):
                yield f'{path}:{number}: <{name}> belongs to {OWNERS[name]}'


sources = lint.files('.c', '.h', under='src/')
lint.report(
    ('includes point down', layer_findings(sources)),
    ('the layers make no circle', below_itself(allowed_layers())),
    ('a module includes its own header first', first_findings(sources)),
    ('a library is included by one module', library_findings(sources)),
    ('there are sources to look at', [] if sources else ['no file below src/']),
)
