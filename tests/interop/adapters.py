# SPDX-License-Identifier: Apache-2.0
"""PEFT's adapters merged by cairn: against numpy with Python's own regular expressions, and against PEFT itself."""
import json
import math
import os
import random
import re
import subprocess
import tempfile

import numpy
import safetensors.numpy

import tap

try:
    import peft
    import torch
    import transformers
except ImportError:
    peft = None

CAIRN = os.environ['CAIRN']


def merge(base, lora, out, *options):
    """What `cairn tensor merge --json` says; an error as text."""
    done = subprocess.run([CAIRN, 'tensor', 'merge', base, lora, out, '--force', '--json', *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8')
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


def compare(got, want, what):
    for name, w in want.items():
        if name not in got:
            yield f'{what}: {name} is missing'
        elif got[name].shape != w.shape or not numpy.allclose(got[name], w, rtol=1e-5, atol=1e-6):
            yield f'{what}: {name} differs by {numpy.abs(got[name] - w).max() if got[name].shape == w.shape else got[name].shape}'


# ---- numpy ----

def pattern_value(patterns, module, otherwise):
    """As PEFT's get_pattern_key."""
    for key, value in patterns.items():
        if re.match(rf'(.*\.)?({key})$', module):
            return value
    return otherwise


# What PEFT's users write, and what is easily mistaken.
PATTERNS = ['q', 'attn.q', r'layers\.0\.attn\.q', r'layers.[01].attn.k', r'.*\.(q|v)', '^model.layers.1.attn.v', r'layers\.\d+\.mlp\.up',
            'no', r'(?:attn|mlp)\.(k|down)', r'[a-z]+\.down', 'model.layers.0.attn.k', r'layers\.[0-9]{1,2}\.attn\.v', 'p', r'attn\.[^q]',
            r'\w+\.up', 'layers.1']
MODULES = {f'model.layers.{i}.{name}': shape for i in range(2) for name, shape in
           {'attn.q': (8, 8), 'attn.k': (4, 8), 'attn.v': (4, 8), 'mlp.up': (16, 8), 'mlp.down': (8, 16)}.items()}


def random_adapter(rng, folder):
    config = {'peft_type': 'LORA', 'r': rng.choice([2, 3]), 'lora_alpha': rng.choice([1, 4, 7.5]),
              'use_rslora': rng.random() < 0.5, 'fan_in_fan_out': False,
              'rank_pattern': {p: rng.choice([1, 5]) for p in rng.sample(PATTERNS, rng.randrange(3))},
              'alpha_pattern': {p: rng.choice([2, 9]) for p in rng.sample(PATTERNS, rng.randrange(4))}}
    base, lora, want = {}, {}, {}
    for module, (out, inner) in MODULES.items():
        rank = pattern_value(config['rank_pattern'], module, config['r'])
        alpha = pattern_value(config['alpha_pattern'], module, config['lora_alpha'])
        scale = alpha / (math.sqrt(rank) if config['use_rslora'] else rank)
        draw = numpy.random.default_rng(rng.randrange(2 ** 32)).standard_normal
        w, a, b = (draw(s).astype('float32') for s in ((out, inner), (rank, inner), (out, rank)))
        base[module + '.weight'], want[module + '.weight'] = w, w + scale * (b @ a)
        lora[f'base_model.model.{module}.lora_A.weight'] = a
        lora[f'base_model.model.{module}.lora_B.weight'] = b
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, 'adapter_config.json'), 'w', encoding='utf-8') as f:
        json.dump(config, f)
    safetensors.numpy.save_file(lora, os.path.join(folder, 'adapter_model.safetensors'))
    return base, want, config


def strengths_are_those_of_numpy():
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        path, adapter, out = (os.path.join(folder, n) for n in ('base.safetensors', 'adapter', 'out.safetensors'))
        for _ in range(40):
            base, want, config = random_adapter(rng, adapter)
            safetensors.numpy.save_file(base, path)
            said = merge(path, adapter, out)
            if not isinstance(said, dict):
                yield f'{config}: {said}'
            else:
                yield from compare(safetensors.numpy.load_file(out), want, config)


# ---- PEFT ----

GPT2_TARGETS = ['c_attn', 'c_proj', 'c_fc']
LLAMA_TARGETS = ['q_proj', 'v_proj', 'o_proj', 'down_proj']


