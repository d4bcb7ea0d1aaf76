# SPDX-License-Identifier: Apache-2.0
"""LoRA files that `cairn train` wrote, in other programs: safetensors, ComfyUI's key mapping written down here, diffusers with PEFT."""
import os
import subprocess
import sys

import numpy
import safetensors.numpy

import tap

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../train'))
from training import CAIRN  # noqa: E402
from wanjobs import DATA, T2V, WanHome  # noqa: E402

try:
    import diffusers
    import peft  # noqa: F401
    import torch
    from diffusers.loaders import WanLoraLoaderMixin
    from diffusers.loaders.single_file_utils import convert_wan_transformer_to_diffusers
except ImportError:
    diffusers = None

DIALECTS = 'comfy', 'musubi', 'diffusers'
STEPS = 3
KEYS = {'lora__rank': 4, 'lora__alpha': 2, 'train__steps': STEPS, 'train__lr': 1e-2, 'save__dtype': 'f32'}


def trained(home):
    """The same LoRA in each dialect: {dialect: path}."""
    for dialect in DIALECTS:
        done = home.train(dialect, **KEYS, save__format=dialect)
        if done.returncode:
            raise AssertionError(f'{dialect}: {done.stderr}')
    return {dialect: home.lora(dialect, STEPS) for dialect in DIALECTS}


def linears():
    with safetensors.safe_open(T2V, 'numpy') as f:
        return [name[:-len('.weight')] for name in f.keys() if name.startswith('blocks.') and name.endswith('.weight') and len(f.get_slice(name).get_shape()) == 2]


def comfy_names(module):
    """The keys that ComfyUI's loader looks for, of a module of the model."""
    return 'diffusion_model.' + module, 'lora_unet_' + module.replace('.', '_')


def comfy_deltas(tensors):
    """What ComfyUI adds to each module, and the keys that no module asked for."""
    left, deltas = set(tensors), {}
    for module in linears():
        for name in comfy_names(module):
            for up, down in ('.lora_up.weight', '.lora_down.weight'), ('.lora_B.weight', '.lora_A.weight'):
                if name + up in tensors:
                    a, b, alpha = tensors[name + down], tensors[name + up], tensors.get(name + '.alpha')
                    deltas[module] = (1 if alpha is None else float(alpha) / a.shape[0]) * (b.astype('float64') @ a.astype('float64'))
                    left -= {name + up, name + down, name + '.alpha'}
    return deltas, left


def comfyui_finds_every_module():
    with WanHome() as home:
        files = {dialect: safetensors.numpy.load_file(path) for dialect, path in trained(home).items()}
        want, _ = comfy_deltas(files['comfy'])
        for dialect in 'comfy', 'musubi':
            deltas, left = comfy_deltas(files[dialect])
            if deltas.keys() != set(linears()) or len(deltas) != 20 or left:
                yield f'{dialect}: {len(deltas)} modules, left over: {sorted(left)[:4]}'
            for module, delta in deltas.items():
                if not numpy.abs(delta).max() or not numpy.allclose(delta, want[module], rtol=1e-5, atol=1e-9):
                    yield f'{dialect}: {module} differs by {numpy.abs(delta - want[module]).max()}'


def tiny(weights):
    """diffusers' model with the official weights of a file."""
    model = diffusers.WanTransformer3DModel(num_attention_heads=3, attention_head_dim=32, in_channels=16, out_channels=16, text_dim=64, ffn_dim=256,
                                            num_layers=2)
    state = {name: torch.from_numpy(value.astype('float32')) for name, value in weights.items()}
    model.load_state_dict(convert_wan_transformer_to_diffusers(state))
    return model.float().eval()


def floats_of(home, path, name):
    """A file as f32, which numpy can read."""
    out = f'{home.path}/{name}.safetensors'
    subprocess.run([CAIRN, 'tensor', 'convert', path, out, '--dtype', 'f32'], check=True, capture_output=True)
    return safetensors.numpy.load_file(out)


def output(model, io):
    with torch.no_grad():
        return model(torch.from_numpy(io['in.x']), torch.from_numpy(io['in.t']), torch.from_numpy(io['in.context']), return_dict=False)[0].numpy()


def apart(a, b):
    return numpy.abs(a - b).max() / numpy.abs(b).max()


def diffusers_loads_every_dialect():
    """PEFT's layers over the base give what the base does into which cairn merged the LoRA."""
    if diffusers is None:
        raise tap.Skip('no diffusers and peft: ' + (os.environ.get('INTEROP_WITHOUT') or 'INTEROP_PYTHON names a Python without them'))
    with WanHome() as home:
        files, base = trained(home), floats_of(home, T2V, 'base')
        io = floats_of(home, f'{DATA}/dit/dit21_t2v_sq.io.safetensors', 'io')
        plain = output(tiny(base), io)
        if apart(plain, io['out.base']) > 1e-3:
            yield f'the base itself is {apart(plain, io["out.base"])} apart from the golden output'
        merged = f'{home.path}/merged.safetensors'
        subprocess.run([CAIRN, 'tensor', 'merge', T2V, files['comfy'], merged, '--dtype', 'f32'], check=True, capture_output=True)
        want = output(tiny(safetensors.numpy.load_file(merged)), io)
        if apart(plain, want) < 1e-3:
            yield 'the LoRA changes nothing'
        for dialect, path in files.items():
            state = WanLoraLoaderMixin.lora_state_dict(safetensors.torch.load_file(path))
            model = tiny(base)
            model.load_lora_adapter(state, prefix='transformer')
            pairs = sum('lora_A' in name for name, _ in model.named_parameters())
            if pairs != 20 or apart(output(model, io), want) > 1e-4:
                yield f'{dialect}: {pairs} modules, {apart(output(model, io), want)} apart'


if diffusers:
    import safetensors.torch  # noqa: E402
tap.run([comfyui_finds_every_module, diffusers_loads_every_dialect])
