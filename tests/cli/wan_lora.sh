#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# LoRA files of Wan: what training writes in each format, what it starts from, and what merges and converts.
. "$(dirname "$0")/lib.sh"

base=$data/golden/dit/dit21_i2v_clip.weights.safetensors

# caches: two items of an I2V model with 64 features of text and of the image, in data/.
caches()
{
    [ ! -e data ] || return 0
    python3 - <<'PYTHON'
import json, os, struct
def put(path, tensors, meta):
    header, body, seed = {'__metadata__': meta}, b'', len(path)
    for name, shape in tensors.items():
        n = 1
        for d in shape:
            n *= d
        piece = bytearray()
        for _ in range(n):
            seed = (seed * 1664525 + 1013904223) % 2 ** 32
            piece += struct.pack('<f', (seed >> 8) / 2 ** 23 - 1)[2:]
        header[name] = {'dtype': 'BF16', 'shape': shape, 'data_offsets': [len(body), len(body) + len(piece)]}
        body += piece
    text = json.dumps(header).encode()
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + body)
os.mkdir('data')
for i in range(2):
    put(f'data/clip{i}_00000-005_0080x0048_wan.safetensors',
        {'latents_2x6x10_bfloat16': [16, 2, 6, 10], 'latents_image_2x6x10_bfloat16': [20, 2, 6, 10],
         'clip_bfloat16': [257, 64]},
        {'architecture': 'wan', 'width': '80', 'height': '48', 'format_version': '1.0.1'})
    put(f'data/clip{i}_wan_te.safetensors', {'varlen_t5_bfloat16': [5 + i, 64]},
        {'architecture': 'wan', 'caption1': 'a walk', 'format_version': '1.0.1'})
PYTHON
    cat >job.yaml <<YAML
model: {kind: wan, path: $base, heads: 2}
lora: {rank: 4}
data: {path: data}
train: {steps: 4, device: cpu, lr: 0.01, warmup: 0}
eval: {every: 0}
checkpoint: {every: 4}
save: {dtype: f32}
YAML
}

# job RUN OPTION...: trains in a new folder.
job()
{
    caches
    rm -rf "$1"
    run train job.yaml --set run.dir="$1" "${@:2}"
}

# still RUN OPTION...: a step that changes almost nothing.
still()
{
    job "$1" --set train.steps=1 --set train.lr=1e-12 --set checkpoint.every=1 "${@:2}"
}

# header FILE EXPRESSION: what Python says of the header h and the metadata m.
header()
{
    python3 - "$1" "$2" <<'PYTHON' || fail "$1: not so: $2"
import json, struct, sys
with open(sys.argv[1], 'rb') as f:
    h = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
m = h.pop('__metadata__')
sys.exit(0 if eval('(' + sys.argv[2] + ')') else 1)
PYTHON
}

# same_change FILE FILE: merged into the base, both give one model; and it is not the base.
same_change()
{
    for i in 1 2; do
        run tensor merge "$base" "${!i}" "merged-$i.safetensors" --force
        status_is 0
    done
    run tensor diff merged-1.safetensors merged-2.safetensors --atol 1e-6
    status_is 0
    run tensor diff "$base" merged-1.safetensors --atol 1e-3
    status_is 1
}

writes_each_format()
{
    job comfy --set lora.alpha=2
    status_is 0
    header comfy/checkpoints/latest/lora.safetensors "len(h) == 72 and h['diffusion_model.blocks.1.ffn.0.alpha']['shape'] == []
        and h['diffusion_model.blocks.1.ffn.0.lora_A.weight'] and h['diffusion_model.blocks.1.ffn.0.lora_B.weight']"
    job musubi --set lora.alpha=2 --set save.format=musubi --set save.dtype=bf16
    status_is 0
    header musubi/checkpoints/latest/lora.safetensors "len(h) == 72 and h['lora_unet_blocks_0_self_attn_q.alpha']['shape'] == []
        and h['lora_unet_blocks_0_self_attn_q.lora_down.weight']['dtype'] == 'BF16'
        and h['lora_unet_blocks_0_self_attn_q.lora_up.weight']['shape'] == [64, 4]"
    job diffusers --set lora.alpha=2 --set save.format=diffusers
    status_is 0
    header diffusers/checkpoints/latest/lora.safetensors "len(h) == 48
        and h['transformer.blocks.0.attn2.add_k_proj.lora_A.weight']['shape'] == [4, 64]"
    same_change {comfy,diffusers}/checkpoints/latest/lora.safetensors
}

