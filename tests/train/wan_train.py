# SPDX-License-Identifier: Apache-2.0
"""A LoRA for Wan from caches: every kind of model, and the same losses however the memory is used."""
import os

import tap
from training import fake
from wanjobs import I2V_CACHES, TI2V, WanHome, floats, noise, read_tensors, write_item, write_model

CLOSE = 1e-5
FIGURES = ('loss', 'val_loss', 'val_loss_q1', 'val_loss_q2', 'val_loss_q3', 'val_loss_q4')


def figures(home, run):
    return [line[key] for line in home.log(run) for key in FIGURES if key in line]


def far(home, run, other, close=CLOSE):
    """Findings where losses differ, by more than a share."""
    got, want = figures(home, run), figures(home, other)
    if len(got) != len(want) or not want or any(abs(a - b) > close * abs(b) for a, b in zip(got, want)):
        yield f'{run}: {got}, and not {want}'


def trained(home, run, **keys):
    """Findings where it does not end well."""
    done = home.train(run, **keys)
    if done.returncode:
        yield f'{run}: exit {done.returncode}: {done.stderr}'


def moves(home, run, step, name='lora'):
    """Findings where nothing was learned: B is 0 at the start."""
    tensors, _ = read_tensors(home.lora(run, step, name))
    zero = [key for key, t in tensors.items() if 'lora_B' in key and not any(floats(t))]
    if zero or not tensors:
        yield f'{run}: {name} has not learned {zero}, of {len(tensors)}'


def small(home, **keys):
    path = home.path + '/model.safetensors'
    return {'model__path': path if os.path.exists(path) else write_model(path), 'model__heads': 2, **keys}


def the_same_losses_in_parts():
    """Recomputation, smaller micro-batches and accumulation see the same items, times and noise."""
    with WanHome() as home:
        keys = small(home, train__batch=4, data__val_split=0.3, eval__every=2)
        yield from trained(home, 'whole', **keys)
        for run, more in ('kept', {'train__recompute': 'none'}), ('split', {'memory__limit': 0.003}):
            yield from trained(home, run, **{**keys, **more})
            yield from far(home, run, 'whole')
        peaks = [home.log(run)[-1]['mem_peak_bytes'] for run in ('split', 'whole')]
        if peaks[0] > 0.6 * peaks[1]:
            yield f'it was not split: {peaks}'
        if len(figures(home, 'whole')) != 4 + 2 * 5:
            yield f'{home.log("whole")}'


def validation_depends_on_the_weights_alone():
    """Nothing moves with this rate; then every evaluation is the same, whatever was trained on between."""
    with WanHome() as home:
        keys = small(home, data__val_split=0.3, eval__every=1, train__lr=1e-30)
        yield from trained(home, 'a', **keys)
        yield from trained(home, 'b', **keys, train__batch=2, train__accumulate=2)
        told = {line['val_loss'] for line in home.log('a')}
        if len(told) != 1 or len(set(home.losses('a'))) != 4 or len({line['val_loss'] for line in home.log('b')}) != 1:
            yield f'{told}, {home.losses("a")}'


def on_a_device():
    """Wherever blocks, inputs and optimizer live, the bits are those of the CPU; bf16 and f16 come close."""
    with WanHome() as home:
        keys = small(home, train__steps=2, train__batch=2)
        yield from trained(home, 'cpu', **keys)
        places = {'blocks': {'memory__blocks': 1}, 'far': {'memory__low_vram': 'true'}}
        for run, more in places.items():
            yield from trained(home, run, env=fake(home), **{**keys, 'train__device': 'hip:0', 'train__dtype': 'f32', **more})
            yield from far(home, run, 'cpu', 1e-6)
        for dtype in 'bf16', 'f16':
            yield from trained(home, dtype, env=fake(home), **keys, train__device='hip:0', train__dtype=dtype, memory__blocks='host')
            yield from far(home, dtype, 'cpu', 0.02)


def quantized_bases():
    with WanHome() as home:
        yield from trained(home, 'whole')
        for word in 'fp8', 'int8':
            yield from trained(home, word, model__quantize=word)
            yield from far(home, word, 'whole', 0.02)
            if home.losses(word) == home.losses('whole'):
                yield f'{word}: not quantized'


def weights_quantized_on_a_device():
    """By the GPU, or by the host where it has no working kernel: the same bits, and told once."""
    keys = {'train__steps': 2, 'train__device': 'hip:0', 'train__dtype': 'bf16'}
    with WanHome() as home:
        for word in 'fp8', 'int8':
            yield from trained(home, word, env=fake(home), model__quantize=word, **keys)
            if 'weights-by-host' in [line.get('event') for line in home.log(word)]:
                yield f'{word}: the host quantized'
            for told in 'without', 'refuse':
                run = f'{word}-{told}'
                yield from trained(home, run, env=fake(home, told + '=quantise'), model__quantize=word, **keys)
                if [line.get('event') for line in home.log(run)].count('weights-by-host') != 1:
                    yield f'{run}: the log does not tell'
                yield from far(home, run, word, 0)


