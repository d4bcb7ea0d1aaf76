# SPDX-License-Identifier: Apache-2.0
"""`cairn cache`, `cairn decode` and `cairn train` on folders of images, clips and captions, with tiny models."""
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import time
import zlib

import tap
from training import CAIRN, PATIENCE
from wanjobs import DATA, I2V_CLIP, T2V, WanHome, floats, read_tensors, write_tensors

VAE = f'{DATA}/vae/vae21_b.weights.safetensors'
VAE_22 = f'{DATA}/vae/vae22_a.weights.safetensors'
TEXT = f'{DATA}/t5/umt5_a.weights.safetensors'
CLIP = f'{DATA}/../media/clip.mp4'  # 32 x 16, 9 frames are used
MODELS = {'model.path': T2V, 'model.heads': 3, 'model.vae_path': VAE, 'model.text_encoder_path': TEXT, 'data.resolution': 32,
          'train.device': 'cpu'}


# ---- media ----

def png(path, width, height, seed):
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    rows = b''.join(b'\0' + bytes((7 * x + 5 * y * k + 31 * seed) % 256 for x in range(width) for k in (1, 2, 5)) for y in range(height))
    with open(path, 'wb') as f:
        f.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)) +
                chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))


def png_pixels(path):
    """Width, height and the bytes of its rows, whatever their filter."""
    with open(path, 'rb') as f:
        data = f.read()
    size, pixels, at = struct.unpack('>II', data[16:24]), b'', 8
    while at < len(data):
        n = struct.unpack('>I', data[at:at + 4])[0]
        pixels += data[at + 8:at + 8 + n] if data[at + 4:at + 8] == b'IDAT' else b''
        at += n + 12
    return *size, zlib.decompress(pixels)


def tokenizer(path):
    vocab = [['<pad>', 0], ['</s>', 0], ['<s>', 0], ['<unk>', -10], ['\u2581', -2]] + [[c, -3] for c in 'abcdefghijklmnopqrstuvwxyz']
    space = {'type': 'Metaspace', 'replacement': '\u2581', 'prepend_scheme': 'always', 'split': True}
    with open(path, 'w', encoding='utf-8') as f:
        json.dump({'version': '1.0', 'added_tokens': [], 'normalizer': None, 'pre_tokenizer': space,
                   'model': {'type': 'Unigram', 'unk_id': 3, 'vocab': vocab}}, f)


class CacheHome(WanHome):
    """A folder `media` with images; `cairn cache` on it."""

    def __enter__(self):
        super().__enter__()
        if not os.path.exists(os.path.dirname(CAIRN) + '/cairn-media'):
            raise tap.Skip('cairn-media is not built')
        tokenizer(self.path + '/tokenizer.json')
        os.mkdir(self.path + '/media')
        return self

    def image(self, name, size=(32, 32), caption='stone', seed=1):
        png(f'{self.path}/media/{name}.png', *size, seed)
        if caption is not None:
            self.caption(name, caption)

    def caption(self, name, text):
        with open(f'{self.path}/media/{name}.txt', 'w', encoding='utf-8') as f:
            f.write(text)

    def clip(self, name, caption='path'):
        shutil.copy(CLIP, f'{self.path}/media/{name}.mp4')
        self.caption(name, caption)

    def three(self):
        """Two images and a clip."""
        self.image('one', (48, 32), 'a stone', 1)
        self.image('two', (32, 48), 'a river', 2)
        self.clip('three')

    def keys(self, keys):
        sets = {**MODELS, 'model.tokenizer_path': self.path + '/tokenizer.json', **{k.replace('__', '.'): v for k, v in keys.items()}}
        return [f'--set={k}={v}' for k, v in sets.items() if v is not None]

    def run(self, command, limit=None):
        """SIGXFSZ stays ignored, as Python has it, so that a file that grows beyond the limit is an error of the write."""
        limits = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None
        return subprocess.run(command, env=self.environment(None), cwd=self.path, stdin=subprocess.DEVNULL, text=True, errors='replace',
                              capture_output=True, timeout=PATIENCE, check=False, preexec_fn=limits, restore_signals=not limit)

    def cache(self, *options, what='media', limit=None, **keys):
        """The process, with the report in .json; None: there is none."""
        done = self.run([CAIRN, 'cache', '--json', what, *options, *self.keys(keys)], limit)
        done.json = json.loads(done.stdout) if done.stdout else None
        return done

    def files(self, folder='media/_cairn_cache'):
        """Name and contents."""
        found = {}
        for name in os.listdir(f'{self.path}/{folder}') if os.path.isdir(f'{self.path}/{folder}') else []:
            with open(f'{self.path}/{folder}/{name}', 'rb') as f:
                found[name] = f.read()
        return found


