#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cairn plan for jobs whose model, data or machine are not there.
. "$(dirname "$0")/lib.sh"

cat >wan.yaml <<'YAML'
model: { kind: wan, task: t2v-1.3B, quantize: int8 }
data: { size: 64x64x1 }
YAML

a_plan_needs_no_weights_and_no_data()
{
    run plan wan.yaml --json
    status_is 0
    err_is_empty
    json_is '1.4e9 < d["parameters"] < 1.5e9'
    small=$(grep -o '"device_bytes": [0-9]*' "$out" | tail -n 1)
    run plan wan.yaml --json --set data.size=128x64x5
    [ "$small" != "$(grep -o '"device_bytes": [0-9]*' "$out" | tail -n 1)" ] || fail 'the size makes no difference'
    run plan wan.yaml --json --set model.path=/nowhere/wan.safetensors
    status_is 0
    err_has /nowhere/wan.safetensors
    run plan wan.yaml --json --set data.path=/nowhere
    status_is 0
}

# What the names of missing files say counts, as it would if they were there.
missing_files_have_names()
{
    set -- --json --memory 64 --set model.task=t2v-A14B --set model.quantize=none
    run plan wan.yaml "$@"
    json_is '28e9 < d["parameters"] < 29e9'
    run plan wan.yaml "$@" --set model.path=/no/wan2.2_t2v_low_noise_14B_fp8_scaled.safetensors
    json_is '14e9 < d["parameters"] < 15e9 and d["parts"][0]["of"][0]["name"] == "low-noise expert"'
    bf16=$(device_bytes)
    run plan wan.yaml "$@" --set model.path=/no/a.safetensors --set model.high_noise_path=/no/b.safetensors
    json_is '28e9 < d["parameters"] < 29e9'
    run plan wan.yaml "$@" --set model.path=/no/Wan2.2-T2V-A14B --set model.expert=high
    json_is '14e9 < d["parameters"] < 15e9 and d["parts"][0]["of"][0]["name"] == "high-noise expert"'
    cat >fp8.yaml <<'YAML'
model: { kind: wan, task: t2v-A14B, path: /no/wan2.2_t2v_low_noise_14B_fp8_scaled.safetensors }
data: { size: 64x64x1 }
YAML
    run plan fp8.yaml --json --memory 64
    [ "$(device_bytes)" -lt $((bf16 * 2 / 3)) ] || fail 'it is not fp8'
    run plan fp8.yaml --json --memory 64 --set model.task=
    [ "$status" != 0 ] || fail 'it planned'
    err_has model.task
}

training_needs_both()
{
    run train wan.yaml --set run.dir=none
    status_is 2
    err_has model.path
    err_has wan2.1_t2v_1.3B
    run train wan.yaml --set run.dir=none --dry-run
    status_is 2
    err_has model.path
}

sizes_are_checked()
{
    for size in 64 x 64x 64x64x 64x64x1x1 0x64x1 -64x64x1 64x64x1.5 99999x64x1 60x64x1 64x64x2; do
        run plan wan.yaml --set "data.size=$size"
        status_is 2
        err_has data.size
    done
    run plan wan.yaml --json --set data.size=64x64
    status_is 0
    run plan wan.yaml --set data.size=
    status_is 2
    err_has data.path
}

# Caches whose values are all 0, which training refuses: a plan reads their headers alone.
make_caches()
{
    mkdir caches
    python3 - <<'PYTHON'
import json, struct

def write(path, name, shape):
    count = 1
    for n in shape:
        count *= n
    head = json.dumps({name: {'dtype': 'BF16', 'shape': shape, 'data_offsets': [0, 2 * count]}}).encode()
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(head)) + head)
        f.truncate(8 + len(head) + 2 * count)

for stem, frames in (('a', 1), ('b', 3), ('c', 2)):
    write(f'caches/{stem}_00000-009_0064x0064_wan.safetensors', f'latents_{frames}x8x8_bfloat16', [16, frames, 8, 8])
    write(f'caches/{stem}_wan_te.safetensors', 'varlen_t5_bfloat16', [3, 4096])
PYTHON
}

device_bytes()
{
    python3 -c 'import json; print(json.load(open("'"$out"'"))["device_bytes"])'
}

the_largest_cache_counts()
{
    make_caches
    run plan wan.yaml --json --set data.size=64x64x9
    status_is 0
    want=$(device_bytes)
    run plan wan.yaml --json --set data.path=caches
    status_is 0
    [ "$want" = "$(device_bytes)" ] || fail "$(device_bytes) bytes, want $want"
    # The command line comes first.
    run plan wan.yaml --json --set data.path=caches --set data.size=64x64x17
    [ "$want" != "$(device_bytes)" ] || fail 'data.size did not count'
    # Caches of another model.
    run plan wan.yaml --json --set "data.path=$data/cache/t2v"
    status_is 0
    err_has "$data/cache/t2v"
}

