# SPDX-License-Identifier: Apache-2.0
"""Random clips and pictures, random options: the items of datasets beside the rules, written down again.

The files are empty; their sizes come from a list (dataset_tool.c), so that many cases take little time.
"""
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import tap

TOOL = sys.argv[1]
ROUNDS = 300


def down(n, step):
    return n // step * step


def musubi_bucket(options, clip, width, height, step=16):
    rw, rh = options['resolution']
    if not clip and not options['enable_bucket']:
        return rw, rh
    if not clip and options['bucket_no_upscale'] and width * height <= rw * rh:
        return down(width, step), down(height, step)
    side, sizes = int(math.sqrt(rw * rh)), set()
    for w in range(down(side // 2, step), side + step, step):
        if w:
            h = down(rw * rh // w, step)
            sizes |= {(w, h), (h, w)}
    return min(sorted(sizes), key=lambda s: abs(s[0] / s[1] - width / height))


def kept(frames, source):
    if source is None:
        return list(range(frames))
    out, last = [], None
    for i in range(frames):
        place = math.floor(i * 16 / source)
        if place != last:
            out.append(i)
        last = place
    return out


def musubi_pieces(options, frames):
    numbers = kept(frames, options['source_fps'])
    count, out = len(numbers), []
    for n in sorted({(t - 1) // 4 * 4 + 1 for t in options['target_frames']}):
        way = options['frame_extraction']
        if way == 'full':
            break
        if count < n:
            continue
        if way == 'head':
            starts = [0]
        elif way == 'chunk':
            starts = range(0, count - n + 1, n)
        elif way == 'slide':
            starts = range(0, count - n + 1, options['frame_stride'])
        else:
            k = options['frame_sample']
            starts = sorted({int(i * (count - n) / (k - 1)) if i < k - 1 else count - n for i in range(k)}) if k > 1 else [0]
        out += [(start, numbers[start:start + n]) for start in starts]
    if options['frame_extraction'] == 'full' and count:
        n = (min(count, options['max_frames']) - 1) // 4 * 4 + 1
        out.append((0, numbers[:n]))
    return out


def scaled(width, height, bucket):
    scale = max(bucket[0] / width, bucket[1] / height)
    size = int(width * scale + 0.5), int(height * scale + 0.5)
    return [*size, (size[0] - bucket[0]) // 2, (size[1] - bucket[1]) // 2]


def toolkit_bucket(width, height, side, step):
    target = min(width * height, side * side)
    scale = (target / (width * height)) ** 0.5
    w, h = width * scale / step, height * scale / step
    fits = [(a * step, b * step) for a in (math.floor(w), math.ceil(w)) for b in (math.floor(h), math.ceil(h))]
    fits = [s for s in fits if s[0] > 0 and s[1] > 0 and s[0] * s[1] <= side * side]
    if not fits:
        return max(step, math.floor(w) * step), max(step, math.floor(h) * step)
    return min(fits, key=lambda s: abs(s[0] * s[1] - target))


def toolkit_frames(options, frames, fps):
    last, n = frames - 1, options['num_frames']
    trim = options['auto_frame_count'] and options['trim_auto_frame_count_tail']
    if options['auto_frame_count']:
        n = int(frames / fps * options['fps'])
        n = (max(0, n - 1) if trim else n) // 4 * 4 + 1
    if trim:
        return [min(round(i * (fps / options['fps'])), last) for i in range(n)]
    every = max(1, round(fps / options['fps']))
    if options['shrink_video_to_frames'] or frames < n or frames // every < n:
        out = [min(round(i * (last / (n - 1) if n > 1 else 0)), last) for i in range(n)]
    else:
        out = [i * every for i in range(n)]
    return out[:(n - 1) // 4 * 4 + 1]


def media(rng, clips):
    out = {}
    for i in range(rng.randrange(1, 6)):
        size = [rng.choice([rng.randrange(16, 3000), 16 * rng.randrange(1, 100)]) for _ in range(2)]
        clip = rng.random() < clips
        name = f'{i}{rng.choice("ab _é")}' + (rng.choice(['.mp4', '.MKV']) if clip else rng.choice(['.png', '.JPG']))
        out[name] = [*size, rng.randrange(1, 200) if clip else 1, rng.choice([12.0, 16.0, 23.976, 24.0, 25.0, 30.0, 60.0])]
    return out


def run(folder, name, text, files, *step):
    for file in files:
        open(os.path.join(folder, file), 'w', encoding='utf-8').close()
        with open(os.path.join(folder, os.path.splitext(file)[0] + '.txt'), 'w', encoding='utf-8') as f:
            f.write(' caption ')
    for path, content in ((os.path.join(folder, name), text), (os.path.join(folder, 'media.json'), json.dumps(files))):
        with open(path, 'w', encoding='utf-8') as f:
            f.write(content)
    done = subprocess.run([TOOL, 'items', os.path.join(folder, name), os.path.join(folder, 'media.json'), *step],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8')
    if done.returncode:
        raise RuntimeError(f'{done.stderr}\n{text}')
    return json.loads(done.stdout)['items']


def compare(text, got, want):
    """want: rows of (file, bucket, start, frames, scaled)"""
    usable = [(i['file'], i['bucket'], i['start'], i['frames'], i['scaled']) for i in got if not i['problem']]
    if usable == want:
        return []
    pairs = [(g, w) for g, w in zip(usable, want) if g != w][:1]
    return [f'{len(usable)} items, want {len(want)}; first: {pairs}; {text!r}']


def one_musubi(rng):
    clips = rng.random() < 0.7
    options = {
        'resolution': rng.choice([[rng.randrange(16, 80) * 16, rng.randrange(16, 80) * 16], [960, 544], [256, 256]]),
        'enable_bucket': rng.random() < 0.6, 'bucket_no_upscale': rng.random() < 0.4, 'source_fps': None,
        'target_frames': [rng.randrange(1, 90) for _ in range(rng.randrange(1, 4))],
        'frame_extraction': rng.choice(['head', 'chunk', 'slide', 'uniform', 'full']),
        'frame_stride': rng.randrange(1, 20), 'frame_sample': rng.randrange(1, 6), 'max_frames': rng.randrange(1, 130)}
    if rng.random() < 0.4:
        options['source_fps'] = rng.choice([16.0, 23.976, 24.0, 25.0, 30.0, 60.0, 8.0])
    files = media(rng, clips)
    common = ['resolution', 'enable_bucket', 'bucket_no_upscale']
    only = ['target_frames', 'frame_extraction', 'frame_stride', 'frame_sample', 'max_frames', 'source_fps']
    with tempfile.TemporaryDirectory() as folder:
        lines = [f'{k} = {json.dumps(options[k])}' for k in common]
        general, rest = lines[:rng.randrange(4)], lines
        lines = ['[general]', 'caption_extension = ".txt"', *general, '[[datasets]]',
                 f'{"video" if clips else "image"}_directory = {json.dumps(folder)}', *rest[len(general):]]
        if clips:
            lines += [f'{k} = {json.dumps(options[k])}' for k in only if options[k] is not None]
        text = '\n'.join(lines) + '\n'
        got = run(folder, 'd.toml', text, files)
    want = []
    for name in sorted(files, key=lambda n: n.encode()):
        width, height, frames, _ = files[name]
        clip = name.lower().endswith(('.mp4', '.mkv'))
        bucket = musubi_bucket(options, clip, width, height)
        if clip != clips or not bucket[0] or not bucket[1]:
            continue
        pieces = musubi_pieces(options, frames) if clip else [(0, [0])]
        want += [(name, list(bucket), start, numbers, scaled(width, height, bucket)) for start, numbers in pieces]
    return compare(text, got, want)


def one_toolkit(rng):
    options = {'num_frames': rng.choice([1, 5, 33, 41, 81, 40]), 'shrink_video_to_frames': rng.random() < 0.5,
               'fps': rng.choice([16, 24]), 'auto_frame_count': rng.random() < 0.3,
               'trim_auto_frame_count_tail': rng.random() < 0.5}
    sides = [rng.choice([256, 512, 768, 1024, 333]) for _ in range(rng.randrange(1, 3))]
    step = rng.choice([16, 32])
    files = media(rng, 0.6)
    with tempfile.TemporaryDirectory() as folder:
        dataset = {'folder_path': folder, 'caption_ext': 'txt', 'resolution': sides if len(sides) > 1 else sides[0], **options}
        job = {'job': 'extension', 'config': {'name': 'x', 'process': [{'datasets': [dataset]}]}}
        text = json.dumps(job)
        got = run(folder, 'job.yaml', text, files, str(step))
    want = []
    for side in sides:
        for name in sorted(files, key=lambda n: n.encode()):
            width, height, frames, fps = files[name]
            clip = name.lower().endswith(('.mp4', '.mkv'))
            if clip and options['num_frames'] == 1 and not options['auto_frame_count']:
                continue
            bucket = toolkit_bucket(width, height, side, step)
            numbers = toolkit_frames(options, frames, fps) if clip else [0]
            want.append((name, list(bucket), numbers[0], numbers, scaled(width, height, bucket)))
    return compare(text, got, want)


def rounds(one, seed):
    findings = []
    for number in range(ROUNDS):
        findings += one(random.Random(seed * 100000 + number))
    return findings


def datasets_of_musubi_tuner():
    return rounds(one_musubi, 1)


def datasets_of_ai_toolkit():
    return rounds(one_toolkit, 2)


tap.run([datasets_of_musubi_tuner, datasets_of_ai_toolkit])
