# SPDX-License-Identifier: Apache-2.0
"""A text encoder or a VAE that fails or hangs on a GPU computes on the CPU, and the caches become complete."""
import json

import tap
from training import fake
from wanjobs import floats, read_tensors, write_tensors
from wanmedia import UMT5, MediaHome

GPU = '--device=hip:0', '--hang-after=1'
IN_VAE = 'after=norm_silu:3,'  # the text encoder has no such kernel
FELL_BACK = 'continues on the CPU'
RESTARTED = 'restarting '
CLOSE = 0.03  # bf16 beside f32, of the largest value
SAME = 1e-5   # f32 on the CPU beside the same with other threads


def is_text(name):
    return name.endswith('_te.safetensors')


def differences(home, folder, exact, other='cpu'):
    """Findings where the caches are not those of the CPU.  exact: these files were computed on the CPU too."""
    want, got = home.held(other), home.held(folder)
    if want.keys() != got.keys() or len(want) != 5:
        yield f'{folder}: {list(got)}'
        return
    for name, tensors in want.items():
        for key, tensor in tensors.items():
            a, b = floats(tensor), floats(got[name][key])
            most = max(abs(v) for v in a)
            far = max(abs(x - y) for x, y in zip(a, b))
            if len(a) != len(b) or far > (SAME if exact(name) else CLOSE) * most:
                yield f'{folder}: {name}: {far} from that of the CPU, of {most}'


def complete(home, folder, done, exact, said=(), counts=None):
    """said: words that stderr has so many times."""
    if done.returncode:
        yield f'{folder}: exit {done.returncode}: {done.stderr}'
        return
    report = json.loads(done.stdout)
    if report['failed'] or report['skipped'] or (counts or [3, 2]) != [report[k]['made'] for k in ('text', 'latents')]:
        yield f'{folder}: {report}'
    for word, times in said:
        if done.stderr.count(word) != times:
            yield f'{folder}: {times} × "{word}" in {done.stderr}'
    yield from differences(home, folder, exact)


def everything(_):
    return True


def is_latents(name):
    return not is_text(name)


def nothing(_):
    return False


HOME = MediaHome()


def without_trouble():
    yield from complete(HOME, 'cpu', HOME.cache('cpu', '--device=cpu'), everything, [('text encoder: cpu, f32', 1), ('VAE: cpu, f32', 1)])
    done = HOME.cache('gpu', *GPU, env=fake(HOME))
    yield from complete(HOME, 'gpu', done, nothing, [('text encoder: hip:0, f16', 1), ('VAE: hip:0, f16', 1), (FELL_BACK, 0)])
    if list(differences(HOME, 'gpu', is_text)) == [] or list(differences(HOME, 'gpu', is_latents)) == []:
        yield 'the GPU is as exact as the CPU: the other tests cannot fail'


def the_cpu_is_asked_for():
    done = HOME.cache('cpu-text', *GPU, env=fake(HOME), text_encoder__device='cpu')
    yield from complete(HOME, 'cpu-text', done, is_text, [('text encoder: cpu', 1), ('VAE: hip:0', 1), (FELL_BACK, 0)])
    done = HOME.cache('cpu-both', '--hang-after=1', '--device=cpu', env=fake(HOME, 'block=hipInit:1'))
    yield from complete(HOME, 'cpu-both', done, everything, [(RESTARTED, 0), (FELL_BACK, 0)])
    done = HOME.cache('cpu-vae', *GPU, env=fake(HOME), vae__device='cpu')
    yield from complete(HOME, 'cpu-vae', done, is_latents, [('text encoder: hip:0', 1), ('VAE: cpu', 1), (FELL_BACK, 0)])


def a_call_fails():
    """A launch; the device stays, or is lost."""
    for code, exact in (1, is_text), (700, everything):
        folder = f'text-{code}'
        done = HOME.cache(folder, *GPU, env=fake(HOME, f'fail=hipModuleLaunchKernel:5:{code}'))
        yield from complete(HOME, folder, done, exact, [(FELL_BACK, 1), ('the text encoder failed', 1)])
        folder = f'vae-{code}'
        done = HOME.cache(folder, *GPU, env=fake(HOME, f'{IN_VAE}fail=hipModuleLaunchKernel:1:{code}'))
        yield from complete(HOME, folder, done, is_latents, [(FELL_BACK, 1), ('the VAE failed', 1)])


