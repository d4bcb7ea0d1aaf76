# SPDX-License-Identifier: Apache-2.0
"""The files of a LoRA for Wan: names, formats and metadata of each dialect, and what `cairn tensor` makes of them."""
import glob
import hashlib
import json
import os
import shutil
import struct
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


def names(home, run):
    """The LoRA files in the run's folder itself."""
    return sorted(os.path.basename(path) for path in glob.glob(f'{home.path}/{run}/*safetensors*'))


def hashes_of(path):
    """As the programs compute them that write these two."""
    tensors, meta = read_tensors(path)
    with open(path, 'rb') as f:
        whole = f.read()
    header = json.loads(whole[8:8 + struct.unpack('<Q', whole[:8])[0]])
    body = whole[8 + struct.unpack('<Q', whole[:8])[0]:]
    header['__metadata__'] = {key: value for key, value in meta.items() if key.startswith('ss_')}
    text = json.dumps(header, separators=(',', ':'), ensure_ascii=False).encode()
    text += b' ' * (-len(text) % 8)
    bare = struct.pack('<Q', len(text)) + text + body
    return hashlib.sha256(body).hexdigest(), hashlib.sha256(bare[0x100000:0x110000]).hexdigest()[:8], len(bare)


def hashes():
    """Of a file of more than 1 MiB, with metadata that counts and such that does not, and of a small one."""
    with WanHome() as home:
        big = {**KEYS, 'lora__rank': 96}
        for run, keys in ('small', KEYS), ('big', {**big, 'save__meta': '["ss_training_comment=naïve", "modelspec.author=Ä"]'}):
            done = home.train(run, **{**keys, 'train__steps': 2}, save__dtype='f32')
            _, meta = read_tensors(home.lora(run, 2))
            model, legacy, size = hashes_of(home.lora(run, 2))
            if done.returncode or (meta.get('sshs_model_hash'), meta.get('sshs_legacy_hash')) != (model, legacy):
                yield f'{run}: {meta}, not {model} and {legacy}: {done.stderr}'
            if (size > 0x110000) != (run == 'big'):
                yield f'{run}: {size} bytes show nothing'


LONG = {**KEYS, 'train__steps': 6, 'checkpoint__every': 1, 'checkpoint__keep': 2}


def names_of_both_programs():
    """The newest step files and the last one; each is that of its checkpoint."""
    with WanHome() as home:
        for word, step in ('ai-toolkit', 'job_00000000{}'), ('musubi', 'job-step0000000{}'):
            done = home.train(word, **LONG, save__files=word)
            want = sorted([step.format(4) + '.safetensors', step.format(5) + '.safetensors', 'job.safetensors'])
            if done.returncode or names(home, word) != want:
                yield f'{word}: {names(home, word)}: {done.stderr}'
                continue
            if not os.path.samefile(f'{home.path}/{word}/job.safetensors', home.lora(word, 6)):
                yield f'{word}: the last file is not that of the last step'
            steps = [read_tensors(f'{home.path}/{word}/{name}')[1] for name in want]
            found = sorted(int(m.get('ss_steps') or json.loads(m['training_info'])['step']) for m in steps)
            if found != [4, 5, 6]:
                yield f'{word}: files of the steps {found}'
        home.train('none', **LONG)
        if names(home, 'none'):
            yield f'none: {names(home, "none")}'


def a_name_of_its_own():
    with WanHome() as home:
        done = home.train('run', **KEYS, save__files='ai-toolkit', save__name='my lora')
        if done.returncode or names(home, 'run') != ['my lora.safetensors']:
            yield f'{names(home, "run")}: {done.stderr}'
        for bad in 'a/b', '.hidden':
            done = home.train('bad', **KEYS, save__files='ai-toolkit', save__name=bad)
            if done.returncode != 2:
                yield f'{bad}: exit {done.returncode}'


