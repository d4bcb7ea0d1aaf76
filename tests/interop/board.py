# SPDX-License-Identifier: Apache-2.0
"""TensorBoard reads the event files of a run that was resumed, and sees the curve that log.jsonl has."""
import glob
import json
import math
import os
import subprocess
import sys
import tempfile

import tap

try:
    from tensorboard.backend.event_processing import event_accumulator, event_file_loader
except ImportError as reason:  # INTEROP_PYTHON may be one without it
    print(f'1..0 # SKIP no TensorBoard: {reason}')
    sys.exit(0)

TAGS = ['loss', 'val_loss', 'lr', 'grad_norm', 'tokens_per_s', 'mem_bytes']


def new_run(folder):
    subprocess.run([os.environ['CAIRN_WRITE_RUN'], folder], check=True)
    with open(os.path.join(folder, 'log.jsonl'), encoding='utf-8') as f:
        return [json.loads(line) for line in f]


def number(line, key):
    return float(line[key + '_is']) if line[key] is None else line[key]


def same(a, b):
    return math.isnan(a) and math.isnan(b) or math.isclose(a, b, rel_tol=1e-6)


def the_curves_are_those_of_the_log():
    with tempfile.TemporaryDirectory() as folder:
        log = new_run(folder)
        if [line['step'] for line in log] != list(range(1, 16)):
            yield f'the log has {[line["step"] for line in log]}'
        board = event_accumulator.EventAccumulator(folder)
        board.Reload()
        if sorted(board.Tags()['scalars']) != sorted(TAGS):
            yield f'tags: {board.Tags()}'
        for tag in TAGS:
            want = [(line['step'], number(line, tag)) for line in log if tag in line]
            got = [(e.step, e.value) for e in board.Scalars(tag)]
            if [s for s, _ in got] != [s for s, _ in want] or not all(same(a[1], b[1]) for a, b in zip(got, want)):
                yield f'{tag} is {got}, the log has {want}'


def the_samples_are_text():
    with tempfile.TemporaryDirectory() as folder:
        new_run(folder)
        board = event_accumulator.EventAccumulator(folder)
        board.Reload()
        if board.PluginTagToContent('text').keys() != {'sample'}:
            yield f'text: {board.PluginTagToContent("text")}'
        for e in board.Tensors('sample'):
            texts = [s.decode() for s in e.tensor_proto.string_val]
            if texts != ['once upon a time, **ümlaut**']:
                yield f'step {e.step}: {texts}'


def every_record_is_whole():
    """The loader checks the sums; two files, each with its version first."""
    with tempfile.TemporaryDirectory() as folder:
        new_run(folder)
        files = sorted(glob.glob(os.path.join(folder, 'events.out.tfevents.*')))
        counts = [len(list(event_file_loader.EventFileLoader(path).Load())) for path in files]
        if counts != [2 + 12 + 1, 2 + 7 + 1]:
            yield f'{counts} records'
        for path in files:
            first = next(iter(event_file_loader.EventFileLoader(path).Load()))
            if first.file_version != 'brain.Event:2':
                yield f'{path} begins with {first}'


def a_torn_record_hides_nothing_else():
    with tempfile.TemporaryDirectory() as folder:
        log = new_run(folder)
        first = sorted(glob.glob(os.path.join(folder, 'events.out.tfevents.*')))[0]
        os.truncate(first, os.path.getsize(first) - 5)
        board = event_accumulator.EventAccumulator(folder)
        board.Reload()
        if [e.step for e in board.Scalars('loss')] != [line['step'] for line in log]:
            yield f'{board.Scalars("loss")}'


if __name__ == '__main__':
    tap.run([the_curves_are_those_of_the_log, the_samples_are_text, every_record_is_whole,
             a_torn_record_hides_nothing_else])
