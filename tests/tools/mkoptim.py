# SPDX-License-Identifier: Apache-2.0
"""mkoptim.py OUT.safetensors: steps of Adafactor and Prodigy by those who are the reference for them.

Needs torch, transformers, prodigyopt and safetensors; computes in float64 and keeps f32.  Norms and biases have no
weight decay, as in cairn.
"""
import sys

import prodigyopt
import safetensors.torch
import torch
import transformers
from transformers.optimization import Adafactor

STEPS = 6
SHAPES = {'tall': (40, 7), 'wide': (3, 70), 'vector': (33,)}
ADAFACTOR = {'scale_parameter': False, 'relative_step': False, 'warmup_init': False}
RUNS = {
    'adafactor.a': (Adafactor, 0.1, {**ADAFACTOR, 'lr': 0.01}),
    'adafactor.b': (Adafactor, 0, {**ADAFACTOR, 'lr': None, 'scale_parameter': True, 'relative_step': True}),
    'adafactor.c': (Adafactor, 0.1, {**ADAFACTOR, 'lr': 0.02, 'scale_parameter': True}),
    'prodigy.a': (prodigyopt.Prodigy, 0, {'lr': 1}),
    'prodigy.b': (prodigyopt.Prodigy, 0.1, {'lr': 2, 'betas': (0.8, 0.95), 'use_bias_correction': True,
                                            'safeguard_warmup': True, 'd0': 1e-5, 'd_coef': 2, 'growth_rate': 1.5}),
}


def main():
    torch.manual_seed(20261115)
    out = {}
    for name, shape in SHAPES.items():
        out[f'start.{name}'] = 0.01 * torch.randn(shape)
        direction = torch.randn(shape)
        for step in range(1, STEPS + 1):  # of one mind, so that Prodigy has reason to grow
            out[f'grad.{name}.step{step}'] = direction + 0.3 * torch.randn(shape)
    out['grad.tall.step2'][0] = 0
    for run, (make, decay, options) in RUNS.items():
        params = {name: torch.nn.Parameter(out[f'start.{name}'].double()) for name in SHAPES}
        matrices = [p for p in params.values() if p.dim() > 1]
        vectors = [p for p in params.values() if p.dim() == 1]
        optimizer = make([{'params': matrices, 'weight_decay': decay}, {'params': vectors, 'weight_decay': 0}], **options)
        for step in range(1, STEPS + 1):
            for name, p in params.items():
                p.grad = out[f'grad.{name}.step{step}'].double()
            optimizer.step()
            for name, p in params.items():
                out[f'{run}.{name}.step{step}'] = p.detach().float().clone()
        if 'd' in optimizer.param_groups[0]:
            print(run, 'd', optimizer.param_groups[0]['d'])
    safetensors.torch.save_file(out, sys.argv[1])
    print('torch', torch.__version__, 'transformers', transformers.__version__)


if __name__ == '__main__':
    main()
