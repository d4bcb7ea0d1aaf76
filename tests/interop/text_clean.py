# SPDX-License-Identifier: Apache-2.0
"""Captions beside Python: ftfy.fix_text, html.unescape twice, white space to one space, strip."""
import functools
import html
import html.entities
import os
import random
import re
import struct
import subprocess
import unicodedata

import tap

try:
    import ftfy
    from ftfy import chardata
except ImportError:  # an interpreter of the user's own
    ftfy = None

CLEAN = os.environ['CAIRN_TEXT_CLEAN']

SENTENCES = [
    "It's the “best” café in town — naïve façade, 20 °C, £5 or €6…", 'L’été à la mer, ça coûte 3½ €; où est-il?', 'às vezes, àquela hora à noite',
    'Größe: Straße, Ärger, Öl, Übung „so“ ‚oder‘ so', 'El niño comió ¿qué? ¡Mañana! «sí» nº 1ª',
    'Ψυχή και σώμα, Άγιος Βασίλης ήρθε', 'Съешь же ещё этих мягких булок — «да»',
    'Українська ґанок, їжак, є', 'Zażółć gęślą jaźń', 'Příliš žluťoučký kůň úpěl', 'Pijamalı hasta yağız şoföre',
    'Ģimene šķūņa ļoti žāvēta', 'العربية جميلة جدا ٣٤', 'עברית שלום',
    'हिन्दी में वाक्य', 'ภาษาไทย', '日本語のテキスト、漢字と仮名。', '中文也可以，１２３。', '한국어 문장', '🙂🙃 👨‍👩‍👧‍👦 🇩🇪 👍🏽',
    'ＬＯＵＤ　ＮＯＩＳＥＳ ﾀｰﾝ ﾊﾞ ￣￥ ﾡￂ', 'ﬂuﬃeﬆ Ĳssel ŉ ǅ', '(╯°□°)╯︵ ┻━┻ ಠ_ಠ',
    'a\u0301e\u0300 o\u0308\u0323 \u1100\u1161\u11a8 \u212b \u2126', '│┌┐ ═║ ░▒▓ ±≠≤≥∂∑∏π∫ª ßµ',
    'plain words, nothing else', 'two\nlines\r\nthree\rfour\u2028five\u2029six\x85seven',
]
CONTROLS = ['\0', '\x01', '\x0b', '\x0c', '\x1a', '\x1b', '\x1c', '\x1f', '\x7f', '\x85', '\x9b', '\u200b',
            '\u200d', '\u206a', '\ufeff', '\ufffc', '\ufffd', '\ufffe',
            '\U0001fffe', '\u00ad', '\x1b[31;1m', '\x1b[m', '\x1b[٣m', '\x1b[0', '\t', '\r', '\n', '\r\n', '\u3000', '\u2003']
PASTED = ['à', '.Â ', '™Â x', 'Ã', 'Â', 'Ã ', ' Â ', 'â€™', 'â€œ', 'â€�', 'Ã©', 'вЂ™', 'β€™', 'ā€™', '√©', '‚Äô', 'í\xa0½í¸\x80',
          'À\x80', '?', '�', '\xa0', 'Ã\xa0', '<', '&']
ENCODINGS = ['latin-1', 'cp1252', 'cp1251', 'cp1250', 'cp1253', 'cp1254', 'cp1257', 'iso-8859-2', 'macroman', 'cp437']


def reference(raw):
    text = ftfy.fix_text(raw.decode('utf-8', 'replace'))
    text = html.unescape(html.unescape(text)).strip()
    return re.sub(r'\s+', ' ', text).strip()


def cairn(raw):
    data = b''.join(struct.pack('<I', len(r)) + r for r in raw)
    done = subprocess.run([CLEAN], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors='replace').strip())
    texts, at = [], 0
    while at < len(done.stdout):
        size, = struct.unpack_from('<I', done.stdout, at)
        texts.append(done.stdout[at + 4:at + 4 + size].decode())
        at += 4 + size
    return texts


def compare(texts):
    raw = [t if isinstance(t, bytes) else t.encode() for t in texts]
    ours = cairn(raw)
    if len(ours) != len(raw):
        yield f'{len(ours)} answers to {len(raw)} texts'
    different = [(r, o, w) for r, o, w in zip(raw, ours, map(reference, raw)) if o != w]
    if different:
        yield f'{len(different)} of {len(raw)} differ'
    for r, got, want in different[:20]:
        yield f'{r!r}: cairn {got!r}, Python {want!r}'


def established(c):
    """In Unicode long ago: each side has tables of its own year."""
    then = unicodedata.ucd_3_2_0.category(c)
    return then not in ('Cn', 'Cs') and then == unicodedata.category(c)


@functools.lru_cache(None)
def characters():
    return [c for c in map(chr, range(0x30000)) if established(c)]


@functools.lru_cache(None)
def suspects():
    """Every character that occurs in mojibake, and some ASCII."""
    found = {bytes([b]).decode(e) for e in chardata.CHARMAP_ENCODINGS for b in range(0x80, 0x100)}
    return sorted(found) + list('azAZ09 \n.,?!_') * 3 + ['\ufffd', '\xa0', 'Ã', 'Â', '\u2060']


def piece(rng):
    text = rng.choice(SENTENCES)
    begin = rng.randrange(len(text))
    return text[begin:begin + rng.randrange(1, 30)]


