# SPDX-License-Identifier: Apache-2.0
"""`cairn sample` that is interrupted, or given what it cannot use: it says what and where before it loads the base model, and leaves nothing behind."""
import os
import signal
import subprocess
import time

import tap
from training import CAIRN, PATIENCE
from wanjobs import DATA, T2V, noise, write_item, write_model
from wanmedia import UMT5, VAE, MediaHome, write_png

VAE_22 = f'{DATA}/vae/vae22_a.weights.safetensors'
FEW = ('--device=cpu', '--out=out', '--size=16x16x1', '--steps=1')


class TroubleHome(MediaHome):
    """With the run of a text-to-video model, and that of an image-to-video model."""

    def __enter__(self):
        super().__enter__()
        keys = {k.replace('.', '__'): v for k, v in self.encoders().items()}
        i2v = {'model__path': write_model(f'{self.path}/i2v.safetensors', image_channels=20), 'model__heads': 2, 'model__task': 'i2v-A14B',
               'model__expert': 'low'}
        for run, more in ('run', {}), ('i2v', i2v):
            done = self.train(run, **{**keys, 'train__steps': 1, 'train__warmup': 0, **more})
            if done.returncode:
                raise AssertionError(done.stderr)
        return self

    def write(self, name, data):
        with open(f'{self.path}/{name}', 'wb') as f:
            f.write(data)

    def refused(self, run, options, status, *words, early=True):
        done = self.process([CAIRN, 'sample', run, *FEW, *options], None)
        if done.returncode != status or any(word not in done.stderr for word in words) or (early and 'loaded in' in done.stderr):
            yield f'{run} {options}: exit {done.returncode}: {done.stderr}'
        if os.path.exists(f'{self.path}/out'):
            yield f'{run} {options}: left {os.listdir(self.path + "/out")}'


HOME = TroubleHome()


def images():
    write_png(f'{HOME.path}/whole.png', 16, 16, 1)
    with open(f'{HOME.path}/whole.png', 'rb') as f:
        HOME.write('cut.png', f.read()[:100])
    HOME.write('empty.png', b'')
    HOME.write('text.png', b'no picture')
    prompt = '--prompt=a'
    yield from HOME.refused('i2v', (prompt,), 2, 'needs an image', '--image FILE')
    for name, words in (('none.png', 'none.png: No such file'), ('cut.png', 'cut.png: damaged PNG file'), ('empty.png', 'empty.png is empty'),
                        ('text.png', 'text.png: neither a picture')):
        yield from HOME.refused('i2v', (prompt, f'--image={name}'), 1, 'prompt 0: ', words)
    yield from HOME.refused('i2v', (prompt, '--prompt=b --i cut.png', '--prompt=c'), 2, 'prompt 0: ', 'needs an image')
    yield from HOME.refused('run', (prompt, '--image=whole.png'), 2, 'whole.png: a text-to-video model takes no image')


def encoders():
    unseen = '--prompt=unseen'
    for key, status, words in (('vae_path=none', 1, ('--set model.vae_path=none: model.vae_path: none does not exist', 'takes the VAE')),
                               (f'vae_path={VAE_22}', 2, ('48 channels', 'Wan2.1_VAE.pth')),
                               (f'vae_path={T2V}', 1, ('is a Wan transformer, not a VAE',)),
                               ('vae_path=', 2, ('model.vae_path is not set', '--set model.vae_path=FILE')),
                               ('text_encoder_path=none', 1, ('none: No such file', 'model.text_encoder_path')),
                               (f'text_encoder_path={VAE}', 1, ('is a VAE, not an umT5 encoder', 'model.text_encoder_path')),
                               ('text_encoder_path=', 2, ('model.text_encoder_path is not set', '--set model.text_encoder_path=FILE')),
                               ('tokenizer_path=none.json', 1, ('none.json: No such file', 'model.tokenizer_path')),
                               ('tokenizer_path=', 1, ('neither in it nor beside it is a tokenizer', 'model.tokenizer_path')),
                               (f'tokenizer_path={UMT5}', 1, ('umt5',)),
                               ('path=none', 1, ('none does not exist', 'model.path'))):
        yield from HOME.refused('run', (unseen, f'--set=model.{key}'), status, *words)


