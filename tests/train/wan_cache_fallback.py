# SPDX-License-Identifier: Apache-2.0
"""A text encoder or a VAE that fails or hangs on a GPU computes on the CPU, and the caches become complete."""
import json

import tap
from training import fake
from wanjobs import floats
from wanmedia import MediaHome

GPU = '--device=hip:0', '--hang-after=1'
IN_VAE = 'after=norm_silu:3,'  # the text encoder has no such kernel
FELL_BACK = 'continues on the CPU'
RESTARTED = 'restarting '
CLOSE = 0.03  # bf16 beside f32, of the largest value
SAME = 1e-5   # f32 on the CPU beside the same with other threads


def is_text(name):
    return name.endswith('_te.safetensors')


def differences(home, folder, exact):
    """Findings where the caches are not those of the CPU.  exact: these files were computed on the CPU too."""
    want, got = home.held('cpu'), home.held(folder)
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
    yield from complete(HOME, 'gpu', done, nothing, [('text encoder: hip:0, bf16', 1), ('VAE: hip:0, bf16', 1), (FELL_BACK, 0)])
    if list(differences(HOME, 'gpu', is_text)) == [] or list(differences(HOME, 'gpu', is_latents)) == []:
        yield 'the GPU is as exact as the CPU: the other tests cannot fail'


def the_cpu_is_asked_for():
    done = HOME.cache('cpu-text', *GPU, env=fake(HOME), text_encoder__device='cpu')
    yield from complete(HOME, 'cpu-text', done, is_text, [('text encoder: cpu', 1), ('VAE: hip:0', 1), (FELL_BACK, 0)])
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


def memory_is_short():
    for folder, told, exact, times in ('oom', 'memory=250000', everything, 2), ('oom-text', 'memory=3000000', is_text, 1):
        done = HOME.cache(folder, *GPU, env=fake(HOME, told))
        yield from complete(HOME, folder, done, exact, [(FELL_BACK, times), (RESTARTED, 0)])


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


with HOME:
    tap.run([without_trouble, the_cpu_is_asked_for, a_call_fails, memory_is_short, work_never_ends, a_call_never_returns, the_compiler_fails])
