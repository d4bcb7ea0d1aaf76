# SPDX-License-Identifier: Apache-2.0
"""kernels.py rows OUT FILE.k …          the table of kernels, and their texts, as C
kernels.py host OUT STORAGE VARIANT FILE.k …   one C file with all kernels for one format and CPU"""
import os
import re
import sys

KERNELS = os.path.dirname(os.path.abspath(__file__)) + '/../src/gpu/kernels'
STORAGES = ['f32', 'bf16', 'f16']
# What a variant for the CPU defines; the last two are ways in which tests run a kernel.
VARIANTS = {
    'debug': ['#define K_DEBUG 1'],
    'avx2': ['#define K_NO_MMA 1'],
    'avx512': ['#define K_NO_MMA 1'],
    'order': ['#define K_ORDER 1'],
    'fiber': ['#define K_FIBER 1'],
}


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def sizes_of(path):
    """What K_SIZE is, one after the other; a file without K_SIZES is compiled once."""
    found = re.search(r'^#define K_SIZES (.*)', read(path), re.M)
    return found.group(1).split() if found else ['']


def chip_of(path):
    """NAME.CHIP.k is for that chip alone."""
    found = re.fullmatch(r'\w+\.(\w+)\.k', os.path.basename(path))
    return found and found.group(1)


def with_size(expression, size):
    return re.sub(r'\bK_SIZE\b', size, expression) if size else expression


def parse(path, size):
    """The kernels of a file: (name, struct of its arguments, formats it is for, whether it takes matrix cores, bytes of
    shared memory that are asked for at the launch)."""
    pattern = r'^K_KERNEL(_MMA|_SIZED|_BESIDE|_CHIP)?\((\w+), (\w+)(?:, ([^,()]+))?(?:, [^)]+)?\)'
    for_mma = ['_MMA', '_SIZED', '_CHIP']
    return [(sized(name, size), args, STORAGES[1:] if kind in for_mma else STORAGES, kind in for_mma,
             with_size(more, size) if kind == '_CHIP' else '0')
            for kind, name, args, more in re.findall(pattern, read(path), re.M)]


def sized(name, size):
    return name + '_' + size if size else name


def define(size):
    return '#define K_SIZE %s\n' % size if size else ''


def name_of(path):
    return os.path.basename(path)[:-len('.k')]


def header_of(path):
    """The arguments of NAME_WAY.k may be those of NAME.k, and those of NAME.CHIP.k are."""
    path = re.sub(r'\.\w+\.k$', '.k', path)
    own = path[:-len('.k')] + '.h'
    return own if os.path.exists(own) else path[:path.rindex('_')] + '.h'


def c_string(text):
    escapes = {'\\': '\\\\', '"': '\\"', '\n': '\\n'}
    lines = [''.join(escapes.get(c, c) for c in line) for line in text.splitlines(keepends=True)]
    return '\n'.join('    "%s"' % line for line in lines)


def without_includes(text):
    return re.sub(r'^#include .*\n', '', text, flags=re.M)


def prelude():
    return read(KERNELS + '/prelude.k') + ''.join(
        '#line 1 "%s"\n%s' % (name, read(KERNELS + '/' + name)) for name in ('library.k', 'rows.k', 'mma.k', 'debug.k'))


def version(variant, mma):
    """Nobody waits for a kernel for matrix cores on a CPU: the plain version does for all of them."""
    return 'plain' if mma and '#define K_NO_MMA 1' in VARIANTS.get(variant, []) else variant


def write_rows(out, variants, files):
    lines = ['/* Made by kernels.py; do not edit. */', '#include "gpu/kernel_rows.h"', '']
    lines += ['#include "%s"' % os.path.abspath(header_of(f)) for f in files]
    lines += ['', 'const char kernel_types[] =', c_string(read(KERNELS + '/types.h')) + ';',
              'const char kernel_prelude[] =', c_string(prelude()) + ';']
    lines += ['', 'const struct kernel_text kernel_texts[] = {']
    texts = [(f, size) for f in files for size in sizes_of(f)]
    for f, size in texts:
        lines += ['    { "%s",' % sized(name_of(f), size), c_string(without_includes(read(header_of(f))) + define(size)) + ',',
                  c_string(read(f)) + ',', '      %s },' % ('"%s"' % chip_of(f) if chip_of(f) else 'NULL')]
    lines += ['};', 'const size_t n_kernel_texts = sizeof(kernel_texts) / sizeof(kernel_texts[0]);', '']
    rows = []
    for i, (f, size) in enumerate(texts):
        group = with_size(re.search(r'^#define K_WG (.+)', read(f), re.M).group(1), size)
        for kernel, args, storages, mma, shared in parse(f, size):
            names = [['%s_%s_%s' % (kernel, s, version(v, mma)) for v in variants]
                     if s in storages and not chip_of(f) else [] for s in STORAGES]
            for column in filter(None, names):
                lines += ['kernel_fn %s;' % ', '.join(dict.fromkeys(column))]
            table = ', '.join('{ %s }' % ', '.join(column or ['NULL']) for column in names)
            rows += ['    { "%s", &kernel_texts[%d], sizeof(struct %s), %s, %s, %s, { %s } },' %
                     (kernel, i, args, group, shared, str(mma).lower(), table)]
    lines += ['', 'const struct kernel_row kernel_rows[] = {'] + rows + ['};']
    lines += ['const size_t n_kernel_rows = sizeof(kernel_rows) / sizeof(kernel_rows[0]);', '']
    with open(out, 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines))


def write_host(out, storage, variant, files):
    lines = ['/* Made by kernels.py; do not edit. */', '#define K_STORAGE %d' % STORAGES.index(storage),
             '#define K_VARIANT _%s' % variant] + VARIANTS.get(variant, [])
    lines += ['#include "gpu/kernels/types.h"', '#include "gpu/kernels/prelude.k"',
              '#include "gpu/kernels/library.k"', '#include "gpu/kernels/rows.k"', '#include "gpu/kernels/mma.k"',
              '#include "gpu/kernels/debug.k"']
    for f in files:
        for size in sizes_of(f):
            lines += ['#include "%s"' % os.path.abspath(header_of(f)), define(size) + '#include "%s"' % os.path.abspath(f),
                      '#undef K_WG', '#undef K_SIZE', '#undef K_SIZES']
    with open(out, 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines) + '\n')


def device_text(storage, files):
    """All kernels as one text for a GPU's compiler, but for those of one chip."""
    files = [f for f in files if not chip_of(f)]
    parts = ['#define K_STORAGE %d\n' % STORAGES.index(storage), read(KERNELS + '/types.h'),
             '#line 1 "prelude.k"\n', prelude()]
    for f in files:
        for size in sizes_of(f):
            for path in [header_of(f), f]:
                parts += [define(size), '#line 1 "%s"\n' % os.path.basename(path),
                          re.sub(r'^#include .*', '', read(path), flags=re.M)]
            parts += ['#undef K_WG\n#undef K_SIZE\n#undef K_SIZES\n']
    return ''.join(parts)


def main():
    if sys.argv[1] == 'rows':
        write_rows(sys.argv[2], sys.argv[3].split(','), sys.argv[4:])
    else:
        write_host(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])


if __name__ == '__main__':
    main()
