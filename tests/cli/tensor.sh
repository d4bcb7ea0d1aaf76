#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cairn tensor ls, check, diff and extract: what they say about whole files, and about broken ones.
. "$(dirname "$0")/lib.sh"

# make FILE PYTHON: writes a safetensors file from a list of (name, dtype, shape, bytes).  `f32` and `bf16` pack
# numbers, `bell(n)` is n numbers like those of a weight.
make()
{
    python3 - "$1" "$2" <<'PYTHON'
import json, random, struct, sys
pack, r = struct.pack, random.Random(1)
bell = lambda n: [r.gauss(0, 1) for _ in range(n)]
f32 = lambda v: pack(f'<{len(v)}f', *v)
bf16 = lambda v: b''.join(pack('<f', x)[2:] for x in v)
header, data = {'__metadata__': {'author': 'é', 'step': '7'}}, b''
for name, dtype, shape, raw in eval(sys.argv[2]):
    header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [len(data), len(data) + len(raw)]}
    data += raw
text = json.dumps(header).encode()
open(sys.argv[1], 'wb').write(pack('<Q', len(text)) + text + data)
PYTHON
}

two='[("a.weight", "F32", [4, 64], f32(bell(256))), ("b", "BF16", [3], bf16([1, -2, 0.5]))]'

# shards NAME: NAME.safetensors.index.json over two files.
shards()
{
    make "$1-1.safetensors" '[("x", "F32", [2], f32([1, 2]))]'
    make "$1-2.safetensors" '[("y", "F32", [3], f32([1, 2, 3]))]'
    echo "{\"metadata\": {}, \"weight_map\": {\"x\": \"$1-1.safetensors\", \"y\": \"$1-2.safetensors\"}}" \
        >"$1.safetensors.index.json"
}

one_line_error()
{
    status_is 1
    out_is_empty
    [ "$(wc -l <"$err")" = 1 ] || fail 'not one line'
}

lists_a_file()
{
    make two.st "$two"
    run tensor ls two.st
    status_is 0
    err_is_empty
    out_has 'a.weight F32       [4, 64]                  1 KiB'
    out_has '2 tensors, 259 values, 1 KiB (1030 bytes); 2 metadata entries'
    out_lacks author
    run tensor ls two.st --verbose
    out_has 'author = é'
    run tensor ls --only 'b*' two.st
    out_lacks a.weight
    out_has '1 tensor, 3 values'
}

lists_as_json()
{
    make two.st "$two"
    run tensor ls two.st --json
    status_is 0
    json_is 'd["schema"] == 1 and d["format"] == "safetensors" and d["data_bytes"] == 1030 and d["tensor_count"] == 2'
    json_is 'd["metadata"] == {"author": "é", "step": "7"}'
    json_is '([(t["name"], t["dtype"], t["shape"], t["bytes"]) for t in d["tensors"]] ==
        [("a.weight", "F32", [4, 64], 1024), ("b", "BF16", [3], 6)])'
    json_is 'd["tensors"][1]["offset_bytes"] - d["tensors"][0]["offset_bytes"] == 1024'
}

lists_shards_and_torch_files()
{
    shards model
    run tensor ls model.safetensors.index.json
    status_is 0
    out_has '2 tensors, 5 values, 20 B (20 bytes) in 2 files'
    run tensor ls "$data/torch/model.pth" --json
    status_is 0
    json_is 'd["format"] == "torch" and d["tensor_count"] > 1'
    run tensor ls "$data/torch/function.pth"
    status_is 1
    out_is_empty
    err_has 'posix.system'
}

a_terminal_does_not_obey_a_name()
{
    make evil.st '[("a\x1b[31mred", "F32", [1], f32([1])), ("b", "\x1b[2J", [1], b"abcd")]'
    for command in "ls evil.st" "check evil.st --verbose" "diff evil.st $data/cache/i2v/clip_wan_te.safetensors"; do
        # shellcheck disable=SC2086 # words
        run tensor $command
        ! grep -q "$(printf '\033')" "$out" "$err" || fail 'an escape came through'
    done
    out_has 'a?[31mred'
}