def prompts():
    for name, text, status, words in (('a.txt', '\na stone --w zero\n', 2, 'a.txt:2: --w: "zero"'), ('b.txt', '# b\na --zz 1\n', 2, 'b.txt:2: unknown option --zz'),
                                      ('c.txt', '', 2, 'c.txt: it has no prompts'), ('d.toml', '[prompt]\nwidth = "x"\n[[prompt.subset]]\nprompt = "a"\n', 2, 'd.toml:2: width'),
                                      ('e.json', '[{"prompt": "a", "width": "z"}]', 2, 'e.json:1: width'), ('f.toml', '[prompt\n', 1, 'f.toml:1:8'),
                                      ('g.doc', 'a', 2, '.txt, .toml or .json')):
        HOME.write(name, text.encode())
        yield from HOME.refused('run', (f'--set=sample.file={name}',), status, words)
    yield from HOME.refused('run', ('--set=sample.file=none.txt',), 1, 'none.txt')
    yield from HOME.refused('run', (), 2, 'there is no prompt', '--prompt')
    yield from HOME.refused('run', ('--prompt=a --d',), 2, '--prompt: --d: ')
    yield from HOME.refused('run', ('--prompt=a', '--size=9'), 2, '--size: "9"')
    yield from HOME.refused('run', ('--prompt=a', '--lora-scale=much'), 2, '--lora-scale')
    yield from HOME.refused('run', ('--prompt=a', '--out=job.yaml/x'), 1, 'job.yaml/x')


def clip_features():
    """Wan 2.1 I2V is trained on caches of musubi-tuner, but not sampled."""
    model = write_model(f'{HOME.path}/clip.safetensors', image_channels=20, clip=32)
    rows = 257
    write_item(f'{HOME.path}/clips', 'a', more={'latents_image_2x4x4_float32': noise((20, 2, 4, 4), 'image'), 'clip_float32': noise((rows, 32), 'clip')})
    keys = {k.replace('.', '__'): v for k, v in HOME.encoders().items()}
    done = HOME.train('clip', **{**keys, 'model__path': model, 'model__heads': 2, 'data__path': 'clips', 'train__steps': 1, 'train__warmup': 0,
                                 'sample__every': 1, 'sample__prompts': "['a --i media/stone.png']"})
    words = 'need the CLIP vision encoder', 'Wan 2.2 I2V', 'musubi-tuner'
    if done.returncode or any(word not in done.stderr for word in words) or done.stderr.count('no samples: ') != 1:
        yield f'exit {done.returncode}: {done.stderr}'
    yield from HOME.refused('clip', ('--image=media/stone.png',), 2, *words)


def interrupted():
    """In the middle of the steps, and while the VAE decodes: the program ends by the signal, and no file is there."""
    for out, options, words in (('steps', ('--steps=1000', '--size=64x64x17'), 'on cpu'), ('frames', ('--steps=1', '--size=128x128x121', '--cfg=1'), 'frame 1 of')):
        master, slave = os.openpty()
        command = [CAIRN, 'sample', 'run', '--prompt=a stone', '--device=cpu', f'--out={out}', *options]
        process = subprocess.Popen(command, env={**HOME.environment(None), 'TERM': 'xterm'}, cwd=HOME.path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=slave)
        os.close(slave)
        said, limit = b'', time.monotonic() + PATIENCE
        while words.encode() not in said and time.monotonic() < limit:
            said += os.read(master, 4096)
        os.kill(process.pid, signal.SIGINT)
        try:
            while block := os.read(master, 4096):
                said += block
        except OSError:  # the other side is closed
            pass
        os.close(master)
        if process.wait(PATIENCE) != -signal.SIGINT or b'interrupted' not in said:
            yield f'{out}: exit {process.returncode}: {said}'
        if os.path.exists(f'{HOME.path}/{out}'):
            yield f'{out}: left {os.listdir(HOME.path + "/" + out)}'


with HOME:
    tap.run([images, encoders, prompts, clip_features, interrupted])