# On a machine with or without a GPU: what is planned for is another one.
plans_for_another_machine()
{
    run plan wan.yaml --json --memory 8
    status_is 0
    json_is 'd["storage"] == "bf16" and d["budget_bytes"] == 8 << 30'
    discrete=$(device_bytes)
    run plan wan.yaml --json --memory 1
    json_is 'd["blocks"] == "host" or not d["fits"]'
    run plan wan.yaml --json --gfx gfx1102 --memory 8
    status_is 0
    [ "$discrete" = "$(device_bytes)" ] || fail "$(device_bytes) bytes, want $discrete"
    # RDNA2 trains in f16.
    run plan wan.yaml --json --gfx gfx1102 --memory 8 --set train.device=cpu
    json_is 'd["gfx"] == "gfx1102"'
    run plan wan.yaml --json --root "$data/sysfs/gfx1030-rx6900xt-desktop-kfd-excerpt"
    status_is 0
    json_is 'd["gfx"] == "gfx1030" and d["storage"] == "f16" and 15 << 30 < d["budget_bytes"] <= 16 << 30'
    # Memory that device and host share cannot be offloaded to.
    run plan wan.yaml --json --root "$data/sysfs/gfx1151-strixhalo-aurora-112g-gtt" --memory 1.5
    json_is 'd["blocks"] == "device" and d["budget_bytes"] == 3 << 29'
    run plan wan.yaml --json --root "$data/sysfs/gfx1151-strixhalo-aurora-112g-gtt"
    status_is 0
    json_is '90 << 30 < d["budget_bytes"] < 112 << 30'
    run plan wan.yaml --json --device cpu --memory 8
    status_is 0
    json_is 'd["storage"] == "f32" and d["device"] == "cpu" and d["budget_bytes"] == 8 << 30'
}

the_parts_add_up()
{
    for set in memory.limit=0 memory.blocks=7 memory.inputs=host memory.low_vram=true model.task=t2v-A14B \
        model.task=i2v-14B train.recompute=none lora.experts=one; do
        run plan wan.yaml --json --memory 100 --set "$set"
        status_is 0
        for where in device host; do
            json_is "all(sum(o['${where}_bytes'] for o in p['of']) == p['${where}_bytes'] for p in d['parts'] if 'of' in p)"
            json_is "sum(p['${where}_bytes'] for p in d['parts']) == d['${where}_bytes']"
        done
        json_is '{p["name"] for p in d["parts"] if len(p.get("of", [])) > 1} == {"weights", "activations"}'
        json_is 'd["peak_bytes"] == d["device_bytes"] <= d["budget_bytes"]'
    done
    run plan wan.yaml --json --set model.task=t2v-A14B --memory 100 --gfx gfx1151
    json_is 'd["unified_memory"] and d["peak_bytes"] == d["device_bytes"] + d["host_bytes"]'
}

# The table agrees with plans of the sizes in it.
says_which_sizes_fit()
{
    set -- --json --memory 4 --set model.quantize=none
    run plan wan.yaml "$@" --set data.size=832x480x17
    json_is '{(s["width"], s["height"]) for s in d["sizes"]} >= {(512, 512), (832, 480), (1280, 720)}'
    json_is '{s["frames"] for s in d["sizes"]} == {1, 17, 33, 49, 81}'
    json_is 'all(s["blocks_streamed"] <= 30 * (s["fallbacks"] > 0) for s in d["sizes"])'
    json_is 'len({(s["fits"], s["fallbacks"] > 0) for s in d["sizes"]}) == 3'
    python3 - "$out" >sizes <<'PYTHON'
import json, sys
d = json.load(open(sys.argv[1]))
for s in (s for s in d['sizes'] if s['height'] in (512, 720)):
    print(f'{s["width"]}x{s["height"]}x{s["frames"]}', s['fits'], s['fallbacks'])
m = d['frames_most']
assert (m['width'], m['height']) == (832, 480) and m['frames'] > m['frames_without_fallbacks'] > 0, m
for key, least in (('frames', 0), ('frames_without_fallbacks', 1)):
    print(f'832x480x{m[key]}', True, '0' if least else '-')
    print(f'832x480x{m[key] + 4}', bool(least), '-')
PYTHON
    while read -r size fits fallbacks; do
        run plan wan.yaml "$@" --set "data.size=$size"
        json_is "d['fits'] == $fits"
        [ "$fallbacks" = - ] || json_is "len(d['given_way']) == $fallbacks"
    done <sizes
    [ "$(wc -l <sizes)" -eq 14 ] || fail 'not the sizes that were asked for'
    # A job of another size has a row of its own, and TI2V-5B other ones.
    run plan wan.yaml "$@" --set data.size=320x176x17
    json_is '{(s["width"], s["height"]) for s in d["sizes"]} >= {(512, 512), (320, 176)}'
    run plan wan.yaml "$@" --set model.task=ti2v-5B
    json_is '121 in {s["frames"] for s in d["sizes"]}'
    json_is 'all(s["width"] % 32 == s["height"] % 32 == 0 for s in d["sizes"])'
}

machines_are_checked()
{
    for memory in 0 -1 16GB nan inf ''; do
        run plan wan.yaml --memory "$memory"
        status_is 2
        err_has --memory
    done
    run plan wan.yaml --gfx gfx1201
    status_is 2
    err_has --memory
    run plan wan.yaml --gfx navi --memory 16
    status_is 2
    run plan wan.yaml --root "$data/sysfs/gfx1201-rx9070xt-desktop-drm-only"
    status_is 2
    err_has --memory
    run plan wan.yaml --root "$data/sysfs/gfx1201-rx9070xt-desktop-drm-only" --memory 16
    status_is 0
    run plan wan.yaml --root "$data/sysfs/nokfd-hd7870-radeon-driver" --memory 2
    status_is 3
    run plan wan.yaml --root /nowhere
    [ "$status" != 0 ] || fail 'it planned'
}

it a_plan_needs_no_weights_and_no_data
it missing_files_have_names
it training_needs_both
it sizes_are_checked
it the_largest_cache_counts
it plans_for_another_machine
it machines_are_checked
it the_parts_add_up
it says_which_sizes_fit
finish
