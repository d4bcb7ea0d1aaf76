# SPDX-License-Identifier: Apache-2.0
"""gpt.py GPT-TOOL: models and LoRAs shown to transformers and PEFT and to cairn; both must give the same scores."""
import os
import subprocess
import sys
import tempfile

import tap

try:
    import numpy
    import peft
    import torch
    import transformers
except ImportError as missing:
    print(f'1..0 # SKIP {missing}; {os.environ.get("INTEROP_WITHOUT") or "INTEROP_PYTHON names a Python without it"}')
    sys.exit(0)

TOOL = sys.argv[1]
IDS = [5, 17, 0, 100, 3, 3, 42, 99, 1, 64, 7, 12]
CLOSE = 1e-4
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
torch.manual_seed(3)


def tool(*arguments):
    done = subprocess.run([TOOL, *arguments], input=' '.join(map(str, IDS)).encode(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise RuntimeError(f'{" ".join(arguments)}: {done.stderr.decode(errors="replace")}')
    return done.stdout


def ours(*arguments):
    return numpy.frombuffer(tool('scores', *arguments), dtype=numpy.float32).reshape(len(IDS), -1)


def theirs(model):
    with torch.no_grad():
        return model.eval()(torch.tensor([IDS])).logits[0].float().numpy()


def differ(a, b, what):
    if a.shape != b.shape:
        return [f'{what}: {a.shape} and {b.shape}']
    far = float(numpy.abs(a - b).max())
    if float(numpy.abs(b).max()) < 0.1:
        return [f'{what}: the scores are next to nothing']
    return [f'{what}: scores differ by {far:g}'] if not far <= CLOSE else []


def open_ours(folder, **how):
    model, info = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, **how)
    trouble = {k: v for k, v in info.items() if v}
    return model, [f'{folder}: {trouble}'] if trouble else []


def they_read_a_model_of_ours():
    found = []
    for kind, name in [('gpt2', 'GPT2LMHeadModel'), ('llama', 'LlamaForCausalLM'), ('llama-tied', 'LlamaForCausalLM')]:
        with tempfile.TemporaryDirectory() as folder:
            tool('new', kind, 'f32', folder)
            model, trouble = open_ours(folder)
            found += trouble + differ(ours(folder), theirs(model), kind)
            if type(model).__name__ != name or model.dtype != torch.float32:
                found.append(f'{kind} opens as {type(model).__name__}, {model.dtype}')
    return found


def they_read_bf16_of_ours():
    with tempfile.TemporaryDirectory() as folder:
        tool('new', 'llama', 'bf16', folder)
        model, trouble = open_ours(folder, dtype='auto')
        if model.dtype != torch.bfloat16:
            trouble.append(f'it opens as {model.dtype}')
        return trouble + differ(ours(folder), theirs(model.float()), 'bf16')


def grown(model):
    """With biases and norms that are not zero and one."""
    with torch.no_grad():
        for p in model.parameters():
            p += 0.1 * torch.randn_like(p)
    return model


def their_gpt2():
    return grown(transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=101, n_positions=32, n_embd=48, n_layer=2, n_head=3)))


def their_llama(**more):
    return grown(transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=101, hidden_size=64, intermediate_size=88, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32, **more)))


def their_mistral():
    return grown(transformers.MistralForCausalLM(transformers.MistralConfig(
        vocab_size=101, hidden_size=64, intermediate_size=88, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=1, max_position_embeddings=32, sliding_window=None)))


def we_read_a_model_of_theirs():
    found = []
    for what, model in [('gpt2', their_gpt2()), ('llama', their_llama()), ('mistral', their_mistral()),
                        ('llama tied', their_llama(tie_word_embeddings=True, rms_norm_eps=1e-3))]:
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            found += differ(ours(folder), theirs(model), what)
    return found


def we_read_shards_of_theirs():
    model = their_llama()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, max_shard_size='100KB')
        if not os.path.exists(os.path.join(folder, 'model.safetensors.index.json')):
            return ['it was not written in shards']
        return differ(ours(folder), theirs(model), 'shards')


def we_read_a_torch_file_of_theirs():
    """A state_dict has the tied head too, and here a matrix that does not lie in one piece."""
    model = their_gpt2()
    with tempfile.TemporaryDirectory() as folder:
        state = model.state_dict()
        name = 'transformer.h.0.mlp.c_fc.weight'
        state[name] = state[name].t().contiguous().t()
        torch.save(state, os.path.join(folder, 'pytorch_model.bin'))
        model.config.save_pretrained(folder)
        return differ(ours(folder), theirs(model), 'pytorch_model.bin')


def a_model_of_theirs_through_us_is_theirs_again():
    found = []
    for what, model in [('gpt2', their_gpt2()), ('llama', their_llama())]:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as again:
            model.save_pretrained(folder)
            tool('copy', folder, again)
            back, trouble = open_ours(again)
            found += trouble
            for name, t in model.state_dict().items():
                if not torch.equal(t, back.state_dict()[name]):
                    found.append(f'{what}: {name} differs')
    return found


def peft_reads_a_lora_of_ours():
    found = []
    for kind in ['gpt2', 'llama']:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as adapter:
            tool('new', kind, 'f32', folder)
            tool('lora', folder, adapter)
            plain = theirs(open_ours(folder)[0])
            model = peft.PeftModel.from_pretrained(open_ours(folder)[0], adapter)
            with_lora = theirs(model)
            if numpy.abs(with_lora - plain).max() < 0.01:
                found.append(f'{kind}: the LoRA changes nothing')
            found += differ(ours(folder, adapter), with_lora, kind)
    return found


def we_read_a_lora_of_peft():
    found = []
    for what, model, targets in [
            ('gpt2', their_gpt2(), ['attn.c_attn', 'attn.c_proj', 'mlp.c_fc', 'mlp.c_proj']),
            ('llama', their_llama(), 'all-linear')]:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as adapter:
            model.save_pretrained(folder)
            options = peft.LoraConfig(r=4, lora_alpha=6, target_modules=targets, task_type='CAUSAL_LM',
                                      fan_in_fan_out=what == 'gpt2')
            learned = peft.get_peft_model(model, options)
            with torch.no_grad():
                for name, p in learned.named_parameters():
                    if 'lora_B' in name:
                        p += 0.2 * torch.randn_like(p)
            learned.save_pretrained(adapter)
            found += differ(ours(folder, adapter), theirs(learned), what)
    return found


tap.run([they_read_a_model_of_ours, they_read_bf16_of_ours, we_read_a_model_of_theirs, we_read_shards_of_theirs,
         we_read_a_torch_file_of_theirs, a_model_of_theirs_through_us_is_theirs_again, peft_reads_a_lora_of_ours,
         we_read_a_lora_of_peft])
