# SPDX-License-Identifier: Apache-2.0
"""The files of a LoRA for Wan: names, formats and metadata of each dialect, and what `cairn tensor` makes of them."""
import os
import subprocess

import tap
from training import CAIRN
from wanjobs import T2V, WanHome, floats, read_tensors

RANK, ALPHA, STEPS = 4, 2, 4
KEYS = {'lora__rank': RANK, 'lora__alpha': ALPHA, 'train__steps': STEPS, 'train__lr': 1e-2}
MODULE = 'blocks.1.self_attn.v'
NAMES = {  # up, down and alpha of the module
    'comfy': ('diffusion_model.blocks.1.self_attn.v.lora_B.weight', 'diffusion_model.blocks.1.self_attn.v.lora_A.weight',
              'diffusion_model.blocks.1.self_attn.v.alpha'),
    'musubi': ('lora_unet_blocks_1_self_attn_v.lora_up.weight', 'lora_unet_blocks_1_self_attn_v.lora_down.weight',
               'lora_unet_blocks_1_self_attn_v.alpha'),
    'diffusers': ('transformer.blocks.1.attn1.to_v.lora_B.weight', 'transformer.blocks.1.attn1.to_v.lora_A.weight', None),
}
MODULES = 20


def tensor(home, *words):
    done = subprocess.run([CAIRN, 'tensor', *words], env=home.environment(None), cwd=home.path, text=True, capture_output=True, check=False)
    if done.returncode:
        raise AssertionError(f'{words}: exit {done.returncode}: {done.stderr}')
    return done.stdout


