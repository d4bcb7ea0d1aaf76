# SPDX-License-Identifier: Apache-2.0
"""tokens_python.py TOKENIZER FILE ROUNDS: seconds of the package `tokenizers` to learn as many tokens from FILE, to encode it on
one thread and on all, and how many tokens that gives.

It is given the paragraphs of the text, each with the line feeds behind it, as it uses threads for lists only; the
fast way, without places in the text, where this version has it.
"""
import os
import re
import sys
import time

import tokenizers
from tokenizers import pre_tokenizers, trainers


def best(rounds, work):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def learn(text, vocab):
    t = tokenizers.Tokenizer(tokenizers.models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=vocab, min_frequency=2, show_progress=False, special_tokens=['<|endoftext|>'],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))


def main(path, file, rounds):
    t = tokenizers.Tokenizer.from_file(path)
    with open(file, encoding='utf-8', newline='') as f:
        text = f.read()
    # Where the words of the whole are those of the parts: before the last line feed of a paragraph.
    parts = re.split(r'(?<=\n)(?=\n\S)', text)
    encode = getattr(t, 'encode_batch_fast', t.encode_batch)
    os.environ['TOKENIZERS_PARALLELISM'] = 'true'
    train, _ = best(1, lambda: learn(text, t.get_vocab_size()))
    every, result = best(rounds, lambda: encode(parts))
    os.environ['TOKENIZERS_PARALLELISM'] = 'false'
    one, _ = best(rounds, lambda: encode(parts))
    print(train, one, every, sum(len(e.ids) for e in result))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
