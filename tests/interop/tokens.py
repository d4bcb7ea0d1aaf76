# SPDX-License-Identifier: Apache-2.0
"""Tokenizers beside the package `tokenizers`: each side opens the other's files, and the ids are the same."""
import functools
import json
import os
import random
import struct
import subprocess
import tempfile

import tap

try:
    import tokenizers
    from tokenizers import decoders, normalizers, pre_tokenizers, trainers
except ImportError:  # an interpreter of the user's own
    tokenizers = None

TOKENS = os.environ['CAIRN_TOKENS']
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K, QWEN2 = CONTRACTIONS + r"|\p{N}{1,3}" + TAIL, CONTRACTIONS + r"|\p{N}" + TAIL

FIXED = [
    '', ' ', '  ', '\n', 'a', "it's we'll THEY'RE don'T 'ſ 'LL 'x", 'a  b   c\t\td \n e\n\n\nf\r\ng \r\n h   ',
    'def f(x):\n    return {"a": [1, 22, 333, 4444], \'b\': x**2}  # done!!\n\n\nclass A:\n\tpass\n',
    'for (int i = 0; i < n; i++) {\n    sum += a[i]->b;\n}\n/* 0xff */',
    '🙂🙃 family: 👨‍👩‍👧‍👦, flag 🇩🇪, skin 👍🏽', '日本語のテキスト、漢字と仮名。中文也可以，１２３。한국어 문장', 'naïve façade Straße ЖИЗНЬ ελληνικά עברית العربية',
    'x² ½ Ⅷ ٣٤ ५६ 1234567', '\u00a0non\u2003breaking\u3000wide\u0085next\u2028line', 'a\u200bb\ufeffc\u00add',
    '<|endoftext|>a<|endoftext|><|endoftext|> b <|endof', 'a' * 3000, 'ab' * 500 + ' ' * 700 + 'é' * 400,
    'The quick brown fox jumps over the lazy dog.\nLine two\nLine three, longer than the second one.\n' * 40,
]


@functools.lru_cache(None)
def texts():
    rng = random.Random(11)
    made = list(FIXED)
    pools = ['abcdefgh \n', " .,;:'!?-\t\r\n", '0123456789 ', 'éüßñ日本語🙂 \u3000\u00a0', "'sStTrReElLvVmMdD "]
    for _ in range(300):
        pool = ''.join(rng.sample(pools, 2))
        made.append(''.join(rng.choice(pool) for _ in range(rng.randrange(1, 80))))
    for _ in range(300):
        made.append(''.join(random_character(rng) for _ in range(rng.randrange(1, 40))))
    return made


def random_character(rng):
    """Any character that was in Unicode long ago: both sides have tables of their own, of different years."""
    while True:
        c = rng.choice([rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0x10000), rng.randrange(0x1f000, 0x1f700)])
        if not 0xd800 <= c <= 0xdfff and established(chr(c)):
            return chr(c)


def established(c):
    import unicodedata
    return unicodedata.ucd_3_2_0.category(c) != 'Cn' and unicodedata.ucd_3_2_0.category(c) == unicodedata.category(c)


@functools.lru_cache(None)
def corpus():
    with open(os.path.join(os.environ['CAIRN_TEST_DATA'], 'text', 'stones.txt'), encoding='utf-8') as f:
        return f.read() + ''.join(FIXED[5:15]) * 3


def cairn(*arguments, data=b''):
    done = subprocess.run([TOKENS, *arguments], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors='replace').strip())
    return done.stdout.decode()


def cairn_ids(path, some):
    raw = [t.encode() for t in some]
    with open(path, encoding='utf-8') as f:
        verb = 'spaced' if json.load(f)['pre_tokenizer'].get('add_prefix_space') else 'encode'
    out = cairn(verb, path, data=b''.join(struct.pack('<I', len(r)) + r for r in raw))
    return [[int(i) for i in line.split()] for line in out.split('\n')[:-1]]


def compare(path, some=None):
    """The ids of cairn and of the package, for one file."""
    some = texts() if some is None else some
    theirs = tokenizers.Tokenizer.from_file(path)
    ours = cairn_ids(path, some)
    if len(ours) != len(some):
        yield f'{len(ours)} answers to {len(some)} texts'
    for text, got in zip(some, ours):
        want = theirs.encode(text, add_special_tokens=False).ids
        if got != want:
            yield f'{text!r}: cairn {got[:60]}, tokenizers {want[:60]}'


def trained(folder, name, pre, normalizer=None, special=('<|endoftext|>',), vocab=700):
    """A file that the package trained."""
    t = tokenizers.Tokenizer(tokenizers.models.BPE())
    t.pre_tokenizer, t.decoder = pre, decoders.ByteLevel()
    if normalizer:
        t.normalizer = normalizer
    t.train_from_iterator([corpus()], trainers.BpeTrainer(
        vocab_size=vocab, min_frequency=2, show_progress=False, special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    path = os.path.join(folder, name)
    t.save(path)
    return path


def byte_level(prefix=False, regex=True):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)


def split(pattern, behavior='isolated', invert=False):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(pattern), behavior, invert), byte_level(regex=False)])


