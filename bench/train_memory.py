#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training with less memory than it wants, beside the same training with all of it.

    bench/train_memory.py CAIRN [STEPS]

In a folder of its own: GPT-2 with 124 million weights (bf16, 32 x 1024 tokens a step), then a LoRA on one with 1.5 billion.
Prints, for each way, tokens a second (the median of the last half of the steps), its share of that of the first way, the
memory planned and taken, and the loss."""
import json
import os
import statistics
import subprocess
import sys
import tempfile

GPT = {'model.layers': 12, 'model.heads': 12, 'model.width': 768, 'model.context': 1024, 'model.vocab': 50257,
       'data.path': 'text.txt', 'data.val_split': 0, 'train.batch': 32, 'train.lr': 1e-4, 'train.warmup': 2,
       'train.dtype': 'bf16', 'eval.every': 0, 'checkpoint.every': 0}
XL = {**GPT, 'model.layers': 48, 'model.heads': 25, 'model.width': 1600, 'lora.rank': 16, 'train.batch': 8}


def command(cairn, verb, keys, *more):
    return [cairn, verb, 'job.yaml', *more, *(f'--set={k}={v}' for k, v in keys.items())]


def train(cairn, name, keys, steps):
    keys = {**keys, 'run.dir': name, 'train.steps': steps}
    found = subprocess.run(command(cairn, 'plan', {k: v for k, v in keys.items() if k != 'run.dir'}, '--json'),
                           capture_output=True, text=True, check=False)
    planned = json.loads(found.stdout)
    done = subprocess.run(command(cairn, 'train', keys), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f'{name}: {done.stderr}')
    with open(name + '/log.jsonl', encoding='utf-8') as f:
        log = [json.loads(line) for line in f]
    rate = statistics.median(line['tokens_per_s'] for line in log[len(log) // 2:])
    return rate, planned, log[-1]


def compare(cairn, title, keys, ways, steps):
    print(title)
    print(f'  {"":34} {"tokens/s":>9} {"share":>6} {"planned":>9} {"taken":>9} {"on host":>9}  loss')
    first = None
    for name, more in ways:
        more = more(first) if callable(more) else more
        rate, planned, last = train(cairn, f'{title[:4]}-{name}'.replace(' ', '-'), {**keys, **more}, steps)
        first = first or (rate, last['mem_peak_bytes'])
        print(f'  {name:34} {rate:9,.0f} {rate / first[0]:6.2f} {planned["device_bytes"] / 2**20:9,.1f} '
              f'{last["mem_peak_bytes"] / 2**20:9,.1f} {last.get("mem_host_bytes", 0) / 2**20:9,.1f}  {last["loss"]!r}',
              flush=True)


def limit(share):
    return lambda first: {'memory.limit': first[1] * share / 2**30}


def main():
    cairn, steps = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40
    with tempfile.TemporaryDirectory() as home:
        os.chdir(home)
        with open('text.txt', 'w', encoding='utf-8') as f:
            f.write(' '.join(str(i * i % 1009) for i in range(400000)))
        with open('job.yaml', 'w', encoding='utf-8') as f:
            f.write('run: { name: memory }\n')
        compare(cairn, 'GPT-2, 124 M, MiB', GPT, [
            ('all that it wants', {}), ('60 %', limit(0.6)), ('40 %', limit(0.4)), ('30 %', limit(0.3)),
            ('optimizer on the host', {'memory.optimizer': 'host'})], steps)
        compare(cairn, 'LoRA on 1.5 billion, MiB', XL, [
            ('all that it wants', {}), ('blocks on the host', {'memory.blocks': 'host'}), ('60 %', limit(0.6)),
            ('low_vram', {'memory.low_vram': 'true'}),
            ('int8, blocks on the host', {'memory.blocks': 'host', 'model.quantize': 'int8'})], steps // 2)


main()
