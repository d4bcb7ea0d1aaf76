#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""text_tables.py entities >src/text/html_entity_table.h
text_tables.py classes >src/text/mojibake_table.h
text_tables.py encodings >src/text/encoding_table.h
text_tables.py replacements >src/text/replacement_table.h

The tables of src/text/text_clean.h.  The entities are those of Python's html.entities; the others need the package ftfy.
"""
import html
import html.entities
import sys
import unicodedata

WIDTH = 118


def octal(text):
    """The inside of a C string: ASCII, and octal escapes for all else."""
    plain = set(map(chr, range(0x20, 0x7f))) - set('"\\?')
    out = ''
    for b, after in zip(text.encode(), text.encode()[1:] + b'0'):
        out += chr(b) if chr(b) in plain else f'\\{b:03o}' if chr(after).isdigit() else f'\\{b:o}'
    return out


def print_cells(cells, indent=4):
    line = ' ' * indent
    for cell in cells:
        if len(line) + len(cell) > WIDTH:
            print(line.rstrip())
            line = ' ' * indent
        line += cell + ' '
    print(line.rstrip())


def print_string(parts, indent=4):
    line = ''
    for part in map(octal, parts):
        if line and indent + len(line) + len(part) + 2 > WIDTH:
            print(' ' * indent + f'"{line}"')
            line = ''
        line += part
    print(' ' * indent + f'"{line}"')


def print_head(guard, comment):
    print(f'/* SPDX-License-Identifier: Apache-2.0\n * {comment}  Made by scripts/text_tables.py; sorted. */')
    print(f'#ifndef {guard}\n#define {guard}\n\n#include <stdbool.h>\n#include <stdint.h>\n\n/* clang-format off */')


def print_tail():
    print('/* clang-format on */\n#endif')


def ftfy_version():
    import ftfy
    return f'ftfy {ftfy.__version__}'


def upper_value(name, value):
    """What ftfy takes the name in capitals for, "" for the same value; None if it is no entity."""
    capitals = f'&{name.upper()};'
    if name != name.lower() or html.unescape(capitals) != capitals:
        return None
    return '' if value.upper() == value else value.upper()


def entity(name):
    value = html.entities.html5[name + ';']
    capitals = upper_value(name, value)
    if name in html.entities.html5 and html.entities.html5[name] != value:
        sys.exit(f'{name}: another value without the semicolon')
    kind = '\2' if name in html.entities.html5 else '\1'
    return name + kind + value + ('' if capitals is None else '\3' + capitals) + '\0'


def entities():
    names = sorted(n[:-1] for n in html.entities.html5 if n.endswith(';'))
    bare = [n for n in html.entities.html5 if not n.endswith(';')]
    if not set(bare) <= set(names) or any(len(n) < 2 or not n.isascii() or not n[0].isalpha() for n in names):
        sys.exit('html.entities is not what html_entity.c expects')
    print_head('CAIRN_TEXT_HTML_ENTITY_TABLE_H', 'The named characters of HTML 5.')
    print(f'enum {{ ENTITY_BARE_MAX = {max(map(len, bare))} }};\n')
    print('/* Each is NAME, 1 or 2, VALUE, perhaps 3 and the value of the name in capitals (none: the same), 0.')
    print(' * 2: the semicolon may be missing. */')
    print('static const char entities[] =')
    rows = [entity(n) for n in names]
    print_string(rows)
    print('    ;\n\n/* Where the names with each first letter begin, from A on, and the end. */')
    print("static const uint16_t entity_starts['z' - 'A' + 2] = {")
    letters = map(chr, range(ord('A'), ord('z') + 2))
    print_cells([f'{sum(len(r.encode()) for r in rows if r[0] < letter)},' for letter in letters])
    print('};')
    print_tail()


def members(pattern):
    """The characters of the inside of a bracket expression."""
    i = 0
    while i < len(pattern):
        if pattern[i + 1:i + 2] == '-':
            yield from range(ord(pattern[i]), ord(pattern[i + 2]) + 1)
            i += 3
        else:
            yield ord(pattern[i])
            i += 1


def print_classes(classes):
    mask = {}
    for bit, (_, pattern) in enumerate(classes):
        for c in members(pattern):
            mask[c] = mask.get(c, 0) | 1 << bit
    print('enum char_class {')
    for bit, (name, _) in enumerate(classes):
        print(f'    {name} = 1 << {bit},')
    print(f'}};\nenum {{ CHAR_CLASSES = {len(classes)} }};\n')
    runs = []
    for c in sorted(mask):
        if runs and runs[-1][1] == c - 1 and runs[-1][2] == mask[c]:
            runs[-1][1] = c
        else:
            runs.append([c, c, mask[c]])
    print('static const struct {\n    uint16_t first, last;\n    uint32_t classes;\n} char_classes[] = {')
    print_cells([f'{{ 0x{a:x}, 0x{b:x}, 0x{m:x} }},' for a, b, m in runs])
    print('};')


def print_encodings(encodings):
    print('/* The bytes from 0x80 of each encoding, in the order of their characters. */')
    print('static const struct encoding {\n    const char *name;\n    bool sloppy;   /* 0x1a stands for U+FFFD */')
    print('    bool mend_a0;  /* a space may have been 0xa0 */')
    print('    struct {\n        uint16_t c;\n        uint8_t byte;\n    } map[128];\n} encodings[] = {')
    for name in encodings:
        pairs = sorted((ord(bytes([b]).decode(name)), b) for b in range(0x80, 0x100))
        if len({c for c, _ in pairs}) != 128 or b'\x1a'.decode(name) != ('\ufffd' if 'sloppy' in name else '\x1a'):
            sys.exit(f'{name} is not what fix_encoding.c expects')
        sloppy, mend = str('sloppy' in name).lower(), str(name != 'macroman').lower()
        print(f'    {{ "{name}", {sloppy}, {mend}, {{')
        print_cells([f'{{ 0x{c:x}, 0x{b:x} }},' for c, b in pairs], 8)
        print('    } },')
    print('};')


def print_replacements(fixes):
    def replaced(c):
        text = fixes.fix_character_width(fixes.fix_latin_ligatures(fixes.fix_c1_controls(chr(c))))
        return fixes.fix_line_breaks(fixes.uncurl_quotes(text))
    rows = [(c, replaced(c)) for c in range(0x80, 0x10000) if not 0xd800 <= c <= 0xdfff and replaced(c) != chr(c)]
    beyond = [c for c in range(0x10000, 0x110000) if replaced(c) != chr(c)]
    if beyond or any(len(t.encode()) > 3 or '\0' in t for _, t in rows):
        sys.exit('the replaced characters are not what fix_text.c expects')
    print('/* C1 controls, ligatures, full and half width, quotes and line ends; sorted. */')
    print('static const struct {\n    uint16_t c;\n    char text[4];\n} replacements[] = {')
    print_cells([f'{{ 0x{c:x}, "{octal(t)}" }},' for c, t in rows])
    print('};\n')
    zeros = [c for c in range(0x110000) if unicodedata.category(chr(c)) == 'Nd' and unicodedata.decimal(chr(c)) == 0]
    if any(unicodedata.category(chr(z + i)) != 'Nd' for z in zeros for i in range(10)):
        sys.exit('decimal digits do not come in tens')
    print('/* The digit zero of each script; the other nine follow it. */')
    print('static const uint32_t digit_zeros[] = {')
    print_cells([f'0x{z:x},' for z in zeros])
    print('};')


def classes():
    from ftfy import badness, chardata
    named = [('MOJIBAKE_' + name.upper(), p) for name, p in badness.MOJIBAKE_CATEGORIES.items()]
    named += [(name.upper(), p) for name, p in chardata.UTF8_CLUES.items()]
    print_head('CAIRN_TEXT_MOJIBAKE_TABLE_H', f'Characters that occur in mojibake, as {ftfy_version()} classifies them.')
    print_classes(named)
    print_tail()


def encodings():
    from ftfy import chardata
    print_head('CAIRN_TEXT_ENCODING_TABLE_H', f'The encodings that {ftfy_version()} tries, in its order of trial.')
    print_encodings(chardata.CHARMAP_ENCODINGS)
    print_tail()


def replacements():
    from ftfy import fixes
    print_head('CAIRN_TEXT_REPLACEMENT_TABLE_H', f'Characters that {ftfy_version()} replaces one by one.')
    print_replacements(fixes)
    print_tail()


{'entities': entities, 'classes': classes, 'encodings': encodings, 'replacements': replacements}[sys.argv[1]]()
