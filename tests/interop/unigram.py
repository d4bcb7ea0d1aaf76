# SPDX-License-Identifier: Apache-2.0
"""Unigram tokenizers beside the packages `sentencepiece` and `tokenizers`: each file gives the ids of its own library.

unigram.py [COUNT]: with so many texts, 20,000 if it is not given.
"""
import functools
import os
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

import tap

try:
    import sentencepiece
except ImportError:  # an interpreter of the user's own
    sentencepiece = None

TOOL = os.environ['CAIRN_UNIGRAM']
COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 20000

FIXED = [
    b'', b' ', b'   ', b'\n', b'\t \r\n', b'a', b' a', b'a ', b'  a  b  ', b'\x00', b'a\x00b', b'\x01\x02\x1f\x7f', b'\xff', b'a\xffb\xfe\xfe',
    b'\xc0\x80', b'\xed\xa0\x80', b'\xf5\x80\x80\x80', b'\xf4\x90\x80\x80', b'\xe3\x81', b'\xe3', b'\xf0\x9f\x98', b'ab\xe2\x96', b'\xe2\x96\x81', b'\xe2\x96\x81\xe2\x96\x81a',
    b'a' * 5000, b'ab' * 2000 + b' ' * 900 + b'c', b' ' * 3000, b'aaaaaaaaaaab' * 40, b'.' * 777, b'stone' * 500, 'é'.encode() * 3000,
    '👨‍👩‍👧‍👦 🇩🇪🇫🇷 👍🏽 ❤️ 🏴\U000e0067\U000e0062\U000e007f'.encode(), 'ﬁ\u0301x e\u0323\u0302 ｶﾞ \u1100\u1161\u11a8 각\u11a8 \u0958\u0301 क्क\u0301'.encode(),
    '１２３ Ⅷ ½ ㍿ ㌔ ﷺ ＡＢＣ \u00a0\u2003\u3000x\u200b\ufeff\u00ad'.encode(), b'<unk> <s> </s> <pad> <0x41> <extra_id_0> <mask>',
    'Straße İstanbul ΣΑΣ ǅ ẞ'.encode(), b'a\r\nb\n\rc\r\r\nd', '\ufffd \ufffd\ufffd'.encode(), '[X] [ X ] a[X]b <tag>< tag>日本 日本語'.encode(),
]

SCRIPTS = ['abcdefgh stonerivewall.,!?', 'éèüßñçøåłžšđþ ', 'абвгдежзийклмн ', 'αβγδεζηθικς ', 'אבגדהוזחט ', 'ابتثجحخدذر\u064b\u0651 ', 'अआकखगघ\u093e\u093f\u094d\u093c ',
           'กขคงจฉ\u0e31\u0e34\u0e48 ', '日本語漢字仮名中文 ', 'かがきぎアイウｱｲｳﾞﾟ', '한국어문장가각각 ', '🙂🙃👍🏽👨\u200d👩\u200d❤\ufe0f🇩🇪', 'a\u0301\u0302\u0323e\u0308o\u0327 ',
           '０１２ＡＢｃ①②㍿ﬁﬂ½Ⅷ', '\x00\x01\x08\t\n\x0b\x0c\r\x1b\x7f\x85\xa0\u2028\u200b\ufeff ', '0123456789 -+.,', '<>[]X/s_▁ ']


@functools.lru_cache(None)
def corpus():
    """Lines to train with."""
    with open(os.path.join(os.environ['CAIRN_TEST_DATA'], 'text', 'stones.txt'), encoding='utf-8') as f:
        lines = [line for line in f.read().split('\n') if line]
    rng = random.Random(5)
    for script in SCRIPTS[:12]:
        words = [''.join(rng.choice(script) for _ in range(rng.randrange(2, 7))) for _ in range(40)]
        lines += [' '.join(rng.choice(words) for _ in range(8)).replace('\x00', '') for _ in range(30)]
    return lines


def random_text(rng):
    kind = rng.randrange(10)
    if kind < 3:
        words = rng.choice(corpus()).split(' ')
        return ' '.join(rng.choice(words) for _ in range(rng.randrange(1, 12))).encode()
    if kind < 7:
        pool = ''.join(rng.sample(SCRIPTS, rng.randrange(1, 4)))
        return ''.join(rng.choice(pool) for _ in range(rng.randrange(1, 60))).encode()
    if kind < 9:
        return ''.join(random_character(rng) for _ in range(rng.randrange(1, 30))).encode()
    raw = bytearray(rng.choice(corpus()).encode()[:60])
    for _ in range(rng.randrange(1, 6)):
        raw.insert(rng.randrange(len(raw) + 1), rng.randrange(256))
    return bytes(raw)