broken_files_are_refused_in_one_line()
{
    make two.st "$two"
    head -c 900 two.st >cut.st
    : >empty.st
    head -c 5 two.st >five.st
    mkdir folder.st
    mkfifo pipe.st
    printf '\377\377\377\377\377\377\377\377{}' >huge.st
    printf 'GGUF\3\0\0\0\1\0\0\0' >model.gguf
    for file in cut.st empty.st five.st folder.st pipe.st huge.st model.gguf nothing.st; do
        run tensor ls "$file"
        one_line_error
        err_has "$file"
        run tensor diff two.st "$file"
        one_line_error
        run tensor extract "$file" new.st --only '*'
        one_line_error
        [ ! -e new.st ] || fail "wrote new.st"
    done
}

healthy_files_are_healthy()
{
    make two.st "$two"
    run tensor check two.st
    status_is 0
    err_is_empty
    out_has 'ok          two.st  (2 tensors, 1 KiB)'
    run tensor check "$data/cache" "$data/lora" "$data/torch/model.pth"
    status_is 0
    err_is_empty
    out_has 'checked: 0 damaged,'
    run tensor check "$data/cache/t2v" --json
    json_is 'd["damaged"] == 0 and d["healthy"] == d["checked"] == len(d["files"]) == 7'
    json_is 'all(0.5 < t["std"] < 2 and t["zero"] == 0 for f in d["files"] for t in f["tensors"])'
}