def broken(rng, text):
    """UTF-8 that was read with another encoding, perhaps strictly, perhaps cut."""
    encoding, raw = rng.choice(ENCODINGS), text.encode('utf-8', 'replace')
    if rng.random() < 0.2:
        raw = raw[rng.randrange(3):len(raw) - rng.randrange(3)]
    if rng.random() < 0.1:
        units = struct.iter_unpack('<H', text.encode('utf-16-le'))
        raw = b''.join(chr(u).encode('utf-8', 'surrogatepass') for u, in units)  # CESU-8
    if encoding.startswith('cp12') and rng.random() < 0.6:
        return raw.decode('sloppy-' + encoding.replace('cp', 'windows-'))
    text = raw.decode(encoding, 'replace')
    return text.replace('\xa0', ' ') if rng.random() < 0.3 else text


def mojibake(rng):
    text = ''.join(piece(rng) for _ in range(rng.randrange(1, 4)))
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3])):
        text = broken(rng, text)
    if rng.random() < 0.3:
        text = piece(rng) + text + piece(rng)
    if rng.random() < 0.2:
        text = html.escape(text)
    if rng.random() < 0.2:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(PASTED + CONTROLS) + text[at:]
    return text


def entity(rng):
    name = rng.choice(entity_names())
    number = rng.choice([rng.randrange(0x100), rng.randrange(0x3000), rng.randrange(0x110000), rng.randrange(0x200000)])
    while number < 0x110000 and number > 0x9f and not established(chr(number)):
        number = rng.randrange(0x3000)
    names = [name + ';', name, name + 'x', name[:-1], name.upper() + ';', name.lower() + ';', name + '&', 'amp;' + name + ';']
    numbers = [f'#{number};', f'#{number}', f'#x{number:x};', f'#X{number:X}', f'#{number}a;', '#59', '#x3b;', '#' + '0' * 25 + '65;']
    return '&' + rng.choice(rng.choice([names, numbers, ['#', '#x', '#;', 'amp;amp;lt;', 'é;', ';', '']]))


@functools.lru_cache(None)
def entity_names():
    return sorted(n.rstrip(';') for n in html.entities.html5)


def entities(rng):
    parts = [entity(rng) if rng.random() < 0.5 else piece(rng) for _ in range(rng.randrange(1, 8))]
    if rng.random() < 0.15:
        parts.insert(rng.randrange(len(parts)), rng.choice(['<', '<b>', '\n', '\n<\n']))
    return ''.join(parts)


def nested(rng):
    """References to "&" in each other, some to the same depth, beside what else is to be fixed."""
    depth = rng.randrange(1, 12)
    def chain():
        levels = rng.choice([depth, depth, rng.randrange(12)])
        return '&' + ''.join(rng.choice(['amp;', 'amp;', 'AMP;', '#38;', '#x26;']) for _ in range(levels)) + entity(rng)[1:]
    makers = [chain, chain, lambda: piece(rng), lambda: broken(rng, piece(rng)), lambda: rng.choice(PASTED + CONTROLS), lambda: entity(rng)]
    return ''.join(rng.choice(makers)() for _ in range(rng.randrange(1, 8)))


def juxtaposed(rng):
    return ''.join(rng.choice(suspects()) for _ in range(rng.randrange(1, 9)))


def misread(rng):
    """One or two characters of any script, read with another encoding: few rules see each of them."""
    text = broken(rng, ''.join(rng.choice(characters()) for _ in range(rng.choice([1, 1, 2]))))
    return rng.choice(['', '', 'a', 'É', ' ']) + text + rng.choice(['', '', 'z', ' '])


def mixture(rng):
    one_of = [lambda r, pool=pool: r.choice(pool) for pool in (CONTROLS, PASTED, characters())]
    makers = [piece, juxtaposed, entity, *one_of]
    return ''.join(rng.choice(makers)(rng) for _ in range(rng.randrange(1, 10)))


def spoiled(rng):
    """Invalid UTF-8."""
    raw = bytearray(mixture(rng).encode())
    for _ in range(rng.randrange(1, 6)):
        raw.insert(rng.randrange(len(raw) + 1), rng.choice(b'\x80\xc0\xc3\xe2\xe0\xed\xa0\x9f\xf0\x90\xf4\xf5\xff'))
        at = rng.randrange(len(raw))
        del raw[at:at + rng.randrange(2)]
    return bytes(raw)


def case(maker, count, seed):
    def run():
        if not ftfy:
            raise tap.Skip('this Python has no ftfy')
        rng = random.Random(seed)
        return list(compare([maker(rng) for _ in range(count)]))
    run.__name__ = maker.__name__
    return run


def every_entity():
    if not ftfy:
        raise tap.Skip('this Python has no ftfy')
    forms = ['&{};', '&{}', 'x&{}x', '<&{};', '&amp;{};', '&{};;']
    names = entity_names() + [n.upper() for n in entity_names()]
    return list(compare([f.format(n) for n in sorted(set(names)) for f in forms]))


def every_pair():
    """Each two suspects, between letters and alone."""
    if not ftfy:
        raise tap.Skip('this Python has no ftfy')
    some = sorted(set(suspects()))
    rng = random.Random(5)
    pairs = rng.sample([a + b for a in some for b in some], 4000)
    return list(compare(pairs + ['a' + p + 'é' for p in pairs[:1000]] + [' ' + p + ' ' for p in pairs[1000:2000]]))


tap.run([every_entity, every_pair, case(mojibake, 8000, 1), case(entities, 3000, 2), case(juxtaposed, 4000, 3),
         case(mixture, 4000, 4), case(spoiled, 1500, 6), case(misread, 10000, 7), case(nested, 6000, 8)])
