#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""unicode.py >src/text/unicode_table.h: the classes of characters that tokenizers split by, as ranges.

The Unicode version is that of the Python that runs it, and is written into the file.
"""
import sys
import unicodedata

HANGUL_VOWELS_AND_TAILS = set(range(0x1161, 0x1176)) | set(range(0x11a8, 0x11c3))


def composed_seconds():
    """Characters that can join with the one before them when text is composed."""
    found = set(HANGUL_VOWELS_AND_TAILS)
    for c in range(sys.maxunicode + 1):
        parts = unicodedata.decomposition(chr(c)).split()
        if len(parts) == 2 and unicodedata.normalize('NFC', chr(c)) == chr(c):
            found.add(int(parts[1], 16))
    return found


def ranges(belongs):
    """(first, last) of each run of code points for which it holds."""
    first = None
    for c in range(sys.maxunicode + 2):
        inside = c <= sys.maxunicode and belongs(c)
        if inside and first is None:
            first = c
        if not inside and first is not None:
            yield first, c - 1
            first = None


def print_ranges(name, rows):
    print(f'static const struct unicode_range {name}[] = {{')
    cells = [f'{{ 0x{first:x}, 0x{last:x} }},' for first, last in rows]
    for i in range(0, len(cells), 5):
        print('    ' + ' '.join(cells[i:i + 5]))
    print('};\n')


def category(letter):
    return lambda c: unicodedata.category(chr(c))[0] == letter


def main():
    seconds = composed_seconds()

    def may_change(c):
        if 0xd800 <= c <= 0xdfff:
            return False
        return bool(c in seconds or unicodedata.combining(chr(c)) or unicodedata.normalize('NFC', chr(c)) != chr(c))

    print('/* SPDX-License-Identifier: Apache-2.0')
    print(f' * Unicode {unicodedata.unidata_version}.  Made by scripts/unicode.py; sorted. */')
    print('#ifndef CAIRN_TEXT_UNICODE_TABLE_H\n#define CAIRN_TEXT_UNICODE_TABLE_H\n\n#include <stdint.h>\n')
    print('/* clang-format off */')
    print('struct unicode_range {\n    uint32_t first, last;\n};\n')
    print_ranges('letters', ranges(category('L')))
    print_ranges('numbers', ranges(category('N')))
    print('/* Alone or after another character, composition (NFC) may change these. */')
    print_ranges('unstable', ranges(may_change))
    print('/* clang-format on */\n#endif')


main()
