#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cairn tensor convert --lora, and cairn tensor merge.
. "$(dirname "$0")/lib.sh"

lora=$data/lora

# keys FILE: its tensors' names, sorted.
keys()
{
    python3 - "$1" <<'PYTHON'
import json, struct, sys
with open(sys.argv[1], 'rb') as f:
    header = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
print('\n'.join(sorted(k for k in header if k != '__metadata__')))
PYTHON
}

# zero_base FILE PREFIX: a base of f32 zeros for the two modules whose change is known, and one more tensor.
zero_base()
{
    python3 - "$1" "$2" <<'PYTHON'
import json, struct, sys
shapes = {'blocks.0.self_attn.q.weight': [128, 128], 'blocks.1.ffn.2.weight': [128, 256], 'head.modulation': [1, 2, 8]}
header, at = {}, 0
for name, shape in shapes.items():
    n = 4
    for d in shape:
        n *= d
    header[sys.argv[2] + name] = {'dtype': 'F32', 'shape': shape, 'data_offsets': [at, at + n]}
    at += n
text = json.dumps(header).encode()
with open(sys.argv[1], 'wb') as f:
    f.write(struct.pack('<Q', len(text)) + text + bytes(at))
PYTHON
}

# two_modules FILE: the two modules of the musubi file whose change is known.
two_modules()
{
    python3 - "$lora/musubi.safetensors" "$1" <<'PYTHON'
import json, struct, sys
with open(sys.argv[1], 'rb') as f:
    header = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
    data = f.read()
out, body = {}, b''
for name, t in header.items():
    if name.startswith(('lora_unet_blocks_0_self_attn_q.', 'lora_unet_blocks_1_ffn_2.')):
        piece = data[t['data_offsets'][0]:t['data_offsets'][1]]
        out[name] = dict(t, data_offsets=[len(body), len(body) + len(piece)])
        body += piece
text = json.dumps(out).encode()
with open(sys.argv[2], 'wb') as f:
    f.write(struct.pack('<Q', len(text)) + text + body)
PYTHON
}

