# SPDX-License-Identifier: Apache-2.0
"""`cairn sample` with LoRA files that are in no run, over the base model of a configuration."""
import hashlib
import json
import shutil

import tap
from training import CAIRN
from wanjobs import read_tensors, write_model, write_tensors
from wanmedia import MediaHome

FEW = ('--prompt=a stone --f 1', '--size=16x16x1', '--steps=2', '--device=cpu', '--json')


class LoraHome(MediaHome):
    """With a run, its LoRA as mine.safetensors, and base.yaml, which has the base model and the encoders alone."""

    def __enter__(self):
        super().__enter__()
        done = self.job('run')
        if done.returncode:
            raise AssertionError(done.stderr)
        shutil.copy(self.lora('run', 2), f'{self.path}/mine.safetensors')
        self.config('base.yaml')
        return self

    def job(self, run, **more):
        keys = {k.replace('.', '__'): v for k, v in self.encoders().items()}
        return self.train(run, **{**keys, 'train__steps': 2, 'train__warmup': 0, 'train__lr': 0.01, 'save__dtype': 'f32', 'lora__alpha': 2, **more})

    def config(self, name, **more):
        tree = {'model': {'kind': 'wan'}}
        for key, value in {**self.encoders(), **{k.replace('__', '.'): v for k, v in more.items()}}.items():
            section, word = key.split('.')
            if section != 'data':
                tree.setdefault(section, {})[word] = value
        with open(f'{self.path}/{name}', 'w', encoding='utf-8') as f:
            json.dump(tree, f)

    def sample(self, *what):
        """What it said, and the hash of the picture."""
        shutil.rmtree(f'{self.path}/out', ignore_errors=True)
        done = self.process([CAIRN, 'sample', *what, '--out=out', *FEW], None)
        if done.returncode:
            return done, None
        with open(f'{self.path}/out/{json.loads(done.stdout)["samples"][0]["file"]}', 'rb') as f:
            return done, hashlib.sha256(f.read()).hexdigest()


HOME = LoraHome()


def same(expected, *ways):
    for what in ways:
        done, got = HOME.sample(*what)
        if not got or got != expected:
            yield f'{what}: {got}, not {expected}: {done.stderr}'


def a_file_of_any_dialect():
    _, want = HOME.sample('run')
    for dialect in 'musubi', 'diffusers':
        HOME.process([CAIRN, 'tensor', 'convert', 'mine.safetensors', f'{dialect}.safetensors', '--lora', dialect], None)
    yield from same(want, ('mine.safetensors', '--config=base.yaml'), ('mine.safetensors', '--config=run'),
                    ('musubi.safetensors', '--config=base.yaml'), ('diffusers.safetensors', '--config=base.yaml'),
                    ('base.yaml', '--lora=mine.safetensors'), ('base.yaml', '--set=lora.path=mine.safetensors'))


def its_strength():
    _, half = HOME.sample('run', '--lora-scale=0.5')
    _, whole = HOME.sample('run')
    _, none = HOME.sample('run', '--no-lora')
    if len({half, whole, none}) != 3:
        yield f'{half} {whole} {none}'
    yield from same(half, ('mine.safetensors:0.5', '--config=base.yaml'), ('mine.safetensors', '--config=base.yaml', '--lora-scale=0.5'))
    yield from same(none, ('base.yaml',), ('mine.safetensors', '--config=base.yaml', '--no-lora'))


def prompts_with_a_strength_of_their_own():
    """Each gets its own, whatever the one before had."""
    hashes = []
    for prompts in (['a stone --f 1 --lm 0.5', 'a stone --f 1', 'a stone --f 1 --lm 0.5'],):
        done = HOME.process([CAIRN, 'sample', 'mine.safetensors', '--config=base.yaml', '--out=many', *FEW[1:],
                             *(f'--prompt={p}' for p in prompts)], None)
        if done.returncode:
            yield done.stderr
            return
        for found in json.loads(done.stdout)['samples']:
            with open(f'{HOME.path}/many/{found["file"]}', 'rb') as f:
                hashes.append(hashlib.sha256(f.read()).hexdigest())
    _, half = HOME.sample('run', '--lora-scale=0.5')
    _, whole = HOME.sample('run')
    if hashes != [half, whole, half]:
        yield f'{hashes}, not {half} and {whole}'