def values_exceed_f16():
    """Values of this encoder are beyond f16, which a GPU computes in, and fine in f32."""
    tensors, meta = read_tensors(UMT5)
    name = next(name for name in tensors if name.endswith('block.1.layer.0.SelfAttention.v.weight'))
    dtype, shape, data = tensors[name]
    tensors[name] = dtype, shape, b'\x7f\x47' + data[2:]  # 65280 in bf16
    write_tensors(HOME.path + '/large.safetensors', tensors, meta)
    done = HOME.cache('large', *GPU, env=fake(HOME), model__text_encoder_path=HOME.path + '/large.safetensors')
    if done.returncode or done.stderr.count('the text encoder failed') != 1 or 'layer 1' not in done.stderr:
        yield f'exit {done.returncode}: {done.stderr}'
    HOME.cache('large-cpu', '--device=cpu', model__text_encoder_path=HOME.path + '/large.safetensors')
    yield from differences(HOME, 'large', is_text, 'large-cpu')


def memory_is_short():
    """Each allocation fails; or one does, and less is enough."""
    for folder, told, exact, times in ('oom', 'memory=250000', everything, 2), ('oom-once', 'memory=3000000', nothing, 0):
        done = HOME.cache(folder, *GPU, env=fake(HOME, told))
        yield from complete(HOME, folder, done, exact, [(FELL_BACK, times), (RESTARTED, 0)])


def the_limit_is_kept():
    """Layers come from the file, and frames are divided into tiles.  Nothing moves to the CPU for it."""
    deep = HOME.deep_encoder(12)
    for folder, more in ('deep', {}), ('deep-small', {'memory__limit': 1.2 / 1024}):
        done = HOME.cache(folder, *GPU, env=fake(HOME), model__text_encoder_path=deep, vae__device='cpu', **more)
        if done.returncode or done.stderr.count('from the file') != bool(more) or FELL_BACK in done.stderr:
            yield f'{folder}: exit {done.returncode}: {done.stderr}'
    yield from differences(HOME, 'deep-small', everything, 'deep')
    for folder, more in ('wide', {}), ('wide-small', {'memory__limit': 7 / 1024}):
        done = HOME.cache(folder, '--device=cpu', data__resolution=256, **more)
        if done.returncode or done.stderr.count('tiles of') != bool(more):
            yield f'{folder}: exit {done.returncode}: {done.stderr}'


def work_never_ends():
    done = HOME.cache('hang-text', *GPU, env=fake(HOME, 'hang=hipModuleLaunchKernel:5'))
    yield from complete(HOME, 'hang-text', done, everything, [(FELL_BACK, 1), (RESTARTED, 0)])
    done = HOME.cache('hang-vae', *GPU, env=fake(HOME, IN_VAE + 'hang=hipModuleLaunchKernel:1'))
    yield from complete(HOME, 'hang-vae', done, is_latents, [(FELL_BACK, 1), (RESTARTED, 0)])


def a_call_never_returns():
    """A new process computes this encoder on the CPU, and the other one on the GPU; what was made is kept."""
    done = HOME.cache('block-text', *GPU, env=fake(HOME, 'block=hipModuleLaunchKernel:5,unless=CAIRN_TRAIN_RESTARTS'))
    yield from complete(HOME, 'block-text', done, is_text, [(RESTARTED, 1), ('text encoder: cpu', 1), ('VAE: hip:0', 1)])
    done = HOME.cache('block-vae', *GPU, env=fake(HOME, IN_VAE + 'block=hipModuleLaunchKernel:1'))
    yield from complete(HOME, 'block-vae', done, is_latents, [(RESTARTED, 1), ('text encoder: ', 1), ('VAE: cpu', 1)], [0, 2])


def the_compiler_fails():
    told = {**fake(HOME, 'compile=error'), 'XDG_CACHE_HOME': HOME.path + '/empty'}
    done = HOME.cache('compiler', *GPU, env=told)
    yield from complete(HOME, 'compiler', done, everything, [(FELL_BACK, 2)])