def delta(path, dialect):
    """What the file adds to the module's matrix; without an alpha, the scale is in the values."""
    tensors, _ = read_tensors(path)
    up, down, alpha = NAMES[dialect]
    rank, columns = tensors[down][1]
    scale = floats(tensors[alpha])[0] / rank if alpha in tensors else 1
    b, a = floats(tensors[up]), floats(tensors[down])
    return [scale * sum(b[i * rank + r] * a[r * columns + j] for r in range(rank)) for i in range(len(b) // rank) for j in range(columns)]


def apart(a, b):
    """The largest difference, as a share of the largest value."""
    return max(abs(x - y) for x, y in zip(a, b)) / max(abs(y) for y in b)


def every_dialect_has_the_same_delta():
    with WanHome() as home:
        found = {}
        for dialect in NAMES:
            done = home.train(dialect, **KEYS, save__format=dialect, save__dtype='f32')
            tensors, _ = read_tensors(home.lora(dialect, STEPS))
            alphas = [name for name in tensors if name.endswith('.alpha')]
            if done.returncode or len(tensors) - len(alphas) != 2 * MODULES or len(alphas) != (MODULES if NAMES[dialect][2] else 0):
                yield f'{dialect}: exit {done.returncode}, {list(tensors)}: {done.stderr}'
                return
            found[dialect] = delta(home.lora(dialect, STEPS), dialect)
        for dialect in NAMES:
            if not any(found[dialect]) or apart(found[dialect], found['comfy']) > 1e-6:
                yield f'{dialect}: {apart(found[dialect], found["comfy"])}'


def converted_and_merged():
    """From each dialect to the others, and into the base."""
    with WanHome() as home:
        home.train('run', **KEYS, save__dtype='f32')
        ours = home.lora('run', STEPS)
        want = delta(ours, 'comfy')
        base = floats(read_tensors(T2V)[0][MODULE + '.weight'])
        for dialect in NAMES:
            path, merged = f'{home.path}/{dialect}.safetensors', f'{home.path}/merged-{dialect}.safetensors'
            tensor(home, 'convert', ours, path, '--lora', dialect)
            if apart(delta(path, dialect), want) > 1e-6:
                yield f'{dialect}: converted to {apart(delta(path, dialect), want)}'
            tensor(home, 'merge', T2V, path, merged, '--dtype', 'f32')
            got = floats(read_tensors(merged)[0][MODULE + '.weight'])
            if apart(got, [w + d for w, d in zip(base, want)]) > 1e-6:
                yield f'{dialect}: merged to {apart(got, [w + d for w, d in zip(base, want)])}'


def a_merged_base_has_the_loss_of_the_lora():
    """A run over the merged base, whose LoRA is still 0, begins with the loss that lora.path begins with."""
    with WanHome() as home:
        home.train('run', **KEYS, save__dtype='f32')
        merged = home.path + '/merged.safetensors'
        tensor(home, 'merge', T2V, home.lora('run', STEPS), merged, '--dtype', 'f32')
        one, two = home.train('on', lora__path=home.lora('run', STEPS)), home.train('merged', model__path=merged)
        if one.returncode or two.returncode or abs(home.losses('on')[0] - home.losses('merged')[0]) > 1e-5:
            yield f'{home.losses("on")}, {home.losses("merged")}: {one.stderr} {two.stderr}'


def number_formats():
    """Files are rounded; the values that a resumed run loads are not."""
    with WanHome() as home:
        exact = {}
        for word, dtype in ('f32', 'F32'), ('bf16', 'BF16'), ('f16', 'F16'):
            home.train(word, **KEYS, save__dtype=word)
            tensors, _ = read_tensors(home.lora(word, STEPS))
            if {t[0] for name, t in tensors.items() if 'lora' in name and not name.endswith('alpha')} != {dtype}:
                yield f'{word}: {tensors.keys()}'
            exact[word], _ = read_tensors(home.checkpoint(word, STEPS) + '/optimizer.safetensors')
        if not exact['f32'] or exact['f32'] != exact['bf16'] or exact['f32'] != exact['f16']:
            yield 'the rounding of files changes what is trained'
        if not 0 < apart(delta(home.lora('bf16', STEPS), 'comfy'), delta(home.lora('f32', STEPS), 'comfy')) < 0.02:
            yield 'bf16 is not close to f32'


def metadata():
    with WanHome() as home:
        home.train('run', **KEYS, train__seed=7)
        _, meta = read_tensors(home.lora('run', STEPS))
        want = {'ss_network_dim': str(RANK), 'ss_network_alpha': str(ALPHA), 'ss_seed': '7', 'ss_steps': str(STEPS), 'ss_network_module': 'networks.lora_wan'}
        wrong = {key: meta.get(key) for key in want if meta.get(key) != want[key]}
        if wrong or 'modelspec.architecture' not in meta or any(home.path in value for value in meta.values()):
            yield f'{wrong}: {meta}'


def files_of_the_experts():
    """Two LoRAs, two files; one LoRA, one file; each of them loads back."""
    with WanHome() as home:
        experts = home.experts()
        for word, names in ('two', ['lora_high_noise.safetensors', 'lora_low_noise.safetensors']), ('one', ['lora.safetensors']):
            done = home.train(word, **KEYS, **experts, lora__experts=word, train__ema=0.5)
            at = home.checkpoint(word, STEPS)
            found = sorted(name for name in os.listdir(at) if name.startswith('lora') and 'ema' not in name)
            averages = sorted(name for name in os.listdir(at) if 'ema' in name)
            if done.returncode or found != names or averages != [name.replace('.', '-ema.') for name in names]:
                yield f'{word}: exit {done.returncode}, {os.listdir(at)}: {done.stderr}'
            for name in names:
                tensor(home, 'merge', T2V, f'{at}/{name}', f'{home.path}/{word}-{name}')
        high, low = (read_tensors(home.lora('two', STEPS, name))[0] for name in ('lora_high_noise', 'lora_low_noise'))
        if high.keys() != low.keys() or high == low:
            yield 'the two LoRAs are the same'


tap.run([every_dialect_has_the_same_delta, converted_and_merged, a_merged_base_has_the_loss_of_the_lora, number_formats, metadata,
         files_of_the_experts])