def epochs_of_musubi():
    """The tiny caches have few batches: some steps end an epoch, and only these are saved."""
    with WanHome() as home:
        done = home.train('run', **{**KEYS, 'train__steps': 9}, save__files='musubi', save__epochs=1, checkpoint__every=0, checkpoint__keep=0)
        _, meta = read_tensors(f'{home.path}/run/job.safetensors')
        per, found = int(meta['ss_num_batches_per_epoch']), names(home, 'run')
        want = [f'job-{n:06d}.safetensors' for n in range(1, 9 // per + 1) if n * per < 9] + ['job.safetensors']
        if done.returncode or per >= 9 or found != sorted(want):
            yield f'{per} batches: {found}: {done.stderr}'
        steps = [int(read_tensors(f'{home.path}/run/{name}')[1]['ss_steps']) for name in found[:-1]]
        if steps != [per * (i + 1) for i in range(len(steps))]:
            yield f'steps {steps}'


def two_experts():
    """Two files for each step, which rotate together; or one file for both, which loads back."""
    with WanHome() as home:
        keys = {**LONG, **home.experts(), 'save__files': 'ai-toolkit'}
        done = home.train('two', **keys)
        want = [f'job{step}_{side}_noise.safetensors' for step in ('_000000004', '_000000005', '') for side in ('high', 'low')]
        if done.returncode or names(home, 'two') != sorted(want):
            yield f'two: {names(home, "two")}: {done.stderr}'
        done = home.train('one', **keys, save__split='false', train__ema=0.5)
        tensors, _ = read_tensors(home.lora('one', 6))
        sides = {name.split('.')[1] for name in tensors}
        if done.returncode or names(home, 'one') != ['job.safetensors', 'job_000000004.safetensors', 'job_000000005.safetensors'] \
                or sides != {'transformer_1', 'transformer_2'} or len(tensors) != 2 * 3 * MODULES:
            yield f'one: {names(home, "one")}, {sides}, {len(tensors)}: {done.stderr}'
        high, low = (read_tensors(home.lora('two', 6, name))[0] for name in ('lora_high_noise', 'lora_low_noise'))
        for number, alone in (1, high), (2, low):
            prefix = f'diffusion_model.transformer_{number}.'
            joined = {name.replace(prefix, 'diffusion_model.'): t for name, t in tensors.items() if name.startswith(prefix)}
            if joined != alone:
                yield f'transformer_{number} is not the LoRA of its expert'
        if not os.path.samefile(f'{home.path}/one/job.safetensors', home.lora('one', 6, 'lora-ema')):
            yield 'the file is not the moving average'
        again = home.train('again', **{**keys, 'train__steps': 2}, lora__path=home.lora('one', 6))
        if again.returncode:
            yield f'cannot start from it: {again.stderr}'
        for wrong in 'musubi', 'diffusers':
            done = home.train('wrong', **keys, save__split='false', save__format=wrong)
            if done.returncode != 2:
                yield f'{wrong}: exit {done.returncode}'


def one_expert():
    with WanHome() as home:
        experts = home.experts()
        done = home.train('run', **KEYS, model__path=experts['model__path'], model__task='t2v-A14B', model__expert='low', save__files='ai-toolkit')
        if done.returncode or names(home, 'run') != ['job_low_noise.safetensors']:
            yield f'{names(home, "run")}: {done.stderr}'


def resumed():
    """A run that goes on has each file once; what a killed process did not put in place is put there."""
    with WanHome() as home:
        keys = {**LONG, 'checkpoint__keep': 0, 'save__files': 'ai-toolkit', 'train__schedule': 'constant'}
        home.train('whole', **keys)
        home.train('run', **{**keys, 'train__steps': 3})
        before = names(home, 'run')
        os.remove(f'{home.path}/run/job_000000002.safetensors')
        os.remove(f'{home.path}/run/job.safetensors')
        shutil.rmtree(home.checkpoint('run', 3))
        done = home.train('run', '--resume', **keys)
        if done.returncode or names(home, 'run') != names(home, 'whole') or len(names(home, 'whole')) != 6:
            yield f'{before}, then {names(home, "run")}, not {names(home, "whole")}: {done.stderr}'
        for name in names(home, 'whole'):
            if read_tensors(f'{home.path}/run/{name}') != read_tensors(f'{home.path}/whole/{name}'):
                yield f'{name} differs'
        home.train('run', '--resume', **{**keys, 'train__steps': 7})
        if 'job_000000006.safetensors' not in names(home, 'run') or 'job.safetensors' not in names(home, 'run'):
            yield f'extended: {names(home, "run")}'


def files_are_replaced():
    with WanHome() as home:
        home.train('linked', **LONG, save__files='musubi')
        os.remove(f'{home.path}/linked/job.safetensors')
        shutil.copyfile(home.lora('linked', 6), f'{home.path}/linked/job.safetensors')
        done = home.train('linked', '--resume', **{**LONG, 'train__steps': 7}, save__files='musubi')
        if done.returncode or not os.path.samefile(f'{home.path}/linked/job.safetensors', home.lora('linked', 7)):
            yield f'a file of that name was not replaced: {done.stderr}'


def metadata_of_musubi():
    """All that is known, and nothing that is not; times and names only with save.files."""
    times = {'ss_training_started_at', 'ss_training_finished_at', 'ss_session_id', 'modelspec.date', 'ss_output_name', 'modelspec.title', 'ss_sd_model_name'}
    with WanHome() as home:
        home.train('run', **KEYS, save__files='musubi', save__meta='["ss_training_comment=a, b = c", "modelspec.author=me"]')
        tensors, meta = read_tensors(home.lora('run', STEPS))
        want = {'ss_output_name': 'job', 'modelspec.title': 'job', 'ss_base_model_version': 'wan', 'ss_network_dim': str(RANK), 'ss_steps': str(STEPS),
                'modelspec.architecture': 'wan2.1/lora', 'ss_sd_model_name': os.path.basename(T2V), 'ss_training_comment': 'a, b = c',
                'modelspec.author': 'me', 'format': 'pt', 'ss_max_train_steps': str(STEPS)}
        wrong = {key: meta.get(key) for key in want if meta.get(key) != want[key]}
        missing = times - meta.keys()
        empty = [key for key, value in meta.items() if not value or value == 'None']
        if wrong or missing or empty or not float(meta['ss_training_started_at']) <= float(meta['ss_training_finished_at']):
            yield f'{wrong}, {missing}, {empty}: {meta}'
        if not all(name.startswith('lora_unet_') for name in tensors):
            yield f'not the names of musubi-tuner: {list(tensors)[:2]}'
        home.train('plain', **KEYS)
        with_times = times & read_tensors(home.lora('plain', STEPS))[1].keys()
        if with_times:
            yield f'{with_times} without save.files'


def metadata_of_ai_toolkit():
    with WanHome() as home:
        home.train('run', **{**KEYS, 'lora__alpha': RANK}, save__files='ai-toolkit', data__trigger='ohwx', save__meta='[version=1.0]')
        tensors, meta = read_tensors(home.lora('run', STEPS))
        want = {'name': 'job', 'ss_output_name': 'job', 'version': '1.0', 'ss_base_model_version': 'wan_2.1', 'format': 'pt'}
        wrong = {key: meta.get(key) for key in want if meta.get(key) != want[key]}
        known = {*want, 'training_info', 'software', 'ss_tag_frequency', 'sshs_model_hash', 'sshs_legacy_hash'}
        if wrong or meta.keys() != known:
            yield f'{wrong}: {meta}'
        info, tags, software = (json.loads(meta[key]) for key in ('training_info', 'ss_tag_frequency', 'software'))
        if info.get('step') != STEPS or 'epoch' not in info or tags != {'1_ohwx': {'ohwx': 1}} or software.get('name') != 'cairn':
            yield f'{info}, {tags}, {software}'
        if [name for name in tensors if name.endswith('alpha')]:
            yield 'alpha is the rank, which needs no tensor'
        home.train('scaled', **KEYS, save__files='ai-toolkit')
        if not [name for name in read_tensors(home.lora('scaled', STEPS))[0] if name.endswith('alpha')]:
            yield 'an alpha that is not the rank is lost'


def the_end_names_the_files_to_use():
    """The last line says which file ComfyUI or diffusers takes; that file is there."""
    with WanHome() as home:
        rows = (('plain', {}, ['plain/checkpoints/latest/lora.safetensors'], 'ComfyUI'),
                ('diffusers', {'save__format': 'diffusers'}, ['diffusers/checkpoints/latest/lora.safetensors'], 'diffusers'),
                ('named', {'save__files': 'ai-toolkit', 'save__name': 'cat'}, ['named/cat.safetensors'], 'ComfyUI'),
                ('musubi', {'save__files': 'musubi', 'save__name': 'cat', **home.experts()},
                 ['musubi/cat_low_noise.safetensors', 'musubi/cat_high_noise.safetensors'], 'ComfyUI'),
                ('joined', {'save__split': 'false', **home.experts()}, ['joined/checkpoints/latest/lora.safetensors'], 'ComfyUI'))
        for run, keys, files, program in rows:
            said = home.train(run, **KEYS, **keys).stderr
            last = said.strip().splitlines()[-1]
            if not last.startswith('to use it: ') or program not in last or ' and '.join(files) not in last:
                yield f'{run}: {last}'
            yield from (f'{run}: no {file}' for file in files if not os.path.exists(f'{home.path}/{file}'))


tap.run([every_dialect_has_the_same_delta, converted_and_merged, a_merged_base_has_the_loss_of_the_lora, number_formats, metadata,
         files_of_the_experts, hashes, names_of_both_programs, a_name_of_its_own, epochs_of_musubi, two_experts, one_expert, resumed,
         files_are_replaced, metadata_of_musubi, metadata_of_ai_toolkit, the_end_names_the_files_to_use])
