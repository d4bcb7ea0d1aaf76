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
    import tokenizers
    from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers, trainers
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


# ---- tokenizers ----

def fields(message):
    """(number, value) of a message in the encoding of protocol buffers."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = message[at], at + 1
            value, shift = value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value
    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = varint() if key & 7 == 2 else 4
            yield key >> 3, message[at:at + size]
            at += size


def pieces_and_map(path):
    """What a converter takes from a model: the pieces with their scores, and the charsmap."""
    with open(path, 'rb') as f:
        model = list(fields(f.read()))
    pieces = [dict(fields(value)) for number, value in model if number == 1]
    charsmap = dict(fields(dict(model)[3])).get(2, b'')
    return [(p[1].decode(), struct.unpack('<f', p[2])[0] if 2 in p else 0.0) for p in pieces], charsmap


def t5_normalizer(charsmap):
    steps = [normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(' {2,}'), '▁')]
    return normalizers.Sequence(([normalizers.Precompiled(charsmap)] if charsmap else []) + steps)


def tokenizer(vocab, unknown, fallback=False, normalizer=None, splitter=None, added=()):
    t = tokenizers.Tokenizer(tokenizers.models.Unigram(vocab, unknown, fallback))
    if normalizer:
        t.normalizer = normalizer
    if splitter:
        t.pre_tokenizer = splitter
    t.add_tokens([a for a in added if not a.special])
    t.add_special_tokens([a for a in added if a.special])
    return t


def metaspace(scheme='always', split=True, replacement='▁'):
    return pre_tokenizers.Metaspace(replacement=replacement, prepend_scheme=scheme, split=split)


ADDED = [AddedToken('</s>', special=True), AddedToken('<mask>', special=True, lstrip=True), AddedToken('<extra_id_0>', special=True, rstrip=True),
         AddedToken('st', single_word=True), AddedToken('[X]', normalized=False), AddedToken('[ X ]', normalized=True), AddedToken('日本', normalized=True),
         AddedToken('日本語', normalized=True), AddedToken('ﬁ', normalized=True), AddedToken('s_', lstrip=True, rstrip=True, normalized=True)] if sentencepiece else []


def tokenizers_to_try(folder):
    """(name, tokenizer, the share of the texts): converted models, and one that the package trained."""
    vocab, charsmap = pieces_and_map(train(folder, 'plain', {'pad_id': 0, 'eos_id': 1, 'unk_id': 2, 'bos_id': -1}))
    both = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace()])
    yield 't5', tokenizer(vocab, 2, False, t5_normalizer(charsmap), metaspace()), 1
    yield 't5-added', tokenizer(vocab, 2, False, t5_normalizer(charsmap), metaspace(), ADDED), 4
    yield 'xlmr', tokenizer(vocab, 2, False, normalizers.Precompiled(charsmap), both, ADDED), 4
    yield 'first', tokenizer(vocab, 2, False, t5_normalizer(charsmap), metaspace('first'), ADDED), 4
    yield 'first-words', tokenizer(vocab, 2, False, normalizers.Precompiled(charsmap), pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), metaspace('first')]), ADDED[3:]), 8
    yield 'first-replaced', tokenizer(vocab, 2, False, normalizers.Sequence(
        [normalizers.Replace('st', 'S'), normalizers.Replace('a', ''), normalizers.Nmt(), normalizers.Strip()]), metaspace('first', False)), 8
    yield 'never', tokenizer(vocab, 2, False, normalizers.Replace(Regex(r'\s+'), ' '), metaspace('never')), 8
    yield 'whole', tokenizer(vocab, 2, False, normalizers.Sequence([normalizers.Nmt(), normalizers.Prepend('▁'), normalizers.Replace(' ', '▁')])), 8
    yield 'unsplit', tokenizer(vocab, 2, False, normalizers.Strip(), metaspace('always', False)), 8
    for form in normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD():
        yield 'form-' + type(form).__name__, tokenizer(vocab, 2, False, normalizers.Sequence([form, normalizers.Lowercase()]), metaspace('first')), 8
    yield 'bare', tokenizer(vocab, 2, False), 8
    vocab, charsmap = pieces_and_map(train(folder, 'bytes', MODELS['bytes']))
    yield 'bytes', tokenizer(vocab, 0, True, t5_normalizer(charsmap), metaspace(), ADDED[:1]), 4
    yield 'few-bytes', tokenizer([v for v in vocab if v[0] != '<0x80>'], 0, True, None, metaspace()), 8
    vocab, charsmap = pieces_and_map(train(folder, 'rules', MODELS['rules']))
    yield 'rules', tokenizer(vocab, 0, False, t5_normalizer(charsmap), metaspace()), 8
    t = tokenizer([('<unk>', 0.0)], 0, False, normalizers.Precompiled(charsmap), metaspace())
    t.train_from_iterator(corpus(), trainers.UnigramTrainer(vocab_size=900, show_progress=False, unk_token='<unk>', special_tokens=['<unk>', '</s>']))
    yield 'trained', t, 2


def the_ids_of_tokenizers():
    if not sentencepiece:
        raise tap.Skip('this Python has no sentencepiece or no tokenizers')
    with tempfile.TemporaryDirectory() as folder:
        for i, (name, made, of) in enumerate(tokenizers_to_try(folder)):
            path = os.path.join(folder, name + '.json')
            made.save(path, pretty=bool(i % 2))
            # Read again, as others will: what is read is not always what was saved.
            library = tokenizers.Tokenizer.from_file(path)
            some = [t for t in share(i, of) if t.decode(errors='replace').encode() == t]
            if name.startswith('form-'):  # the two sides have tables of different years
                some = [t for t in some if all(unicodedata.ucd_3_2_0.category(c) != 'Cn' for c in t.decode())]
            _, ours = cairn(path, some)
            yield from differences(name, some, ours, [e.ids for e in library.encode_batch([t.decode() for t in some], add_special_tokens=False)])


def what_is_not_supported_is_named():
    if not sentencepiece:
        raise tap.Skip('this Python has no sentencepiece or no tokenizers')
    vocab = [('<unk>', 0.0), ('a', -1.0)]
    cases = {'BertNormalizer': tokenizer(vocab, 0, False, normalizers.BertNormalizer()), 'ByteLevel': tokenizer(vocab, 0, False, None, pre_tokenizers.ByteLevel()),
             '[ab]c': tokenizer(vocab, 0, False, normalizers.Replace(Regex('[ab]c'), 'x')), 'WordLevel': tokenizers.Tokenizer(tokenizers.models.WordLevel({'a': 0}, 'a'))}
    with tempfile.TemporaryDirectory() as folder:
        for name, made in cases.items():
            path = os.path.join(folder, 'x.json')
            made.save(path)
            try:
                cairn(path, [])
                yield f'{name} is accepted'
            except RuntimeError as e:
                if name not in str(e):
                    yield f'{name} is not named: {e}'


if __name__ == '__main__':
    tap.run([the_ids_of_sentencepiece, the_ids_of_tokenizers, what_is_not_supported_is_named])