# is_delta FILE PREFIX SCALE: the two weights are SCALE times the known change.
is_delta()
{
    python3 - "$1" "$lora/delta.safetensors" "$2" "$3" <<'PYTHON' || fail "the weights are not base + change"
import json, struct, sys
def read(path):
    with open(path, 'rb') as f:
        header = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
        data = f.read()
    header.pop('__metadata__', None)
    return {k: struct.unpack('<%df' % ((t['data_offsets'][1] - t['data_offsets'][0]) // 4),
            data[t['data_offsets'][0]:t['data_offsets'][1]]) for k, t in header.items()}
got, want = read(sys.argv[1]), read(sys.argv[2])
worst = max(abs(a - float(sys.argv[4]) * b) for k in want for a, b in zip(got[sys.argv[3] + k], want[k]))
sys.exit(0 if worst < 1e-6 else 1)
PYTHON
}

rewrites_each_dialect()
{
    for from in musubi comfy_ab diffusers; do
        for to in musubi comfy diffusers; do
            run tensor convert "$lora/$from.safetensors" out.safetensors --lora "$to" --force
            status_is 0
            out_has "20 modules"
            golden=$to
            [ "$to" != comfy ] || golden=comfy_ab
            [ "$(keys out.safetensors)" = "$(keys "$lora/$golden.safetensors")" ] || fail "$from to $to: other names"
        done
    done
}

says_that_alpha_was_folded()
{
    run tensor convert "$lora/musubi.safetensors" folded.safetensors --lora comfy
    out_has "musubi to comfy, alpha folded into 20"
    run tensor convert "$lora/diffusers.safetensors" same.safetensors --lora comfy
    out_lacks "folded"
    run tensor convert "$lora/musubi.safetensors" folded.safetensors --lora diffusers --force --json
    json_is "d['from'] == 'musubi' and d['to'] == 'diffusers' and d['modules'] == 20 and d['alpha_folded'] == 20"
}

keeps_what_is_there_without_force()
{
    echo precious >there.safetensors
    run tensor convert "$lora/musubi.safetensors" there.safetensors --lora comfy
    status_is 2
    err_has "there.safetensors exists"
    run tensor merge "$lora/delta.safetensors" "$lora/musubi.safetensors" there.safetensors
    [ "$(cat there.safetensors)" = precious ] || fail "the old file is gone"
}

refuses_bad_usage()
{
    run tensor convert "$lora/musubi.safetensors" x.safetensors --lora kaya
    status_is 2
    err_has "musubi, comfy or diffusers"
    run tensor merge "$lora/delta.safetensors" "$lora/musubi.safetensors"
    status_is 2
    run tensor merge "$lora/delta.safetensors" "$lora/musubi.safetensors" x.safetensors --scale much
    status_is 2
    err_has "much"
    run tensor merge "$lora/delta.safetensors" "$lora/musubi.safetensors" x.safetensors --dtype i8
    status_is 2
    [ ! -e x.safetensors ] || fail "a file was written"
}

refuses_what_is_no_lora()
{
    run tensor convert "$lora/delta.safetensors" x.safetensors --lora comfy
    status_is 1
    err_has "blocks.0.self_attn.q.weight"
    head -c 5000 "$lora/musubi.safetensors" >cut.safetensors
    run tensor convert cut.safetensors x.safetensors --lora comfy
    status_is 1
    err_has "cut.safetensors"
    : >empty.safetensors
    run tensor merge "$lora/delta.safetensors" empty.safetensors x.safetensors
    status_is 1
    err_has "empty.safetensors"
    run tensor merge "$tmp" "$lora/musubi.safetensors" x.safetensors
    status_is 1
    err_has "directory"
    [ -z "$(ls x.safetensors* 2>/dev/null)" ] || fail "a file was written"
}

merges_into_any_prefix()
{
    two_modules two.safetensors
    for prefix in '' model.diffusion_model. diffusion_model.; do
        zero_base base.safetensors "$prefix"
        run tensor merge base.safetensors two.safetensors merged.safetensors --force
        status_is 0
        out_has "2 modules merged, 2 tensors changed, 1 copied"
        is_delta merged.safetensors "$prefix" 1
    done
}

merges_at_a_scale_in_any_dialect()
{
    two_modules two.safetensors
    zero_base base.safetensors ''
    for dialect in comfy diffusers; do
        run tensor convert two.safetensors "$dialect.safetensors" --lora "$dialect" --force
        run tensor merge base.safetensors "$dialect.safetensors" merged.safetensors --scale -0.5 --force --json
        status_is 0
        json_is "d['schema'] == 1 and d['modules_merged'] == 2 and d['dialect'] == '$dialect' and d['scale'] == -0.5"
        is_delta merged.safetensors '' -0.5
    done
}

# alpha / rank is 1/2: its root would round bf16 values, and halving them does not.
rewrites_16_bits_without_rounding()
{
    two_modules two.safetensors
    zero_base base.safetensors ''
    run tensor convert two.safetensors narrow.safetensors --lora musubi --dtype bf16 --force
    status_is 0
    run tensor merge base.safetensors narrow.safetensors want.safetensors --force
    status_is 0
    for dialect in comfy diffusers; do
        run tensor convert narrow.safetensors "$dialect.safetensors" --lora "$dialect" --force
        status_is 0
        run tensor merge base.safetensors "$dialect.safetensors" merged.safetensors --force
        status_is 0
        cmp -s merged.safetensors want.safetensors || fail "$dialect: the merged model is another"
        run tensor convert "$dialect.safetensors" back.safetensors --lora musubi --force
        status_is 0
        run tensor merge base.safetensors back.safetensors merged.safetensors --force
        cmp -s merged.safetensors want.safetensors || fail "$dialect and back: the merged model is another"
    done
}

# two_experts FILE: the change for much noise, and its negative for little, in one file as ai-toolkit writes it.
two_experts()
{
    two_modules two.safetensors
    run tensor convert two.safetensors comfy.safetensors --lora comfy --force
    python3 - comfy.safetensors "$1" <<'PYTHON'
import json, struct, sys
with open(sys.argv[1], 'rb') as f:
    header = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
    data = f.read()
out, body = {}, b''
for expert, sign in (('transformer_1.', 1), ('transformer_2.', -1)):
    for name, t in header.items():
        if name == '__metadata__':
            continue
        piece = data[t['data_offsets'][0]:t['data_offsets'][1]]
        if '.lora_B.' in name:
            values = struct.unpack('<%df' % (len(piece) // 4), piece)
            piece = struct.pack('<%df' % len(values), *(sign * v for v in values))
        new = name.replace('diffusion_model.', 'diffusion_model.' + expert)
        out[new] = dict(t, data_offsets=[len(body), len(body) + len(piece)])
        body += piece
text = json.dumps(out).encode()
with open(sys.argv[2], 'wb') as f:
    f.write(struct.pack('<Q', len(text)) + text + body)
PYTHON
}

merges_each_expert_of_one_file()
{
    two_experts both.safetensors
    zero_base base.safetensors ''
    run tensor merge base.safetensors both.safetensors refused.safetensors
    status_is 1
    err_has transformer_1
    [ -z "$(ls refused.safetensors* 2>/dev/null)" ] || fail "a file was written"
    for expert in 1 2; do
        run tensor extract both.safetensors one.safetensors --only "*transformer_$expert.*" --force
        status_is 0
        run tensor merge base.safetensors one.safetensors merged.safetensors --force
        status_is 0
        is_delta merged.safetensors '' $((3 - 2 * expert))
    done
}

names_what_the_base_lacks()
{
    zero_base base.safetensors ''
    run tensor merge base.safetensors "$lora/musubi.safetensors" lacking.safetensors
    status_is 1
    err_has "18 of 20 modules"
    err_has "blocks.0.self_attn.k"
    [ -z "$(ls lacking.safetensors* 2>/dev/null)" ] || fail "a file was written"
}

# own_model: a GPT that can do something, in base/.
own_model()
{
    [ ! -e base ] || return 0
    awk 'BEGIN { for (i = 0; i < 700; i++) printf "%s ", substr("stone river path moss", 1 + i * 7 % 15, 6) }' >text.txt
    awk 'BEGIN { for (i = 0; i < 700; i++) printf "%s ", substr("lake bright windy hill", 1 + i * 5 % 15, 6) }' >other.txt
    cat >job.yaml <<'YAML'
data: {path: text.txt}
model: {layers: 2, heads: 2, width: 32, context: 16}
train: {steps: 120, batch: 4, device: cpu, lr: 0.02}
eval: {every: 0}
sample: {every: 0}
checkpoint: {every: 120}
YAML
    run train job.yaml --set run.dir=base
    status_is 0
}

# likeliest RUN-OR-MODEL FILE: the text that it goes on with.
likeliest()
{
    run sample "$1" -d cpu --temperature 0 -p st -n 60
    status_is 0
    cp "$out" "$2"
}

# merged_writes_the_same LORA: the merged model and base and LoRA together write one text, which is not the base's.
merged_writes_the_same()
{
    rm -rf merged
    mkdir merged
    cp base/checkpoints/latest/*.json merged
    run tensor merge base/checkpoints/latest/model.safetensors "$1" merged/model.safetensors --json
    status_is 0
    likeliest base base.txt
    likeliest lora lora.txt
    likeliest merged merged.txt
    ! cmp -s base.txt lora.txt || fail "the LoRA changes nothing, so nothing is shown"
    cmp -s lora.txt merged.txt || fail "the merged model writes another text: $(cat lora.txt merged.txt)"
}

# The matrices of attn.c_proj are square: nothing in their shape tells that the base has them transposed.
merges_cairns_own_lora_into_its_own_model()
{
    own_model
    for targets in '' '*attn.c_proj'; do
        rm -rf lora
        run train job.yaml --set run.dir=lora --set lora.rank=4 --set lora.alpha=16 \
            ${targets:+--set "lora.targets=$targets"} --set model.path=base/checkpoints/latest --set data.path=other.txt
        status_is 0
        merged_writes_the_same lora/checkpoints/latest
        merged_writes_the_same lora/checkpoints/latest/lora.safetensors
        merged_writes_the_same lora
        run tensor merge base/checkpoints/latest/model.safetensors lora/checkpoints/latest x.safetensors --force --json
        json_is "d['adapter_config'] and d['modules_transposed'] == d['modules_merged'] and not d['notes']"
    done
    # Without the configuration the strength is a guess, and is said to be one.
    cp lora/checkpoints/latest/lora.safetensors alone.safetensors
    run tensor merge base/checkpoints/latest/model.safetensors alone.safetensors x.safetensors --force --json
    status_is 0
    json_is "not d['adapter_config'] and d['alpha_guessed'] == 2 and [n['id'] for n in d['notes']] == ['alpha-guessed']"
}

# lora_job RUN OPTION...: trains a LoRA over base/.
lora_job()
{
    rm -rf "$1"
    run train job.yaml --set run.dir="$1" --set model.path=base/checkpoints/latest --set data.path=other.txt "${@:2}"
}

trains_on_from_a_lora()
{
    own_model
    lora_job lora --set lora.rank=4 --set lora.alpha=16 --set train.steps=30 --set checkpoint.every=30
    status_is 0
    # A step that changes nothing: rank and alpha are the file's, and so are the values.
    for from in lora lora/checkpoints/latest lora/checkpoints/latest/adapter_model.safetensors; do
        lora_job again --set lora.path="$from" --set train.steps=1 --set train.lr=1e-12 --set checkpoint.every=1
        status_is 0
        grep -q ' rank: 4 ' again/config.yaml || fail "$from: the rank is not the file's"
        grep -q ' alpha: 16 ' again/config.yaml || fail "$from: alpha is not the file's"
        run tensor diff lora/checkpoints/latest/lora.safetensors again/checkpoints/latest/lora.safetensors --atol 1e-6
        status_is 0
    done
    # What a run began with is not needed to go on or to sample.
    rm -rf lora
    run train again/config.yaml --resume --set train.steps=2
    status_is 0
    run sample again -d cpu -p st -n 5
    status_is 0
}

refuses_to_train_on_from_another_lora()
{
    own_model
    lora_job lora --set lora.rank=4 --set train.steps=1 --set checkpoint.every=1
    status_is 0
    lora_job again --set lora.path=lora --set lora.rank=8
    status_is 1
    err_has lora.rank
    lora_job again --set lora.path=nothing
    status_is 1
    err_has nothing
    lora_job again --set lora.path="$lora/musubi.safetensors"
    status_is 1
    err_has musubi.safetensors
}

# lr 16 times as large for B; 1 is the same as nothing.
has_lora_plus()
{
    own_model
    lora_job plain --set lora.rank=4 --set train.steps=3 --set checkpoint.every=3
    status_is 0
    lora_job one --set lora.rank=4 --set train.steps=3 --set checkpoint.every=3 --set lora.plus=1
    cmp -s {plain,one}/checkpoints/latest/lora.safetensors || fail "a ratio of 1 changes something"
    for optimizer in adamw adamw8 lion adafactor prodigy; do
        lora_job plain --set lora.rank=4 --set train.steps=3 --set checkpoint.every=3 --set train.optimizer="$optimizer"
        status_is 0
        lora_job plus --set lora.rank=4 --set train.steps=3 --set checkpoint.every=3 --set train.optimizer="$optimizer" \
            --set lora.plus=16
        status_is 0
        ! cmp -s {plain,plus}/checkpoints/latest/lora.safetensors || fail "$optimizer: lora.plus changes nothing"
    done
    run train job.yaml --set lora.plus=16 --set run.dir=none
    status_is 2
    err_has lora.plus
}

# peft FOLDER CONFIG: an adapter of the two modules in PEFT's format; rank 16.
peft()
{
    mkdir -p "$1"
    two_modules two.safetensors
    run tensor convert two.safetensors "$1/adapter_model.safetensors" --lora diffusers --force
    echo "$2" >"$1/adapter_config.json"
}

takes_alpha_from_the_configuration()
{
    zero_base base.safetensors ''
    rank=$(python3 - "$lora/musubi.safetensors" <<'PYTHON'
import json, struct, sys
with open(sys.argv[1], 'rb') as f:
    header = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
print(header['lora_unet_blocks_0_self_attn_q.lora_down.weight']['shape'][0])
PYTHON
)
    peft adapter "{\"peft_type\": \"LORA\", \"r\": $rank, \"lora_alpha\": $((3 * rank))}"
    run tensor merge base.safetensors adapter merged.safetensors --force --json
    status_is 0
    json_is "d['adapter_config'] and d['alpha_guessed'] == 0"
    is_delta merged.safetensors '' 3
    # A dialect with alpha gets it, one without has it folded; merged, both are the same.
    for dialect in musubi comfy; do
        run tensor convert adapter "$dialect.safetensors" --lora "$dialect" --force --json
        status_is 0
        json_is "d['adapter_config'] and d['alpha_guessed'] == 0"
        run tensor merge base.safetensors "$dialect.safetensors" merged.safetensors --force
        is_delta merged.safetensors '' 3
    done
    # diffusers keeps the same in the metadata.
    python3 - adapter/adapter_model.safetensors inside.safetensors "$rank" <<'PYTHON'
import json, struct, sys
with open(sys.argv[1], 'rb') as f:
    header = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
    data = f.read()
header['__metadata__'] = {'lora_adapter_metadata': json.dumps({'transformer.r': int(sys.argv[3]), 'transformer.lora_alpha': 5 * int(sys.argv[3])})}
text = json.dumps(header).encode()
with open(sys.argv[2], 'wb') as f:
    f.write(struct.pack('<Q', len(text)) + text + data)
PYTHON
    run tensor merge base.safetensors inside.safetensors merged.safetensors --force --json
    status_is 0
    json_is "d['adapter_config'] and not d['notes']"
    is_delta merged.safetensors '' 5
    # Rewritten, it is folded, and the metadata says so no more.
    run tensor convert inside.safetensors rewritten.safetensors --lora diffusers --force
    status_is 0
    run tensor merge base.safetensors rewritten.safetensors merged.safetensors --force
    is_delta merged.safetensors '' 5
    # A file of another program in the same folder has its own strength.
    two_modules adapter/other.safetensors
    run tensor merge base.safetensors adapter/other.safetensors merged.safetensors --force --json
    status_is 0
    json_is "not d['adapter_config'] and [n['id'] for n in d['notes']] == ['config-ignored']"
    is_delta merged.safetensors '' 1
}

refuses_a_configuration_that_cannot_be()
{
    zero_base base.safetensors ''
    while IFS='|' read -r key config; do
        peft wrong "$config"
        run tensor merge base.safetensors wrong refused.safetensors
        status_is 1
        err_has wrong/adapter_config.json
        err_has "$key"
        [ -z "$(ls refused.safetensors* 2>/dev/null)" ] || fail "a file was written"
    done <<'CASES'
line|{"peft_type": "LORA", "r": 16
"r"|{"peft_type": "LORA", "r": 3, "lora_alpha": 8}
"r"|{"peft_type": "LORA", "r": "16", "lora_alpha": 8}
"lora_alpha"|{"peft_type": "LORA", "lora_alpha": "8"}
"use_rslora"|{"peft_type": "LORA", "lora_alpha": 8, "use_rslora": 1}
"use_dora"|{"peft_type": "LORA", "lora_alpha": 8, "use_dora": true}
"peft_type"|{"peft_type": "IA3"}
"bias"|{"peft_type": "LORA", "lora_alpha": 8, "bias": "some"}
"alpha_pattern"|{"peft_type": "LORA", "lora_alpha": 8, "alpha_pattern": {"(?!q).*": 4}}
"init_lora_weights"|{"peft_type": "LORA", "lora_alpha": 8, "init_lora_weights": "pissa"}
CASES
    mkdir nothing
    run tensor merge base.safetensors nothing refused.safetensors
    status_is 1
    err_has nothing
}

# with_nan FILE: the two modules, one number of which is NaN.
with_nan()
{
    two_modules "$1"
    python3 - "$1" <<'PYTHON'
import json, struct, sys
with open(sys.argv[1], 'r+b') as f:
    n = struct.unpack('<Q', f.read(8))[0]
    t = json.loads(f.read(n))['lora_unet_blocks_0_self_attn_q.lora_up.weight']
    size = {'F32': 4, 'F16': 2, 'BF16': 2}[t['dtype']]
    f.seek(8 + n + t['data_offsets'][0])
    f.write(b'\xff' * size)
PYTHON
}

refuses_to_destroy_a_model()
{
    zero_base base.safetensors ''
    with_nan nan.safetensors
    run tensor merge base.safetensors nan.safetensors destroyed.safetensors
    status_is 1
    err_has lora_unet_blocks_0_self_attn_q.lora_up.weight
    [ -z "$(ls destroyed.safetensors* 2>/dev/null)" ] || fail "a file was written"
    run tensor merge base.safetensors nan.safetensors destroyed.safetensors --allow-nan --json
    status_is 0
    json_is "d['nan_made'] == 128 and d['inf_made'] == 0 and 'made-nonfinite' in [n['id'] for n in d['notes']]"
    run tensor check destroyed.safetensors --json
    status_is 1
    # Rewritten, it is no better, and that is said.
    for dialect in musubi comfy; do
        run tensor convert nan.safetensors still.safetensors --lora "$dialect" --force --json
        status_is 0
        json_is "d['nonfinite'] == 1 and 'nonfinite' in [n['id'] for n in d['notes']]"
    done
    # Too much strength is the same.
    two_modules two.safetensors
    run tensor merge base.safetensors two.safetensors destroyed.safetensors --scale 1e39 --force
    status_is 1
    run tensor merge base.safetensors two.safetensors good.safetensors --json
    json_is "d['nan_made'] == 0 and d['inf_made'] == 0"
}

it rewrites_each_dialect
it says_that_alpha_was_folded
it keeps_what_is_there_without_force
it refuses_bad_usage
it refuses_what_is_no_lora
it merges_into_any_prefix
it merges_at_a_scale_in_any_dialect
it rewrites_16_bits_without_rounding
it merges_each_expert_of_one_file
it names_what_the_base_lacks
it merges_cairns_own_lora_into_its_own_model
it trains_on_from_a_lora
it refuses_to_train_on_from_another_lora
it has_lora_plus
it takes_alpha_from_the_configuration
it refuses_a_configuration_that_cannot_be
it refuses_to_destroy_a_model
finish