def decoding():
    """cairn decode computes in 16 bits on every chip, in f32 on the CPU, and falls back too."""
    HOME.cache('shown', '--device=cpu')
    pictures = {}
    for name, more, times in (('cpu', {}, 0), ('bf16', fake(HOME), 0), ('f16', {**fake(HOME), 'FAKE_GFX': 'gfx1030'}, 0),
                              ('failed', fake(HOME, 'fail=hipModuleLaunchKernel:5:1'), 1), ('hung', fake(HOME, 'hang=hipModuleLaunchKernel:5'), 1),
                              ('stuck', fake(HOME, 'block=hipModuleLaunchKernel:5'), 0),
                              ('stuck-early', fake(HOME, 'block=hipInit:1'), 0)):
        done = HOME.decode('shown/stone_0016x0016_wan.safetensors', name + '.png', '--hang-after=1',
                           '--device=' + ('hip:0' if more else 'cpu'), env=more)
        if done.returncode or done.stderr.count(FELL_BACK) != times or done.stderr.count(RESTARTED) != name.startswith('stuck'):
            yield f'{name}: exit {done.returncode}: {done.stderr}'
            continue
        with open(f'{HOME.path}/{name}.png', 'rb') as f:
            pictures[name] = f.read()
    for name, picture in pictures.items():
        if (picture == pictures['cpu']) != (name not in ('bf16', 'f16')):
            yield f'{name}: the same pixels as on the CPU: {picture == pictures["cpu"]}'


def train(run, told, **keys):
    more = {key.replace('.', '__'): value for key, value in HOME.encoders().items()}
    return HOME.train(run, '--hang-after=1', env=fake(HOME, told),
                      **{**more, 'cache__dir': 'c-' + run, 'train__device': 'hip:0', 'train__steps': 1, 'train__warmup': 0, **keys})


def trained(run, done, said):
    if done.returncode or [line['step'] for line in HOME.log(run) if 'loss' in line] != [1]:
        yield f'{run}: exit {done.returncode}: {done.stderr}'
    elif HOME.run_json(run)['device'] != 'hip:0':
        yield f'{run}: {HOME.run_json(run)}'
    for word, times in said:
        if done.stderr.count(word) != times:
            yield f'{run}: {times} × "{word}" in {done.stderr}'


def training_goes_on():
    """On the device, where an encoder failed and the device is not lost, with all the memory of the encoder."""
    failed = train('failed', 'fail=hipModuleLaunchKernel:5:1')
    yield from trained('failed', failed, [(FELL_BACK, 1), (RESTARTED, 0), ('VAE: hip:0', 1)])
    cached = train('cached', '', cache__dir='c-failed')
    yield from trained('cached', cached, [('text encoder: ', 0), ('VAE: ', 0)])
    keys = 'mem_allocated_bytes', 'mem_reserved_bytes', 'mem_peak_bytes'
    got, want = ([HOME.log(run)[0][key] for key in keys] for run in ('failed', 'cached'))
    if any(a > 1.01 * b for a, b in zip(got, want)):  # kernels are tried when they are first used
        yield f'{keys}: {got} after encoding, {want} without'


def training_restarts():
    """Where the device is lost, or a call never returns; the caches are kept."""
    lost = train('lost', f'{IN_VAE}fail=hipModuleLaunchKernel:1:700,unless=CAIRN_TRAIN_RESTARTS')
    yield from trained('lost', lost, [(FELL_BACK, 1), (RESTARTED, 1), ('VAE: ', 2), ('text encoder: ', 1)])
    stuck = train('stuck', IN_VAE + 'block=hipModuleLaunchKernel:1')
    yield from trained('stuck', stuck, [(FELL_BACK, 0), (RESTARTED, 1), ('VAE: cpu', 1), ('text encoder: ', 1)])


with HOME:
    tap.run([without_trouble, the_cpu_is_asked_for, a_call_fails, values_exceed_f16, memory_is_short, the_limit_is_kept, work_never_ends, a_call_never_returns,
             the_compiler_fails, decoding,
             training_goes_on, training_restarts])
