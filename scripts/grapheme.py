#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""grapheme.py >src/text/grapheme_table.h: where text may be cut between characters that a reader sees, and \\w.

It needs the package `regex`, whose Unicode version it has.
"""
import sys

import regex

CLASSES = [('CONTROL', r'[\p{GCB=Control}\p{GCB=CR}\p{GCB=LF}]'), ('EXTEND', r'[\p{GCB=Extend}\p{GCB=ZWJ}]'), ('SPACING', r'\p{GCB=SpacingMark}'),
           ('PREPEND', r'\p{GCB=Prepend}'), ('PICTURE', r'\p{Extended_Pictographic}'), ('FLAG', r'\p{GCB=Regional_Indicator}'),
           ('L', r'\p{GCB=L}'), ('V', r'\p{GCB=V}'), ('T', r'\p{GCB=T}'), ('CONSONANT', r'\p{InCB=Consonant}')]
WORD = r'[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]'


def runs(value):
    """(first, last, value) of each run of code points with the same value, if it has one."""
    first, here = 0, None
    for c in range(sys.maxunicode + 2):
        now = value(chr(c)) if c <= sys.maxunicode and not 0xd800 <= c <= 0xdfff else None
        if now != here:
            if here is not None:
                yield first, c - 1, here
            first, here = c, now


def print_table(declaration, cells, in_line):
    print(declaration + '[] = {')
    for i in range(0, len(cells), in_line):
        print('    ' + ' '.join(cells[i:i + in_line]))
    print('};\n')


def main():
    classes = [(name, regex.compile(pattern)) for name, pattern in CLASSES]
    word, linker = regex.compile(WORD), regex.compile(r'\p{InCB=Linker}')
    print('/* SPDX-License-Identifier: Apache-2.0')
    print(f' * Made by scripts/grapheme.py with regex {regex.__version__}; sorted.  Syllables of Hangul are computed. */')
    print('#ifndef CAIRN_TEXT_GRAPHEME_TABLE_H\n#define CAIRN_TEXT_GRAPHEME_TABLE_H\n\n#include <stdint.h>\n')
    print('/* clang-format off */')
    print('enum grapheme_class {\n    GRAPHEME_OTHER,')
    for name, _ in CLASSES:
        print(f'    GRAPHEME_{name},')
    print('    GRAPHEME_LINKER,\n    GRAPHEME_LV,\n    GRAPHEME_LVT,\n};\n')
    print('struct grapheme_range {\n    uint32_t first, last;\n    enum grapheme_class class;\n};\n')

    def class_of(c):
        if linker.match(c):
            return 'LINKER'
        return next((name for name, pattern in classes if pattern.match(c)), None)
    print_table('static const struct grapheme_range graphemes', [f'{{ 0x{a:x}, 0x{b:x}, GRAPHEME_{v} }},' for a, b, v in runs(class_of)], 3)
    print('struct word_range {\n    uint32_t first, last;\n};\n')
    print_table('static const struct word_range words', [f'{{ 0x{a:x}, 0x{b:x} }},' for a, b, _ in runs(lambda c: True if word.match(c) else None)], 5)
    print('/* clang-format on */\n#endif')


main()