# Nothing of the time, the host or a path: two runs have one file.
has_the_metadata_of_musubi()
{
    job one --set lora.alpha=3 --set lora.plus=4
    status_is 0
    header one/checkpoints/latest/lora.safetensors "m['ss_network_dim'] == '4' and m['ss_network_alpha'] == '3'
        and m['ss_network_module'] == 'networks.lora_wan' and m['ss_base_model_version'] == 'wan' and m['ss_steps'] == '4'
        and json.loads(m['ss_network_args']) == {'loraplus_lr_ratio': '4'} and m['ss_optimizer'] == 'adamw'
        and m['ss_learning_rate'] == '0.01' and m['format'] == 'pt' and m['modelspec.architecture'] == 'wan2.1/lora'"
    job two --set lora.alpha=3 --set lora.plus=4
    cmp -s {one,two}/checkpoints/latest/lora.safetensors || fail "two runs differ"
}

# 3/4 is no power of two, and bf16 rounds: the run itself goes on with what it had.
resumes_with_the_same_bytes()
{
    for format in comfy musubi diffusers; do
        for options in '--set save.dtype=bf16' '--set save.dtype=f16 --set train.dtype=bf16 --set train.master=stochastic'; do
            # shellcheck disable=SC2086
            job whole --set lora.alpha=3 --set save.format="$format" $options --set train.ema=0.5
            status_is 0
            # shellcheck disable=SC2086
            job parts --set lora.alpha=3 --set save.format="$format" $options --set train.ema=0.5 --set checkpoint.every=1 \
                --set train.steps=2 --set train.schedule=constant
            status_is 0
            run train parts/config.yaml --resume --set train.steps=4
            status_is 0
            for file in lora lora-ema; do
                cmp -s {whole,parts}/checkpoints/latest/"$file".safetensors || fail "$format, $options: $file differs"
            done
        done
    done
}

starts_from_each_format()
{
    for format in comfy musubi diffusers; do
        job from --set lora.alpha=3 --set save.format="$format" --set train.ema=0.5
        status_is 0
        for file in lora lora-ema; do
            still again --set lora.path=from/checkpoints/latest/"$file".safetensors --set lora.alpha=5
            status_is 0
            same_change from/checkpoints/latest/"$file".safetensors again/checkpoints/latest/lora.safetensors
        done
    done
}

# A rank of the preset gives way to the file's; a rank that was set does not.
takes_the_rank_of_the_file()
{
    job from --set lora.rank=3 --set lora.alpha=6
    status_is 0
    grep -v '^lora:' job.yaml >no_rank.yaml
    rm -rf again
    run train no_rank.yaml --set run.dir=again --set lora.path=from --set train.steps=1
    status_is 0
    header again/checkpoints/latest/lora.safetensors "m['ss_network_dim'] == '3' and m['ss_network_alpha'] == '6'"
    job again --set lora.path=from --set lora.rank=4
    status_is 1
    err_has lora.rank
    [ ! -e again/checkpoints/latest ] || fail "it was trained"
}

refuses_the_lora_of_another_model()
{
    caches
    job again --set lora.rank=4 --set lora.path="$data/lora/musubi.safetensors"
    status_is 1
    err_has "hidden size 128"
    err_has blocks.0.self_attn.q
    err_lacks "$base" # it was not loaded for nothing
    job again --set lora.rank=4 --set lora.path="$base"
    status_is 1
    err_has dit21_i2v_clip.weights.safetensors
}

