# SPDX-License-Identifier: Apache-2.0
"""Caches that no item of the dataset uses any more are counted, and deleted if asked; nothing else is, whatever its name."""
import json
import os

import tap
from wanmedia import SIDE, MediaHome, write_png

KEPT = ('other_0032x0032_wan.safetensors', b'no cache'), ('cut_wan_te.safetensors', b''), ('notes.txt', b'x')
COPIED = 'a_0032x0032_hv.safetensors', 'lora.safetensors'


def files(home):
    found = {}
    for name in os.listdir(home.path + '/c'):
        with open(f'{home.path}/c/{name}', 'rb') as f:
            found[name] = f.read()
    return found


def add(home, name, size, seed):
    write_png(f'{home.path}/media/{name}.png', *size, seed)
    with open(f'{home.path}/media/{name}.txt', 'w', encoding='utf-8') as f:
        f.write(name)


def cache(home, *options, **keys):
    done = home.cache('c', '--device=cpu', *options, **keys)
    return done, json.loads(done.stdout)['stale'] if done.stdout else None


def changed_dataset(home):
    """The names that are stale: a picture was removed, one has another size, a prompt is not asked for; one has lost its caption."""
    add(home, 'gone', (SIDE, SIDE), 5)
    add(home, 'bare', (SIDE, SIDE), 6)
    add(home, 'turned', (SIDE, 2 * SIDE), 7)
    cache(home)
    prompts = {n for n in files(home) if n.startswith('cairn_prompt_')}
    cache(home, sample__prompts='[blurry]')
    prompts = {n for n in files(home) if n.startswith('cairn_prompt_')} - prompts
    os.remove(home.path + '/media/gone.png')
    os.remove(home.path + '/media/bare.txt')
    add(home, 'turned', (2 * SIDE, SIDE), 7)
    for name, data in [*KEPT, *((name, files(home)['stone_0016x0016_wan.safetensors']) for name in COPIED)]:
        with open(f'{home.path}/c/{name}', 'wb') as f:
            f.write(data)
    return {'gone_wan_te.safetensors', 'gone_0016x0016_wan.safetensors', 'turned_0016x0032_wan.safetensors', *prompts}


def stale_caches():
    with MediaHome() as home:
        want = changed_dataset(home)
        done, stale = cache(home)
        before = files(home)
        if done.returncode or {os.path.basename(path) for path in stale['files']} != want or len(want) != 4:
            yield f'exit {done.returncode}: {stale} instead of {want}: {done.stderr}'
        if stale['removed'] or stale['bytes'] != sum(len(before.get(name, '')) for name in want):
            yield f'without --prune: {stale}, {sorted(before)}'
        done, stale = cache(home, '--prune')
        if done.returncode or stale['removed'] != len(want):
            yield f'exit {done.returncode}: {stale}: {done.stderr}'
        if files(home) != {n: data for n, data in before.items() if n not in want} or 'bare_0016x0016_wan.safetensors' not in before:
            yield f'{sorted(before)} became {sorted(files(home))}'
        done, stale = cache(home, '--prune')
        if done.returncode or stale != {'files': [], 'bytes': 0, 'removed': 0}:
            yield f'again: exit {done.returncode}: {stale}'


tap.run([stale_caches])