def counts(done):
    """Texts made and current, latents made, current and failed."""
    if not done.json:
        raise AssertionError(f'exit {done.returncode}: {done.stderr}')
    text, latents = done.json['text'], done.json['latents']
    return text['made'], text['current'], latents['made'], latents['current'], latents['failed']


def expect(done, code, want, what=''):
    got = counts(done)
    if done.returncode != code or got != want:
        yield f'{what}: exit {done.returncode}, {got} instead of {want}: {done.stdout} {done.stderr}'


# ---- files ----

def batch_key(name):
    """How musubi-tuner names a tensor of a cache in a batch."""
    varlen = name.startswith('varlen_')
    name = name[len('varlen_'):] if varlen else name
    if not name.endswith('_mask'):
        name = name.rsplit('_', 1)[0]
    return name.rsplit('_', 1)[0] if name.startswith('latents_') else name


def names_tensors_and_metadata():
    with CacheHome() as home:
        home.three()
        yield from expect(home.cache(), 0, (4, 0, 3, 0, 0))
        found = home.files()
        latents = {'one_0048x0032': (16, 1, 4, 4), 'two_0032x0048': (16, 1, 4, 4), 'three_00000-009_0032x0032': (16, 3, 4, 4)}
        texts = {name for name in found if name.endswith('_wan_te.safetensors') and not name.startswith('cairn_prompt_')}
        prompts = [name for name in found if name.startswith('cairn_prompt_')]
        if texts != {f'{stem}_wan_te.safetensors' for stem in ('one', 'two', 'three')} or len(prompts) != 1 or len(found) != 7:
            yield f'{list(found)}'
        for name, shape in latents.items():
            tensors, meta = read_tensors(f'{home.path}/media/_cairn_cache/{name}_wan.safetensors')
            key = f'latents_{"x".join(str(k) for k in shape[1:])}_bfloat16'
            width, height = name.rsplit('_', 1)[1].split('x')
            want = {'architecture': 'wan', 'width': str(int(width)), 'height': str(int(height)), 'format_version': '1.0.1'}
            if shape[1] > 1:
                want['frame_count'] = '9'
            if [*tensors] != [key] or tuple(tensors[key][1]) != shape or batch_key(key) != 'latents' or len(set(floats(tensors[key]))) < 10:
                yield f'{name}: {[(k, v[:2]) for k, v in tensors.items()]}'
            if {k: v for k, v in meta.items() if not k.startswith('cairn')} != want:
                yield f'{name}: {meta}'
        tensors, meta = read_tensors(f'{home.path}/media/_cairn_cache/one_wan_te.safetensors')
        if [*tensors] != ['varlen_t5_bfloat16'] or batch_key('varlen_t5_bfloat16') != 't5' or tensors['varlen_t5_bfloat16'][1][1] != 64:
            yield f'{[(k, v[:2]) for k, v in tensors.items()]}'
        if (meta.get('architecture'), meta.get('caption1'), meta.get('format_version')) != ('wan', 'a stone', '1.0.1'):
            yield f'{meta}'
        checked = home.run([CAIRN, 'tensor', 'check', '--json', *(f'media/_cairn_cache/{name}' for name in found)])
        if checked.returncode:
            yield f'tensor check: exit {checked.returncode}: {checked.stdout}'


def images_for_image_to_video():
    with CacheHome() as home:
        home.clip('a')
        yield from expect(home.cache(model__task='i2v-A14B', cache__dtype='f32'), 0, (2, 0, 1, 0, 0))
        tensors, _ = read_tensors(home.path + '/media/_cairn_cache/a_00000-009_0032x0032_wan.safetensors')
        image = tensors.get('latents_image_3x4x4_float32')
        if not image or image[1] != [20, 3, 4, 4] or batch_key('latents_image_3x4x4_float32') != 'latents_image':
            yield f'{[(k, v[:2]) for k, v in tensors.items()]}'
            return
        values = floats(image)
        if values[:4 * 48] != ((1.0,) * 16 + (0.0,) * 32) * 4 or len(set(values[4 * 48:])) < 10:
            yield f'mask {values[:4 * 48]}'
        # The first frame is the clip's; the model sees it alone, so that only its latents agree.
        latents = floats(tensors['latents_3x4x4_float32'])
        if any(abs(latents[c * 48 + i] - values[(4 + c) * 48 + i]) > 1e-3 for c in range(16) for i in range(16)):
            yield 'the first latent frame is another'


# ---- what is current ----