def random_character(rng):
    """Any character that is assigned."""
    while True:
        c = chr(rng.choice([rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0x10000), rng.randrange(0x110000), rng.randrange(0x1f000, 0x1fb00)]))
        if unicodedata.category(c) not in ('Cs', 'Cn', 'Co'):
            return c


@functools.lru_cache(None)
def texts():
    rng = random.Random(17)
    return FIXED + [random_text(rng) for _ in range(COUNT - len(FIXED))]


def cairn(path, some):
    """The line about the tokenizer, and the ids of the texts."""
    done = subprocess.run([TOOL, path], input=b''.join(struct.pack('<I', len(t)) + t for t in some),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors='replace').strip())
    lines = [[int(i) for i in line.split()] for line in done.stdout.decode().split('\n')[:-1]]
    return lines[0], lines[1:]


def differences(name, some, ours, theirs):
    """A few of the texts with other ids."""
    if len(ours) != len(some):
        yield f'{name}: {len(ours)} answers to {len(some)} texts'
    bad = [i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b]
    for i in bad[:5]:
        yield f'{name}: {some[i][:200]!r}: cairn {ours[i][:60]}, the library {theirs[i][:60]}'
    if bad:
        yield f'{name}: {len(bad)} of {len(some)} differ'


def share(part, of):
    """A share of the texts: the fixed ones and every so manieth."""
    return FIXED + texts()[len(FIXED) + part::of]


# ---- sentencepiece ----

MODELS = {
    'plain': {},
    'bytes': {'byte_fallback': True, 'character_coverage': 0.98},
    'folded': {'normalization_rule_name': 'nmt_nfkc_cf'},
    'nfkc': {'normalization_rule_name': 'nfkc'},
    'identity': {'normalization_rule_name': 'identity', 'byte_fallback': True},
    'rules': {'rules': True},
    'symbols': {'user_defined_symbols': ['<tag>', '日本', '[X]', 'st', ' sp ace', '▁the'], 'control_symbols': ['<mask>', '<extra_id_0>']},
    'symbols-bytes': {'user_defined_symbols': ['<tag>', 'ﬁ', 'a\u0301'], 'byte_fallback': True},
    'no-prefix': {'add_dummy_prefix': False},
    'suffix': {'treat_whitespace_as_suffix': True},
    'spaces': {'remove_extra_whitespaces': False, 'allow_whitespace_only_pieces': True},
    'across': {'split_by_whitespace': False, 'split_by_unicode_script': False, 'split_by_number': False},
    't5': {'pad_id': 0, 'eos_id': 1, 'unk_id': 2, 'bos_id': -1},
    'no-end': {'eos_id': -1, 'bos_id': -1},
}


def train(folder, name, options):
    """A model that the package trained."""
    options = dict(options)
    source = os.path.join(folder, 'corpus.txt')
    with open(source, 'w', encoding='utf-8') as f:
        f.write('\n'.join(corpus()))
    if options.pop('rules', False):
        rules = os.path.join(folder, 'rules.tsv')
        with open(rules, 'w', encoding='utf-8') as f:
            f.write('41\t61\n61 62 63\t78\n61 62\t79 7A\nDF\t73 73\n1F642\t3A 29\n09\t20\n71\t\n20 71\t20 20\n')
        options['normalization_rule_tsv'] = rules
    sentencepiece.SentencePieceTrainer.train(
        input=source, model_prefix=os.path.join(folder, name), vocab_size=1200, hard_vocab_limit=False, num_threads=2,
        minloglevel=2, **options)
    return os.path.join(folder, name + '.model')


def the_ids_of_sentencepiece():
    if not sentencepiece:
        raise tap.Skip('this Python has no sentencepiece')
    with tempfile.TemporaryDirectory() as folder:
        for i, (name, options) in enumerate(MODELS.items()):
            path = train(folder, name, options)
            library = sentencepiece.SentencePieceProcessor(model_file=path)
            some = texts() if name in ('plain', 'bytes') else share(i, 8)
            about, ours = cairn(path, some)
            yield from differences(name, some, ours, library.encode(some))
            want = [library.eos_id(), library.unk_id(), library.get_piece_size()]
            if about != want:
                yield f'{name}: </s>, <unk> and the number of ids are {about}, want {want}'


if __name__ == '__main__':
    tap.run([the_ids_of_sentencepiece])