def gpt2(**options):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=60, n_positions=16, **options))


def gpt2_square():
    """mlp.c_fc and mlp.c_proj are square too."""
    return gpt2(n_inner=32)


def gpt2_untied():
    """The file has a head of its own."""
    return gpt2(tie_word_embeddings=False)


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        num_hidden_layers=2, num_attention_heads=2, hidden_size=32, intermediate_size=48, vocab_size=60, max_position_embeddings=16,
        attention_bias=True, tie_word_embeddings=False))


PEFT_CASES = {
    'gpt2': (gpt2, dict(r=4, lora_alpha=12, target_modules=GPT2_TARGETS)),
    'gpt2, square only': (gpt2, dict(r=4, lora_alpha=12, target_modules=r'.*attn\.c_proj')),
    'gpt2, all square but one': (gpt2_square, dict(r=4, lora_alpha=12, target_modules=['c_proj', 'c_fc'])),
    'gpt2 and its Linear head': (gpt2_untied, dict(r=4, lora_alpha=12, target_modules=['attn.c_proj', 'lm_head'])),
    'rslora': (gpt2, dict(r=9, lora_alpha=12, use_rslora=True, target_modules=GPT2_TARGETS)),
    'patterns': (gpt2, dict(r=4, lora_alpha=12, target_modules=GPT2_TARGETS, rank_pattern={'c_attn': 2, r'h\.1\.mlp.*': 6},
                            alpha_pattern={r'^transformer.h.\d.attn.c_proj': 5, 'mlp.c_fc': 1.5})),
    'llama': (llama, dict(r=4, lora_alpha=3, target_modules=LLAMA_TARGETS)),
    'llama, square only': (llama, dict(r=4, lora_alpha=3, target_modules=['q_proj', 'o_proj'])),
    'a bias of up': (llama, dict(r=4, lora_alpha=3, lora_bias=True, target_modules=['q_proj', 'k_proj'])),
    'all biases': (gpt2, dict(r=4, lora_alpha=12, bias='all', target_modules=GPT2_TARGETS)),
    'biases of the LoRA': (llama, dict(r=4, lora_alpha=3, bias='lora_only', target_modules=['q_proj', 'v_proj'])),
    'a module to save': (llama, dict(r=4, lora_alpha=3, modules_to_save=['lm_head', 'norm'], target_modules=['q_proj'])),
    'an embedding': (llama, dict(r=4, lora_alpha=3, target_modules=['embed_tokens', 'q_proj'])),
}


def shaken(model):
    """No parameter stays at its first value: B is zero, and biases are those of the base."""
    torch.manual_seed(3)
    for name, p in model.named_parameters():
        if 'lora_' in name or p.requires_grad:
            p.data = p.data + torch.randn_like(p) * 0.3
    return model


def merged_by_both(folder, make, options):
    torch.manual_seed(5)
    base = make()
    base.save_pretrained(os.path.join(folder, 'base'))
    model = shaken(peft.get_peft_model(base, peft.LoraConfig(**options)))
    model.save_pretrained(os.path.join(folder, 'adapter'))
    said = merge(os.path.join(folder, 'base', 'model.safetensors'), os.path.join(folder, 'adapter'), os.path.join(folder, 'out.safetensors'))
    # merge_and_unload does not take the weights over that were saved, so the model is loaded anew.
    again = peft.PeftModel.from_pretrained(type(base).from_pretrained(os.path.join(folder, 'base')), os.path.join(folder, 'adapter'))
    return said, again.merge_and_unload().state_dict()


def merges_as_peft_does():
    if peft is None:
        raise tap.Skip('no peft: ' + (os.environ.get('INTEROP_WITHOUT') or 'INTEROP_PYTHON names a Python without it'))
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for title, (make, options) in PEFT_CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            said, want = merged_by_both(folder, make, options)
            if not isinstance(said, dict):
                yield f'{title}: {said}'
                continue
            if said['alpha_guessed'] or not said['adapter_config']:
                yield f'{title}: {said["notes"]}'
            got = safetensors.numpy.load_file(os.path.join(folder, 'out.safetensors'))
            yield from compare(got, {k: v.numpy() for k, v in want.items() if k in got}, title)


print(f'# peft {peft and peft.__version__}')
tap.run([strengths_are_those_of_numpy, merges_as_peft_does])