warns_of_a_partial_musubi_file()
{
    job some --set 'lora.targets=[self_attn.q]' --set save.format=musubi --set train.steps=1
    status_is 0
    err_has diffusers
    job some --set 'lora.targets=[self_attn.q]' --set train.steps=1
    status_is 0
    err_lacks "musubi format"
}

# expert FILE: a model like an expert of Wan 2.2 I2V: the base without what it has for features of the image.
expert()
{
    python3 - "$base" "$1" <<'PYTHON'
import json, struct, sys
with open(sys.argv[1], 'rb') as f:
    header = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
    data = f.read()
out, body = {}, b''
for name, t in header.items():
    if name == '__metadata__' or 'img' in name:
        continue
    piece = data[t['data_offsets'][0]:t['data_offsets'][1]]
    out[name] = dict(t, data_offsets=[len(body), len(body) + len(piece)])
    body += piece
text = json.dumps(out).encode()
with open(sys.argv[2], 'wb') as f:
    f.write(struct.pack('<Q', len(text)) + text + body)
PYTHON
}

# experts RUN COMMAND OPTION...: the same job or still, with both experts.
experts()
{
    "$2" "$1" --set model.path=low.safetensors --set model.high_noise_path=high.safetensors "${@:3}"
}

# Two experts: files of their own, which start two LoRAs again.
trains_two_experts_from_two_files()
{
    expert low.safetensors
    expert high.safetensors
    local base=low.safetensors latest=from/checkpoints/latest
    experts from job --set train.steps=8 --set checkpoint.every=8
    status_is 0
    for noise in low high; do
        [ -e "$latest"/lora_"$noise"_noise.safetensors ] || fail "no file of the $noise-noise expert"
    done
    experts again still --set lora.path="$latest"/lora_low_noise.safetensors
    status_is 2
    err_has lora.high_noise_path
    experts again still --set lora.path="$latest"/lora_low_noise.safetensors \
        --set lora.high_noise_path="$latest"/lora_high_noise.safetensors
    status_is 0
    for noise in low high; do
        same_change {from,again}/checkpoints/latest/lora_"$noise"_noise.safetensors
    done
    ! cmp -s "$latest"/lora_{low,high}_noise.safetensors || fail "both experts have one LoRA"
    # One LoRA for both has one file.
    experts again still --set lora.experts=one --set lora.path="$latest"/lora_low_noise.safetensors
    status_is 0
    same_change "$latest"/lora_low_noise.safetensors again/checkpoints/latest/lora.safetensors
    experts again still --set lora.experts=one --set lora.path="$latest"/lora_low_noise.safetensors \
        --set lora.high_noise_path="$latest"/lora_high_noise.safetensors
    status_is 2
    experts again still --set lora.high_noise_path="$latest"/lora_high_noise.safetensors
    status_is 2
}

converts_between_all_formats()
{
    job from --set lora.alpha=3 --set save.dtype=bf16
    status_is 0
    for to in musubi comfy diffusers; do
        run tensor convert from/checkpoints/latest/lora.safetensors "$to.safetensors" --lora "$to" --dtype f32 --force
        status_is 0
        same_change from/checkpoints/latest/lora.safetensors "$to.safetensors"
        still again --set lora.path="$to.safetensors" --set lora.alpha=3
        status_is 0
        same_change from/checkpoints/latest/lora.safetensors again/checkpoints/latest/lora.safetensors
    done
}

it writes_each_format
it has_the_metadata_of_musubi
it resumes_with_the_same_bytes
it starts_from_each_format
it takes_the_rank_of_the_file
it refuses_the_lora_of_another_model
it warns_of_a_partial_musubi_file
it trains_two_experts_from_two_files
it converts_between_all_formats
finish