damaged_files_are_told_with_a_remedy()
{
    mkdir -p cache/deep
    cp "$data"/cache/t2v/* cache
    make cache/deep/zero_0512x0512_wan.safetensors '[("latents_1x8x8_bfloat16", "BF16", [16, 1, 8, 8], bytes(2048))]'
    make cache/nan.safetensors '[("w", "F32", [4], f32([1, 2, float("nan"), 3]))]'
    make cache/inf.safetensors '[("w", "F32", [4], f32([1, 2, float("inf"), 3]))]'
    head -c 2000 cache/deep/zero_0512x0512_wan.safetensors >cache/cut_wan.safetensors
    run tensor check cache
    status_is 1
    err_is_empty
    out_has 'all-zero    cache/deep/zero_0512x0512_wan.safetensors'
    out_has 'latents_1x8x8_bfloat16: all 1024 values are zero'
    out_has 'to do: re-encode this cache file'
    out_has 'has-nan     cache/nan.safetensors'
    out_has 'w: 1 of 4 values is NaN'
    out_has 'has-inf     cache/inf.safetensors'
    out_has 'truncated   cache/cut_wan.safetensors'
    out_has '11 files checked: 4 damaged, 7 healthy'
    out_lacks still_1
    run tensor check cache --json
    status_is 1
    json_is '{f["path"]: f["verdict"] for f in d["files"] if f["damaged"]} == {
        "cache/deep/zero_0512x0512_wan.safetensors": "all-zero", "cache/nan.safetensors": "has-nan",
        "cache/inf.safetensors": "has-inf", "cache/cut_wan.safetensors": "truncated"}'
    json_is 'all((f["todo"] is not None) == f["damaged"] for f in d["files"])'
}

what_may_be_zero_is_not_damage()
{
    make lora.st '[("x.lora_up.weight", "F32", [8, 8], bytes(256)), ("x.lora_down.weight", "F32", [8, 8], f32(bell(64)))]'
    run tensor check lora.st --verbose
    status_is 0
    out_has 'all-zero    x.lora_up.weight'
    make model.st '[("a.weight", "F32", [8, 8], f32(bell(64))), ("a.bias", "F32", [64], bytes(256)),
        ("n", "I64", [2], bytes(16)), ("scaled_fp8", "F8_E4M3", [0], b"")]'
    run tensor check model.st
    status_is 0
}

statistics_are_right()
{
    make stats.st '[("w", "F32", [8], f32([-4, -2, 0, 1, 2, 3, float("inf"), float("nan")]))]'
    run tensor check stats.st --json
    status_is 1
    json_is '([d["files"][0]["tensors"][0][k] for k in ("min", "max", "mean", "absmax", "zero", "nan", "inf", "subnormal")]
        == [-4, 3, 0, 4, 1, 1, 1, 0])'
    make none.st '[("w", "F32", [2], f32([float("nan")] * 2))]'
    run tensor check none.st --json
    json_is 'd["files"][0]["tensors"][0]["min"] is None and d["files"][0]["tensors"][0]["nan"] == 2'
}

threads_do_not_change_what_is_said()
{
    make two.st "$two"
    run tensor check --json two.st "$data/cache" --threads 1
    cp "$out" first
    run tensor check --json two.st "$data/cache" --threads 7
    cmp -s first "$out" || fail 'differs'
}

a_missing_shard_is_damage()
{
    mkdir sharded
    cd sharded || exit
    shards model
    cd ..
    run tensor check sharded
    status_is 0
    out_has '3 files checked: 0 damaged'
    rm sharded/model-2.safetensors
    run tensor check sharded
    status_is 1
    out_has 'unreadable  sharded/model.safetensors.index.json'
    out_has model-2.safetensors
}

nothing_to_check_is_not_success()
{
    mkdir bare
    run tensor check bare
    one_line_error
    err_has 'no tensor files'
    run tensor check no-such.safetensors
    status_is 1
    out_has 'unreadable  no-such.safetensors'
    run tensor check
    status_is 2
}

files_that_are_equal()
{
    make two.st "$two"
    cp two.st copy.st
    run tensor diff two.st copy.st
    status_is 0
    err_is_empty
    out_has '2 tensors are the same, 0 differ, 0 only in the first, 0 only in the second'
    run tensor diff "$data/torch/model.pth" "$data/torch/model.safetensors"
    status_is 0
}

files_that_differ()
{
    make a.st '[("same", "F32", [2], f32([1, 2])), ("v", "F32", [2, 3], f32([1, 2, 3, 4, 5, 6])), ("t", "F32", [2], f32([1, 2])),
        ("s", "F32", [2], f32([1, 2])), ("gone", "F32", [1], f32([1]))]'
    make b.st '[("same", "F32", [2], f32([1, 2])), ("v", "F32", [2, 3], f32([1, 2.5, 3, 4, 5, 9])), ("t", "BF16", [2], bf16([1, 2])),
        ("s", "F32", [1, 2], f32([1, 2])), ("new", "F32", [1], f32([1]))]'
    run tensor diff a.st b.st
    status_is 1
    err_is_empty
    out_has '- gone F32 [1]'
    out_has '+ new F32 [1]'
    out_has '2 of 6 values differ'
    out_has 'first at [0, 1]: 2, 2.5 (by 0.5)'
    out_has 'worst at [1, 2]: 6, 9 (by 3)'
    out_has 'dtype F32, BF16'
    out_has 'shape [2], [1, 2]'
    out_has '1 tensor is the same, 3 differ, 1 only in the first, 1 only in the second'
    run tensor diff a.st b.st --json
    status_is 1
    json_is 'd["same"] is False and d["only_in_a"] == ["gone"] and d["only_in_b"] == ["new"]'
    json_is '([t["name"] for t in d["differ"]] == ["v", "t", "s"] and d["differ"][0]["worst"] ==
        {"index": [1, 2], "a": 6, "b": 9, "difference": 3} and d["differ"][2]["differing"] is None)'
    run tensor diff a.st b.st --only v --atol 3
    status_is 0
    run tensor diff a.st b.st --only t
    status_is 1
    run tensor diff a.st b.st --only t --ignore-dtype
    status_is 0
    run tensor diff a.st b.st --atol=-1
    status_is 2
}

metadata_differs_when_asked()
{
    make two.st "$two"
    sed 's/"step": "7"/"step": "8"/' two.st >other.st
    run tensor diff two.st other.st
    status_is 0
    run tensor diff two.st other.st --metadata
    status_is 1
    out_has '~ metadata step'
}

extracts_bit_for_bit()
{
    make two.st "$two"
    run tensor extract two.st part.st --only 'a.*'
    status_is 0
    err_is_empty
    out_has 'part.st: 1 tensor, '
    run tensor diff two.st part.st --only 'a.*' --metadata
    status_is 0
    run tensor ls part.st --json
    json_is 'd["tensor_count"] == 1'
    run tensor extract two.st part.st --only b
    status_is 2
    err_has 'part.st exists'
    run tensor extract two.st part.st --only b --force --json
    status_is 0
    json_is 'd["tensors"] == 1 and d["dropped"] == 1'
    run tensor extract two.st part.st --only 'no*' --force
    one_line_error
    err_has '"no*"'
    run tensor extract two.st other.st
    status_is 2
    err_has '--only GLOB'
    [ -z "$(find . -name '*.tmp')" ] || fail 'a temporary file is left'
}

extracts_in_place()
{
    make two.st "$two"
    cp two.st before.st
    run tensor extract two.st two.st --only 'a.*' --force
    status_is 0
    run tensor diff before.st two.st --only 'a.*'
    status_is 0
}

torch_files_become_safetensors()
{
    run tensor extract "$data/torch/views.pth" views.st --only '*'
    status_is 0
    run tensor diff views.st "$data/torch/views.safetensors"
    status_is 0
}

wrong_usage_is_named()
{
    run tensor
    status_is 2
    err_has 'needs a command'
    run tensor lss
    status_is 2
    err_has '"lss"'
    run tensor ls
    status_is 2
    err_has 'needs a FILE'
    run tensor extract a b c
    status_is 2
    err_has '"c"'
    run tensor diff a
    status_is 2
    run tensor check --nonsense
    status_is 2
    err_has 'cairn tensor check --help'
}

every_command_has_help()
{
    for command in $("$cairn" tensor --list-commands | cut -f 1); do
        run help tensor "$command"
        status_is 0
        out_has "usage: cairn tensor $command"
        out_has 'examples:'
        out_has --json
        [ -z "$(awk 'length($0) > 100' "$out")" ] || fail 'over 100 columns'
    done
}

a_full_disk_is_not_success()
{
    make two.st "$two"
    for command in 'ls two.st' 'check two.st' 'diff two.st two.st'; do
        said="cairn tensor $command"
        # shellcheck disable=SC2086 # words
        "$cairn" tensor $command >/dev/full 2>"$err"
        status=$?
        status_is 1
        err_has 'No space left'
    done
}

# Numbers of formats that cannot be converted are looked at all the same.
looks_at_odd_formats()
{
    make c64.st '[("x", "C64", [2], f32([1, 2, 3, float("nan")]))]'
    make e8m0.st '[("x.scale", "F8_E8M0", [4], bytes([1, 127, 255, 3]))]'
    make c64inf.st '[("x", "C64", [1], f32([float("inf"), 0]))]'
    for case in c64:has-nan e8m0:has-nan c64inf:has-inf; do
        run tensor check "${case%:*}.st" --json
        status_is 1
        json_is "d['files'][0]['verdict'] == '${case#*:}' and d['damaged'] == 1 and d['healthy'] == 0"
    done
    make good.st '[("c", "C64", [2], f32([1, 2, 3, 4])), ("s", "F8_E8M0", [4], bytes([1, 127, 254, 0])),
                   ("w", "F4", [4], bytes([0x21, 0x7f]))]'
    run tensor check good.st --json
    status_is 0
    json_is "d['healthy'] == 1 and d['skipped'] == 0"
    json_is "[(t['min'], t['max']) for t in d['files'][0]['tensors'] if t['name'] == 'c'] == [(1, 4)]"
    json_is "[(t['min'], t['max'], t['zero']) for t in d['files'][0]['tensors'] if t['name'] == 'w'] == [(-6, 6, 0)]"
    json_is "[abs(t['min'] * 2.0 ** 127 - 1) < 1e-5 and abs(t['max'] / 2.0 ** 127 - 1) < 1e-5 for t in d['files'][0]['tensors'] if t['name'] == 's'] == [True]"
}

# What nobody looked at is neither damaged nor healthy.
says_what_it_did_not_look_at()
{
    make odd.st '[("a", "F6_E2M3", [4], bytes(3)), ("b", "F32", [2], f32([1, 2]))]'
    run tensor check odd.st --json
    status_is 0
    json_is "(d['damaged'], d['skipped'], d['healthy']) == (0, 1, 0)"
    json_is "d['files'][0]['verdict'] == 'skipped' and d['files'][0]['skipped_tensors'] == 1"
    mkdir -p some
    mv odd.st some/odd.safetensors
    make some/good.safetensors "$two"
    run tensor check some
    status_is 0
    out_has some/odd.safetensors
    out_lacks some/good.safetensors
}

lists_several_files()
{
    make one.st "$two"
    make other.st '[("c", "F32", [2], f32([1, 2]))]'
    run tensor ls one.st other.st --json
    status_is 0
    json_is "[(f['path'], f['tensor_count']) for f in d['sources']] == [('one.st', 2), ('other.st', 1)]"
    run tensor ls one.st other.st
    status_is 0
    out_has one.st
    out_has other.st
    run tensor ls one.st missing.st other.st --json
    status_is 1
    err_has missing.st
    json_is "len(d['sources']) == 2"
    run tensor ls one.st other.st --only c --json
    json_is "[f['tensor_count'] for f in d['sources']] == [0, 1]"
    for files in one.st 'one.st other.st'; do
        # shellcheck disable=SC2086 # one or two names
        run tensor ls $files --only 'nothing*'
        status_is 1
        out_is_empty
        err_has 'nothing*'
    done
}

# The remedy can be pasted, and what comes of it is healthy.
the_remedy_repairs()
{
    nan=$(printf 'float("nan")')
    inf=$(printf 'float("inf")')
    make "it's.st" "[('a.weight', 'F32', [4, 64], f32(bell(254) + [$nan, 1])), ('b.weight', 'BF16', [2, 64], bf16(bell(127) + [$inf]))]"
    run tensor check "it's.st" --json
    status_is 1
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["files"][0]["todo"].split("repair it: cairn ")[1])' "$out" >remedy
    said=$(cat remedy)
    eval "set -- $said"
    run "$@"
    status_is 0
    run tensor check "it's-repaired.safetensors" --json
    status_is 0
    json_is "d['healthy'] == 1"
    json_is "all(t['absmax'] < 10 for t in d['files'][0]['tensors'])"
}

for case in lists_a_file lists_as_json lists_shards_and_torch_files a_terminal_does_not_obey_a_name \
    broken_files_are_refused_in_one_line healthy_files_are_healthy damaged_files_are_told_with_a_remedy \
    what_may_be_zero_is_not_damage statistics_are_right threads_do_not_change_what_is_said \
    a_missing_shard_is_damage nothing_to_check_is_not_success files_that_are_equal files_that_differ \
    metadata_differs_when_asked extracts_bit_for_bit extracts_in_place torch_files_become_safetensors \
    wrong_usage_is_named every_command_has_help a_full_disk_is_not_success \
    lists_several_files the_remedy_repairs looks_at_odd_formats says_what_it_did_not_look_at; do
    rm -rf "${tmp:?}/work"
    mkdir "$tmp/work"
    cd "$tmp/work" || exit 1
    it "$case"
done
finish