def only_what_changed_is_made_again():
    with CacheHome() as home:
        home.three()
        yield from expect(home.cache(), 0, (4, 0, 3, 0, 0), 'first')
        before = home.files()
        yield from expect(home.cache(), 0, (0, 4, 0, 3, 0), 'second')
        if home.files() != before:
            yield 'files changed'
        home.caption('one', 'another stone')
        yield from expect(home.cache(), 0, (1, 3, 0, 3, 0), 'caption')
        changed = [name for name, data in home.files().items() if before.get(name) != data]
        if changed != ['one_wan_te.safetensors']:
            yield f'caption: {changed}'
        png(home.path + '/media/two.png', 32, 48, 9)
        yield from expect(home.cache(), 0, (0, 4, 1, 2, 0), 'image')
        yield from expect(home.cache(data__resolution=48), 0, (0, 4, 3, 0, 0), 'resolution')
        yield from expect(home.cache('--again'), 0, (4, 0, 3, 0, 0), '--again')
        tensors, meta = read_tensors(VAE)
        dtype, shape, data = tensors['conv1.bias']
        tensors['conv1.bias'] = dtype, shape, data[2:] + data[:2]
        write_tensors(home.path + '/vae.safetensors', tensors, meta)
        yield from expect(home.cache(model__vae_path='vae.safetensors'), 0, (0, 4, 3, 0, 0), 'VAE')
        yield from expect(home.cache(cache__dtype='f32'), 0, (4, 0, 3, 0, 0), 'dtype')


def files_of_musubi_tuner_are_current():
    with CacheHome() as home:
        home.image('one', (48, 32), 'a stone')
        home.cache()
        for name in home.files():
            path = f'{home.path}/media/_cairn_cache/{name}'
            tensors, meta = read_tensors(path)
            write_tensors(path, tensors, {k: v for k, v in meta.items() if not k.startswith('cairn')})
        yield from expect(home.cache(), 0, (0, 2, 0, 1, 0))
        yield from expect(home.cache(data__resolution=48), 0, (0, 2, 1, 0, 0), 'size')


