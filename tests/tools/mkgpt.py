# SPDX-License-Identifier: Apache-2.0
"""mkgpt.py DIR: writes the files of tests/data/gpt: one small GPT as a checkpoint of nanoGPT, compiled, with its
optimizer and tensors that do not lie in one piece (nano.pt), and as Hugging Face stores a GPT-2 (nano.safetensors).

Needs PyTorch and the safetensors package.
"""
import os
import sys

import torch
from safetensors.torch import save_file

torch.manual_seed(2)
VOCAB, CONTEXT, WIDTH, LAYERS, HEADS = 11, 6, 8, 2, 2


def weights():
    """In the layout of torch.nn.Linear, [out, in]."""
    out = {'wte.weight': torch.randn(VOCAB, WIDTH), 'wpe.weight': torch.randn(CONTEXT, WIDTH)}
    for i in range(LAYERS):
        for name, rows, columns in [('attn.c_attn', 3 * WIDTH, WIDTH), ('attn.c_proj', WIDTH, WIDTH),
                                    ('mlp.c_fc', 4 * WIDTH, WIDTH), ('mlp.c_proj', WIDTH, 4 * WIDTH)]:
            out[f'h.{i}.{name}.weight'] = torch.randn(rows, columns)
            out[f'h.{i}.{name}.bias'] = torch.randn(rows)
        for name in ['ln_1', 'ln_2']:
            out[f'h.{i}.{name}.weight'], out[f'h.{i}.{name}.bias'] = torch.randn(WIDTH), torch.randn(WIDTH)
    out['ln_f.weight'], out['ln_f.bias'] = torch.randn(WIDTH), torch.randn(WIDTH)
    return out


def is_matrix(name):
    return name.startswith('h.') and '.ln_' not in name and name.endswith('.weight')


def nano(w):
    """Each c_attn is a transposed view, each c_proj a slice of something wider."""
    model = {}
    for name, t in w.items():
        if 'c_attn.weight' in name:
            t = t.t().contiguous().t()
        elif 'c_proj.weight' in name:
            t = torch.cat([t, t], dim=1)[:, :t.shape[1]]
        model['_orig_mod.transformer.' + name] = t
    model['_orig_mod.lm_head.weight'] = model['_orig_mod.transformer.wte.weight']
    return {'model': model, 'optimizer': {'state': {0: {'step': torch.tensor(3.), 'exp_avg': torch.zeros(2)}}},
            'model_args': {'n_layer': LAYERS, 'n_head': HEADS, 'bias': True, 'dropout': 0.0}, 'iter_num': 3}


def hugging_face(w):
    out = {'transformer.' + name: t.t().contiguous() if is_matrix(name) else t for name, t in w.items()}
    for i in range(LAYERS):
        out[f'transformer.h.{i}.attn.bias'] = torch.ones(1, 1, CONTEXT, CONTEXT, dtype=torch.bool).tril()
        out[f'transformer.h.{i}.attn.masked_bias'] = torch.tensor(-1e4)
    return out


def main(folder):
    w = weights()
    torch.save(nano(w), os.path.join(folder, 'nano.pt'))
    save_file(hugging_face(w), os.path.join(folder, 'nano.safetensors'), {'format': 'pt'})


main(sys.argv[1])