def two_experts():
    """A file for each, or one with both."""
    experts = HOME.experts()
    done = HOME.job('both', train__switch_every=1, train__recipe='ai-toolkit', sample__shift=1, save__files='ai-toolkit', save__name='two', **experts)
    if done.returncode:
        yield done.stderr
        return
    HOME.config('experts.yaml', sample__shift=1, **experts)
    _, want = HOME.sample('both')
    _, base = HOME.sample('experts.yaml')
    tensors = {}
    for expert, number in ('high', 1), ('low', 2):
        shutil.copy(HOME.lora('both', 2, f'lora_{expert}_noise'), f'{HOME.path}/two_{expert}_noise.safetensors')
        for name, tensor in read_tensors(f'{HOME.path}/two_{expert}_noise.safetensors')[0].items():
            tensors[name.replace('diffusion_model.', f'diffusion_model.transformer_{number}.')] = tensor
    write_tensors(f'{HOME.path}/joined.safetensors', tensors)
    files = ('two_high_noise.safetensors', 'two_low_noise.safetensors')
    yield from same(want, (*files, '--config=experts.yaml'), (*reversed(files), '--config=experts.yaml'), ('joined.safetensors', '--config=experts.yaml'),
                    tuple(f'both/{name}' for name in files))
    one = {HOME.sample(file, '--config=experts.yaml')[1] for file in files}
    if len({*one, want, base}) != 4 or None in one:
        yield f'{one}, {want}, {base}'
    for expert in 'a', 'b':
        shutil.copy(f'{HOME.path}/mine.safetensors', f'{HOME.path}/{expert}.safetensors')
    done, _ = HOME.sample('a.safetensors', 'b.safetensors', '--config=experts.yaml')
    if done.returncode != 2 or 'high_noise' not in done.stderr:
        yield done.stderr
    done, _ = HOME.sample('both/two_high_noise.safetensors')
    if done.returncode != 2 or '--config both/config.yaml' not in done.stderr:
        yield done.stderr


def the_job_of_ai_toolkit():
    """Its base, with its own settings of samples."""
    write_model(f'{HOME.path}/wide.safetensors', width=128, layers=1)  # the number of heads follows from the size
    HOME.config('wide.yaml', model__path='wide.safetensors', model__heads=0)
    with open(f'{HOME.path}/toolkit.yaml', 'w', encoding='utf-8') as f:
        f.write('''job: extension
config:
  name: j
  process:
  - type: sd_trainer
    model: {name_or_path: wide.safetensors, arch: wan21}
    network: {type: lora, linear: 4}
    datasets: [{folder_path: media}]
    sample: {sampler: flowmatch, guidance_scale: 5, prompts: [a]}
''')
    sets = [f'--set={k}={v}' for k, v in HOME.encoders().items() if k not in ('model.path', 'model.heads', 'data.path', 'data.resolution')]
    done, want = HOME.sample('wide.yaml', '--cfg=5', '--seed=0', '--set=sample.solver=euler', '--set=sample.shift=3')
    if not want:
        yield done.stderr
    yield from same(want, ('toolkit.yaml', '--set=train.dtype=f32', *sets))


def what_is_not_known():
    with open(f'{HOME.path}/text.yaml', 'w', encoding='utf-8') as f:
        f.write('data: {path: text.txt}\n')
    with open(f'{HOME.path}/bare.yaml', 'w', encoding='utf-8') as f:
        f.write('model: {kind: wan}\n')
    vae = HOME.encoders()['model.vae_path']
    for what, status, words in ((('mine.safetensors',), 2, ('mine.safetensors is a LoRA', '--config')),
                                (('mine.safetensors', 'musubi.safetensors'), 2, ('--config',)),
                                (('none.safetensors', '--config=base.yaml'), 1, ('none.safetensors: No such file',)),
                                (('mine.safetensors', '--config=none.yaml'), 1, ('none.yaml',)),
                                ((vae, '--config=base.yaml'), 1, ('is not the name of a LoRA tensor',)),
                                (('base.yaml', '--config=base.yaml'), 2, ('one configuration',)),
                                (('run', 'run'), 2, ('only one model',)),
                                (('bare.yaml',), 2, ('bare.yaml: model.path is not set',)),
                                (('base.yaml', '--set=model.vae_path='), 2, ('model.vae_path is not set', '--set model.vae_path')),
                                (('mine.safetensors', '--config=base.yaml', '--ema'), 2, ('--ema needs a run',))):
        done, _ = HOME.sample(*what)
        if done.returncode != status or any(word not in done.stderr for word in words) or 'loaded in' in done.stderr:
            yield f'{what}: exit {done.returncode}: {done.stderr}'
    done = HOME.process([CAIRN, 'sample', 'text.yaml'], None)
    if done.returncode != 2 or 'text.yaml: a gpt model is sampled from a run' not in done.stderr:
        yield done.stderr


with HOME:
    tap.run([a_file_of_any_dialect, its_strength, prompts_with_a_strength_of_their_own, two_experts, the_job_of_ai_toolkit, what_is_not_known])