def experts_take_turns():
    """Each expert's LoRA learns; where the idle one waits changes nothing."""
    with WanHome() as home:
        keys = {**home.experts(), 'train__steps': 8, 'train__switch_every': 1, 'data__val_split': 0.3, 'eval__every': 4}
        yield from trained(home, 'near', **keys)
        for name in 'lora_low_noise', 'lora_high_noise':
            yield from moves(home, 'near', 8, name)
        for run, more in ('file', {'memory__idle': 'file'}), ('every', {'train__switch_every': 4}), ('one', {'lora__experts': 'one'}):
            yield from trained(home, run, **{**keys, **more})
        yield from far(home, 'file', 'near', 0)
        if home.weights('file', 8) != home.weights('near', 8):
            yield 'other bits when the idle expert is read again'
        if home.losses('every') == home.losses('near'):
            yield 'train.switch_every changes nothing'
        yield from moves(home, 'one', 8)
        # A run keeps the order that it began with, even if the experts take turns from some step on.
        plain = {key: value for key, value in keys.items() if key != 'train__switch_every'}
        yield from trained(home, 'later', **{**plain, 'train__steps': 4})
        done = home.train('later', '--resume', **plain, memory__idle='file')
        if done.returncode:
            yield f'later: exit {done.returncode}: {done.stderr}'
        yield from far(home, 'later', 'near', 0)


def one_expert():
    """It sees the times of its side only: the loss differs from that of the other side."""
    with WanHome() as home:
        keys = {k: v for k, v in home.experts().items() if k != 'model__high_noise_path'}
        for side in 'low', 'high':
            yield from trained(home, side, **keys, model__expert=side, data__val_split=0.3, eval__every=4)
            yield from moves(home, side, 4)
        if figures(home, 'low') == figures(home, 'high'):
            yield f'{figures(home, "low")}'


def image_to_video():
    with WanHome() as home:
        model = write_model(home.path + '/i2v_low_noise.safetensors', image_channels=20)
        yield from trained(home, 'i2v', model__path=model, model__heads=2, data__path=I2V_CACHES)
        yield from moves(home, 'i2v', 4)


def image_to_video_with_clip():
    """257 rows, as CLIP's vision tower gives; a cache with others is refused."""
    with WanHome() as home:
        model = write_model(home.path + '/clip.safetensors', image_channels=20, clip=32)
        keys = {'model__path': model, 'model__heads': 2}
        for folder, rows in ('good', 257), ('bad', 9):
            write_item(f'{home.path}/{folder}', 'a', more={'latents_image_2x4x4_float32': noise((20, 2, 4, 4), 'image'),
                                                           'clip_float32': noise((rows, 32), 'clip')})
        yield from trained(home, 'clip', **keys, data__path='good')
        yield from moves(home, 'clip', 4)
        if not any('k_img' in key for key in read_tensors(home.lora('clip', 4))[0]):
            yield 'no LoRA on the image branch'
        done = home.train('refused', **keys, data__path='bad')
        if done.returncode != 2 or '257' not in done.stderr:
            yield f'exit {done.returncode}: {done.stderr}'


def text_and_image_to_video():
    """The first frame of a clip stays clean where that is asked for; an image has no other frame."""
    with WanHome() as home:
        for name, frames in ('clip', 3), ('still', 1):
            write_item(home.path + '/wide', name, shape=(48, frames, 4, 4))
        keys = {'model__path': TI2V, 'model__heads': 3, 'data__path': 'wide'}
        yield from trained(home, 'noisy', **keys)
        yield from trained(home, 'clean', **keys, train__clean_first_frame='true')
        yield from moves(home, 'clean', 4)
        same = [a == b for a, b in zip(home.losses('noisy'), home.losses('clean'))]
        if all(same) or not any(same):
            yield f'{home.losses("noisy")}, {home.losses("clean")}'


def from_a_lora():
    """lora.path goes on where a run ended, in any dialect."""
    with WanHome() as home:
        yield from trained(home, 'first', save__dtype='f32')
        for dialect in 'comfy', 'musubi', 'diffusers':
            yield from trained(home, dialect, save__format=dialect, save__dtype='f32')
            yield from trained(home, 'on-' + dialect, lora__path=home.lora(dialect, 4))
            yield from far(home, 'on-' + dialect, 'on-comfy')
        if home.losses('on-comfy')[0] == home.losses('first')[0]:
            yield 'it began anew'
        two = home.experts()
        yield from trained(home, 'two', **two, save__dtype='f32')
        yield from trained(home, 'on-run', **two, lora__path='two')
        yield from trained(home, 'on-files', **two, lora__path=home.lora('two', 4, 'lora_low_noise'),
                           lora__high_noise_path=home.lora('two', 4, 'lora_high_noise'))
        yield from far(home, 'on-run', 'on-files', 0)
        if home.losses('on-run')[0] == home.losses('two')[0]:
            yield 'two of them began anew'


tap.run([the_same_losses_in_parts, validation_depends_on_the_weights_alone, on_a_device, quantized_bases, weights_quantized_on_a_device,
         experts_take_turns, one_expert, image_to_video, image_to_video_with_clip, text_and_image_to_video, from_a_lora])
