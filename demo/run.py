# SPDX-License-Identifier: Apache-2.0
"""run.py BUILD [ARGS]: what `make demo-wan` does, with the programs in BUILD.  ARGS are for `cairn train`.

Draws clips, caches them, trains a LoRA, and writes BUILD/demo/sheet.png: a row for each prompt, three frames of a clip without the LoRA and
three with it, from the same noise.  Plain Python: no library is needed.
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import zlib

import shapes

DEMO = os.path.dirname(os.path.abspath(__file__))
ROWS, TEXT, HEADS, CHANNELS, LATENT = 512, 64, '4', 16, (3, 12, 12)
STEPS, CFG, SHIFT = '20', '1.8', '3'
SHOWN, GAP = (0, 4, 8), 12


# ---- files ----

def read_tensors(path):
    """{name: (dtype, shape, bytes)}, and the metadata."""
    with open(path, 'rb') as f:
        header = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
        body = f.read()
    meta = header.pop('__metadata__', {})
    return {k: (v['dtype'], v['shape'], body[slice(*v['data_offsets'])]) for k, v in header.items()}, meta


def write_tensors(path, tensors, meta=None):
    header, at = ({'__metadata__': meta} if meta else {}), 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + b''.join(data for _, _, data in tensors.values()))


def f32(dtype, data):
    return data if dtype == 'F32' else b''.join(b'\0\0' + data[i:i + 2] for i in range(0, len(data), 2))  # from bf16


def read_png(path):
    """Its rows, in RGB."""
    with open(path, 'rb') as f:
        data = f.read()
    width, height, packed, at = *struct.unpack('>II', data[16:24]), b'', 8
    while at < len(data):
        n = struct.unpack('>I', data[at:at + 4])[0]
        packed += data[at + 8:at + 8 + n] if data[at + 4:at + 8] == b'IDAT' else b''
        at += n + 12
    raw, stride, rows, above = zlib.decompress(packed), 3 * width, [], bytes(3 * width)
    for y in range(height):
        kind, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride if kind else 0):
            left, up, corner = row[x - 3] if x > 2 else 0, above[x], above[x - 3] if x > 2 else 0
            nearest = min((abs(up - corner), 0, left), (abs(left - corner), 1, up), (abs(left + up - 2 * corner), 2, corner))[2]
            row[x] = (row[x] + (left, up, (left + up) // 2, nearest)[kind - 1]) % 256
        rows.append(row)
        above = row
    return rows


# ---- samples ----

def texts(folder):
    """{caption: its rows, 512 of them}."""
    found = {}
    for name in os.listdir(folder):
        if name.endswith('_wan_te.safetensors'):
            tensors, meta = read_tensors(f'{folder}/{name}')
            (dtype, _, data), = tensors.values()
            found[meta['caption1']] = f32(dtype, data).ljust(4 * ROWS * TEXT, b'\0')
    return found


def without_effect(tensors):
    return {k: (d, s, bytes(len(data)) if 'lora_B' in k else data) for k, (d, s, data) in tensors.items()}


def sample(build, folder, lora, text, negative, name):
    """The rows of a picture with all frames of the sample."""
    write_tensors(f'{folder}/prompt.safetensors', {'text': ('F32', [2, ROWS, TEXT], text + negative), 'size': ('F32', [3], struct.pack('<3f', *LATENT))})
    subprocess.run([f'{build}/tests/tools/wan_sample', f'{DEMO}/models/wan.safetensors', lora, f'{folder}/prompt.safetensors', f'{folder}/out.safetensors',
                    'cpu', 'f32', STEPS, CFG, SHIFT, HEADS], check=True, stdout=subprocess.DEVNULL)
    latents = read_tensors(f'{folder}/out.safetensors')[0]['euler'][2]
    cache = f'{folder}/{name}_00000-009_0096x0096_wan.safetensors'
    write_tensors(cache, {'latents_3x12x12_float32': ('F32', [CHANNELS, *LATENT], latents)},
                  {'architecture': 'wan', 'frame_count': '9', 'format_version': '1.0.1'})
    subprocess.run([f'{build}/cairn', 'decode', '--device', 'cpu', '--vae', f'{DEMO}/models/vae.safetensors', cache, '-o', f'{folder}/{name}.png'],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return read_png(f'{folder}/{name}.png')


def shown(rows, y):
    """Row y of the frames that the sheet has, from a picture of all frames in lines."""
    size = 3 * shapes.SIDE
    line = len(rows[0]) // size
    return b''.join(bytes(rows[f // line * shapes.SIDE + y][f % line * size:(f % line + 1) * size]) + bytes(6) for f in SHOWN)


def make_sheet(build, home):
    run, clips, folder = f'{home}/run', f'{home}/clips', f'{home}/samples'
    tensors = {k.replace('diffusion_model.', ''): v for k, v in read_tensors(f'{run}/checkpoints/latest/lora.safetensors')[0].items()}
    write_tensors(f'{folder}/after.safetensors', tensors)
    write_tensors(f'{folder}/before.safetensors', without_effect(tensors))
    with open(f'{DEMO}/wan.yaml', encoding='utf-8') as f:
        prompts = [line.strip()[2:] for line in f if line.strip().startswith('- ')]
    known, sheet = texts(f'{clips}/_cairn_cache'), []
    for n, prompt in enumerate(prompts):
        before, after = (sample(build, folder, f'{folder}/{w}.safetensors', known[prompt], known[''], f'{n}-{w}') for w in ('before', 'after'))
        sheet += [shown(before, y) + bytes([90]) * 3 * GAP + bytes(6) + shown(after, y) for y in range(shapes.SIDE)]
        sheet += [bytes(len(sheet[0]))] * 2
    shapes.write_png(f'{home}/sheet.png', sheet)
    print(f'\n{home}/sheet.png: three frames without the LoRA on the left, with it on the right, from the same noise.  The rows:')
    print('\n'.join(f'  {prompt}' for prompt in prompts))


def main(build, args):
    home = f'{build}/demo'
    run, clips, folder = f'{home}/run', f'{home}/clips', f'{home}/samples'
    for old in run, clips, folder:
        shutil.rmtree(old, ignore_errors=True)
    os.makedirs(folder)
    shapes.main(clips)
    keys = [f'--set=data.path={clips}', f'--set=run.dir={run}']
    subprocess.run([f'{build}/cairn', 'cache', f'{DEMO}/wan.yaml', *keys], check=True)
    subprocess.run([f'{build}/cairn', 'train', f'{DEMO}/wan.yaml', *keys, *args], check=True)
    make_sheet(build, home)


if __name__ == '__main__':
    try:
        main(sys.argv[1], sys.argv[2:])
    except subprocess.CalledProcessError as e:  # which has said why
        sys.exit(e.returncode)