def a_damaged_cache_is_made_again():
    with CacheHome() as home:
        home.image('one')
        home.cache()
        for name, data in home.files().items():
            with open(f'{home.path}/media/_cairn_cache/{name}', 'wb') as f:
                f.write(data[:len(data) // 2])
        yield from expect(home.cache(), 0, (2, 0, 1, 0, 0))


# ---- what cannot be used ----

def problems_are_listed_and_the_rest_goes_on():
    with CacheHome() as home:
        media = home.path + '/media/'
        home.image('good')
        home.image('cut', caption='cut')
        with open(media + 'cut.png', 'rb+') as f:
            f.truncate(100)
        home.image('bare', caption=None)
        home.image('binary')
        with open(media + 'binary.txt', 'wb') as f:
            f.write(b'caf\xe9')
        for name in 'empty.png', 'fake.mp4', 'fake.jpg':
            with open(media + name, 'w', encoding='utf-8') as f:
                f.write('' if name.startswith('empty') else 'no media')
            home.caption(name.split('.', maxsplit=1)[0], 'x')
        os.symlink('self.png', media + 'self.png')
        home.caption('self', 'x')
        for extension in 'png', 'PNG':  # of the same size
            png(f'{media}same.{extension}', 32, 32, 3)
        home.caption('same', 'x')
        done = home.cache()
        yield from expect(done, 1, (3, 0, 1, 0, 1))
        skipped = {os.path.basename(s['file']): s['problem'] for s in done.json['skipped']}
        want = {'bare.png': 'caption', 'binary.png': 'caption', 'empty.png': 'unreadable', 'fake.mp4': 'unreadable',
                'fake.jpg': 'unreadable', 'self.png': 'unreadable', 'same.png': 'same-name', 'same.PNG': 'same-name'}
        if skipped != want or [f['file'] for f in done.json['failed']] != ['media/cut.png']:
            yield f'{done.json}'
        for entry in done.json['skipped'] + done.json['failed']:
            if not entry['why'] or entry['file'] in entry['why']:
                yield f'the reason names its own file: {entry}'


def same_stem_of_an_image_and_a_clip():
    """One caption; their names differ."""
    with CacheHome() as home:
        home.image('a')
        home.clip('a')
        yield from expect(home.cache(), 0, (2, 0, 2, 0, 0))


def too_short_for_the_dataset():
    with CacheHome() as home:
        home.clip('a')
        with open(home.path + '/d.toml', 'w', encoding='utf-8') as f:
            f.write(f'[[datasets]]\nresolution = [32, 32]\ncaption_extension = ".txt"\nvideo_directory = "{home.path}/media"\n'
                    'target_frames = [81]\n')
        done = home.cache(what='d.toml', data__resolution=None)
        looked = home.run([CAIRN, 'cache', '--look', '--json', 'd.toml'])
        if done.returncode != 1 or done.json or [i['problem'] for i in json.loads(looked.stdout)['items']] != ['too-short']:
            yield f'exit {done.returncode}: {done.stdout} {looked.stdout}'


def odd_names():
    with CacheHome() as home:
        names = ['a b', 'it\'s "x"', 'new\nline', 'Stra\u00dfe-\u65e5\u672c \U0001f388', 'a_0032x0032_wan', '-dash', '%s%n', 'a.b.c', '\x1b[31mred']
        for n, name in enumerate(names):
            home.image(name, seed=n)
        home.image('\x1b[32mbare', caption=None)
        yield from expect(home.cache(), 0, (len(names) + 1, 0, len(names), 0, 0), 'first')
        if any(f'{name}_0032x0032_wan.safetensors' not in home.files() for name in names):
            yield f'{list(home.files())}'
        said = home.run([CAIRN, 'cache', 'media', *home.keys({})])
        looked = home.run([CAIRN, 'cache', '--look', '-v', 'media', *home.keys({})])
        if said.returncode or looked.returncode != 1 or '\x1b' in said.stdout + said.stderr + looked.stdout:
            yield f'exit {said.returncode}: {said.stdout!r} {looked.stdout!r}'


def folders_without_use():
    with CacheHome() as home:
        os.mkdir(home.path + '/empty')
        os.mkdir(home.path + '/closed', 0)
        for what, words in ('empty', 'empty has no images or clips'), ('nowhere', 'nowhere: No such file'):
            done = home.cache(what=what)
            if done.returncode not in (1, 2) or done.json or words not in done.stderr:
                yield f'{what}: exit {done.returncode}: {done.stdout} {done.stderr}'
        os.chmod(home.path, 0o755)
        done = subprocess.run([CAIRN, 'cache', '--look', 'closed'], cwd=home.path, env=home.environment(None), user=os.geteuid() or 65534,
                              text=True, capture_output=True, timeout=PATIENCE, check=False)
        if done.returncode != 1 or 'read the folder closed: Permission denied' not in done.stderr:
            yield f'a closed folder: exit {done.returncode}: {done.stdout} {done.stderr}'
        home.image('a', caption=None)
        done = home.cache()
        if done.returncode != 1 or home.files():
            yield f'no captions: exit {done.returncode}: {done.stdout} {done.stderr}'
        home.image('b')
        os.symlink('.', home.path + '/media/loop')
        os.symlink('..', home.path + '/media/up.png')
        yield from expect(home.cache(), 0, (2, 0, 1, 0, 0), 'links')


# ---- models and disks that fail ----

def spoil(source, name, path):
    tensors, meta = read_tensors(source)
    dtype, shape, data = tensors[name]
    tensors[name] = dtype, shape, data[:10] + b'\xc0\x7f' + data[12:]
    write_tensors(path, tensors, meta)


def nan_in_a_model():
    """The error names file and layer, once, and no file is made of it."""
    with CacheHome() as home:
        home.three()
        for key, source, layer, kind in (('vae_path', VAE, 'encoder.middle.0.residual.2.weight', '[0-9]_wan.safetensors'),
                                         ('text_encoder_path', TEXT, 'blocks.1.attn.q.weight', '_wan_te.safetensors')):
            spoil(source, layer, home.path + '/bad.safetensors')
            done = home.cache(**{'model__' + key: 'bad.safetensors'})
            if done.returncode != 1 or done.stderr.count(layer) != 1 or 'bad.safetensors' not in done.stderr:
                yield f'{key}: exit {done.returncode}: {done.stdout} {done.stderr}'
            if any(re.search(kind, name) for name in home.files()):
                yield f'{key}: {list(home.files())}'
            shutil.rmtree(home.path + '/media/_cairn_cache', ignore_errors=True)
        yield from expect(home.cache(), 0, (4, 0, 3, 0, 0), 'after it')


def models_that_do_not_fit():
    """Each of them is named, by its key or its path."""
    with CacheHome() as home:
        home.image('a')
        with open(home.path + '/tokenizer.json', encoding='utf-8') as f:
            words = json.load(f)
        vocab = words['model']['vocab']
        words['model']['vocab'] = vocab[:5] + [[f'zz{n}', -20] for n in range(400)] + vocab[5:]  # the encoder has 256
        with open(home.path + '/other.json', 'w', encoding='utf-8') as f:
            json.dump(words, f)
        tensors, meta = read_tensors(VAE)
        write_tensors(home.path + '/zero.safetensors', {k: (d, s, bytes(len(b))) for k, (d, s, b) in tensors.items()}, meta)
        for key, value, code, words in (('tokenizer_path', 'other.json', 2, ['tokenizer', TEXT]), ('tokenizer_path', 'media/a.png', 1, ['a.png']),
                                        ('vae_path', None, 2, ['model.vae_path']), ('vae_path', TEXT, 1, [TEXT]),
                                        ('text_encoder_path', None, 2, ['model.text_encoder_path']), ('text_encoder_path', VAE, 1, [VAE])):
            done = home.cache(**{'model__' + key: value})
            if done.returncode != code or home.files() or not all(word in done.stderr for word in words):
                yield f'{key}: {value}: exit {done.returncode}: {done.stderr} {list(home.files())}'
        # An encoder whose latents are all 0 does not make a cache.
        done = home.cache(model__vae_path='zero.safetensors')
        yield from expect(done, 1, (2, 0, 0, 0, 1), 'zeros')
        if 'a_0032x0032_wan.safetensors' in home.files():
            yield 'a cache of zeros was written'


def without_the_transformer():
    """Caches need its kind only: by model.task, or by the VAE, else text-to-video."""
    with CacheHome() as home:
        home.clip('a')
        with open(home.path + '/c.yaml', 'w', encoding='utf-8') as f:
            f.write('model: {kind: wan}\ndata: {path: media}\n')
        for folder, keys, image in ('t2v', {}, False), ('i2v', {'model__task': 'i2v-A14B'}, True), \
                                   ('5b', {'model__vae_path': VAE_22, 'data__resolution': 64}, False):
            done = home.cache(what='c.yaml', cache__dir=folder, **{'model__path': None, 'model__heads': None, **keys})
            yield from expect(done, 0, (2, 0, 1, 0, 0), folder)
            name = next(n for n in home.files(folder) if re.search('[0-9]_wan.safetensors', n))
            tensors, _ = read_tensors(f'{home.path}/{folder}/{name}')
            if any(key.startswith('latents_image_') for key in tensors) != image or ('model.task' in done.stderr) != (folder == 't2v'):
                yield f'{folder}: {[*tensors]}: {done.stderr}'
        done = home.cache(what='c.yaml', cache__dir='none', model__path='nowhere.safetensors')
        if done.returncode not in (1, 2) or done.json or home.files('none') or 'nowhere.safetensors' not in done.stderr:
            yield f'a transformer that is not there: exit {done.returncode}: {done.stdout} {done.stderr}'


def full_disks():
    """No file grows beyond 700 bytes."""
    with CacheHome() as home:
        home.image('a', caption='a b c d e f g h')
        done = home.cache(limit=700)
        if done.returncode != 1 or 'a_wan_te' not in done.stderr or any(len(data) > 700 for data in home.files().values()):
            yield f'exit {done.returncode}: {done.stderr} {list(home.files())}'
        if any(not name.endswith('_wan_te.safetensors') for name in home.files()):
            yield f'left behind: {list(home.files())}'
        done = home.cache('--dir', 'job.yaml')
        if done.returncode != 1 or 'job.yaml' not in done.stderr:
            yield f'a file for a folder: exit {done.returncode}: {done.stderr}'
        done = home.cache()
        if done.returncode or len(home.files()) != 3:
            yield f'then: exit {done.returncode}: {done.stderr}'


def killed_and_interrupted():
    """The same command completes it, and no temporary file stays."""
    with CacheHome() as home:
        for n in range(8):
            home.image(f'i{n}', (64, 48), f'stone {"abcdefgh"[n]}', n)
        want = home.cache(data__resolution=64, cache__dir='whole')
        for sign, codes in (signal.SIGKILL, (-signal.SIGKILL,)), (signal.SIGINT, (130, -signal.SIGINT)):
            folder = f'cut{sign}'
            command = [CAIRN, 'cache', '--json', 'media', *home.keys({'data.resolution': 64, 'cache.dir': folder})]
            with subprocess.Popen(command, env=home.environment(None), cwd=home.path, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, start_new_session=True) as process:
                limit = time.monotonic() + PATIENCE
                while not any(re.search('[0-9]_wan.safetensors', n) for n in home.files(folder)) and time.monotonic() < limit:
                    time.sleep(0.005)
                os.killpg(process.pid, sign)  # a terminal interrupts cairn-media too
                status = process.wait(PATIENCE)
            made = len([n for n in home.files(folder) if re.fullmatch('i.*[0-9]_wan.safetensors', n)])
            if status not in codes and not (status == 0 and made == 8):
                yield f'{sign}: exit {status}, {made} made'
            done = home.cache(data__resolution=64, cache__dir=folder)
            if done.returncode or home.files(folder) != home.files('whole') or counts(done)[3] < made - 1:
                yield f'{sign}: exit {done.returncode}: {done.stdout} {done.stderr} {sorted(home.files(folder))}'
        if counts(want)[2] != 8:
            yield f'{want.stdout}'


def two_at_once():
    with CacheHome() as home:
        for n in range(4):
            home.image(f'i{n}', seed=n)
        command = [CAIRN, 'cache', '--json', 'media', *home.keys({})]
        running = [subprocess.Popen(command, env=home.environment(None), cwd=home.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                   for _ in range(2)]
        for process in running:
            out, said = process.communicate(timeout=PATIENCE)
            if process.returncode or json.loads(out)['failed']:
                yield f'exit {process.returncode}: {out} {said}'
        if len(home.files()) != 9:
            yield f'{sorted(home.files())}'
        yield from expect(home.cache(), 0, (0, 5, 0, 4, 0))


# ---- datasets of other trainers ----

def dataset_files():
    with CacheHome() as home:
        home.three()
        with open(home.path + '/d.toml', 'w', encoding='utf-8') as f:
            f.write(f'[general]\nresolution = [32, 32]\ncaption_extension = ".txt"\n[[datasets]]\nimage_directory = "{home.path}/media"\n'
                    f'cache_directory = "{home.path}/images"\n[[datasets]]\nvideo_directory = "{home.path}/media"\ntarget_frames = [1, 5]\n'
                    f'cache_directory = "{home.path}/clips"\n')
        yield from expect(home.cache(what='d.toml', data__resolution=None), 0, (4, 0, 4, 0, 0), 'TOML')
        clips = {n for n in home.files('clips') if re.search('[0-9]_wan.safetensors', n)}
        if len(clips) != 2 or not any('_00000-005_' in n for n in clips) or 'two_0032x0048_wan.safetensors' not in home.files('images'):
            yield f'{clips} {list(home.files("images"))}'
        with open(home.path + '/d.toml', 'a', encoding='utf-8') as f:
            f.write('num_repeat = 2\n')
        done = home.cache(what='d.toml', data__resolution=None)
        if done.returncode not in (1, 2) or 'num_repeat' not in done.stderr:
            yield f'unknown key: exit {done.returncode}: {done.stderr}'
        with open(home.path + '/ai.yaml', 'w', encoding='utf-8') as f:
            f.write('job: extension\nconfig:\n  name: x\n  process:\n    - type: sd_trainer\n      trigger_word: zzz\n      network: {type: lora, linear: 4}\n      datasets:\n'
                    f'        - folder_path: {home.path}/media\n          caption_ext: txt\n          resolution: [32]\n'
                    '      model: {name_or_path: /nowhere, arch: wan21}\n')
        done = home.cache('--dir', 'ai', what='ai.yaml', data__resolution=None)
        yield from expect(done, 0, (3, 0, 2, 0, 0), 'YAML')
        _, meta = read_tensors(home.path + '/ai/one_wan_te.safetensors')
        if 'zzz' not in meta['caption1'] or 'a stone' not in meta['caption1']:
            yield f'{meta}'


# ---- looking at it ----

def look():
    with CacheHome() as home:
        home.three()
        home.image('bare', caption=None)
        done = home.run([CAIRN, 'cache', '--look', '--json', '--sheet', 'sheet.png', 'media', '--set=data.resolution=32'])
        report = json.loads(done.stdout)
        items = {os.path.basename(i['file']): i for i in report['items']}
        if done.returncode != 1 or report['totals']['usable'] != 3 or report['totals']['captions_missing'] != 1 or home.files():
            yield f'exit {done.returncode}: {report["totals"]}'
        one = items['one.png']
        if one['bucket'] != [32, 32, 1] or one['crop'] != {'x': 8, 'y': 0, 'width': 32, 'height': 32} or one['caption'] != 'a stone':
            yield f'{one}'
        if items['three.mp4']['frames'] != 9 or items['bare.png']['problem'] != 'caption' or sum(b['items'] for b in report['buckets']) != 3:
            yield f'{items} {report["buckets"]}'
        width, height, pixels = png_pixels(home.path + '/sheet.png')
        if min(width, height) < 32 or len(set(pixels)) < 10:
            yield f'sheet of {width} x {height}'
        for name in 'cut.png', 'cut_too.jpg':  # what begins well is decoded to its end
            with open(f'{DATA}/../media/' + ('still.png' if name.endswith('png') else 'turned.jpg'), 'rb') as f:
                whole = f.read()
            with open(f'{home.path}/media/{name}', 'wb') as f:
                f.write(whole[:-40])
            home.caption(name.split('.', maxsplit=1)[0], 'x')
        done = home.run([CAIRN, 'cache', '--look', '--json', 'media', '--set=data.resolution=32'])
        problems = {os.path.basename(i['file']): i['problem'] for i in json.loads(done.stdout)['items']}
        if problems != {'one.png': None, 'two.png': None, 'three.mp4': None, 'bare.png': 'caption', 'cut.png': 'unreadable',
                        'cut_too.jpg': 'unreadable'}:
            yield f'{problems}'
        table = home.run([CAIRN, 'cache', '--look', '-v', 'media', '--set=data.resolution=32']).stdout.splitlines()
        head = next(line for line in table if line.startswith('FILE'))
        row = next(line for line in table if line.startswith('one.png'))
        if row.find('48x32') != head.find('SIZE') or row.find('32x32x1') != head.find('BUCKET'):
            yield f'{head}\n{row}'
        if any(line.endswith(' ') for line in table):
            yield f'spaces at the end of a line: {table}'


def decoded():
    with CacheHome() as home:
        home.three()
        home.cache()
        folder = home.path + '/media/_cairn_cache/'
        image, clip = folder + 'one_0048x0032_wan.safetensors', folder + 'three_00000-009_0032x0032_wan.safetensors'
        decode = [CAIRN, 'decode', '--device', 'cpu', '--vae']
        done = home.run([*decode, VAE, image, '-o', 'one.png'])
        width, height, pixels = png_pixels(home.path + '/one.png')
        if done.returncode or (width, height) != (32, 32) or len(set(pixels)) < 10:
            yield f'exit {done.returncode}, {width} x {height}: {done.stderr}'
        done = home.run([*decode, VAE, image, clip, '-o', 'shown'])
        if done.returncode or len(os.listdir(home.path + '/shown')) != 2:
            yield f'exit {done.returncode}: {done.stderr}'
        shutil.move(home.path + '/shown/three_00000-009_0032x0032_wan.mp4', home.path + '/shown/clip.mp4')
        report = json.loads(home.run([CAIRN, 'cache', '--look', '--json', 'shown', '--set=data.caption_default=x']).stdout)
        found = next(i for i in report['items'] if i['clip'])
        if (found['width'], found['height'], found['source_frames']) != (32, 32, 9):
            yield f'{found}'
        if home.run([*decode, VAE, image, '-o', 'x.gif']).returncode != 2 or os.path.exists(home.path + '/x.gif'):
            yield 'x.gif'
        for words in ([VAE_22, image], [VAE, folder + 'one_wan_te.safetensors'], [VAE, home.path + '/media/one.png'], [T2V, image]):
            done = home.run([*decode, *words, '-o', 'x.png'])
            if done.returncode not in (1, 2) or not done.stderr or os.path.exists(home.path + '/x.png'):
                yield f'{words}: exit {done.returncode}: {done.stderr}'


# ---- training ----

def trained():
    with CacheHome() as home:
        home.three()
        keys = {**{k.replace('.', '__'): v for k, v in MODELS.items()}, 'model__tokenizer_path': home.path + '/tokenizer.json',
                'data__path': 'media', 'train__steps': 2}
        plan = home.run([CAIRN, 'plan', '--json', 'job.yaml', *(f'--set={k.replace("__", ".")}={v}' for k, v in keys.items())])
        if plan.returncode or home.files():
            yield f'plan: exit {plan.returncode}: {plan.stderr}'
        done = home.train('first', **keys)
        before = home.files()
        if done.returncode or len(home.losses('first')) != 2 or len(before) != 7:
            yield f'exit {done.returncode}: {done.stderr} {list(before)}'
        again = home.train('second', **keys)
        if again.returncode or home.files() != before or home.losses('second') != home.losses('first'):
            yield f'exit {again.returncode}: {again.stderr}'


def encoders_of_another_model():
    """Known before the caches are replaced."""
    with CacheHome() as home:
        home.image('a')
        home.cache()
        before = home.files()
        keys = {**{k.replace('.', '__'): v for k, v in MODELS.items()}, 'model__tokenizer_path': home.path + '/tokenizer.json',
                'data__path': 'media', 'train__steps': 2}
        done = home.train('run', **{**keys, 'model__path': I2V_CLIP, 'model__heads': 2})
        cached = home.run([CAIRN, 'cache', 'job.yaml', *(f'--set={k.replace("__", ".")}={v}' for k, v in {**keys, 'model__path': I2V_CLIP,
                                                                                                     'model__heads': 2}.items())])
        named = home.run([CAIRN, 'cache', 'job.yaml', *(f'--set={k.replace("__", ".")}={v}' for k, v in {**keys, 'model__path': '',
                                                                                                    'model__task': 'i2v-14B'}.items())])
        for tried in done, cached, named:
            if tried.returncode != 2 or 'need the CLIP vision encoder' not in tried.stderr or 'Wan 2.2 I2V' not in tried.stderr or home.files() != before:
                yield f'CLIP: exit {tried.returncode}: {tried.stderr}'
        for key, path in ('vae_path', VAE_22), ('text_encoder_path', f'{DATA}/t5/umt5_b.weights.safetensors'):
            done = home.train('run', **{**keys, 'model__' + key: path})
            plan = home.run([CAIRN, 'plan', 'job.yaml', *(f'--set={k.replace("__", ".")}={v}' for k, v in {**keys, 'model__' + key: path}.items())])
            if done.returncode != 2 or plan.returncode != 2 or 'model.' + key not in done.stderr or home.files() != before:
                yield f'{key}: exit {done.returncode} and {plan.returncode}: {done.stderr} {plan.stderr}'


def prompts_of_samples():
    with CacheHome() as home:
        home.image('a')
        yield from expect(home.cache('--set=sample.prompts=[a cat, a dog]', '--set=sample.negative=bad'), 0, (5, 0, 1, 0, 0))
        found = {read_tensors(f'{home.path}/media/_cairn_cache/{name}')[1]['caption1'] for name in home.files() if name.startswith('cairn_prompt_')}
        if found != {'', 'a cat', 'a dog', 'bad'}:
            yield f'{found}'


def what_left_the_dataset_is_not_trained_on():
    with CacheHome() as home:
        home.three()
        keys = {**{k.replace('.', '__'): v for k, v in MODELS.items()}, 'model__tokenizer_path': home.path + '/tokenizer.json',
                'data__path': 'media', 'train__steps': 3}
        home.cache(data__frames=5)
        home.cache(data__resolution=48)
        os.remove(home.path + '/media/one.png')
        home.train('after', **keys)
        shutil.rmtree(home.path + '/media/_cairn_cache')
        home.train('fresh', **keys)
        if not home.losses('fresh') or home.losses('after') != home.losses('fresh'):
            yield f'{home.losses("after")} and {home.losses("fresh")}'
        home.train('twice', **keys, data__repeats=2)
        epochs = [line.get('epoch') for run in ('fresh', 'twice') for line in home.log(run) if 'loss' in line]
        if home.losses('twice') == home.losses('fresh'):
            yield f'data.repeats changes nothing: {epochs}'


def dropped_captions():
    """With all captions dropped, what they say makes no difference."""
    with CacheHome() as home:
        home.three()
        keys = {**{k.replace('.', '__'): v for k, v in MODELS.items()}, 'model__tokenizer_path': home.path + '/tokenizer.json',
                'data__path': 'media', 'train__steps': 2}
        home.train('before', **keys)
        home.train('before-dropped', **keys, data__caption_dropout=0.9999)
        for name in os.listdir(home.path + '/media'):
            if name.endswith('.txt'):
                with open(f'{home.path}/media/{name}', 'w', encoding='utf-8') as f:
                    f.write('the cat and the dog')
        home.train('after', **keys)
        home.train('after-dropped', **keys, data__caption_dropout=0.9999)
        if not home.losses('after') or home.losses('after') == home.losses('before'):
            yield 'the captions have no effect'
        if not home.losses('after-dropped') or home.losses('after-dropped') != home.losses('before-dropped'):
            yield f'{home.losses("before-dropped")} and {home.losses("after-dropped")}'


tap.run([names_tensors_and_metadata, images_for_image_to_video, only_what_changed_is_made_again, files_of_musubi_tuner_are_current,
         a_damaged_cache_is_made_again, problems_are_listed_and_the_rest_goes_on, same_stem_of_an_image_and_a_clip,
         too_short_for_the_dataset, odd_names, folders_without_use, nan_in_a_model, models_that_do_not_fit, without_the_transformer,
         full_disks, killed_and_interrupted, two_at_once,
         dataset_files, look, decoded, trained, encoders_of_another_model, prompts_of_samples, what_left_the_dataset_is_not_trained_on, dropped_captions])