def case(function):
    """A case that works in a folder of its own."""
    @functools.wraps(function)
    def run():
        if not tokenizers:
            raise tap.Skip('this Python has no tokenizers')
        with tempfile.TemporaryDirectory() as folder:
            return list(function(folder))
    return run


@case
def the_package_reads_what_cairn_trained(folder):
    path = os.path.join(folder, 'ours.json')
    for vocab in 257, 300, 800:
        cairn('train', str(vocab), path, data=corpus().encode())
        yield from compare(path)
        size = tokenizers.Tokenizer.from_file(path).get_vocab_size()
        if size != vocab:
            yield f'{size} tokens, want {vocab}'


@case
def both_learn_the_same(folder):
    path = os.path.join(folder, 'ours.json')
    cairn('train', '700', path, data=corpus().encode())
    with open(path, encoding='utf-8') as f, open(trained(folder, 'theirs.json', byte_level()), encoding='utf-8') as g:
        ours, theirs = json.load(f)['model'], json.load(g)['model']
    if ours['vocab'] != theirs['vocab']:
        yield f'the vocabularies differ: {sorted(set(ours["vocab"].items()) ^ set(theirs["vocab"].items()))[:9]}'
    if [m.split(' ') for m in ours['merges']] != [m.split(' ') if isinstance(m, str) else m for m in theirs['merges']]:
        yield 'the merges differ'


@case
def the_package_reads_the_tokenizer_of_bytes(folder):
    path = os.path.join(folder, 'bytes.json')
    cairn('bytes', path)
    yield from compare(path)
    if cairn_ids(path, ['aé']) != [[0x61, 0xc3, 0xa9]]:
        yield 'the ids are not the bytes'


@case
def cairn_reads_what_the_package_trained(folder):
    yield from compare(trained(folder, 'gpt2.json', byte_level()))
    yield from compare(trained(folder, 'prefix.json', byte_level(prefix=True)))
    yield from compare(trained(folder, 'plain.json', byte_level(regex=False), vocab=400))
    yield from compare(trained(folder, 'none.json', byte_level(), special=()))


@case
def the_expressions_of_others(folder):
    yield from compare(trained(folder, 'cl100k.json', split(CL100K)))
    yield from compare(trained(folder, 'removed.json', split(CL100K, 'removed', True)))
    yield from compare(trained(folder, 'qwen2.json', split(QWEN2)))
    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level()])
    yield from compare(trained(folder, 'digits.json', digits))


@case
def both_spellings_of_merges(folder):
    path = trained(folder, 'x.json', byte_level())
    with open(path, encoding='utf-8') as f:
        whole = json.load(f)
    pairs = [m.split(' ') if isinstance(m, str) else m for m in whole['model']['merges']]
    for merges in pairs, [' '.join(m) for m in pairs]:
        whole['model']['merges'] = merges
        with open(path, 'w', encoding='utf-8') as f:
            json.dump(whole, f)
        yield from compare(path)


@case
def words_that_are_tokens_stay_whole(folder):
    path = trained(folder, 'x.json', split(CL100K))
    with open(path, encoding='utf-8') as f:
        whole = json.load(f)
    # Without some of the merges these words could not be put together.
    whole['model']['merges'] = whole['model']['merges'][:100]
    for ignore in True, False:
        whole['model']['ignore_merges'] = ignore
        with open(path, 'w', encoding='utf-8') as f:
            json.dump(whole, f)
        yield from compare(path)


@case
def added_tokens(folder):
    path = trained(folder, 'x.json', byte_level())
    t = tokenizers.Tokenizer.from_file(path)
    t.add_special_tokens(['<|im_start|>', '<|im_end|>', '日本'])
    t.add_tokens(['hello', 'hello, world', ' the', 'end', 'start|>x'])
    t.save(path)
    some = texts() + ['<|im_start|>user\nhello, world, hello<|im_end|> the end', '<|im_start|>xx', 'hello, worl', '日本語 the日本',
                      '<|im_start|<|im_start|>', 'helloendhello, world']
    yield from compare(path, some)
    t.pre_tokenizer = byte_level(prefix=True)
    t.save(path)
    yield from compare(path, some)


@case
def composed_text(folder):
    import unicodedata
    path = trained(folder, 'nfc.json', byte_level(), normalizers.NFC())
    # 3.2 for both sides' sake; what may have to be composed is refused, and all else is as it was.
    some, refused = [], 0
    for text in texts():
        try:
            cairn_ids(path, [text])
            some.append(text)
        except RuntimeError:
            refused += 1
            if text.isascii():
                yield f'{text!r} is refused'
    yield from compare(path, some)
    for text in some:
        if unicodedata.normalize('NFC', text) != text:
            yield f'{text!r} is not composed, and was taken'
    if not refused or len(some) < 300:
        yield f'{refused} refused, {len(some)} not'


tap.run([the_package_reads_what_cairn_trained, both_learn_the_same, the_package_reads_the_tokenizer_of_bytes,
         cairn_reads_what_the_package_trained, the_expressions_of_others, both_spellings_of_merges,
         words_that_are_tokens_stay_whole, added_tokens, composed_text])
