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

names_what_the_base_lacks()
{
    zero_base base.safetensors ''
    run tensor merge base.safetensors "$lora/musubi.safetensors" lacking.safetensors
    status_is 1
    err_has "18 of 20 modules"
    err_has "blocks.0.self_attn.k"
    [ -z "$(ls lacking.safetensors* 2>/dev/null)" ] || fail "a file was written"
}

it rewrites_each_dialect
it says_that_alpha_was_folded
it keeps_what_is_there_without_force
it refuses_bad_usage
it refuses_what_is_no_lora
it merges_into_any_prefix
it merges_at_a_scale_in_any_dialect
it names_what_the_base_lacks
finish
